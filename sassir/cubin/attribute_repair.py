"""The attributes of a kernel after its code moved."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import compress

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.operand import ZERO_REGISTERS, register_file
from sassir.cubin.attribute_kinds import (
    COOP_GROUP_INSTR_OFFSETS,
    COOP_GROUP_MASK_REGIDS,
    EXIT_INSTR_OFFSETS,
    INDIRECT_BRANCH_TARGETS,
    KINDS,
    LISTED_WHEN_NEW,
    MBARRIER_INSTR_OFFSETS,
    RECORDS,
    Payload,
)
from sassir.cubin.code import Code
from sassir.cubin.elf import entries
from sassir.cubin.nvinfo import Attribute, Format, IndirectBranch, indirect_branches, with_branches
from sassir.cubin.places import Places
from sassir.errors import ContainerError

_ANY_MASK = 0xFFFFFFFF
_NO_REGISTER = 0xFF


def moved_attributes(attributes: tuple[Attribute, ...], places: Places, code: Code) -> tuple[Attribute, ...]:
    """Entries follow their instruction, and go with it or when another kind of instruction took its place; new instructions that
    have to be listed are added; a list that becomes empty goes.

    Raises ContainerError for an attribute that may hold code offsets in a form that is not known.
    """
    lists = _Lists(attributes, places, code)
    moved = [(old, lists.moved(old)) for old in attributes]
    return tuple(lists.with_new([new for old, new in moved if new == old or new.data]))


class _Lists:
    """The lists of instructions, and where those are now."""

    def __init__(self, attributes: tuple[Attribute, ...], places: Places, code: Code) -> None:
        self.places, self.code = places, code
        coop = [a for a in attributes if a.id == COOP_GROUP_INSTR_OFFSETS]
        self.cooperating = [self.place(COOP_GROUP_INSTR_OFFSETS, offset) is not None for a in coop for offset in a.words]

    def instruction(self, new: int) -> Instruction | None:
        """The instruction at a new offset, if the caller told."""
        return self.code.instructions[new // INSTRUCTION_BYTES] if self.code.instructions else None

    def place(self, attribute: int, offset: int) -> int | None:
        """New offset of an instruction listed in this attribute; None when it is gone or is another kind now."""
        new = self.places.instruction(offset)
        kinds = KINDS[attribute].instructions.split()
        now = None if new is None else self.instruction(new)
        return None if now is not None and kinds and now.mnemonic not in kinds else new

    def moved(self, attribute: Attribute) -> Attribute:
        """One attribute."""
        payload = attribute.kind.payload if attribute.kind else None
        if attribute.id == COOP_GROUP_MASK_REGIDS:
            return self._masks(attribute)
        if payload in RECORDS:
            return attribute.with_words(tuple(self._records(attribute, *RECORDS[payload])))
        if attribute.id == INDIRECT_BRANCH_TARGETS:
            return with_branches(attribute, tuple(self._branches(attribute)))
        if self.places.unmoved or attribute.format is not Format.SVAL or payload not in (Payload.OFFSETS_OTHER, None):
            return attribute
        raise ContainerError(f"{self.places.name}: the code cannot move: attribute {attribute.name} may hold offsets, in an unknown form")

    def _masks(self, attribute: Attribute) -> Attribute:
        """Parallel to COOP_GROUP_INSTR_OFFSETS: of each instruction the lanes that take part, or the register that tells which.

        On other registers none of it is kept: the register of a mask is none of the instruction's own.
        """
        if self.code.renamed and any(mask != _ANY_MASK for mask in attribute.words):
            return attribute.with_words(())
        if all(self.cooperating):
            return attribute
        if len(self.cooperating) != len(attribute.words):
            raise ContainerError(f"{self.places.name}: {len(attribute.words)} warp masks for {len(self.cooperating)} instructions")
        return attribute.with_words(tuple(compress(attribute.words, self.cooperating)))

    def _records(self, attribute: Attribute, stride: int, at: int) -> Iterator[int]:
        for record in entries(attribute.data, struct.Struct(f"<{stride}I"), f"attribute {attribute.name}", self.places.name):
            offset = self.place(attribute.id, record[at])
            if offset is not None:
                moved = (*record[:at], offset, *record[at + 1 :])
                yield from self._barrier(*moved) if attribute.id == MBARRIER_INSTR_OFFSETS else moved

    def _barrier(self, offset: int, vector: int, shared: int, kind: int) -> tuple[int, ...]:
        """An mbarrier instruction with the registers of its address as they are now. The address that a NOP stands for is not its
        own: on other registers that is not listed."""
        now = self.instruction(offset)
        found = address_registers(now) if now is not None else None
        if found is None:
            return () if self.code.renamed else (offset, vector, shared, kind)
        return offset, found[0], shared, kind & 0xFF00FFFF | found[1] << 16

    def _branches(self, attribute: Attribute) -> Iterator[IndirectBranch]:
        for branch in indirect_branches(attribute):
            offset = self.place(attribute.id, branch.offset)
            if offset is not None:
                targets = [self.places.place(target, f"the indirect branch at {branch.offset:#x}") for target in branch.targets]
                yield branch._replace(offset=offset, targets=tuple(targets))

    def with_new(self, attributes: list[Attribute]) -> list[Attribute]:
        """The attributes with every new instruction that has to be in one of them."""
        listed = {offset for a in attributes if a.kind and a.kind.payload is Payload.OFFSETS for offset in a.words}
        for id in LISTED_WHEN_NEW:
            kinds = KINDS[id].instructions.split()
            offsets = [INSTRUCTION_BYTES * i for i, c in enumerate(self.code.instructions) if c.mnemonic in kinds]
            # An EXIT may also have taken the place of another instruction.
            new = [o for o in offsets if o not in listed and (id == EXIT_INSTR_OFFSETS or self.places.origin(o) is None)]
            if new:
                at = next((i for i, a in enumerate(attributes) if a.id == id), len(attributes))
                old = attributes[at] if at < len(attributes) else Attribute(id, Format.SVAL, b"")
                attributes[at : at + 1] = [old.with_words(tuple(sorted((*old.words, *new))))]
        return attributes


def address_registers(instruction: Instruction) -> tuple[int, int] | None:
    """Numbers of the R and the UR in the address of an instruction, as MBARRIER_INSTR_OFFSETS writes them: 0xff for none.

    None if it has no address.
    """
    names = next((o.registers for o in instruction.operands if "[" in o.template), None)
    if names is None:
        return None
    numbers = {register_file(name): int(name.lstrip("UR")) for name in names if name not in ZERO_REGISTERS}
    return numbers.get("R", _NO_REGISTER), numbers.get("UR", _NO_REGISTER)
