// A dense switch: ptxas makes a jump table in constant bank 2 and an indirect branch.
extern "C" __global__ void jump(int *p, int k) {
    int v = p[threadIdx.x];
    switch (k) {
    case 0: v = v * 3 + 1; break;
    case 1: v = __popc(v) ^ 0x55; break;
    case 2: v = __clz(v) + p[v & 7]; break;
    case 3: v = v / 7; break;
    case 4: v = __brev(v); break;
    case 5: p[32] = v; v = atomicAdd(p + 33, v); break;
    case 6: v = (int)sqrtf((float)v); break;
    case 7: v = v % 13; break;
    case 8: v = p[v & 15] ^ p[v & 31]; break;
    default: v = -v;
    }
    p[threadIdx.x] = v;
}
