"""Code of one file as plain instructions: what a cubin or a listing holds, before the dialect and after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction


class Line(NamedTuple):
    """An instruction and the byte offset it had in the original code section (None: it was not there)."""

    instruction: Instruction
    origin: int | None


class Function(NamedTuple):
    """One code section: a kernel with the device functions behind it, or a relocatable device function."""

    name: str
    """Name of the section without `.text.`; unique within a file only together with `section`."""
    section: int | None
    """Index of the ELF section it came from; None for a foreign listing."""
    lines: tuple[Line, ...]
    """Laid out from offset 0, 16 bytes each; branch displacements agree with this layout."""
    labels: Mapping[str, int]
    """Byte offsets with a name: device functions, and labels of the listing it came from."""
    links: Mapping[int, str] = {}
    """What the linker or the driver fills in, by the original offset of the instruction: `ABS32_LO_32 vprintf`."""
    shared: int = 0
    """Bytes of static shared memory that the code needs beyond what the kernel had."""
    registers: int = 0
    """The register count to ask for at least, even if the code uses fewer."""

    @property
    def size(self) -> int:
        """Bytes of code."""
        return INSTRUCTION_BYTES * len(self.lines)

    def moved(self) -> dict[int, int]:
        """Old to new byte offset of every instruction that was there before."""
        return {line.origin: INSTRUCTION_BYTES * i for i, line in enumerate(self.lines) if line.origin is not None}


class Program(NamedTuple):
    """All code of one file, and the file it goes back into."""

    arch: str
    """`sm_90`, `sm_90a`, …"""
    functions: tuple[Function, ...]
    container: bytes | None
    """The original cubin; None for a listing that does not carry one."""
