"""sass-divide: unsigned division and remainder by a number that has become known, as a product with its reciprocal, or a shift.

ptxas divides by a number in a register so: the reciprocal by MUFU.RCP, rounded down and improved to a word m of 2³²/d; an estimate
q₀ = ⌊m x / 2³²⌋; what is left, r₀ = x - q₀ d; and twice `if r ≥ d: r -= d, q += 1`. That is exact if q₀ is one of q - 2, q - 1 and q,
which holds for 2³² - 2 d ≤ m d ≤ 2³². With d known this is tested for every m that MUFU.RCP, exact to within an ulp, can lead to. Signed
division does the same with absolute values. The new code is that of Granlund and Montgomery, Division by Invariant Integers using
Multiplication (1994), for the dividends that the ranges allow.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.affine import Affine
from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.propagated import propagate
from sassir.analysis.ranges import COMPLEMENT, LARGEST, WORD_BITS
from sassir.dialect.facts import record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import UR
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.build import instruction, signed
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import replace
from sassir.rewrite.sparing import sparing_ranges

_SUMS = {"IADD": "", "IADD3": "", "VIADD": "", "IMAD": "IADD"}
"""Instructions that add, and their modifiers."""


@dataclass(frozen=True)
class Divide(ModulePass):
    """Replaces the division of ptxas where the divisor is a number."""

    name = "sass-divide"

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            known = propagate(kernel, arch)
            found = _Divisions(Affine(known))
            ops = [o for block in kernel.body.blocks for o in block.ops if isinstance(o, SassInstruction) and o.kept]
            divisions = [(o, division) for o in ops if (division := found.division(o)) is not None]
            new: dict[SSAValue, SSAValue] = {}
            for o, division in divisions:
                result, x = o.results[0], division.dividend
                made = _replace(o, division._replace(dividend=new.get(x, x)), known.range(x).high)
                if made is not None:
                    new[result] = made
            if divisions:
                record_use(kernel, known.used)
                drop_dead_code(kernel.body)


class Division(NamedTuple):
    """⌊dividend / divisor⌋, or what it leaves."""

    dividend: SSAValue
    divisor: int
    remainder: bool


class _Step(NamedTuple):
    """`if tested ≥ bound: before + amount else before`."""

    before: SSAValue
    amount: int
    tested: SSAValue
    bound: int


class _Less(NamedTuple):
    """The correction of what is left, modulo 2³²."""

    amount: int
    bound: int


class _Divisions:
    """Finds divisions by the last operation of each."""

    def __init__(self, forms: Affine) -> None:
        self.forms = forms
        self.known = forms.known

    def division(self, op: SassInstruction) -> Division | None:
        """The division whose quotient or remainder is the result of `op`."""
        last = self._step(op.results[0])
        if last is None:
            return None
        d, first = last.bound, self._step(last.before)
        less = _Less(-d & LARGEST, d)
        remainder = last.amount == less.amount
        if remainder:
            left, quotient = first, None
            if last.tested is not last.before:
                return None
        else:
            left, quotient = self._step(last.tested), first
            if first is None or (last.amount, first.amount, first.bound) != (1, 1, d) or left is None or first.tested is not left.before:
                return None
        if left is None or (left.amount, left.bound) != less or left.tested is not left.before:
            return None
        found = self._dividend(left.before, d, None if quotient is None else quotient.before)
        return Division(found, d, remainder) if found is not None else None

    def _step(self, value: SSAValue) -> _Step | None:
        op = value.owner
        if not isinstance(op, SassInstruction) or op.guard is None or len(op.results) != 1 or op.MNEMONIC not in _SUMS:
            return None
        if (op.modifiers.data if op.modifiers is not None else "") != _SUMS[op.MNEMONIC]:
            return None
        sources = [a for a in arguments(op) if not a.written]
        if op.MNEMONIC == "IMAD":
            if self._number(sources[1]) != 1:
                return None
            sources = [sources[0], sources[2]]
        variable = [a for a in sources if self._number(a) is None]
        condition = self._at_least(op)
        if condition is None or len(variable) != 1 or variable[0].text != "$" or variable[0].values != op.kept:
            return None
        amount = sum(n for a in sources if (n := self._number(a)) is not None) & LARGEST
        return _Step(op.kept[0], amount, *condition)

    def _at_least(self, op: SassInstruction) -> tuple[SSAValue, int] | None:
        """The value and the number that it has to reach for `op` to execute."""
        assert op.guard is not None
        compare = op.guard.owner
        if not isinstance(compare, SassInstruction) or compare.MNEMONIC != "ISETP" or compare.modifiers is None or compare.kept:
            return None
        name, _, rest = compare.modifiers.data.partition(".")
        operands = arguments(compare)
        first, second, third = [a for a in operands if not a.written][:3]
        if rest != "U32.AND" or name not in COMPLEMENT or third.text != "PT" or operands[0].results != (op.guard,):
            return None
        name = COMPLEMENT[name] if op.unless is not None else name
        variable, bound = (first, second) if name == "GE" else (second, first)
        number = self._number(bound)
        if name not in ("GE", "LE") or variable.text != "$" or not number:
            return None
        return variable.values[0], number & LARGEST

    def _number(self, argument: Argument) -> int | None:
        return self.known.operand(argument, True).value

    def _dividend(self, left: SSAValue, d: int, quotient: SSAValue | None) -> SSAValue | None:
        """The x of `left` = x - q₀ d, if q₀ is an estimate of x / d as it must be, and `quotient`, if that is told."""
        form = self.forms.word(left)
        for symbol, coefficient in form.terms:
            if coefficient != -d & LARGEST or not isinstance(symbol, SSAValue) or (quotient is not None and symbol is not quotient):
                continue
            for m, x in self._factors(symbol):
                terms = dict(self.forms.word(x).terms) | {symbol: coefficient}
                if (dict(form.terms), form.constant) == (terms, self.forms.word(x).constant) and self._is_reciprocal(m, d):
                    return x
        return None

    def _factors(self, product: SSAValue) -> Iterator[tuple[Argument, SSAValue]]:
        """m and x of ⌊m x / 2³²⌋."""
        sources = self._upper_product(product)
        if sources is not None and self._number(sources[2]) == 0:
            for m, x in ((sources[0], sources[1]), (sources[1], sources[0])):
                if x.text == "$" and len(x.values) == 1:
                    yield m, x.values[0]

    def _upper_product(self, value: SSAValue) -> Sequence[Argument] | None:
        op = value.owner
        if not isinstance(op, SassInstruction) or op.kept or op.modifiers is None:
            return None
        if (op.MNEMONIC, op.modifiers.data) != ("IMAD", "HI.U32"):
            return None
        return [a for a in arguments(op) if not a.written]

    def _is_reciprocal(self, m: Argument, d: int) -> bool:
        """All words that `m` can be give estimates of x / d that two corrections make exact."""
        number = self._number(m)
        candidates = [number & LARGEST] if number is not None else self._from_hardware(m, d)
        return bool(candidates) and all(LARGEST + 1 - 2 * d <= c * d <= LARGEST + 1 for c in candidates)

    def _from_hardware(self, m: Argument, d: int) -> list[int]:
        """The words that ptxas's sequence for 2³²/d can give: f = ⌊rcp · 2³²⌋ (less a little), then f + ⌊f (-d f mod 2³²) / 2³²⌋."""
        sources = self._upper_product(m.values[0]) if m.text == "$" else None
        if sources is None or len(sources[2].values) != 2 or self.known.range(sources[2].values[0]).value != 0:
            return []
        f = sources[2].values[1]
        for this, other in ((sources[0], sources[1]), (sources[1], sources[0])):
            if this.values == (f,) and this.text == other.text == "$":
                form = self.forms.word(other.values[0])
                if (form.constant, form.terms) == (0, ((f, -d & LARGEST),)):
                    return [_improved(word, d) for word in self._first_estimates(f)]
        return []

    def _first_estimates(self, f: SSAValue) -> list[int]:
        """What F2I.TRUNC of the bits of a reciprocal plus a number can be."""
        truncated = self._only_source(f, "F2I", "FTZ.U32.TRUNC.NTZ")
        form = self.forms.word(truncated) if truncated is not None else None
        if form is None or len(form.terms) != 1 or form.terms[0][1] != 1 or not isinstance(form.terms[0][0], SSAValue):
            return []
        operand = self._only_source(form.terms[0][0], "MUFU", "RCP")
        word = self.known.range(operand).value if operand is not None else None
        if word is None or not 0x3F800000 <= word <= 0x4F800000:  # 1 to 2³²
            return []
        nearest = _bits(1 / _float(word))
        return [int(_float((near + form.constant) & LARGEST)) & LARGEST for near in (nearest - 1, nearest, nearest + 1)]

    @staticmethod
    def _only_source(value: SSAValue, mnemonic: str, modifiers: str) -> SSAValue | None:
        op = value.owner
        if not isinstance(op, SassInstruction) or op.kept or mnemonic != op.MNEMONIC or len(op.reads) != 1:
            return None
        written = op.modifiers.data if op.modifiers is not None else ""
        return op.reads[0] if written == modifiers and arguments(op)[1].text == "$" else None


