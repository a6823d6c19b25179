// C = A B, 128 x 128 results a block, 8 x 8 in the registers of a thread: a product that is bound by arithmetic. n is a multiple of 128.
extern "C" __global__ __launch_bounds__(256) void tiles(float *__restrict__ c, const float *__restrict__ a, const float *__restrict__ b, int n) {
    __shared__ float as[8][128], bs[8][128];
    float sums[8][8] = {};
    int t = threadIdx.x, tx = 4 * (t % 16), ty = 4 * (t / 16);
    a += blockIdx.y * 128 * n;
    b += blockIdx.x * 128;
    for (int k0 = 0; k0 < n; k0 += 8) {
        float4 u = *(const float4 *)(a + (t / 2) * n + k0 + t % 2 * 4);
        float4 v = *(const float4 *)(b + (k0 + t / 32) * n + t % 32 * 4);
        int k = t % 2 * 4, row = t / 2;
        __syncthreads();
        as[k][row] = u.x, as[k + 1][row] = u.y, as[k + 2][row] = u.z, as[k + 3][row] = u.w;
        *(float4 *)&bs[t / 32][t % 32 * 4] = v;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float x[8], y[8];
            *(float4 *)x = *(float4 *)&as[k][ty], *(float4 *)(x + 4) = *(float4 *)&as[k][ty + 64];
            *(float4 *)y = *(float4 *)&bs[k][tx], *(float4 *)(y + 4) = *(float4 *)&bs[k][tx + 64];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sums[i][j] += x[i] * y[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int h = 0; h < 8; h += 4)
            *(float4 *)(c + (blockIdx.y * 128 + i / 4 * 64 + ty + i % 4) * n + blockIdx.x * 128 + h * 16 + tx) =
                make_float4(sums[i][h], sums[i][h + 1], sums[i][h + 2], sums[i][h + 3]);
}
