"""Roles against nvdisasm's life ranges: for every instruction of the cubins, the same registers are read and written.

What nvdisasm 13.5 shows otherwise is listed in `EXCEPTIONS` of bench/life_ranges.py, with the reason; nothing else may differ.
"""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sassir.asm.instruction import Instruction
from sassir.asm.parse import parse_instruction
from sassir.encoders.mining.oracle import find_nvdisasm
from sassir.errors import EncodingError
from sassir.isa import Access, roles

CUBINS = [p for p in sorted((Path(__file__).parents[1] / "cubins").glob("*.cubin")) if p.name.startswith(("isa_", "jump"))]


@pytest.fixture(scope="module")
def oracle() -> Any:
    """bench/life_ranges.py"""
    path = Path(__file__).parents[2] / "bench" / "life_ranges.py"
    spec = importlib.util.spec_from_file_location("life_ranges", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def instruction_of(text: str) -> Instruction:
    return parse_instruction(re.sub(r"`\(.*?\)", ".+0x10", text))


@pytest.mark.parametrize("cubin", CUBINS, ids=lambda path: path.stem)
def test_roles_equal_the_life_ranges(cubin: Path, oracle: Any):
    try:
        find_nvdisasm()
    except EncodingError as error:
        pytest.skip(str(error))
    results: Counter[str] = Counter()
    for shown in oracle.life_ranges(cubin):
        instruction = instruction_of(shown.text)
        results[oracle.compare(shown, roles(instruction), instruction)] += 1
    assert set(results) <= {"equal", *oracle.EXCEPTIONS}
    assert results["equal"] > 50


def test_a_wrong_width_is_noticed(oracle: Any):
    shown = oracle.Shown("sm_90", 0, "DADD R0, R2, R4", frozenset({"R0", "R1"}), frozenset({"R2", "R3", "R4", "R5"}))
    instruction = instruction_of(shown.text)
    right = roles(instruction)
    assert right is not None
    assert oracle.compare(shown, right, instruction) == "equal"
    narrow = right._replace(writes=(Access(0, 0, 1),))
    assert "written ['R0'] not ['R0', 'R1']" in oracle.compare(shown, narrow, instruction)
    late = right._replace(reads=right.reads[:1])
    assert "read ['R2', 'R3'] not" in oracle.compare(shown, late, instruction)
    assert oracle.compare(shown, None, instruction).startswith("unknown")
