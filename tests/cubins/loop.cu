// A loop, a call, a NaN, and on sm_80 loads whose descriptor register NVIDIA's tools do not print.
__device__ __noinline__ float step(float x) { return x * 0.5f + 1.0f; }

extern "C" __global__ void loop(float *out, const float *in, int n) {
    float sum = __int_as_float(0x7fc12345);
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum = fmaxf(sum, step(in[i]));
    out[threadIdx.x] = isnan(sum) ? __int_as_float(0x7fc12345) * sum : sum;
}
