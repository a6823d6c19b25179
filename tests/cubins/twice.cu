// x is read before and after y is written: the second read is needed only where x and y may overlap.
extern "C" __global__ void twice(const int *x, int *y, int *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + 1;
  z[i] = x[i];
}
