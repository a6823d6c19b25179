"""Choose the registers: one walk over the blocks, dominators first, that gives each value a register where it is born.

In SSA form the values that live at one point were all born on the way down the dominator tree, so a register that is free there
is free for good, and no more registers are needed than values live at once (Hack, Grund and Goos, Register Allocation for Programs
in SSA Form, 2006). Groups in a row break that rule; values are then moved (`sassir.allocation.repair`). The kernel does not change
here.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from sassir import isa
from sassir.allocation.demands import Demands, demands
from sassir.allocation.plan import Plan
from sassir.allocation.registers import NoRoomError, fixed, is_aligned, lowest, members, span, starts
from sassir.allocation.repair import Move, Repair, is_met
from sassir.allocation.state import State
from sassir.analysis.liveness import Liveness
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import UndefinedOp
from sassir.dialect.registers import R, file_of
from sassir.machine.register_file import bank

Places = dict[SSAValue, int]
"""The register of each value."""


class Colouring:
    """The registers of all values, and the moves that this takes."""

    def __init__(self, liveness: Liveness, plan: Plan, allowed: int) -> None:
        self.flow = flow = liveness.flow
        self.liveness = liveness
        self.plan = plan
        self.registers: Places = {}
        """Where each value is born."""
        self.moves: dict[Operation, list[Move]] = {}
        """The parallel copy before an operation."""
        self.entry: list[Places] = [{} for _ in flow.blocks]
        self.exit: list[Places] = [{} for _ in flow.blocks]
        """Where the values are that live at the start and at the end of each block."""
        self.moved: set[SSAValue] = set()
        """The values that are not in one register all their life."""
        self._allowed = allowed
        self._used = plan.used
        """Registers that hold something somewhere, by the plan or by what is chosen so far."""
        self._taken: dict[Block, int] = {}
        """The registers of each block's arguments."""
        done: set[int] = set()
        for b in flow.cfg.order:
            before = next((self.exit[p] for p in flow.cfg.predecessors[b] if p in done), None)
            self._colour(b, before or {})
            done.add(b)

    @property
    def count(self) -> int:
        """One more than the highest general register in use."""
        used = [*self.registers.values(), *[m.target for moves in self.moves.values() for m in moves]]
        return max([n for n in used if n < R.COUNT], default=-1) + 1

    def _colour(self, b: int, before: Places) -> None:
        """Walk over a block. `before`: where values are at the end of one of its predecessors."""
        block = self.flow.blocks[b]
        state = State(self._allowed)
        self._enter(b, before, state)
        self.entry[b] = dict(state.place)
        for argument in block.args:
            if argument.first_use is None:
                state.drop(argument)
        deaths = _deaths(block, self.liveness.live_out[b])
        for op in internals.operations(block):
            if isinstance(op, SassInstruction):
                self._visit(op, deaths.get(op, ()), state)
            elif isinstance(op, UndefinedOp) and op.value.first_use is not None:
                n = self._choose([op.value], state.free, (), state)
                if n is None:
                    raise self._no_room(b, file_of(op.value))
                self._bear(op.value, n, state)
        self.exit[b] = state.place

    def _enter(self, b: int, before: Places, state: State) -> None:
        """What lives on stays where it is; arguments take what is free, or what they must have."""
        live, arguments = self.liveness.live_in[b], self.flow.blocks[b].args
        reserved = {n for a in arguments if (n := fixed(a)) is not None}
        late: list[SSAValue] = []
        for value, register in before.items():
            if value in live and register in reserved:
                late.append(value)
                self.moved.add(value)
            elif value in live:
                state.put(value, register)
        for argument in arguments:
            n = fixed(argument)
            if n is None:
                n = next((w for w in self.plan.wishes(argument, self.registers) if state.free >> w & 1), None)
            if n is None:
                late.append(argument)
            else:
                self._bear(argument, n, state)
        self._taken[self.flow.blocks[b]] = sum([1 << n for a in arguments if (n := self.registers.get(a)) is not None])
        for value in late:
            n = self._search([value], state.free)
            if n is None:
                raise self._no_room(b, file_of(value))
            if value in live:
                state.put(value, n)
            else:
                self._bear(value, n, state)

    def _no_room(self, b: int, file: str) -> NoRoomError:
        return NoRoomError(f"more values live in block ^{self.flow.blocks[b].name_hint} than there are {file} registers", file)

    def _bear(self, value: SSAValue, register: int, state: State) -> None:
        state.put(value, register)
        self.registers[value] = register
        self._used |= 1 << register

    def _visit(self, op: SassInstruction, dying: Sequence[SSAValue], state: State) -> None:
        operands, results, wanted = tuple(internals.operands(op)), tuple(op.results), demands(op)
        firsts = _met(operands, wanted, dying, state)
        chosen = None if firsts is None else self._results(results, wanted, firsts, dying, state)
        if chosen is None:
            chosen = self._repair(op, wanted, dying, state)
        for value in dying:
            state.drop(value)
        for group, first in zip(wanted.results, chosen, strict=True):
            for i in range(group.width):
                self._bear(results[group.first + i], first + i, state)
        for result in results:
            if result.first_use is None:
                state.drop(result)

    def _results(
        self, results: Sequence[SSAValue], wanted: Demands, firsts: Sequence[int], dying: Sequence[SSAValue], state: State
    ) -> list[int] | None:
        """Registers for the results; None if there is no room for one of them.

        A result may take any of the registers that are read for the last time, also a part of a group: ptxas does so with every
        kind of instruction, matrix products among them (HMMA.16816.F32 R36, R32, R38, R24; IMMA, DMMA, LDG, IMAD.WIDE likewise).
        """
        free = state.free
        for value in dying:
            free |= 1 << state.place[value] & self._allowed
        chosen: list[int] = []
        for group in wanted.results:
            values = results[group.first : group.first + group.width]
            first = firsts[group.group] if group.group is not None else self._choose(values, free, dying, state)
            if first is None:
                return None
            free &= ~span(first, group.width)
            chosen.append(first)
        return chosen

    def _choose(self, values: Sequence[SSAValue], free: int, dying: Sequence[SSAValue], state: State) -> int | None:
        """The first register for results in a row."""
        width, n = len(values), fixed(values[0])
        if n is not None:
            occupants = [state.holder.get(m) for m in range(n, n + width)]
            return n if all([o is None or o in dying for o in occupants]) else None
        others = self._others(values)
        for wish in self.plan.wishes(values[0], self.registers):
            room = span(wish, width)
            if free & room == room and is_aligned(wish, width) and not others >> wish & 1:
                return wish
        return self._search(values, free, others)

    def _others(self, values: Sequence[SSAValue]) -> int:
        """First registers for `values` with which one of them would be where another one has to be that is handed on together with it:
        that takes a copy more, or an exchange."""
        registers = 0
        for i, value in enumerate(values):
            taken = 0
            for block in self.plan.handed_to.get(value, ()):
                taken |= self._taken.get(block, 0)
            for partner in self.plan.partners(value) if taken else ():
                taken &= ~(1 << self.registers[partner] if partner in self.registers else 0)
            registers |= taken >> i
        return registers

    def _search(self, values: Sequence[SSAValue], free: int, others: int = 0) -> int | None:
        """Registers in a row: if possible not `others`, where nothing else is planned, and a single one in the better bank."""
        candidates = starts(free, file_of(values[0]), len(values), isa.alignment(len(values)))
        candidates = candidates & ~others or candidates
        if not candidates:
            return None
        better = self.plan.better_bank(values[0], self.registers) if len(values) == 1 else None
        calm: int | None = None
        for first in members(candidates):
            if calm is not None and not self._used >> first & 1:
                break  # a bank is not worth a register more
            if all([self.plan.is_calm(v, first + i) for i, v in enumerate(values)]):
                if better is None or bank(first - R.FIRST) == better:
                    return first
                calm = first if calm is None else calm
        return lowest(candidates) if calm is None else calm

    def _repair(self, op: SassInstruction, wanted: Demands, dying: Sequence[SSAValue], state: State) -> list[int]:
        """Move live values until the operation has what it asks for. Returns the registers of the results."""
        repair = Repair(state, op, wanted, dying)
        chosen = repair.run(lambda value: next(iter(self.plan.wishes(value, self.registers)), None))
        self.moves[op] = moves = repair.moves()
        self.moved.update(m.value for m in moves if not m.operands)
        for move in moves:
            if move.operands:
                state.free |= 1 << move.target & self._allowed
        return chosen


def _deaths(block: Block, live_out: set[SSAValue]) -> dict[Operation, list[SSAValue]]:
    """The values that each operation is the last to read. Those that the terminator reads stay until the block has ended."""
    last = {value: op for op in internals.operations(block) for value in internals.operands(op)}
    deaths: dict[Operation, list[SSAValue]] = {}
    for value, op in last.items():
        if value not in live_out and op is not block.last_op:
            deaths.setdefault(op, []).append(value)
    return deaths


def _met(operands: Sequence[SSAValue], wanted: Demands, dying: Sequence[SSAValue], state: State) -> list[int] | None:
    """The first register of each group of operands, if all of them are as they must be."""
    firsts: list[int] = []
    taken: set[SSAValue] = set()
    for group in wanted.groups:
        values = operands[group.first : group.first + group.width]
        first = state.place[values[0]]
        if not is_met(values, first, state.place):
            return None
        if group.result is not None:
            if any([v not in dying or v in taken for v in values]):
                return None
            taken.update(values)
        firsts.append(first)
    return firsts
