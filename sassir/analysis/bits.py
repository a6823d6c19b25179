"""Where each bit of a value comes from: it is 0 or 1, or a copy of some bit of another value.

Exact for what only moves bits (PRMT, SHF, logic with known masks) and for sums as far as no two terms meet in a bit. The low
bits tell what an address is a multiple of; bits that are all those of another value, in order, tell that both are equal.

An optimistic fixpoint: an argument of a block has what all that is passed to it has in common, where what is not computed
yet does not count (as in Click, Combining Analyses, Combining Optimizations, 1995). A bit is given up at most once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.ir import Block, BlockArgument, SSAValue

from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.bit_moves import bit_moves
from sassir.analysis.bit_words import (
    COPY,
    NOTHING,
    UNKNOWN,
    Word,
    add,
    combine,
    common,
    multiply,
    negated,
    number,
    shifted,
    trailing_zeros,
)
from sassir.analysis.flow import flow_of
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import LARGEST, WORD, WORD_BITS
from sassir.dialect import internals
from sassir.dialect.edges import entered_from_elsewhere, forwarded
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import UR, R

_NO_FACTS = frozenset[str]()


class Bits:
    """The bits of all values of a kernel that are 32-bit registers."""

    def __init__(self, kernel: KernelOp, arch: str, known: Propagation | None = None) -> None:
        """`known`: what the values can be, and the facts of the launch; without it only the code itself tells."""
        self.arch = arch
        self.known = known
        self.aligned = {p.offset: p.align for p in known.facts.pointers} if known is not None else {}
        self._words: dict[SSAValue, Word] = {}
        self._facts: dict[SSAValue, frozenset[str]] = {}
        self._read: set[str] = set()
        """The facts that the operation at hand uses."""
        self._values: list[SSAValue] = []
        """The value with number n at n - 1."""
        self._own: dict[SSAValue, Word] = {}
        self._run(kernel)

    def word(self, value: SSAValue) -> Word:
        """The bits of `value`: none is unknown, one of which nothing is known is a copy of itself."""
        return self._words.get(value) or self._itself(value)

    def source(self, bit: int) -> tuple[SSAValue, int] | None:
        """The value, and which of its bits, that a bit is a copy of."""
        return (self._values[bit // COPY - 1], bit % COPY) if bit >= COPY else None

    def extended(self, value: SSAValue, width: int, signed: bool) -> Word:
        """The bits of `value` itself where those above the lowest `width` are all its sign, or zero."""
        own = self._itself(value)
        return [*own[:width], *[own[width - 1] if signed else 0] * (WORD_BITS - width)]

    def facts(self, value: SSAValue) -> frozenset[str]:
        """The facts that the bits of `value` rest on, beyond those that its range does."""
        return self._facts.get(value, _NO_FACTS)

    def _all_facts(self, values: Iterable[SSAValue], *others: SSAValue) -> frozenset[str]:
        """What any of `values` and `others` rests on: only how pointers are aligned."""
        return _NO_FACTS.union(*[self.facts(value) for value in (*values, *others)]) if self.aligned else _NO_FACTS

    def _run(self, kernel: KernelOp) -> None:
        blocks, _, cfg = flow_of(kernel.body)
        rooted = entered_from_elsewhere(kernel.body)
        passed: dict[SSAValue, list[SSAValue]] = {}
        for block in blocks:
            for successor, values in zip(block.last_op.successors, forwarded(block.last_op), strict=False) if block.last_op else ():
                for argument, value in zip(successor.args, values, strict=False):
                    passed.setdefault(argument, []).append(value)
        for argument in [a for block in rooted for a in block.args if isinstance(a.type, R | UR)]:
            self._set(argument, NOTHING, _NO_FACTS)
        order = [blocks[b] for b in cfg.order]
        inner = [(block, [] if block in rooted else [a for a in block.args if isinstance(a.type, R | UR)]) for block in order]
        before: set[SSAValue] | None = None
        while before is None or before:
            before = self._sweep(inner, passed, before)

    def _sweep(
        self,
        blocks: Iterable[tuple[Block, list[BlockArgument]]],
        passed: Mapping[SSAValue, Sequence[SSAValue]],
        before: set[SSAValue] | None,
    ) -> set[SSAValue]:
        """Compute all that depends on what changed `before`, at first everything. Returns the values that changed."""
        changed: set[SSAValue] = set()
        for block, joined in blocks:
            for argument in joined:
                values = passed.get(argument, ())
                if (before is None or not (changed.isdisjoint(values) and before.isdisjoint(values))) and self._meet(argument, values):
                    changed.add(argument)
            for op in internals.operations(block):  # all that it reads comes before it in this order of blocks
                if (before is None or not changed.isdisjoint(internals.operands(op))) and op.results and isinstance(op, SassInstruction):
                    changed.update(self._visit(op))
        return changed

    def _meet(self, argument: SSAValue, passed: Iterable[SSAValue]) -> bool:
        """Let an argument have what the values computed so far that are passed to it have in common. Returns whether it changed."""
        word = self._words.get(argument)
        for value in passed:
            found = self._words.get(value)
            if found is not None:
                word = found if word is None else common(word, found)
                if word == NOTHING:
                    break
        return word is not None and self._set(argument, word, self._all_facts(passed, argument))

    def _visit(self, op: SassInstruction) -> list[SSAValue]:
        """Returns the results that changed."""
        self._read.clear()
        found = self._results(op)
        facts = self._all_facts(internals.operands(op)) | self._read if found else _NO_FACTS
        guarded = op.guard is not None or op.constant_guard is not None
        changed: list[SSAValue] = []
        for i, result in enumerate(op.results):
            if isinstance(result.type, R | UR):
                word = found.get(result, NOTHING)
                if guarded:
                    word = common(word, self.word(op.kept[i])) if op.kept else NOTHING
                if self._set(result, word, facts):
                    changed.append(result)
        return changed

    def _set(self, value: SSAValue, word: Word, facts: frozenset[str]) -> bool:
        """Let a value have these bits: what is not known is its own, and zeros are where its range says so. Returns whether it changed."""
        known = self.known.range(value) if self.known is not None else WORD
        width = known.high.bit_length()
        if known.value is not None:
            word = number(known.value)
        elif word == NOTHING and width == WORD_BITS:
            word = self._itself(value)
        elif UNKNOWN in word or width < WORD_BITS:
            own = self._itself(value)
            word = tuple([0 if i >= width else own[i] if bit == UNKNOWN else bit for i, bit in enumerate(word)])
        else:
            word = tuple(word)
        changed = self._words.get(value) != word or self.facts(value) != facts
        self._words[value] = word
        self._facts[value] = facts
        return changed

    def _itself(self, value: SSAValue) -> Word:
        word = self._own.get(value)
        if word is None:
            self._values.append(value)
            first = COPY * len(self._values)
            word = self._own[value] = tuple(range(first, first + WORD_BITS))
        return word

    def _results(self, op: SassInstruction) -> dict[SSAValue, Word]:
        """What an operation makes, its guard aside; a result that is not there is not known."""
        compute = _COMPUTE.get(op.MNEMONIC) or _COMPUTE.get(op.MNEMONIC.removeprefix("U"))
        if compute is None:
            return {}
        operands = arguments(op)
        destination = next((a for a in operands if a.results and isinstance(a.results[0].type, R | UR)), None)
        if destination is None:
            return {}
        result = destination.results[0]
        modifiers = op.modifiers.data.split(".") if op.modifiers is not None else []
        sources = [a for a in operands if not a.written]
        found = compute(self, op, modifiers, sources, result)
        return {} if found is None else {result: found}

    def operand(self, argument: Argument) -> Word:
        """The bits of a source operand; of a pair, those of its lower word."""
        if argument.integer is not None:
            return number(argument.integer & LARGEST)
        text = argument.text.removesuffix(".reuse")
        if argument.constant is not None:
            found = self.constant(*argument.constant)
        elif text.lstrip("-") == "$" and isinstance(argument.values[0].type, R | UR):
            found = self.word(argument.values[0])
        else:
            return NOTHING
        return negated(found) if text.startswith("-") else found

    def constant(self, bank: int, offset: int) -> Word:
        """The bits of a word of constant memory, as far as facts tell them."""
        known = self.known.constant_range(bank, offset) if self.known is not None else WORD
        if known.value is not None:
            return number(known.value)
        width = known.high.bit_length()
        if width < WORD_BITS:
            return (UNKNOWN,) * width + (0,) * (WORD_BITS - width)
        zeros = trailing_zeros(self.aligned.get(offset, 1)) if bank == 0 else 0
        if zeros:
            self._read.add(f"align {offset:#x}")
        return (0,) * zeros + (UNKNOWN,) * (WORD_BITS - zeros)


_Op = SassInstruction
_Modifiers = Sequence[str]
_Sources = Sequence[Argument]
_Compute = Callable[[Bits, _Op, _Modifiers, _Sources, SSAValue], "Word | None"]
_NARROW = {"U8": 8, "S8": 8, "U16": 16, "S16": 16}
_PLAIN_PRODUCT = frozenset({"IADD", "MOV", "SHL", "U32", "S32", "WIDE"})


def _copied(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    return bits.operand(sources[0]) if len(sources) == 1 else None


def _moved(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    """An instruction that puts each bit somewhere else, as a number says that is its second source."""
    if sources[1].integer is None:
        return None
    found = bit_moves(op.MNEMONIC, ".".join(modifiers), op.template, bits.arch)
    if found is None:
        return None
    words = [bits.word(v) for v in op.reads]
    return [words[bit[0]][bit[1]] if isinstance(bit, tuple) else bit for bit in found]


def _logic(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    table = sources[3].integer
    return None if table is None else combine(table, *[bits.operand(a) for a in sources[:3]])


def _sum(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    if modifiers:
        return None
    found = number(0)
    for source in sources[:3]:
        found = add(found, bits.operand(source))
    return found


def _multiply_add(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    if not _PLAIN_PRODUCT.issuperset(modifiers):
        return None
    a, b, c = [bits.operand(s) for s in sources[:3]]
    return add(multiply(a, b), c)


def _shift_add(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    if modifiers or len(sources) != 3 or sources[2].integer is None:
        return None
    return add(shifted(bits.operand(sources[0]), sources[2].integer & 31), bits.operand(sources[1]))


def _chosen(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    return common(bits.operand(sources[0]), bits.operand(sources[1]))


def _numbers_only(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    """One lane's value for all: the same bits only where every lane has them."""
    return [bit if bit < UNKNOWN else UNKNOWN for bit in bits.operand(sources[0])]


def _constant(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    place = sources[0].constant
    return bits.constant(*place) if place is not None and set(modifiers) <= {"64"} else None


def _load(bits: Bits, op: _Op, modifiers: _Modifiers, sources: _Sources, result: SSAValue) -> Word | None:
    """The upper bits of a byte or half are zero, or its sign."""
    size = next((m for m in modifiers if m in _NARROW), None)
    return None if size is None else bits.extended(result, _NARROW[size], size[0] == "S")


_COMPUTE: dict[str, _Compute] = {
    "IADD": _sum,
    "IADD3": _sum,
    "IMAD": _multiply_add,
    "LD": _load,
    "LDC": _constant,
    "LDCU": _constant,
    "LDG": _load,
    "LDS": _load,
    "LEA": _shift_add,
    "LOP3": _logic,
    "MOV": _copied,
    "PRMT": _moved,
    "R2UR": _numbers_only,
    "SEL": _chosen,
    "SGXT": _moved,
    "SHF": _moved,
    "VIADD": _sum,
}
"""By mnemonic; a uniform instruction as without U."""
