"""Profiles of a launch: some of its blocks run in the emulator, and every memory access is looked at.

The blocks are those of the real launch, with its sizes and its data, so the counts are exact for them; the others are taken
to be like them. A first-level cache is followed for each block by itself: blocks next to each other run on other multiprocessors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from sassir import isa
from sassir.asm.instruction import Instruction
from sassir.emulator import Checks, Counts, emulate
from sassir.emulator.address import Address, read_address
from sassir.emulator.batch import Batch
from sassir.emulator.lanes import LANES, Lanes
from sassir.errors import EmulationError, SemanticsError
from sassir.isa.description import kind_of
from sassir.launch import Launch, Step
from sassir.timing.profile import Profile
from sassir.timing.traffic import (
    Access,
    Cache,
    Moves,
    access_of,
    memory_shares,
    move_constant,
    move_global,
    move_local,
    move_shared,
)

BUDGET = 100_000
"""Instructions of a step after which no further block is begun."""
BLOCKS = 64
"""Most blocks of a step."""
_ENDLESS = 1 << 31
_NOT_FOLLOWED = frozenset({"CCTL", "LDSM", "STSM", "SYNCS", "UBLKCP"})
"""They access memory in other ways, or not for their lanes."""


class Sampled(NamedTuple):
    """The profile of one kernel launch."""

    step: Step
    profile: Profile
    blocks: int
    """Blocks that were run."""


def sample(cubin: bytes, launch: Launch, first_level: int, budget: int = BUDGET) -> list[Sampled]:
    """The profiles of the steps of `launch`. `first_level`: bytes of L1 that one block can count on.

    Raises as `emulate`, and EmulationError for a cooperative launch.
    """
    sampler = _Sampler(first_level, budget)
    checks = Checks(registers=False, races=False, steps=_ENDLESS)
    emulate(cubin, launch, checks=checks, before=sampler, blocks=sampler.blocks, counts=sampler.counts, warn=lambda text: None)
    return sampler.results()


class _Sampler:
    def __init__(self, first_level: int, budget: int) -> None:
        self.first_level, self.budget = first_level, budget
        self.counts = Counts()
        self.done: list[Sampled] = []
        self.step: Step | None = None
        self.batch: Batch | None = None
        self.started = 0

    def blocks(self, step: Step) -> Iterator[int]:
        """The blocks to run, spread over the grid, until the budget is spent."""
        self._finish()
        if step.cooperative:
            raise EmulationError(f"kernel {step.kernel}: blocks of a cooperative launch wait for each other; none can be run by itself")
        self.step, self.batch, self.started = step, None, 0
        total = math.prod(step.grid)
        limit = self.counts.instructions + self.budget
        for block in _spread(total, min(total, BLOCKS)):
            if self.started and self.counts.instructions >= limit:
                break
            self.started += 1
            self.cache = Cache(self.first_level)
            yield block
            self._end_block()

    def _end_block(self) -> None:
        self.executions += self.counted.sum(axis=1)
        self.slowest += self.counted.max(axis=1)
        self.counted[:] = 0

    def __call__(self, batch: Batch, place: int, lanes: Lanes) -> None:
        """See `Observer`: called before each instruction."""
        if self.batch is not batch:
            self.batch = batch
            code = batch.kernel.code[: batch.kernel.stretches.of(0).length]
            self.executions, self.slowest = np.zeros(len(code), np.int64), np.zeros(len(code), np.int64)
            self.counted = np.zeros((len(code), batch.warps), np.int64)
            """Executions of each line by each warp of the block."""
            self.moves: dict[int, Moves] = {}
            self.watches = [_watch(batch, instruction) for instruction in code]
        if place >= len(self.executions):
            raise EmulationError(f"kernel {batch.kernel.name}: calls a function in a section of its own, whose time is not modelled")
        self.counted[place] += lanes.flags.any(axis=1)
        watch = self.watches[place]
        if watch is not None:
            watch(self.moves.setdefault(place, Moves()), self.cache, lanes)

    def results(self) -> list[Sampled]:
        self._finish()
        return self.done

    def _finish(self) -> None:
        step, batch = self.step, self.batch
        if step is None or batch is None:
            return
        total, warps = math.prod(step.grid), batch.warps
        sizes = [float(allocation.size) for allocation in batch.memory.allocations]
        shares = memory_shares(self.moves.values(), sizes, total / self.started)
        profile = Profile(
            [float(count) / (self.started * warps) for count in self.executions],
            [float(count) / self.started for count in self.slowest],
            {place: moves.traffic(int(self.executions[place]), shares) for place, moves in self.moves.items()},
            f"emulator, {self.started} of {total} blocks",
        )
        self.done.append(Sampled(step, profile, self.started))
        self.step = None


def _spread(total: int, count: int) -> Iterator[int]:
    """Blocks at equal distances, in an order that spreads early ones too: fractions of the golden ratio."""
    taken: set[int] = set()
    for i in range(4 * count):
        block = int((0.5 + i * 0.6180339887498949) % 1.0 * total)
        if block not in taken and len(taken) < count:
            taken.add(block)
            yield block


Watch = Callable[[Moves, Cache, Lanes], None]


def _watch(batch: Batch, instruction: Instruction) -> Watch | None:
    """What looks at the accesses of an instruction; None if it makes none, or in a way that is not followed."""
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    if row is None or not row.loads | row.stores:
        return None
    try:
        if {*row.loads} == {"constant"}:
            return _constant(batch, instruction)
        places = [i for i, operand in enumerate(instruction.operands) if kind_of(operand) == "address"]
        if not places or instruction.mnemonic in _NOT_FOLLOWED:
            return None
        address = read_address(batch.registers, instruction, places[-1])
    except SemanticsError:
        return None
    access = access_of(instruction.mnemonic, instruction.modifiers)
    return _guarded(batch, instruction, _accesses(batch, access, {*(row.loads | row.stores)}, address))


def _accesses(batch: Batch, access: Access, spaces: set[str], address: Address) -> Watch:
    starts = np.array([allocation.start for allocation in batch.memory.allocations], np.int64)

    def run(moves: Moves, cache: Cache, lanes: Lanes) -> None:
        warps, low = (lanes.indices // LANES).astype(np.int64), address.low(lanes).astype(np.int64)
        if spaces == {"shared"}:
            move_shared(moves, access, warps, low)
        elif spaces == {"local"}:
            move_local(moves, cache, access, warps, low, lanes.indices % LANES, batch.warps)
        else:
            move_global(moves, cache, access, warps, low, starts)

    return run


def _guarded(batch: Batch, instruction: Instruction, watch: Watch) -> Watch:
    guard = instruction.guard
    if guard is None:
        return watch
    slot, registers = batch.registers.slot(guard.registers[0]), batch.registers

    def run(moves: Moves, cache: Cache, lanes: Lanes) -> None:
        value = registers.values[slot]
        some = lanes.where(~value if guard.negated else value)
        if some.count:
            watch(moves, cache, some)

    return run


def _constant(batch: Batch, instruction: Instruction) -> Watch | None:
    """An index into constant memory that may differ by thread."""
    source = instruction.operands[-1]
    if instruction.mnemonic != "LDC" or not source.registers or source.registers[0] == "RZ":
        return None
    slot, registers = batch.registers.slot(source.registers[0]), batch.registers

    def run(moves: Moves, cache: Cache, lanes: Lanes) -> None:
        move_constant(moves, (lanes.indices // LANES).astype(np.int64), lanes.of(registers.values[slot]).astype(np.int64))

    return _guarded(batch, instruction, run)
