"""Sizes are arithmetic, never Python: what can be written, and what is refused."""

from __future__ import annotations

import pytest

from sassir.errors import LaunchError
from sassir.launch.expression import evaluate, evaluate_call

SIZES = {"n": 1000, "w": 40}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (7, 7),
        (1.5, 1.5),
        ("n", 1000),
        ("cdiv(n, 256)", 4),
        ("cdiv(0, 256)", 0),
        ("max(1, n // 2000)", 1),
        ("4 * (n + 16) - -1", 4065),
        ("3 / w", 0.075),
        ("n % 7", 6),
    ],
)
def test_value(text: object, value: float) -> None:
    assert evaluate(text, SIZES) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("m + 1", "unknown size 'm'; known: n, w"),
        ("__import__('os').system('true')", "uses"),
        ("n.real", "uses 'n.real'"),
        ("n ** n", "uses 'n ** n'"),
        ("[n]", "uses '[n]'"),
        ("'n' * 2", 'uses "\'n\'"'),
        ("n +", "cannot read the expression"),
        ("n // 0", "cannot evaluate"),
        ("cdiv(n)", "cannot evaluate"),
        (True, "not a number or an expression"),
        (None, "not a number or an expression"),
    ],
)
def test_refusal_names_the_reason(text: object, reason: str) -> None:
    with pytest.raises(LaunchError) as caught:
        evaluate(text, SIZES)
    assert reason in str(caught.value)


def test_call_arguments_are_expressions() -> None:
    assert evaluate_call("uniform(-1, n / 4)", SIZES) == ("uniform", (-1, 250))
    assert evaluate_call("zeros", SIZES) == ("zeros", ())


@pytest.mark.parametrize("text", ["1", "uniform(low=1)", "f(1)(2)", 3])
def test_not_a_call(text: object) -> None:
    with pytest.raises(LaunchError, match="is not a call"):
        evaluate_call(text, SIZES)
