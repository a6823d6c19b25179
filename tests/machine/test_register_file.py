"""The banks of the register file, against what an H200 measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sassir.asm.instruction import Instruction
from sassir.asm.parse import parse_instruction
from sassir.asm.program import Function, Line
from sassir.machine import machine
from sassir.timing.warp import reading_cycles
from sassir.translate.flow import find_flow

RESULT = max((Path(__file__).parents[2] / "bench" / "results").glob("hopper-*.json"))
MEASURED = [i for i in json.loads(RESULT.read_text("utf-8"))["intervals"] if i["group"] == "operands"]


@pytest.mark.parametrize("found", MEASURED, ids=lambda found: found["what"])
def test_operands_take_as_long_as_on_hardware(found: dict[str, str]) -> None:
    """The instruction again and again: the cache holds what the one before has kept. The clock reads a little less than a whole cycle."""
    code: list[Instruction] = [parse_instruction(found["instruction"])] * 3
    flow = find_flow(Function("k", None, tuple([Line(i, 16 * n) for n, i in enumerate(code)]), {}), {})
    assert [*reading_cycles(code, flow, machine("sm_90"))][-1] == round(float(found["one"]))
