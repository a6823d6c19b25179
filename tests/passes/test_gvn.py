"""sass-gvn: loads of what nobody writes are kept, as far as registers go."""

from __future__ import annotations

from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.passes.gvn import MOST_KEPT, GlobalValueNumbering, number_values
from sassir.passes.verify_ssa import VerifySsa
from sassir.passes.virtualise import Virtualise
from sassir.rewrite.build import instruction
from sassir.translate.cubin import read_module
from sassir.translate.lift import ARCH, lift_function


def _loads(text: list[str]) -> list[int]:
    """The places of the loads that are left."""
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    kernel = lift_function(Function("k", None, lines, {}), {})
    module = ModuleOp([kernel], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    GlobalValueNumbering().apply(Context(), module)
    VerifySsa().apply(Context(), module)
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "LDG"]
    return [op.origin.data.offset // INSTRUCTION_BYTES for op in ops if op.origin is not None]


def _copy(count: int, name: str = "LDG.E.CONSTANT") -> list[str]:
    return [line for i in range(count) for line in (f"{name} R0, desc[UR4][R8.64+{4 * i:#x}]", f"STS [R4+{4 * i:#x}], R0")]


def test_what_nobody_writes_is_loaded_once() -> None:
    both = [*_copy(3), "BAR.SYNC.DEFER_BLOCKING 0x0", *_copy(3), "EXIT"]
    assert _loads(both) == [0, 2, 4]
    assert len(_loads([line.replace(".CONSTANT", "") for line in both])) == 6


def test_only_so_many_registers_are_kept() -> None:
    left = _loads([*_copy(MOST_KEPT + 8), "BAR.SYNC.DEFER_BLOCKING 0x0", *_copy(MOST_KEPT + 8), "EXIT"])
    assert len(left) == MOST_KEPT + 16
    wide = [line.replace("CONSTANT R0", "64.CONSTANT R0") for line in _copy(MOST_KEPT)]
    assert len(_loads([*wide, "BAR.SYNC.DEFER_BLOCKING 0x0", *wide, "EXIT"])) == MOST_KEPT + MOST_KEPT // 2


def test_what_is_loaded_again_on_one_way_is_not_known_on_another() -> None:
    """In each arm the loads beyond the number kept are made again; the ones of the first arm say nothing in the second."""
    first = _copy(MOST_KEPT + 2)
    again = [*_copy(MOST_KEPT + 2)]
    text = [*first, f"@P0 BRA .+{16 * (len(again) + 2):#x}", *again, "EXIT", *again, "EXIT"]
    assert len(_loads(text)) == MOST_KEPT + 2 + 2 + 2


def test_what_the_linker_fills_in_stays() -> None:
    """Also where the same is filled in twice: each place has a relocation of its own."""
    module = read_module((Path(__file__).parents[1] / "cubins" / "unplaced.sm_90.cubin").read_bytes())
    kernel = next(k for k in module.body.ops if isinstance(k, KernelOp) and k.function.data == "two_unplaced")
    linked = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.link is not None]
    for op in linked:
        assert op.parent is not None
        for _ in range(2):
            op.parent.insert_op_after(move := instruction("MOV =R, @0x0"), op)
            move.properties["link"] = op.properties["link"]
    number_values(kernel)
    left = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.link is not None]
    assert len(left) == 3 * len(linked) == 6
