"""Where values are while they have no register: a slot of local memory, or a register of another file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from sassir.allocation.ranges import Ranges
from sassir.dialect.registers import FILES
from sassir.rewrite.build import instruction

WORD = 4
"""Bytes of a register."""


class Slot:
    """The place of one value, or of several that never live at once."""

    def __init__(self, value: SSAValue, ranges: Ranges) -> None:
        self.values = [value]
        self.ranges = ranges
        self.number = 0

    def join(self, other: Slot) -> None:
        """Be the place of the other's values too."""
        self.values += other.values
        self.ranges.add(other.ranges)


def number_slots(slots: Sequence[Slot]) -> int:
    """Give slots that live at once different numbers. Returns how many there are."""
    taken: list[Ranges] = []
    for slot in slots:
        free = (i for i, ranges in enumerate(taken) if not ranges.meets(slot.ranges))
        slot.number = next(free, len(taken))
        if slot.number == len(taken):
            taken.append(Ranges())
        taken[slot.number].add(slot.ranges)
    return len(taken)


class Storage(ABC):
    """How values get into their slots and back."""

    @abstractmethod
    def store(self, value: SSAValue, slot: Slot) -> Operation:
        """The instruction that puts a value into its slot."""

    @abstractmethod
    def load(self, slot: Slot) -> Operation:
        """The instruction that brings it back."""


class MemoryStorage(Storage):
    """Slots in memory, one behind the other from `offset` bytes behind an address in a register."""

    def __init__(self, store: str, load: str, address: SSAValue, offset: int, stride: int) -> None:
        self.address = address
        """Must stay in a register."""
        self._store, self._load = store, load
        self._offset, self._stride = offset, stride

    def store(self, value: SSAValue, slot: Slot) -> Operation:
        return instruction(f"{self._store} {self._place(slot)}, $R", [self.address, value])

    def load(self, slot: Slot) -> Operation:
        return instruction(f"{self._load} =R, {self._place(slot)}", [self.address])

    def _place(self, slot: Slot) -> str:
        offset = self._offset + slot.number * self._stride
        return f"[$R+{offset:#x}]" if offset else "[$R]"


STORE = {"P": "SEL =R, RZ, 0x1, !$P", "UP": "USEL =UR, URZ, 0x1, !$UP", "UR": "MOV =R, $UR"}
LOAD = {"P": "ISETP.NE.U32.AND =P, PT, $R, RZ, PT", "UP": "UISETP.NE.U32.AND =UP, UPT, $UR, URZ, UPT", "UR": "R2UR =UR, $R"}
"""A register of each file into a wider one, and back. Each lane reads back what it has stored itself, so a uniform value stays uniform."""
REFUGE = {"P": "R", "UP": "UR", "UR": "R"}
"""The file of those wider registers."""


class RegisterStorage(Storage):
    """Slots are variables in registers of another file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.type = FILES[REFUGE[file]].free()
        self.definitions: dict[SSAValue, SSAValue] = {}
        """For each store, the variable that it defines."""
        self._variables: dict[Slot, SSAValue] = {}
        self._home = Block()

    def store(self, value: SSAValue, slot: Slot) -> Operation:
        op = instruction(STORE[self._file], [value])
        self.definitions[op.results[0]] = self._variable(slot)
        return op

    def load(self, slot: Slot) -> Operation:
        return instruction(LOAD[self._file], [self._variable(slot)])

    def _variable(self, slot: Slot) -> SSAValue:
        found = self._variables.get(slot)
        if found is None:
            found = self._variables[slot] = self._home.insert_arg(self.type, len(self._home.args))
        return found
