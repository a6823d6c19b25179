"""Addresses as sums: a number and, for each thing it depends on, how often that is added.

Over SASS idioms: multiply-adds, shifts, LEA pairs, carry chains, 64-bit numbers in two registers. A 64-bit form holds
modulo 2⁶⁴. An index of 32 bits becomes part of it only where its range shows that extending it is the same as extending
its parts; else it stays whole.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from xdsl.ir import Block, Operation, SSAValue

from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import LARGEST, LARGEST_SIGNED, WORD_BITS
from sassir.dialect.instruction import SassInstruction

_DEPTH = 40
"""How many operations are followed from a value to what it is made from."""


class Pair(NamedTuple):
    """A 64-bit number in two registers."""

    low: SSAValue
    high: SSAValue


class ConstantWords(NamedTuple):
    """A number in constant memory."""

    bank: int
    offset: int


class Extended(NamedTuple):
    """A 32-bit number as 64 bits."""

    value: SSAValue
    signed: bool


class Operands(NamedTuple):
    """A number that these operands stand for, which is not taken apart."""

    texts: tuple[str, ...]
    values: tuple[SSAValue, ...]


Symbol = SSAValue | Pair | ConstantWords | Extended | Operands


class Form(NamedTuple):
    """`constant` + Σ coefficient · symbol, modulo 2³² or 2⁶⁴."""

    constant: int
    terms: tuple[tuple[Symbol, int], ...]
    """Each symbol once, without zero coefficients, in a fixed order for equal sums."""


ZERO = Form(0, ())


class Affine:
    """The forms of values of one kernel."""

    def __init__(self, known: Propagation) -> None:
        self.known = known
        self._words: dict[SSAValue, Form] = {}
        self._pairs: dict[Pair, Form] = {}

    def word(self, value: SSAValue, depth: int = _DEPTH) -> Form:
        """A 32-bit value, modulo 2³²."""
        found = self._words.get(value)
        if found is None:
            found = self._words[value] = self._word(value, depth)
        return found

    def pair(self, low: SSAValue, high: SSAValue, depth: int = _DEPTH) -> Form:
        """A 64-bit value, modulo 2⁶⁴."""
        key = Pair(low, high)
        found = self._pairs.get(key)
        if found is None:
            found = self._pairs[key] = self._pair(key, depth)
        return found

    def _word(self, value: SSAValue, depth: int) -> Form:
        number = self.known.range(value).value
        if number is not None:
            return Form(number, ())
        op = value.owner
        itself = Form(0, ((value, 1),))
        if not _is_readable(op) or op.results[0] is not value or not depth:
            return itself
        sources = [a for a in arguments(op) if not a.written]
        modifiers = op.modifiers.data if op.modifiers is not None else ""
        match op.MNEMONIC.removeprefix("U"):
            case "IADD3" | "IADD" | "VIADD" if not modifiers:
                return _sum([self._operand(a, depth - 1) for a in sources[:3]], WORD_BITS)
            case "IMAD" if not {*modifiers.split(".")} - {"", "MOV", "IADD", "SHL", "U32"}:
                return self._product(sources, depth - 1) or itself
            case "LEA" if not modifiers and len(sources) == 3 and sources[2].integer is not None:
                shifted = _scaled(self._operand(sources[0], depth - 1), 1 << sources[2].integer)
                return _sum([shifted, self._operand(sources[1], depth - 1)], WORD_BITS)
            case "SHF" if modifiers in ("L.U32", "L.W.U32") and sources[1].integer is not None and sources[2].integer == 0:
                return _reduced(_scaled(self._operand(sources[0], depth - 1), 1 << (sources[1].integer & 31)), WORD_BITS)
            case "MOV" | "R2UR" if not modifiers:
                return self._operand(sources[0], depth - 1)
            case _:
                return itself

    def _product(self, sources: list[Argument], depth: int) -> Form | None:
        a, b, c = sources[:3]
        left, right = self._operand(a, depth), self._operand(b, depth)
        if left.terms and right.terms:
            return None
        scaled = _scaled(left, right.constant) if not right.terms else _scaled(right, left.constant)
        return _sum([scaled, self._operand(c, depth)], WORD_BITS)

    def _operand(self, argument: Argument, depth: int) -> Form:
        """A source of 32 bits, its sign included."""
        if argument.integer is not None:
            return Form(argument.integer, ())
        negative = argument.text.startswith("-")
        if argument.constant is not None:
            number = self.known.constant(*argument.constant)
            found = Form(number, ()) if number is not None else Form(0, ((ConstantWords(*argument.constant), 1),))
        elif len(argument.values) == 1 and argument.text.lstrip("-") == "$":
            found = self.word(argument.values[0], depth)
        else:
            return _whole(argument)
        return _scaled(found, -1) if negative else found

    def _pair(self, key: Pair, depth: int) -> Form:
        low, high = key
        op, upper = low.owner, high.owner
        itself = Form(0, ((key, 1),))
        numbers = self.known.range(low).value, self.known.range(high).value
        if numbers[0] is not None and numbers[1] is not None:
            return Form(numbers[1] << WORD_BITS | numbers[0], ())
        if numbers[1] == 0:
            return self.extended(low, False)
        if not _is_readable(upper) or not depth:
            return itself
        if _is_sign_of(upper, high, low):
            return self.extended(low, True)
        if not _is_readable(op):
            return itself
        if op is upper:
            return self._single(op, depth - 1) or itself
        return self._shifted(upper, low, depth - 1) or self._carried(op, upper, low, high, depth - 1) or itself

    def _shifted(self, upper: SassInstruction, low: SSAValue, depth: int) -> Form | None:
        """A pair that is another one shifted to the left: the upper word says by how much, and the lower one is that too."""
        sources = [a for a in arguments(upper) if not a.written]
        if upper.MNEMONIC.removeprefix("U") != "SHF" or upper.modifiers is None or upper.modifiers.data != "L.U64.HI":
            return None
        lower, shift, higher = sources
        if shift.integer is None or not 0 < shift.integer < WORD_BITS:
            return None
        factor = 1 << shift.integer
        if self.word(low, depth) != _reduced(_scaled(self._operand(lower, depth), factor), WORD_BITS):
            return None
        return _reduced(_scaled(self.joined(lower, higher, depth), factor), 2 * WORD_BITS)

    def _single(self, op: SassInstruction, depth: int) -> Form | None:
        """A pair that one instruction writes."""
        sources = [a for a in arguments(op) if not a.written]
        modifiers = op.modifiers.data.split(".") if op.modifiers is not None else []
        if op.MNEMONIC in ("LDC", "ULDC", "LDCU") and modifiers == ["64"] and sources[0].constant is not None:
            return Form(0, ((ConstantWords(*sources[0].constant), 1),))
        if op.MNEMONIC in ("IMAD", "UIMAD") and modifiers[:1] == ["WIDE"] and not {*modifiers} - {"WIDE", "U32"}:
            signed = "U32" not in modifiers
            a, b, c = sources[:3]
            scale = b.integer if b.integer is not None else self._known(b)
            if scale is None or len(a.values) != 1 or a.text != "$":
                return None
            if signed and scale > LARGEST_SIGNED:
                scale -= LARGEST + 1
            return _sum([_scaled(self.extended(a.values[0], signed), scale), self._wide_operand(c, depth)], 2 * WORD_BITS)
        return None

    def _carried(self, op: SassInstruction, upper: SassInstruction, low: SSAValue, high: SSAValue, depth: int) -> Form | None:
        """A pair whose words two instructions write, the carry of the lower one going into the upper one."""
        a, b = [[x for x in arguments(o) if not x.written] for o in (op, upper)]
        carries = [r for r in op.results if r is not low]
        if len(carries) != 1 or carries[0] not in [v for x in b for v in x.values] or op.modifiers is not None or upper.modifiers is None:
            return None
        shift = a[2].integer
        match (op.MNEMONIC.removeprefix("U"), upper.MNEMONIC.removeprefix("U"), upper.modifiers.data):
            case ("IADD3", "IADD3", "X") | ("IADD3", "IMAD", "X") if upper.MNEMONIC != "IMAD" or b[0].integer == b[1].integer == 0:
                lows, highs = sorted(a[:3], key=_is_number), sorted(b[:3], key=_is_number)  # a sum: any low with any high
                return _sum([self.joined(x, y, depth) for x, y in zip(lows, highs, strict=True)], 2 * WORD_BITS)
            case ("IADD3", "LEA", "HI.X.SX32") if b[2].integer == 1:  # the upper word of twice a number is its sign
                others = [x for x in a[:3] if not _is_same_word(x, b[0]) and x.integer != 0]
                if len(others) != 1 or not any(_is_same_word(x, b[0]) for x in a[:3]):
                    return None
                return _sum([self.extended(b[0].values[0], True), self.joined(others[0], b[1], depth)], 2 * WORD_BITS)
            case ("LEA", "LEA", "HI.X.SX32") if shift is not None and shift == b[2].integer and _is_same_word(a[0], b[0]):
                shifted = _scaled(self.extended(a[0].values[0], True), 1 << shift)
                return _sum([shifted, self.joined(a[1], b[1], depth)], 2 * WORD_BITS)
            case ("LEA", "LEA", "HI.X") if shift is not None and len(b) > 3 and shift == b[3].integer and _is_same_word(a[0], b[0]):
                shifted = _scaled(self.joined(a[0], b[2], depth), 1 << shift)
                return _sum([shifted, self.joined(a[1], b[1], depth)], 2 * WORD_BITS)
            case _:
                return None

    def joined(self, low: Argument, high: Argument, depth: int = _DEPTH) -> Form:
        """The 64-bit number of a lower and an upper operand."""
        if low.integer is not None and high.integer is not None:
            return Form((high.integer & LARGEST) << WORD_BITS | (low.integer & LARGEST), ())
        if low.constant is not None and high.constant == (low.constant[0], low.constant[1] + 4):
            return Form(0, ((ConstantWords(*low.constant), 1),))
        if low.text == "$" and high.text == "$" and len(low.values) == len(high.values) == 1:
            return self.pair(low.values[0], high.values[0], depth)
        if low.text == "$" and high.integer == 0 and len(low.values) == 1:
            return self.extended(low.values[0], False)
        return _whole(low, high)

    def _wide_operand(self, argument: Argument, depth: int) -> Form:
        if argument.integer == 0:
            return ZERO
        if argument.constant is not None:
            return Form(0, ((ConstantWords(*argument.constant), 1),))
        if argument.text == "$" and len(argument.values) == 2:
            return self.pair(argument.values[0], argument.values[1], depth)
        return _whole(argument)

    def _known(self, argument: Argument) -> int | None:
        return self.known.range(argument.values[0]).value if argument.text == "$" and len(argument.values) == 1 else None

    def extended(self, value: SSAValue, signed: bool) -> Form:
        """A 32-bit value as 64 bits: its parts one by one where no sum of them can leave the numbers that 32 bits hold."""
        form = self.word(value)
        least = most = as_signed(form.constant)
        for symbol, coefficient in form.terms:
            found = self.known.range(symbol) if isinstance(symbol, SSAValue) else None
            if found is None:
                return Form(0, ((Extended(value, signed), 1),))
            ends = [as_signed(coefficient) * found.low, as_signed(coefficient) * found.high]
            least, most = least + min(ends), most + max(ends)
        smallest, largest = (-LARGEST_SIGNED - 1, LARGEST_SIGNED) if signed else (0, LARGEST)
        if least < smallest or most > largest:
            return Form(0, ((Extended(value, signed), 1),))
        terms = [(Extended(s, False), as_signed(k)) for s, k in form.terms if isinstance(s, SSAValue)]
        return _reduced(Form(as_signed(form.constant), tuple(terms)), 2 * WORD_BITS)


def distance(a: Form, b: Form) -> int | None:
    """What `b` is more than `a`; None if that is no number."""
    return b.constant - a.constant if a.terms == b.terms else None


def multiple(a: Form, base: Form, b: Form) -> int | None:
    """The positive number of 31 bits with which `a` is `base` + number · `b`, all modulo 2⁶⁴; None if there is none."""
    rest = _sum([a, _scaled(base, -1)], 2 * WORD_BITS)
    if not b.terms:
        return None
    symbol, once = b.terms[0]
    number = dict(rest.terms).get(symbol, 0) // once
    fits = 0 < number <= LARGEST_SIGNED and _reduced(_scaled(b, number), 2 * WORD_BITS) == rest
    return number if fits else None


def _is_readable(op: Operation | Block) -> TypeGuard[SassInstruction]:
    """Its operands say what it computes: no guard, and nothing that the linker fills in."""
    return isinstance(op, SassInstruction) and op.guard is None and op.link is None


def _whole(*operands: Argument) -> Form:
    return Form(0, ((Operands(tuple([a.text for a in operands]), tuple([v for a in operands for v in a.values])), 1),))


def as_signed(word: int) -> int:
    """The number that a 32-bit word is in two's complement."""
    word &= LARGEST
    return word - (LARGEST + 1) if word > LARGEST_SIGNED else word


