"""Two kernels executed side by side, with terms: is every thread bound to do the same in both?

A point is a pair of places that one thread comes to in the two kernels. From there both sides run until control depends on
something not known. They must have met the same events with equal inputs, hold equal memory, and branch on equal conditions;
the next points are the pairs of targets. What is known at a point is which registers, of either side, hold the same value, and
which hold a launch constant: optimistic value numbering over both kernels at once (Alpern, Wegman and Zadeck, POPL 1988) along
the product of their control flow (Zaks and Pnueli, CoVaC, FM 2008). Where the order of evaluation does not tell, z3 does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.verify.symbolic import terms
from sassir.verify.symbolic.accesses import LOCAL, Accesses
from sassir.verify.symbolic.memory import Apart
from sassir.verify.symbolic.run import EXIT, Event, Run, Stop
from sassir.verify.symbolic.side import SPACES, Side, undefined
from sassir.verify.symbolic.terms import MEMORY, Term

if TYPE_CHECKING:  # z3 takes half a second to load
    from sassir.verify.symbolic.solver import Solver

Key = TypeVar("Key")


class NotProvenError(Exception):
    """Why the two could not be shown to do the same."""


class Point(NamedTuple):
    """Where a thread is in both kernels: places, and the places after the calls that it is in."""

    places: tuple[int, int]
    calls: tuple[tuple[int, ...], tuple[int, ...]]

    def __str__(self) -> str:
        return "@" + "/".join([f"{place:x}{''.join([f'<{call:x}' for call in calls])}" for place, calls in zip(*self, strict=True)])


class Known(NamedTuple):
    """What is known at a point."""

    registers: tuple[dict[str, Term], dict[str, Term]]
    memory: dict[str, Term]
    """Of both sides: it is equal at every point."""


class Walk:
    """The walk from the entries of both kernels. Raises NotProvenError, UnknownError and the solver's OutOfTimeError."""

    def __init__(self, sides: tuple[Side, Side], solver: Solver, apart: Apart, stack: Term | None) -> None:
        """`stack`: see `Accesses`."""
        self.sides, self.solver, self.apart, self.stack = sides, solver, apart, stack
        self.cells = {space: min(side.cells[space] for side in sides) for space in SPACES.values()}
        self.known: dict[Point, Known] = {}
        self.stretches = 0

    def run(self) -> int:
        """Returns the number of points."""
        memory = {space: terms.variable(f"{space} at the start", MEMORY) for space in SPACES.values()}
        entry = Point((0, 0), ((), ()))
        self.known[entry] = Known(({}, {}), memory)
        waiting = [entry]
        while waiting:
            point = min(waiting, key=lambda p: p.places)
            waiting.remove(point)
            self.solver.left()
            self.stretches += 1
            for target, known in self._stretch(point):
                if self._meet(target, known) and target not in waiting:
                    waiting.append(target)
        return len(self.known)

    def _stretch(self, point: Point) -> list[tuple[Point, Known]]:
        """Run both sides from a point to their next stops; where they go on, and with what."""
        known = self.known[point]
        runs: list[Run] = []
        for side, place, calls, registers in zip(self.sides, point.places, point.calls, known.registers, strict=True):
            accesses = Accesses(known.memory, self.cells, self.apart, self.stack, side.descriptor)
            runs.append(Run(side, str(point), place, calls, dict(registers), accesses))
        left, right = runs
        stops = self._matching_stops(left, right)
        for a, b in zip(left.events, right.events, strict=False):
            self._check_event(a, b)
        if len(left.events) != len(right.events):
            more, run = (left.events, left) if len(left.events) > len(right.events) else (right.events, right)
            event = more[min(len(left.events), len(right.events))]
            raise NotProvenError(f"only the {run.side.name} has {self._text(run.side, event.place)}")
        self._check_memory(left.accesses.memory, right.accesses.memory, f"before {self._both(stops)}")
        after = Known((left.state, right.state), left.accesses.memory)
        return [(Point(places, (left.calls, right.calls)), after) for places in self._targets(*stops) if places != (EXIT, EXIT)]

    def _matching_stops(self, left: Run, right: Run) -> tuple[Stop, Stop]:
        """Advance both; a side goes on alone round a loop, or from a branch that always goes one way, that the other does not have."""
        a, b = left.advance(), right.advance()
        while not self._targets(a, b):
            if a.kind == "loop" or self._decided(left, a):
                a = left.advance()
            elif b.kind == "loop" or self._decided(right, b):
                b = right.advance()
            else:
                raise NotProvenError(f"control differs: {self._both((a, b))}")
        return a, b

    def _decided(self, run: Run, stop: Stop) -> bool:
        """Follow a branch that always goes one way; False if that is not known."""
        for way in (False, True):
            if stop.kind == "branch" and self.solver.equal(stop.condition, terms.constant(way, 0)):
                run.follow(stop, way)
                return True
        return False

    def _targets(self, a: Stop, b: Stop) -> Sequence[tuple[int, int]]:
        """Where both go on together; none if they do not stop for the same reason."""
        if a.kind != b.kind:
            return ()
        if a.kind != "branch":
            return [(a.taken, b.taken)]
        if self.solver.equal(a.condition, b.condition):
            return [(a.taken, b.taken), (a.other, b.other)]
        if self.solver.equal(a.condition, terms.invert(b.condition)):
            return [(a.taken, b.other), (a.other, b.taken)]
        return ()

    def _check_event(self, a: Event, b: Event) -> None:
        if a.text != b.text:
            raise NotProvenError(f"the order of effects differs: {self._both((a, b))}")
        if len(a.inputs) != len(b.inputs) or not all(self.solver.equal(x, y) for x, y in zip(a.inputs, b.inputs, strict=True)):
            raise NotProvenError(f"the operands are not proven equal: {self._both((a, b))}")
        self._check_memory(a.memory, b.memory, f"before {self._both((a, b))}")

    def _check_memory(self, a: Mapping[str, Term], b: Mapping[str, Term], where: str) -> None:
        for space in a:
            if not (space == LOCAL and self.stack is not None) and not self.solver.equal(a[space], b[space]):
                raise NotProvenError(f"{space} memory is not proven equal {where}")

    def _both(self, places: tuple[Event, Event] | tuple[Stop, Stop]) -> str:
        left, right = [self._text(side, found.place) for side, found in zip(self.sides, places, strict=True)]
        return f"{left} in the {self.sides[0].name}, {right} in the {self.sides[1].name}"

    @staticmethod
    def _text(side: Side, place: int) -> str:
        return f"`{side.code[place].text}` at {INSTRUCTION_BYTES * place:#x}" if place < len(side.code) else "the end"

    def _meet(self, point: Point, coming: Known) -> bool:
        """Keep at a point what is true on every way to it. Returns whether less is known than before."""
        old = self.known.get(point, coming)
        pairs: dict[tuple[int, str], tuple[Term, Term]] = {}
        for i in (0, 1):
            before, now = old.registers[i], coming.registers[i]
            for name in sorted(before.keys() | now.keys()):
                pairs[i, name] = before.get(name, undefined(name)), now.get(name, undefined(name))
        registers: tuple[dict[str, Term], dict[str, Term]] = ({}, {})
        for (i, name), term in _agree(pairs, lambda key: f"{point} {key[0]} {key[1]}").items():
            registers[i][name] = term
        spaces = {space: (old.memory[space], coming.memory[space]) for space in coming.memory}
        new = Known(registers, _agree(spaces, lambda space: f"{space} {point}"))
        changed = self.known.get(point) != new
        self.known[point] = new
        return changed


def _agree(pairs: Mapping[Key, tuple[Term, Term]], name: Callable[[Key], str]) -> dict[Key, Term]:
    """What each has on both ways: a launch constant, or something not known that is shared by all with the same pair."""
    shared: dict[tuple[Term, Term], Term] = {}
    found: dict[Key, Term] = {}
    for key, (old, new) in pairs.items():
        if old is new and old.steady:
            found[key] = old
        else:
            found[key] = shared.setdefault((old, new), terms.passing(name(key), old.width))
    return found
