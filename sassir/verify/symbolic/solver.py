"""Terms as formulas of z3, and the question whether two of them are equal for all values of their variables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from sassir.verify.differential import OutOfTimeError
from sassir.verify.symbolic.alike import aligned, small
from sassir.verify.symbolic.sample import Sample
from sassir.verify.symbolic.terms import MEMORY, Term

z3: Any = import_module("z3")
_MILLISECONDS = 1000
_SAMPLES = 3
_SHORT = 0.5
"""Seconds for the proof that two parts are equal."""


class Solver:
    """Proofs within `seconds` altogether; raises OutOfTimeError when they are over."""

    def __init__(self, seconds: float, cells: Mapping[str, int], bounds: Mapping[str, range]) -> None:
        """`cells`: bits of a cell of each memory space; `bounds`: which numbers variables can be, by name."""
        self._seconds = seconds
        self._end = time.perf_counter() + seconds
        self._cells, self._bounds = cells, bounds
        self._given: list[Any] = []
        self._samples = [Sample(number, bounds) for number in range(_SAMPLES)]
        self._formulas: dict[Term, Any] = {}
        self._known: dict[tuple[Term, Term], bool] = {}
        self._tried: set[tuple[Term, Term]] = set()

    def left(self) -> float:
        """Seconds."""
        seconds = self._end - time.perf_counter()
        if seconds <= 0:
            raise OutOfTimeError(f"no proof within {self._seconds:g} s")
        return seconds

    def equal(self, a: Term, b: Term) -> bool:
        """Whether a and b are proven equal; False if they are not, or it cannot be said within a part of the time.

        Where they are built alike, their parts are compared first, from the leaves up: small proofs are quick, and equal parts
        make equal wholes.
        """
        if a is b:
            return True
        if any(sample.differ(a, b) for sample in self._samples):
            return False
        for (x, y), parts in aligned(a, b).items():
            if (x, y) not in self._known:
                same = bool(parts) and all(p is q or self._known[p, q] for p, q in parts)
                self._known[x, y] = same or self._prove_small(x, y)
        if not self._known[a, b] and (a, b) not in self._tried:
            self._tried.add((a, b))
            self._known[a, b] = self._prove(a, b, self.left() / 10)
        return self._known[a, b]

    def _prove_small(self, a: Term, b: Term) -> bool:
        return small(a) and small(b) and not any(s.differ(a, b) for s in self._samples) and self._prove(a, b, _SHORT)

    def _prove(self, a: Term, b: Term, seconds: float) -> bool:
        solver = z3.Solver()
        solver.set("timeout", max(1, int(min(seconds, self.left()) * _MILLISECONDS)))
        solver.add(self._formula(a) != self._formula(b), *self._given)
        return solver.check() == z3.unsat

    def _formula(self, term: Term) -> Any:
        """Made from the leaves up, as terms may be deep."""
        work = [term]
        while work:
            top = work[-1]
            missing = [part for part in top.parts if part not in self._formulas] if top not in self._formulas else []
            if missing:
                work += missing
                continue
            work.pop()
            if top not in self._formulas:
                self._formulas[top] = self._translate(top, [self._formulas[part] for part in top.parts])
        return self._formulas[term]

    def _translate(self, term: Term, parts: list[Any]) -> Any:
        match term.op:
            case "constant":
                return z3.BitVecVal(term.value, term.width) if term.width else z3.BoolVal(bool(term.value))
            case "variable" | "passing":
                name = str(term.args[0])
                found = z3.Const(name, self._sort(term))
                if name in self._bounds:
                    self._given += _within(found, self._bounds[name])
                return found
            case "function":
                sorts = [part.sort() for part in parts]
                return z3.Function(f"{term.args[0]} {sorts}", *sorts, self._sort(term))(*parts)
            case "sum":
                factors = [z3.BitVecVal(k, term.width) for k in term.args[1:-1:2]]
                products = [part * k for part, k in zip(parts, factors, strict=True)]
                return sum(products, z3.BitVecVal(term.args[-1], term.width))
            case "extract":
                first = term.args[1]
                assert isinstance(first, int)
                return z3.Extract(first + term.width - 1, first, parts[0])
            case "sign_extend":
                return z3.SignExt(term.width - parts[0].size(), parts[0])
            case "shl" | "lshr" | "ashr":
                return _shift(term.op, *parts)
            case "not" | "and" | "or" | "xor" if not term.width:
                return _LOGIC[term.op](*parts)
            case _:
                return _OPERATIONS[term.op](*parts)

    def _sort(self, term: Term) -> Any:
        if term.width == MEMORY:
            space = str(term.args[0]).split()[0]
            return z3.ArraySort(z3.BitVecSort(64), z3.BitVecSort(self._cells[space]))
        return z3.BitVecSort(term.width) if term.width else z3.BoolSort()


def _within(word: Any, numbers: range) -> list[Any]:
    """That a word, signed, is one of these consecutive numbers; of those from 0 on one comparison is enough."""
    return [z3.ULT(word, numbers.stop)] if numbers.start == 0 else [word >= numbers[0], word <= numbers[-1]]


def _shift(op: str, a: Any, n: Any) -> Any:
    """The count may have another width; from the width of `a` on it shifts everything out, in numpy as in z3."""
    width = a.size()
    if n.size() > width:
        n = z3.If(z3.UGE(n, width), z3.BitVecVal(width, width), z3.Extract(width - 1, 0, n))
    elif n.size() < width:
        n = z3.ZeroExt(width - n.size(), n)
    return _OPERATIONS[op](a, n)


_LOGIC: Mapping[str, Callable[..., Any]] = {"not": z3.Not, "and": z3.And, "or": z3.Or, "xor": z3.Xor}
_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "and": z3.BitVecRef.__and__,
    "ashr": z3.BitVecRef.__rshift__,
    "concat": z3.Concat,
    "equal": z3.ExprRef.__eq__,
    "if": z3.If,
    "load": z3.Select,
    "lshr": z3.LShR,
    "multiply": z3.BitVecRef.__mul__,
    "not": z3.BitVecRef.__invert__,
    "or": z3.BitVecRef.__or__,
    "shl": z3.BitVecRef.__lshift__,
    "slt": z3.BitVecRef.__lt__,
    "store": z3.Store,
    "ult": z3.ULT,
    "xor": z3.BitVecRef.__xor__,
}
