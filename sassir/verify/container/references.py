"""Relocations and the call graph: what refers to symbols and patches code or data."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

from sassir import isa
from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.cubin.code import is_code
from sassir.cubin.elf import STT_FUNC, Section, entries
from sassir.cubin.relocation import NAMES, Relocation
from sassir.findings import Finding
from sassir.verify.container.subject import SEEN, Subject

_CALLED = (STT_FUNC, 3)
"""Types of symbols that a call graph names: functions, and sections of a relocatable file."""
_PAIR = struct.Struct("<ii")
_WIDTH = re.compile(r"(?:G|UNIFIED_?|FUNC_DESC_|UNUSED_CLEAR)?(8|32|64)?(?:_\d+|_LO|_HI)?$")


def relocation_findings(subject: Subject) -> Iterator[Finding]:
    """Each relocation patches bytes of its section, as an operand that the instruction there has, with a place that exists."""
    for index, relocations in subject.cubin.relocations.items():
        section = subject.elf.sections[subject.elf.sections[index].info]
        for relocation in relocations:
            yield from _relocation(subject, section, relocation)


def _relocation(subject: Subject, section: Section, relocation: Relocation) -> Iterator[Finding]:
    offset, what = relocation.offset, f"{relocation.type_name} for {relocation.symbol_name!r}"

    def finding(rule: str, message: str) -> Finding:
        return Finding(rule, section.name, offset, f"{what} at {offset:#x} of {section.name}: {message}", SEEN)

    if relocation.type >= len(NAMES):
        yield finding("relocation-kind", f"the type is not known; the last is {len(NAMES) - 1}")
    size = INSTRUCTION_BYTES if is_code(section) else _width(relocation)
    if offset + size > section.size:
        yield finding("relocation-place", f"it patches {size} bytes, but the section has {section.size:#x}")
    elif is_code(section):
        instruction = subject.instruction(section.index, offset)
        patched = next((fits for pattern, fits in _OPERANDS.items() if re.match(pattern, relocation.type_name)), None)
        if offset % INSTRUCTION_BYTES:
            yield finding("relocation-place", "that is inside of an instruction")
        elif instruction is not None and patched is not None and not patched(instruction):
            yield finding("relocation-kind", f"`{instruction.text}` has no operand of that kind")
    symbol = subject.cubin.symbols[relocation.symbol]
    if relocation.addend is not None and 0 < symbol.section < len(subject.elf.sections) and is_code(subject.elf.sections[symbol.section]):
        target, home = symbol.value + relocation.addend, subject.elf.sections[symbol.section]
        if target % INSTRUCTION_BYTES or not 0 <= target <= home.size:
            yield finding("relocation-target", f"it names {target:#x} of {home.name}, which is no instruction of it")


def _width(relocation: Relocation) -> int:
    """Bytes of data that a relocation patches."""
    match = _WIDTH.search(relocation.type_name.removeprefix("R_CUDA_"))
    return int(match[1]) // 8 if match and match[1] else 1


def _is_branch(instruction: Instruction) -> bool:
    description = isa.describe(instruction.mnemonic, instruction.modifiers)
    return description is not None and description.control is not None


_OPERANDS: dict[str, Callable[[Instruction], bool]] = {
    r"R_CUDA_ABS(47_34|55_16_34|56_16_34)": _is_branch,
    r"R_CUDA_(CONST_FIELD|.*BINDLESSOFF)": lambda i: any(o.constant is not None for o in i.operands),
    r"R_CUDA_ABS2\d_4\d": lambda i: any("[" in o.template for o in i.operands),
    r"R_CUDA_(ABS|FUNC_DESC|UNIFIED).*_32$": lambda i: any(o.integer is not None or o.float is not None for o in i.operands),
    r"R_CUDA_YIELD": lambda i: i.mnemonic == "YIELD",
}
"""What the patched instruction must have, by the name of the type: value, width, first bit."""


def callgraph_findings(subject: Subject) -> Iterator[Finding]:
    """The call graph names functions."""
    symbols = subject.cubin.symbols
    for section in subject.elf.named(".nv.callgraph"):
        for caller, callee in entries(subject.elf.content(section), _PAIR, section.name, subject.cubin.where):
            # Negative numbers divide the list, and 0 is nobody.
            for index in (i for i in (caller, callee) if i > 0):
                if index >= len(symbols) or (symbols[index].section and symbols[index].type not in _CALLED):
                    message = f"the call {caller} → {callee}: symbol {index} is no function; there are {len(symbols)} symbols"
                    yield Finding("callgraph-symbol", section.name, None, message, SEEN)
