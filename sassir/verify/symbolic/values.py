"""Terms in the place of numpy arrays, so that the functions of `sassir.isa.semantics` run on what is not known.

A value answers numpy's protocols: integer operations become terms; an operation on floats becomes a function of which nothing is
known but its name, so that floats are equal where the same operations were done in the same order. What has no term raises
TypeError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from sassir.verify.symbolic import terms
from sassir.verify.symbolic.terms import Term

_Type = np.dtype[Any]
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
        if ufunc not in _OPERATIONS:
            raise TypeError(f"{ufunc.__name__} has no term")
        return Value(_OPERATIONS[ufunc](*args, *[kinds[0].kind == "i"] * (ufunc in _SIGNED)), result)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function not in _FUNCTIONS:
            raise TypeError(f"{function.__name__} has no term")
        return _FUNCTIONS[function](*args, **options)


def _where(condition: Any, yes: Any, no: Any) -> Value:
    kind = np.result_type(_kind(yes), _kind(no))
    truth = _cast(*term_of(condition), np.dtype(np.bool_))
    return Value(terms.choose(truth, *[_cast(*term_of(x), kind) for x in (yes, no)]), kind)


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.broadcast_arrays: lambda *args: args,
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.ndim: lambda x: x.ndim,
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
    return type(value) if type(value) in (int, float) else np.asarray(value).dtype if not isinstance(value, Value) else value.dtype


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
        return terms.extract(term, 0, _width(new))
    return (terms.sign_extend if old.kind == "i" else terms.zero_extend)(term, _width(new))


def _less(a: Term, b: Term, signed: bool) -> Term:
    return terms.less(a, b, signed)


def _greater(a: Term, b: Term, signed: bool) -> Term:
    return terms.less(b, a, signed)


def _not(function: Callable[..., Term]) -> Callable[..., Term]:
    return lambda *args: terms.invert(function(*args))


def _absolute(a: Term, signed: bool) -> Term:
    zero = terms.constant(0, a.width)
    return terms.choose(terms.less(a, zero, True), terms.subtract(zero, a), a) if signed else a


_SIGNED: Mapping[np.ufunc, Callable[..., Term]] = {
    np.absolute: _absolute,
    np.greater: _greater,
    np.greater_equal: _not(_less),
    np.less: _less,
    np.less_equal: _not(_greater),
    np.maximum: lambda a, b, signed: terms.choose(terms.less(a, b, signed), b, a),
    np.minimum: lambda a, b, signed: terms.choose(terms.less(a, b, signed), a, b),
    np.right_shift: terms.shift_right,
}
"""Operations that also take whether the integers are signed."""
_OPERATIONS: Mapping[np.ufunc, Callable[..., Term]] = {
    **_SIGNED,
    np.add: terms.add,
    np.bitwise_and: terms.both,
    np.bitwise_count: lambda a: terms.apply("ones", [a], 8),
    np.bitwise_or: terms.either,
    np.bitwise_xor: terms.differ,
    np.equal: terms.equal,
    np.invert: terms.invert,
    np.left_shift: terms.shift_left,
    np.logical_and: terms.both,
    np.logical_not: terms.invert,
    np.logical_or: terms.either,
    np.logical_xor: terms.differ,
    np.multiply: terms.multiply,
    np.negative: lambda a: terms.subtract(terms.constant(0, a.width), a),
    np.not_equal: _not(terms.equal),
    np.subtract: terms.subtract,
}
