"""Loads, stores, constants and special registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS
from sassir.emulator.address import following, read_address
from sassir.emulator.batch import Batch, Step, access_width
from sassir.emulator.lanes import Array, Indices, LaneError, Lanes
from sassir.emulator.memory import GLOBAL_WINDOW, LOCAL_WINDOW, SHARED_WINDOW, Access, Space, load, store
from sassir.errors import SemanticsError
from sassir.isa.description import kind_of

Reach = Callable[[Lanes, int, Access], list[tuple[Space, Indices, Lanes]]]
"""Checks an access of some lanes and some bytes, and gives its places: by memory space, with the lanes that go there."""

_WIDTHS = frozenset({"64", "128", "S16", "S8", "U16", "U8"})
_CACHING = frozenset({"CONSTANT", "EF", "EL", "EN", "EU", "LTC64B", "LTC128B", "LTC256B", "LU", "NA", "U"})
_ORDER = frozenset({"CTA", "E", "GPU", "MMIO", "PRIVATE", "SM", "STRONG", "SYS", "VC", "WEAK"})
_PLAIN = _WIDTHS | _CACHING | _ORDER
"""Caching and ordering make no difference here; `E` says that addresses have 64 bits, which the operands say too."""


def load_step(batch: Batch, instruction: Instruction) -> Step:
    """LDG, LDS, LDL, LD. Raises SemanticsError for a form that is not known."""
    expect(instruction, ("vector", "address"), _PLAIN)
    reach, width = reach_of(batch, instruction, 1), access_width(instruction.modifiers)
    target = slots(batch, instruction.operands[0].registers[0], width)
    signed = not {"S8", "S16"}.isdisjoint(instruction.modifiers)
    write = batch.registers.write

    def run(lanes: Lanes) -> None:
        for space, places, some in reach(lanes, width, "read"):
            for slot, word in zip(target, load(space, places, width, signed), strict=False):
                write(slot, some.expand(word), some)

    return run


def store_step(batch: Batch, instruction: Instruction) -> Step:
    """STG, STS, STL, ST. Raises SemanticsError for a form that is not known."""
    expect(instruction, ("address", "vector"), _PLAIN)
    reach, width = reach_of(batch, instruction, 0), access_width(instruction.modifiers)
    source = sources(batch, instruction.operands[1].registers[0], width)

    def run(lanes: Lanes) -> None:
        for space, places, some in reach(lanes, width, "write"):
            store(space, places, words_of(batch, source, some), width)

    return run


def reach_of(batch: Batch, instruction: Instruction, operand: int) -> Reach:
    """How the instruction gets from its address operand to places in memory. Raises SemanticsError for an unknown form."""
    address = read_address(batch.registers, instruction, operand)
    space = instruction.mnemonic.removeprefix("LD").removeprefix("ST").removeprefix("ATOM").removeprefix("RED")

    def reach_global(lanes: Lanes, width: int, access: Access) -> list[tuple[Space, Indices, Lanes]]:
        return [(batch.memory, batch.memory.locate(address.global_low(lanes), width, lanes.indices, access), lanes)]

    def reach_shared(lanes: Lanes, width: int, access: Access) -> list[tuple[Space, Indices, Lanes]]:
        return [(batch.shared, batch.shared.locate(address.low(lanes), width, lanes.indices, access), lanes)]

    def reach_local(lanes: Lanes, width: int, access: Access) -> list[tuple[Space, Indices, Lanes]]:
        return [(batch.local, batch.local.locate(address.low(lanes), width, lanes.indices, access), lanes)]

    def reach_generic(lanes: Lanes, width: int, access: Access) -> list[tuple[Space, Indices, Lanes]]:
        return _reach_generic(batch, address.wide(lanes), lanes, width, access)

    # RED, like REDG, is always global.
    global_ = "G" if instruction.mnemonic != "RED" else ""
    return {global_: reach_global, "S": reach_shared, "L": reach_local}.get(space, reach_generic)


def _reach_generic(
    batch: Batch, addresses: NDArray[np.uint64], lanes: Lanes, width: int, access: Access
) -> list[tuple[Space, Indices, Lanes]]:
    windows: tuple[tuple[int, Space], ...] = ((GLOBAL_WINDOW, batch.memory), (SHARED_WINDOW, batch.shared), (LOCAL_WINDOW, batch.local))
    found: list[tuple[Space, Indices, Lanes]] = []
    high = (addresses >> np.uint64(32)).astype(np.int64)
    outside = np.ones(high.shape, np.bool_)
    for window, space in windows:
        here = high == window >> 32
        outside &= ~here
        if here.any():
            flags = np.zeros(lanes.flags.size, np.bool_)
            flags[lanes.indices[here]] = True
            some = lanes if here.all() else Lanes(flags.reshape(lanes.flags.shape))
            found.append((space, space.locate(addresses[here].astype(np.uint32), width, some.indices, access), some))
    if outside.any():
        first = int(np.argmax(outside))
        raise LaneError(f"{access} of {width} bytes at {int(addresses[first]):#x}, which is in no memory", int(lanes.indices[first]))
    return found


def space_step(batch: Batch, instruction: Instruction) -> Step:
    """QSPC: whether a generic address lies in the global, shared or local window. Raises SemanticsError for another space."""
    windows = {"G": GLOBAL_WINDOW, "S": SHARED_WINDOW, "L": LOCAL_WINDOW}
    asked = [windows[m] for m in instruction.modifiers if m in windows]
    expect(instruction, ("predicate", "vector", "address"), frozenset({"E", *windows}))
    if len(asked) != 1 or instruction.operands[1].text != "RZ":
        raise SemanticsError(f"`{instruction.text}`: this form of QSPC is not emulated")
    address = read_address(batch.registers, instruction, 2)
    written = batch.registers.slot(instruction.operands[0].registers[0])

    def run(lanes: Lanes) -> None:
        inside = address.wide(lanes) >> np.uint64(32) == np.uint64(asked[0] >> 32)
        batch.registers.write(written, lanes.expand(inside), lanes)

    return run


def constant_step(batch: Batch, instruction: Instruction) -> Step:
    """LDC, and ULDC and LDCU for the warp. Raises SemanticsError for a form that is not known."""
    target, source = instruction.operands[0], instruction.operands[-1]
    if source.constant is None or len(instruction.operands) != 2 or not {*instruction.modifiers} <= _WIDTHS:
        raise SemanticsError(f"`{instruction.text}`: this form of a constant load is not known")
    number, offset = source.constant
    width = access_width(instruction.modifiers)
    signed = not {"S8", "S16"}.isdisjoint(instruction.modifiers)
    uniform = instruction.mnemonic != "LDC"
    registers = batch.registers
    written = slots(batch, target.registers[0], width)
    index = registers.slot(source.registers[0]) if source.registers else registers.slot("RZ")
    if number not in batch.banks:
        raise SemanticsError(f"`{instruction.text}`: the cubin has no constant bank {number:#x}")
    bank = batch.banks[number]
    fixed = [batch.constant(number, offset + 4 * i) for i in range(max(1, width // 4))]

    def run_fixed(lanes: Lanes) -> None:
        some = lanes.warps if uniform else lanes
        for slot, word in zip(written, fixed, strict=False):
            registers.check(word, some)
            registers.write(slot, registers.values[word], some)

    def run(lanes: Lanes) -> None:
        some = lanes.warps if uniform else lanes
        registers.check(index, some)
        places = some.of(registers.values[index] + np.uint32(offset & 0xFFFFFFFF)).astype(np.intp)
        for slot, word in zip(written, bank.gather(places, width, signed, some.numbers), strict=False):
            registers.write(slot, some.expand(word), some)

    return run_fixed if width >= 4 and registers.names[index] in ZERO_REGISTERS else run


def special_step(batch: Batch, instruction: Instruction) -> Step:
    """S2R, S2UR, CS2R, CS2UR."""
    target, name = instruction.operands[0].registers[0], instruction.operands[1].text
    words = 1 if instruction.mnemonic.startswith("S2") or "32" in instruction.modifiers else 2
    read = [batch.special(name), batch.special(name.replace("LO", "HI")) if name != "SRZ" else batch.special(name)][:words]
    written = slots(batch, target, 4 * words)
    uniform = target.startswith("U")
    registers = batch.registers

    def run(lanes: Lanes) -> None:
        some = lanes.warps if uniform else lanes
        for slot, source in zip(written, read, strict=False):
            registers.check(source, some)
            registers.write(slot, registers.values[source], some)

    return run


def expect(instruction: Instruction, kinds: Sequence[str], modifiers: frozenset[str]) -> None:
    """Raise SemanticsError unless the operands are of these kinds, and all modifiers are among those."""
    found = tuple([kind_of(operand) for operand in instruction.operands])
    if found != tuple(kinds):
        raise SemanticsError(f"`{instruction.text}`: the emulator knows only the operands {', '.join(kinds)}")
    if unknown := {*instruction.modifiers} - modifiers:
        raise SemanticsError(f"`{instruction.text}`: the emulator does not know the modifier {min(unknown)}")


def slots(batch: Batch, first: str, width: int) -> list[int]:
    """The slots of the registers that `width` bytes are written to; none for a zero register."""
    return [] if first in ZERO_REGISTERS else sources(batch, first, width)


def sources(batch: Batch, first: str, width: int) -> list[int]:
    """The slots of the registers that hold `width` bytes."""
    return [batch.registers.slot(following(first, i)) for i in range(max(1, width // 4))]


def words_of(batch: Batch, slots: list[int], lanes: Lanes) -> list[Array]:
    """The values of some registers in the lanes, checked."""
    for slot in slots:
        batch.registers.check(slot, lanes)
    return [lanes.of(batch.registers.values[slot]) for slot in slots]
