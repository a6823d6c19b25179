"""Allocate: a register for every value of a kernel."""

from __future__ import annotations

from sassir.allocation.apply import apply
from sassir.allocation.colouring import Colouring
from sassir.allocation.plan import Plan
from sassir.allocation.ranges import live_ranges
from sassir.allocation.registers import MOST_REGISTERS, RESERVED, AllocationError, allowed_registers
from sassir.allocation.residence import Residence
from sassir.allocation.spill import Spiller
from sassir.allocation.stack import grow_frame
from sassir.allocation.storage import WORD, MemoryStorage, Storage
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.pressure import pressure
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import R


def allocate(kernel: KernelOp, arch: str, max_registers: int = MOST_REGISTERS) -> int:
    """Give every value of `kernel` a register, as few as possible but as many as it had. Returns the number of copies.

    Raises AllocationError for a kernel whose values do not fit.
    """
    most = max_registers - RESERVED
    margin = 1
    while True:
        liveness = Liveness(flow_of(kernel.body))
        if pressure(liveness).peak.get("R", 0) <= most:
            colouring = colour(liveness, arch, most)
            if colouring is not None:
                return apply(kernel, colouring)
        if margin > 16:
            raise AllocationError("no way")
        residence = Residence(liveness.flow, R, most - margin)
        margin += 2

        def local(slots: int) -> Storage:
            pointer, offset = grow_frame(kernel, arch, slots * WORD)
            return MemoryStorage("STL", "LDL", pointer, offset, WORD)

        Spiller(kernel, residence, live_ranges(liveness)).run(local)


def colour(liveness: Liveness, arch: str, most: int) -> Colouring | None:
    plan = Plan(liveness)
    count = min(most, max(pressure(liveness).peak.get("R", 0), plan.original_count))
    while count <= most:
        allowed = allowed_registers(arch, count)
        plan.lay_out(allowed)
        try:
            return Colouring(liveness, plan, allowed)
        except AllocationError as error:
            last = error
        count += 1
    return None
