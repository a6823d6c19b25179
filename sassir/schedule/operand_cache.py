"""What the operand cache does for an order of operations (see `sassir.machine.register_file`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.read_slots import read_slots
from sassir.dialect.registers import R
from sassir.machine.register_file import Read, bank, bank_cycles
from sassir.schedule.graph import Graph
from sassir.schedule.reuse import LOOK_AHEAD


class OperandCache:
    """The operand cache between operations put in order, if every operand is marked that serves one of the next `LOOK_AHEAD`."""

    def __init__(self, graph: Graph, before: Mapping[SSAValue, int] | None = None) -> None:
        """`before`: the registers of values that were freed, which they are likely to get back."""
        known = before or {}
        self._reads = [_reads(op, known) if (t := graph.timings[i]) and not t.sensitive else () for i, op in enumerate(graph.ops)]
        self._written = [{number for r in op.results if (number := _register(r, known)) is not None} for op in graph.ops]
        self._kept: dict[tuple[int, int], tuple[int, int]] = {}
        """The register by slot and bank, and the place in the order from which on it is no longer there."""
        self._place = 0
        self.matters = any(len({read.register for read in reads}) > 1 for reads in self._reads)
        """Some operation may take longer if it finds nothing in the cache."""

    def cycles(self, i: int) -> int:
        """The cycles in which the banks give what operation `i` reads, if it comes next; 1 if it reads nothing there."""
        reads = self._reads[i]
        if len(reads) < 2:
            return 1
        return bank_cycles({read.register for read in reads if not self._holds(read)})

    def _holds(self, read: Read) -> bool:
        register, until = self._kept.get((read.slot, bank(read.register)), (None, 0))
        return register == read.register and self._place < until

    def take(self, i: int) -> int:
        """Operation `i` comes next. Returns its `cycles`."""
        found, written = self.cycles(i), self._written[i]
        if written:
            self._kept = {place: kept for place, kept in self._kept.items() if kept[0] not in written}
        self._place += 1
        for slot, register, _ in self._reads[i]:
            if register not in written:
                self._kept[slot, bank(register)] = register, self._place + LOOK_AHEAD
        return found


def reading_cycles(graph: Graph, order: Sequence[int], before: Mapping[SSAValue, int] | None = None) -> int:
    """The cycles in which the banks give what all operations read in that `order`, at least one each. No other warp can hide them."""
    cache = OperandCache(graph, before)
    return sum([cache.take(i) for i in order])


def _reads(op: Operation, known: Mapping[SSAValue, int]) -> tuple[Read, ...]:
    """The general registers that an operation reads, as far as they are known."""
    if not isinstance(op, SassInstruction):
        return ()
    found: list[Read] = []
    operands = internals.operands(op)
    for slot, first, width, _ in read_slots(op.template):
        numbers = [_register(value, known) for value in operands[first : first + width]]
        found += [Read(slot, number, True) for number in numbers if number is not None]
    return tuple(found)


def _register(value: SSAValue, known: Mapping[SSAValue, int]) -> int | None:
    """The general register of a value."""
    if not isinstance(value.type, R):
        return None
    number = known.get(value) if value.type.number is None else value.type.number
    return None if number is None else number - R.FIRST
