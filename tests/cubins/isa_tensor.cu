// Instructions that ordinary kernels seldom hold, for the comparison of register roles with nvdisasm's life ranges.
//   nvcc -cubin -std=c++17 -arch=sm_XX isa_tensor.cu -o isa_tensor.sm_XX.cubin     (75, 80, 90a, 100a, 120a)
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void matrix(const half *a, const signed char *b, const double *c, float *d) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> h;
    wmma::load_matrix_sync(x, a, 16);
    wmma::load_matrix_sync(y, a + 256, 16);
    wmma::fill_fragment(z, 0.0f);
    wmma::fill_fragment(h, half(1.0f));
    wmma::mma_sync(z, x, y, z);
    wmma::mma_sync(h, x, y, h);
    wmma::store_matrix_sync(d, z, 16, wmma::mem_row_major);
    wmma::store_matrix_sync(reinterpret_cast<half *>(d + 256), h, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> p;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> q;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> r;
    wmma::load_matrix_sync(p, b, 16);
    wmma::load_matrix_sync(q, b + 256, 16);
    wmma::fill_fragment(r, 0);
    wmma::mma_sync(r, p, q, r);
    wmma::store_matrix_sync(reinterpret_cast<int *>(d + 512), r, 16, wmma::mem_row_major);
#if __CUDA_ARCH__ >= 800
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> t;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> u;
    wmma::load_matrix_sync(t, d, 8);
    wmma::load_matrix_sync(u, d + 128, 8);
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> v;
    wmma::fill_fragment(v, 0.0f);
    wmma::mma_sync(v, t, u, v);
    wmma::store_matrix_sync(d + 768, v, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> e;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> f;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> g;
    wmma::load_matrix_sync(e, c, 4);
    wmma::load_matrix_sync(f, c + 32, 4);
    wmma::fill_fragment(g, 0.0);
    wmma::mma_sync(g, e, f, g);
    wmma::store_matrix_sync(reinterpret_cast<double *>(d + 1024), g, 8, wmma::mem_row_major);
#endif
}

extern "C" __global__ void shared_matrices(unsigned *out, const uint4 *in) {
    __shared__ uint4 tile[64];
    int i = threadIdx.x;
#if __CUDA_ARCH__ >= 800
    unsigned to = __cvta_generic_to_shared(tile + i);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + i));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, 2;" ::"r"(to), "l"(in + 2 * i));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;");
#else
    tile[i] = in[i];
#endif
    __syncthreads();
    unsigned from = __cvta_generic_to_shared(tile) + 16 * i, a, b, c, d, e, f, g;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(e), "=r"(f) : "r"(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(g) : "r"(from));
    out[i] = a + b * c + d * e + f * g;
}

#if __CUDA_ARCH__ >= 900
// Tensor copies, barriers in shared memory, cluster.
extern "C" __global__ void copies(const __grid_constant__ uint4 map[8], unsigned char *g, int n) {
    __shared__ __align__(128) unsigned char s[4096];
    __shared__ unsigned long long bar;
    unsigned to = __cvta_generic_to_shared(s), b = __cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b));
        asm volatile("fence.proxy.async;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4096;" ::"r"(b));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %3}], [%2];" ::"r"(to),
                     "l"(map), "r"(b), "r"(n));
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %3, %3, %3}], [%2];" ::"r"(to),
                     "l"(map), "r"(b), "r"(n));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(to), "l"(g), "r"(b));
    }
    asm volatile("{ .reg .pred p; w: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra w; }" ::"r"(b));
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %2, %2}], [%1];" ::"l"(map), "r"(to), "r"(n));
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %2}], [%1];" ::"l"(map), "r"(to), "r"(n));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(g), "r"(to));
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %1};" ::"r"(to), "r"(n));
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
extern "C" __global__ void warpgroup(float *out, unsigned long long a, unsigned long long b) {
    float c[4] = {};
    unsigned r = threadIdx.x;
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(a), "l"(b));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%4,%4,%4}, %5, 1, 1, 1, 0;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(r), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
    out[r] = c[0] + c[1] * c[2] - c[3];
}
#endif