def _is_sign_of(op: SassInstruction, high: SSAValue, low: SSAValue) -> bool:
    """`high` is 32 times the sign of `low`."""
    if op.MNEMONIC not in ("SHF", "USHF") or op.modifiers is None or op.modifiers.data != "R.S32.HI" or op.results[0] is not high:
        return False
    sources = [a for a in arguments(op) if not a.written]
    return sources[1].integer == WORD_BITS - 1 and sources[2].values == (low,)


def _is_same_word(a: Argument, b: Argument) -> bool:
    return a.text == b.text == "$" and a.values == b.values and len(a.values) == 1


def _is_number(argument: Argument) -> bool:
    return argument.integer is not None


def _scaled(form: Form, factor: int) -> Form:
    return Form(form.constant * factor, tuple([(s, k * factor) for s, k in form.terms]))


def _reduced(form: Form, bits: int) -> Form:
    mask = (1 << bits) - 1
    terms = [(s, k & mask) for s, k in form.terms if k & mask]
    return Form(form.constant & mask, tuple(sorted(terms, key=lambda term: hash(term[0]))))


def _sum(forms: list[Form], bits: int) -> Form:
    total: dict[Symbol, int] = {}
    for form in forms:
        for symbol, coefficient in form.terms:
            total[symbol] = total.get(symbol, 0) + coefficient
    return _reduced(Form(sum(f.constant for f in forms), tuple(total.items())), bits)
