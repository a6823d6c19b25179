"""Every wrong access is named: what, where in the code, which thread. Kernels of refused.cu, and damaged copies of good ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassir.asm.operand import Operand
from sassir.emulator import Checks
from sassir.errors import EmulationError, LaunchError
from sassir.translate.cubin import read_program, write_cubin

Run = Callable[..., list[NDArray[Any]]]

CUBINS = Path(__file__).parents[1] / "cubins"
both = pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
INTS = np.zeros(64, np.int32)


def refused(emulated: Run, message: str, cubin: str | bytes, kernel: str, *arguments: NDArray[Any] | int, **options: Any) -> None:
    with pytest.raises((EmulationError, LaunchError), match=message) as caught:
        emulated(cubin, kernel, *arguments, **options)
    assert f"kernel {kernel}" in str(caught.value) or caught.type is LaunchError


@both
def test_outside_of_a_buffer(emulated: Run, arch: str) -> None:
    floats = np.zeros(40, np.float32)
    emulated(f"refused.{arch}.cubin", "overrun", floats, 8)
    message = r"`STG.*`, block \(0, 0, 0\) thread \(31, 0, 0\): write of 4 bytes at 0x7f\w+, b0\+0xa0, outside of its 160 bytes"
    refused(emulated, message, f"refused.{arch}.cubin", "overrun", floats, 9)
    message = r"thread \(0, 0, 0\): access of 0x7f04\w+, which is not in global memory"  # thread - 1 as an unsigned index
    refused(emulated, message, f"refused.{arch}.cubin", "overrun", floats, -1)


@both
def test_misaligned(emulated: Run, arch: str) -> None:
    message = r"misaligned address 0x7f\w+2 in global memory: 4 bytes wide"
    refused(emulated, message, f"refused.{arch}.cubin", "misaligned", np.zeros(400, np.uint8))


@both
def test_a_race_in_shared_memory(emulated: Run, arch: str) -> None:
    message = r"race: read of shared memory at 0x\w+ by warp 0, which warp 1 wrote with no barrier in between"
    refused(emulated, message, f"refused.{arch}.cubin", "races", INTS, block=(64, 1, 1))
    (out,) = emulated(f"refused.{arch}.cubin", "races", INTS, block=(64, 1, 1), checks=Checks(races=False))
    assert (out == np.arange(64)[::-1]).all()


@both
def test_shared_memory_that_nobody_has_written(emulated: Run, arch: str) -> None:
    message = r"`LDS .*thread \(4, 0, 0\): shared memory at 0x\w+ is read, but was never written"
    refused(emulated, message, f"refused.{arch}.cubin", "unwritten", INTS)


@both
def test_outside_of_shared_memory(emulated: Run, arch: str) -> None:
    message = r"thread \(31, 0, 0\): write of 4 bytes at 0x\w+ in shared memory of \d+ bytes"
    refused(emulated, message, f"refused.{arch}.cubin", "outside", INTS, 1)


@both
def test_outside_of_the_stack(emulated: Run, arch: str) -> None:
    message = r"of 4 bytes of local memory at 0x\w+, -?0x\w+ below the top of a stack of 128 bytes"
    refused(emulated, message, f"refused.{arch}.cubin", "stack", INTS, 32)


@both
def test_an_endless_loop(emulated: Run, arch: str) -> None:
    message = "no end after 100.. instructions: an endless loop"
    refused(emulated, message, f"refused.{arch}.cubin", "endless", INTS, checks=Checks(steps=10000))


@both
def test_threads_that_wait_for_ever(emulated: Run, arch: str) -> None:
    message = (
        r"deadlock: 24 threads wait for barrier 2 at 0x\w+ `@P0 BAR.SYNC.* 0x2, 0x40.*`, the first is block \(0, 0, 0\) thread \(40, 0, 0\)"
    )
    refused(emulated, message, f"refused.{arch}.cubin", "never_meets", INTS, block=(64, 1, 1))


@both
def test_threads_of_one_block_at_different_barriers(emulated: Run, arch: str) -> None:
    values = np.arange(64, dtype=np.int32) % 8
    message = "barrier divergence: threads of one block meet at different barriers"
    refused(emulated, message, f"refused.{arch}.cubin", "diverges", values, block=(64, 1, 1))
    (out,) = emulated(f"refused.{arch}.cubin", "diverges", np.zeros(64, np.int32), block=(64, 1, 1))
    assert (out == 6).all()


@both
def test_functions_that_only_the_driver_has(emulated: Run, arch: str) -> None:
    emulated(f"refused.{arch}.cubin", "prints", INTS)
    refused(emulated, "calls vprintf, which only the driver has", f"refused.{arch}.cubin", "prints", INTS + 3)


def test_a_bulk_copy_that_is_not_waited_for(emulated: Run) -> None:
    source = np.zeros(256, np.float32)
    message = "shared memory at 0x400 is read, but was never written"
    refused(emulated, message, "asynchronous.sm_90.cubin", "hasty", source, source, block=(256, 1, 1))


def damaged(cubin: str, kernel: str, pick: Callable[[str], bool], **fields: Any) -> bytes:
    """The cubin with other fields in the first instruction of the kernel whose text is picked."""
    program = read_program((CUBINS / cubin).read_bytes())
    functions = list(program.functions)
    f = next(i for i, function in enumerate(functions) if function.name == kernel)
    lines = list(functions[f].lines)
    place = next(i for i, line in enumerate(lines) if pick(line.instruction.text))
    lines[place] = lines[place]._replace(instruction=lines[place].instruction._replace(**fields, word=None))
    functions[f] = functions[f]._replace(lines=tuple(lines))
    return write_cubin(program._replace(functions=tuple(functions)))


NOTHING = {"mnemonic": "NOP", "modifiers": (), "operands": (), "guard": None, "extra": ()}


def test_a_register_that_was_never_written(emulated: Run) -> None:
    cubin = damaged("refused.sm_90.cubin", "overrun", lambda text: "0x3f800000" in text or "1.875, 0" in text, **NOTHING)
    refused(emulated, r"`STG.E .*R\d is used, but it was never written", cubin, "overrun", INTS, 0)


def test_a_register_that_depends_on_one_never_written(emulated: Run) -> None:
    cubin = damaged("emulated.sm_90.cubin", "dimensions", lambda text: "SR_TID.X" in text, **NOTHING)
    message = r"R\d+ is used, but it comes from R\d+, never written where `IMAD.* reads it"
    refused(emulated, message, cubin, "dimensions", INTS, block=(4, 1, 1))


def test_a_barrier_that_was_dropped(emulated: Run) -> None:
    values = np.arange(64, dtype=np.int32)
    cubin = damaged("emulated.sm_90.cubin", "barriers", lambda text: "0x1, 0x40" in text, **NOTHING)
    refused(
        emulated, "race: read of shared memory .* which warp 1 wrote", cubin, "barriers", values, np.zeros(128, np.int32), block=(128, 1, 1)
    )


def test_a_wait_for_copies_that_was_dropped(emulated: Run) -> None:
    source = np.zeros((128, 4), np.float32)
    cubin = damaged("emulated.sm_90.cubin", "copies", lambda text: text.startswith("DEPBAR.LE SB0, 0x1"), **NOTHING)
    refused(emulated, "shared memory .* was never written", cubin, "copies", source, source, 64, block=(64, 1, 1))


def test_an_instruction_that_is_not_emulated_only_where_it_is_reached(emulated: Run) -> None:
    texture = {**NOTHING, "mnemonic": "BPT", "modifiers": ("TRAP",), "operands": (Operand.parse("0x1"),)}
    cubin = damaged("refused.sm_90.cubin", "prints", lambda text: text.startswith("CALL"), **texture)
    emulated(cubin, "prints", INTS)
    refused(emulated, r"`BPT.TRAP 0x1`.*: the kernel stops itself", cubin, "prints", INTS + 3)


@both
def test_a_warning_is_enough_where_the_kernel_can_go_on(emulated: Run, arch: str) -> None:
    warnings: list[str] = []
    (out,) = emulated(f"refused.{arch}.cubin", "races", INTS, block=(64, 1, 1), warn=warnings.append)
    assert (out == np.arange(64)[::-1]).all()
    assert len(warnings) == 1
    assert ": race: read of shared memory" in warnings[0]
    cubin = damaged("emulated.sm_90.cubin", "dimensions", lambda text: "SR_TID.X" in text, **NOTHING)
    with pytest.raises(EmulationError, match=r"outside of|not in global memory"):
        emulated(cubin, "dimensions", INTS, warn=warnings.append)
    assert "never written where" in warnings[1]


def test_a_launch_that_does_not_fit(emulated: Run) -> None:
    refused(emulated, "takes 8 bytes of parameters, the launch has 12", "refused.sm_90.cubin", "races", INTS, 1)
    refused(emulated, "no kernel nothing in .*; it has .*races", "refused.sm_90.cubin", "nothing", INTS)
