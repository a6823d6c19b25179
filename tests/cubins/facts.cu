// Kernels with parameters that facts are stated of: tests/passes/test_ranges.py, tests/translate/test_facts_file.py.

// Where stride and n are small, no guard and no arithmetic of 64 bits is needed.
extern "C" __global__ void strided(const float *x, float *y, long stride, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i * stride];
}

// The lowest byte of a word, and a parameter that is no word.
extern "C" __global__ void low_byte(int *y, int n, short m) { y[threadIdx.x] = (unsigned char)n * m; }

// A loop with a guard that the range of n decides.
extern "C" __global__ void clipped(int *y, int n) {
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++)
        if (i < 64)
            sum += y[threadIdx.x + 32 * i];
    y[threadIdx.x] = sum;
}
