"""Allocate: a register for every value of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from xdsl.ir import Operation

from sassir.allocation.apply import apply
from sassir.allocation.colouring import Colouring
from sassir.allocation.plan import Plan
from sassir.allocation.ranges import live_ranges
from sassir.allocation.registers import MOST_REGISTERS, AllocationError, NoRoomError, file_bits, fixed, uniform_registers
from sassir.allocation.residence import Residence
from sassir.allocation.spill import Spiller
from sassir.allocation.stack import grow_frame
from sassir.allocation.storage import REFUGE, WORD, MemoryStorage, RegisterStorage, Storage
from sassir.analysis.divergence import Divergence
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.pressure import pressure
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import UP, UR, P, R
from sassir.dialect.syntax import written
from sassir.translate.resources import RESERVED_REGISTERS

MakeRoom = Callable[[KernelOp, str, int], Storage]
"""Makes room in memory for a number of registers of a kernel, on an architecture."""
_GRANULE = 8
"""Registers are handed out to a warp in units of 256, 8 for each thread (see `sassir.analysis.occupancy`)."""
_SPARE = 2
_MOST_SPARE = 16
"""How many registers more are kept free, each time and at most, when groups do not fit although there are enough registers."""


class Allocation(NamedTuple):
    """What allocation did to a kernel."""

    registers: int
    """The register count of the kernel, the reserved ones included."""
    copies: int
    """Instructions added that copy one register to another."""
    loads: int
    """Instructions added that bring values back or make constants again."""


def local_memory(kernel: KernelOp, arch: str, registers: int) -> Storage:
    """Room in the stack frame."""
    pointer, offset = grow_frame(kernel, arch, registers * WORD)
    return MemoryStorage("STL", "LDL", pointer, offset, WORD)


def allocate(kernel: KernelOp, arch: str, most: int = MOST_REGISTERS, make_room: MakeRoom = local_memory) -> Allocation:
    """Give every value of `kernel` a register; with no more than `most` of them as the kernel's count.

    It takes as many registers as the code had before, more where more values live at once, and spills only where those are more
    than allowed. Raises AllocationError, naming the operation or the place, where the values do not fit.
    """
    available = {"UP": UP.COUNT, "P": P.COUNT, "UR": uniform_registers(arch), "R": most - RESERVED_REGISTERS}
    _check_fixed(kernel, available["R"])
    spare = dict.fromkeys(available, 0)
    before = set(kernel.body.walk())
    loads = 0
    while True:
        liveness = Liveness(flow_of(kernel.body))
        peak = pressure(liveness).peak
        full = next((file for file, count in available.items() if peak.get(file, 0) > count), None)
        if full is None:
            found = _colour(liveness, available, peak.get("R", 0))
            if isinstance(found, Colouring):
                copies = apply(kernel, found)
                _check_uniform(kernel, before)
                return Allocation(found.count + RESERVED_REGISTERS, copies, loads)
            full = found.file
            if spare[full] >= _MOST_SPARE:
                raise found
        loads += _spill(kernel, arch, liveness, full, available[full] - spare[full], make_room)
        spare[full] += _SPARE


def _colour(liveness: Liveness, available: Mapping[str, int], needed: int) -> Colouring | NoRoomError:
    """A colouring with as few general registers as it takes, or why there is none."""
    plan = Plan(liveness)
    count = plan.original_count
    if needed > count:
        count = -(-(needed + RESERVED_REGISTERS) // _GRANULE) * _GRANULE - RESERVED_REGISTERS
    while True:
        counts = {**available, "R": min(count, available["R"])}
        allowed = sum(file_bits(file, n) for file, n in counts.items())
        plan.lay_out(allowed)
        try:
            return Colouring(liveness, plan, allowed)
        except NoRoomError as error:
            if error.file != "R" or count >= available["R"]:
                return error
        count += 1


def _spill(kernel: KernelOp, arch: str, liveness: Liveness, file: str, limit: int, make_room: MakeRoom) -> int:
    """Let no more than `limit` values of a file be in registers at once. Returns the number of loads."""
    spiller = Spiller(kernel, Residence(liveness.flow, file, limit), live_ranges(liveness))
    if file in REFUGE:
        return spiller.run(lambda slots: RegisterStorage(file))
    return spiller.run(lambda slots: make_room(kernel, arch, slots))


def _check_fixed(kernel: KernelOp, count: int) -> None:
    """No value that must keep its register may be in one beyond the first `count`."""
    for block in kernel.body.blocks:
        for value in (*block.args, *[result for op in block.ops for result in op.results]):
            if count <= (fixed(value) or 0) < R.COUNT:
                raise AllocationError(f"%{value.name_hint} must stay in R{fixed(value)}, but only {count} registers may be used")


def _check_uniform(kernel: KernelOp, before: set[Operation]) -> None:
    """A uniform register is one for the whole warp: where only some of its threads run, nothing new may be written to one."""
    added: list[tuple[int, Operation]] = []
    for b, block in enumerate(kernel.body.blocks):
        new = [op for op in block.ops if op not in before]
        added += [(b, op) for op in new if any(isinstance(r.type, UR | UP) for r in op.results)]
    split = Divergence(kernel.body).split if added else frozenset[int]()
    for b, op in added:
        if b in split:
            raise AllocationError(f"`{written(op)}` would have to be added where only some threads of the warp may run")
