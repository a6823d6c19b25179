"""Arithmetic of launch files: sizes, counts and scalars written as expressions of named sizes, never run as Python."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from sassir.errors import LaunchError

Number = int | float


def cdiv(dividend: int, divisor: int) -> int:
    """The quotient rounded up: how many blocks of `divisor` cover `dividend` elements."""
    return -(-dividend // divisor)


_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda dividend, divisor: dividend / divisor,
    ast.FloorDiv: lambda dividend, divisor: dividend // divisor,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[..., Number]] = {"cdiv": cdiv, "max": max, "min": min}


def evaluate(value: object, sizes: Mapping[str, Number]) -> Number:
    """The number that `value`, a number or an expression such as `cdiv(n, 256)`, stands for.

    Known are + - * / // % and unary minus, parentheses, cdiv, min, max and the names in `sizes`. Raises LaunchError.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise LaunchError(f"{value!r} is not a number or an expression")
    return _calculate(value, _parse(value), sizes)


def evaluate_call(value: object, sizes: Mapping[str, Number]) -> tuple[str, tuple[Number, ...]]:
    """Name and argument values of a call such as `uniform(-1, 1 / n)`; a bare name is a call without arguments. Raises LaunchError."""
    if not isinstance(value, str):
        raise LaunchError(f"{value!r} is not a call such as uniform(-1, 1)")
    match _parse(value):
        case ast.Name(id=name):
            return name, ()
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name, tuple(_calculate(value, argument, sizes) for argument in arguments)
        case _:
            raise LaunchError(f"{value!r} is not a call such as uniform(-1, 1)")


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise LaunchError(f"cannot read the expression {text!r}: {error.msg}") from error


def _calculate(text: str, node: ast.expr, sizes: Mapping[str, Number]) -> Number:
    def value(node: ast.expr) -> Number:
        match node:
            case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
                return constant
            case ast.Name(id=name):
                if name in sizes:
                    return sizes[name]
                raise LaunchError(f"{text!r} names an unknown size {name!r}; known: {', '.join(sizes) or 'none'}")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*map(value, arguments))
            case _:
                raise LaunchError(f"{text!r} uses {ast.unparse(node)!r}; allowed are + - * / // %, parentheses, {', '.join(_FUNCTIONS)}")

    try:
        return value(node)
    except (ZeroDivisionError, TypeError) as error:
        raise LaunchError(f"cannot evaluate {text!r}: {error}") from error
