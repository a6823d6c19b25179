"""sass-swizzle-shared: every access goes to the swizzled place of its old address, or the kernel stays as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp, StringAttr

from sassir.analysis.banks import Seen, look, total_wavefronts
from sassir.analysis.propagation import Propagation
from sassir.analysis.shared import all_shared_accesses
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import FACTS, Dim3, FactsAttr, KernelFacts, used_facts
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import SHARED, KernelOp
from sassir.emulator import emulate
from sassir.launch import read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin
from sassir.passes.swizzle_shared import Swizzle, swizzle_shared
from sassir.passes.virtualise import Virtualise
from sassir.rewrite.build import encodable
from sassir.translate.lift import ARCH, lift_function

BENCH = Path(__file__).parents[2] / "bench"
FULL_LINE = 128

COLUMN = """
S2R R0, SR_TID.X
S2UR UR4, SR_CgaCtaId
ULEA UR4, UR4, 0x400, 0x18
LEA R2, R0, UR4, 0x7
"""
"""R2 is the start of row `threadIdx.x`, of 128 bytes: all lanes in one bank."""


def kernel(text: str, block: Dim3 = (32, 1, 1), shared: int | None = 0, arch: str = "sm_90") -> KernelOp:
    """The kernel of one instruction a line, its registers free."""
    code = [parse_instruction(line) for line in [*text.strip().splitlines(), "EXIT"]]
    lines = tuple([Line(instruction, INSTRUCTION_BYTES * i) for i, instruction in enumerate(code)])
    made = lift_function(Function("k", None, lines, {}), {})
    made.attributes[FACTS] = FactsAttr(KernelFacts(block=block, shared=shared))
    Virtualise().apply(Context(), ModuleOp([made], {ARCH: StringAttr(arch)}))
    assert made.fixed is None
    return made


def seen(made: KernelOp, block: Dim3 = (32, 1, 1), arch: str = "sm_90") -> list[Seen]:
    accesses = all_shared_accesses(made)
    assert accesses is not None
    return look(made, Propagation(made, KernelFacts(block=block), arch), block, accesses)


def check(text: str, block: Dim3 = (32, 1, 1), arch: str = "sm_90") -> KernelOp:
    """Swizzle the kernel; see that the same lanes access the swizzled places of the same addresses, in the same order."""
    made = kernel(text, block, arch=arch)
    before = seen(made, block, arch)
    swizzle = swizzle_shared(made, arch, 4096)
    assert swizzle is not None
    assert all(encodable(op, arch) for op in made.walk() if isinstance(op, SassInstruction) and not isinstance(op, SassBranch))
    after = seen(made, block, arch)
    assert len(after) == len(before) > 0
    for old, new in zip(before, after, strict=True):
        assert np.array_equal(old.active, new.active)
        assert np.array_equal(swizzle.of_all(old.addresses)[old.active], new.addresses[new.active])
        assert new.access.op.MNEMONIC == old.access.op.MNEMONIC
    assert total_wavefronts(after) < total_wavefronts(before)
    return made


def test_a_column_is_read_without_conflicts() -> None:
    made = check(COLUMN + "LDS R3, [R2]\nLDS R4, [R2+0x8]\nSTG.E desc[UR6][R8.64], R3\nSTG.E desc[UR6][R8.64], R4")
    assert total_wavefronts(seen(made)) == 2
    assert {"block", "shared"} <= set(used_facts(made))
    assert SHARED not in made.attributes


OFFSETS = [0, 4, 0x7C, 0x80, 0x84, 0x400, 0x404, 0xC00, 0x1000, -4, -0x80, -0x84, -0x400]


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("start", [0x400, 0x404, 0x480, 0x1104])
@pytest.mark.parametrize("arch", ["sm_90", "sm_120"])
def test_displacements_that_carry_and_that_do_not(offset: int, start: int, arch: str) -> None:
    """A displacement may go into the next line, or change the bits of the line that are XORed."""
    base = COLUMN.replace("0x400", f"{start:#x}")
    check(f"{base}STS [R2+{offset:#x}], R0\nSTS [R2], R0", arch=arch)


def test_the_sum_of_two_registers_on_an_architecture_that_writes_it_in_another_way() -> None:
    check(COLUMN + "STS [R2+UR4+0x80], R0\nSTS [R2+UR4+0x84], R0", arch="sm_100")


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_scaled_registers_and_uniform_ones(arch: str) -> None:
    stores = "STS [R1.X4+UR4], R0\nSTS [R1.X4+UR4+0x10], R0\nSTS [UR4+0x8], R0"
    check(f"S2R R0, SR_TID.X\nUMOV UR4, 0x410\nSHF.L.U32 R1, R0, 0x5, RZ\n{stores}", arch=arch)


def test_absolute_addresses() -> None:
    check(COLUMN + "STS [R2], R0\nSTS [R2+0x4], R0\nSTS [0x884], R0")


def test_atomic_operations_go_with_the_others() -> None:
    check(COLUMN + "STS [R2], R0\nSTS [R2+0x4], R0\nATOMS.ADD RZ, [R2], R0\nATOMS.POPC.INC.32 RZ, [R2+URZ]")


@pytest.mark.parametrize(("name", "bytes_"), [("64", 8), ("128", 16)])
def test_what_a_wide_access_touches_stays_together(name: str, bytes_: int) -> None:
    """A trap: a swizzle of single words would tear wide accesses apart."""
    made = check(COLUMN + f"STS [R2], R0\nSTS [R2+0x4], R0\nLDS.{name} R8, [R2+0x20]\nSTG.E.{name} desc[UR6][R12.64], R8")
    for one in seen(made):
        assert not (one.addresses % one.access.width).any()
    swizzle = Swizzle(7, FULL_LINE - bytes_)
    assert swizzle.of(0x480 + bytes_ - 4) - swizzle.of(0x480) == bytes_ - 4


def test_lanes_that_are_not_there_count_for_nothing() -> None:
    """One lane alone has no conflicts."""
    assert swizzle_shared(kernel(COLUMN + "ISETP.LT.AND P0, PT, R0, 0x1, PT\n@P0 STS [R2], R0"), "sm_90", 4096) is None


TRAPS = {
    "generic store": "ST.E desc[UR6][R8.64], R0",
    "generic load": "LD.E R3, desc[UR6][R8.64]",
    "asynchronous copy": "LDGSTS.E [R2+0x80], desc[UR6][R8.64]",
    "matrix load": "LDSM.16.M88.4 R4, [R2]",
    "barrier object": "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ",
    "copy by the copy engine": "UBLKCP.S.G [UR8], [UR10], UR12",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_shared_memory_that_is_reached_in_another_way_stays(trap: str) -> None:
    made = kernel(f"{COLUMN}STS [R2], R0\n{TRAPS[trap]}")
    before = str(made)
    assert swizzle_shared(made, "sm_90", 4096) is None
    assert str(made) == before


def test_facts_are_needed() -> None:
    made = kernel(COLUMN + "STS [R2], R0")
    made.attributes[FACTS] = FactsAttr(KernelFacts(block=(32, 1, 1)))
    assert swizzle_shared(made, "sm_90", 4096) is None
    made.attributes[FACTS] = FactsAttr(KernelFacts(shared=0))
    assert swizzle_shared(made, "sm_90", 4096) is None


@pytest.mark.parametrize(("static", "dynamic", "more"), [(4096, 0, 0), (4100, 0, 124), (0, 2112, 64), (1024, 2112, 64), (4224, 4, 124)])
def test_the_last_line_is_completed(static: int, dynamic: int, more: int) -> None:
    made = kernel(COLUMN + "STS [R2], R0", shared=dynamic)
    assert swizzle_shared(made, "sm_90", static) is not None
    assert made.attributes.get(SHARED) == (IntAttr(more) if more else None)


def test_where_dynamic_memory_starts_inside_of_a_line_nothing_is_done() -> None:
    """How much lies between both is not known, and so the end of the last line is not."""
    assert swizzle_shared(kernel(COLUMN + "STS [R2], R0", shared=256), "sm_90", 4100) is None


SUITE = [("transpose_tile", "tail"), ("transpose_tile", "one"), ("scan_block", "small"), ("scan_block", "warp"), ("nw_tile", "small")]


@pytest.mark.parametrize(("name", "case"), SUITE)
@pytest.mark.parametrize("before", [(), ("sass-specialize",)])
def test_the_results_stay(name: str, case: str, before: tuple[str, ...]) -> None:
    """With the facts of the launch, and all suspicious accesses refused by the emulator."""
    original = (BENCH / "cubins" / f"{name}.sm_90.cubin").read_bytes()
    file = read_launch_file(BENCH / "launch" / f"{name}.toml")
    launch = file.launch(case)
    made = optimise_cubin(Task(original, name, Pipeline("test", 1, (*before, "sass-swizzle-shared")), file.facts, launch))
    (outcome,) = made.outcomes
    assert outcome.changed, outcome
    expected, found = emulate(original, launch), emulate(made.cubin, launch)
    assert all(np.array_equal(expected[k].view(np.uint8), found[k].view(np.uint8)) for k in expected)
