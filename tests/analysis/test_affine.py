"""Addresses as sums: which are the same, whatever instructions made them, and which may not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.analysis.affine import Affine, Form
from sassir.analysis.propagation import Propagation
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.passes.virtualise import virtualise
from sassir.translate.cubin import read_module
from sassir.translate.lift import lift_function

UNPLACED = Path(__file__).parents[1] / "cubins" / "unplaced.sm_90.cubin"


def test_two_arrays_that_the_linker_places_are_not_at_one_place() -> None:
    kernels = {k.function.data: k for k in read_module(UNPLACED.read_bytes()).body.ops if isinstance(k, KernelOp)}
    kernel = kernels["two_unplaced"]
    linked = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.link is not None]
    affine = Affine(Propagation(kernel, KernelFacts(), "sm_90"))
    assert len({affine.word(op.results[0]) for op in linked}) == len(linked) == 2


def _two_addresses(low: str, high: str, upper: str) -> tuple[Form, Form]:
    """Of a shifted number added to a pointer in two steps, and of the same in a LEA pair with `upper` as its upper word."""
    text = [
        "S2R R0, SR_TID.X",
        "LDC R1, c[0x0][0x220]",
        "LDC.64 R4, c[0x0][0x210]",
        low,
        high,
        "IADD3 R6, P0, R2, R4, RZ",
        "IADD3.X R7, R3, R5, RZ, P0, !PT",
        "LEA R8, P1, R0, R4, 0x2",
        f"LEA.HI.X R9, R0, R5, {upper}, 0x2, P1",
        "STG.E desc[UR4][R6.64], R0",
        "STG.E desc[UR4][R8.64], R0",
        "EXIT",
    ]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    kernel = lift_function(Function("k", None, lines, {}), {})
    assert virtualise(kernel) is None
    affine = Affine(Propagation(kernel, KernelFacts(), "sm_90"))
    stores = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "STG"]
    one, other = [affine.pair(op.operands[2], op.operands[3]) for op in stores]
    return one, other


@pytest.mark.parametrize("low", ["IMAD.SHL.U32 R2, R0, 0x4, RZ", "SHF.L.U32 R2, R0, 0x2, RZ", "IMAD R2, R0, 0x4, RZ"])
@pytest.mark.parametrize("upper", ["RZ", "R1"])
def test_a_number_shifted_in_two_registers_is_a_multiple(low: str, upper: str) -> None:
    one, other = _two_addresses(low, f"SHF.L.U64.HI R3, R0, 0x2, {upper}", upper)
    assert one == other
    assert len(one.terms) == 2


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("IMAD.SHL.U32 R2, R0, 0x4, RZ", "SHF.L.U64.HI R3, R0, 0x3, RZ"),
        ("IMAD.SHL.U32 R2, R0, 0x8, RZ", "SHF.L.U64.HI R3, R0, 0x2, RZ"),
        ("IMAD.SHL.U32 R2, R1, 0x4, RZ", "SHF.L.U64.HI R3, R0, 0x2, RZ"),
        ("IMAD.SHL.U32 R2, R0, 0x4, RZ", "SHF.L.U64.HI R3, R0, 0x2, R1"),
        ("IMAD.SHL.U32 R2, R0, 0x4, RZ", "SHF.L.U64.HI R3, R1, 0x2, RZ"),
    ],
)
def test_words_that_are_shifted_otherwise_are_not(low: str, high: str) -> None:
    one, other = _two_addresses(low, high, "RZ")
    assert one.terms != other.terms
