"""Facts that are stated without a launch: TOML files of them, and text as in `#sass.facts<…>`. Described in docs/launch-files.md.

    ["*"]                                # of every kernel
    noalias = true

    [saxpy]
    block = 256
    parameters = { 0 = { min = 1, max = 4096 }, 1 = 1.5, 2 = { align = 16 } }

Where a parameter lies, the cubin says.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from sassir.cubin.nvinfo import Parameter
from sassir.dialect.facts import FLAGS, LARGEST, SMALLEST, KernelFacts, Pointer, WordRange, parse_facts
from sassir.dialect.operations import KernelOp
from sassir.errors import LaunchError
from sassir.launch import read_launch_file
from sassir.launch.tables import MAX_GRID, Table, check_keys, load_toml, place, read_block, read_dim3, table_of, whole
from sassir.machine.constant_bank import constant_bank
from sassir.translate.facts import WORD, KnownFacts, launch_facts, with_facts
from sassir.translate.summaries import summaries

Kernels = Mapping[str, Sequence[Parameter]]
"""The kernels of a file and their parameters; none where nobody says which there are."""

ALL = "*"
_LONG = 8
"""Bytes of a pointer, or of a number of two words."""


def kernels_of(module: ModuleOp) -> Kernels:
    """Those of a module; its cubin says what parameters they have."""
    known = summaries(module).kernels
    kernels = [op for op in module.body.ops if isinstance(op, KernelOp)]
    sections = {op.function.data: op.section.data if op.section is not None else None for op in kernels}
    return {name: known[section].parameters if section in known else () for name, section in sections.items()}


def stated_facts(sources: Iterable[str], kernels: Kernels, arch: str) -> KnownFacts:
    """What all `sources` say, by kernel: what ends in .toml is a file, anything else text about every kernel.

    Raises LaunchError for a file that is not right, for what does not fit the kernels, and where two of them contradict each other;
    TranslationError for text.
    """
    known: KnownFacts = {}
    for source in sources:
        if source.endswith(".toml"):
            known = with_facts(known, read_facts_file(Path(source), kernels, arch))
        else:
            known = with_facts(known, dict.fromkeys(kernels, parse_facts(source, "--facts")))
    return known


def facts_from(source: str, kernels: Kernels, arch: str) -> KnownFacts:
    """The facts of a launch: `FILE.toml:NAME`, or the first one of `FILE.toml`. Raises LaunchError."""
    path, colon, name = source.rpartition(":")
    if not colon or source.endswith(".toml"):
        path, name = source, ""
    file = read_launch_file(path)
    found = launch_facts(file.launch(name or next(iter(file.launches))), file.facts, arch)
    with place(path):
        for kernel in found:
            _check_kernel(kernel, kernels)
    return found


def read_facts_file(path: Path, kernels: Kernels, arch: str) -> KnownFacts:
    """The facts in a TOML file, with one table a kernel. Raises LaunchError with file, kernel and key."""
    known: KnownFacts = {}
    with place(str(path)):
        document = load_toml(path, "file of facts")
        for name in document:
            if name != ALL:
                _check_kernel(name, kernels)
            table = table_of(document, name)
            for kernel in kernels if name == ALL else [name]:
                with place(name if name == kernel else f"{name}: {kernel}"):
                    facts = _read_kernel(table, kernels[kernel], constant_bank(arch).parameters)
                known = with_facts(known, {kernel: facts})
    return known


def _check_kernel(name: str, kernels: Kernels) -> None:
    if name not in kernels:
        raise LaunchError(f"there is no kernel {name!r}; there are {', '.join(kernels)}")


def _read_kernel(table: Table, parameters: Sequence[Parameter], base: int) -> KernelFacts:
    check_keys(table, required=set(), optional={"block", "grid", "shared", "align", "parameters", *FLAGS})
    for flag in FLAGS:
        if not isinstance(table.get(flag, False), bool):
            raise LaunchError(f"{flag}: {table[flag]!r} is neither true nor false")
    words: list[tuple[int, int]] = []
    ranges: list[WordRange] = []
    pointers: list[Pointer] = []
    align = _read_align(table.get("align", 1))
    sizes = {str(p.ordinal): p for p in parameters}
    for key, value in table_of(table, "parameters").items():
        with place(f"parameters.{key}"):
            if key not in sizes:
                said = f"parameters 0 to {len(sizes) - 1}" if sizes else "no parameters, as far as the file says"
                raise LaunchError(f"there is no such parameter; the kernel has {said}")
            offset, size = base + sizes[key].offset, sizes[key].size
            if not isinstance(value, dict):
                words += _read_number(value, offset, size)
            elif cast(Table, value).keys() & {"min", "max"}:
                known = _read_range(cast(Table, value), offset, size)
                ranges.append(known)
                words += [(offset + WORD, 0)] if size == _LONG else []
            else:
                pointers.append(_read_pointer(cast(Table, value), offset, size, align))
    if "align" in table and not pointers:
        raise LaunchError("align: no parameter is said to be a pointer; say so with `parameters = { 0 = {} }`, or its own align")
    return KernelFacts(
        read_block(table["block"], {}) if "block" in table else None,
        read_dim3(table["grid"], {}, "grid", MAX_GRID) if "grid" in table else None,
        whole(table["shared"], {}, "shared") if "shared" in table else None,
        tuple(words),
        tuple(ranges),
        tuple(pointers),
        *[table.get(flag, False) for flag in FLAGS],
    )


def _read_number(value: object, offset: int, size: int) -> list[tuple[int, int]]:
    """The words of a number: a whole one, or one with a point for a float parameter."""
    if size not in (WORD, _LONG):
        raise LaunchError(f"it has {size} bytes; a number has {WORD} or {_LONG}")
    if isinstance(value, float):
        bits = _float_bits(value, size)
    elif isinstance(value, int) and not isinstance(value, bool):
        bits = value
    else:
        raise LaunchError(f"{value!r} is no number, no range {{ min = …, max = … }} and no pointer {{ align = …, bytes = … }}")
    if not -(1 << 8 * size - 1) <= bits < 1 << 8 * size:
        raise LaunchError(f"{value} does not fit into its {size} bytes")
    return [(offset + i, bits >> 8 * i & 0xFFFFFFFF) for i in range(0, size, WORD)]


def _float_bits(value: float, size: int) -> int:
    try:
        return int.from_bytes(struct.pack("<f" if size == WORD else "<d", value), "little")
    except OverflowError as error:
        raise LaunchError(f"{value} does not fit into its {size} bytes") from error


def _read_range(table: Table, offset: int, size: int) -> WordRange:
    """The range of the only word, or of the lower one of two, of which the upper one is then 0."""
    check_keys(table, required={"min", "max"}, optional=set())
    low, high = table["min"], table["max"]
    least = {WORD: SMALLEST, _LONG: 0}.get(size)
    if least is None:
        raise LaunchError(f"it has {size} bytes; a number that has a range has {WORD} or {_LONG}")
    if not all(type(end) is int for end in (low, high)) or not least <= low <= high <= LARGEST:
        raise LaunchError(
            f"from {low!r} to {high!r} is no range of whole numbers between {least} and {LARGEST}, where those of {size} bytes end"
        )
    return WordRange(offset, low, high)


def _read_pointer(table: Table, offset: int, size: int, align: int) -> Pointer:
    check_keys(table, required=set(), optional={"align", "bytes"})
    if size != _LONG:
        raise LaunchError(f"it has {size} bytes; a pointer has {_LONG}")
    nbytes = whole(table["bytes"], {}, "bytes") if "bytes" in table else None
    return Pointer(offset, _read_align(table["align"]) if "align" in table else align, nbytes)


def _read_align(value: object) -> int:
    align = whole(value, {}, "align")
    if not align:
        raise LaunchError("align: an address cannot be a multiple of 0 bytes")
    return align
