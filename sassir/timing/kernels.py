"""The timing of the kernels of a file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sassir.analysis.loops import Loops
from sassir.analysis.occupancy import occupancy
from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.program import Function
from sassir.cubin.cubin import Cubin
from sassir.cubin.host import select_cubin
from sassir.cubin.summary import KernelSummary, summarise
from sassir.dialect.facts import KernelFacts
from sassir.errors import LaunchError
from sassir.launch import Facts, Launch
from sassir.machine import machine
from sassir.machine.hierarchy import HIERARCHIES, Hierarchy
from sassir.rewrite.kernels import arch_of
from sassir.timing.graph import call_free
from sassir.timing.known import Known, known_of
from sassir.timing.predict import Prediction, Shape, predict
from sassir.timing.profile import TRIPS, Profile, static_profile
from sassir.translate.branches import JumpTables
from sassir.translate.cubin import jump_tables, read_module, read_program
from sassir.translate.facts import NOTHING_KNOWN, KnownFacts, attach_facts, known_facts
from sassir.translate.flow import Flow, find_flow

THREADS = 256
"""Threads of a block where nobody says."""
REGISTERS = 32
"""Of a thread, where the file does not say."""
_NO_TABLES: JumpTables = {}


class Kernel(NamedTuple):
    """One kernel of a file."""

    arch: str
    function: Function
    flow: Flow
    summary: KernelSummary


def read_kernels(data: bytes, where: str = "<bytes>", arch: str | None = None) -> list[Kernel]:
    """The kernels of the one cubin in `data`, or of the one for `arch`. Raises SassirError as `read_program`."""
    cubin: Cubin = select_cubin(data, where, arch)
    program = read_program(data, where, arch)
    tables: Mapping[int, JumpTables] = jump_tables(cubin)
    summaries = {kernel.section: kernel for kernel in summarise(cubin).kernels}
    return [
        Kernel(cubin.arch, f, find_flow(f, tables.get(f.section, _NO_TABLES)), summaries[f.section])
        for f in program.functions
        if f.section is not None
    ]


def predict_static(
    data: bytes,
    where: str = "<bytes>",
    launch: Launch | None = None,
    facts: Facts | None = None,
    trips: int = TRIPS,
    arch: str | None = None,
    given: KnownFacts = NOTHING_KNOWN,
) -> list[Prediction]:
    """The timing of each kernel, or of each step of `launch`, from the code and the facts of the launch alone; see `static_profile`.

    `given`: other facts of kernels. Without a launch, and without such facts of block and grid: blocks of as many threads as the
    kernel is made for, else 256, one for each place on the GPU.
    Raises SassirError for a file that cannot be read, LaunchError for a kernel that is not in it.
    """
    kernels = {kernel.function.name: kernel for kernel in read_kernels(data, where, arch)}
    module = read_module(data, where, arch)
    attach_facts(module, known_facts(arch_of(module), launch, facts, given))
    shapes = shapes_of(kernels, launch, where, given)
    sizes = dict.fromkeys(kernels, 0) | {name: first_level(kernels[name], shape) for name, shape in shapes}
    known = known_of(module, sizes)
    return [predict_kernel(kernels[name], shape, _static(kernels[name], known[name], trips)) for name, shape in shapes]


def predicted_gains(
    original: bytes,
    candidate: bytes,
    where: str = "<bytes>",
    launch: Launch | None = None,
    facts: Facts | None = None,
    given: KnownFacts = NOTHING_KNOWN,
) -> dict[str, float]:
    """By kernel, how many times as fast the candidate is, by `predict_static`: in its first launch of `launch`, or on a full GPU.

    A kernel has no answer if nobody says how often a loop runs, unless the candidate has the same loop. Raises as `predict_static`.
    """
    pairs = [predict_static(data, where, launch, facts, given=given) for data in (original, candidate)]
    before, after = ({p.kernel: p for p in reversed(found)} for found in pairs)
    both = [(before[kernel], after[kernel]) for kernel in before if kernel in after]
    return {old.kernel: old.microseconds / new.microseconds for old, new in both if old.comparable(new)}


def predict_sampled(data: bytes, launch: Launch, where: str = "<bytes>") -> list[Prediction]:
    """The timing of each step of `launch`, whose blocks are sampled in the emulator; see `sample`. Raises SassirError as that."""
    from sassir.timing.sample import sample

    kernels = {kernel.function.name: kernel for kernel in read_kernels(data, where)}
    shapes = shapes_of(kernels, launch, where)
    size = min([first_level(kernels[name], shape) for name, shape in shapes])
    sampled = sample(data, launch, size)
    return [predict_kernel(kernels[name], shape, found.profile) for (name, shape), found in zip(shapes, sampled, strict=True)]


def predict_kernel(kernel: Kernel, shape: Shape, profile: Profile, hierarchy: Hierarchy | None = None) -> Prediction:
    """The timing of one kernel; see `predict`."""
    hierarchy = hierarchy or hierarchy_of(kernel.arch)
    traffic = dict(profile.traffic)
    share = _local_share(kernel, shape, hierarchy)
    for line in traffic:
        if kernel.function.lines[line].instruction.mnemonic in ("LDL", "STL"):
            traffic[line] = traffic[line]._replace(memory=share)
    return predict(kernel.function, kernel.flow, kernel.arch, shape, profile._replace(traffic=traffic), hierarchy)


def _local_share(kernel: Kernel, shape: Shape, hierarchy: Hierarchy) -> float:
    """The share of local memory that goes on from the second level to memory: what does not fit into half of it, all threads together.

    The other half is for what the kernel is there for.
    """
    fitting = occupancy(kernel.arch, shape.registers, shape.shared, shape.threads, shape.barriers).blocks
    blocks = min(shape.blocks, fitting * hierarchy.multiprocessors)
    room = hierarchy.second_size / 2
    return min(1.0, max(0.0, (kernel.summary.stack or 0) * shape.threads * blocks / room - 1))


def first_level(kernel: Kernel, shape: Shape) -> int:
    """Bytes of the first-level cache that each resident block can count on: its part of what shared memory leaves."""
    hierarchy = hierarchy_of(kernel.arch)
    found = occupancy(kernel.arch, shape.registers, shape.shared, shape.threads, shape.barriers)
    return int(hierarchy.overheads.first_level * ((hierarchy.first_size - found.shared) // max(1, found.blocks)))


def hierarchy_of(arch: str) -> Hierarchy:
    """The memory hierarchy of `arch`, or of the architecture it derives from."""
    return HIERARCHIES[machine(arch).arch]


def shapes_of(
    kernels: Mapping[str, Kernel], launch: Launch | None, where: str, given: KnownFacts = NOTHING_KNOWN
) -> Sequence[tuple[str, Shape]]:
    """What is launched, in order: kernel and shape; without a launch every kernel, as `given` or with as many blocks as fit.

    Raises LaunchError.
    """
    if launch is None:
        return [(name, _full(kernel, given.get(name, KernelFacts()))) for name, kernel in kernels.items()]
    missing = [step.kernel for step in launch.steps if step.kernel not in kernels]
    if missing:
        raise LaunchError(f"{where}: no kernel {missing[0]!r}, which the launch starts; there are {', '.join(kernels)}")
    return [(s.kernel, _shape(kernels[s.kernel].summary, math.prod(s.grid), math.prod(s.block), s.shared)) for s in launch.steps]


def _shape(summary: KernelSummary, blocks: int, threads: int, shared: int = 0) -> Shape:
    return Shape(blocks, threads, summary.registers or REGISTERS, summary.asked_shared + shared, summary.barriers)


def _full(kernel: Kernel, facts: KernelFacts) -> Shape:
    """As many blocks as fit on the GPU at a time, where `facts` do not tell."""
    summary, shared = kernel.summary, facts.shared or 0
    threads = math.prod(facts.block or summary.required_threads or summary.max_threads or (THREADS,))
    fitting = occupancy(kernel.arch, summary.registers or REGISTERS, summary.asked_shared + shared, threads, summary.barriers).blocks
    full = max(1, fitting) * hierarchy_of(kernel.arch).multiprocessors
    return _shape(summary, full if facts.grid is None else math.prod(facts.grid), threads, shared)


def _static(kernel: Kernel, known: Known, assumed: int) -> Profile:
    flow, trips = kernel.flow, known.trips
    code = [line.instruction for line in kernel.function.lines]
    cfg = call_free(code, flow)
    block_at = {INSTRUCTION_BYTES * block.start: b for b, block in enumerate(flow.blocks) if block}
    went = {(block_at[a], block_at[b]): threads for (a, b), threads in known.went.items() if a in block_at and b in block_at}
    runs = None if known.runs is None else {block_at[first]: often for first, often in known.runs.items() if first in block_at}
    by_header = {b: trips[offset] for b, block in enumerate(flow.blocks) if (offset := INSTRUCTION_BYTES * block.start) in trips and block}
    traffic = {offset // INSTRUCTION_BYTES: moved for offset, moved in known.traffic.items()}
    return static_profile(code, flow, cfg, Loops(cfg), by_header, traffic, assumed, went, runs)
