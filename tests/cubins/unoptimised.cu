// Built without optimisation: functions stay functions, an array is in local memory, and the stack pointer is compared with its limit.
__device__ __noinline__ float weighted(const float *table, int i) {
    return i < 5 ? table[i] * 0.5f : 3.0f;
}

extern "C" __global__ void unoptimised(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float table[8], sum = 0.0f;
    for (int j = 0; j < 8; j++) table[j] = x[i + j];
    for (int j = 0; j < n; j++) sum += weighted(table, j & 7) / (1.0f + j);
    y[i] = sum;
}
