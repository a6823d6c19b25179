"""Who wrote an element of a result last."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.emulator.address import Address, read_address
from sassir.emulator.batch import Batch, access_width
from sassir.emulator.lanes import LANES, Lanes
from sassir.emulator.memory import GLOBAL_WINDOW
from sassir.isa.description import kind_of

_WRITERS = ("ATOM", "ATOMG", "RED", "REDG", "ST", "STG")


class Written(NamedTuple):
    """A store, by one thread."""

    kernel: str
    offset: int
    text: str
    block: int
    thread: int
    """Their numbers in the grid and in the block."""

    def __str__(self) -> str:
        return f"`{self.text}` at {self.offset:#x} of {self.kernel}, block {self.block} thread {self.thread}"


class LastWriter:
    """An observer of the emulator that remembers the last instruction that stored to one element of a buffer."""

    def __init__(self, buffer: str, offset: int, size: int) -> None:
        """`offset` and `size` of the element, in bytes."""
        self.found: Written | None = None
        self._buffer, self._offset, self._size = buffer, offset, size
        self._addresses: dict[tuple[Batch, int], Address] = {}

    def __call__(self, batch: Batch, place: int, lanes: Lanes) -> None:
        """See `sassir.emulator.trace.Observer`."""
        instruction = batch.kernel.code[place]
        if instruction.mnemonic not in _WRITERS:
            return
        some = _executing(batch, instruction, lanes)
        if not some.count:
            return
        element = self._element(batch)
        addresses = self._address(batch, place, instruction).wide(some).astype(np.int64)
        width = access_width(instruction.modifiers)
        here = np.flatnonzero((addresses < element + self._size) & (addresses + width > element))
        if here.size:
            lane = int(some.indices[here[-1]])
            block, thread = int(batch.blocks[lane // LANES, 0]), int(batch.threads.reshape(-1)[lane])
            self.found = Written(batch.kernel.name, INSTRUCTION_BYTES * place, instruction.text, block, thread)

    def _element(self, batch: Batch) -> int:
        allocation = next(a for a in batch.memory.allocations if a.name == self._buffer)
        return GLOBAL_WINDOW + allocation.start + self._offset

    def _address(self, batch: Batch, place: int, instruction: Instruction) -> Address:
        if (batch, place) not in self._addresses:
            operand = next(i for i, operand in enumerate(instruction.operands) if kind_of(operand) == "address")
            self._addresses[batch, place] = read_address(batch.registers, instruction, operand)
        return self._addresses[batch, place]


def _executing(batch: Batch, instruction: Instruction, lanes: Lanes) -> Lanes:
    """The lanes for which the guard holds."""
    if instruction.guard is None:
        return lanes
    value = batch.registers.values[batch.registers.slot(instruction.guard.registers[0])]
    return lanes.where(~value if instruction.guard.negated else value)
