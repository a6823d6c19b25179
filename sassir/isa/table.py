"""All instruction descriptions of sm_75 to sm_120, by mnemonic."""

from __future__ import annotations

from functools import cache
from itertools import chain

from sassir.isa import arithmetic, flow, memory, tensor, texture, uniform
from sassir.isa.description import Description, parse_table


def _by_mnemonic() -> dict[str, list[Description]]:
    """The rows of each mnemonic, those for more modifiers first."""
    rows: dict[str, list[Description]] = {}
    for row in chain.from_iterable(parse_table(group.TABLE) for group in (arithmetic, uniform, memory, texture, tensor, flow)):
        others = rows.setdefault(row.mnemonic, [])
        if any(other.modifiers == row.modifiers for other in others):
            raise ValueError(f"two table rows for {row.name}")
        others.append(row)
    for others in rows.values():
        others.sort(key=lambda row: -len(row.modifiers))
        if others[-1].modifiers:
            raise ValueError(f"{others[-1].mnemonic} has no table row without modifiers")
    return rows


DESCRIPTIONS = _by_mnemonic()
"""Rows by mnemonic; the last one of each holds for all modifiers that the others do not cover."""


@cache
def describe(mnemonic: str, modifiers: tuple[str, ...] = ()) -> Description | None:
    """The row for an instruction of this mnemonic and these modifiers; None if the mnemonic is unknown (OPAQUE among them)."""
    rows = DESCRIPTIONS.get(mnemonic, [])
    return next((row for row in rows if row.modifiers.issubset(modifiers)), None)
