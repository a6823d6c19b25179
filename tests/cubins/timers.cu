// Differences of timers: code that has nothing else to do than to wait for the move of a timer to two registers.
__device__ __forceinline__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

extern "C" __global__ void wait(unsigned long long nanoseconds) {
    for (unsigned long long begin = now(); now() - begin < nanoseconds;) {}
}

extern "C" __global__ void rate(unsigned long long *out, unsigned long long nanoseconds) {
    unsigned long long begin = now(), end;
    long long cycles = clock64();
    do end = now();
    while (end - begin < nanoseconds);
    out[0] = clock64() - cycles;
    out[1] = end - begin;
}

extern "C" __global__ void steps(unsigned long long *out) {
    for (unsigned long long last = now(), i = 0; i < 8; i++) {
        unsigned long long next = now();
        out[i] = next - last;
        last = next;
    }
}

extern "C" __global__ void until(volatile int *flag, unsigned long long *out) {
    unsigned long long begin = now(), end = begin;
    while (*flag == 0 && end - begin < 1000000) end = now();
    out[threadIdx.x] = (end ^ begin) & 0xffff;
}
