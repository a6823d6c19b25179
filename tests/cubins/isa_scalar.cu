// Instructions that ordinary kernels seldom hold, for the comparison of register roles with nvdisasm's life ranges.
//   nvcc -cubin -std=c++17 -arch=sm_XX isa_scalar.cu -o isa_scalar.sm_XX.cubin     (75, 80, 90a, 100a, 120a)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void warp(unsigned *out, unsigned long long *wide, unsigned x) {
    unsigned i = threadIdx.x, v = out[i];
    unsigned mask = __ballot_sync(~0u, v & 1), any = __any_sync(~0u, v == x), same = __match_any_sync(~0u, v);
    int pred;
    unsigned all = __match_all_sync(~0u, wide[i], &pred);
    v += __shfl_xor_sync(~0u, v, 1) + __shfl_down_sync(~0u, v, x) + __shfl_sync(~0u, v, i ^ x, 16);
#if __CUDA_ARCH__ >= 800
    v += __reduce_add_sync(~0u, v) ^ __reduce_min_sync(~0u, v);
#endif
    if (x == i) v += __activemask();
    __syncwarp(mask);
    out[i] = v + any + same + all + pred + __syncthreads_count(v) + __syncthreads_or(i);
    wide[i] = clock64() + clock() + __popcll(wide[i + 1]) + __clzll(wide[i + 2]) + __brev(v) + __ffs(x);
    if (v == 0) __nanosleep(x);
}

extern "C" __global__ void atomics(unsigned *g, unsigned long long *w, float *f, double *d, half2 *h, unsigned x) {
    __shared__ unsigned s[64];
    __shared__ unsigned long long l[64];
    int i = threadIdx.x;
    s[i] = x, l[i] = x;
    __syncthreads();
    unsigned a = atomicAdd(s + x, i) + atomicCAS(s + i, x, 3u) + atomicExch(s + 2, i) + atomicMax(s + 5, i);
    unsigned long long b = atomicCAS(l + i, 5ull, w[i]) + atomicExch(l + x, 7ull) + atomicAdd(l + 1, w[i]);
    a += atomicAdd(g, x) + atomicCAS(g + i, a, x) + atomicInc(g + 3, x);
    b += atomicAdd(w, b) + atomicCAS(w + i, b, 3ull) + atomicMax(w + 5, b);
    atomicAdd(g + 9, a);
    atomicAdd(w + 9, b);
    atomicAdd(f + i, 2.0f);
    atomicAdd(d + i, 2.0);
    atomicAdd(h + i, half2(1.0f, 2.0f));
    f[i + 64] = atomicAdd(f, 1.0f) + atomicAdd(d, 1.0);
    __threadfence();
    __threadfence_system();
    g[i + 64] = a, w[i + 64] = b;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(w));
#if __CUDA_ARCH__ >= 800
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(g));
#endif
}

extern "C" __global__ void textures(cudaTextureObject_t t, cudaSurfaceObject_t s, float *o, float x) {
    int i = threadIdx.x;
    float u = x * i, v = u + i, w = v + x;
    float4 q = tex3DLod<float4>(t, u, v, w, i * x);
    float2 r = tex2DGrad<float2>(t, u, v, make_float2(u, w), make_float2(v, w));
    float4 g = tex2Dgather<float4>(t, u, v, 1);
    float k = tex2D<float>(t, u, v) + texCubemap<float>(t, u, v, w) + tex2DLayered<float>(t, u, v, i) + tex1Dfetch<float>(t, i);
    k += texCubemapLayeredLod<float>(t, u, v, w, i, x) + tex1DLayered<float2>(t, u, i).y + tex3DGrad<float>(t, u, v, w, q, g);
    int4 y;
    surf2Dread(&y, s, i * 16, i);
    surf3Dwrite(y, s, i * 16, i, y.x);
    surf2DLayeredwrite(surf1Dread<short2>(s, i), s, i, y.y, i);
    o[i] = k + q.x + q.y + q.z + q.w + r.x * r.y + g.x - g.y * g.z + g.w;
}

extern "C" __global__ void numbers(double *d, long long *l, float *f, __nv_bfloat162 *b, half2 *h, int *n, int k) {
    int i = threadIdx.x;
    double x = d[i], y = d[i + 1];
    l[i] = (long long)x + (unsigned long long)f[i] + (l[i] * l[i + 1] >> k) + l[i] / k;
    d[i] = fma(x, y, (double)l[i]) + (double)f[i] + sqrt(y) / x + rint(y) + (x > y ? x : -y) + (double)n[i] + floor(x);
    f[i] = (float)x + (float)l[i] + __sinf(f[i]) + __fdividef(f[i], 3.0f) + truncf(f[i]) + fminf(f[i], 2.0f) * (float)(n[i] & 255);
    h[i] = __hfma2(h[i], h[i + 1], __floats2half2_rn(f[i], x));
#if __CUDA_ARCH__ >= 800
    b[i] = __hfma2(b[i], b[i + 1], b[i + 2]);
    h[i] = __hmax2(__hfma2_relu(h[i], h[i + 1], h[i + 2]), h[i + 3]);
#endif
    n[i] = __dp4a(n[i], k, n[i + 1]) + __byte_perm(n[i], k, n[i + 2]) + max(min(n[i], k), 3) + abs(n[i]) + __funnelshift_l(n[i], k, 5) +
           __mulhi(n[i], k) + (__popc(n[i]) << (k & 7)) + __vadd2(n[i], k) + __vabsdiffu4(n[i], k) + __usad(n[i], k, 3);
}
