"""The file under check, as the rules need it: headers, code decoded once, and the way to say what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.program import Function
from sassir.cubin.cubin import Cubin
from sassir.cubin.relocation import Relocation
from sassir.encoders.library import has_table
from sassir.findings import Finding
from sassir.translate.cubin import jump_tables, read_program

ELF_RULES = "System V ABI, chapter 4"
SEEN = "holds in all cubins that were looked at: CUDA 11.8 to 13.5, sm_75 to sm_121"
"""Evidence for what no document says."""


class Subject:
    """A cubin whose headers can be read."""

    def __init__(self, cubin: Cubin) -> None:
        self.cubin, self.elf = cubin, cubin.elf

    @property
    def known(self) -> bool:
        """There is an encoding table for its architecture: the code can be looked at."""
        return has_table(self.cubin.arch)

    @cached_property
    def functions(self) -> dict[int, Function]:
        """The decoded code, by section index; empty when the architecture is not known."""
        if not self.known:
            return {}
        program = read_program(self.cubin.data, self.cubin.where)
        return {f.section: f for f in program.functions if f.section is not None}

    @cached_property
    def jump_tables(self) -> dict[int, dict[int, tuple[str, ...]]]:
        """The targets of indirect branches that attributes list."""
        return {index: dict(tables) for index, tables in jump_tables(self.cubin).items()}

    @cached_property
    def patches(self) -> dict[int, dict[int, Relocation]]:
        """The relocations that patch a section, by its index and their offset."""
        patches: dict[int, dict[int, Relocation]] = {}
        for index, relocations in self.cubin.relocations.items():
            patches.setdefault(self.elf.sections[index].info, {}).update({r.offset: r for r in relocations})
        return patches

    def instruction(self, section: int, offset: int) -> Instruction | None:
        """The instruction at this place; None when there is none, or the architecture is not known."""
        function = self.functions.get(section)
        if function is None or offset % INSTRUCTION_BYTES or not 0 <= offset < function.size:
            return None
        return function.lines[offset // INSTRUCTION_BYTES].instruction


Rule = Callable[[Subject], Iterator[Finding]]
