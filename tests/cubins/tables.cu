// Look-ups in constant memory: bytes, halves, 64-bit numbers; an index that may leave the table; one that all threads share.
__constant__ unsigned char bytes[256];
__constant__ unsigned short halves[300];
__constant__ unsigned long long longs[64];

extern "C" __global__ void tables(const unsigned *in, unsigned *out, int rounds) {
  int i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned v = in[i];
  for (int r = 0; r < rounds; r++) {
    unsigned long long wide = longs[v >> 7 & 63];
    v = v * 5 + bytes[v >> 3 & 255] + halves[v >> 9 & 255] * 3 + (unsigned)wide + (unsigned)(wide >> 32);
  }
  out[i] = v;
}

extern "C" __global__ void unbounded(const unsigned *in, unsigned *out, int rounds) {
  unsigned v = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) v = bytes[v];
  out[threadIdx.x] = v;
}

extern "C" __global__ void uniform(const unsigned *in, unsigned *out, int rounds) {
  unsigned v = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) v = v * 5 + bytes[r & 255];
  out[threadIdx.x] = v;
}
