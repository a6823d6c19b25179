"""Chain kernels: PTX in which one instruction waits for another and nothing else is left to do, so that ptxas shows its latency.

One kernel for each pair of operations, and for each source of the second one that can take the first one's result. One call of
ptxas compiles them all.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from sassir.errors import EncodingError

# fmt: off
OPERATIONS = """
# name       | from  | result | sources     | PTX; `*`: pairs with every other operation, else only with these
and_or       | sm_75 | b32    | b32 b32 b32 | * lop3.b32 D, A, B, C, 0xe8;
select       | sm_75 | b32    | b32 b32 p   | * selp.b32 D, A, B, C;
minimum      | sm_75 | b32    | b32 b32     | min.s32 D, A, B;
pack_half    | sm_80 | b32    | b32 b32     | cvt.rn.f16x2.f32 D, A, B;
add_64       | sm_75 | b64    | b64 b64     | add.s64 D, A, B;
select_64    | sm_75 | b64    | b64 b64 p   | selp.b64 D, A, B, C;
ffma         | sm_75 | b32    | b32 b32 b32 | * fma.rn.f32 D, A, B, C;
multiply_add | sm_75 | b32    | b32 b32 b32 | mad.lo.s32 D, A, B, C;
multiply_hi  | sm_75 | b32    | b32 b32     | mul.hi.u32 D, A, B;
multiply_64  | sm_75 | b64    | b32 b32 b64 | * mad.wide.u32 D, A, B, C;
hfma         | sm_75 | b32    | b32 b32 b32 | * fma.rn.f16x2 D, A, B, C;
hmul         | sm_75 | b32    | b32 b32     | mul.rn.f16x2 D, A, B;
hminimum     | sm_80 | b32    | b32 b32     | min.f16x2 D, A, B;
hset         | sm_75 | b32    | b32 b32     | set.lt.f16x2.f16x2 D, A, B;
half_single  | sm_75 | b32    | b32         | {.reg .b16 l, h; mov.b32 {l, h}, A; cvt.f32.f16 D, h;}
dadd         | sm_75 | b64    | b64 b64     | add.rn.f64 D, A, B;
dfma         | sm_75 | b64    | b64 b64 b64 | * fma.rn.f64 D, A, B, C;
compare      | sm_75 | p      | b32 b32     | * setp.lt.s32 D, A, B;
fcompare     | sm_75 | p      | b32 b32     | setp.lt.f32 D, A, B;
hcompare     | sm_75 | p      | b32 b32     | {.reg .pred q; setp.lt.f16x2 D|q, A, B;}
dcompare     | sm_75 | p      | b64 b64     | setp.lt.f64 D, A, B;
compare_64   | sm_75 | p      | b64 b64     | setp.lt.s64 D, A, B;
compare_and  | sm_75 | p      | b32 b32 p   | setp.lt.and.s32 D, A, B, C;
p_logic      | sm_75 | p      | p p         | xor.pred D, A, B;
guarded      | sm_75 | b32    | b32 b32 p   | * mov.b32 D, A; @C fma.rn.f32 D, B, B, A;
guarded_load | sm_75 | b32    | b32 p       | mov.b32 D, A; @B ld.volatile.shared.b32 D, [A];
vote         | sm_75 | p      | p           | vote.sync.any.pred D, A, -1;
ballot       | sm_75 | b32    | p           | vote.sync.ballot.b32 D, A, -1;
add_carry    | sm_75 | b64    | b64 b32 b32 | {.reg .b32 l, h; mov.b64 {l, h}, A; add.cc.u32 l, l, B; addc.u32 h, h, C; mov.b64 D, {l, h};}
mad_carry    | sm_75 | b64    | b32 b32 b32 | {.reg .b32 l, h; mad.lo.cc.u32 l, A, B, C; madc.hi.u32 h, A, B, C; mov.b64 D, {l, h};}
exponent     | sm_75 | b32    | b32         | * ex2.approx.ftz.f32 D, A;
leading      | sm_75 | b32    | b32         | bfind.u32 D, A;
shuffle      | sm_75 | b32    | b32 b32     | shfl.sync.idx.b32 D, A, B, 31, -1;
load_shared  | sm_75 | b32    | b32         | * ld.volatile.shared.b32 D, [A];
store_shared | sm_75 | b32    | b32 b32     | mov.b32 D, B; st.volatile.shared.b32 [A], B;
load_global  | sm_75 | b32    | b64         | ld.volatile.global.b32 D, [A];
atom_shared  | sm_75 | b32    | b32 b32     | atom.shared.add.u32 D, [A], B;
reduce       | sm_80 | b32    | b32         | redux.sync.add.u32 D, A, -1;
"""

MATRICES = """
# from | type | a | b | c | shape and types
sm_75  | b32  | 2 | 1 | 2 | m16n8k8.row.col.f16.f16.f16.f16
sm_75  | b32  | 2 | 1 | 4 | m16n8k8.row.col.f32.f16.f16.f32
sm_80  | b32  | 4 | 2 | 2 | m16n8k16.row.col.f16.f16.f16.f16
sm_80  | b32  | 4 | 2 | 4 | m16n8k16.row.col.f32.f16.f16.f32
sm_80  | b32  | 4 | 2 | 4 | m16n8k8.row.col.f32.tf32.tf32.f32
sm_75  | b32  | 1 | 1 | 2 | m8n8k16.row.col.s32.s8.s8.s32
sm_80  | b32  | 2 | 1 | 4 | m16n8k16.row.col.s32.s8.s8.s32
sm_80  | b32  | 4 | 2 | 4 | m16n8k32.row.col.s32.s8.s8.s32
sm_80  | b64  | 1 | 1 | 2 | m8n8k4.row.col.f64.f64.f64.f64
sm_90  | b64  | 4 | 2 | 4 | m16n8k8.row.col.f64.f64.f64.f64
"""
# fmt: on


class Operation(NamedTuple):
    """One row: an instruction, or a few that belong together."""

    name: str
    arch: str
    """The oldest architecture that has it."""
    result: str
    """The type of its result: b32, b64 or p."""
    sources: tuple[str, ...]
    ptx: str
    """`D` is the result; `A`, `B`, `C` are the sources."""
    common: bool
    """It is paired with every other operation; the others only with these and themselves."""


def chain_kernels(arch: str) -> bytes:
    """A cubin of all chain kernels for an architecture. Raises EncodingError when ptxas is missing or rejects them."""
    with TemporaryDirectory() as folder:
        source, cubin = Path(folder, "chains.ptx"), Path(folder, "chains.cubin")
        source.write_text(chain_ptx(arch), "ascii")
        try:
            done = subprocess.run(["ptxas", f"-arch={arch}", str(source), "-o", str(cubin)], capture_output=True, text=True)
        except FileNotFoundError as error:
            raise EncodingError("ptxas is not on the PATH; the chain kernels need it") from error
        if done.returncode:
            raise EncodingError(f"ptxas rejects the chain kernels for {arch}: {done.stderr[:500]}")
        return cubin.read_bytes()


def ptxas_version() -> str:
    """The version of the ptxas that compiles the chain kernels."""
    said = subprocess.run(["ptxas", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", said)
    return found[1] if found else "unknown"


def chain_ptx(arch: str) -> str:
    """The PTX of all chain kernels for an architecture."""
    known = [o for o in [*_operations(), *_products()] if _age(o.arch) <= _age(arch)]
    pairs = [(first, second) for first in known for second in known if first.common or second.common or first is second]
    kernels = [kernel for first, second in pairs for kernel in _kernels(first, second)]
    return "\n".join([".version 8.8", f".target {arch}", ".address_size 64", ".shared .align 16 .b8 memory[4096];", *kernels])


def _age(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


def _rows(table: str) -> Iterator[list[str]]:
    header, *lines = table.strip().splitlines()
    for line in lines:
        yield [cell.strip() for cell in line.split("|", header.count("|"))]


def _operations() -> Iterator[Operation]:
    for name, arch, result, sources, ptx in _rows(OPERATIONS):
        yield Operation(name, arch, result, tuple(sources.split()), ptx.removeprefix("* "), ptx.startswith("* "))


def _products() -> Iterator[Operation]:
    """The matrix products. Result and sources are the first registers of their fragments; the others have no part in the chain."""
    for arch, kind, *sizes, shape in _rows(MATRICES):
        fragments = [[name, *[f"{kind}_{k}" for k in range(1, int(size))]] for name, size in zip("ABC", sizes, strict=True)]
        fragments.insert(0, ["D", *[f"{kind}_d{k}" for k in range(1, int(sizes[2]))]])
        d, a, b, c = ["{" + ", ".join(fragment) + "}" for fragment in fragments]
        yield Operation(f"mma_{shape.replace('.', '_')}", arch, kind, (kind,) * 3, f"mma.sync.aligned.{shape} {d}, {a}, {b}, {c};", False)


def _kernels(first: Operation, second: Operation) -> Iterator[str]:
    """A kernel for each source of the second operation that can take the first one's result, or half of it."""
    for place, kind in enumerate(second.sources):
        for half, passing in PASS.get((first.result, kind), {}).items():
            yield _kernel(f"{first.name}__{second.name}_{'ABC'[place]}{half}", first, second, place, passing)


