"""A listing with holes, or with something that does not belong there, gives one error that names the file; never another exception."""

from __future__ import annotations

from random import Random

import pytest

from sassir.asm.assemble import Table, assemble
from sassir.asm.listing import read_listing
from sassir.asm.print import print_listing
from sassir.errors import ListingError


def damaged(text: str, rng: Random) -> str:
    at, other = rng.randrange(len(text)), rng.randrange(len(text))
    match rng.choice(["cut", "drop", "copy", "change"]):
        case "cut":
            return text[:at]
        case "drop":
            return text[:at] + text[at + rng.randint(1, 60) :]
        case "copy":
            return text[:at] + text[other : other + 40] + text[at:]
        case _:
            return text[:at] + chr(rng.randrange(1, 300)) + text[at + 1 :]


def message(text: str, table: Table) -> str | None:
    """What is said about a listing; None when nothing is wrong with it."""
    try:
        assemble(read_listing(text, "k.sass", "sm_90"), table)
    except ListingError as error:
        return str(error)
    return None


def test_damage(community: str, table: Table) -> None:
    own = print_listing(assemble(read_listing(community), table, b"the original file"))
    rng = Random(2)
    messages = [message(damaged(text, rng), table) for text in (community, own) for _ in range(100)]
    refused = [m for m in messages if m is not None]
    assert len(refused) > 100
    assert all(m.startswith("k.sass:") for m in refused)


def test_the_error_is_short(community: str) -> None:
    with pytest.raises(ListingError) as caught:
        read_listing(community.replace("EXIT ;", "EXIT", 1) + 1000 * community)
    assert len(str(caught.value)) < 500
