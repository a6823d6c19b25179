"""Rearrange the live values before an operation, so that its groups lie in a row and its results have room.

Colombet, Boissinot, Brisk, Hack and Rastello, Graph-Coloring and Treescan Register Allocation Using Repairing (2011): values
are moved where a constraint asks for it, instead of being kept apart beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xdsl.ir import SSAValue

from sassir import isa
from sassir.allocation.demands import Demands, Group, Results
from sassir.allocation.registers import NoRoomError, file_bits, fixed, is_aligned, lowest, members, span, starts
from sassir.allocation.state import State
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import FILES, file_of
from sassir.dialect.syntax import written

Wish = Callable[[SSAValue], int | None]
"""The register that a value would like most."""


class Move(NamedTuple):
    """One copy of a parallel copy: all sources are read before any target is written."""

    value: SSAValue
    source: int
    target: int
    operands: tuple[int, ...]
    """The operands that read the copy while the value also stays where it is; empty if the value itself moves."""


class Repair:
    """The rearrangement before one operation. It changes the state as it decides; `moves` tells the difference."""

    def __init__(self, state: State, op: SassInstruction, demands: Demands, dying: Sequence[SSAValue]) -> None:
        self.state = state
        self.op = op
        self.operands = internals.operands(op)
        self.demands = demands
        self.dying = dying
        self._before = dict(state.place)
        self._copies: dict[int, Move] = {}
        """By target: a value that also stays where it is."""
        self._settled = 0
        """Registers that are as they must be."""
        self._claimed: set[SSAValue] = set()
        """Values that a group has, so that no other group can have them somewhere else."""

    def run(self, wish: Wish) -> list[int]:
        """Arrange everything. Returns the first register of each group of results. Raises NoRoomError."""
        firsts = self._arrange_groups(wish)
        tied = [None if r.group is None else firsts[r.group] for r in self.demands.results]
        taken = 0
        for group, first in zip(self.demands.results, tied, strict=True):
            taken |= span(first, group.width) if first is not None else 0
        chosen: list[int] = []
        for group, first in zip(self.demands.results, tied, strict=True):
            chosen.append(self._make_room(group, taken, wish) if first is None else first)
            taken |= span(chosen[-1], group.width)
        return chosen

    def moves(self) -> list[Move]:
        """The parallel copy that leads to the new state."""
        now = self.state.place
        moved = [Move(v, n, now[v], ()) for v, n in self._before.items() if now[v] != n]
        return moved + list(self._copies.values())

    def _arrange_groups(self, wish: Wish) -> dict[int, int]:
        """Put every group of operands in a row. Returns the first register of each, by its index."""
        found: dict[int, int] = {}
        for value, register in self.state.place.items():
            if fixed(value) is not None:
                self._settled |= 1 << register
        for i, group in enumerate(self.demands.groups):
            values = self._values(group)
            first = self.state.place[values[0]]
            if is_met(values, first, self.state.place) and not any([self._is_taken(v, group) for v in values]):
                found[i] = first
                self._settled |= span(first, group.width)
                self._claimed.update(values)
        for i, group in enumerate(self.demands.groups):
            if i not in found:
                found[i] = self._arrange(group, wish)
        return found

    def _values(self, group: Group) -> Sequence[SSAValue]:
        return self.operands[group.first : group.first + group.width]

    def _is_taken(self, value: SSAValue, group: Group) -> bool:
        """The group cannot have the value itself: another group has it, or it lives on while results are written to its register."""
        return value in self._claimed or (group.result is not None and value not in self.dying)

    def _must_copy(self, value: SSAValue, group: Group) -> bool:
        """The value has to stay where it is as well."""
        return self._is_taken(value, group) or fixed(value) is not None

    def _arrange(self, group: Group, wish: Wish) -> int:
        values = self._values(group)
        first = self._cheapest(group, wish(values[0]))
        self._settled |= span(first, group.width)
        for i in self._order(values, first):
            value, target = values[i], first + i
            if self._must_copy(value, group):
                self._vacate(target)
                index = group.first + i
                operands = (index,) if group.kept is None else (index, group.kept + i)
                self._copies[target] = Move(value, self._before[value], target, operands)
                self.state.free &= ~(1 << target)
                continue
            if self.state.place[value] != target:
                self._exchange(value, target)
            self._claimed.add(value)
        return first

    def _order(self, values: Sequence[SSAValue], first: int) -> list[int]:
        """The places of a group, those first that hold their value already: a value in several places stays in such a one."""
        return sorted(range(len(values)), key=lambda i: self.state.place[values[i]] != first + i)

    def _cheapest(self, group: Group, wish: int | None) -> int:
        """Where the group costs the fewest copies."""
        values = self._values(group)
        allowed = self.state.allowed & ~self._settled & ~self._copied()
        candidates = members(starts(allowed, file_of(values[0]), group.width, isa.alignment(group.width)))
        found = min(candidates, key=lambda first: (self._cost(group, first), first != wish, first), default=None)
        if found is None:
            raise self._no_room(values[0])
        return found

    def _cost(self, group: Group, first: int) -> int:
        values, cost = self._values(group), 0
        claimed: set[SSAValue] = set()
        for i in self._order(values, first):
            value, occupant = values[i], self.state.holder.get(first + i)
            if occupant is not value or value in claimed or self._must_copy(value, group):
                cost += 1 + (occupant is not None and (occupant is value or occupant not in values))
            claimed.add(value)
        return cost

    def _make_room(self, group: Results, taken: int, wish: Wish) -> int:
        """Free registers for results, moving what lives on. `taken`: the registers of other results."""
        value, state = self.op.results[group.first], self.state
        wanted, only = wish(value), fixed(value)
        dying = 0
        for other in self.dying:
            dying |= 1 << state.place[other]
        hard = taken | self._settled & ~dying | self._copied()
        if only is not None:
            candidates = 0 if span(only, group.width) & hard else 1 << only
        else:
            candidates = starts(state.allowed & ~hard, file_of(value), group.width, isa.alignment(group.width))
        if not candidates:
            raise self._no_room(value)
        in_use = ~state.free & ~dying
        first = min(members(candidates), key=lambda n: ((span(n, group.width) & in_use).bit_count(), n != wanted, n))
        room = span(first, group.width)
        for register in range(first, first + group.width):
            occupant = state.holder.get(register)
            if occupant is not None and occupant not in self.dying:
                self._vacate(register, room | taken, exchange=True)
        return first

    def _copied(self) -> int:
        copied = 0
        for target in self._copies:
            copied |= 1 << target
        return copied

    def _exchange(self, value: SSAValue, target: int) -> None:
        """Bring a value to a register; what was there takes its place."""
        state = self.state
        source, occupant = state.place[value], state.holder.get(target)
        state.drop(value)
        if occupant is not None:
            state.drop(occupant)
            state.put(occupant, source)
        state.put(value, target)

    def _vacate(self, register: int, room: int = 0, exchange: bool = False) -> None:
        """Move what is in `register` to a free one outside of `room`; with `exchange`, also to that of a value that dies."""
        state = self.state
        value = state.holder.get(register)
        if value is None:
            return
        file = file_of(value)
        free = state.free & ~self._settled & ~room & ~(1 << register) & file_bits(file, FILES[file].COUNT)
        if free:
            self._exchange(value, lowest(free))
            return
        for other in self.dying if exchange else ():
            place = state.place[other]
            if file_of(other) == file and other not in self._claimed and not (room | self._settled) >> place & 1:
                self._exchange(value, place)
                return
        raise self._no_room(value)

    def _no_room(self, value: SSAValue) -> NoRoomError:
        file = file_of(value)
        return NoRoomError(f"`{written(self.op)}`: its operands and results do not fit into the {file} registers, in whatever order", file)


def is_met(values: Sequence[SSAValue], first: int, place: dict[SSAValue, int]) -> bool:
    """Whether the values are in a row from register `first` on, which is aligned."""
    return is_aligned(first, len(values)) and all([place[v] == first + i for i, v in enumerate(values)])

