"""nvdisasm's text as tokens: what the miner compares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from sassir.encoders.aliases import ALIASED, ALIASES

Edit = tuple[int, int, tuple[str, ...]]
"""Tokens start to end become others."""
Span = tuple[int, int]

SEPARATOR = ", "
"""Token between the mnemonic and each operand."""

_GUARD = re.compile(r"@(!?)(U?P[0-6T])\s+")
_TOKEN = re.compile(
    r"""\.[-+]0x[0-9a-f]+
      | -?0x[0-9a-f]+
      | [-+](?:INF|[QS]NAN)
      | \d+[A-Z_]\w*
      | -?\d+(?:\.\d+)?(?:e[-+]\d+)?(?!\w)
      | \.[A-Za-z0-9_?]+
      | \?\?\?\d+
      | [A-Za-z_]\w*
      | \s
      | .""",
    re.X,
)
_REGISTER = re.compile(r"(UR|UP|SB|R|P|B)(\d+|Z|T)$")
_FLOAT = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?$|[-+](?:INF|[QS]NAN)$")
_PAYLOAD = re.compile(r"(?<=NAN)\(0x[0-9a-f]+\)")
_TARGET = re.compile(r"\.[-+]0x[0-9a-f]+$")
_HEX = re.compile(r"-?0x[0-9a-f]+$")


@cache
def kind_of(token: str) -> str | None:
    """`R`, `UR`, `P`, `UP`, `B`, `SB` for a register; `int`, `float` for a number; `pc` for a displacement; else None."""
    if match := _REGISTER.match(token):
        return match[1]
    if _HEX.match(token):
        return "int"
    if _TARGET.match(token):
        return "pc"
    return "float" if _FLOAT.match(token) else None


def register_index(token: str) -> int | None:
    """The number of a register; None for a zero register and for what is no register."""
    match = _REGISTER.match(token)
    return int(match[2]) if match and match[2].isdigit() else None


def without_payload(text: str) -> str:
    """A NaN as nvdisasm prints it: `+QNAN(0x7fc00000)` is `+QNAN`."""
    return _PAYLOAD.sub("", text)


def split_guard(text: str) -> tuple[str, str]:
    """`@!P0 NOP` is ('!P0', 'NOP')."""
    match = _GUARD.match(text)
    return (match[1] + match[2], text[match.end() :]) if match else ("", text)


def split_operands(text: str) -> list[str]:
    """Operands as sassir separates them: at commas, and at the blank between a register and what follows it."""
    operands: list[str] = []
    depth, current = 0, ""
    for i, char in enumerate(text):
        depth += (char in "[{(") - (char in "]})")
        if depth == 0 and (char == "," or (char == " " and current and text[i + 1] != "[")):
            operands.append(current)
            current = ""
        elif char != " " or current:
            current += char
    return [*operands, current] if current else operands


def tokenize(text: str) -> list[str]:
    """Tokens of an instruction without guard: mnemonic, `.MOD`s, then for each operand a SEPARATOR and its tokens."""
    name, _, rest = text.partition(" ")
    modifiers = name.split(".")
    if modifiers[0] == ALIASED:
        modifiers = [m for m in modifiers if m not in ALIASES]  # they stand for no bits
    tokens = [t if i == 0 else "." + t for i, t in enumerate(modifiers)]
    for operand in split_operands(rest.replace(" ,", ",").replace(" .", ".").strip()):
        tokens.append(SEPARATOR)
        tokens += _TOKEN.findall(operand)
    return tokens


def edits(a: Sequence[str], b: Sequence[str]) -> list[Edit]:
    """How to make `b` from `a`: (start, end, replacement) with a[start:end] replaced, ascending and disjoint."""
    start, end_a, end_b = 0, len(a), len(b)
    while start < end_a and start < end_b and a[start] == b[start]:
        start += 1
    while end_a > start and end_b > start and a[end_a - 1] == b[end_b - 1]:
        end_a, end_b = end_a - 1, end_b - 1
    n, m = end_a - start, end_b - start
    if n == 0 and m == 0:
        return []
    if n == 0 or m == 0 or n == m == 1:
        return [(start, end_a, tuple(b[start:end_b]))]
    if n == m:  # token for token where the shape is the same
        return [(start + i, start + i + 1, (b[start + i],)) for i in range(n) if a[start + i] != b[start + i]]
    # Longest common subsequence of the middle.
    best = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            same = a[start + i] == b[start + j]
            best[i][j] = best[i + 1][j + 1] + 1 if same else max(best[i + 1][j], best[i][j + 1])
    result: list[Edit] = []
    i = j = i0 = j0 = 0
    while i < n or j < m:
        if i < n and j < m and a[start + i] == b[start + j] and best[i][j] == best[i + 1][j + 1] + 1:
            if i > i0 or j > j0:
                result.append((start + i0, start + i, tuple(b[start + j0 : start + j])))
            i, j = i + 1, j + 1
            i0, j0 = i, j
        elif j == m or (i < n and best[i + 1][j] >= best[i][j + 1]):
            i += 1
        else:
            j += 1
    if n > i0 or m > j0:
        result.append((start + i0, end_a, tuple(b[start + j0 : end_b])))
    return result


def overlap(a: list[Span], b: list[Span]) -> bool:
    """Two spans share a token, or insert at the same place."""
    return any((s < f and t < e) or (s == e == t == f) or (s == e and t < s < f) or (t == f and s < t < e) for s, e in a for t, f in b)


def apply_edits(tokens: Sequence[str], changes: list[Edit], region: Span | None = None) -> tuple[str, ...]:
    """The tokens (of the region) after all changes (within it)."""
    start, end = region or (0, len(tokens))
    result: list[str] = []
    at = start
    for a, b, new in sorted(changes):
        if a >= max(start, at) and b <= end:
            result += [*tokens[at:a], *new]
            at = b
    return (*result, *tokens[at:end])
