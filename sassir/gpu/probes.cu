// What a device can do at most, and a kernel that keeps it waiting. bench/build_probes.sh makes probes.fatbin from this file.
#include <cuda_fp16.h>

constexpr int CHAINS = 16;   // independent accumulators a thread, so that every issue slot can be used
constexpr int UNROLL = 8;    // steps of each chain in one round; ceilings.py knows both

// Keeps the device busy, so that everything queued behind it starts without waiting for the host.
extern "C" __global__ void wait(unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < nanoseconds);
}

// y = x, four loads of 16 bytes in flight a thread.
extern "C" __global__ void copy(const float4 *__restrict__ x, float4 *__restrict__ y, unsigned long long count) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x, i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + 3 * step < count; i += 4 * step) {
    float4 a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
    y[i] = a; y[i + step] = b; y[i + 2 * step] = c; y[i + 3 * step] = d;
  }
  for (; i < count; i += step) y[i] = x[i];
}

template <typename T> __device__ void multiply_add(T *y, int rounds) {
  T chain[CHAINS], factor = T(0.999) + T(threadIdx.x) * T(1e-6), addend = T(1e-3) * T(blockIdx.x % 7);
#pragma unroll
  for (int k = 0; k < CHAINS; k++) chain[k] = T(k);
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int step = 0; step < UNROLL; step++)
#pragma unroll
      for (int k = 0; k < CHAINS; k++) chain[k] = chain[k] * factor + addend;
  T sum = 0;
#pragma unroll
  for (int k = 0; k < CHAINS; k++) sum += chain[k];
  if (sum == T(-1)) y[0] = sum;   // never true, but the compiler does not know
}

extern "C" __global__ void fma_f32(float *y, int rounds) { multiply_add(y, rounds); }
extern "C" __global__ void fma_f64(double *y, int rounds) { multiply_add(y, rounds); }

__device__ unsigned noise(unsigned i) {   // two halves of magnitude 0.5 to 2: the power that real data draws
  i = (i ^ 0x9e3779b9u) * 0x85ebca6bu; i ^= i >> 13; i *= 0xc2b2ae35u; i ^= i >> 16;
  return (i & 0x87ff87ffu) | 0x38003800u;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// One warp group of 128 threads: m64n128k16 products out of shared memory, 262144 operations each, UNROLL a round.
extern "C" __global__ void __launch_bounds__(128) mma_f16(float *y, int rounds) {
  __shared__ alignas(128) unsigned tile[2048];
  for (int i = threadIdx.x; i < 2048; i += 128) tile[i] = noise(i + 2048 * blockIdx.x);
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  unsigned long long a = (unsigned)__cvta_generic_to_shared(tile) >> 4 | 8ull << 16 | 16ull << 32, b = a + 128;
  float d[64];
#pragma unroll
  for (int k = 0; k < 64; k++) d[k] = 0;
#define F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F16(i) F4(i), F4(i + 4), F4(i + 8), F4(i + 12)
  for (int round = 0; round < rounds; round++) {
    asm volatile("wgmma.fence.sync.aligned;");
#pragma unroll
    for (int step = 0; step < UNROLL; step++)
      asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,"
        "%61,%62,%63}, %64, %65, 1, 1, 1, 0, 0;" : F16(0), F16(16), F16(32), F16(48) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 64; k++) sum += d[k];
  if (sum == -1.0f) y[0] = sum;
}
#else
// Each warp: m16n8k16 products (two m16n8k8 before sm_80), 4096 operations each, eight chains, UNROLL a round.
extern "C" __global__ void __launch_bounds__(128) mma_f16(float *y, int rounds) {
  unsigned a[4], b[2];
#pragma unroll
  for (int k = 0; k < 4; k++) a[k] = noise(threadIdx.x + 128 * k);
  b[0] = noise(threadIdx.x + 512); b[1] = noise(threadIdx.x + 640);
  float d[8][4] = {};
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int k = 0; k < UNROLL; k++) {
#if __CUDA_ARCH__ >= 800
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
      for (int half = 0; half < 2; half++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
          : "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3]) : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
    }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 8; k++) sum += d[k][0] + d[k][1] + d[k][2] + d[k][3];
  if (sum == -1.0f) y[0] = sum;
}
#endif
