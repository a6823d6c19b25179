"""What every value can be: sparse conditional propagation of constants and ranges over a kernel.

Wegman and Zadeck, Constant Propagation with Conditional Branches (1991), with intervals in place of constants: a branch
that is decided sends nothing along its other edge. An argument whose range grows with every turn of a loop is given up.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sassir.analysis.arguments import Argument, arguments, main_destination
from sassir.analysis.carries import carries_of, with_both_carries
from sassir.analysis.conditions import COMPARES, Learned, learn
from sassir.analysis.flow import turning_points
from sassir.analysis.folding import fold
from sassir.analysis.ranges import LARGEST, LARGEST_SIGNED, WORD, Range, joined, restrict
from sassir.analysis.sources import WIDER, known_words, parts, source
from sassir.analysis.transfer import SIGNED_TERMS, TRANSFER, load_constant, special_register, whole
from sassir.dialect import internals
from sassir.dialect.edges import decides, entered_from_elsewhere, forwarded, own_operands
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import UP, P, SassRegister

PATIENCE = 3
"""How often the range of a block argument may grow by itself; then it goes to the next number that something is compared with."""
GIVE_UP = 16
"""How often it may grow at all."""


class _Passed(NamedTuple):
    """What a terminator hands on: operands from number `first` on, each to an argument of one of its successors."""

    first: int
    to: Sequence[tuple[int, SSAValue]]


_KEEPS_ALL = _Passed(sys.maxsize, ())


class Propagation:
    """The ranges of all values of a kernel, under its facts."""

    def __init__(self, kernel: KernelOp, facts: KernelFacts, arch: str, bounded: Mapping[SSAValue, Range] | None = None) -> None:
        self.arch = arch
        self.bounded = bounded or {}
        """What arguments of loops can be, where the number of iterations tells it (`sassir.analysis.induction`)."""
        self.facts = facts
        self.words = known_words(facts, arch)
        self.used: set[str] = set()
        """The facts that some range rests on."""
        self.settled: set[str] = set()
        """The passes that found nothing to change in the kernel as it was."""
        self.reached: set[Block] = set()
        self._ranges: dict[SSAValue, Range] = {}
        self._growth: dict[SSAValue, int] = {}
        self._bounds: list[int] = [0, LARGEST_SIGNED, LARGEST]
        self._turning = turning_points(kernel.body)
        self._edges: set[tuple[Operation, int]] = set()
        """The ways that control can take: a terminator and the number of its successor."""
        self._learned: dict[tuple[Operation, int], Learned] = {}
        self._rooted = entered_from_elsewhere(kernel.body)
        self._blocks = [kernel.body.blocks[0]]
        self._note_bounds([end for known, _ in self.words.values() if known.value is None for end in known])
        self._operations: list[Operation] = [op for block in kernel.body.blocks for op in internals.operations(block)]
        self._position = {op: i for i, op in enumerate(self._operations)}
        self._waiting: list[int] = []
        self._is_waiting: set[int] = set()
        self._taken_apart: dict[SassInstruction, list[Argument]] = {}
        self._hands_on: dict[Operation, _Passed] = {}
        self._run()
        for block in [b for b in kernel.body.blocks if b in self._rooted]:
            self._blocks.append(block)
            self._run()

    def range(self, value: SSAValue) -> Range:
        """What `value` can be."""
        return self._ranges.get(value) or _whole(value)

    def word(self, value: SSAValue) -> int | None:
        """The number that `value` is, if it is only one."""
        found = self._ranges.get(value)
        return found.low if found is not None and found.low == found.high else None

    def constant(self, bank: int, offset: int) -> int | None:
        """The word at a place of constant memory, if a fact tells it."""
        return self.constant_range(bank, offset).value

    def constant_range(self, bank: int, offset: int) -> Range:
        """What the word at a place of constant memory can be."""
        if bank != 0 or offset not in self.words:
            return WORD
        found, fact = self.words[offset]
        self.used.add(fact)
        return found

    def guard(self, op: SassInstruction) -> bool | None:
        """Whether the guard of `op` holds; None if that is not known. True without a guard."""
        if op.constant_guard is not None:
            return not op.constant_guard.data.startswith("!")
        guard = op.guard
        if guard is None:
            return True
        value = self.word(guard)
        return None if value is None else bool(value) != (op.unless is not None)

    def _run(self) -> None:
        """Visit what is waiting, the first in the code first: most of what an operation reads is then settled."""
        while self._blocks or self._waiting:
            while self._blocks:
                self._enter(self._blocks.pop())
            while self._waiting and not self._blocks:
                position = heappop(self._waiting)
                self._is_waiting.discard(position)
                self._visit(self._operations[position])

    def _enter(self, block: Block) -> None:
        if block in self.reached:
            return
        self.reached.add(block)
        if block in self._rooted:
            for argument in block.args:
                self._raise(argument, _whole(argument))
        for op in internals.operations(block):
            self._await(op)

    def _await(self, op: Operation) -> None:
        if op.parent in self.reached and (position := self._position[op]) not in self._is_waiting:
            self._is_waiting.add(position)
            heappush(self._waiting, position)

    def _visit(self, op: Operation) -> None:
        if isinstance(op, SassInstruction) and op.results:
            for result, found in zip(op.results, self._results(op), strict=True):
                self._raise(result, found)
            if op.MNEMONIC in COMPARES or len(op.results) > 2:
                for result in op.results:  # what is learned from a comparison, or from two carries together, is in none of their ranges
                    for user, _ in internals.uses(result):
                        self._await(user)
        if internals.successors(op):
            self._leave(op)

    def _leave(self, op: Operation) -> None:
        successors = internals.successors(op)
        taken: Sequence[int] = range(len(successors))
        if decides(op) and (guard := self.guard(op)) is not None:
            taken = [0] if guard else [1]
        values = forwarded(op)
        for i in taken:
            successor = successors[i]
            learned = self._learned[op, i] = learn(op, i, self)
            for argument, value in zip(successor.args, values[i], strict=False):
                self._raise(argument, self._restricted(value, learned))
            if (op, i) not in self._edges:
                self._edges.add((op, i))
                self._blocks.append(successor)

    def _restricted(self, value: SSAValue, learned: Learned) -> Range | None:
        """What `value` can be where that has been learned; None if it is not computed yet."""
        found = self._ranges.get(value)
        if found is not None:
            for relation, bound, signed in learned.get(value, ()):
                found = restrict(found, relation, bound, signed)
        return found

    def _raise(self, value: SSAValue, found: Range | None) -> None:
        """Let `value` be what it was or `found`, and so the arguments that it is passed to, and those that they are passed to."""
        work = [(value, found)]
        while work:
            value, found = work.pop()
            known = self._ranges.get(value)
            found = self.bounded.get(value, found) if self.bounded and found is not None else found
            new = found if known is None or found is None or found == known else known.join(found)
            if new is None or new == known:
                continue
            if isinstance(value, BlockArgument) and value.block in self._turning:
                new = self._widen(value, new)
            self._ranges[value] = new
            work += reversed(self._users(value))

    def _users(self, value: SSAValue) -> list[tuple[SSAValue, Range | None]]:
        """Let the operations that read `value` wait. Returns the arguments that it is passed to, and as what."""
        arguments: list[tuple[SSAValue, Range | None]] = []
        for op, index in internals.uses(value):
            passed = self._passed(op) if internals.successors(op) else _KEEPS_ALL
            if index < passed.first:
                self._await(op)
                continue
            i, argument = passed.to[index - passed.first]
            if (op, i) in self._edges:
                arguments.append((argument, self._restricted(value, self._learned[op, i])))
        return arguments

    def _passed(self, op: Operation) -> _Passed:
        """Which operands of a terminator it hands on, and to where."""
        found = self._hands_on.get(op)
        if found is None:
            to = [(i, a) for i, (s, v) in enumerate(zip(internals.successors(op), forwarded(op), strict=True)) if v for a in s.args]
            found = self._hands_on[op] = _Passed(len(own_operands(op)), to)
        return found

    def _widen(self, argument: SSAValue, found: Range) -> Range:
        """The range to go on with for a block argument that grew again."""
        count = self._growth[argument] = self._growth.get(argument, 0) + 1
        if count <= PATIENCE or isinstance(argument.type, P | UP):
            return found
        if count > GIVE_UP:
            return _whole(argument)
        low = self._bounds[bisect_right(self._bounds, found.low) - 1]
        return Range(low, self._bounds[bisect_left(self._bounds, found.high)])

    def operands(self, op: SassInstruction) -> list[Argument]:
        """Its operands, taken apart once."""
        found = self._taken_apart.get(op)
        if found is None:
            found = self._taken_apart[op] = arguments(op)
        return found

    def _results(self, op: SassInstruction) -> Sequence[Range]:
        guard = self.guard(op)
        kept = [] if guard else [self.range(v) for v in op.kept]
        if guard is False:
            return kept or [_whole(r) for r in op.results]
        found = self._compute(op) or [_whole(r) for r in op.results]
        return found if guard else [a.join(b) for a, b in zip(found, kept, strict=True)] if kept else [_whole(r) for r in op.results]

    def _compute(self, op: SassInstruction) -> Sequence[Range] | None:
        folded = fold(op, [self.word(v) for v in op.reads], self.constant, self.arch)
        if folded is not None:
            return [Range(value, value) for value in folded]
        if op.MNEMONIC in ("S2R", "S2UR"):
            return [self._special_register(self.operands(op)[1].text)]
        modifiers = parts(op.modifiers.data) if op.modifiers is not None else []
        if op.MNEMONIC in ("LDC", "ULDC", "LDCU"):
            return self._load_constant(self.operands(op)[1].constant, modifiers, len(op.results))
        mnemonic = op.MNEMONIC if op.MNEMONIC in TRANSFER else op.MNEMONIC.removeprefix("U")
        transfer = TRANSFER.get(mnemonic)
        if transfer is None:
            return None
        if not WIDER.isdisjoint(modifiers):
            return None
        operands = self.operands(op)
        addend = 2 if "WIDE" in modifiers else None
        read = [a for a in operands if not a.written]
        sources = [self.operand(a, mnemonic in SIGNED_TERMS, 2 if k == addend else 1) for k, a in enumerate(read)]
        if mnemonic == "ISETP":
            self._note_bounds([r.value for r in sources[:2] if r.value is not None])
        elif mnemonic == "IADD3" and modifiers == ["X"]:
            sources = with_both_carries(operands, sources, self)
        found = transfer(modifiers, sources)
        if found is None:
            return None
        known = dict(zip(main_destination(operands).results, found, strict=False))
        if mnemonic == "IADD3":
            known |= carries_of(op, modifiers, read, self)
        return [known.get(result) or _whole(result) for result in op.results]

    def _special_register(self, name: str) -> Range:
        if "TID" in name or "CTAID" in name:
            self.used.update([n for n, known in (("block", self.facts.block), ("grid", self.facts.grid)) if known is not None])
        return special_register(name, self.facts.block, self.facts.grid)

    def _note_bounds(self, numbers: Iterable[int]) -> None:
        """Remember the numbers at which a range may end because something is, or may be, compared with them."""
        for number in numbers:
            for bound in (number - 1, number, number + 1):
                if 0 <= bound <= LARGEST and self._bounds[bisect_left(self._bounds, bound)] != bound:
                    insort(self._bounds, bound)

    def _load_constant(self, place: tuple[int, int] | None, modifiers: Sequence[str], count: int) -> Sequence[Range] | None:
        if place is None:
            return None
        return load_constant(modifiers, [self.constant_range(place[0], place[1] + 4 * i) for i in range(count)])

    def operand(self, argument: Argument, signed: bool, width: int = 1) -> Range:
        """The range of a source operand, of a pair as one number. `width`: the words that it takes of constant memory."""
        text = source(argument.operand)
        if text.number is not None:
            return text.signed_number if signed else text.number
        if text.constant is not None and not argument.values:
            bank, offset = text.constant
            found = joined([self.constant_range(bank, offset + 4 * i) for i in range(width)])
        elif not text.plain:
            return WORD
        elif len(argument.values) == 1:
            found = self.range(argument.values[0])
            if text.negative and isinstance(argument.values[0].type, P | UP):
                return Range(1 - found.high, 1 - found.low)
        else:
            found = joined([self.range(v) for v in argument.values])
        if not text.negative:
            return found
        return Range(-found.high, -found.low) if signed else WORD


def _whole(value: SSAValue) -> Range:
    assert isinstance(value.type, SassRegister)
    return whole(value.type.FILE)
