// A kernel whose code bench/semantics_check.py replaces: two pointers, eight words of constants, and room for 64 registers.
//   nvcc -cubin -arch=sm_90 frame.cu -o frame.sm_90.cubin
struct Words {
  unsigned word[8];
};

extern "C" __global__ void __launch_bounds__(256) frame(const unsigned *in, unsigned *out, Words constants) {
  unsigned live[64], i = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 64; k++) live[k] = in[i + (k << 17)];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 64; k++) out[i + (k << 17)] = live[63 - k] + constants.word[k & 7];
}
