"""The distances that ptxas keeps between dependent instructions, collected from finished code.

Distance is the sum of the stall counts from the first instruction up to the second. Per pair of latency classes the minimum
counts: ptxas stalls as long as it must wherever there is nothing else to do, so with enough pairs the minimum is its table.

What would make a minimum too small is left out: a result that its scoreboard announces, pairs that cannot both execute
(complementary guards), code behind a jump that is always taken, and everything across a drain (stall 0). Labels do not matter:
falling through one is a path that executes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from typing import NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.operand import Operand, register_file
from sassir.asm.program import Function
from sassir.isa import describe
from sassir.machine.accesses import Access, accesses, guard_column
from sassir.machine.kinds import kind_of
from sassir.machine.latency import KINDS

LEAVES = frozenset({"branch", "call", "exit", "indirect", "return", "trap"})


RARE = 1000
"""A minimum that less than one in so many pairs has is suspicious."""


class Sample(NamedTuple):
    """All pairs of one cell."""

    cycles: int
    """The smallest distance."""
    pairs: int
    """How many."""
    tight: int
    """Pairs at the smallest distance."""
    place: str
    """Where the first of these is: file, section, offset of the second instruction."""


Cells = dict[tuple[int, int], Sample]


class _Uses(NamedTuple):
    """What the walk needs of an instruction."""

    writes: tuple[tuple[int, int], ...]
    """Register and row."""
    reads: tuple[tuple[int, int], ...]
    """Register and column, the guard last."""
    early_reads: tuple[tuple[int, int], ...]
    """Those that are read at issue."""
    counts: bool
    """Its results keep a fixed distance even where it also sets a scoreboard."""
    fixed: bool
    """Its results keep a fixed distance where it sets no scoreboard."""
    leaves: bool
    """Control goes elsewhere, unless its guard fails."""
    calls: bool
    """It is a call or a return, whose callee or caller reads and writes more than is listed."""


class _Write(NamedTuple):
    time: int
    row: int
    fixed: bool
    guard: tuple[int, bool] | None


_Guard = tuple[int, bool] | None
_FIRST = {"R": 0, "UR": 256, "P": 512, "UP": 520, "B": 528}
"""The number of register 0 of each file, in this module."""


class Samples:
    """Collects samples of one architecture, each kernel once."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.pairs: dict[str, dict[tuple[int, int], Counter[int]]] = {kind: defaultdict(Counter) for kind in KINDS}
        """How many pairs have which distance, by kind of dependence and by the two lines of its matrix."""
        self.places: dict[tuple[str, int, int, int], str] = {}
        """Where the first pair of a cell with a distance is."""
        self.instructions = 0
        """How many were looked at."""
        self._seen: set[int] = set()

    def add(self, function: Function, place: str) -> None:
        """Walk a function, which is at that place, unless the same code was seen before."""
        words = hash(tuple([line.instruction.word for line in function.lines]))
        if words not in self._seen:
            self._seen.add(words)
            self.instructions += len(function.lines)
            _Walk(self, place).run(function)

    def cells(self, kind: str) -> Cells:
        """The samples of one kind of dependence so far."""
        found: Cells = {}
        for (first, second), distances in self.pairs[kind].items():
            least = min(distances)
            found[first, second] = Sample(least, distances.total(), distances[least], self.places[kind, first, second, least])
        return found

    def doubtful(self) -> list[str]:
        """RAW minima that hardly any pair has: an instruction may be in the wrong class, or a class needs to be divided."""
        writers, readers = KINDS["raw"]
        rare = [(cell, found) for cell, found in self.cells("raw").items() if found.tight * RARE < found.pairs]
        return [f"{writers.names[i]} {readers.names[j]}: {s.cycles} cycles in {s.tight} of {s.pairs}, {s.place}" for (i, j), s in rare]

    def note(self, kind: str, first: int, second: int, cycles: int, place: tuple[str, int]) -> None:
        """Add one pair."""
        distances = self.pairs[kind][first, second]
        if cycles not in distances:
            self.places[kind, first, second, cycles] = f"{place[0]}+{INSTRUCTION_BYTES * place[1]:#x}"
        distances[cycles] += 1


