"""Parallel copies: every register gets the value that another one had before, on every architecture."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Block, SSAValue

from sassir.allocation.copies import COPY, EXCLUSIVE_OR, parallel_copy
from sassir.allocation.registers import fixed
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import UndefinedOp
from sassir.dialect.registers import FILES, REGISTERS
from sassir.rewrite.build import encodable, instruction

COUNT = 6
TARGETS = st.dictionaries(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1))
"""Sources by target: any parallel copy among a few registers, with values that go to several, chains and cycles."""


def run(ops: list[SassInstruction], registers: list[int]) -> None:
    """Execute copies and exclusive-ors."""
    for op in ops:
        sources = [registers[n] for v in internals.operands(op) if (n := fixed(v)) is not None]
        target = fixed(op.results[0])
        assert target is not None
        registers[target] = sources[0] ^ sources[1] if len(sources) == 2 else sources[0]


@given(TARGETS)
def test_all_sources_are_read_before_any_target_is_written(targets: dict[int, int]) -> None:
    values: list[SSAValue] = list(Block(arg_types=REGISTERS[:COUNT]).args)
    ops, copies = parallel_copy([(values[source], source, target) for target, source in targets.items()])
    before = [1 << n for n in range(COUNT)]
    after = list(before)
    run([op for op in ops if isinstance(op, SassInstruction)], after)
    assert after == [before[targets.get(n, n)] for n in range(COUNT)]
    assert {target: fixed(copy) for target, copy in copies.items()} == {target: target for target in targets}


def test_without_a_cycle_there_is_one_instruction_a_value() -> None:
    a, b, c, _ = Block(arg_types=REGISTERS[:4]).args
    ops, _ = parallel_copy([(a, 0, 1), (b, 1, 2), (c, 2, 3)])
    assert [op.name for op in ops] == ["sass.mov"] * 3


def test_two_registers_are_exchanged_without_a_third() -> None:
    a, b = Block(arg_types=REGISTERS[:2]).args
    ops, _ = parallel_copy([(a, 0, 1), (b, 1, 0)])
    assert [op.name for op in ops] == ["sass.lop3"] * 3


def test_what_is_undefined_is_not_copied() -> None:
    unknown = UndefinedOp.of(REGISTERS[0])
    ops, copies = parallel_copy([(unknown.value, 0, 1)])
    assert [op.name for op in ops] == ["sass.undefined"]
    assert fixed(copies[1]) == 1


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("file", COPY)
def test_every_architecture_has_the_instructions(file: str, arch: str) -> None:
    value = Block(arg_types=[FILES[file].of(1)]).args[0]
    assert encodable(instruction(COPY[file], [value]), arch)
    assert encodable(instruction(EXCLUSIVE_OR[file], [value, value]), arch)
