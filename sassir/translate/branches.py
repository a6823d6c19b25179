"""Where control can go from each branch of a function, and which other operands name places in it.

CALL.REL.NOINC is a jump: Volta and later keep no return stack. The return address is a number that the caller puts in
a register before the jump, and RET jumps there. ptxas also uses it as a plain conditional branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sassir import isa
from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.operand import ZERO_REGISTERS, register_file
from sassir.asm.program import Function
from sassir.dialect.instruction import SassBranch
from sassir.dialect.template import ADDRESS, PLACE
from sassir.translate.links import linked_place, marked
from sassir.translate.shape import shape

JumpTables = Mapping[int, tuple[str, ...]]
"""Original offsets of indirect branches, and the labels that each can reach (from the attributes of the file)."""

RELATIVE = ("BRX", "BRXU")
"""Their number counts from the next instruction: together with it, the register gives an offset in the section."""
_DECIDING = frozenset({"CONV", "DIV"})
"""A BRA with one of these is taken if its threads run together, or if they do not; on sm_75 it may name no mask."""
_SEARCH = 256
"""How many instructions before a call its return address is looked for."""


class Exit(NamedTuple):
    """Where a branch goes."""

    targets: tuple[int, ...]
    """Offsets, in the order of the operation's successors."""
    returns: bool
    """Code that is not in this function runs in between."""


