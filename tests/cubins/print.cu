// A system call (vprintf) with a format string in global memory, a stack frame, and line information.
#include <cstdio>
extern "C" __global__ void print(const int *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && p[i] < 0) printf("element %d is %d\n", i, p[i]);
}
