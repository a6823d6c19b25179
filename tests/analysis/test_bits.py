"""Bits: every claim about where a bit comes from, held against the semantics of the instructions, over random words."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from xdsl.ir import SSAValue

from sassir.analysis.bit_words import NOTHING, UNKNOWN, Word, add, combine, low_bits, multiply, negated, number, shifted
from sassir.analysis.bits import Bits
from sassir.analysis.folding import fold
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import LARGEST
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import KernelFacts, Pointer
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import R
from sassir.passes.virtualise import virtualise
from sassir.rewrite.bits import copied_word, simplify_bits
from sassir.rewrite.build import name_of
from sassir.translate.lift import lift_function

FACTS = KernelFacts(pointers=(Pointer(0x210, 256, 1 << 20),))


def kernel_of(text: str) -> KernelOp:
    code = [parse_instruction(line) for line in f"{text}\nEXIT ;".splitlines() if line.strip()]
    kernel = lift_function(Function("k", None, tuple([Line(c, INSTRUCTION_BYTES * i) for i, c in enumerate(code)]), {}), {})
    assert virtualise(kernel) is None
    return kernel


def bits_of(kernel: KernelOp) -> Bits:
    return Bits(kernel, "sm_90", Propagation(kernel, FACTS, "sm_90"))


def instructions(kernel: KernelOp) -> list[SassInstruction]:
    return [op for op in kernel.walk() if isinstance(op, SassInstruction)]


def holds(word: Word, found: int, values: Mapping[SSAValue, int], bits: Bits | None = None) -> bool:
    """Whether what is said of the bits of a word is true of the number `found`."""
    for i, bit in enumerate(word):
        source = bits.source(bit) if bits is not None else None
        told = values[source[0]] >> source[1] & 1 if source is not None else bit
        if told not in (UNKNOWN, found >> i & 1):
            return False
    return True


def unknown(bank: int, offset: int) -> None:
    """What constant memory holds."""


MOVING = [
    "PRMT R9, R0, 0x7604, R1",
    "PRMT R9, R0, 0x8880, RZ",
    "PRMT R9, R0, 0xba98, R1",
    "PRMT R9, RZ, 0x3210, R1",
    "SHF.L.U32 R9, R0, 0x5, RZ",
    "SHF.R.U32.HI R9, RZ, 0x10, R1",
    "SHF.R.S32.HI R9, RZ, 0x1f, R1",
    "SHF.L.W.U32.HI R9, R0, 0xd, R1",
    "SHF.R.U64 R9, R0, 0x8, R1",
    "SGXT R9, R0, 0x8",
    "SGXT.U32 R9, R0, 0x10",
    "LOP3.LUT R9, R0, 0xff00, RZ, 0xc0, !PT",
    "LOP3.LUT R9, R0, 0xff00, R1, 0xb8, !PT",
    "LOP3.LUT R9, R0, 0xff, R0, 0x3c, !PT",
    "LOP3.LUT R9, R0, R1, R2, 0x96, !PT",
    "MOV R9, R0",
    "IMAD.MOV.U32 R9, RZ, RZ, R1",
    "IMAD.SHL.U32 R9, R0, 0x100, RZ",
    "IMAD R9, R0, 0x30, R1",
    "IMAD R9, R0, -0x8, R1",
    "IADD3 R9, R0, -R1, 0x7",
    "VIADD R9, R0, 0x10",
    "LEA R9, R0, R1, 0x4",
    "SEL R9, R0, R0, P0",
]


@pytest.mark.parametrize("line", MOVING)
@pytest.mark.parametrize("narrowed", [False, True])
def test_each_instruction_does_to_the_bits_what_is_said(line: str, narrowed: bool) -> None:
    """With operands that are anything, and with ones whose low and high bits are known."""
    before = "LOP3.LUT R0, R0, 0xffff0, RZ, 0xc0, !PT ;\nSHF.L.U32 R1, R1, 0x18, RZ ;" if narrowed else ""
    kernel = kernel_of(f"{before}\n{line} ;\nSTG.E desc[UR4][R4.64], R9 ;")
    bits = bits_of(kernel)
    ops = instructions(kernel)[:-2]
    told = bits.word(ops[-1].results[0])
    random.seed(line)
    for _ in range(40):
        values: dict[SSAValue, int] = {}
        for op in ops:
            reads = [values.setdefault(v, random.getrandbits(32 if isinstance(v.type, R) else 1)) for v in op.reads]
            found = fold(op, reads, unknown, "sm_90")
            assert found is not None
            values.update(zip(op.results, found, strict=True))
        assert holds(told, values[ops[-1].results[0]], values, bits)


def test_arithmetic_of_words_holds_for_every_number_that_fits_them() -> None:
    random.seed(1)
    for _ in range(300):
        values = [random.getrandbits(32) for _ in range(3)]
        known = [random.choice([0, 0xF, 0xFF, 0xFF00FF, 0xFFFFFFFF, random.getrandbits(32)]) for _ in range(3)]
        words = [[v >> i & 1 if k >> i & 1 else UNKNOWN for i in range(32)] for v, k in zip(values, known, strict=True)]
        a, b, c = words
        x, y, z = values
        table = random.getrandbits(8)
        logic = sum([(table >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1) & 1) << i for i in range(32)])
        for word, found in (
            (add(a, b), x + y),
            (multiply(a, b), x * y),
            (negated(a), -x),
            (shifted(a, 5), x << 5),
            (combine(table, a, b, c), logic),
        ):
            assert holds(word, found & LARGEST, {})


def test_known_bits_are_not_given_away() -> None:
    multiple_of_16 = [0, 0, 0, 0, *NOTHING[4:]]
    assert low_bits(add(multiple_of_16, number(7))) == (4, 7)
    assert low_bits(multiply(multiple_of_16, [0, 1, *NOTHING[2:]])) == (5, 0)
    assert low_bits(negated([1, 1, *NOTHING[2:]])) == (2, 1)


def test_a_loop_that_adds_a_multiple_keeps_the_remainder_of_its_pointer() -> None:
    kernel = kernel_of("""
        LDC.64 R2, c[0x0][0x210] ;
        IADD3 R2, P0, R2, 0x7, RZ ;
        LDG.E R0, desc[UR4][R2.64] ;
        IADD3 R2, P0, R2, 0x30, RZ ;
        ISETP.GT.AND P1, PT, R0, RZ, PT ;
        @P1 BRA .-0x30 ;
        STG.E desc[UR4][R2.64], R0 ;""")
    bits = bits_of(kernel)
    load, store = [op for op in instructions(kernel) if op.MNEMONIC in ("LDG", "STG")]
    assert [low_bits(bits.word(op.reads[2])) for op in (load, store)] == [(4, 7), (4, 7)]
    assert bits.facts(store.reads[2]) == {"align 0x210"}


def test_a_word_taken_apart_and_put_together_is_that_word_and_in_another_order_one_instruction() -> None:
    apart = """
        LOP3.LUT R1, R0, 0xff, RZ, 0xc0, !PT ;
        SHF.R.U32.HI R2, RZ, 0x8, R0 ;
        LOP3.LUT R2, R2, 0xff, RZ, 0xc0, !PT ;
        SHF.R.U32.HI R3, RZ, 0x10, R0 ;"""
    end = "\nPRMT R4, R4, 0x5410, R3 ;\nSTG.E desc[UR4][R6.64], R4 ;"
    same = kernel_of(f"{apart}\nLEA R4, R2, R1, 0x8 ;{end}")
    assert simplify_bits(same, bits_of(same)) == set()
    (store,) = [op for op in instructions(same) if op.MNEMONIC == "STG"]
    assert not isinstance(store.reads[-1].owner, SassInstruction)
    swapped = kernel_of(f"{apart}\nLEA R4, R1, R2, 0x8 ;{end}")
    simplify_bits(swapped, bits_of(swapped))
    (store,) = [op for op in instructions(swapped) if op.MNEMONIC == "STG"]
    made = store.reads[-1].owner
    assert isinstance(made, SassInstruction)
    assert (name_of(made), made.template.text) == ("PRMT", "=R, $R, 0x3201, RZ")


def test_a_copy_that_a_guard_may_leave_undone_is_no_copy() -> None:
    kernel = kernel_of("@P0 MOV R1, R0 ;\nSTG.E desc[UR4][R6.64], R1 ;")
    moved = instructions(kernel)[0]
    bits = bits_of(kernel)
    assert copied_word(bits, bits.word(moved.results[0])) is moved.results[0]
    assert simplify_bits(kernel, bits_of(kernel)) is None
