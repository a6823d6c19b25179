"""What is said of a kernel. The numbers are those that `cuobjdump -res-usage` and the .cu files give."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.cubin.cubin import Cubin
from sassir.cubin.nvinfo import (
    Attribute,
    Format,
    IndirectBranch,
    Parameter,
    ParameterBank,
    SymbolValue,
    decode,
    read_attributes,
    with_branches,
    write_attributes,
)
from sassir.cubin.summary import KernelSummary, Summary, summarise
from sassir.errors import ContainerError

FOLDER = Path(__file__).parent.parent / "cubins"


def summary(name: str) -> Summary:
    """Of a committed cubin."""
    return summarise(Cubin.read((FOLDER / f"{name}.cubin").read_bytes(), name))


def kernel(name: str, kernel: str) -> KernelSummary:
    """One kernel of a committed cubin."""
    return next(k for k in summary(name).kernels if k.name == kernel)


@pytest.mark.parametrize(
    ("name", "registers", "shared", "barriers", "constant"),
    [
        # 64 floats; from sm_90 on the driver keeps 1024 bytes more for itself.
        ("calls.sm_75", 14, 256, 1, 372),
        ("calls.cuda11.sm_90", 12, 1280, 1, 548),
        ("calls.cuda12.sm_90", 12, 1280, 1, 548),
        ("calls.sm_120", 10, 1280, 1, 916),
    ],
)
def test_resources_are_found_wherever_the_toolkit_put_them(name: str, registers: int, shared: int, barriers: int, constant: int) -> None:
    second = kernel(name, "second")
    assert (second.registers, second.shared, second.barriers, second.constant) == (registers, shared, barriers, constant)
    assert second.asked_shared == 256
    assert second.parameters == (Parameter(0, 0, 8), Parameter(1, 8, 8), Parameter(2, 16, 4))
    assert (second.entry, len(second.functions), second.max_threads) == (True, 1, None)


def test_launch_bounds_are_those_of_the_source() -> None:
    assert kernel("calls.sm_90", "first").max_threads == (128, 1, 1)


def test_a_stack_frame_is_counted() -> None:
    assert kernel("print.sm_90", "print").stack == 8
    assert kernel("axpy.sm_90", "axpy").stack == 0


def test_a_device_function_of_a_relocatable_object_cannot_be_launched() -> None:
    assert {k.name: k.entry for k in summary("hop.sm_90").kernels} == {"_Z7half_off": False, "hop": True}


@pytest.mark.parametrize(
    ("name", "relocatable", "line_info", "mercury"),
    [
        ("axpy.sm_90", False, False, False),
        ("axpy.sm_120", False, False, True),
        ("hop.sm_75", True, False, False),
        ("print.sm_90", False, True, False),
    ],
)
def test_the_kind_of_file(name: str, relocatable: bool, line_info: bool, mercury: bool) -> None:
    found = summary(name)
    assert (found.relocatable, found.line_info, found.mercury) == (relocatable, line_info, mercury)


@pytest.mark.parametrize(
    ("data", "name", "value"),
    [
        ("01040000", "CTAIDZ_USED", None),
        ("024c0100", "NUM_BARRIERS", 1),
        ("031bff00", "MAXREG_COUNT", 255),
        ("041c0800b0000000c0010000", "EXIT_INSTR_OFFSETS", (0xB0, 0x1C0)),
        ("042f08000a0000001d000000", "REGCOUNT", SymbolValue(10, 29)),
        ("040a08000b00000080032800", "PARAM_CBANK", ParameterBank(11, 0x380, 0x28)),
        ("04170c00000000000500240000f01100", "KPARAM_INFO", Parameter(5, 0x24, 4)),
        ("04340c00f00000000000000000000000", "INDIRECT_BRANCH_TARGETS", (IndirectBranch(0xF0, 0, ()),)),
        ("04ee0400deadbeef", "0xee", bytes.fromhex("deadbeef")),
    ],
)
def test_an_attribute_is_decoded_and_written_back(data: str, name: str, value: object) -> None:
    (attribute,) = read_attributes(bytes.fromhex(data))
    assert (attribute.name, decode(attribute)) == (name, value)
    assert write_attributes((attribute,)).hex() == data


def test_branch_targets_are_written_as_they_are_read() -> None:
    branches = (IndirectBranch(0xF0, 0, (0x130, 0x100)), IndirectBranch(0x1B0, 0, ()))
    attribute = with_branches(Attribute(0x34, Format.SVAL, b""), branches)
    assert decode(attribute) == branches


@pytest.mark.parametrize(
    ("data", "message"),
    [("041c0800b0000000", "payload of attribute 0"), ("041c", "attribute 0"), ("071c0000", "unknown format 7")],
)
def test_a_cut_or_unknown_attribute_is_refused(data: str, message: str) -> None:
    with pytest.raises(ContainerError, match=f"nv.info: .*{message}"):
        read_attributes(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("041c0300b00000", "EXIT_INSTR_OFFSETS has 3 bytes"),
        ("042f04000a000000", "REGCOUNT has 4 bytes, expected 8"),
        ("04340c00f000000000000000ff000000", "INDIRECT_BRANCH_TARGETS is cut short in branch 0"),
    ],
)
def test_a_payload_that_contradicts_its_kind_is_refused(data: str, message: str) -> None:
    with pytest.raises(ContainerError, match=message):
        decode(read_attributes(bytes.fromhex(data))[0])
