"""sass-widen: what becomes one access, what must not, and that no byte of the results changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from sassir.analysis.propagated import propagate
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import FACTS, FactsAttr, KernelFacts, Pointer, used_facts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.emulator import emulate
from sassir.launch import read_launch_file
from sassir.optimize import Task, optimise_cubin, read_pipeline
from sassir.passes.virtualise import virtualise
from sassir.passes.widen import Widen, widen
from sassir.rewrite.build import name_of
from sassir.translate.cubin import read_program
from sassir.translate.lift import lift_function
from sassir.verify.assumptions import Assumption, broken_fact

ROOT = Path(__file__).parents[2]
CUBINS = Path(__file__).parents[1] / "cubins"
NARROW_LAUNCH = """
[launches]
some = {{ n = 70 }}
[buffers]
{buffers}
[[steps]]
kernel = "{kernel}"
grid = "cdiv(n, 32)"
block = 32
arguments = [{arguments}, {{ i32 = "n" }}]
[facts]
noalias = {noalias}
align = {align}
"""
BUFFER = '{name} = {{ dtype = "{dtype}", shape = ["n", {size}], role = "{role}", fill = "integers(0, 200)" }}'

POINTER = """
ULDC.64 UR4, c[0x0][0x208] ;
LDC.64 R2, c[0x0][0x210] ;
LDC.64 R4, c[0x0][0x218] ;
"""
TWO = (Pointer(0x210, 256, 1 << 20), Pointer(0x218, 256, 1 << 20))


def widened(text: str, facts: KernelFacts | None = None) -> KernelOp:
    code = [parse_instruction(line) for line in f"{text}\nEXIT ;".splitlines() if line.strip()]
    kernel = lift_function(Function("k", None, tuple([Line(c, INSTRUCTION_BYTES * i) for i, c in enumerate(code)]), {}), {})
    assert virtualise(kernel) is None
    kernel.attributes[FACTS] = FactsAttr(KernelFacts(pointers=TWO) if facts is None else facts)
    widen(kernel, "sm_90")
    kernel.verify()
    return kernel


def test_it_looks_again_only_at_a_kernel_that_changed() -> None:
    kernel = widened(loads(["0x0", "0x8"]))
    assert widen(kernel, "sm_90") == 0
    assert Widen.name in propagate(kernel, "sm_90").settled
    second = [op for op in kernel.walk() if isinstance(op, SassInstruction) and op.MNEMONIC == "LDG"][1]
    second.template = type(second.template).of(second.template.text.replace("0x8", "0x4"))
    assert widen(kernel, "sm_90") == 1


def accesses(kernel: KernelOp) -> list[str]:
    """The loads and stores, each with the displacement of its address."""
    found = [op for op in kernel.walk() if isinstance(op, SassInstruction) and op.MNEMONIC[:2] in ("LD", "ST") and op.MNEMONIC != "LDC"]
    return [f"{name_of(op)} {op.template.text.partition('R2.64')[2].partition(']')[0] or '+0x0'}" for op in found]


def loads(displacements: Sequence[str], end: str = "") -> str:
    """Words loaded off R2, and all of them used."""
    made = [f"LDG.E R{10 + i}, desc[UR4][R2.64+{d}] ;" for i, d in enumerate(displacements)]
    used = [f"STG.E desc[UR4][R4.64+{0x100 + 8 * i:#x}], R{10 + i} ;" for i in range(len(displacements))]
    return POINTER + "\n".join([*made, end, *used])


def loaded(kernel: KernelOp) -> list[str]:
    return [shown for shown in accesses(kernel) if shown.startswith("LD")]


def test_four_words_in_any_order_become_one_load() -> None:
    kernel = widened(loads(["0x18", "0x10", "0x1c", "0x14"]))
    assert loaded(kernel) == ["LDG.E.128 +0x10"]
    assert used_facts(kernel) == ("align 0x210",)


@pytest.mark.parametrize(
    ("align", "expected"),
    [
        (16, ["LDG.E.128 +0x0"]),
        (8, ["LDG.E.64 +0x0", "LDG.E.64 +0x8"]),
        (4, ["LDG.E +0x0", "LDG.E +0x4", "LDG.E +0x8", "LDG.E +0xc"]),
    ],
)
def test_no_load_is_wider_than_the_pointer_is_aligned(align: int, expected: list[str]) -> None:
    facts = KernelFacts(pointers=(Pointer(0x210, align, 1 << 20),))
    assert loaded(widened(loads(["0x0", "0x4", "0x8", "0xc"]), facts)) == expected


def test_words_that_lie_across_a_boundary_stay_apart() -> None:
    assert loaded(widened(loads(["0xc", "0x10"]))) == ["LDG.E +0xc", "LDG.E +0x10"]


def test_a_byte_that_was_not_read_is_not_read() -> None:
    assert loaded(widened(loads(["0x0", "0x4", "0xc"]))) == ["LDG.E.64 +0x0", "LDG.E +0xc"]


def test_without_facts_another_access_shows_the_alignment() -> None:
    text = (
        POINTER
        + """
        LDG.E R10, desc[UR4][R2.64+0x8] ;
        LDG.E R11, desc[UR4][R2.64+0xc] ;
        LDG.E.64 R12, desc[UR4][R2.64+0x20] ;
        STG.E desc[UR4][R4.64], R10 ;
        STG.E desc[UR4][R4.64+0x10], R11 ;
        STG.E.64 desc[UR4][R4.64+0x20], R12 ;"""
    )
    kernel = widened(text, KernelFacts())
    assert loaded(kernel) == ["LDG.E.64 +0x8", "LDG.E.64 +0x20"]
    assert used_facts(kernel) == ()


BETWEEN = """
    LDG.E R10, desc[UR4][R2.64] ;
    {0}
    LDG.E R11, desc[UR4][R2.64+0x4] ;
    STG.E desc[UR4][R4.64+0x100], R10 ;
    STG.E desc[UR4][R4.64+0x110], R11 ;"""


@pytest.mark.parametrize(
    ("between", "noalias", "merged"),
    [
        ("STG.E desc[UR4][R4.64+0x80], R20 ;", False, False),  # another buffer, or the same one
        ("STG.E desc[UR4][R4.64+0x80], R20 ;", True, True),
        ("STG.E desc[UR4][R2.64+0x4], R20 ;", True, False),
        ("STG.E desc[UR4][R2.64+0x8], R20 ;", False, True),
        ("STG.E.64 desc[UR4][R2.64], R20 ;", True, False),
        ("STS [R20], R21 ;", False, True),
        ("BAR.SYNC 0x0 ;", True, False),
        ("MEMBAR.SC.GPU ;", True, False),
        ("RED.E.ADD.STRONG.GPU desc[UR4][R4.64], R20 ;", True, False),
        ("LDG.E.STRONG.SYS R22, desc[UR4][R4.64] ;", True, False),
    ],
)
def test_a_load_goes_only_over_what_cannot_touch_its_bytes(between: str, noalias: bool, merged: bool) -> None:
    kernel = widened(POINTER + BETWEEN.format(between), KernelFacts(pointers=TWO, noalias=noalias))
    assert ("LDG.E.64 +0x0" in accesses(kernel)) == merged
    assert ("noalias" in used_facts(kernel)) == (merged and "R4.64" in between)


def test_strong_accesses_stay_as_they_are() -> None:
    text = loads(["0x0", "0x4"]).replace("LDG.E ", "LDG.E.STRONG.SYS ")
    assert loaded(widened(text)) == ["LDG.E.STRONG.SYS +0x0", "LDG.E.STRONG.SYS +0x4"]


GUARDED = """
    ISETP.GT.AND P0, PT, R20, 0x1, PT ;
    ISETP.GT.AND P1, PT, R20, 0x2, PT ;
    {0} LDG.E R10, desc[UR4][R2.64] ;
    {1} LDG.E R11, desc[UR4][R2.64+0x4] ;
    STG.E desc[UR4][R4.64], R10 ;
    STG.E desc[UR4][R4.64+0x10], R11 ;"""


GUARDS = [("@P0", "@P0", True), ("@P0", "@!P0", False), ("@P0", "@P1", False), ("", "@P0", False)]


@pytest.mark.parametrize(("first", "second", "merged"), GUARDS)
def test_loads_under_one_guard_merge_and_keep_what_they_kept(first: str, second: str, merged: bool) -> None:
    kernel = widened(POINTER + GUARDED.format(first, second))
    assert ("LDG.E.64 +0x0" in accesses(kernel)) == merged


def test_a_guarded_load_stays_behind_what_it_keeps() -> None:
    text = GUARDED.format("@P0", "IADD3 R11, R20, 0x1, RZ ;\n@P0")
    assert "LDG.E.64 +0x0" not in accesses(widened(POINTER + text))


def stored(lines: str, facts: KernelFacts | None = None) -> list[str]:
    return accesses(widened(POINTER + lines, facts))


def test_stores_merge_at_the_last_one() -> None:
    text = "".join([f"STG.E desc[UR4][R2.64+{4 * i:#x}], R{10 + i} ;\n" for i in (2, 0, 3, 1)])
    assert stored(text) == ["STG.E.128 +0x0"]


def test_zeros_and_one_value_twice_are_stored_in_one() -> None:
    text = "".join([f"STG.E desc[UR4][R2.64+{4 * i:#x}], {r} ;\n" for i, r in enumerate(["R10", "RZ", "R10", "RZ"])])
    assert stored(text) == ["STG.E.128 +0x0"]
    assert stored("STG.E desc[UR4][R2.64], RZ ;\nSTG.E desc[UR4][R2.64+0x4], RZ ;") == ["STG.E.64 +0x0"]


def test_a_store_that_overlaps_another_keeps_its_turn() -> None:
    text = """
        STG.E desc[UR4][R2.64], R10 ;
        STG.E desc[UR4][R2.64+0x4], R11 ;
        STG.E desc[UR4][R2.64], R12 ;"""
    assert stored(text) == ["STG.E +0x0", "STG.E.64 +0x0"]


def test_a_store_does_not_pass_a_load_of_its_bytes() -> None:
    text = """
        STG.E desc[UR4][R2.64], R10 ;
        {0}
        STG.E desc[UR4][R2.64+0x4], R11 ;
        STG.E desc[UR4][R4.64], R12 ;"""
    noalias = KernelFacts(pointers=TWO, noalias=True)
    assert stored(text.format("LDG.E R12, desc[UR4][R2.64] ;"), noalias)[0] == "STG.E +0x0"
    assert "STG.E.64 +0x0" in stored(text.format("LDG.E R12, desc[UR4][R2.64+0x10] ;"), noalias)


def test_a_load_going_up_and_a_store_going_down_do_not_pass_each_other() -> None:
    """The load of a word that was just stored, at the end, and the store of it, at the beginning, could both go to the middle."""
    text = """
        STG.E desc[UR4][R2.64], R20 ;
        LDG.E R10, desc[UR4][R2.64+0x4] ;
        STG.E desc[UR4][R2.64+0x4], R21 ;
        LDG.E R11, desc[UR4][R2.64] ;
        STG.E desc[UR4][R4.64+0x20], R10 ;
        STG.E desc[UR4][R4.64+0x30], R11 ;"""
    shown = stored(text)[:-2]
    assert shown == ["STG.E +0x0", "LDG.E.64 +0x0", "STG.E +0x4"]


def test_shared_memory_needs_no_fact() -> None:
    text = """
        S2R R0, SR_TID.X ;
        IMAD R0, R0, 0x10, RZ ;
        LDS R4, [R0+0x400] ;
        LDS R5, [R0+0x404] ;
        LDS R6, [R0+0x408] ;
        LDS R7, [R0+0x40c] ;
        STS [R0+0x804], R4 ;
        STS [R0+0x808], R5 ;
        STS [R0+0x80c], R6 ;
        STS [R0+0x810], R7 ;"""
    assert [shown.split()[0] for shown in accesses(widened(text, KernelFacts()))] == ["LDS.128", "STS", "STS.64", "STS"]


def test_the_pointer_of_a_loop_keeps_its_alignment() -> None:
    text = """
        LDG.E R10, desc[UR4][R2.64] ;
        LDG.E R11, desc[UR4][R2.64+0x4] ;
        FADD R12, R10, R11 ;
        IADD3 R2, P1, R2, {0}, RZ ;
        IADD3.X R3, RZ, R3, RZ, P1, !PT ;
        STG.E desc[UR4][R4.64], R12 ;
        ISETP.GT.AND P0, PT, R12, RZ, PT ;
        @P0 BRA .-0x70 ;"""
    assert "LDG.E.64 +0x0" in stored(text.format("0x18"))
    assert "LDG.E.64 +0x0" not in stored(text.format("0x14"))


def test_a_word_put_together_from_its_bytes_is_loaded_as_one() -> None:
    text = (
        POINTER
        + """
        LDG.E.U8 R10, desc[UR4][R2.64] ;
        LDG.E.U8 R11, desc[UR4][R2.64+0x1] ;
        LDG.E.U8 R12, desc[UR4][R2.64+0x2] ;
        LDG.E.U8 R13, desc[UR4][R2.64+0x3] ;
        PRMT R10, R11, 0x7604, R10 ;
        IMAD.SHL.U32 R13, R13, 0x1000000, RZ ;
        SHF.L.U32 R12, R12, 0x10, RZ ;
        LOP3.LUT R10, R10, R12, R13, 0xfe, !PT ;
        STG.E desc[UR4][R4.64], R10 ;"""
    )
    kernel = widened(text)
    names = [name_of(op) for op in kernel.walk() if isinstance(op, SassInstruction)]
    assert names == ["ULDC.64", "LDC.64", "LDC.64", "LDG.E", "STG.E", "EXIT"]


KERNELS = {"gather": ("u8", 16, "i32", 8), "copy": ("u8", 16, "u8", 16), "ripple": ("u32", 4, "", 0)}


def narrow(tmp_path: Path, kernel: str, align: int, arch: str = "sm_90", noalias: bool = True) -> tuple[list[str], bool]:
    """The accesses of a kernel of narrow.cu after `launch`, and whether it gives the same bytes as before."""
    dtype, size, other, others = KERNELS[kernel]
    role = "in" if other else "inout"
    lines = [BUFFER.format(name="data", dtype=dtype, size=size, role=role)]
    lines += [BUFFER.format(name="out", dtype=other, size=others, role="out").replace(', fill = "integers(0, 200)"', "")] if other else []
    path = tmp_path / "launch.toml"
    arguments = '"data", "out"' if other else '"data"'
    flag = str(noalias).lower()
    path.write_text(NARROW_LAUNCH.format(kernel=kernel, buffers="\n".join(lines), arguments=arguments, align=align, noalias=flag))
    file, original = read_launch_file(path), (CUBINS / f"narrow.{arch}.cubin").read_bytes()
    launch = file.launch("some")
    made = optimise_cubin(Task(original, "narrow", read_pipeline("launch"), file.facts, launch, [kernel]))
    assert made.outcomes[0].changed, made.outcomes[0].reason
    before, after = emulate(original, launch), emulate(made.cubin, launch)
    same = all(np.array_equal(before[name].view(np.uint8), after[name].view(np.uint8)) for name in before)
    function = next(f for f in read_program(made.cubin).functions if f.name == kernel)
    names = [".".join([i.mnemonic, *i.modifiers]) for i in [line.instruction for line in function.lines]]
    return sorted([name for name in names if name.startswith(("LDG", "STG"))]), same


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_bytes_gathered_in_either_order(tmp_path: Path, arch: str) -> None:
    shown, same = narrow(tmp_path, "gather", 16, arch)
    assert same
    assert shown == ["LDG.E.128.CONSTANT", "STG.E.128", "STG.E.128"]


def test_bytes_copied_with_one_of_them_changed(tmp_path: Path) -> None:
    shown, same = narrow(tmp_path, "copy", 16)
    assert same
    assert shown == ["LDG.E.128.CONSTANT", "STG.E.128"]


def test_unaligned_bytes_stay_bytes(tmp_path: Path) -> None:
    shown, same = narrow(tmp_path, "copy", 1)
    assert same
    assert shown == ["LDG.E.U8.CONSTANT"] * 16 + ["STG.E.U8"] * 16


def test_each_store_that_the_next_load_may_read_stays(tmp_path: Path) -> None:
    shown, same = narrow(tmp_path, "ripple", 16, noalias=False)
    assert same
    assert len(shown) >= 5


def test_an_alignment_that_was_assumed_is_checked_for_each_launch() -> None:
    file = read_launch_file(ROOT / "bench" / "launch" / "xxh32_rows.toml")
    assumed = KernelFacts(pointers=(Pointer(0x210, 512, 1),))
    assumptions = {"xxh32_rows": Assumption(assumed, ("align 0x210",))}
    found = broken_fact(assumptions, file.launch("small"), file.facts, "sm_90")
    assert found == "align 0x210 = 512 in kernel xxh32_rows"
    weaker = {"xxh32_rows": Assumption(KernelFacts(pointers=(Pointer(0x210, 16, 1),)), ("align 0x210",))}
    assert broken_fact(weaker, file.launch("small"), file.facts, "sm_90") is None
