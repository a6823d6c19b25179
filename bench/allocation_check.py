"""Do kernels with newly allocated registers still compute the same? On the GPU, bit for bit.

    python bench/build_kernels.py --arch sm_90 -o DIR && python bench/allocation_check.py DIR

Every bench kernel is made in up to four ways, with control codes assigned anew: `identity` with the original registers as a wish,
`blind` without knowing them, and where it has 24 registers or more with three quarters of them, spilled to `local` and to `shared`
memory. Files and launches as in hardware_check.py; writes bench/results/allocation-check-GPU-DATE.json and exits with 1 if anything
disagrees.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path

from hardware_check import BENCH, Candidate, attempt, run
from xdsl.context import Context

from sassir.allocation.allocate import allocate
from sassir.allocation.launch import launch_bounds
from sassir.allocation.registers import MOST_REGISTERS
from sassir.allocation.room import LocalMemory, Room, SharedMemory
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import summarise
from sassir.dialect.attributes import Origin, OriginAttr
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.errors import SassirError
from sassir.launch import LaunchFile, read_launch_file
from sassir.passes.assign_control import AssignControl
from sassir.passes.virtualise import Virtualise
from sassir.rewrite.kernels import free_kernels
from sassir.translate.cubin import read_module, write_cubin
from sassir.translate.emit import emit_program
from sassir.verify.container import check_container

WAYS = ("identity", "blind", "local", "shared")
SHARE, FEWEST = 0.75, 24
"""Of the original register count, and the smallest count that is reduced."""


def rebuild(original: bytes, way: str, threads: dict[str, int]) -> bytes:
    """The cubin with all its kernels allocated anew; `threads`: the largest block that each kernel is launched with.

    Raises SassirError where that is not possible, and when the container checker finds something in the result.
    """
    module = read_module(original)
    Virtualise().apply(Context(), module)
    counts = {k.section: k.registers or 0 for k in summarise(Cubin.read(original)).kernels}
    bounds = launch_bounds(module)
    for kernel, arch in free_kernels(module):
        assert kernel.section is not None
        section, name = kernel.section.data, kernel.function.data
        if way == "blind":
            for op in kernel.body.walk():
                if isinstance(op, SassInstruction) and op.origin is not None:
                    op.origin = OriginAttr(Origin(op.origin.data.offset))
        less = way in ("local", "shared") and counts[section] >= FEWEST

        def room(kernel: KernelOp, arch: str, name: str = name, used: int = bounds[section].shared) -> Room:
            return SharedMemory(kernel, arch, threads.get(name), used) if way == "shared" else LocalMemory(kernel, arch)

        allocate(kernel, arch, int(SHARE * counts[section]) if less else MOST_REGISTERS, room)
    AssignControl().apply(Context(), module)
    made = write_cubin(emit_program(module))
    if findings := check_container(made):
        raise SassirError(f"the container: {findings[0].message}")
    return made


def largest_blocks(file: LaunchFile) -> dict[str, int]:
    """The most threads that a block of each kernel has in any launch of a file."""
    blocks: dict[str, int] = {}
    for launch in file.launches.values():
        for step in launch.steps:
            blocks[step.kernel] = max(blocks.get(step.kernel, 0), prod(step.block))
    return blocks


def candidates(folder: Path, arch: str) -> Iterator[Candidate]:
    """Every kernel of `folder` in every way that applies to it."""
    for path in sorted(folder.glob(f"*.{arch}.cubin")):
        kernel, original = path.name.removesuffix(f".{arch}.cubin"), path.read_bytes()
        launches = BENCH / "launch" / f"{kernel}.toml"
        if not launches.exists():
            continue
        file = read_launch_file(launches)
        large = any((k.registers or 0) >= FEWEST for k in summarise(Cubin.read(original)).kernels)
        for way in WAYS if large else WAYS[:2]:
            made = attempt(lambda original=original, way=way, file=file: rebuild(original, way, largest_blocks(file)))
            yield Candidate(kernel, way, file, original, made)


if __name__ == "__main__":
    sys.exit(run("allocation-check", candidates, __doc__ or ""))
