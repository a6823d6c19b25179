"""Addresses as memory instructions write them: `[R4.X4+0x10]`, `desc[UR6][R2.64+UR4+-0x8]`."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sassir import isa
from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS
from sassir.emulator.constants import MEMORY_DESCRIPTOR
from sassir.emulator.lanes import Array, LaneError, Lanes
from sassir.emulator.memory import GLOBAL_WINDOW
from sassir.emulator.registers import Registers
from sassir.errors import SemanticsError

_INSIDE = re.compile(r"(?:.*\])?(?:g?desc)?\[([^][]*)\][^][]*")
_REGISTER = re.compile(r"\$((?:\.(?:64|U32|X4|X8|X16|reuse))*)")
_NUMBER = re.compile(r"-?0x[0-9a-f]+|-?\d+")

HIGH = np.uint32(GLOBAL_WINDOW >> 32)
_DESCRIPTOR = np.uint32(MEMORY_DESCRIPTOR & 0xFFFFFFFF), np.uint32(MEMORY_DESCRIPTOR >> 32)


class Term(NamedTuple):
    """One register of an address."""

    low: int
    high: int | None
    """Slots; a 64-bit register pair has both."""
    scale: np.uint32


class Address(NamedTuple):
    """The sum of some registers and a number."""

    registers: Registers
    terms: tuple[Term, ...]
    offset: int
    descriptor: tuple[int, int] | None = None
    """Slots of the memory descriptor, low and high word."""

    def check(self, lanes: Lanes) -> None:
        """Raise LaneError if one of the lanes has never written a register of the address, or has another descriptor."""
        defined = self.registers.defined
        if self.descriptor is not None:
            self._check_descriptor(self.descriptor, lanes.warps)
        for low, high, _ in self.terms:
            if defined[low] is not True:
                self.registers.check(low, lanes)
            if high is not None and defined[high] is not True:
                self.registers.check(high, lanes)

    def _check_descriptor(self, slots: tuple[int, int], warps: Lanes) -> None:
        for slot, expected in zip(slots, _DESCRIPTOR, strict=True):
            self.registers.check(slot, warps)
            wrong = self.registers.values[slot] != expected
            if wrong.any() and (some := warps.where(wrong)).count:
                name = self.registers.names[slot]
                raise LaneError(f"{name} does not hold the memory descriptor, which is in constant bank 0", int(some.numbers[0]))

    def low(self, lanes: Lanes) -> NDArray[np.uint32]:
        """The low word, by active lane."""
        self.check(lanes)
        values = self.registers.values
        total: Array = np.full((1, 1), self.offset & 0xFFFFFFFF, np.uint32)
        for low, _, scale in self.terms:
            total = total + (values[low] if scale == 1 else values[low] * scale)
        return lanes.of(total)

    def wide(self, lanes: Lanes) -> NDArray[np.uint64]:
        """All 64 bits, by active lane."""
        self.check(lanes)
        values = self.registers.values
        total = np.full(len(lanes.indices), self.offset & 0xFFFFFFFFFFFFFFFF, np.uint64)
        for low, high, scale in self.terms:
            total += lanes.of(values[low]).astype(np.uint64) * np.uint64(scale)
            if high is not None:
                total += lanes.of(values[high]).astype(np.uint64) << np.uint64(32)
        return total

    def global_low(self, lanes: Lanes) -> NDArray[np.uint32]:
        """The low word of a global address, by active lane. Raises LaneError for an address outside of the window of global memory."""
        if len(self.terms) == 1 and self.terms[0].high is not None:
            # A carry out of the low word leads to where nothing is allocated.
            addresses, high = self.low(lanes), lanes.of(self.registers.values[self.terms[0].high])
        else:
            wide = self.wide(lanes)
            addresses, high = wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)
        outside = high != HIGH
        if outside.any():
            first = int(np.argmax(outside))
            address = (int(high[first]) << 32) + int(addresses[first])
            raise LaneError(f"access of {address:#x}, which is not in global memory", int(lanes.indices[first]))
        return addresses


class Written(NamedTuple):
    """One register of an address, by name."""

    low: str
    high: str | None
    """The register above it, where the pair holds 64 bits."""
    scale: int


def parse_address(instruction: Instruction, operand: int) -> tuple[list[Written], int]:
    """The registers and the number whose sum an address operand names. Raises SemanticsError for a form that is not known."""
    found = instruction.operands[operand]
    inside = _INSIDE.fullmatch(found.template)
    roles = isa.roles(instruction)
    if inside is None or roles is None:
        raise SemanticsError(f"`{instruction.text}`: the address {found.text} has an unknown form")
    widths = {access.hole: access.width for access in roles.reads if access.operand == operand}
    hole = found.template[: inside.start(1)].count("$")
    written: list[Written] = []
    offset = 0
    for piece in inside[1].split("+"):
        if _NUMBER.fullmatch(piece):
            offset += int(piece, 0)
        elif register := _REGISTER.fullmatch(piece):
            scales = [int(s[1:]) for s in register[1].split(".") if s.startswith("X")]
            name, wide = found.registers[hole], widths.get(hole, 1) == 2
            if name not in ZERO_REGISTERS:
                written.append(Written(name, following(name, 1) if wide else None, scales[0] if scales else 1))
            hole += 1
        else:
            raise SemanticsError(f"`{instruction.text}`: `{piece}` in the address {found.text} has an unknown form")
    return written, offset


def read_address(registers: Registers, instruction: Instruction, operand: int) -> Address:
    """The address that an operand names, for the emulator's registers. Raises as `parse_address`."""
    written, offset = parse_address(instruction, operand)
    slots = [(registers.slot(w.low), None if w.high is None else registers.slot(w.high), np.uint32(w.scale)) for w in written]
    descriptor = descriptor_of(instruction, operand)
    pair = None if descriptor is None else (registers.slot(descriptor), registers.slot(following(descriptor, 1)))
    return Address(registers, tuple([Term(*slot) for slot in slots]), offset, pair)


def descriptor_of(instruction: Instruction, operand: int) -> str | None:
    """The first of the two registers with the memory descriptor that an address operand names; None if it names none."""
    found = instruction.operands[operand]
    return found.registers[0] if found.template.startswith("desc[$]") else None


def following(name: str, distance: int) -> str:
    """The register `distance` after the one of this name; a zero register is followed by itself."""
    file = name.rstrip("0123456789")
    return name if name.endswith(("Z", "T")) else f"{file}{int(name[len(file) :]) + distance}"
