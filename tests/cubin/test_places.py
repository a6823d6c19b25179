"""Where the offsets of old code are in new code."""

from __future__ import annotations

import pytest

from sassir.cubin.code import Code, CodeSection
from sassir.cubin.places import Places
from sassir.errors import ContainerError


def places(old: int, moved: dict[int, int], new: int, labels: dict[int, int] | None = None) -> Places:
    """Places of a section of `old` instructions that has `new` now; the maps count instructions."""
    section = CodeSection(1, ".text.k", bytes(16 * old), (), (), ())
    scaled = [{16 * a: 16 * b for a, b in m.items()} for m in (moved, labels or {})]
    return Places(section, Code(bytes(16 * new), scaled[0], scaled[1]), "file")


def test_a_place_is_the_seam_between_blocks_however_they_were_reordered() -> None:
    reordered = places(4, {0: 1, 1: 0, 2: 3, 3: 2}, 4)
    assert reordered.place(32, "a branch") == 32
    assert reordered.instruction(32) == 48


def test_a_place_that_instructions_moved_across_is_refused() -> None:
    with pytest.raises(ContainerError, match="a branch refers to offset 0x20, but instructions were added or moved across it"):
        places(4, {0: 0, 1: 2, 2: 1, 3: 3}, 4).place(32, "a branch")


def test_where_an_instruction_was_added_only_a_label_tells_which_side_it_is_on() -> None:
    moved = {0: 0, 1: 1, 2: 3, 3: 4}
    with pytest.raises(ContainerError, match="give its new offset as a label"):
        places(4, moved, 5).place(32, "a branch")
    assert places(4, moved, 5, {2: 2}).place(32, "a branch") == 32


def test_the_ends_of_code_need_no_label() -> None:
    grown = places(2, {0: 1, 1: 3}, 6)
    assert (grown.place(0, "entry"), grown.place(32, "end")) == (0, 96)
