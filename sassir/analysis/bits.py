"""Where each bit of a value comes from: it is 0 or 1, or a copy of some bit of another value.

Exact for what only moves bits (PRMT, SHF, logic with known masks) and for sums as far as no two terms meet in a bit. The low
bits tell what an address is a multiple of; bits that are all those of another value, in order, tell that both are equal.

An optimistic fixpoint: an argument of a block has what all that is passed to it has in common, where what is not computed
yet does not count (as in Click, Combining Analyses, Combining Optimizations, 1995). A bit is given up at most once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np
from xdsl.ir import SSAValue

from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.bit_words import UNKNOWN, Copy, Word, add, combine, multiply, negated, number, shifted, trailing_zeros
from sassir.analysis.flow import flow_of
from sassir.analysis.folding import plan
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import WORD_BITS
from sassir.dialect import internals
from sassir.dialect.edges import entered_from_elsewhere, forwarded
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import UR, R
from sassir.dialect.template import TemplateAttr

_NO_FACTS = frozenset[str]()


class Bits:
    """The bits of all values of a kernel that are 32-bit registers."""

    def __init__(self, kernel: KernelOp, known: Propagation) -> None:
        self.known = known
        self.aligned = {p.offset: p.align for p in known.facts.pointers}
        self._words: dict[SSAValue, Word] = {}
        self._facts: dict[SSAValue, frozenset[str]] = {}
        self._read: set[str] = set()
        """The facts that the operation at hand uses."""
        self._own: dict[SSAValue, Word] = {}
        self._run(kernel)

    def word(self, value: SSAValue) -> Word:
        """The bits of `value`: none is None, one of which nothing is known is a copy of itself."""
        return self._words.get(value) or self._itself(value)

    def facts(self, value: SSAValue) -> frozenset[str]:
        """The facts that the bits of `value` rest on, beyond those that its range does."""
        return self._facts.get(value, _NO_FACTS)

    def _run(self, kernel: KernelOp) -> None:
        blocks, _, cfg = flow_of(kernel.body)
        rooted = entered_from_elsewhere(kernel.body)
        passed: dict[SSAValue, list[SSAValue]] = {}
        for block in blocks:
            for successor, values in zip(block.last_op.successors, forwarded(block.last_op), strict=False) if block.last_op else ():
                for argument, value in zip(successor.args, values, strict=False):
                    passed.setdefault(argument, []).append(value)
        for argument in [a for block in rooted for a in block.args if isinstance(a.type, R | UR)]:
            self._words[argument] = self._settled(argument, UNKNOWN)
        changed = True
        while changed:
            changed = False
            for block in [blocks[b] for b in cfg.order]:
                for argument in block.args:
                    if block not in rooted and isinstance(argument.type, R | UR):
                        changed |= self._meet(argument, passed.get(argument, ()))
                for op in block.ops:
                    if isinstance(op, SassInstruction) and op.results:
                        self._visit(op)

    def _meet(self, argument: SSAValue, passed: Iterable[SSAValue]) -> bool:
        """Let an argument have what the values computed so far that are passed to it have in common. Returns whether it changed."""
        before = after = self._words.get(argument)
        facts = self.facts(argument).union(*[self.facts(value) for value in passed])
        for value in passed:
            found = self._words.get(value)
            if found is not None:
                after = found if after is None else [a if a == b else None for a, b in zip(after, found, strict=True)]
        if after is not None:
            self._words[argument] = self._settled(argument, after)
        changed = self._words.get(argument) != before or facts != self.facts(argument)
        self._facts[argument] = facts
        return changed

    def _visit(self, op: SassInstruction) -> None:
        self._read.clear()
        found = self._results(op)
        facts = self._read.union(*[self.facts(value) for value in internals.operands(op)]) if found else _NO_FACTS
        for i, result in enumerate(op.results):
            if isinstance(result.type, R | UR):
                word = found.get(result, UNKNOWN)
                if op.guard is not None or op.constant_guard is not None:
                    kept = self.word(op.kept[i]) if op.kept else UNKNOWN
                    word = [a if a == b else None for a, b in zip(word, kept, strict=True)]
                self._words[result] = self._settled(result, word)
                if facts:
                    self._facts[result] = frozenset(facts)

    def _settled(self, value: SSAValue, word: Word) -> Word:
        """`word` with what is not known replaced by bits of `value` itself, and with the zeros that its range tells."""
        found = self.known.range(value)
        if found.value is not None:
            return number(found.value)
        width = found.high.bit_length()
        own = self._itself(value)
        return tuple([0 if i >= width else own[i] if bit is None else bit for i, bit in enumerate(word)])

    def _itself(self, value: SSAValue) -> Word:
        word = self._own.get(value)
        if word is None:
            word = self._own[value] = tuple([Copy(value, i) for i in range(WORD_BITS)])
        return word

    def _results(self, op: SassInstruction) -> dict[SSAValue, Word]:
        """What an operation makes, its guard aside; a result that is not there is not known."""
        operands = arguments(op)
        destination = next((a for a in operands if a.results and isinstance(a.results[0].type, R | UR)), None)
        compute = _COMPUTE.get(op.MNEMONIC) or _COMPUTE.get(op.MNEMONIC.removeprefix("U"))
        if destination is None or compute is None:
            return {}
        result = destination.results[0]
        modifiers = op.modifiers.data.split(".") if op.modifiers is not None else []
        sources = [a for a in operands if not a.written]
        found = compute(self, op, modifiers, sources, result)
        return {} if found is None else {result: found}

    def operand(self, argument: Argument) -> Word:
        """The bits of a source operand; of a pair, those of its lower word."""
        if argument.integer is not None:
            return number(argument.integer)
        text = argument.text.removesuffix(".reuse")
        if argument.constant is not None:
            found = self.constant(*argument.constant)
        elif text.lstrip("-") == "$" and isinstance(argument.values[0].type, R | UR):
            found = self.word(argument.values[0])
        else:
            return UNKNOWN
        return negated(found) if text.startswith("-") else found

    def constant(self, bank: int, offset: int) -> Word:
        """The bits of a word of constant memory, as far as facts tell them."""
        value = self.known.constant(bank, offset)
        if value is not None:
            return number(value)
        if bank != 0 or offset not in self.aligned:
            return UNKNOWN
        zeros = trailing_zeros(self.aligned[offset])
        if zeros:
            self._read.add(f"align {offset:#x}")
        return (0,) * zeros + (None,) * (WORD_BITS - zeros)


_Sources = Sequence[Argument]
_Compute = Callable[[Bits, SassInstruction, Sequence[str], _Sources, SSAValue], "Word | None"]
_PLAIN_PRODUCT = frozenset({"IADD", "MOV", "SHL", "U32", "S32", "WIDE"})


def _copied(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    return bits.operand(sources[0]) if len(sources) == 1 else None


def _moved(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    """An instruction that puts each bit somewhere else, as a number says that is its second source."""
    if sources[1].integer is None:
        return None
    found = _places(op.MNEMONIC, ".".join(modifiers), op.template, bits.known.arch)
    if found is None:
        return None
    words = [bits.word(v) for v in op.reads]
    return [words[bit[0]][bit[1]] if isinstance(bit, tuple) else bit for bit in found]


@cache
def _places(mnemonic: str, modifiers: str, template: TemplateAttr, arch: str) -> Sequence[int | tuple[int, int]] | None:
    """For each bit of the result 0, 1, or which bit of which value read it is: each gets a code of its own, a bit of it per run."""
    found = plan(mnemonic, modifiers, template, arch)
    if found is None or len(found.results) != 1 or not all(isinstance(place, int) for place in found.reads):
        return None
    runs = (WORD_BITS * len(found.reads) + 1).bit_length()
    values = [
        np.array([sum([(WORD_BITS * i + k + 1 >> run & 1) << k for k in range(WORD_BITS)]) for run in range(runs)], np.uint32)
        for i in range(len(found.reads))
    ]
    (result,) = [np.broadcast_to(found.evaluator.evaluate(*values)[k], (runs,)) for k in found.results]
    codes = [sum([(int(result[run]) >> k & 1) << run for run in range(runs)]) for k in range(WORD_BITS)]
    places = {WORD_BITS * i + k + 1: (place, k) for i, place in enumerate(found.reads) if isinstance(place, int) for k in range(WORD_BITS)}
    ends = {0: 0, (1 << runs) - 1: 1}
    return [places[code] if code in places else ends[code] for code in codes]


def _logic(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    table = sources[3].integer
    return None if table is None else combine(table, *[bits.operand(a) for a in sources[:3]])


def _sum(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    if modifiers:
        return None
    found = number(0)
    for source in sources[:3]:
        found = add(found, bits.operand(source))
    return found


def _multiply_add(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    if not _PLAIN_PRODUCT.issuperset(modifiers):
        return None
    a, b, c = [bits.operand(s) for s in sources[:3]]
    return add(multiply(a, b), c)


def _shift_add(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    if modifiers or len(sources) != 3 or sources[2].integer is None:
        return None
    return add(shifted(bits.operand(sources[0]), sources[2].integer & 31), bits.operand(sources[1]))


def _chosen(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    return [a if a == b else None for a, b in zip(bits.operand(sources[0]), bits.operand(sources[1]), strict=True)]


def _numbers_only(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    """One lane's value for all: the same bits only where every lane has them."""
    return [bit if isinstance(bit, int) else None for bit in bits.operand(sources[0])]


def _constant(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    place = sources[0].constant
    return bits.constant(*place) if place is not None and set(modifiers) <= {"64"} else None


def _load(bits: Bits, op: SassInstruction, modifiers: Sequence[str], sources: _Sources, result: SSAValue) -> Word | None:
    """The upper bits of a signed byte or half are all its sign."""
    width = 8 if "S8" in modifiers else 16 if "S16" in modifiers else None
    return None if width is None else [Copy(result, min(i, width - 1)) for i in range(WORD_BITS)]


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
