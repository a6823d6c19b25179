// Line tables with inlined calls, two kernels, and a function that is not inlined.
__device__ __forceinline__ float square(float x) {
    return x * x + 1.0f;
}
__device__ __forceinline__ float cube(float x) {
    float y = square(x);
    return y * x;
}
__device__ __noinline__ float slow(float x, int n) {
    for (int i = 0; i < n; i++) x = x / 3.1f;
    return x;
}
extern "C" __global__ void one(float *p) {
    p[threadIdx.x] = cube(p[threadIdx.x]) + square(p[0]);
}
extern "C" __global__ void two(float *p, int n) {
    float s = slow(p[threadIdx.x], n);
    p[threadIdx.x] = square(s) + slow(s, 4);
}
