"""The Triton kernels of the suite, written as Triton's tutorials write them, and how they are compiled.

    python bench/triton_kernels.py -o DIR

Needs Triton (3.6.0 made the committed cubins), but no GPU.
"""

# ruff: noqa: N803  (upper case is Triton's way to write compile-time constants)

import argparse
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def silu_mul(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(x + i, mask=inside).to(tl.float32)
    b = tl.load(y + i, mask=inside).to(tl.float32)
    tl.store(o + i, (a / (1.0 + tl.exp(-a)) * b).to(tl.float16), mask=inside)


@triton.jit
def softmax(x, o, cols, stride, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + c, mask=c < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + row * stride + c, e / tl.sum(e, 0), mask=c < cols)


@triton.jit
def layernorm(x, w, b, o, cols, eps, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    inside = c < cols
    v = tl.load(x + row * cols + c, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / cols
    centred = tl.where(inside, v - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / cols + eps)
    weight = tl.load(w + c, mask=inside).to(tl.float32)
    bias = tl.load(b + c, mask=inside).to(tl.float32)
    tl.store(o + row * cols + c, (centred * rstd * weight + bias).to(tl.float16), mask=inside)


@triton.jit
def matmul_leaky(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # Programs go through the tiles of GROUP rows together, so that they find each other's operands in the L2 cache.
    program = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = program // (GROUP * columns)
    height = min(rows - group * GROUP, GROUP)
    row = group * GROUP + (program % (GROUP * columns)) % height
    column = (program % (GROUP * columns)) // height
    rm, rn, rk = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    pa = a + rm[:, None] * sa + rk[None, :]
    pb = b + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        u = tl.load(pa, mask=rk[None, :] < K - k * BK, other=0.0)
        v = tl.load(pb, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(u, v, acc)
        pa += BK
        pb += BK * sb
    acc = tl.where(acc > 0, acc, 0.01 * acc)
    tl.store(c + rm[:, None] * sc + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def attention(q, k, v, o, L, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1) * L * D
    rm, rd, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    queries = tl.load(q + head + rm[:, None] * D + rd[None, :])
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, L, BN):
        keys = tl.load(k + head + (n + rn)[None, :] * D + rd[:, None])
        score = tl.dot(queries, keys) * (scale * 1.44269504)
        larger = tl.maximum(largest, tl.max(score, 1))
        weight = tl.exp2(score - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(weight, 1)
        values = tl.load(v + head + (n + rn)[:, None] * D + rd[None, :])
        acc = tl.dot(weight.to(tl.float16), values, acc * shrink[:, None])
        largest = larger
    tl.store(o + head + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


HALF, SINGLE, INT, FLOAT = "*fp16", "*fp32", "i32", "fp32"
BUILDS = {
    "triton_silu_mul": (silu_mul, {"x": HALF, "y": HALF, "o": HALF, "n": INT}, {"BLOCK": 1024}, 3),
    "triton_softmax": (softmax, {"x": SINGLE, "o": SINGLE, "cols": INT, "stride": INT}, {"BLOCK": 4096}, 3),
    "triton_layernorm": (layernorm, {**dict.fromkeys("xwbo", HALF), "cols": INT, "eps": FLOAT}, {"BLOCK": 2048}, 3),
    "triton_matmul": (
        matmul_leaky,
        {**dict.fromkeys("abc", HALF), **dict.fromkeys(("M", "N", "K", "sa", "sb", "sc"), INT)},
        {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8},
        3,
    ),
    "triton_attention": (attention, {**dict.fromkeys("qkvo", HALF), "L": INT, "scale": FLOAT}, {"D": 64, "BM": 128, "BN": 64}, 2),
}
"""Name in the suite to kernel, types of its arguments, constants, and stages of its pipelined loop."""


def build(name: str) -> bytes:
    """The cubin for sm_90a. Addresses and sizes are promised to be multiples of 16, as the launch files keep it."""
    kernel, types, constants, stages = BUILDS[name]
    divisible = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(types.values()) if kind != FLOAT}
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(kernel, signature, constants, divisible)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "num_stages": stages}).asm["cubin"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name in BUILDS:
        (options.output / f"{name}.sm_90.cubin").write_bytes(build(name))


if __name__ == "__main__":
    main()
