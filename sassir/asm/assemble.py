"""A listing as a program: labels become displacements, and nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Protocol

from sassir.asm.control import Control
from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.listing import OWN_LABEL, Code, Label, Listing, Section
from sassir.asm.operand import target
from sassir.asm.parse import Reference, Statement, refusal
from sassir.asm.program import Function, Line, Program
from sassir.errors import EncodingError

_WITH_ENCODINGS = "list the file with encodings (nvdisasm -c -hex), or as sassir prints it"

_NAN = re.compile(r"[-+]?\|?[QS]NAN(?!\()")
_RELATIVE = re.compile(r"BRA|BSSY|CALL\.REL|RET\.REL|WARPSYNC\.COLLECTIVE|U?LEPC")
"""Instructions whose last operand is a place: where NVIDIA's tools give it without label, it is an offset in the section."""

_HIDES_DESCRIPTOR = {f"sm_{sm}" for sm in (80, 86, 87, 88, 89)}
_WITH_DESCRIPTOR = {"ATOM", "ATOMG", "LD", "LDG", "LDGSTS", "RED", "ST", "STG"}
"""Their memory descriptor, a pair of uniform registers, is in the word on these architectures but not in NVIDIA's text."""

_HOLD_ADDRESSES = {"BRX", "BRXU", "JMX", "JMXU", "RET"}


class Table(Protocol):
    """The encoding of one architecture, as `sassir.encoders.table` has it."""

    @property
    def mnemonics(self) -> Collection[str]:
        """All mnemonics of the architecture."""
        ...

    def decode(self, word: int) -> Instruction:
        """The instruction in a word; never raises."""
        ...

    def encode(self, instruction: Instruction) -> int:
        """The word of an instruction. Raises EncodingError when it has none."""
        ...


def assemble(listing: Listing, table: Table, container: bytes | None = None) -> Program:
    """The program that a listing describes; `table` is that of `listing.arch`, `container` the file it came from.

    Where a line has its encoding, the encoding decides, control code included. Its text may be less precise, but may not say
    something else: a line whose text was edited needs its encoding taken away. A line without encoding needs a control code.
    Labels resolve within their section. Branches that give a number instead of a label keep their distance.

    Raises ListingError, naming the line and a remedy: for text that does not determine the word (see `obstacle`) or has none; for
    a label that is missing or there twice; for addresses with a gap, or used twice; for lines added to code that returns or jumps
    to an address in a register, since that address is a number somewhere in the code or in a table.
    """
    functions = tuple([_function(section, listing, table) for section in listing.sections])
    return Program(listing.arch, functions, container or listing.container)


def obstacle(statement: Statement, listing: Listing, labels: Mapping[str, int]) -> str | None:
    """Why the text of a line does not determine its word, and what to do; None when it does."""
    if not statement.control:
        return f"no control code: text alone does not say when it may issue; write one, such as [B------:R-:W-:-:S04], or {_WITH_ENCODINGS}"
    for operand in statement.operands:
        if isinstance(operand, Reference):
            if operand.label is None:
                return f"{operand.text} is filled in by the linker; {_WITH_ENCODINGS}"
            if operand.label not in labels:
                return f"no label {operand.label} in this section; define it, or write the displacement, for example .+0x40"
        elif _NAN.match(operand.template):
            return f"{operand.text} does not say which of the NaNs it is; write its bits, for example +QNAN(0x7fffffff)"
    if listing.own or listing.arch not in _HIDES_DESCRIPTOR or statement.mnemonic not in _WITH_DESCRIPTOR or statement.extra:
        return None
    return f"on {listing.arch} NVIDIA's text does not show the descriptor register of {statement.mnemonic}; {_WITH_ENCODINGS}"


def _function(section: Section, listing: Listing, table: Table) -> Function:
    labels = _labels(section, listing)
    _check_addresses(section, listing)
    lines: list[Line] = []
    for code in section.code:
        instruction = _instruction(code, INSTRUCTION_BYTES * len(lines), labels, listing, table)
        lines.append(Line(instruction, code.address))
    kept = {name: offset for name, offset in labels.items() if not OWN_LABEL.fullmatch(name)}
    return Function(section.name, section.number, tuple(lines), kept)


