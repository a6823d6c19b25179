"""Control codes: with a good schedule nothing changes, with a broken one the outputs do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sassir.asm.control import Control
from sassir.asm.instruction import Instruction
from sassir.emulator import emulate
from sassir.errors import EmulationError
from sassir.launch import Launch, Outputs, compare, read_launch_file
from sassir.translate.cubin import read_program, write_cubin

BENCH = Path(__file__).parents[2] / "bench"

CASES = [
    ("nw_tile", "one"),
    ("nbody", "tile"),
    ("scan_block", "pair"),
    ("saxpy_gs", "one"),
    ("sgemm_tiled", "one"),
    ("softmax_rows", "one"),
]


def case(kernel: str, launch: str) -> tuple[bytes, Launch, Outputs]:
    """Cubin, launch, and the outputs without regard to control codes."""
    cubin = (BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes()
    chosen = read_launch_file(BENCH / "launch" / f"{kernel}.toml").launch(launch)
    return cubin, chosen, emulate(cubin, chosen)


def rescheduled(cubin: bytes, change: Callable[[int, Instruction], Control]) -> bytes:
    """The cubin with other control codes; `change` gets the offset and the instruction."""
    program = read_program(cubin)
    function = program.functions[0]
    lines = [
        line._replace(instruction=line.instruction._replace(control=change(16 * i, line.instruction), word=None))
        for i, line in enumerate(function.lines)
    ]
    return write_cubin(program._replace(functions=(function._replace(lines=tuple(lines)), *program.functions[1:])))


@pytest.mark.parametrize(("kernel", "launch"), CASES)
def test_the_schedule_of_ptxas_is_right(kernel: str, launch: str) -> None:
    cubin, chosen, expected = case(kernel, launch)
    assert compare(chosen, expected, emulate(cubin, chosen, timed=True)) is None


def shorter(instruction: Instruction) -> Control:
    stall = instruction.control.stall
    return instruction.control._replace(stall=min(stall, 2)) if 2 < stall < 12 else instruction.control


def test_a_result_of_fixed_latency_is_read_too_early() -> None:
    cubin, chosen, expected = case("nw_tile", "one")
    fast = rescheduled(cubin, lambda _, i: shorter(i) if i.mnemonic in ("IADD3", "VIADDMNMX") else i.control)
    assert compare(chosen, expected, emulate(fast, chosen)) is None
    assert compare(chosen, expected, emulate(fast, chosen, timed=True)) is not None


@pytest.mark.parametrize("mnemonic", ["LDS", "LDG"])
def test_a_load_is_not_waited_for(mnemonic: str) -> None:
    cubin, chosen, _ = case("nw_tile", "one")
    code = [line.instruction for line in read_program(cubin).functions[0].lines]
    raised = {instruction.control.write for instruction in code if instruction.mnemonic == mnemonic}
    hasty = rescheduled(cubin, lambda _, i: i.control._replace(wait=tuple([s for s in i.control.wait if s not in raised])))
    assert outcome(cubin, chosen) == "None"
    assert outcome(hasty, chosen) != "None"


def outcome(cubin: bytes, launch: Launch) -> str:
    """Whether and how the timed outputs differ from the right ones, or that the kernel goes astray."""
    try:
        return str(compare(launch, emulate(cubin, launch), emulate(cubin, launch, timed=True)))
    except EmulationError as error:
        return str(error)


def test_an_operand_is_overwritten_before_it_is_read() -> None:
    cubin, chosen, _ = case("nw_tile", "one")
    hasty = rescheduled(cubin, lambda _, i: i.control._replace(read=None))
    assert re.search(r"`LDG.E R\d+, .*`, which was under way: access of 0x", outcome(hasty, chosen))
