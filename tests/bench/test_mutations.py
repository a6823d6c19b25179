"""Mutants differ from their kernel in one instruction, of each kind, and are made by sassir's own writer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sassir.asm.parse import parse_instruction
from sassir.gpu.suite import find_suite
from sassir.translate.cubin import read_program

mutations: Any = pytest.importorskip("mutations")

SUITE = find_suite(Path(__file__).parents[2] / "bench", "sm_90", ["poly_strict", "reduce_sum", "saxpy_gs"])


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("immediate", "IADD3 R4, R4, -0x1, RZ", ["IADD3 R4, R4, 0x0, RZ"]),
        ("immediate", "FADD R7, R7, 0.5", ["FADD R7, R7, 1.0"]),
        ("predicate", "@!P0 SEL R3, R4, R5, P1", ["@P0 SEL R3, R4, R5, P1", "@!P0 SEL R3, R4, R5, !P1"]),
        ("swapped operands", "FFMA R4, R5, -R6, R7", ["FFMA R4, R6, -R5, R7", "FFMA R4, R7, -R6, R5", "FFMA R4, R5, -R7, R6"]),
        ("dropped barrier", "BAR.SYNC 0x0", ["NOP"]),
        ("removed load", "@P1 LDG.E R4, desc[UR4][R2.64]", ["NOP"]),
        ("removed load", "STG.E desc[UR4][R2.64], R4", []),
    ],
)
def test_what_an_instruction_may_become(kind: str, text: str, expected: list[str]) -> None:
    assert [i.text for i in mutations.MUTATIONS[kind](parse_instruction(text))] == expected


def test_a_mutant_has_one_other_instruction() -> None:
    chosen = mutations.choose(SUITE, 30)
    assert len(chosen) == 30
    assert {mutant.kind for mutant in chosen} == set(mutations.MUTATIONS)
    for mutant in chosen:
        entry = next(e for e in SUITE if e.kernel == mutant.kernel)
        original = entry.cubin.read_bytes()
        mutated: bytes = mutations.build(mutant, original)
        functions = [read_program(data).functions for data in (original, mutated)]
        before, after = (found[int(mutant.function)].lines for found in functions)
        differing = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a.instruction != b.instruction]
        assert differing == [mutant.line]
        line = int(mutant.line)
        assert (before[line].instruction.text, after[line].instruction.text) == (mutant.before, mutant.after)


def test_the_choice_is_the_same_every_time() -> None:
    assert mutations.choose(SUITE, 20) == mutations.choose(SUITE, 20)
