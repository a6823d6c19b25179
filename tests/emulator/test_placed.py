"""Functions in sections of their own: called, returned from, and named where they go wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sassir.asm.parse import parse_instruction
from sassir.cubin.code import words
from sassir.cubin.cubin import Cubin
from sassir.emulator import emulate
from sassir.encoders import table
from sassir.errors import EmulationError
from sassir.launch import read_launch_file
from sassir.timing.kernels import predict_sampled

CUBINS = Path(__file__).parents[1] / "cubins"
MANY = read_launch_file(CUBINS / "unoptimised.toml").launch("many")


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_linked_code_computes_what_code_in_one_section_does(arch: str) -> None:
    one, linked = (emulate((CUBINS / f"unoptimised.{name}.cubin").read_bytes(), MANY) for name in ("sm_90", f"linked.{arch}"))
    assert np.array_equal(one["y"].view(np.uint32), linked["y"].view(np.uint32))
    assert one["y"].any()


def test_a_fault_in_a_function_names_it() -> None:
    """Its FMUL becomes a load from no stack."""
    cubin = Cubin.read((CUBINS / "unoptimised.linked.sm_90.cubin").read_bytes())
    section = next(code for code in cubin.code if code.kernel.startswith("_Z8weighted"))
    decode, encode = table(cubin.arch).decode, table(cubin.arch).encode
    place = next(i for i, word in enumerate(words(section)) if decode(word).mnemonic == "FMUL")
    at = cubin.elf.sections[section.index].offset + 16 * place
    load = encode(parse_instruction("[B------:R-:W-:Y:S05] LDL R4, [RZ]")).to_bytes(16, "little")
    with pytest.raises(EmulationError, match=rf"kernel unoptimised, function _Z8weighted\w+(\$1)?, {16 * place:#x}, `LDL R4, \[RZ\]`"):
        emulate(cubin.data[:at] + load + cubin.data[at + 16 :], MANY)


def test_the_time_of_such_a_function_is_not_known() -> None:
    with pytest.raises(EmulationError, match="calls a function in a section of its own, whose time is not modelled"):
        predict_sampled((CUBINS / "unoptimised.linked.sm_90.cubin").read_bytes(), MANY)
