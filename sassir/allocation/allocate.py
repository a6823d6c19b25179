"""Allocate: a register for every value of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from sassir.allocation.apply import apply, copies_weighed, disagreements
from sassir.allocation.colouring import Colouring
from sassir.allocation.edges import add_landings
from sassir.allocation.original import original_registers
from sassir.allocation.plan import Plan
from sassir.allocation.ranges import live_ranges
from sassir.allocation.registers import MOST_REGISTERS, AllocationError, NoRoomError, file_bits, fixed, uniform_registers
from sassir.allocation.residence import Residence
from sassir.allocation.room import LocalMemory, Room
from sassir.allocation.saved import free_saved_predicates
from sassir.allocation.spill import Spiller
from sassir.allocation.stack import POINTER_NUMBER, reserve
from sassir.allocation.storage import REFUGE, RegisterStorage, Storage
from sassir.analysis.divergence import Divergence
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.pressure import pressure
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import UP, UR, P, R
from sassir.dialect.syntax import written
from sassir.translate.resources import RESERVED_REGISTERS

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


def allocate(
    kernel: KernelOp, arch: str, most: int = MOST_REGISTERS, make_room: Callable[[KernelOp, str], Room] = LocalMemory
) -> Allocation:
    """Give every value of `kernel` a register; with no more than `most` of them as the kernel's count.

    It takes as many registers as the code had before, more where more values live at once, and spills to `make_room` only where those
    are more than allowed. Raises AllocationError, naming the operation or the place, where the values do not fit.
    """
    return _Allocator(kernel, arch, most - RESERVED_REGISTERS, make_room).run()


class _Allocator:
    def __init__(self, kernel: KernelOp, arch: str, most: int, make_room: Callable[[KernelOp, str], Room]) -> None:
        self.kernel = kernel
        self.arch = arch
        self.available = {"UP": UP.COUNT, "P": P.COUNT, "UR": uniform_registers(arch), "R": most}
        """Registers by file, in the order in which files are spilled."""
        self.make_room = make_room
        self.room: Room | None = None
        self.addresses: set[SSAValue] = set()
        """What spilled values are addressed from."""

    def run(self) -> Allocation:
        """Spill until a colouring fits."""
        reserve(self.kernel, self.arch)
        self._check_fixed()
        before = set(self.kernel.body.walk())
        spare = dict.fromkeys(self.available, 0)
        loads = 0
        original: Mapping[SSAValue, int] | None = None
        while True:
            liveness = Liveness(flow_of(self.kernel.body))
            peak = pressure(liveness).peak
            full = next((file for file, count in self.available.items() if peak.get(file, 0) > count), None)
            if full is None:
                if original is None:
                    original = original_registers(self.kernel.body)
                found = self._colour(liveness, peak.get("R", 0), original)
                if isinstance(found, Colouring):
                    if add_landings(self.kernel, disagreements(found)):
                        continue
                    copies = apply(self.kernel, found)
                    self._check_uniform(before)
                    return Allocation(found.count + RESERVED_REGISTERS, copies, loads)
                full = found.file
                if spare[full] >= _MOST_SPARE:
                    raise found
            try:
                residence = Residence(liveness.flow, full, self.available[full], spare[full], self.addresses)
            except AllocationError:
                if full == "P" and free_saved_predicates(self.kernel.body):
                    continue
                raise
            loads += Spiller(self.kernel, residence, live_ranges(liveness)).run(lambda slots, file=full: self._storage(file, slots))
            spare[full] += _SPARE
            original = None

    def _colour(self, liveness: Liveness, needed: int, original: Mapping[SSAValue, int]) -> Colouring | NoRoomError:
        """A colouring with as few general registers as it takes, or why there is none."""
        plan = Plan(liveness, original)
        count = plan.original_count
        if needed > count:
            count = _whole(needed)
        found = self._colour_with(liveness, plan, count)
        while isinstance(found, NoRoomError):
            if found.file != "R" or count >= self.available["R"]:
                return found
            count += 1
            found = self._colour_with(liveness, plan, count)
        more = min(_whole(count), self.available["R"])
        if more > count and (copies := copies_weighed(found)):
            other = self._colour_with(liveness, plan, more)
            if isinstance(other, Colouring) and copies_weighed(other) < copies:
                return other
        return found

    def _colour_with(self, liveness: Liveness, plan: Plan, count: int) -> Colouring | NoRoomError:
        """A colouring with at most so many general registers, or why there is none."""
        counts = {**self.available, "R": min(count, self.available["R"])}
        allowed = sum(file_bits(file, n) for file, n in counts.items()) & ~(1 << POINTER_NUMBER)
        plan.lay_out(allowed)
        try:
            return Colouring(liveness, plan, allowed)
        except NoRoomError as error:
            return error

    def _storage(self, file: str, slots: int) -> Storage:
        if file in REFUGE:
            return RegisterStorage(file)
        if self.room is None:
            self.room = self.make_room(self.kernel, self.arch)
        storage = self.room.make(slots)
        self.addresses.add(storage.address)
        return storage

    def _check_fixed(self) -> None:
        """No value that must keep its register may be in one that must not be used."""
        count = self.available["R"]
        for block in self.kernel.body.blocks:
            for value in (*block.args, *[result for op in block.ops for result in op.results]):
                if count <= (fixed(value) or 0) < R.COUNT:
                    raise AllocationError(f"%{value.name_hint} must stay in R{fixed(value)}, but only {count} registers may be used")

    def _check_uniform(self, before: set[Operation]) -> None:
        """A uniform register is one for the whole warp: where only some of its threads run, nothing new may be written to one."""
        added: list[tuple[int, Operation]] = []
        for b, block in enumerate(self.kernel.body.blocks):
            new = [op for op in block.ops if op not in before]
            added += [(b, op) for op in new if any(isinstance(r.type, UR | UP) for r in op.results)]
        split = Divergence(self.kernel.body).split if added else frozenset[int]()
        for b, op in added:
            if b in split:
                raise AllocationError(f"`{written(op)}` would have to be added where only some threads of the warp may run")


def _whole(count: int) -> int:
    """As many registers as a warp is given that asks for `count`."""
    return -(-(count + RESERVED_REGISTERS) // _GRANULE) * _GRANULE - RESERVED_REGISTERS
