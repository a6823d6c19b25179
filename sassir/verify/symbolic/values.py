"""Terms in the place of numpy arrays, so that the functions of `sassir.isa.semantics` run on what is not known.

A value answers numpy's protocols: integer operations become terms; an operation on floats becomes a function of which nothing is
known but its name, so that floats are equal where the same operations were done in the same order. What has no term raises
one of NO_TERM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from sassir.verify.symbolic import terms, words
from sassir.verify.symbolic.terms import Term

_Type = np.dtype[Any]
NO_TERM = (TypeError, AttributeError, IndexError, ValueError)
"""What a function raises that does with a value what only an array can."""
_COMMUTATIVE = (np.add, np.multiply)
"""Of floats too, as every instruction makes all NaN one."""


class Value(NDArrayOperatorsMixin):
    """One element, not known, of an array of type `dtype`."""

    ndim = 1
    shape = (1,)

    def __init__(self, term: Term, dtype: _Type) -> None:
        self.term = term
        self.dtype = dtype

    def astype(self, kind: Any) -> Value:
        """As numpy does."""
        return Value(_cast(self.term, self.dtype, np.dtype(kind)), np.dtype(kind))

    def view(self, kind: Any) -> Value:
        """The same bits; only within one size."""
        if np.dtype(kind).itemsize != self.dtype.itemsize:
            raise TypeError(f"a view of {self.dtype} as {kind} has no term")
        return Value(self.term, np.dtype(kind))

    def any(self) -> bool:
        """It may be."""
        return True

    def all(self) -> bool:
        """It need not be. With `any`, the general way is taken wherever a function has a shorter one for some values."""
        return False

    def __bool__(self) -> bool:
        raise TypeError("not known")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Value:
        if method != "__call__" or ufunc.nout != 1:
            raise TypeError(f"{ufunc.__name__} has no term")
        *kinds, result = _loop(ufunc, tuple([_kind(x) for x in inputs]))
        args = [_cast(*term_of(x), kind) for x, kind in zip(inputs, kinds, strict=True)]
        if any(kind.kind == "f" for kind in kinds):
            args = sorted(args, key=lambda term: term.number) if ufunc in _COMMUTATIVE else args
            name = f"{ufunc.__name__} {' '.join(kind.str for kind in kinds)}"
            return Value(terms.apply(name, args, _width(result)), result)
        signed = kinds[0].kind == "i"
        if ufunc in _UNARY:
            return Value(_UNARY[ufunc](args[0], signed), result)
        if ufunc in _BINARY:
            return Value(_BINARY[ufunc](args[0], args[1], signed), result)
        raise TypeError(f"{ufunc.__name__} has no term")

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function not in _FUNCTIONS:
            raise TypeError(f"{function.__name__} has no term")
        return _FUNCTIONS[function](*args, **options)


def _where(condition: Any, yes: Any, no: Any) -> Value:
    kind = np.result_type(_kind(yes), _kind(no))
    truth = _cast(*term_of(condition), np.dtype(np.bool_))
    return Value(terms.choose(truth, *[_cast(*term_of(x), kind) for x in (yes, no)]), kind)


def _clip(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


def _broadcast(*args: Any) -> Any:
    return args


def _ndim(x: Any) -> int:
    return x.ndim


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.broadcast_arrays: _broadcast,
    np.clip: _clip,
    np.ndim: _ndim,
    np.where: _where,
}


def term_of(value: Any) -> tuple[Term, _Type]:
    """The term of a value, or of a number, and its type. Raises TypeError for an array."""
    if isinstance(value, Value):
        return value.term, value.dtype
    array = np.asarray(value)
    if array.size != 1:
        raise TypeError("an array has no term")
    kind = array.dtype
    bits = int.from_bytes(array.tobytes(), "little")
    return terms.constant(bits, _width(kind)), kind


def _kind(value: Any) -> Any:
    """The type, by which numpy chooses what to do: numbers of Python adapt to the other operand."""
    if isinstance(value, Value):
        return value.dtype
    return next((kind for kind in (int, float) if type(value) is kind), None) or np.asarray(value).dtype


@cache
def _loop(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> tuple[_Type, ...]:
    """The types that the operation works in, the result's last."""
    return ufunc.resolve_dtypes((*kinds, None))


def _width(kind: _Type) -> int:
    return 0 if kind.kind == "b" else 8 * kind.itemsize


def _cast(term: Term, old: _Type, new: _Type) -> Term:
    if old == new:
        return term
    if "f" in (old.kind, new.kind):
        return terms.apply(f"cast {old.str} {new.str}", [term], _width(new))
    if old.kind == "b":
        return terms.choose(term, terms.constant(1, _width(new)), terms.constant(0, _width(new)))
    if new.kind == "b":
        return terms.invert(terms.equal(term, terms.constant(0, term.width)))
    if _width(new) <= term.width:
        return words.extract(term, 0, _width(new))
    return (words.sign_extend if old.kind == "i" else words.zero_extend)(term, _width(new))


def _absolute(a: Term, signed: bool) -> Term:
    zero = terms.constant(0, a.width)
    return terms.choose(terms.less(a, zero, True), terms.subtract(zero, a), a) if signed else a


_UNARY: Mapping[np.ufunc, Callable[[Term, bool], Term]] = {
    np.absolute: _absolute,
    np.bitwise_count: lambda a, signed: terms.apply("ones", [a], 8),
    np.invert: lambda a, signed: terms.invert(a),
    np.logical_not: lambda a, signed: terms.invert(a),
    np.negative: lambda a, signed: terms.subtract(terms.constant(0, a.width), a),
}
_BINARY: Mapping[np.ufunc, Callable[[Term, Term, bool], Term]] = {
    np.add: lambda a, b, signed: terms.add(a, b),
    np.bitwise_and: lambda a, b, signed: terms.both(a, b),
    np.bitwise_or: lambda a, b, signed: words.either(a, b),
    np.bitwise_xor: lambda a, b, signed: terms.differ(a, b),
    np.equal: lambda a, b, signed: terms.equal(a, b),
    np.greater: lambda a, b, signed: terms.less(b, a, signed),
    np.greater_equal: lambda a, b, signed: terms.invert(terms.less(a, b, signed)),
    np.left_shift: lambda a, b, signed: words.shift_left(a, b),
    np.less: terms.less,
    np.less_equal: lambda a, b, signed: terms.invert(terms.less(b, a, signed)),
    np.logical_and: lambda a, b, signed: terms.both(a, b),
    np.logical_or: lambda a, b, signed: words.either(a, b),
    np.logical_xor: lambda a, b, signed: terms.differ(a, b),
    np.maximum: lambda a, b, signed: terms.choose(terms.less(a, b, signed), b, a),
    np.minimum: lambda a, b, signed: terms.choose(terms.less(a, b, signed), a, b),
    np.multiply: lambda a, b, signed: terms.multiply(a, b),
    np.not_equal: lambda a, b, signed: terms.invert(terms.equal(a, b)),
    np.right_shift: words.shift_right,
    np.subtract: lambda a, b, signed: terms.subtract(a, b),
}
"""Each also takes whether the integers are signed."""
