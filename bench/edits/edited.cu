// The kernel that the hardware check edits as text: two independent results of one load, each with a constant of its own.
extern "C" __global__ void edited(const unsigned *x, unsigned *sum, unsigned *mix, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = x[i];
  sum[i] = v + 1000u;
  mix[i] = v ^ 0x55aau;
}
