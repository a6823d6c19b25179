"""Loads and stores of global, shared, local and generic memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from sassir.asm.instruction import Instruction
from sassir.emulator.address import read_address
from sassir.emulator.batch import WIDTHS, Batch, Step, access_width
from sassir.emulator.lanes import Indices, LaneError, Lanes
from sassir.emulator.memory import GLOBAL_WINDOW, LOCAL_WINDOW, SHARED_WINDOW, Access, Space, load, store
from sassir.emulator.operands import expect, slots, sources, words_of
from sassir.errors import SemanticsError

Reach = Callable[[Lanes, int, Access], list[tuple[Space, Indices, Lanes]]]
"""Checks an access of some lanes and some bytes, and gives its places: by memory space, with the lanes that go there."""

_SPACES: Mapping[str, str] = {
    **{name: "generic" for name in ("ATOM", "LD", "ST")},
    **{name: "global" for name in ("ATOMG", "LDG", "RED", "REDG", "STG")},
    **{name: "local" for name in ("LDL", "STL")},
    **{name: "shared" for name in ("ATOMS", "LDS", "STS")},
}
_CACHING = frozenset({"CONSTANT", "EF", "EL", "EN", "EU", "LTC64B", "LTC128B", "LTC256B", "LU", "NA", "U"})
_ORDER = frozenset({"CTA", "E", "GPU", "MMIO", "PRIVATE", "SM", "STRONG", "SYS", "VC", "WEAK"})
_PLAIN = WIDTHS.keys() | _CACHING | _ORDER
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
    space = _SPACES[instruction.mnemonic]

    def reach(lanes: Lanes, width: int, access: Access) -> list[tuple[Space, Indices, Lanes]]:
        if space == "global":
            return [(batch.memory, batch.memory.locate(address.global_low(lanes), width, lanes.indices, access), lanes)]
        if space == "generic":
            return _reach_generic(batch, address.wide(lanes), lanes, width, access)
        own = batch.shared if space == "shared" else batch.local
        return [(own, own.locate(address.low(lanes), width, lanes.indices, access), lanes)]

    return reach


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
