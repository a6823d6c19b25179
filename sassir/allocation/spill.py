"""Spill: let values leave their registers where more live than there are, and bring them back before they are read.

A value that leaves is stored once, right behind its definition; a constant is made again instead. A block argument that is in no
register at the start of its block shares the slot of the values passed to it, where live ranges allow that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from sassir.allocation.edges import ends_of_runs, is_before, put_block
from sassir.allocation.ranges import Ranges
from sassir.allocation.registers import AllocationError
from sassir.allocation.residence import Residence
from sassir.allocation.storage import RegisterStorage, Slot, Storage, number_slots
from sassir.analysis.effects import effects
from sassir.dialect import internals
from sassir.dialect.edges import forwarded, keep_arguments, own_operands
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.dialect.syntax import written
from sassir.rewrite.build import instruction
from sassir.rewrite.reconstruct import reconstruct

_ANYTHING = {"R": "MOV =R, RZ", "UR": "UMOV =UR, URZ", "P": "PLOP3.LUT =P, PT, PT, PT, PT, 0x8, 0x0", "UP": "UPLOP3.LUT =UP, UPT, UPT, UPT, UPT, 0x8, 0x0"}
"""What stands for a register that nothing was put into."""


class _Edge(NamedTuple):
    """What has to happen where control goes from one block to another."""

    terminator: Operation
    successor: int
    loads: list[SSAValue]
    """Values that the other block has in registers."""
    passed: list[tuple[int, SSAValue]]
    """Values that become arguments with these numbers, and have to be loaded for it."""
    transfers: list[tuple[SSAValue, SSAValue, bool]]
    """Argument in memory, value that it stands for, whether that is in a register."""


class Spiller:
    """One round of spilling for the values of one register file."""

    def __init__(self, kernel: KernelOp, residence: Residence, ranges: Mapping[SSAValue, Ranges]) -> None:
        self.kernel = kernel
        self.residence = residence
        self.flow = residence.flow
        self._ranges = ranges
        self._slots: dict[SSAValue, Slot] = {}
        self._ends = ends_of_runs(self.flow.blocks)
        self._undefined = set(self.flow.blocks[0].args) if not self.flow.cfg.predecessors[0] else set[SSAValue]()
        self._dropped = self._arguments_without_register()
        self._edges = [edge for b in range(len(self.flow.blocks)) for edge in self._edges_from(b)]
        self._stored: dict[SSAValue, None] = {}
        """The values that are stored behind their definition."""
        self._definitions: dict[SSAValue, SSAValue] = {}
        self._latest: dict[SSAValue, SSAValue] = {}
        """The last load of each value."""
        self._stand_ins: dict[SSAValue, SSAValue] = {}
        """What names an argument that is no argument any more."""

    def run(self, make_storage: Callable[[int], Storage]) -> int:
        """Change the kernel. `make_storage` makes room for a number of slots. Returns how many loads were added."""
        self._share_slots()
        self._find_stored()
        slots = number_slots(list(dict.fromkeys(self._slots.values())))
        storage = make_storage(slots) if slots else None
        for value in self._stored:
            self._store_behind(value, storage.store(value, self._slot(value)))
        for op, values in self.residence.reloads.items():
            assert op.parent is not None
            for value in values:
                op.parent.insert_op_before(self._load(value, storage), op)
        for edge in self._edges:
            self._add_to_edge(edge, storage)
        self._drop_arguments()
        if isinstance(storage, RegisterStorage):
            self._definitions |= storage.definitions
        loads = len(self._definitions)
        reconstruct(self.kernel.body, self._definitions, lambda _, variable: variable.type)
        return loads

    def _arguments_without_register(self) -> dict[SSAValue, bool]:
        """The arguments that are in no register when their block starts, and whether they are read at all."""
        found: dict[SSAValue, bool] = {}
        for b, block in enumerate(self.flow.blocks):
            for argument in block.args:
                if self.residence.uses.counts(argument) and argument not in self.residence.entry[b]:
                    found[argument] = argument in self.residence.uses.entry[b]
        return found

    def _edges_from(self, b: int) -> list[_Edge]:
        last, resident, found = self.flow.blocks[b].last_op, self.residence.exit[b], list[_Edge]()
        assert last is not None
        for i, (s, values) in enumerate(zip(self.flow.cfg.successors[b], self.residence.uses.passed[b], strict=False)):
            there, arguments = self.residence.entry[s], self.flow.blocks[s].args
            own = set(arguments)
            edge = _Edge(last, i, [v for v in there if v not in own and v not in resident], [], [])
            for k, (value, argument) in enumerate(zip(values, arguments, strict=True)):
                if argument in there and value not in resident:
                    edge.passed.append((k, value))
                elif self._dropped.get(argument):
                    edge.transfers.append((argument, value, value in resident))
            if edge.loads or edge.passed or edge.transfers:
                found.append(edge)
        return found

    def _slot(self, value: SSAValue) -> Slot:
        found = self._slots.get(value)
        if found is None:
            found = self._slots[value] = Slot(value, self._ranges[value].copy())
        return found

    def _is_free(self, value: SSAValue) -> bool:
        """The value costs no slot: it is a constant, or nothing in particular."""
        return value in self._undefined or is_constant(value)

    def _share_slots(self) -> None:
        for edge in self._edges:
            for argument, value, _ in edge.transfers:
                if self._is_free(value):
                    continue
                one, other = self._slot(argument), self._slot(value)
                if one is not other and not one.ranges.meets(other.ranges):
                    if len(one.values) < len(other.values):
                        one, other = other, one
                    one.ranges.add(other.ranges)
                    one.values += other.values
                    self._slots.update(dict.fromkeys(other.values, one))

    def _find_stored(self) -> None:
        needed = [v for values in self.residence.reloads.values() for v in values]
        for edge in self._edges:
            needed += edge.loads + [v for _, v in edge.passed]
            needed += [v for a, v, in_register in edge.transfers if not in_register or self._slots.get(v) is self._slots.get(a)]
        for value in needed:
            if not self._is_free(value) and value not in self._dropped:
                self._stored[value] = None
            if not self._is_free(value):
                self._slot(value)

    def _store_behind(self, value: SSAValue, store: Operation) -> None:
        """Put a store behind the definition of a value."""
        owner = value.owner
        if isinstance(owner, Operation):
            assert owner.parent is not None
            owner.parent.insert_op_after(store, owner)
        else:
            owner.insert_op_before(store, next(op for op in owner.ops if not isinstance(op, LabelOp)))

    def _load(self, value: SSAValue, storage: Storage) -> Operation:
        """An instruction that makes a value again."""
        if value in self._undefined:
            made: Operation = instruction(_ANYTHING[self.residence.file.FILE])
            result = made.results[0]
        elif is_constant(value):
            assert isinstance(value.owner, Operation)
            made = value.owner.clone()
            made.properties.pop("origin", None)
            result = made.results[list(value.owner.results).index(value)]
        else:
            made = storage.load(self._slot(value))
            result = made.results[0]
        self._definitions[result] = self._variable(value)
        self._latest[value] = result
        return made

    def _variable(self, value: SSAValue) -> SSAValue:
        """What names a value in its uses."""
        if value not in self._dropped:
            return value
        found = self._stand_ins.get(value)
        if found is None:
            found = self._stand_ins[value] = Block(arg_types=[value.type]).args[0]
        return found

    def _add_to_edge(self, edge: _Edge, storage: Storage) -> None:
        """All loads, then all stores: a slot may be read and written on the same edge."""
        transfers = [t for t in edge.transfers if self._slots.get(t[1]) is not self._slot(t[0])]
        if not (edge.loads or edge.passed or transfers):
            return
        last, first = self._place(edge, bool(transfers))
        operands = list(internals.operands(last))
        ops = [self._load(value, storage) for value in edge.loads]
        for k, value in edge.passed:
            ops.append(self._load(value, storage))
            operands[first + k] = self._latest[value]
        stores: list[Operation] = []
        for argument, value, in_register in transfers:
            if not in_register:
                ops.append(self._load(value, storage))
            stores.append(storage.store(value if in_register else self._latest[value], self._slot(argument)))
        assert last.parent is not None
        last.parent.insert_ops_before(ops + stores, last)
        if edge.passed:
            last.operands = operands

    def _place(self, edge: _Edge, stores: bool) -> tuple[Operation, int]:
        """The operation before which something happens on an edge, and the index of the first operand that it passes there.

        A load before a computed branch does no harm on its other ways; a store might.
        """
        terminator, i = edge.terminator, edge.successor
        if not is_before(terminator, i):
            return put_block(terminator, i, self._ends), 0
        if stores and len(terminator.successors) > 1:
            raise AllocationError(f"`{written(terminator)}` goes to computed places, on the way to which values would have to be stored")
        return terminator, len(own_operands(terminator)) + sum(len(values) for values in forwarded(terminator)[:i])

    def _drop_arguments(self) -> None:
        for argument in self._dropped:
            argument.replace_all_uses_with(self._variable(argument))
        keep_arguments(self.kernel.body, lambda block: [i for i, a in enumerate(block.args) if a not in self._dropped])


def is_constant(value: SSAValue) -> bool:
    """The value can be made again anywhere: its operation reads no register and gives the same each time."""
    op = value.owner
    return isinstance(op, SassInstruction) and not internals.operands(op) and effects(op).pure
