// A relocatable object (-rdc=true): shared memory that the linker will place; until then the value of its symbol is its alignment.
extern "C" __global__ void unplaced(int4 *x) {
    __shared__ int4 row[32];
    row[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = row[31 - threadIdx.x];
}

extern "C" __global__ void two_unplaced(int *x) {
    __shared__ int first[32], second[32];
    first[threadIdx.x] = x[threadIdx.x];
    second[threadIdx.x] = x[threadIdx.x + 32];
    __syncthreads();
    x[threadIdx.x] = first[31 - threadIdx.x] - second[threadIdx.x ^ 1];
}
