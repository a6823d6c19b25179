"""One side executed with terms, from a point to where control depends on something that is not known.

What has effects beyond registers and plain memory (barriers, shuffles, atomics, clocks …) is an event: nothing is known of its
results but that the same event with the same inputs gives the same ones on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from sassir import isa
from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.operand import ZERO_REGISTERS, Operand
from sassir.emulator.address import following
from sassir.emulator.control import is_predicate, target_of
from sassir.verify.symbolic import terms, words
from sassir.verify.symbolic.accesses import Accesses
from sassir.verify.symbolic.side import (
    Side,
    UnknownError,
    blanked,
    reaches_local,
    registers_read,
    registers_written,
    simple_space,
    undefined,
    width_of,
)
from sassir.verify.symbolic.terms import FALSE, TRUE, Term

EXIT = -1
"""The place of a thread that has ended."""
FUEL = 20_000
"""Most instructions from one point to the next."""

_ZERO = {"RZ": terms.constant(0, 32), "URZ": terms.constant(0, 32), "PT": TRUE, "UPT": TRUE}
_BY_MASK = frozenset({"CONV", "DIV"})


class Event(NamedTuple):
    """Something with an effect."""

    place: int
    text: str
    inputs: tuple[Term, ...]
    memory: Mapping[str, Term]
    """What every space holds before it, if it may depend on that or change it."""


class Stop(NamedTuple):
    """Where control depends on something."""

    kind: Literal["exit", "branch", "loop"]
    """`loop` is a branch backwards that is always taken."""
    place: int
    condition: Term = TRUE
    taken: int = EXIT
    other: int = EXIT


class Run:
    """The execution of one side from a place on. Raises UnknownError for what is not followed."""

    def __init__(self, side: Side, origin: str, place: int, calls: tuple[int, ...], state: dict[str, Term], accesses: Accesses) -> None:
        """`origin` names the point, for what events give; `calls`: the places after calls that have not come back."""
        self.side, self.calls, self.state, self.accesses = side, calls, state, accesses
        self.events: list[Event] = []
        self._origin, self._place, self._fuel = origin, place, FUEL

    def follow(self, stop: Stop, taken: bool) -> None:
        """Go on from a branch of which it has turned out where it goes."""
        self._place = stop.taken if taken else stop.other

    def advance(self) -> Stop:
        """Execute up to the next stop; from a loop on if that was the last one."""
        while self._place != EXIT:
            if self._place >= len(self.side.code):
                raise UnknownError(f"the {self.side.name} goes on behind its last instruction")
            self._fuel -= 1
            if not self._fuel:
                raise UnknownError(f"more than {FUEL} instructions from one branch to the next")
            place, instruction = self._place, self.side.code[self._place]
            self._place += 1
            description = isa.describe(instruction.mnemonic, instruction.modifiers)
            if place in self.side.links:
                raise UnknownError(f"`{instruction.text}` is completed by the driver ({self.side.links[place]})")
            if description is None:
                raise UnknownError(f"`{instruction.text}` is not known")
            if description.control in (None, "converge"):
                self._execute(place, instruction)
            elif (stop := self._jump(place, instruction, description.control)) is not None:
                return stop
        return Stop("exit", len(self.side.code))

    def read(self, name: str) -> Term:
        """What a register, or a word of the stack, holds."""
        return _ZERO[name] if name in ZERO_REGISTERS else self.state.get(name, undefined(name))

    def _holds(self, operand: Operand | None) -> Term:
        if operand is None:
            return TRUE
        value = self.read(operand.registers[0])
        return terms.invert(value) if operand.negated else value

    def _jump(self, place: int, instruction: Instruction, control: str) -> Stop | None:
        operands = [o for o in (instruction.guard, *instruction.operands) if o is not None and is_predicate(o)]
        condition = TRUE
        for operand in operands:
            condition = terms.both(condition, self._holds(operand))
        if control == "exit":
            target = EXIT
        elif control == "branch" and "ANY" not in instruction.modifiers:
            target = target_of(place, instruction)
            if _BY_MASK & {*instruction.modifiers}:
                condition = terms.both(condition, self._event(place, instruction, ["decision"])[0])
        elif control in ("call", "return") and condition is TRUE:
            target = self._call(place, instruction) if control == "call" else self._return(place, instruction)
        else:
            raise UnknownError(f"`{instruction.text}` is not followed")
        if condition is FALSE:
            return None
        if condition is not TRUE:
            return Stop("branch", place, condition, target, place + 1)
        self._place = target
        return Stop("loop", place, TRUE, target) if EXIT < target <= place else None

    def _call(self, place: int, instruction: Instruction) -> int:
        if any(o.registers for o in instruction.operands):
            raise UnknownError(f"`{instruction.text}` is not followed")
        self.calls = (*self.calls, place + 1)
        return target_of(place, instruction)

    def _return(self, place: int, instruction: Instruction) -> int:
        """To the address in a register, which must be that of the last call."""
        register = next(o for o in instruction.operands if o.registers).registers[0]
        displacement = next((o.displacement for o in instruction.operands if o.displacement is not None), None)
        address = words.concat(self.read(following(register, 1)), self.read(register)).value
        if displacement is None or address is None or not self.calls:
            raise UnknownError(f"`{instruction.text}` goes to a place that is not known")
        *rest, expected = self.calls
        if address + INSTRUCTION_BYTES * place + displacement != INSTRUCTION_BYTES * expected:
            raise UnknownError(f"`{instruction.text}` does not go back to its call")
        self.calls = tuple(rest)
        return expected

    def _execute(self, place: int, instruction: Instruction) -> None:
        guard = self._holds(instruction.guard)
        if guard is FALSE or instruction.mnemonic in self.side.without_effect:
            return
        written = registers_written(instruction)
        space = simple_space(instruction)
        if space is not None:
            found = self.accesses.access(space, instruction, self, guard)
        elif _is_pure(instruction):
            found = self._pure(instruction, written)
        else:
            found = self._event(place, instruction, written, guard)
        for name, value in zip(written, found, strict=True):
            if name not in ZERO_REGISTERS:
                self.state[name] = value if guard is TRUE else terms.choose(guard, value, self.read(name))

    def _pure(self, instruction: Instruction, written: list[str]) -> Iterable[Term]:
        if instruction.mnemonic in ("S2R", "S2UR", "CS2R", "CS2UR"):
            name = instruction.operands[1].text
            return [self.side.special(name, i) for i in range(len(written))]
        if instruction.mnemonic in ("LDC", "ULDC", "LDCU"):
            return self.side.constants(instruction, self.read, len(written))
        return self.side.compute(instruction, {name: self.read(name) for name in registers_read(instruction)})

    def _event(self, place: int, instruction: Instruction, written: list[str], guard: Term = TRUE) -> list[Term]:
        """What the event gives is the same on both sides, as its name is made from the point and its number."""
        inputs = [guard, *[self.read(name) for name in registers_read(instruction)], *self.side.operand_constants(instruction)]
        name = f"{self._origin}.{len(self.events)}"
        touched = _touches_memory(instruction)
        self.events.append(Event(place, blanked(instruction), tuple(inputs), dict(self.accesses.memory) if touched else {}))
        if touched:
            self.accesses.forget(name, reaches_local(instruction))
        return [terms.passing(f"{name} {i}", 0 if n == "decision" else width_of(n)) for i, n in enumerate(written)]


def _is_pure(instruction: Instruction) -> bool:
    """Its results follow from its operands."""
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    assert row is not None
    effects = row.loads - {"constant"} or row.stores or row.warp or row.pinned or row.control
    return not (effects or isa.is_ordered(instruction) or isa.reads_clock(instruction))


def _touches_memory(instruction: Instruction) -> bool:
    """It reads or writes memory, orders accesses, or lets lanes meet that may have written."""
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    return row is None or bool(row.loads or row.stores or row.control) or isa.is_ordered(instruction)
