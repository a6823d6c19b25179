"""sass-promote-memory: a loop's word of memory in a register, only where nothing else can see or change it in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.analysis.region_loops import region_loops
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import FACTS, FactsAttr, KernelFacts, Pointer, used_facts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.launch import read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin, read_pipeline
from sassir.passes.promote_memory import PromoteMemory
from sassir.passes.virtualise import Virtualise
from sassir.translate.cubin import read_program
from sassir.translate.lift import ARCH, lift_function
from sassir.verify.assumptions import Assumptions
from sassir.verify.ladder import verify_pair

BENCH = Path(__file__).parents[2] / "bench"
BUFFERS = (Pointer(0x210, 256, 0x1000), Pointer(0x218, 256, 0x1000))
START = """
LDC.64 R2, c[0x0][0x210]
LDC.64 R4, c[0x0][0x218]
S2R R0, SR_TID.X
MOV R8, RZ
MOV R9, 0x1
"""
"""R2 and R4 are the buffers, R0 a number that is not known, R8 a counter, R9 some data."""
ACCESSES = ("LD", "LDG", "LDS", "ST", "STG", "STS")
END = """
IADD3 R8, R8, 0x1, RZ
ISETP.NE.AND P0, PT, R8, R0, PT
"""


def promoted(body: str, noalias: bool = True, behind: str = "") -> KernelOp:
    """A loop of `body` after the pass, with `behind` behind it."""
    inside = [*body.strip().splitlines(), *END.strip().splitlines()]
    text = [*START.strip().splitlines(), *inside, f"@P0 BRA .-{16 * (len(inside) + 1):#x}", *behind.strip().splitlines(), "EXIT"]
    return _promoted(text, noalias)


def _promoted(text: list[str], noalias: bool = True) -> KernelOp:
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    made = lift_function(Function("k", None, lines, {}), {})
    made.attributes[FACTS] = FactsAttr(KernelFacts(pointers=BUFFERS, noalias=noalias))
    module = ModuleOp([made], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    assert made.fixed is None
    PromoteMemory().apply(Context(), module)
    module.verify()
    return made


def names(kernel: KernelOp) -> list[list[str]]:
    """The loads and stores before the loop, in it, and behind it."""
    blocks = list(kernel.body.blocks)
    (loop,) = region_loops(kernel.body)
    start = blocks.index(loop.header)
    before = [b for b in blocks[:start] if b not in loop.blocks]
    behind = [b for b in blocks[start:] if b not in loop.blocks]
    parts = (before, [b for b in blocks if b in loop.blocks], behind)
    return [[op.MNEMONIC for b in part for op in b.ops if isinstance(op, SassInstruction) and op.MNEMONIC in ACCESSES] for part in parts]


SUM = """
LDG.E R10, desc[UR4][R2.64]
IADD3 R10, R10, R9, RZ
STG.E desc[UR4][R2.64], R10
"""


def test_an_accumulator_in_memory_is_loaded_before_the_loop_and_stored_behind_it() -> None:
    made = promoted(SUM, noalias=False)
    assert names(made) == [["LDG"], [], ["STG"]]
    assert used_facts(made) == ()


def test_a_load_of_another_buffer_needs_the_fact_that_buffers_do_not_overlap() -> None:
    body = "IMAD.WIDE R6, R8, 0x4, R4\nLDG.E R9, desc[UR4][R6.64]" + SUM
    with_fact, without = promoted(body), promoted(body, noalias=False)
    assert names(with_fact) == [["LDG"], ["LDG"], ["STG"]]
    assert used_facts(with_fact) == ("noalias",)
    assert names(without) == [[], ["LDG", "LDG", "STG"], []]
    assert used_facts(without) == ()


def test_only_stored_means_nothing_is_loaded() -> None:
    assert names(promoted("STG.E desc[UR4][R2.64], R8")) == [[], [], ["STG"]]


def test_a_load_that_nothing_changes_is_hoisted() -> None:
    body = "LDG.E R10, desc[UR4][R2.64]\nIMAD.WIDE R6, R8, 0x4, R4\nSTG.E desc[UR4][R6.64], R10"
    assert names(promoted(body)) == [["LDG"], ["STG"], []]
    assert names(promoted(body, noalias=False)) == [[], ["LDG", "STG"], []]


def test_the_store_may_be_conditional_if_another_one_always_happens() -> None:
    body = "ISETP.NE.AND P1, PT, R9, R8, PT\nSTG.E desc[UR4][R2.64], R8\n@P1 STG.E desc[UR4][R2.64], R9"
    assert names(promoted(body)) == [[], [], ["STG"]]


TRAPS = {
    "the same buffer at another index": "IMAD.WIDE R6, R8, 0x4, R2\nLDG.E R9, desc[UR4][R6.64]" + SUM,
    "a store through a pointer of unknown origin": "LDG.E.64 R6, desc[UR4][R4.64]\nSTG.E desc[UR4][R6.64], R9" + SUM,
    "a byte of the word": "LDG.E.U8 R9, desc[UR4][R2.64+0x3]" + SUM,
    "a wider access that begins before": "LDG.E.64 R12, desc[UR4][R2.64+-0x4]" + SUM,
    "generic memory": "LD.E R9, [R4.64]" + SUM,
    "a fence": SUM + "MEMBAR.SC.GPU",
    "a barrier": SUM + "BAR.SYNC.DEFER_BLOCKING 0x0",
    "what __syncwarp leaves": SUM + "NOP",
    "an atomic operation elsewhere": "RED.E.ADD.STRONG.GPU desc[UR4][R4.64], R9" + SUM,
    "volatile": SUM.replace(".E ", ".E.STRONG.SYS "),
    "a clock": SUM + "CS2R R12, SR_CLOCKLO",
    "only a conditional store": "ISETP.NE.AND P1, PT, R9, R8, PT\n@P1 STG.E desc[UR4][R2.64], R9",
    "only a conditional load": "ISETP.NE.AND P1, PT, R9, R8, PT\n@P1 LDG.E R10, desc[UR4][R2.64]",
    "an address that changes": "IADD3 R2, R2, 0x4, RZ" + SUM,
    "half a word": "STG.E.U16 desc[UR4][R2.64], R9",
    "shared memory, where volatile leaves no trace": "LDS R10, [R0]\nIADD3 R10, R10, R9, RZ\nSTS [R0], R10",
}


@pytest.mark.parametrize("body", TRAPS.values(), ids=TRAPS)
def test_it_stays_in_memory(body: str) -> None:
    made = promoted(body)
    before, inside, behind = names(made)
    assert (before, behind) == ([], [])
    assert sorted(inside) == sorted(n for line in body.splitlines() for n in line.replace(".", " ").split() if n in ACCESSES)
    assert used_facts(made) == ()


def test_a_disjoint_word_of_the_same_buffer_is_no_obstacle() -> None:
    assert names(promoted("LDG.E R9, desc[UR4][R2.64+0x4]" + SUM, noalias=False)) == [["LDG", "LDG"], [], ["STG"]]


def test_a_loop_that_may_not_run_once_keeps_its_accesses() -> None:
    body = ["ISETP.GE.AND P1, PT, R8, R0, PT", "@P1 BRA .+0x60", *SUM.strip().splitlines(), "IADD3 R8, R8, 0x1, RZ", "BRA .-0x70", "EXIT"]
    assert names(_promoted([*START.strip().splitlines(), *body])) == [[], ["LDG", "STG"], []]


def test_a_loop_that_waits_for_another_thread_goes_on_looking() -> None:
    body = ["LDG.E R10, desc[UR4][R2.64]", "ISETP.NE.AND P0, PT, R10, R0, PT", "@P0 BRA .-0x20", "EXIT"]
    assert names(_promoted([*START.strip().splitlines(), *body])) == [[], ["LDG"], []]


def test_a_thread_that_ends_in_the_loop_has_stored() -> None:
    body = SUM + "ISETP.EQ.AND P1, PT, R10, R0, PT\n@P1 EXIT"
    assert names(promoted(body)) == [[], ["LDG", "STG"], []]


def test_every_way_out_of_the_loop_stores() -> None:
    body = SUM + "ISETP.EQ.AND P1, PT, R10, R0, PT\n@P1 BRA .+0x40"
    made = promoted(body, behind="MOV R3, RZ")
    stores = [op.parent for b in made.body.blocks for op in b.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "STG"]
    assert names(made)[1] == []
    assert len({*stores}) == 2


def test_words_of_a_wide_access_are_variables_of_their_own() -> None:
    body = "LDG.E.64 R10, desc[UR4][R2.64]\nIADD3 R10, R10, R11, RZ\nSTG.E.64 desc[UR4][R2.64], R10"
    assert names(promoted(body)) == [["LDG"], [], ["STG"]]


def _spmv() -> bytes:
    return (BENCH / "cubins" / "spmv_csr.sm_90.cubin").read_bytes()


def test_spmv_stores_a_row_once_and_loads_eight_entries_at_a_time() -> None:
    file = read_launch_file(BENCH / "launch" / "spmv_csr.toml")
    made = optimise_cubin(Task(_spmv(), "spmv_csr", read_pipeline("launch"), file.facts, file.launch("small")))
    names = [line.instruction.mnemonic for line in read_program(made.cubin).functions[0].lines]
    assert "noalias" in made.outcomes[0].facts
    assert names.count("STG") == 2
    assert any(names[i : i + 24].count("LDG") >= 16 for i in range(len(names)))
    assert verify_pair(_spmv(), made.cubin, [file.launch("small")], file.facts, assumptions=made.assumptions).good


def test_verification_tries_overlapping_buffers_unless_the_fact_is_recorded() -> None:
    file = read_launch_file(BENCH / "launch" / "spmv_csr.toml")
    made = optimise_cubin(Task(_spmv(), "spmv_csr", Pipeline("test", 1, ("sass-promote-memory",)), file.facts, file.launch("small")))
    assert made.outcomes[0].facts == ("noalias",)

    def tried(assumptions: Assumptions) -> list[str]:
        report = verify_pair(_spmv(), made.cubin, [file.launch("small")], file.facts, assumptions=assumptions)
        return [check.subject for layer in report.layers for check in layer.checks if " is " in check.subject]

    assert tried(made.assumptions) == []
    assert tried({}) == ["launch small, x is y"]


def test_without_the_fact_nothing_of_it_changes() -> None:
    made = optimise_cubin(Task(_spmv(), "spmv_csr", Pipeline("test", 1, ("sass-promote-memory", "sass-forward-memory"))))
    assert made.outcomes[0].facts == ()
    names = [line.instruction.mnemonic for line in read_program(made.cubin).functions[0].lines]
    assert names.count("STG") == 2
    assert names.count("LDG") == 6
    file = read_launch_file(BENCH / "launch" / "spmv_csr.toml")
    assert verify_pair(_spmv(), made.cubin, [file.launch("tail")]).good
