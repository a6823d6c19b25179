"""The blocks of a kernel that run together: their registers, memory and flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sassir.emulator.constants import Bank
from sassir.emulator.copies import Copies
from sassir.emulator.flow import Flow
from sassir.emulator.lanes import LANES, Lanes
from sassir.emulator.local import LocalMemory
from sassir.emulator.mbarrier import Barriers
from sassir.emulator.memory import GlobalMemory
from sassir.emulator.module import Kernel
from sassir.emulator.registers import UNDEFINED, Registers
from sassir.emulator.shared import SharedMemory
from sassir.emulator.special import special_register
from sassir.launch import Step as LaunchStep

Step: TypeAlias = Callable[[Lanes], bool | None]
"""One instruction, ready to run for a set of lanes. True when it has sent them somewhere else, or ended them."""


@dataclass(frozen=True)
class Checks:
    """What is refused. All of it is wrong in a correct kernel; turn off only what a kernel does on purpose."""

    registers: bool = True
    """A register that was never written is read."""
    races: bool = True
    """Warps of a block access the same shared memory without a barrier in between, and one of them writes."""
    undefined: int = UNDEFINED
    """What a register holds that was never written, where that is not refused."""
    steps: int = 2_000_000
    """Most instructions that one batch of blocks may execute; beyond, the kernel counts as endless."""


class Batch:
    """The state of some blocks of one launch. Made once and started anew for other blocks."""

    def __init__(self, kernel: Kernel, launch: LaunchStep, memory: GlobalMemory, bank0: Bank, checks: Checks) -> None:
        self.kernel = kernel
        self.launch = launch
        self.memory = memory
        self.checks = checks
        self.banks: Mapping[int, Bank] = {0: bank0, **kernel.banks}
        self.registers = Registers(checks.registers, checks.undefined)
        self.shared_size = kernel.summary.shared + launch.shared
        self._granule = min([4, *[access_width(i.modifiers) for i in kernel.code if i.mnemonic in _OWN_MEMORY]])
        self._threads = launch.block[0] * launch.block[1] * launch.block[2]
        self.warps = -(-self._threads // LANES)
        self.copy_scoreboards = {i.control.write for i in kernel.code if i.mnemonic == "LDGDEPBAR"}
        """Scoreboards that count groups of asynchronous copies."""
        self._specials: list[str] = []

    def special(self, name: str) -> int:
        """The slot of a special register, which is filled when blocks start."""
        if name not in self._specials:
            self._specials.append(name)
        return self.registers.slot(name)

    def constant(self, bank: int, offset: int) -> int:
        """The slot of one word of constant memory; reading one that is not known is a fault."""
        name = f"c[{bank:#x}][{offset:#x}]"
        word = self.banks[bank].word(offset) if bank in self.banks else None
        return self.registers.slot(name) if word is None else self.registers.pin(name, word)

    def start(self, blocks: Sequence[int]) -> None:
        """Begin with these blocks, by their number in the grid."""
        count, warps = len(blocks), self.warps
        self.blocks = np.repeat(np.array(blocks, np.int64), warps).reshape(-1, 1)
        self.threads = np.tile(np.arange(warps * LANES, dtype=np.int64), count).reshape(-1, LANES)
        self.shared = SharedMemory(count, warps, self.shared_size, self._granule, self.checks.races)
        self.local = LocalMemory(count * warps * LANES, self.kernel.summary.stack or 0, self._granule)
        self.copies = Copies(count * warps * LANES)
        self.barriers = Barriers(self)
        exists = self.threads < self._threads
        self.registers.reset(exists)
        self.flow = Flow(exists, count, self.shared.next_interval)
        for name in self._specials:
            value = special_register(name, self)
            if value is not None:
                self.registers.set(self.registers.slot(name), value)

    def set_strict(self, strict: bool) -> None:
        """Whether what is suspicious is refused from now on."""
        self.registers.strict = strict and self.checks.registers
        self.shared.strict = self.local.strict = strict

    def pass_barrier(self, lane: int) -> None:
        """The block of a lane has passed a barrier object: later accesses do not race with earlier ones."""
        blocks = np.zeros(self.flow.blocks, np.bool_)
        blocks[lane // (self.warps * LANES)] = True
        self.shared.next_interval(blocks)

    def lane(self, block: int, thread: int) -> int | None:
        """The lane of a thread, by its number in its block; None if it is not in the batch."""
        place = block - int(self.blocks[0, 0])
        return place * self.warps * LANES + thread if 0 <= place < self.flow.blocks and thread < self._threads else None


_OWN_MEMORY = frozenset({"LD", "LDL", "LDS", "ST", "STL", "STS"})
"""What may access the memory of a block or a thread by less than a word."""

WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
"""Bytes, by modifier; 4 without one."""


def access_width(modifiers: Sequence[str]) -> int:
    """Bytes that a memory instruction moves for one lane."""
    return next((WIDTHS[modifier] for modifier in modifiers if modifier in WIDTHS), 4)
