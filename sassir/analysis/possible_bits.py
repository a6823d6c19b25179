"""Which bits of a sum can be set, from the ranges of what it is made from."""

from __future__ import annotations

from xdsl.ir import SSAValue

from sassir.analysis.affine import Symbol
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import LARGEST


def possible_bits(constant: int, terms: tuple[tuple[Symbol, int], ...], known: Propagation) -> int:
    """The bits that can be 1 in `constant` + Σ coefficient · symbol, modulo 2³²."""
    found = constant & LARGEST
    for symbol, coefficient in terms:
        bits = _of_product(symbol, coefficient & LARGEST, known)
        both = found & bits
        carried = -(both & -both) if both else 0
        found = (found | bits | carried) & LARGEST
    return found


def _of_product(symbol: Symbol, coefficient: int, known: Propagation) -> int:
    highest = known.range(symbol).high if isinstance(symbol, SSAValue) else LARGEST
    lowest_bit = coefficient & -coefficient
    product = coefficient * highest
    above = LARGEST if product > LARGEST else (1 << product.bit_length()) - 1
    return above & -lowest_bit