class _Walk:
    """One straight pass over a function."""

    def __init__(self, samples: Samples, place: str) -> None:
        self.samples = samples
        self.place = place
        self.time = 0
        self.written: dict[int, _Write] = {}
        """The last write of each register that no read has followed, or any write for RAW."""
        self.unread: set[int] = set()
        """Registers written and not read since."""
        self.readers: dict[int, list[tuple[int, int, _Guard]]] = {}
        """Time, column and guard of the reads at issue since the last write."""
        self.versions: dict[int, int] = {}
        """How often each predicate was written: two guards are complementary only on the same value."""

    def run(self, function: Function) -> None:
        for i, (instruction, _) in enumerate(function.lines):
            uses = _uses(self.samples.base, instruction.mnemonic, instruction.modifiers, instruction.operands, instruction.guard)
            guard = self._guard(instruction)
            if not uses.calls:
                self._pairs(uses, guard, (self.place, i))
            self._record(uses, guard, instruction)
            stall = instruction.control.stall
            self.time += stall
            if stall == 0 or uses.calls or (uses.leaves and guard is None):
                self.written.clear()
                self.readers.clear()

    def _guard(self, instruction: Instruction) -> _Guard:
        """The value of the guard predicate that lets the instruction execute."""
        if instruction.guard is None or instruction.guard.registers[0] in ("PT", "UPT"):
            return None
        register = _register(instruction.guard)
        return register + 1024 * self.versions.get(register, 0), instruction.guard.negated

    def _pairs(self, uses: _Uses, guard: _Guard, place: tuple[str, int]) -> None:
        note, time = self.samples.note, self.time
        for register, column in uses.reads:
            first = self.written.get(register)
            if first is not None and first.fixed and not _exclude(first.guard, guard):
                note("raw", first.row, column, time - first.time, place)
        for register, row in uses.writes:
            first = self.written.get(register)
            if first is not None and first.fixed and register in self.unread and not _exclude(first.guard, guard):
                note("waw" if first.guard is None else "waw-guarded", first.row, row, time - first.time, place)
            for read_time, column, read_guard in self.readers.get(register, ()):
                if not _exclude(read_guard, guard):
                    note("war", column, row, time - read_time, place)

    def _record(self, uses: _Uses, guard: _Guard, instruction: Instruction) -> None:
        control = instruction.control
        if control.read is None and control.write is None:
            for register, column in uses.early_reads:
                self.readers.setdefault(register, []).append((self.time, column, guard))
        self.unread.difference_update([register for register, _ in uses.reads])
        fixed = uses.counts or (uses.fixed and control.write is None)
        for register, row in uses.writes:
            self.written[register] = _Write(self.time, row, fixed, guard)
            self.unread.add(register)
            self.readers.pop(register, None)
            if register >= _FIRST["P"]:
                self.versions[register] = self.versions.get(register, 0) + 1


def _exclude(first: _Guard, second: _Guard) -> bool:
    """Two guards are complementary: at most one of the instructions executes in a lane."""
    return first is not None and second is not None and first[0] == second[0] and first[1] != second[1]


@cache
def _uses(base: str, mnemonic: str, modifiers: tuple[str, ...], operands: tuple[Operand, ...], guard: Operand | None) -> _Uses:
    kind = kind_of(base, mnemonic, modifiers)
    found = accesses(Instruction(mnemonic, modifiers, operands), kind)
    late_files = {"R"} if "r" in kind.late else set[str]()
    late_files |= {"UR"} if "u" in kind.late else set[str]()
    early = [_line(a) for a in found.reads if a.file not in late_files]
    guards = [] if guard is None or guard.registers[0] in ("PT", "UPT") else [(_register(guard), guard_column(guard))]
    description = describe(mnemonic, modifiers)
    control = description.control if description else None
    fixed = all(row != "late" for group in kind.writes for row in group) and "g" not in kind.late
    return _Uses(
        tuple([_line(a) for a in found.writes]),
        (*[_line(a) for a in found.reads], *guards),
        (*early, *guards),
        fixed and "w" in kind.late,
        fixed,
        control in LEAVES,
        control in ("call", "return"),
    )


def _line(access: Access) -> tuple[int, int]:
    return _FIRST[access.file] + access.number, access.line


def _register(guard: Operand) -> int:
    name = guard.registers[0]
    file = register_file(name)
    return _FIRST[file] + int(name[len(file) :])