def _improved(f: int, d: int) -> int:
    return (f + (f * (-d * f & LARGEST) >> WORD_BITS)) & LARGEST


def _float(word: int) -> float:
    return struct.unpack("<f", struct.pack("<I", word))[0]


def _bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def magic(d: int, largest: int) -> tuple[int, int] | None:
    """A word m and a shift s with ⌊x / d⌋ = ⌊m x / 2³²⁺ˢ⌋ for all x from 0 to `largest`; None if m would need more than 32 bits."""
    for s in range(WORD_BITS):
        m = -(-(1 << (WORD_BITS + s)) // d)
        if m <= LARGEST and (m * d - (1 << (WORD_BITS + s))) * largest < 1 << (WORD_BITS + s):
            return m, s
    return None


def _replace(op: SassInstruction, division: Division, largest: int) -> SSAValue | None:
    """Put the shortest code for a division in the place of `op`. Returns the new result; None if there is no short code."""
    x, d, remainder = division
    assert op.parent is not None
    if isinstance(x.type, UR):
        op.parent.insert_op_before(copied := instruction("MOV =R, $UR", [x]), op)
        x = copied.results[0]
    is_power = d & (d - 1) == 0
    made = [instruction(f"LOP3.LUT =R, $R, {d - 1:#x}, RZ, 0xc0, !PT", [x])] if remainder and is_power else _quotient(x, d, largest)
    if made is None:
        return None
    if remainder and not is_power:
        made.append(instruction(f"IMAD =R, $R, {signed(-d & LARGEST)}, $R", [made[-1].results[0], x]))
    op.parent.insert_ops_before(made, op)
    replace(op, made[-1].results)
    return made[-1].results[0]


def _quotient(x: SSAValue, d: int, largest: int) -> list[SassInstruction] | None:
    if d & (d - 1) == 0:
        return [instruction(f"SHF.R.U32.HI =R, RZ, {int(math.log2(d)):#x}, $R", [x])]
    found = magic(d, largest)
    if found is None:
        return None
    m, s = found
    made = [instruction(f"IMAD.HI.U32 =R, $R, {signed(m)}, RZ", [x])]
    if s:
        made.append(instruction(f"SHF.R.U32.HI =R, RZ, {s:#x}, $R", [made[0].results[0]]))
    return made
