// Kernels that do something wrong, each in one way, which the emulator has to name.
#include <cstdio>

extern "C" __global__ void overrun(float *data, int n) { data[threadIdx.x + n] = 1; }
extern "C" __global__ void misaligned(char *data) { *(int *)(data + 2 + 4 * threadIdx.x) = 1; }
extern "C" __global__ void races(int *out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
extern "C" __global__ void unwritten(int *out) {
    __shared__ int tile[64];
    if (threadIdx.x != 5) tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
extern "C" __global__ void outside(int *out, int i) {
    __shared__ int tile[32];
    tile[threadIdx.x + i] = 1;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void stack(int *out, int i) {
    int local[32];
    for (int k = 0; k < 32; k++) local[k] = out[k & 3];
    out[threadIdx.x] = local[i];
}
extern "C" __global__ void endless(volatile int *flag) { while (*flag == 0); }
extern "C" __global__ void never_meets(int *out) {
    if (threadIdx.x < 40) asm volatile("bar.sync 1, 64;");
    else asm volatile("bar.sync 2, 64;");
    out[threadIdx.x] = 1;
}
extern "C" __global__ void diverges(int *out) {
    if (out[threadIdx.x] > 3) { out[threadIdx.x] = 1; asm volatile("bar.sync 0;"); out[threadIdx.x] += 5; }
    else { out[threadIdx.x] = 2; asm volatile("bar.sync 0;"); out[threadIdx.x] *= 3; }
}
extern "C" __global__ void prints(int *out) { if (out[threadIdx.x] == 3) printf("%d\n", threadIdx.x); }
