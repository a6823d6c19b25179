"""Profiles of a launch: some of its blocks run in the emulator, and every memory access is looked at.

The blocks are those of the real launch, with its sizes and its data, so the counts are exact for them; the others are taken
to be like them. A first-level cache is followed for each block by itself: blocks next to each other run on other multiprocessors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sassir import isa
from sassir.asm.instruction import Instruction
from sassir.emulator import Checks, Counts, emulate
from sassir.emulator.address import Address, read_address
from sassir.emulator.batch import Batch
from sassir.emulator.lanes import LANES, Lanes
from sassir.errors import SemanticsError
from sassir.isa.description import kind_of
from sassir.launch import Launch, Step
from sassir.machine.hierarchy import LINE, SECTOR
from sassir.timing.profile import Profile, Traffic, access_bytes

BUDGET = 100_000
"""Instructions of a step after which no further block is begun."""
BLOCKS = 64
"""Most blocks of a step."""
BANKS, WORD = 32, 4
_ENDLESS = 1 << 31
Numbers = NDArray[np.int64]


class Sampled(NamedTuple):
    """The profile of one kernel launch."""

    step: Step
    profile: Profile
    blocks: int
    """Blocks that were run."""


class _Sums:
    """What one memory instruction did in all executions."""

    def __init__(self) -> None:
        self.passes = self.sectors = self.missed = 0
        self.by_buffer: dict[int, int] = {}
        """Sectors that went to the second level, by allocation; negative numbers for writes."""


def sample(cubin: bytes, launch: Launch, first_level: int, budget: int = BUDGET) -> list[Sampled]:
    """The profiles of the steps of `launch`. `first_level`: bytes of L1 that one block can count on.

    Raises as `emulate`.
    """
    sampler = _Sampler(first_level // SECTOR, budget)
    checks = Checks(registers=False, races=False, steps=_ENDLESS)
    emulate(cubin, launch, checks=checks, before=sampler, blocks=sampler.blocks, counts=sampler.counts, warn=lambda text: None)
    return sampler.results()


class _Sampler:
    def __init__(self, capacity: int, budget: int) -> None:
        self.capacity, self.budget = capacity, budget
        self.counts = Counts()
        self.done: list[Sampled] = []
        self.step: Step | None = None
        self.batch: Batch | None = None
        self.started = 0

    def blocks(self, step: Step) -> Iterator[int]:
        """The blocks to run, spread over the grid, until the budget is spent."""
        self._finish()
        self.step, self.batch, self.started = step, None, 0
        total = math.prod(step.grid)
        limit = self.counts.instructions + self.budget
        for block in _spread(total, min(total, BLOCKS)):
            if self.started and self.counts.instructions >= limit:
                break
            self.started += 1
            self.seen: dict[int, Numbers] = {}
            self.clock = 0
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
            code = batch.kernel.code
            self.executions, self.slowest = np.zeros(len(code), np.int64), np.zeros(len(code), np.int64)
            self.counted = np.zeros((len(code), batch.warps), np.int64)
            """Executions of each line by each warp of the block."""
            self.sums: dict[int, _Sums] = {}
            self.watches = [_watch(batch, instruction) for instruction in code]
        self.counted[place] += lanes.flags.any(axis=1)
        watch = self.watches[place]
        if watch is not None:
            watch(self, self.sums.setdefault(place, _Sums()), lanes)

    def results(self) -> list[Sampled]:
        self._finish()
        return self.done

    def _finish(self) -> None:
        step, batch = self.step, self.batch
        if step is None or batch is None:
            return
        total, warps = math.prod(step.grid), batch.warps
        scale = total / self.started
        sizes = [allocation.size / SECTOR for allocation in batch.memory.allocations]
        moved: dict[int, float] = {}
        for sums in self.sums.values():
            for buffer, sectors in sums.by_buffer.items():
                moved[buffer] = moved.get(buffer, 0.0) + sectors * scale
        # The second level keeps what was moved once: memory sees each sector of a buffer at most once.
        shares = {buffer: min(1.0, sizes[max(buffer, ~buffer)] / count) for buffer, count in moved.items() if count}
        profile = Profile(
            [float(count) / (self.started * warps) for count in self.executions],
            [float(count) / self.started for count in self.slowest],
            {place: _traffic(sums, int(self.executions[place]), shares) for place, sums in self.sums.items()},
            f"emulator, {self.started} of {total} blocks",
        )
        self.done.append(Sampled(step, profile, self.started))
        self.step = None

    def misses(self, space: int, sectors: Numbers) -> NDArray[np.bool_]:
        """Which of the sectors, each named once, the block has not touched for as long as its share of the cache reaches."""
        most = int(sectors.max(initial=0))
        seen = self.seen.get(space)
        if seen is None or seen.size <= most:
            grown = np.full(most + most // 2 + 1024, -_ENDLESS, np.int64)
            if seen is not None:
                grown[: seen.size] = seen
            seen = self.seen[space] = grown
        missed = seen[sectors] < self.clock - self.capacity
        self.clock += int(np.count_nonzero(missed))
        seen[sectors] = self.clock
        return missed


def _spread(total: int, count: int) -> Iterator[int]:
    """Blocks at equal distances, in an order that spreads early ones too: fractions of the golden ratio."""
    taken: set[int] = set()
    for i in range(4 * count):
        block = int((0.5 + i * 0.6180339887498949) % 1.0 * total)
        if block not in taken and len(taken) < count:
            taken.add(block)
            yield block


def _traffic(sums: _Sums, executions: int, shares: dict[int, float]) -> Traffic:
    memory = sum([count * shares.get(buffer, 0.0) for buffer, count in sums.by_buffer.items()])
    sectors = sum(sums.by_buffer.values())
    return Traffic(sums.passes / executions, sectors / executions, sums.missed / executions, memory / sectors if sectors else 0.0)


Watch = Callable[[_Sampler, _Sums, Lanes], None]


def _watch(batch: Batch, instruction: Instruction) -> Watch | None:
    """What looks at the accesses of an instruction; None if it makes none that cost more than one pass."""
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    if row is None or not row.loads | row.stores:
        return None
    try:
        if {*row.loads} == {"constant"}:
            return _constant(batch, instruction)
        places = [i for i, operand in enumerate(instruction.operands) if kind_of(operand) == "address"]
        if not places or instruction.mnemonic in ("CCTL", "LDSM", "STSM", "UBLKCP", "SYNCS"):
            return None
        address = read_address(batch.registers, instruction, places[-1])
    except SemanticsError:
        return None
    spaces = row.loads | row.stores
    watch = _shared(instruction, address) if {*spaces} == {"shared"} else _cached(batch, instruction, address, spaces, bool(row.stores))
    return _guarded(batch, instruction, watch)


def _guarded(batch: Batch, instruction: Instruction, watch: Watch) -> Watch:
    guard = instruction.guard
    if guard is None:
        return watch
    slot, registers = batch.registers.slot(guard.registers[0]), batch.registers

    def run(sampler: _Sampler, sums: _Sums, lanes: Lanes) -> None:
        value = registers.values[slot]
        some = lanes.where(~value if guard.negated else value)
        if some.count:
            watch(sampler, sums, some)

    return run


def _distinct(warps: Numbers, places: Numbers) -> tuple[Numbers, Numbers]:
    """Each pair of a warp and a place once."""
    pairs = np.unique(warps << 40 | places)
    return pairs >> 40, pairs & (1 << 40) - 1


def _cached(batch: Batch, instruction: Instruction, address: Address, spaces: frozenset[str], stores: bool) -> Watch:
    """Global and local memory, which go through the first-level cache."""
    width = access_bytes(instruction.modifiers)
    local = {*spaces} == {"local"}
    atomic = stores and instruction.mnemonic[:3] in ("ATO", "RED")
    starts = np.array([allocation.start for allocation in batch.memory.allocations], np.int64)

    def run(sampler: _Sampler, sums: _Sums, lanes: Lanes) -> None:
        warps = (lanes.indices // LANES).astype(np.int64)
        low = address.low(lanes).astype(np.int64)
        if local:  # a word of 32 threads is one line
            low = (low // WORD * batch.warps + warps) * LINE + lanes.indices % LANES * WORD
        lines = _distinct(warps, low // LINE)[0].size
        sums.passes += max(lines, math.ceil(lanes.count * width / LINE))
        owners, sectors = _distinct(warps, low // SECTOR)
        once, first = np.unique(sectors, return_index=True)
        if stores and not local:  # written through
            sampler.misses(local, once)
            missed = sectors
            sums.missed += int(np.unique(warps).size)
        else:
            fresh = sampler.misses(local, once)
            missed = once[fresh]
            sums.missed += int(np.unique(owners[first[fresh]]).size)
        if local:
            sums.by_buffer[0] = sums.by_buffer.get(0, 0)
            sums.sectors += missed.size
            return
        if atomic:
            sums.passes += lanes.count - sectors.size
        if missed.size:
            buffers, counts = np.unique(np.searchsorted(starts, missed * SECTOR, side="right") - 1, return_counts=True)
            for buffer, number in zip(buffers.tolist(), counts.tolist(), strict=True):
                key = ~buffer if stores else buffer
                sums.by_buffer[key] = sums.by_buffer.get(key, 0) + number

    return run


def _shared(instruction: Instruction, address: Address) -> Watch:
    """Shared memory: words of one bank that differ go one after the other, and so do atomics on one word."""
    width = access_bytes(instruction.modifiers)
    atomic = instruction.mnemonic == "ATOMS"

    def run(sampler: _Sampler, sums: _Sums, lanes: Lanes) -> None:
        warps = (lanes.indices // LANES).astype(np.int64)
        low = address.low(lanes).astype(np.int64) // WORD
        words = np.concatenate([low + k for k in range(max(1, width // WORD))])
        owners = np.tile(warps, max(1, width // WORD))
        if not atomic:
            owners, words = _distinct(owners, words)
        ends, number = np.unique(owners, return_inverse=True)
        depth = np.bincount(number * BANKS + words % BANKS, minlength=ends.size * BANKS).reshape(-1, BANKS).max(axis=1)
        active = np.bincount(number, minlength=ends.size) if atomic else np.bincount(np.searchsorted(ends, warps), minlength=ends.size)
        sums.passes += int(np.maximum(depth, -(-active * width // LINE)).sum())

    return run


def _constant(batch: Batch, instruction: Instruction) -> Watch | None:
    """Constant memory, indexed by thread: one address of a warp after the other."""
    source = instruction.operands[-1]
    if instruction.mnemonic != "LDC" or not source.registers or source.registers[0] == "RZ":
        return None
    slot, registers = batch.registers.slot(source.registers[0]), batch.registers

    def run(sampler: _Sampler, sums: _Sums, lanes: Lanes) -> None:
        warps = (lanes.indices // LANES).astype(np.int64)
        sums.passes += _distinct(warps, lanes.of(registers.values[slot]).astype(np.int64))[0].size

    return _guarded(batch, instruction, run)