PASS = {
    ("b32", "b32"): {"": "mov.b32 v32, r32;"},
    ("b64", "b64"): {"": "mov.b64 v64, r64;"},
    ("p", "p"): {"": "mov.pred vp, rp;"},
    ("b64", "b32"): {"_low": "mov.b64 {v32, b32_9}, r64;", "_high": "mov.b64 {b32_9, v32}, r64;"},
    ("b32", "b64"): {"_low": "mov.b64 v64, {r32, b32_9};", "_high": "mov.b64 v64, {b32_9, r32};"},
}
"""How a result r becomes a source v, by their types: names of the ways, and PTX that costs no instruction."""
VALUE = {"b32": "32", "b64": "64", "p": "p"}
STORE = {
    "b32": "st.global.b32 [out], s32;",
    "b64": "st.global.b64 [out], s64;",
    "p": "selp.b32 s32, 1, 0, sp; st.global.b32 [out], s32;",
}


def _kernel(name: str, first: Operation, second: Operation, place: int, passing: str) -> str:
    """Loads, the two operations, and a store of the result."""
    one = _fill(first, "r", {})
    two = _fill(second, "s", {place: f"v{VALUE[second.sources[place]]}"})
    return f"""
.entry {name}(.param .u64 o, .param .u64 i) {{
.reg .b64 in, out, r64, s64, v64, b64_<9>, b64_d<9>; .reg .b32 r32, s32, v32, t, b32_<10>, b32_d<9>; .reg .pred rp, sp, vp, p_<3>;
ld.param.u64 in, [i]; ld.param.u64 out, [o]; mov.u32 t, %tid.x; mad.wide.u32 in, t, 128, in; mad.wide.u32 out, t, 128, out;
{LOADS}
{{{one}}}
{passing}
{{{two}}}
{STORE[second.result]}
ret; }}"""


LOADS = "\n".join(
    [
        *[f"ld.global.b32 b32_{k}, [in+{4 * k}];" for k in range(10)],
        *[f"ld.global.b64 b64_{k}, [in+{64 + 8 * k}];" for k in range(9)],
        *[f"setp.gt.s32 p_{k}, b32_{9 - k}, 7;" for k in range(3)],
    ]
)
"""Sources of every type; what a kernel does not use is not loaded."""


def _fill(operation: Operation, result: str, given: dict[int, str]) -> str:
    """The PTX of an operation, with loaded values for the sources that are not given."""
    names = {"D": result + VALUE[operation.result]}
    for i, kind in enumerate(operation.sources):
        names["ABC"[i]] = given.get(i, f"{kind}_{6 + i}" if kind != "p" else f"p_{i}")
    return re.sub(r"\b[ABCD]\b", lambda match: names[match[0]], operation.ptx)
