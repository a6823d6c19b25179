"""nv.info: each offset is that of an instruction of the kind named, and sizes agree with the sections they are about."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.attribute_kinds import (
    COOP_GROUP_INSTR_OFFSETS,
    COOP_GROUP_MASK_REGIDS,
    EXIT_INSTR_OFFSETS,
    INDIRECT_BRANCH_TARGETS,
    MBARRIER_INSTR_OFFSETS,
    RECORDS,
    Payload,
)
from sassir.cubin.attribute_repair import address_registers
from sassir.cubin.code import CodeSection
from sassir.cubin.elf import STT_FUNC
from sassir.cubin.nvinfo import Attribute, IndirectBranch, Parameter, ParameterBank, SymbolValue, decode, indirect_branches
from sassir.errors import ContainerError
from sassir.findings import Finding
from sassir.verify.container.subject import SEEN, Subject

_BARRIER = struct.Struct("<4I")


def list_findings(subject: Subject) -> Iterator[Finding]:
    """The lists of instructions of each kernel."""
    for section in subject.cubin.code:
        exits: set[int] = set()
        for attribute in section.attributes:
            try:
                offsets = _offsets(attribute)
            except ContainerError as error:
                yield Finding("attribute-form", section.kernel, None, str(error), SEEN)
                continue
            for offset in offsets:
                yield from _listed(subject, section, attribute, offset)
            if attribute.id == EXIT_INSTR_OFFSETS:
                exits.update(offsets)
        yield from _masks(section)
        yield from _mbarriers(subject, section)
        function = subject.functions.get(section.index)
        for i, line in enumerate(function.lines if function else ()):
            if line.instruction.mnemonic == "EXIT" and INSTRUCTION_BYTES * i not in exits:
                yield Finding("exit-not-listed", section.kernel, INSTRUCTION_BYTES * i, "EXIT is not in EXIT_INSTR_OFFSETS", SEEN)


def _offsets(attribute: Attribute) -> list[int]:
    """The code offsets in an attribute."""
    payload = attribute.kind.payload if attribute.kind else None
    if payload is Payload.BRANCH_TARGETS:
        return [branch.offset for branch in indirect_branches(attribute)]
    if payload not in RECORDS:
        decode(attribute)
        return []
    stride, at = RECORDS[payload]
    if len(attribute.words) % stride:
        raise ContainerError(f"attribute {attribute.name} has {len(attribute.data)} bytes, not a multiple of {4 * stride}")
    return [*attribute.words[at::stride]]


def _listed(subject: Subject, section: CodeSection, attribute: Attribute, offset: int) -> Iterator[Finding]:
    if offset % INSTRUCTION_BYTES or offset >= len(section.data):
        message = f"{attribute.name} lists {offset:#x}, which is no instruction of the {len(section.data):#x} bytes"
        yield Finding("attribute-offset", section.kernel, offset, message, SEEN)
        return
    instruction = subject.instruction(section.index, offset)
    kinds = attribute.kind.instructions.split() if attribute.kind else []
    if instruction is not None and kinds and instruction.mnemonic not in kinds:
        message = f"{attribute.name} lists `{instruction.text}`, expected {' or '.join(kinds)}"
        yield Finding("attribute-instruction", section.kernel, offset, message, SEEN)


def _masks(section: CodeSection) -> Iterator[Finding]:
    def entries(id: int) -> int:
        return sum(len(a.data) // 4 for a in section.attributes if a.id == id)

    instructions, masks = entries(COOP_GROUP_INSTR_OFFSETS), entries(COOP_GROUP_MASK_REGIDS)
    if masks and masks != instructions:
        yield Finding("mask-count", section.kernel, None, f"{masks} warp masks for {instructions} instructions", SEEN)


def _mbarriers(subject: Subject, section: CodeSection) -> Iterator[Finding]:
    for attribute in section.attributes:
        if attribute.id == MBARRIER_INSTR_OFFSETS and len(attribute.data) % _BARRIER.size == 0:
            for offset, vector, _, kind in _BARRIER.iter_unpack(attribute.data):
                instruction = subject.instruction(section.index, offset)
                found = address_registers(instruction) if instruction is not None else None
                if instruction is not None and found not in (None, (vector, kind >> 16 & 0xFF)):
                    message = f"`{instruction.text}` has another address than R{vector} and UR{kind >> 16 & 0xFF}, which are listed"
                    yield Finding("mbarrier-register", section.kernel, offset, message, SEEN)


def jump_table_findings(subject: Subject) -> Iterator[Finding]:
    """Indirect branches are listed with targets that exist, and the tables they read hold only those."""
    for section in subject.cubin.code:
        branches = [b for a in section.attributes if a.id == INDIRECT_BRANCH_TARGETS for b in _branches(a)]
        targets = {target for branch in branches for target in branch.targets}
        for target in sorted(targets):
            if target % INSTRUCTION_BYTES or target >= len(section.data):
                message = f"INDIRECT_BRANCH_TARGETS names {target:#x}, which is no instruction of the {len(section.data):#x} bytes"
                yield Finding("branch-target", section.kernel, target, message, SEEN)
        # ptxas 11.8 lists 0 for every target on sm_90; then a table cannot be checked.
        if not targets - {0}:
            continue
        known = targets | {0} | {function.offset for function in section.functions}
        for table in subject.elf.sections:
            if table.name.startswith(".nv.constant2") and table.info == section.index and table.size % 4 == 0:
                for i, (word,) in enumerate(struct.iter_unpack("<I", subject.elf.content(table))):
                    if word not in known:
                        message = f"{table.name} has {word:#x} at {4 * i:#x}, expected a branch target or a function of {section.name}"
                        yield Finding("jump-table", section.kernel, None, message, SEEN)


def _branches(attribute: Attribute) -> tuple[IndirectBranch, ...]:
    try:
        return indirect_branches(attribute)
    except ContainerError:  # said by list_findings
        return ()


def parameter_findings(subject: Subject) -> Iterator[Finding]:
    """Parameters lie one behind the other in the area that PARAM_CBANK names, which ends constant bank 0."""
    for section in subject.cubin.code:
        values = [decode(a) for a in section.attributes]
        areas = [v for v in values if isinstance(v, ParameterBank)]
        parameters = sorted(v for v in values if isinstance(v, Parameter))
        sizes = [a.number for a in section.attributes if a.name == "CBANK_PARAM_SIZE"]
        for area in areas:
            yield from _area(subject, section, area, sizes)
        end = 0
        for parameter in parameters:
            if parameter.offset < end:
                message = f"parameter {parameter.ordinal} begins at {parameter.offset:#x}, inside of the one before, which ends at {end:#x}"
                yield Finding("parameter-overlap", section.kernel, None, message, SEEN)
            end = parameter.offset + parameter.size
        if areas and end != areas[0].size:
            message = f"the parameters end at {end:#x}, but their area has {areas[0].size:#x} bytes"
            yield Finding("parameter-size", section.kernel, None, message, SEEN)


def _area(subject: Subject, section: CodeSection, area: ParameterBank, sizes: list[int]) -> Iterator[Finding]:
    symbols, sections = subject.cubin.symbols, subject.elf.sections
    bank = sections[symbols[area.symbol].section] if area.symbol < len(symbols) and symbols[area.symbol].section < len(sections) else None
    if bank is None or not bank.name.startswith(".nv.constant0") or bank.info != section.index:
        message = f"PARAM_CBANK names symbol {area.symbol}, expected that of constant bank 0 of {section.name}"
        yield Finding("parameter-bank", section.kernel, None, message, SEEN)
    elif bank.size != area.offset + area.size:
        message = f"{bank.name} has {bank.size:#x} bytes, but the parameters lie at {area.offset:#x} to {area.offset + area.size:#x}"
        yield Finding("parameter-size", section.kernel, None, message, SEEN)
    for size in sizes:
        if size != area.size:
            message = f"CBANK_PARAM_SIZE is {size:#x}, but the area of PARAM_CBANK has {area.size:#x} bytes"
            yield Finding("parameter-size", section.kernel, None, message, SEEN)


def owner_findings(subject: Subject) -> Iterator[Finding]:
    """Register and stack sizes of the whole file are those of functions; each code section names its own."""
    symbols = subject.cubin.symbols
    for attribute in subject.cubin.file_attributes:
        try:
            value = decode(attribute)
        except ContainerError as error:
            yield Finding("attribute-form", ".nv.info", None, str(error), SEEN)
            continue
        if isinstance(value, SymbolValue) and (value.symbol >= len(symbols) or symbols[value.symbol].type != STT_FUNC):
            message = f"{attribute.name} is for symbol {value.symbol}, expected a function"
            yield Finding("attribute-symbol", ".nv.info", None, message, SEEN)
