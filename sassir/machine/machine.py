"""The machine description of one architecture."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS, Operand, register_file
from sassir.encoders.library import base_architecture
from sassir.machine.accesses import accesses, guard_column
from sassir.machine.classes import COLUMNS, ROWS
from sassir.machine.costs import Cost, cost
from sassir.machine.hierarchy import GLOBAL_LOADS, HIERARCHIES
from sassir.machine.instructions import OVERRIDES, SAME
from sassir.machine.issue import issue
from sassir.machine.kinds import kind_of
from sassir.machine.latency import Matrix, parse_matrices


class Timing(NamedTuple):
    """When an instruction issues, reads its registers and writes them."""

    pipe: str
    """The unit it issues to: adu alu cbu dispatch fma fp16 fp64 lsu tensor tex tma uniform xu, or unknown."""
    issue: int
    """Cycles that unit is busy with one warp instruction."""
    writes_late: bool
    """Results arrive at a time only its write scoreboard tells."""
    reads_late: bool
    """General registers are read after issue: a later writer needs its read scoreboard, or an event that implies it."""
    uniform_late: bool
    """So are uniform registers, which other instructions read at issue."""
    predicate_at_read: bool
    """Predicate results are there when the operands have been read: its read scoreboard announces them."""
    group: bool
    """Results belong to the warpgroup until WARPGROUP.DEPBAR; there is no scoreboard."""
    queue: str | None
    """Instructions of one queue read their operands in order of issue; None if it is in no queue."""
    result_queue: str | None
    """Instructions of one such queue write their results in order of issue; None likewise."""
    writers: tuple[int, ...]
    """Row in the latency matrices of each register written, in the order of `writes` of sassir.translate.shape."""
    readers: tuple[int, ...]
    """Column of each register read, in the order of `reads`."""
    guard: int
    """Column of its guard predicate."""
    minimum_stall: int
    """Smallest stall count whatever comes after."""
    usual_stall: int
    """The same for new code: some old code has less."""
    settle: int
    """Cycles until an instruction of variable latency, or of control flow, may issue; more than `minimum_stall` after some barriers."""
    problem: str | None
    """Why it is not known what it reads and writes (its registers are then not listed); None if it is."""

    @property
    def sensitive(self) -> bool:
        """It has variable latency or decides how control goes on: it must not come too soon after a barrier, see `settle`."""
        return self.writes_late or self.reads_late or self.pipe == "cbu"


_Key = tuple[str, tuple[str, ...], tuple[Operand, ...], Operand | None]


class Machine:
    """Latencies, pipes and control rules of one architecture. Get it from `machine`."""

    def __init__(self, base: str, kinds: str) -> None:
        self.arch = base
        """The architecture whose latencies these are, for the most part: sm_90 for sm_90a."""
        self.kinds = kinds
        """The architecture whose rows of the instruction table these are: the same, or one that differs from it only in these."""
        self.rows = ROWS.names
        """What writes a register: `R.alu`, `UR.udp` …; the numbering of the rows."""
        self.columns = COLUMNS.names
        """What reads a register: `R.alu`, `P.guard` …; the numbering of the columns."""
        matrices = parse_matrices(*_tables(base, kinds))
        self.raw: Matrix = matrices["raw"]
        """By row of the writer and column of the reader."""
        self.war: Matrix = matrices["war"]
        """By column of the reader and row of the writer."""
        self.waw: Matrix = matrices["waw"]
        """By row of the first and of the second writer."""
        self.waw_guarded: Matrix = matrices["waw-guarded"]
        """The same where the first writer has a guard."""
        self._timings: dict[_Key, Timing] = {}
        self._forms: dict[_Key, Timing] = {}

    def timing(self, instruction: Instruction) -> Timing:
        """The timing of the instruction; its control code, its neighbours and the numbers of its registers do not matter."""
        key = instruction.mnemonic, instruction.modifiers, instruction.operands, instruction.guard
        timing = self._timings.get(key)
        if timing is None:
            guard = instruction.guard and _form(instruction.guard)
            form = instruction.mnemonic, instruction.modifiers, tuple([_form(o) for o in instruction.operands]), guard
            timing = self._forms.get(form)
            if timing is None:
                timing = self._forms[form] = self._timing(instruction)
            self._timings[key] = timing
        return timing

    def cost(self, instruction: Instruction) -> Cost:
        """What an instruction of variable latency usually takes; a load hits the first level of the cache."""
        return cost(self.arch, instruction.mnemonic, instruction.modifiers)

    def usual_latency(self, instruction: Instruction) -> int:
        """The cycles after which code should be ready for its late result: what is loaded from global memory is not in the first level."""
        if instruction.mnemonic in GLOBAL_LOADS:
            return HIERARCHIES[self.arch].usual_latency
        return self.cost(instruction).result

    def _timing(self, instruction: Instruction) -> Timing:
        kind = kind_of(self.kinds, instruction.mnemonic, instruction.modifiers)
        registers = accesses(instruction, kind)
        issued = issue(self.arch, kind.pipe, instruction.mnemonic, instruction.modifiers)
        return Timing(
            kind.pipe,
            issued.interval,
            "w" in kind.late,
            "r" in kind.late,
            "u" in kind.late,
            "p" in kind.late,
            "g" in kind.late,
            kind.queue,
            kind.result_queue,
            tuple([access.line for access in registers.writes]),
            tuple([access.line for access in registers.reads]),
            guard_column(instruction.guard),
            issued.minimum,
            issued.usual,
            issued.settle,
            registers.problem,
        )


@cache
def _form(operand: Operand) -> Operand:
    """The operand with register 0 in place of every other: all that a timing depends on."""
    return operand.with_registers(*[name if name in ZERO_REGISTERS else f"{register_file(name)}0" for name in operand.registers])


def _tables(base: str, kinds: str) -> list[str]:
    """The table that the miner made; what was measured on hardware, if it was; what it made for instructions with rows of their own."""
    names = [base, f"{base}.measured", *([kinds] if kinds != base else [])]
    found = [files("sassir.machine").joinpath(f"tables/{name}.txt") for name in names]
    return [file.read_text("utf-8") for file in found if file.is_file()]


@cache
def machine(arch: str) -> Machine:
    """The machine description of `arch`, or of the architecture it derives from (sm_90 for sm_90a).

    Raises EncodingError for an architecture that sassir does not know.
    """
    base, own = base_architecture(arch), arch.rstrip("af")
    return _machine(base, SAME.get(own, own if own in OVERRIDES else base))


@cache
def _machine(base: str, kinds: str) -> Machine:
    return Machine(base, kinds)
