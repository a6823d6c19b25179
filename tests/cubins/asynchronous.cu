// Barrier objects and bulk copies, from sm_90 on.
#include <cstdint>

__device__ __forceinline__ uint32_t shared_address(void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void wait_for(uint64_t *barrier, int parity) {
    int done;
    do {
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    } while (!done);
}

extern "C" __global__ void bulk(const float *in, float *out) {
    __shared__ __align__(128) float tile[256];
    __shared__ uint64_t barrier;
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&barrier)));
        asm volatile("fence.proxy.async.shared::cta;");
    }
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(shared_address(&barrier)));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(shared_address(tile)), "l"(in), "r"(shared_address(&barrier)));
    }
    wait_for(&barrier, 0);
    tile[t] *= 2;
    asm volatile("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(out), "r"(shared_address(tile)));
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 0;");
    }
}

// The threads of a block wait for each other at an object, n times, and for their own copies at another one.
extern "C" __global__ void objects(const float *in, float *out, int n) {
    __shared__ uint64_t first, second;
    __shared__ float tile[128];
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(shared_address(&first)));
        asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(shared_address(&second)));
    }
    __syncthreads();
    for (int k = 0; k < n; k++) {
        tile[t] = in[t] + k;
        uint64_t token;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(shared_address(&first)) : "memory");
        int done;
        do {
            asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(shared_address(&first)), "l"(token) : "memory");
        } while (!done);
        float x = tile[127 - t];
        __syncthreads();
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&tile[t])), "l"(in + t));
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&second)) : "memory");
        wait_for(&second, k & 1);
        out[t + 128 * k] = x + 2 * tile[127 - t];
        __syncthreads();
    }
}

extern "C" __global__ void matrices(const uint32_t *in, uint32_t *out) {
    __shared__ __align__(16) uint32_t tile[64];
    int t = threadIdx.x;
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(&tile[t % 16 * 4])), "r"(in[t]), "r"(in[t + 32]) : "memory");
    __syncwarp();
    out[t] = tile[t], out[t + 32] = tile[t + 32];
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(shared_address(&tile[t % 8 * 4])), "r"(in[t]) : "memory");
    __syncwarp();
    out[t + 64] = tile[t];
}

// Wrong: the copy is not waited for.
extern "C" __global__ void hasty(const float *in, float *out) {
    __shared__ __align__(128) float tile[256];
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&barrier)));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(shared_address(&barrier)));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(shared_address(tile)), "l"(in), "r"(shared_address(&barrier)));
    }
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}
