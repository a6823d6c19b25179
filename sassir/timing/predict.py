"""What a kernel takes: one warp by itself, all resident warps together, the whole launch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sassir.analysis.loops import Loops
from sassir.analysis.occupancy import WARP, occupancy
from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.program import Function
from sassir.errors import SassirError
from sassir.machine import machine
from sassir.machine.hierarchy import HIERARCHIES, Hierarchy
from sassir.timing.graph import call_free
from sassir.timing.model import Model, Part
from sassir.timing.profile import Profile
from sassir.timing.warp import walk
from sassir.translate.flow import Flow


class Shape(NamedTuple):
    """What of a launch decides how many warps run together."""

    blocks: int
    threads: int
    """Of a block."""
    registers: int
    """Of a thread."""
    shared: int
    """Bytes of a block, static and dynamic."""
    barriers: int = 0


class Prediction(NamedTuple):
    """The timing of a kernel."""

    kernel: str
    arch: str
    gpu: str
    warps: float
    """Resident warps of a multiprocessor while it is full."""
    whole: Part
    loops: list[Part]
    blocks: list[Part]
    places: list[tuple[int, str, float, int | None]]
    """Where one warp waits longest: line, reason, cycles in all its executions, the line that is waited for."""
    cycles: float
    """Of the whole launch, on every multiprocessor."""
    microseconds: float
    source: str
    """Where the profile comes from."""
    assumed: tuple[str, ...]
    """See `Profile`."""

    def comparable(self, other: Prediction) -> bool:
        """Whether what neither of them knows is the same for both: loops that run equally often, as they do the same in a turn."""
        return self.assumed == other.assumed


def predict(function: Function, flow: Flow, arch: str, shape: Shape, profile: Profile, hierarchy: Hierarchy | None = None) -> Prediction:
    """The timing of `function` launched as `shape`, with the executions and the traffic of `profile`.

    `hierarchy`: another one than that of the architecture. Raises EncodingError for an architecture without tables, SassirError
    for a block that does not fit.
    """
    description = machine(arch)
    hierarchy = hierarchy or HIERARCHIES[description.arch]
    code = [line.instruction for line in function.lines]
    cfg = call_free(code, flow)
    fit = occupancy(arch, shape.registers, shape.shared, shape.threads, shape.barriers)
    if not fit.blocks:
        limits = " and ".join(fit.limits)
        raise SassirError(f"{function.name}: a block of {shape.threads} threads with {shape.registers} registers does not fit: {limits}")
    share, warps = shape.blocks / hierarchy.multiprocessors, -(-shape.threads // WARP)
    resident = min(float(fit.blocks), max(1.0, share)) * warps
    model = Model(walk(code, flow, cfg, description, hierarchy, profile), profile, hierarchy, resident, warps)
    whole, solution = model.whole()
    loops = [
        model.loop(_name("loop", flow, loop.header), _lines(flow, loop.blocks()), runs)
        for loop in Loops(cfg).loops
        if (runs := profile.executions[flow.blocks[loop.header].start])
    ]
    blocks = [
        model.piece(_name("block", flow, b), block, runs, solution)
        for b, block in enumerate(flow.blocks)
        if block and (runs := profile.executions[block.start])
    ]
    cycles = _launch(model, share, fit.blocks)
    micro = cycles / hierarchy.clock + hierarchy.overheads.launch
    return Prediction(
        function.name, arch, hierarchy.gpu, resident, whole, loops, blocks, model.places(), cycles, micro, profile.source, profile.assumed
    )


def _launch(model: Model, share: float, fitting: int) -> float:
    """Cycles of all blocks of one multiprocessor, `share` on average: full rounds of `fitting` blocks, and what is left over."""
    rounds, rest = divmod(share, fitting)
    cycles = rounds * model.blocks(float(fitting * model.block)).cycles if rounds else 0.0
    return cycles + (model.blocks(max(1.0, rest) * model.block).cycles if rest else 0.0)


def _name(what: str, flow: Flow, block: int) -> str:
    return f"{what} {INSTRUCTION_BYTES * flow.blocks[block].start:#x}"


def _lines(flow: Flow, blocks: Iterable[int]) -> list[int]:
    return [line for b in sorted(blocks) for line in flow.blocks[b]]
