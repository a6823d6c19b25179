"""A cubin as the driver loads it: kernels, variables in global memory, constant banks."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.cubin.code import CodeSection
from sassir.cubin.cubin import Cubin
from sassir.cubin.elf import STT_FUNC, Section
from sassir.cubin.nvinfo import ParameterBank, decode
from sassir.cubin.relocation import Relocation
from sassir.cubin.summary import KernelSummary, summarise
from sassir.emulator.constants import Bank, Layout, layout_of
from sassir.emulator.memory import Allocation, GlobalMemory
from sassir.emulator.placed import Stretches, function_address, linked_words
from sassir.encoders import table
from sassir.errors import EmulationError, LaunchError
from sassir.launch.data import Array

DRIVER_CODE = 0x7E03 << 32
"""Made-up addresses of functions that the driver provides, 16 bytes apart."""

_CONSTANT_BANK = re.compile(r"\.nv\.constant(\d+)(?:\.(.*))?")


class Kernel(NamedTuple):
    """One kernel, ready to be launched."""

    name: str
    arch: str
    code: tuple[Instruction, ...]
    stretches: Stretches
    summary: KernelSummary
    layout: Layout
    parameters: ParameterBank
    """Where the parameters go in bank 0."""
    banks: Mapping[int, Bank]
    """All constant banks but bank 0."""
    driver_functions: Mapping[int, str]
    """Names of the functions at the made-up addresses."""


class Module:
    """A loaded cubin. `memory` has its variables; the caller adds buffers, then fixes it."""

    def __init__(self, cubin: Cubin, memory: GlobalMemory) -> None:
        self._cubin = cubin
        self.memory = memory
        self._summaries = {k.section: k for k in summarise(cubin).kernels}
        self._driver_functions: dict[int, str] = {}
        self._code = {code.index: code for code in cubin.code}
        self._pointed_to: set[int] = set()
        """Sections whose address is in a constant bank."""
        elf = cubin.elf
        self._variables: dict[int, Allocation] = {}
        for section in elf.sections:
            if section.name.startswith(".nv.global"):
                content = elf.content(section) or bytes(section.size)
                self._variables[section.index] = memory.allocate(section.name, np.frombuffer(content, np.uint8))
        self._banks: dict[tuple[int, str], Bank] = {}
        for section in elf.sections:
            match = _CONSTANT_BANK.fullmatch(section.name)
            if match and match[1] != "0":
                self._banks[int(match[1]), match[2] or ""] = self._read_bank(section, int(match[1]))

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name. Raises LaunchError when there is none, EmulationError when it cannot run as it is."""
        found = [code for code in self._cubin.code if code.kernel == name and self._summaries[code.index].entry]
        if not found:
            known = ", ".join([k.name for k in self._summaries.values() if k.entry])
            raise LaunchError(f"no kernel {name} in {self._cubin.where}; it has {known}")
        code, arch = found[0], self._cubin.arch
        if code.relocations and self._cubin.relocatable:
            relocation = code.relocations[0]
            raise EmulationError(f"kernel {name}: not linked yet: {relocation.symbol_name} ({relocation.type_name}) is missing in its code")
        instruction = table(arch, self._cubin.where).decode
        sections = self._reached(code)
        linked = [word for section in sections.values() for word in linked_words(section, self._linked)]
        banks = {number: bank for (number, owner), bank in self._banks.items() if owner in ("", name)}
        return Kernel(
            name, arch, tuple([instruction(word) for word in linked]), Stretches(sections), self._summaries[code.index], layout_of(arch),
            _parameter_bank(code), banks, self._driver_functions,
        )  # fmt: skip

    def _reached(self, kernel: CodeSection) -> dict[int, CodeSection]:
        """The kernel and the functions in sections of their own that it may call, by the high words of their addresses."""
        functions = {code.index: code for code in self._cubin.code if not self._summaries[code.index].entry}
        found, work = {0: kernel}, [kernel, *[functions[i] for i in sorted(self._pointed_to & functions.keys())]]
        while work:
            code = work.pop()
            if code is not kernel:
                found[code.index] = code
            named = {self._cubin.symbols[relocation.symbol].section for relocation in code.relocations}
            work += [functions[i] for i in sorted(named & functions.keys()) if i not in found]
        return found

    def _linked(self, relocation: Relocation) -> int:
        return self._address(relocation.symbol) + (relocation.addend or 0)

    def fill_symbol(self, symbol: str, content: Array) -> None:
        """Set a variable or constant of the module before the launch; to be called after `memory.fix`. Raises LaunchError."""
        found = next((s for s in self._cubin.symbols if s.name == symbol and s.section), None)
        if found is None:
            raise LaunchError(f"the cubin has no symbol {symbol}")
        if found.size != content.nbytes:
            raise LaunchError(f"the symbol {symbol} holds {found.size} bytes, its buffer {content.nbytes}")
        data = np.ascontiguousarray(content).tobytes()
        if found.section in self._variables:
            self.memory.content(self._variables[found.section])[found.value : found.value + found.size] = np.frombuffer(data, np.uint8)
            return
        match = _CONSTANT_BANK.fullmatch(self._cubin.elf.sections[found.section].name)
        if match is None:
            raise LaunchError(f"the symbol {symbol} is neither a global variable nor a constant")
        self._banks[int(match[1]), match[2] or ""].put(found.value, data)

    def _read_bank(self, section: Section, number: int) -> Bank:
        bank = Bank(f"c[{number:#x}]")
        bank.put(0, self._cubin.elf.content(section))
        for index, relocations in self._cubin.relocations.items():
            if self._cubin.elf.sections[index].info != section.index:
                continue
            for relocation in relocations:
                size = {"R_CUDA_32": 4, "R_CUDA_64": 8}.get(relocation.type_name)
                if size is None:
                    raise EmulationError(f"{section.name}: relocation {relocation.type_name} of {relocation.symbol_name} is not known")
                addend = relocation.addend
                if addend is None:
                    addend = int.from_bytes(bank.data[relocation.offset : relocation.offset + size].tobytes(), "little")
                value = self._address(relocation.symbol) + addend
                self._pointed_to.add(self._cubin.symbols[relocation.symbol].section)
                bank.put(relocation.offset, struct.pack("<Q", value)[:size])
        return bank

    def _address(self, symbol: int) -> int:
        """The address of a symbol: of a variable, of code in its section, or a made-up one for what the driver provides."""
        found = self._cubin.symbols[symbol]
        if found.section in self._variables:
            return self._variables[found.section].address + found.value
        code = self._code.get(found.section)
        if code is not None and found.type == STT_FUNC:
            return function_address(code, found.value)
        if found.section == 0:
            address = DRIVER_CODE + 16 * len(self._driver_functions)
            self._driver_functions[address] = found.name
            return address
        raise EmulationError(f"the address of {found.name} is needed, which is neither a variable nor a function")


def _parameter_bank(code: CodeSection) -> ParameterBank:
    """Where the parameters go; a kernel without any does not say."""
    for attribute in code.attributes:
        value = decode(attribute)
        if isinstance(value, ParameterBank):
            return value
    return ParameterBank(0, 0, 0)
