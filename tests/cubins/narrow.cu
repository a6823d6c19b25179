// Accesses that are narrower than they could be, for sass-widen: bytes, halves and words of one thread side by side.
#define KERNEL(name) extern "C" __global__ void name

// Words from bytes in both orders, signed bytes and halves by themselves.
KERNEL(gather)(const unsigned char *__restrict__ in, int *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned char *p = in + 16 * i;
    int *q = out + 8 * i;
    q[0] = p[0] | p[1] << 8 | p[2] << 16 | p[3] << 24;
    q[1] = p[7] | p[6] << 8 | p[5] << 16 | p[4] << 24;
    q[2] = (signed char)p[8] + (signed char)p[9];
    q[3] = *(const short *)(p + 10) * 3;
    q[4] = p[12] * p[13];
    q[5] = p[14] << 8 | p[15];
    q[6] = 0;
    q[7] = 0;
}

// Bytes copied one by one, all loads first; a word is stored again where nothing was changed.
KERNEL(copy)(const unsigned char *__restrict__ in, unsigned char *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned char a[16];
#pragma unroll
    for (int k = 0; k < 16; k++) a[k] = in[16 * i + k];
#pragma unroll
    for (int k = 0; k < 16; k++) out[16 * i + k] = k == 5 ? a[k] + 1 : a[k];
}

// One buffer: each store may change what the next load reads.
KERNEL(ripple)(unsigned *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned *p = data + 4 * i;
    unsigned *q = data + 4 * (i ^ (n > 1 << 20));
    p[1] = q[0] + 1;
    p[2] = q[1] + 1;
    p[3] = q[2] + 1;
    p[0] = q[3] + 1;
}
