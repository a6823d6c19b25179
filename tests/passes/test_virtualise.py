"""sass-virtualise: which values become free, which stay, and which kernels keep their registers, by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.ir import SSAValue

from sassir.analysis.allocation import check_allocation
from sassir.asm import INSTRUCTION_BYTES, Function, Line, Program
from sassir.asm.control import Control
from sassir.asm.parse import parse_instruction
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import ALLOCATED, KernelOp
from sassir.dialect.registers import R, SassRegister
from sassir.errors import SassirWarning
from sassir.passes.virtualise import Virtualise, virtualise
from sassir.translate.cubin import read_module, read_program
from sassir.translate.emit import emit_function
from sassir.translate.lift import lift_function, lift_program

Free = Callable[..., KernelOp]
CUBINS = sorted((Path(__file__).parents[1] / "cubins").glob("*.cubin"))


def function(text: str, name: str = "k") -> Function:
    code = [parse_instruction(line) for line in text.strip().splitlines()]
    return Function(name, None, tuple([Line(c, INSTRUCTION_BYTES * i) for i, c in enumerate(code)]), {})


@pytest.fixture
def free() -> Free:
    """The kernel of one instruction a line, its registers freed."""

    def run(text: str) -> KernelOp:
        kernel = lift_function(function(text), {})
        assert virtualise(kernel) is None
        kernel.verify()
        return kernel

    return run


def instructions(kernel: KernelOp) -> list[SassInstruction]:
    return [op for op in kernel.walk() if isinstance(op, SassInstruction)]


def values(kernel: KernelOp) -> list[SSAValue]:
    return [v for block in kernel.body.blocks for v in (*block.args, *[r for op in block.ops for r in op.results])]


def pinned(kernel: KernelOp) -> list[str]:
    """The registers that some value still has."""
    return sorted({v.type.register_name for v in values(kernel) if isinstance(v.type, SassRegister) and v.type.is_allocated})


def test_registers_control_codes_and_reuse_marks_go(free: Free) -> None:
    code = "[B0-----:R-:W1:Y:S04] MOV R4, 0x1\n[B-1----:R-:W-:-:S02] FADD R5, R4.reuse, -R4\n[B------:R-:W-:-:S05] EXIT"
    kernel = free(code)
    assert pinned(kernel) == []
    assert [op.control for op in instructions(kernel)] == [None] * 3
    assert instructions(kernel)[1].template.text == "=R, $R, -$R"


def test_the_old_word_does_not_come_back(free: Free) -> None:
    """An instruction has its word back only with its registers and its control code."""
    kernel = free("[B------:R-:W-:-:S04] MOV R4, 0x1\n[B------:R-:W-:-:S05] EXIT")
    (value,) = values(kernel)
    internals.retype(value, R.of(9))
    line = emit_function(kernel).lines[0]
    assert (line.instruction.text, line.instruction.control, line.origin) == ("MOV R9, 0x1", Control(), 0)


def test_what_a_register_holds_at_the_start_is_free(free: Free) -> None:
    """R5 is read before it is written where P0 fails: an undefined value, which any register has."""
    kernel = free("ISETP.NE.AND P0, PT, RZ, c[0x0][0x160], PT\n@P0 MOV R5, 0x1\nSTS [RZ], R5\nEXIT")
    (undefined,) = kernel.body.blocks[0].args
    assert undefined.type == R.free()
    assert pinned(kernel) == []


def test_complementary_guards(free: Free) -> None:
    """The second move keeps what the first one wrote, so that both results are one value where they are read."""
    kernel = free("ISETP.NE.AND P0, PT, RZ, c[0x0][0x160], PT\n@P0 MOV R5, 0x1\n@!P0 MOV R5, 0x2\nSTS [RZ], R5\nEXIT")
    (undefined,) = kernel.body.blocks[0].args
    _, first, second, store, _ = instructions(kernel)
    assert first.kept == (undefined,)
    assert second.kept == first.results
    assert store.reads == second.results
    assert pinned(kernel) == []


def test_barriers_stay(free: Free) -> None:
    assert pinned(free("BSSY B3, .+0x30\n@P0 BRA .+0x10\nBSYNC B3\nEXIT")) == ["B3"]


def test_predicates_that_no_operand_names_stay(free: Free) -> None:
    """R2P writes P0 and P1. What else is in P2 may go elsewhere, and so may what P0 held before."""
    kernel = free("ISETP.NE.AND P0, P2, R1, RZ, PT\n@P0 STS [RZ], R3\nR2P PR, R1, 0x3\n@P0 STS [RZ], R2\n@P2 STS [RZ], R4\nEXIT")
    assert pinned(kernel) == ["P0", "P1"]
    assert [r.type.is_allocated for r in instructions(kernel)[0].results] == [False, False]  # type: ignore[attr-defined]


def test_what_shares_a_register_with_a_pinned_value_stays(free: Free) -> None:
    """P0 comes from before the loop and from its end; at the P2R both are the argument of the block."""
    kernel = free("""
