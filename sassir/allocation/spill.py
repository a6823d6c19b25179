"""Spill: let values leave their registers where more live than there are, and bring them back before they are read.

A value that leaves is stored once, right behind its definition; a constant is made again instead, and so is a comparison with one.
A block argument that is in no register at the start of its block shares the slot of the values passed to it, where live ranges allow that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from sassir.allocation.edges import ends_of_runs, is_before, put_block
from sassir.allocation.ranges import Ranges
from sassir.allocation.registers import AllocationError
from sassir.allocation.residence import Residence
from sassir.allocation.storage import REFUGE, RegisterStorage, Slot, Storage, number_slots
from sassir.analysis.effects import effects
from sassir.analysis.liveness import home
from sassir.dialect import internals
from sassir.dialect.edges import forwarded, keep_arguments, own_operands
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.dialect.registers import P, R
from sassir.dialect.syntax import written
from sassir.rewrite.build import instruction
from sassir.rewrite.reconstruct import reconstruct

_ANYTHING = {
    "R": "MOV =R, RZ",
    "UR": "UMOV =UR, URZ",
    "P": "PLOP3.LUT =P, PT, PT, PT, PT, 0x8, 0x0",
    "UP": "UPLOP3.LUT =UP, UPT, UPT, UPT, UPT, 0x8, 0x0",
}
"""What stands for a register that nothing was put into."""


class _Edge(NamedTuple):
    """What has to happen where control goes from one block to another."""

    terminator: Operation
    successor: int
    loads: list[SSAValue]
    """Values that the other block has in registers."""
    passed: list[tuple[int, SSAValue]]
    """Values that become the arguments with these numbers, and have to be loaded for it."""
    transfers: list[tuple[SSAValue, SSAValue, bool]]
    """Argument in memory, the value that it stands for, and whether that is in a register. What nothing was put into is none of them, but
    where a register is the slot: that needs a value on every path."""


class Spiller:
    """One round of spilling for the values of one register file."""

    def __init__(self, kernel: KernelOp, residence: Residence, ranges: Mapping[SSAValue, Ranges]) -> None:
        self.kernel = kernel
        self.residence = residence
        self.flow = flow = residence.flow
        self._ranges = ranges
        self._slots: dict[SSAValue, Slot] = {}
        self._undefined = set(flow.blocks[0].args if not flow.cfg.predecessors[0] else ())
        self._dropped = self._arguments_without_register()
        self._edges = [edge for b in range(len(flow.blocks)) for edge in self._edges_from(b)]
        self._ends = ends_of_runs(flow.blocks)
        self._definitions: dict[SSAValue, SSAValue] = {}
        """For each load, what names the value in its uses."""
        self._latest: dict[SSAValue, SSAValue] = {}
        """The last load of each value."""
        self._loaded: dict[Operation, dict[SSAValue, SSAValue]] = {}
        """What is loaded right before a terminator, perhaps for several of its ways."""
        self._stand_ins: dict[SSAValue, SSAValue] = {}
        """What names an argument that is no argument any more."""

    def run(self, make_storage: Callable[[int], Storage]) -> int:
        """Change the kernel. `make_storage` makes room for a number of slots. Returns how many loads were added."""
        self._share_slots()
        stored = self._values_to_store()
        count = number_slots(list(dict.fromkeys(self._slots.values())))
        storage = make_storage(count) if count else None
        if storage is not None and not isinstance(storage, RegisterStorage):
            self._check_reached(stored)
        for value in stored:
            assert storage is not None
            _put_behind(value, storage.store(value, self._slots[value]))
        for op, values in self.residence.reloads.items():
            assert op.parent is not None
            op.parent.insert_ops_before([self._load(value, storage) for value in values], op)
        for edge in self._edges:
            self._add_to_edge(edge, storage)
        self._drop_arguments()
        loads = len(self._definitions)
        stores = storage.definitions if isinstance(storage, RegisterStorage) else {}
        reconstruct(self.kernel.body, {**self._definitions, **stores}, lambda _, variable: variable.type)
        self._drop_made_again()
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
                elif self._dropped.get(argument) and (value not in self._undefined or self.residence.file in REFUGE):
                    edge.transfers.append((argument, value, value in resident))
            if edge.loads or edge.passed or edge.transfers:
                found.append(edge)
        return found

    def _slot(self, value: SSAValue) -> Slot:
        found = self._slots.get(value)
        if found is None:
            found = self._slots[value] = Slot(value, self._ranges[value].copy())
        return found

    def _needs_slot(self, value: SSAValue) -> bool:
        """The value cannot be made again: it is no constant, and something was put into it."""
        return value not in self._undefined and not can_be_made_again(value)

    def _share_slots(self) -> None:
        """One slot for an argument in memory and the values passed to it, unless they live at once."""
        for edge in self._edges:
            for argument, value, _ in edge.transfers:
                one = self._slot(argument)
                if self._needs_slot(value) and (other := self._slot(value)) is not one and not one.ranges.meets(other.ranges):
                    few, many = (one, other) if len(one.values) < len(other.values) else (other, one)
                    many.join(few)
                    self._slots.update(dict.fromkeys(few.values, many))

    def _values_to_store(self) -> list[SSAValue]:
        """The values that have to be in their slots from their definitions on."""
        needed = [v for values in self.residence.reloads.values() for v in values]
        for edge in self._edges:
            needed += edge.loads + [v for _, v in edge.passed]
            needed += [v for a, v, in_register in edge.transfers if not in_register or self._slots.get(v) is self._slots[a]]
        in_memory = [v for v in dict.fromkeys(needed) if self._needs_slot(v)]
        for value in in_memory:
            self._slot(value)
        return [v for v in in_memory if v not in self._dropped]

    def _check_reached(self, stored: Sequence[SSAValue]) -> None:
        """What slots in memory are addressed from is made at the start of the kernel, so control must come from there."""
        places = [op.parent for op in self.residence.reloads] + [home(value) for value in stored]
        for block in places:
            if block is not None and not self.flow.cfg.dominates(0, self.flow.number[block]):
                raise AllocationError(f"cannot spill in block ^{block.name_hint}: no way leads there from the start of the kernel")

    def _load(self, value: SSAValue, storage: Storage | None) -> Operation:
        """An instruction that makes a value again."""
        result = 0
        if value in self._undefined:
            made: Operation = instruction(_ANYTHING[self.residence.file])
        elif can_be_made_again(value):
            assert isinstance(value.owner, Operation)
            made = value.owner.clone()
            made.properties.pop("origin", None)
            result = [r is value for r in value.owner.results].index(True)
        else:
            assert storage is not None
            made = storage.load(self._slot(value))
        self._latest[value] = made.results[result]
        self._definitions[made.results[result]] = self._variable(value)
        return made

    def _variable(self, value: SSAValue) -> SSAValue:
        """What names a value in its uses."""
        if value not in self._dropped:
            return value
        found = self._stand_ins.get(value)
        if found is None:
            found = self._stand_ins[value] = Block(arg_types=[value.type]).args[0]
        return found

    def _add_to_edge(self, edge: _Edge, storage: Storage | None) -> None:
        """All loads, then all stores: a slot may be read and written on the same edge."""
        transfers = [t for t in edge.transfers if self._slots.get(t[1]) is not self._slots[t[0]]]
        if not (edge.loads or edge.passed or transfers):
            return
        last, first = self._place(edge, bool(transfers))
        loaded = self._loaded.setdefault(last, {})
        needed = edge.loads + [v for _, v in edge.passed] + [v for _, v, in_register in transfers if not in_register]
        ops: list[Operation] = []
        for value in dict.fromkeys(needed):
            if value not in loaded:
                ops.append(self._load(value, storage))
                loaded[value] = self._latest[value]
        for argument, value, _ in transfers:
            assert storage is not None
            ops.append(storage.store(loaded.get(value, value), self._slots[argument]))
        assert last.parent is not None
        last.parent.insert_ops_before(ops, last)
        if edge.passed:
            operands = list(internals.operands(last))
            for k, value in edge.passed:
                operands[first + k] = loaded[value]
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

    def _drop_made_again(self) -> None:
        """Drop the originals that are made again at all their uses."""
        owners = [v.owner for v in self._latest if can_be_made_again(v)]
        for op in dict.fromkeys([o for o in owners if isinstance(o, Operation)]):
            if all(result.first_use is None for result in op.results):
                op.detach()
                op.erase()


def can_be_made_again(value: SSAValue) -> bool:
    """Its operation gives the same each time, and reads no register; or makes a predicate from one general register, which costs no more
    registers than the one that would save it.

    Not what the linker fills in: it does so once.
    """
    op = value.owner
    if not isinstance(op, SassInstruction) or not effects(op).pure or op.link is not None:
        return False
    operands = internals.operands(op)
    return not operands or (isinstance(value.type, P) and len(operands) == 1 and isinstance(operands[0].type, R))


def _put_behind(value: SSAValue, op: Operation) -> None:
    """Put an operation behind the definition of a value."""
    owner = value.owner
    if isinstance(owner, Operation):
        assert owner.parent is not None
        owner.parent.insert_op_after(op, owner)
    else:
        owner.insert_op_before(op, next(o for o in owner.ops if not isinstance(o, LabelOp)))
