// What a launch file can ask for beyond grid and block: clusters, cooperation, structs, filled symbols, long kernels.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

struct Pair { int a; double b; };
__constant__ unsigned SCALE[1];
__device__ unsigned OFFSET[1];

extern "C" __global__ void structs(double *y, Pair pair, short s, Pair other) {
  y[threadIdx.x] = pair.a + pair.b + 1000 * s + other.a * other.b;
}
extern "C" __global__ void symbols(unsigned *y) { y[threadIdx.x] = threadIdx.x * SCALE[0] + OFFSET[0]; }

// Every block adds one, waits for all others, and reads the sum.
extern "C" __global__ void cooperative(unsigned *sum, unsigned *y) {
  if (threadIdx.x == 0) atomicAdd(sum, 1u);
  cg::this_grid().sync();
  if (threadIdx.x == 0) y[blockIdx.x] = *(volatile unsigned *)sum;
}
// Every block writes its rank in the cluster and the cluster's size.
extern "C" __global__ void cluster(unsigned *y) {
  unsigned rank, size;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  if (threadIdx.x == 0) y[blockIdx.x] = 100 * size + rank;
}
