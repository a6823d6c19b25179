"""Does code that grew still run? Every bench kernel with NOPs at 100 random places against its original, bit for bit, on the GPU.

    python bench/build_kernels.py --arch sm_90 -o DIR && python bench/growth.py DIR

Every branch target, return address, jump table, symbol, attribute and line moves then. Files and launches as in hardware_check.py; writes
bench/results/growth-GPU-DATE.json and exits with 1 if anything disagrees.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from hardware_check import BENCH, Candidate, attempt, run
from xdsl.dialects.builtin import ModuleOp

from sassir.asm.control import Control
from sassir.dialect.attributes import ControlAttr
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.errors import SassirError
from sassir.launch import read_launch_file
from sassir.translate.cubin import read_module, write_cubin
from sassir.translate.emit import emit_program
from sassir.translate.shape import shape
from sassir.verify.container import check_container

PLACES = 100
SEED = 1
_NOP = shape("NOP", (), ())
_CONTROL = ControlAttr.of(Control(stall=1))


def insert_nops(module: ModuleOp, count: int, rng: Random) -> int:
    """Put a NOP before `count` instructions of each kernel that may move, some of them branches and branch targets.

    Returns how many NOPs there are.
    """
    inserted = 0
    for kernel in module.body.ops:
        if not isinstance(kernel, KernelOp) or kernel.fixed is not None:
            continue
        instructions = [(block, op) for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
        for block, op in rng.choices(instructions, k=count):
            block.insert_op_before(_NOP.op.create(properties={**_NOP.properties, "control": _CONTROL}), op)
            inserted += 1
    return inserted


def grow(original: bytes, count: int = PLACES, seed: int = SEED) -> bytes:
    """The cubin with `count` NOPs in each kernel.

    Raises SassirError when it holds no code that may move, and when the container checker finds something in the result.
    """
    module = read_module(original)
    if not insert_nops(module, count, Random(seed)):
        raise SassirError("no kernel of the file may move")
    grown = write_cubin(emit_program(module))
    for finding in check_container(grown):
        if finding.error:
            raise SassirError(f"{finding.kernel}: {finding.message} [{finding.rule}]")
    return grown


def candidates(folder: Path, arch: str) -> Iterator[Candidate]:
    """Every kernel of `folder`, grown."""
    for path in sorted(folder.glob(f"*.{arch}.cubin")):
        kernel, original = path.name.removesuffix(f".{arch}.cubin"), path.read_bytes()
        file = BENCH / "launch" / f"{kernel}.toml"
        if file.exists():
            yield Candidate(kernel, f"{PLACES} NOPs", read_launch_file(file), original, attempt(lambda original=original: grow(original)))


if __name__ == "__main__":
    sys.exit(run("growth", candidates, __doc__ or ""))