ISETP.NE.AND P0, PT, R1, RZ, PT
P2R R4, PR, RZ, 0x1
ISETP.NE.AND P0, PT, R4, RZ, PT
@P0 BRA .-0x20
EXIT""")
    assert {str(r.type) for op in instructions(kernel) if op.MNEMONIC == "ISETP" for r in op.results} == {"!sass.p<P0>"}


def test_the_stack_pointer_stays_where_the_stack_is_used(free: Free) -> None:
    code = "MOV R1, c[0x0][0x28]\nIADD3 R1, R1, -0x10, RZ\nMOV R4, 0x1\n{}\nEXIT"
    assert pinned(free(code.format("STL [R1], R4"))) == ["R1"]
    assert pinned(free(code.format("STS [R1], R4"))) == []


SPLIT = """
S2R R0, {special}
ISETP.NE.AND P0, PT, R0, RZ, PT
ULDC UR4, c[0x0][0x160]
BSSY B0, .+0x50
@P0 BRA .+0x30
ULDC UR5, c[0x0][0x164]
MOV R3, UR5
BSYNC B0
MOV R2, UR4
ULDC UR6, c[0x0][0x168]
STS [RZ], R2
STS [UR6], R3
EXIT
"""


def test_uniform_values_stay_where_the_warp_is_split_and_one_is_written(free: Free) -> None:
    """UR4 is dead on the way that writes UR5, but threads on the other way have yet to read it. UR6 is behind all that."""
    assert pinned(free(SPLIT.format(special="SR_TID.X"))) == ["B0", "UR4", "UR5"]


def test_uniform_values_are_free_where_the_warp_stays_together(free: Free) -> None:
    assert pinned(free(SPLIT.format(special="SR_CTAID.X"))) == ["B0"]


def test_uniform_values_are_free_if_none_is_written_where_the_warp_is_split(free: Free) -> None:
    assert pinned(free(SPLIT.format(special="SR_TID.X").replace("ULDC UR5, c[0x0][0x164]", "NOP").replace("UR5", "UR4"))) == ["B0"]


REFUSED = {
    "returns": ("MOV R4, 0x1\nRET.REL.NODEC R20 .-0x10", "RET at 0x10 returns to code that is not known"),
    "sized": ("USETMAXREG.DEALLOC.CTAPOOL 0x28\nEXIT", "USETMAXREG at 0x0 changes the number of registers"),
    "active": ("BMOV.32 MACTIVE, B15\nEXIT", "BMOV at 0x0 changes which threads run, and so whose registers are written"),
    "pointer": (
        "MOV R20, 0x30\nMOV R21, 0x0\nCALL.REL.NOINC R6\n"
        "MOV R20, 0x60\nMOV R21, 0x0\nCALL.REL.NOINC .+0x20\nEXIT\nRET.REL.NODEC R20 .-0x70",
        "CALL at 0x20 calls what its register says, which may be a function of this section",
    ),
    "opaque": ("FROB.U8 R1, R2\nEXIT", "FROB.U8 R1, R2 at 0x0 is opaque: the registers of FROB.U8 are not known"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_kernel_that_keeps_its_registers_says_why(name: str) -> None:
    """Nothing of it changes, and the other kernels of the file are freed."""
    code, reason = REFUSED[name]
    program = Program("sm_90", (function(code, name), function("MOV R4, 0x1\nEXIT", "other")), None)
    module = lift_program(program)
    with pytest.warns(SassirWarning, match=f"kernel {name} keeps its registers: {reason}"):
        Virtualise().apply(Context(), module)
    refused, other = (op for op in module.body.ops if isinstance(op, KernelOp))
    assert str(refused.attributes[ALLOCATED]) == f'"{reason}"'
    assert emit_function(refused) == program.functions[0]
    assert ALLOCATED not in other.attributes
    assert pinned(other) == []


@pytest.mark.parametrize("path", CUBINS, ids=lambda p: p.stem)
def test_with_its_old_registers_each_kernel_is_the_old_one(path: Path) -> None:
    """Nothing is lost: given back the register it had, every value makes the instruction that it came from."""
    program = read_program(path.read_bytes())
    module = read_module(path.read_bytes())
    kernels = [op for op in module.body.ops if isinstance(op, KernelOp)]
    types = [(v, v.type) for kernel in kernels for v in values(kernel)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SassirWarning)
        Virtualise().apply(Context(), module)
    for value, type in types:
        internals.retype(value, type)
    for kernel, old in zip(kernels, program.functions, strict=True):
        check_allocation(kernel.body)
        new = emit_function(kernel)
        assert [_bare(line) for line in new.lines] == [_bare(line) for line in old.lines]
        assert new._replace(lines=()) == old._replace(lines=())


def _bare(line: Line) -> Line:
    """Without control code, reuse marks and word."""
    operands = tuple([o.without_reuse() for o in line.instruction.operands])
    return line._replace(instruction=line.instruction._replace(operands=operands, control=Control(), word=None))
