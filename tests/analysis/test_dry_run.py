"""What the threads of a block compute, without memory: loops, branches, guards, and what is not known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Region

from sassir.analysis.arguments import arguments
from sassir.analysis.dry_run import TURNS, Lookup, Passes, dry_passes, dry_run
from sassir.analysis.propagation import Propagation
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.translate.cubin import read_module

HOP = Path(__file__).parents[1] / "cubins" / "hop.sm_90.cubin"
Lift = Callable[[str], Region]
Stored = list[tuple[NDArray[np.uint32] | None, NDArray[np.bool_]]]


def stored(lift: Lift, text: str, threads: tuple[int, int, int] = (8, 2, 1)) -> Stored:
    """What the STS of a kernel store, and in which threads, each time that one runs."""
    kernel = lift(text).parent
    assert isinstance(kernel, KernelOp)
    found: Stored = []

    def visit(op: SassInstruction, lookup: Lookup, active: NDArray[np.bool_], reached: NDArray[np.bool_]) -> None:
        value = lookup(arguments(op)[1].values[0])
        found.append((None if value is None else np.broadcast_to(value, active.shape), active))

    watched = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "STS"]
    dry_run(kernel, Propagation(kernel, KernelFacts(block=threads), "sm_90"), threads, watched, visit)
    return found


def test_the_place_in_the_block(lift: Lift) -> None:
    ((value, active),) = stored(lift, "S2R R0, SR_TID.X\nS2R R1, SR_TID.Y\nIMAD R2, R1, 0x64, R0\nSTS [RZ], R2\nEXIT")
    assert active.all()
    assert value is not None
    assert value.tolist() == [*range(8), *range(100, 108)]


LOOP = """
S2R R0, SR_TID.X
MOV R1, RZ
IADD3 R1, R1, 0x1, RZ
STS [RZ], R1
ISETP.LT.AND P0, PT, R1, {bound}, PT
@P0 BRA .-0x30
STS [RZ], R0
EXIT
"""


def test_threads_leave_a_loop_one_by_one_and_meet_behind_it(lift: Lift) -> None:
    *turns, (_, behind) = stored(lift, LOOP.format(bound="R0"), (5, 1, 1))
    assert [active.sum() for _, active in turns] == [5, 3, 2, 1]
    assert behind.all()


def test_an_endless_loop_is_left_in_the_end(lift: Lift) -> None:
    *turns, (_, behind) = stored(lift, LOOP.format(bound="0x7000"))
    assert len(turns) == TURNS
    assert behind.all()


def test_what_comes_from_memory_is_not_known_and_a_branch_on_it_goes_both_ways(lift: Lift) -> None:
    text = "S2R R0, SR_TID.X\nLDS R1, [RZ]\nISETP.NE.AND P0, PT, R1, RZ, PT\n@P0 BRA .+0x20\nSTS [RZ], R1\nSTS [RZ], R0\nEXIT"
    (first, known), (second, both) = stored(lift, text)
    assert first is None
    assert second is not None
    assert known.all()
    assert both.all()


def test_a_guard_keeps_the_old_value(lift: Lift) -> None:
    text = "S2R R0, SR_TID.X\nMOV R1, 0x7\nISETP.LT.AND P0, PT, R0, 0x3, PT\n@P0 MOV R1, R0\n@!P0 STS [RZ], R1\nSTS [RZ], R1\nEXIT"
    (_, some), (value, every) = stored(lift, text, (6, 1, 1))
    assert some.tolist() == [False] * 3 + [True] * 3
    assert every.all()
    assert value is not None
    assert value.tolist() == [0, 1, 2, 7, 7, 7]


def test_a_guard_keeps_the_value_of_this_turn(lift: Lift) -> None:
    """Not the one that the guarded instruction gave a turn before."""
    text = """
    S2R R0, SR_TID.X
    MOV R1, RZ
    IADD3 R1, R1, 0x1, RZ
    MOV R2, R1
    ISETP.EQ.AND P1, PT, R1, 0x1, PT
    @P1 MOV R2, 0x64
    STS [RZ], R2
    ISETP.LT.AND P0, PT, R1, 0x3, PT
    @P0 BRA .-0x60
    EXIT
    """
    values = [value for value, _ in stored(lift, text, (2, 1, 1))]
    assert [None if value is None else value.tolist() for value in values] == [[100, 100], [2, 2], [3, 3]]


def passes(lift: Lift, text: str, threads: tuple[int, int, int] = (8, 1, 1)) -> Passes | None:
    kernel = lift(text).parent
    assert isinstance(kernel, KernelOp)
    return dry_passes(kernel, Propagation(kernel, KernelFacts(block=threads), "sm_90"), threads)


def test_all_turns_of_a_loop_whose_end_is_known_are_counted(lift: Lift) -> None:
    found = passes(lift, LOOP.format(bound="0x64"))
    assert found is not None
    again = [threads for (source, target), threads in found.edges.items() if source is target]
    assert (again, found.undecided) == ([99 * 8], frozenset())


def test_threads_are_counted_that_stay_in_a_loop(lift: Lift) -> None:
    found = passes(lift, LOOP.format(bound="R0"), (5, 1, 1))
    assert found is not None
    assert [threads for (source, target), threads in found.edges.items() if source is target] == [3 + 2 + 1]


def test_a_loop_that_depends_on_memory_has_no_known_end(lift: Lift) -> None:
    found = passes(lift, "LDS R1, [RZ]\nIADD3 R2, R2, 0x1, RZ\nISETP.NE.AND P0, PT, R2, R1, PT\n@P0 BRA .-0x20\nEXIT")
    assert found is not None
    assert len(found.undecided) == 1


def test_a_run_that_takes_too_long_is_given_up(lift: Lift) -> None:
    assert passes(lift, LOOP.format(bound="0x7000")) is None


def test_what_a_function_of_another_section_leaves_is_not_known() -> None:
    """The kernel of a relocatable object goes on behind its calls."""
    kernel = next(op for op in read_module(HOP.read_bytes()).body.ops if isinstance(op, KernelOp) and op.function.data == "hop")
    found = dry_passes(kernel, Propagation(kernel, KernelFacts(block=(8, 1, 1)), "sm_90"), (8, 1, 1))
    assert found is not None
    assert "sass.exit" in [block.last_op.name for block in found.runs if block.last_op is not None]
