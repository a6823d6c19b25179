"""The order that the operations of a block must keep: registers, memory, synchronisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from sassir.analysis.effects import effects
from sassir.analysis.memory import UNCHANGING, Access, access, may_overlap
from sassir.dialect import internals
from sassir.dialect.edges import forwarded
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import LabelOp, UndefinedOp
from sassir.dialect.registers import number_of
from sassir.dialect.sample import sample
from sassir.dialect.template import TemplateAttr
from sassir.machine import Machine, Timing

WINDOW = 128
"""Accesses that are compared with one another; after so many the next one waits for all of them, which keeps time linear."""


class Graph:
    """The instructions of a block, its last one aside, by their position in the code, and what must come before what."""

    def __init__(self, block: Block, facts: KernelFacts, pointers: Mapping[SSAValue, int], machine: Machine) -> None:
        """`pointers`: see `sassir.analysis.pointers`."""
        self.machine = machine
        self.ops = [op for op in block.ops if not isinstance(op, LabelOp | UndefinedOp) and op is not block.last_op]
        self.position = {op: i for i, op in enumerate(self.ops)}
        self.successors: list[dict[int, int]] = [{} for _ in self.ops]
        """By operation: those that must come later, and how many cycles after its issue at least."""
        forms = [_form(op, machine) for op in self.ops]
        self.timings = [form.timing for form in forms]
        self.latencies = [form.latency for form in forms]
        """Usual cycles until late results."""
        self.reading = [form.reading for form in forms]
        """Usual cycles until the operands are read."""
        self._add_values()
        self._add_registers()
        self._add_carried(block)
        self._add_memory(facts, pointers)
        self._keep_loads()

    def _edge(self, before: int, after: int, cycles: int) -> None:
        if before != after:
            self.successors[before][after] = max(cycles, self.successors[before].get(after, 0))

    def _add_values(self) -> None:
        """Results come before their uses; and the other uses of a value before an operation that overwrites it."""
        for i, op in enumerate(self.ops):
            for slot, value in enumerate(internals.operands(op)):
                owner = value.owner
                if isinstance(owner, Operation) and owner in self.position:
                    self._edge(self.position[owner], i, self._latency(owner, value, i, slot))
            for value in overwritten(op):
                for user, _ in internals.uses(value):
                    j = self.position.get(user, i)
                    if j < i:
                        self._edge(j, i, 1)

    def _latency(self, owner: Operation, value: SSAValue, i: int, slot: int) -> int:
        """Cycles from the issue of `owner` until operation `i` can read `value`."""
        writer, reader = self.timings[self.position[owner]], self.timings[i]
        if writer is None or reader is None or not isinstance(owner, SassInstruction):
            return 1
        result = next((k for k, r in enumerate(owner.results) if r is value), 0)
        if writer.writes_late:
            return self.latencies[self.position[owner]]
        if result >= len(writer.writers):
            return 1
        column = reader.readers[slot] if slot < len(reader.readers) else reader.guard
        return self.machine.raw[writer.writers[result]][column].cycles

    def _add_registers(self) -> None:
        """Where registers are chosen: reads before the next write of a register, and writes in order. What comes from nowhere is written
        where it is read."""
        readers: dict[int, list[int]] = {}
        writer: dict[int, int] = {}

        def write(i: int, values: Sequence[SSAValue]) -> None:
            for n in _numbers(values):
                for j in readers.pop(n, ()):
                    self._edge(j, i, self.reading[j])
                if n in writer:
                    self._edge(writer[n], i, self.latencies[writer[n]] if self._is_late(writer[n]) else 1)
                writer[n] = i

        for i, op in enumerate(self.ops):
            operands = internals.operands(op)
            write(i, [v for v in operands if isinstance(v.owner, UndefinedOp) and v.owner.parent is op.parent])
            for n in _numbers(operands):
                readers.setdefault(n, []).append(i)
                if n in writer:
                    self._edge(writer[n], i, 1)
            write(i, op.results)

    def _is_late(self, i: int) -> bool:
        timing = self.timings[i]
        return timing is not None and timing.writes_late

    def _add_carried(self, block: Block) -> None:
        """Uses of a loop's argument before its next value, so that both can share a register."""
        last = block.last_op
        if last is None:
            return
        for successor, values in zip(last.successors, forwarded(last), strict=False):
            for argument, value in zip(successor.args, values, strict=False):
                i = self.position.get(value.owner) if isinstance(value.owner, Operation) else None
                if i is None:
                    continue
                for user, _ in internals.uses(argument):
                    j = self.position.get(user, i)
                    if j < i:
                        self._edge(j, i, 1)

    def _add_memory(self, facts: KernelFacts, pointers: Mapping[SSAValue, int]) -> None:
        """Accesses that may touch the same bytes, and what orders all of them, stay in order."""
        fence: int | None = None
        since: list[tuple[int, Access | None]] = []
        for i, op in enumerate(self.ops):
            found = effects(op)
            this = access(op, pointers)
            orders = this is None and (found.ordered or found.pinned or found.clock)
            if this is None and not orders and (found.stores or found.loads - UNCHANGING):
                this = Access(found.loads | found.stores, bool(found.stores), (op,), 0, 1, None, False)
            if this is None and not orders and not found.warp:
                continue
            if fence is not None:
                self._edge(fence, i, 1)
            full = orders or len(since) >= WINDOW
            for j, other in since:
                if full or (this is not None and other is not None and (this.writes or other.writes) and may_overlap(this, other, facts)):
                    self._edge(j, i, 1)
            if full:
                fence, since = i, []
            since.append((i, this))

    def _keep_loads(self) -> None:
        """Where registers are chosen, loads from global memory keep their order, which is one in which results are needed: what lines
        are asked for one after the other matters to the caches (stencil3d7, 4 % slower on an H200 without this rule)."""
        loads = [i for i, op in enumerate(self.ops) if isinstance(op, SassInstruction) and op.MNEMONIC == "LDG" and _numbers(op.results)]
        for before, after in pairwise(loads):
            self._edge(before, after, 1)


def overwritten(op: Operation) -> Sequence[SSAValue]:
    """The values whose registers `op` writes: kept ones, and those of operands that are read and written."""
    if not isinstance(op, SassInstruction):
        return ()
    values = list(op.kept)
    if not op.template.data.narrow:
        reads = iter(op.reads)
        for hole in op.template.data.holes:
            taken = [next(reads) for _ in range(hole.width * hole.reads)]
            values += taken if hole.writes else []
    return values


class _Form(NamedTuple):
    """What the text of an operation says of its time."""

    timing: Timing | None
    latency: int
    reading: int


def _form(op: Operation, machine: Machine) -> _Form:
    if not isinstance(op, SassInstruction):
        return _Form(None, 0, 1)
    return _form_of(machine, op.MNEMONIC, op.modifiers.data if op.modifiers is not None else "", op.template)


@cache
def _form_of(machine: Machine, mnemonic: str, modifiers: str, template: TemplateAttr) -> _Form:
    instruction = sample(mnemonic, modifiers, template)
    timing = machine.timing(instruction)
    return _Form(timing, machine.usual_latency(instruction), machine.cost(instruction).read if timing.reads_late else 1)


def _numbers(values: Sequence[SSAValue]) -> list[int]:
    """The registers of those values that have one."""
    return [n for v in values if (n := number_of(v)) is not None]
