// One kernel that works and kernels that fail, each in one way.
extern "C" __global__ void works(unsigned *y, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3 * i;
}
extern "C" __global__ void illegal_address(unsigned *y, unsigned n) { *(unsigned *)16 = n; }
extern "C" __global__ void misaligned(unsigned *y, unsigned n) { *(unsigned *)((char *)y + 2 + (n & 1)) = n; }
extern "C" __global__ void endless(unsigned *y, unsigned n) {
  volatile unsigned *p = y;
  while (*p != n) {}
}
extern "C" __global__ void past_the_end(unsigned *y, unsigned n) { y[n] = n; }
