"""Kernels of a file as a proof needs them: their code, and the data that the file brings along for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.cubin.cubin import Cubin
from sassir.translate.cubin import read_program

Data = Mapping[str, tuple[object, ...]]
"""By section: its content or, where it starts as zeros, its size; and what the driver fills into it."""

_DRIVERS_OWN = ".nv.constant0"
"""Parameters and sizes of a launch."""


class Kernel(NamedTuple):
    """A kernel with the device functions behind it."""

    code: tuple[Instruction, ...]
    links: Mapping[int, str]
    """What the linker or the driver fills into instructions, by their number."""
    data: Data
    """Constant banks of its own."""


def read_kernels(cubin: Cubin) -> dict[str, Kernel]:
    """The kernels of a file, by name."""
    found: dict[str, Kernel] = {}
    data = _initial_data(cubin)
    for function in read_program(cubin.data).functions:
        links = {offset // INSTRUCTION_BYTES: link for offset, link in function.links.items()}
        own = {name: content for name, content in data.items() if name.endswith(f".{function.name}")}
        found[function.name] = Kernel(tuple([line.instruction for line in function.lines]), links, own)
    return found


def shared_data(cubin: Cubin, kernels: Mapping[str, Kernel]) -> Data:
    """The variables and constant banks of a file that belong to no single kernel."""
    owned = {name for kernel in kernels.values() for name in kernel.data}
    return {name: content for name, content in _initial_data(cubin).items() if name not in owned}


def _initial_data(cubin: Cubin) -> dict[str, tuple[object, ...]]:
    """What variables and constants hold when a kernel starts."""
    filled: dict[int, list[tuple[object, ...]]] = {}
    for index, relocations in cubin.relocations.items():
        for r in relocations:
            place = (r.offset, r.type, r.symbol_name, cubin.symbols[r.symbol].value, r.addend)
            filled.setdefault(cubin.elf.sections[index].info, []).append(place)
    sections = [s for s in cubin.elf.sections if s.name.startswith((".nv.constant", ".nv.global"))]
    return {
        s.name: (cubin.elf.content(s) or s.size, *sorted(filled.get(s.index, []), key=repr))
        for s in sections
        if not s.name.startswith(_DRIVERS_OWN)
    }
