"""Listings of compiled kernels, with the real encoding tables: every word comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sassir.asm import Program
from sassir.asm.assemble import assemble
from sassir.asm.listing import Listing, read_listing
from sassir.asm.print import print_listing
from sassir.encoders import table
from sassir.errors import ListingError
from sassir.translate.cubin import read_program

CUBINS = Path(__file__).parents[1] / "cubins"


def read(name: str) -> Program:
    path = CUBINS / f"{name}.cubin"
    return read_program(path.read_bytes(), path.name)


def words(program: Program) -> list[int | None]:
    return [line.instruction.word for function in program.functions for line in function.lines]


def encoded(program: Program) -> list[int]:
    encode = table(program.arch).encode
    return [encode(line.instruction) for function in program.functions for line in function.lines]


def without_words(program: Program) -> Program:
    """The program as it would be if it came from text. What the linker fills in is in the container that the text carries."""
    functions = [
        function._replace(
            lines=tuple([line._replace(instruction=line.instruction._replace(word=None)) for line in function.lines]), links={}
        )
        for function in program.functions
    ]
    return program._replace(functions=tuple(functions))


@pytest.mark.parametrize("path", sorted(CUBINS.glob("*.cubin")), ids=lambda path: path.stem)
def test_the_own_listing_says_everything(path: Path) -> None:
    program = read(path.stem)
    listing = read_listing(print_listing(program), path.name)
    again = assemble(listing, table(program.arch))
    assert again == without_words(program)
    assert encoded(again) == words(program)


@pytest.mark.parametrize(
    ("name", "cubin"),
    [
        ("nvdisasm13_hex.sm_90", "loop.sm_90"),
        ("cuobjdump13.sm_90", "loop.sm_90"),
        ("nvdisasm12_hex.sm_80", "loop.sm_80"),
        ("cuobjdump12.sm_80", "loop.sm_80"),
    ],
)
def test_listings_with_encodings(printed: Callable[[str], str], name: str, cubin: str) -> None:
    listing = read_listing(printed(name), name)
    assert words(assemble(listing, table(listing.arch))) == words(read(cubin))


def test_community_notation(community: str) -> None:
    listing = read_listing(community)
    assert encoded(assemble(listing, table(listing.arch))) == words(read("loop.sm_90"))


def edited(printed: Callable[[str], str], name: str, old: str, new: str) -> Listing:
    text = printed(name)
    assert old in text
    return read_listing(text.replace(old, new), name)


@pytest.mark.parametrize(
    ("name", "old", "new", "said", "encoded"),
    [
        ("nvdisasm13_hex.sm_90", "BSSY B0, `(.L_x_0) ;", "BSSY B0, `(.L_x_2) ;", "BSSY B0, .+0x90", "BSSY B0, .+0x120"),
        ("cuobjdump13.sm_90", "BSSY B0, 0x160 ;", "BSSY B0, 0x150 ;", "BSSY B0, .+0x110", "BSSY B0, .+0x120"),
        ("cuobjdump12.sm_80", "MOV R2, 0x100 ;", "MOV R2, 0x200 ;", "MOV R2, 0x200", "MOV R2, 0x100"),
    ],
)
def test_an_edit_beside_an_encoding_is_refused(
    printed: Callable[[str], str], name: str, old: str, new: str, said: str, encoded: str
) -> None:
    listing = edited(printed, name, old, new)
    with pytest.raises(ListingError, match="the text says") as caught:
        assemble(listing, table(listing.arch))
    assert f"the text says {said}, but its encoding {encoded}; after an edit" in str(caught.value)


def test_a_misspelt_mnemonic_gets_a_suggestion() -> None:
    text = print_listing(read("loop.sm_90")).replace(" FMNMX ", " FMNXM ")
    listing = read_listing(text, "loop.sass")
    with pytest.raises(ListingError) as caught:
        assemble(listing, table("sm_90"))
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "FMNXM" in line)
    first, source, caret = str(caught.value).splitlines()
    assert first.startswith(f"loop.sass:{line}:{source.index('FMNXM') - 3}: ")
    assert first.endswith("; did you mean FMNMX?")
    assert caret.index("^") == source.index("FMNXM")