def _labels(section: Section, listing: Listing) -> dict[str, int]:
    labels: dict[str, int] = {}
    offset = 0
    for line in section.lines:
        if not isinstance(line, Label):
            offset += INSTRUCTION_BYTES
        elif labels.setdefault(line.name, offset) != offset:
            raise refusal(f"label {line.name} is already in this section; rename one", listing.text, listing.where, line.line, 1)
    return labels


def _check_addresses(section: Section, listing: Listing) -> None:
    if listing.own:
        _check_origins(section.code, listing)
        return
    stated = any(code.address is not None or code.word is not None for code in section.code)
    for i, code in enumerate(section.code):
        expected = INSTRUCTION_BYTES * i
        if stated and code.address != expected:
            found = "no address" if code.address is None else f"address {code.address:#x}"
            remedy = "to add or take away code, edit the listing that sassir prints"
            raise listing.refusal(f"{found}, expected {expected:#x}: the listing of {section.name} has a gap; {remedy}", code.statement)


def _check_origins(lines: tuple[Code, ...], listing: Listing) -> None:
    """Each origin is there once, and no address that a register holds (of a return, or a jump table) goes stale."""
    seen: dict[int, int] = {}
    for code in lines:
        if code.address is not None and seen.setdefault(code.address, code.statement.line) != code.statement.line:
            message = f"offset {code.address:#x} is already in line {seen[code.address]}; a new instruction has none"
            raise listing.refusal(message, code.statement)
    if seen and (len(seen) < len(lines) or max(seen) != INSTRUCTION_BYTES * (len(lines) - 1)):
        for code in lines:
            if code.statement.mnemonic in _HOLD_ADDRESSES:
                stale = f"lines were added or taken away, but the address that {code.statement.mnemonic} takes from a register"
                raise listing.refusal(f"{stale} is a number elsewhere; keep the number of lines of this section", code.statement)


def _instruction(code: Code, offset: int, labels: Mapping[str, int], listing: Listing, table: Table) -> Instruction:
    if code.word is not None:
        decoded = table.decode(code.word)
        written = code.statement._replace(control=decoded.control)
        if not obstacle(written, listing, labels):
            _check_agreement(written, _resolved(written, offset, labels, listing), decoded, listing, table)
        return decoded
    if problem := obstacle(code.statement, listing, labels):
        raise listing.refusal(problem, code.statement)
    instruction = _resolved(code.statement, offset, labels, listing)
    try:
        table.encode(instruction)
    except EncodingError as error:
        raise listing.refusal(f"{error}{_suggestion(instruction.mnemonic, table)}", code.statement) from error
    return instruction


def _suggestion(mnemonic: str, table: Table) -> str:
    close = [] if mnemonic in table.mnemonics else get_close_matches(mnemonic, table.mnemonics, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _resolved(statement: Statement, offset: int, labels: Mapping[str, int], listing: Listing) -> Instruction:
    operands = [target(labels[o.label or ""] - offset) if isinstance(o, Reference) else o for o in statement.operands]
    instruction = statement.instruction(tuple(operands))
    if operands and not listing.own and _RELATIVE.match(instruction.name) and (place := operands[-1].integer) is not None:
        return instruction._replace(operands=(*operands[:-1], target(place - offset)))
    return instruction


def _check_agreement(statement: Statement, written: Instruction, decoded: Instruction, listing: Listing, table: Table) -> None:
    """Text that has a word of its own, which reads differently from the encoding beside it, was edited."""
    if _visible(written) == _visible(decoded):
        return
    try:
        reread = table.decode(table.encode(written))
    except EncodingError:
        return  # a spelling of another version of the tools
    if _visible(reread) != _visible(decoded):
        remedy = "after an edit, take the encoding away and write the control code"
        raise listing.refusal(f"the text says {reread.text}, but its encoding {decoded.text}; {remedy}", statement)


def _visible(instruction: Instruction) -> Instruction:
    """What the text of NVIDIA's tools shows."""
    return instruction._replace(control=Control(), extra=(), word=None)
