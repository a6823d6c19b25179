// What the emulator has to get right, a kernel each.
#include <cstdint>

__device__ __forceinline__ uint32_t shared_address(void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

extern "C" __global__ void dimensions(int *out) {
    int i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    out[i + b * blockDim.x * blockDim.y * blockDim.z] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z;
}

// One pointer that is global, shared or local.
extern "C" __global__ void windows(int *data, int *out, int which) {
    __shared__ int tile[32];
    int stack[8];
    for (int k = 0; k < 8; k++) stack[k] = 100 + data[k];
    tile[threadIdx.x] = 200 + threadIdx.x;
    __syncthreads();
    int *p = which == 0 ? data : which == 1 ? tile : stack;
    out[threadIdx.x] = p[threadIdx.x & 7];
    if (threadIdx.x == 0) out[32] = __isGlobal(p) + 2 * __isShared(p) + 4 * __isLocal(p);
}

__device__ int counter = 5;
__device__ int table[4];
__constant__ int offsets[8];
extern "C" __global__ void variables(int *out, int i) {
    int x = 0;
    switch (i) {
    case 0: x = counter; break;
    case 1: x = out[1] * 3; break;
    case 2: x = table[0] - 7; break;
    case 3: x = 44; break;
    case 4: x = out[4] ^ 6; break;
    case 5: x = counter * 2; break;
    }
    out[0] = x;
    out[1] = offsets[i];
    table[i & 3] = x;
}

extern "C" __global__ void without_parameters() { table[threadIdx.x & 3] = 1; }

extern "C" __global__ void atomics(int *ints, float *floats, double *doubles, unsigned long long *longs) {
    __shared__ int s[32];
    __shared__ float f[32];
    __shared__ unsigned long long l[4];
    int t = threadIdx.x;
    if (t < 32) s[t] = 0, f[t] = 0;
    if (t < 4) l[t] = t;
    __syncthreads();
    atomicAdd(&s[t & 3], t);
    atomicMax(&s[4 + (t & 3)], t);
    atomicMin(&s[8], -t);
    atomicXor(&s[9], t);
    atomicInc((unsigned *)&s[10], 6);
    atomicAdd(&f[t & 1], 0.5f);
    atomicAdd(&l[t & 3], 1ull << 40);
    atomicCAS(&s[11], 0, 17);
    __syncthreads();
    if (t < 32) ints[t] = s[t], floats[t] = f[t];
    if (t < 4) longs[t] = l[t];
    ints[64 + atomicAdd(&ints[33], 1)] = 1;
    atomicAdd(&floats[33], 0.25f);
    atomicAdd(&doubles[0], 2.0);
    atomicMax((long long *)&longs[4], (long long)t - 5);
    atomicExch(&longs[5], 9ull);
    atomicAnd(&ints[34], ~t);
}

// Lanes take turns: a lock that one lane of a warp holds while the others spin.
extern "C" __global__ void lock(int *mutex, int *sum) {
    bool done = false;
    while (!done) {
        if (atomicCAS(mutex, 0, 1) == 0) {
            *(volatile int *)sum += threadIdx.x;
            __threadfence();
            atomicExch(mutex, 0);
            done = true;
        }
    }
}

extern "C" __global__ void votes(const int *in, int *out) {
    int count = __syncthreads_count(in[threadIdx.x] > 3), all = __syncthreads_and(in[threadIdx.x]), any = __syncthreads_or(in[threadIdx.x] > 6);
    out[threadIdx.x] = 4 * count + 2 * (all != 0) + (any != 0);
}

// Half of the warps wait at barrier 1; the others at 2, which the first arrive at without waiting.
extern "C" __global__ void barriers(const int *in, int *out) {
    __shared__ int tile[64];
    if (threadIdx.x < 64) {
        tile[threadIdx.x] = in[threadIdx.x];
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = tile[63 - threadIdx.x];
        asm volatile("bar.arrive 2, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 2, 128;" ::: "memory");
        out[threadIdx.x] = tile[127 - threadIdx.x] + 1;
    }
}

// Loops of different length, then all lanes shuffle: they must be together again.
extern "C" __global__ void reconverges(int *out) {
    int x = threadIdx.x;
    for (int i = 0; i < (int)(threadIdx.x & 7); i++) x = x * 3 + out[i];
    x += __shfl_xor_sync(0xffffffff, x, 16);
    if (threadIdx.x % 3 == 0) x += __popc(__ballot_sync(0x49249249, x & 1));
    out[threadIdx.x + 32] = x;
}

extern "C" __global__ void copies(const float4 *in, float4 *out, int n) {
    __shared__ float4 tile[2][64];
    int t = threadIdx.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(&tile[0][t])), "l"(in + t), "r"(t < n ? 16 : 0));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&tile[1][t])), "l"(in + t + 64));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    float4 a = tile[0][63 - t];
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    float4 b = tile[1][63 - t];
    out[t] = make_float4(a.x, a.y, b.z, b.w);
}

extern "C" __global__ void matrices(const uint32_t *in, uint32_t *out) {
    __shared__ __align__(16) uint32_t tile[128];
    int t = threadIdx.x;
    for (int i = t; i < 128; i += 32) tile[i] = in[i];
    __syncthreads();
    uint32_t a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(shared_address(&tile[t * 4])));
    out[t] = a, out[t + 32] = b, out[t + 64] = c, out[t + 96] = d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(shared_address(&tile[t % 16 * 4])));
    out[t + 128] = a, out[t + 160] = b;
}
