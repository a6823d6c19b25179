// Built without optimisation: loops test at the top. The outer one runs alike in all threads, the inner ones do not.
extern "C" __global__ void top_tested(const int *count, const float *x, float *y, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = count[i];
    float all = 0.0f;
    for (int r = 0; r < rows; r++) {
        float sum = 0.0f, other;
        for (int j = 0; j < n; j++) sum = sum * 0.5f + x[j];
        for (int left = n; left > r; left -= 3) {
            if (sum > 8.0f) break;
            while (sum < left) sum += 0.75f;
        }
        asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=f"(other) : "f"(sum));
        all = all * 1.5f + other;
    }
    y[i] = all;
}