class Branches:
    """All places that the instructions of a function name. What cannot be told for certain is in `problems`, by line."""

    def __init__(self, function: Function, tables: JumpTables) -> None:
        self.function = function
        self.size = function.size
        self.problems: dict[int, str] = {}
        self.linked: dict[int, str] = {}
        """What the linker or the driver fills in, by line."""
        self.code = [line.instruction for line in function.lines]
        self._mark_links()
        self.shapes = [shape(c.mnemonic, c.modifiers, c.operands) for c in self.code]
        self.places = self._displacements()
        """The offset that each line names, in its text or as a number."""
        self.address_registers = 0
        """The registers that hold return addresses at some call, as bits."""
        self.return_addresses = self._return_addresses()
        self.exits = {i: self._exit(i, tables) for i, s in enumerate(self.shapes) if issubclass(s.op, SassBranch)}
        self._connect_returns()
        self._check_reconvergence()
        for i, found in enumerate(self.shapes):
            if found.problem is not None:
                self._problem(i, f"is opaque: {found.problem}")

    def _mark_links(self) -> None:
        for i, (instruction, origin) in enumerate(self.function.lines):
            link = self.function.links.get(origin) if origin is not None else None
            if link is None:
                continue
            self.linked[i] = link
            found = marked(instruction, link)
            if found is None:
                self._problem(i, f"is patched by {link}, in a way that is not known")
            else:
                self.code[i] = found

    def goes_to_place(self, i: int) -> bool:
        """Line `i` is a branch to the place that its text names; elsewhere such a text is a base, or data."""
        return i in self.exits and i in self.places and is_direct(self.code[i])

    def _problem(self, i: int, text: str) -> None:
        self.problems.setdefault(i, f"{self.code[i].text} at {INSTRUCTION_BYTES * i:#x} {text}")

    def _displacements(self) -> dict[int, int]:
        """Places named as a distance: by the text of a branch, or by the number that BRX adds to its register."""
        places: dict[int, int] = {}
        for i, c in enumerate(self.code):
            distance = self.shapes[i].displacement
            mark = PLACE
            if distance is None and c.mnemonic in RELATIVE:
                distance = next((o.integer + INSTRUCTION_BYTES for o in c.operands if o.integer is not None), None)
                mark = ADDRESS
            if distance is None:
                continue
            place = INSTRUCTION_BYTES * i + distance
            if place % INSTRUCTION_BYTES or not 0 <= place <= self.size:
                self._problem(i, f"names {place:#x}, which is no instruction of the section")
                mark = ""
            else:
                places[i] = place
            if mark != PLACE:
                self._reshape(i, mark)
        return places

    def _reshape(self, i: int, mark: str) -> None:
        instruction = self.code[i]
        self.shapes[i] = shape(instruction.mnemonic, instruction.modifiers, instruction.operands, mark)

    def _return_addresses(self) -> set[int]:
        """Find the numbers that are return addresses: nothing in the file marks them.

        A number counts if it is the offset behind a call and still in its register when the call is made.
        """
        found: set[int] = set()
        for i, c in enumerate(self.code):
            behind = INSTRUCTION_BYTES * (i + 1)
            if c.mnemonic == "CALL" and (writer := self._writer_of(behind, i)) is not None:
                found.add(behind)
                if writer not in self.places and writer not in self.linked:
                    self.places[writer] = behind
                    self._reshape(writer, ADDRESS)
        for i, c in enumerate(self.code):
            if i not in self.places and moved_number(c) in found and self.shapes[i].write_set & self.address_registers:
                self._problem(i, "may or may not write a return address")
        return found

    def _writer_of(self, address: int, call: int) -> int | None:
        """The line before `call` that puts `address` into a register, from which it may move on, but is not lost before the call."""
        overwritten = 0
        for j in range(call - 1, max(call - _SEARCH, 0) - 1, -1):
            found = self.shapes[j]
            named = address in (self.places.get(j), moved_number(self.code[j]), self._linked_place(j))
            if named and found.write_set & ~overwritten:
                self.address_registers |= found.write_set
                return j
            if issubclass(found.op, SassBranch) and not may_continue(self.code[j]):
                return None
            moves = self.code[j].mnemonic == "MOV" and self.code[j].guard is None and found.write_set & ~overwritten
            overwritten |= found.write_set
            if moves:
                overwritten &= ~found.read_set
        return None

    def _linked_place(self, i: int) -> int | None:
        """The place of this function whose address is filled into line `i`."""
        link = self.linked.get(i)
        return linked_place(link, self.function.labels) if link is not None else None

    def _exit(self, i: int, tables: JumpTables) -> Exit:
        instruction, behind = self.code[i], INSTRUCTION_BYTES * (i + 1)
        kind = isa.describe(instruction.mnemonic, instruction.modifiers)
        control = kind.control if kind is not None else None
        targets: list[int] = []
        if is_direct(instruction) and i in self.places:
            targets.append(self.places[i])
        elif control == "indirect":
            origin, labels = self.function.lines[i].origin, self.function.labels
            names = tables.get(origin, ()) if origin is not None else ()
            targets += [labels[name] for name in names if name in labels]
            if not names or len(targets) < len(names):
                self._problem(i, "goes to places that no attribute of the file tells")
            elif i not in self.places:
                self._problem(i, "adds to its register a number that is no place of the section")
        elif control == "branch":
            self._problem(i, "goes to a place outside of the section")
        elsewhere = control == "call" and not (is_direct(instruction) and i in self.places)
        if elsewhere or may_continue(instruction):
            targets.append(behind)
        return Exit(tuple(targets), elsewhere)

    def _connect_returns(self) -> None:
        """Let each RET go behind the calls that lead to it. A call that comes back to an unknown place is a problem."""
        leads_to: dict[int, list[int]] = {}
        comes_from: dict[int, list[int]] = {}
        for i, c in enumerate(self.code):
            if c.mnemonic != "CALL":
                continue
            behind = INSTRUCTION_BYTES * (i + 1)
            returns: list[int] = []
            if not self.exits[i].returns:
                target = self.places[i]
                if target not in leads_to:
                    leads_to[target] = self._reached_returns(target)
                returns = leads_to[target]
            if behind in self.return_addresses:
                for line in returns:
                    comes_from.setdefault(line, []).append(behind)
            elif returns or self.exits[i].returns:
                self._problem(i, "returns to an address that no instruction of the section names")
        for line, behind in comes_from.items():
            self.exits[line] = Exit((*behind, *self.exits[line].targets), False)

    def _reached_returns(self, target: int) -> list[int]:
        """The lines with a RET that control can get to from `target`, stepping over calls that return to a known address."""
        found: list[int] = []
        seen: set[int] = set()
        work = [target // INSTRUCTION_BYTES]
        while work:
            i = work.pop()
            while i not in seen and i < len(self.code):
                seen.add(i)
                if i in self.exits:
                    if self.code[i].mnemonic == "RET":
                        found.append(i)
                    behind = INSTRUCTION_BYTES * (i + 1)
                    steps_over = self.code[i].mnemonic == "CALL" and behind in self.return_addresses
                    work += [t // INSTRUCTION_BYTES for t in ((behind,) if steps_over else self.exits[i].targets)]
                    break
                i += 1
        return found

    def _check_reconvergence(self) -> None:
        """BSYNC continues where the BSSY of its barrier says; ptxas puts that right behind the BSYNC.

        A barrier can have come from another register, by way of a general one: then any BSSY may be its own.
        """
        named = [(place, self.code[i].operands) for i, place in self.places.items() if self.code[i].mnemonic == "BSSY"]
        agreed = {(place, operand.registers) for place, operands in named for operand in operands}
        places = {place for place, _ in named}
        moved = {c.operands[0].registers for c in self.code if c.mnemonic == "BMOV"}
        for i, c in enumerate(self.code):
            if c.mnemonic == "BSYNC":
                behind, barrier = INSTRUCTION_BYTES * (i + 1), c.operands[-1].registers
                if (behind, barrier) not in agreed and not (barrier in moved and behind in places):
                    self._problem(i, "waits for a barrier whose BSSY does not name the next instruction")


def moved_number(instruction: Instruction) -> int | None:
    """The number that a move puts into its register: `MOV R4, 0x120`, `IMAD.MOV.U32 R4, RZ, RZ, 0x120`; None for anything else."""
    sources = [o for o in instruction.operands[1:] if o.text not in ZERO_REGISTERS]
    return sources[0].integer if len(sources) == 1 and "MOV" in (instruction.mnemonic[-3:], *instruction.modifiers) else None


def is_direct(instruction: Instruction) -> bool:
    """A branch that goes to the place in its text. RET and BRX, and a CALL through a register, only add to it."""
    if instruction.mnemonic == "CALL":
        return not _has_register(instruction, "R", "UR")
    return instruction.mnemonic in ("BRA", "JMP", "WARPSYNC")


def may_continue(instruction: Instruction) -> bool:
    """Control can reach the instruction behind a branch: there is a condition, it only waits, or unknown code comes back."""
    if instruction.guard is not None or _has_register(instruction, "P", "UP"):
        return True
    if instruction.mnemonic == "BRA":
        return len(instruction.operands) > 1 or not _DECIDING.isdisjoint(instruction.modifiers)
    return instruction.mnemonic in ("BSYNC", "WARPSYNC") or (instruction.mnemonic == "CALL" and not is_direct(instruction))


def _has_register(instruction: Instruction, *files: str) -> bool:
    """A register of one of these files is among the operands."""
    return any(register_file(r) in files for o in instruction.operands if o.is_register for r in o.registers)
