"""The edits of the hardware check change the text as they say, and refuse a text that is not the kernel they know."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

BEFORE = """\
    %r2_1 = sass.ldg<"E"> "=R, desc[$UR2][$R2.64]"(%ur4, %ur5, %r2, %r3) : UR4 UR5 R2 R3 -> R2 control<stall=2, yield, write=2> at 0xd0
    %r9_1 = sass.iadd3 "=R, $R.reuse, 0x3e8, RZ"(%r2_1) : R2 -> R9 control<stall=1, wait=[2]> at 0x100
    %r11 = sass.lop3<"LUT"> "=R, $R, 0x55aa, RZ, 0x3c, !PT"(%r2_1) : R2 -> R11 control<stall=4> at 0x110
    sass.stg<"E"> "desc[$UR2][$R2.64], $R"(%ur4, %ur5, %r4, %r5, %r9_1) : UR4 UR5 R4 R5 R9 control<stall=1> at 0x120
"""


@pytest.fixture(scope="module")
def edits() -> Any:
    path = Path(__file__).parents[2] / "bench" / "text_edits.py"
    spec = importlib.util.spec_from_file_location("text_edits", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_constant_changes_alone(edits: Any) -> None:
    assert edits.change_constant(BEFORE) == BEFORE.replace("0x3e8", "0x7d0")


def test_swapped_instructions_leave_the_schedule_in_its_place(edits: Any) -> None:
    load, add, xor, store = BEFORE.splitlines()
    after = edits.swap(BEFORE).splitlines()
    assert [after[0], after[3]] == [load, store]
    assert after[1] == xor.replace("control<stall=4>", "control<stall=10, wait=[2]>")
    assert after[2] == add.replace("control<stall=1, wait=[2]>", "control<stall=10>").replace(".reuse", "")


def test_inserted_instructions_form_a_chain(edits: Any) -> None:
    load, add, xor, store = BEFORE.splitlines()
    assert edits.insert(2)(BEFORE).splitlines() == [
        load,
        add.replace("stall=1", "stall=10").replace(".reuse", ""),
        '    %more0 = sass.iadd3 "=R, $R, 0x3e8, RZ"(%r9_1) : R9 -> R9 control<stall=10>',
        '    %more1 = sass.iadd3 "=R, $R, 0x3e8, RZ"(%more0) : R9 -> R9 control<stall=10>',
        xor,
        store.replace("%r9_1", "%more1"),
    ]


def test_another_kernel_is_refused(edits: Any) -> None:
    for edit in edits.EDITS[1:]:
        with pytest.raises(ValueError, match="expected one line with 0x3e8, found 0"):
            edit.apply(BEFORE.replace("0x3e8", "0x1"))
