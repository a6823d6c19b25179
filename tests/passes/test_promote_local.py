"""sass-promote-local: arrays on the stack in registers, also where an index only has bounds; sass-flatten: searches without branches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import summarise
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.emulator import emulate
from sassir.launch import read_launch_file
from sassir.optimize import Task, optimise_cubin, read_pipeline
from sassir.passes.flatten import Flatten
from sassir.passes.promote_local import PromoteLocal
from sassir.passes.virtualise import Virtualise
from sassir.translate.cubin import read_program
from sassir.translate.lift import ARCH, lift_function
from sassir.verify.container import check_container

BENCH = Path(__file__).parents[2] / "bench"
START = "LDC R1, c[0x0][0x28]\nIADD3 R1, R1, -0x10, RZ\nS2R R0, SR_TID.X\nLDC.64 R2, c[0x0][0x210]"
FILL = "MOV R8, 0x7\nMOV R9, 0x8\nSTL.64 [R1], R8\nSTL.64 [R1+0x8], R8"
END = "STG.E desc[UR4][R2.64], R6\nEXIT"
BOUNDED = "LOP3.LUT R4, R0, 0x3, RZ, 0xc0, !PT\n"
"""An index from 0 to 3."""


def lifted(*parts: str) -> tuple[ModuleOp, KernelOp]:
    text = [line for part in (START, *parts, END) for line in part.strip().splitlines()]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    made = lift_function(Function("k", None, lines, {}), {})
    module = ModuleOp([made], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    assert made.fixed is None
    return module, made


def promoted(*parts: str) -> list[str]:
    module, made = lifted(*parts)
    PromoteLocal().apply(Context(), module)
    module.verify()
    return names(made)


def names(kernel: KernelOp) -> list[str]:
    return [op.MNEMONIC for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]


def is_local(names: list[str]) -> bool:
    return "LDL" in names or "STL" in names


def test_known_places_are_registers() -> None:
    assert not is_local(promoted(FILL, "LDL R6, [R1+0x4]"))


def test_a_load_at_a_bounded_index_is_a_selection() -> None:
    found = promoted(FILL, BOUNDED, "LEA R5, R4, R1, 0x2\nLDL R6, [R5]")
    assert not is_local(found)
    assert found.count("SEL") == 3


def test_a_conditional_store_at_a_bounded_index_selects_each_word() -> None:
    store = "ISETP.NE.AND P0, PT, R0, R2, PT\nLEA R5, R4, R1, 0x2\n@!P0 STL [R5], R0"
    found = promoted(FILL, BOUNDED, store, "LDL R6, [R1+0x8]")
    assert not is_local(found)
    assert found.count("SEL") == 1  # the others are not read


JOINT = """
ISETP.NE.AND P0, PT, R0, R2, PT
MOV R4, 0x1
@P0 BRA .+0x20
MOV R4, 0x2
LEA R5, R4, R1, 0x2
STL [R5], R0
"""


def test_where_paths_with_known_indices_meet_each_of_them_stores() -> None:
    found = promoted(FILL, JOINT, "LDL R6, [R1+0x8]")
    assert not is_local(found)
    assert "SEL" not in found


def test_two_stores_behind_one_joint_keep_their_order() -> None:
    again = "LEA R7, R4, R1, 0x2\nSTL [R7], R2"
    assert "SEL" in promoted(FILL, JOINT + again, "LDL R6, [R1+0x8]")


def test_not_if_an_access_lies_between_the_joint_and_the_store() -> None:
    found = promoted(FILL, JOINT.replace("LEA R5", "LDL R7, [R1+0x8]\nSTG.E desc[UR4][R2.64+0x10], R7\nLEA R5"), "LDL R6, [R1+0x8]")
    assert not is_local(found)
    assert "SEL" in found


TRAPS = {
    "an index without bounds": "LEA R5, R0, R1, 0x2\nLDL R6, [R5]",
    "an index in bytes": BOUNDED + "IADD3 R5, R4, R1, RZ\nLDL R6, [R5]",
    "a byte of a word": "LDL.U8 R6, [R1]",
    "a wide access at an index": BOUNDED + "LEA R5, R4, R1, 0x3\nLDL.64 R6, [R5]",
    "the address is stored": "STL [R1], R1\nLDL R6, [R1]",
    "the address goes to memory": "STG.E desc[UR4][R2.64+0x8], R1\nLDL R6, [R1]",
    "an address without the stack pointer": "LDL R6, [0x8]",
    "an address that changes in a loop": (
        "MOV R7, R1\nLDL R6, [R7]\nSTL [R7], R0\nIADD3 R7, R7, 0x4, RZ\nISETP.NE.AND P0, PT, R6, R0, PT\n@P0 BRA .-0x40"
    ),
}


@pytest.mark.parametrize("body", TRAPS.values(), ids=TRAPS)
def test_it_stays_on_the_stack(body: str) -> None:
    assert is_local(promoted(FILL, body))


SEARCH = """
ISETP.GT.AND P0, PT, R8, R0, PT
MOV R6, 0x3
@!P0 BRA .+0x50
ISETP.GT.AND P0, PT, R9, R0, PT
MOV R6, 0x2
@!P0 BRA .+0x20
MOV R6, 0x1
"""


def flat(body: str) -> list[str]:
    module, made = lifted("MOV R8, 0x7\nMOV R9, 0x8", body)
    Flatten().apply(Context(), module)
    module.verify()
    return names(made)


def test_a_search_becomes_comparisons_and_selections() -> None:
    found = flat(SEARCH)
    assert "BRA" not in found
    assert (found.count("ISETP"), found.count("SEL")) == (2, 2)


FLAT_TRAPS = {
    "a store in a step": SEARCH.replace("MOV R6, 0x2", "STG.E desc[UR4][R2.64], R0"),
    "a load, which may fault": SEARCH.replace("MOV R6, 0x2", "LDG.E R6, desc[UR4][R2.64]"),
    "a vote of the lanes that got there": SEARCH.replace("MOV R6, 0x2", "VOTE.ANY R6, PT, P0"),
    "two places to go": SEARCH.replace("+0x20", "+0x30"),
}


@pytest.mark.parametrize("body", FLAT_TRAPS.values(), ids=FLAT_TRAPS)
def test_branches_stay(body: str) -> None:
    assert flat(body).count("BRA") == 2


@pytest.mark.parametrize("case", ["small", "tail", "one"])
def test_topk_keeps_its_candidates_in_registers(case: str) -> None:
    original, file = (BENCH / "cubins" / "topk_local.sm_90.cubin").read_bytes(), read_launch_file(BENCH / "launch" / "topk_local.toml")
    launch = file.launch(case)
    made = optimise_cubin(Task(original, "topk_local", read_pipeline("launch"), file.facts, launch))
    found = [line.instruction.mnemonic for line in read_program(made.cubin).functions[0].lines]
    assert not is_local(found)
    assert "BSSY" not in found or case == "tail"  # 32 candidates: too many to run the insertion for all lanes
    assert [kernel.stack for kernel in summarise(Cubin.read(made.cubin)).kernels] == [0]
    assert list(check_container(made.cubin)) == []
    before, after = emulate(original, launch), emulate(made.cubin, launch)
    assert np.array_equal(before["out"].view(np.uint32), after["out"].view(np.uint32))
