"""Mark the operands that stay in the operand cache for a near instruction.

Each of the three operand slots keeps one register of each bank (even, odd) between instructions of a warp that stays
selected (Huerta et al., MICRO 2025, section 5.3). A marked operand is found there by the next instruction that reads it
in the same slot, which saves a read of the register file. The cache does not see writes, so the register must not be
written in between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from sassir.asm.control import Control
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import R
from sassir.dialect.sample import sample
from sassir.dialect.template import TemplateAttr
from sassir.encoders import table
from sassir.errors import EncodingError
from sassir.schedule.code import Code

_SLOT_BITS = (122, 123, 124)
_HOLE = re.compile(r"\$=?R\d*\|?")
LOOK_AHEAD = 4
"""How far ptxas looks: 95 % of its marks serve one of the next four instructions."""


class Slot(NamedTuple):
    """An operand that the cache can keep."""

    argument: int
    """Its place in the template."""
    slot: int
    first: int
    """Its first register, as a place among the values read."""
    width: int


class Kept(NamedTuple):
    """The same with its registers."""

    argument: int
    slot: int
    registers: int
    """As bits."""
    banks: int
    """The banks of its registers, as two bits."""


class ReuseFinder:
    """Finds the operands to mark, on one architecture."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self._slots: dict[tuple[str, str, int], tuple[object, tuple[Slot, ...]]] = {}

    def marks(self, code: Code, controls: Sequence[Control]) -> dict[int, frozenset[int]]:
        """The arguments to mark, by line."""
        found: dict[int, frozenset[int]] = {}
        for block in code.blocks:
            kept = [self._kept(code, line) for line in block]
            for at, line in enumerate(block):
                arguments = [k.argument for k in kept[at] if self._serves(k, code, controls, kept, at, block)]
                if arguments:
                    found[line] = frozenset(arguments)
        return found

    def _serves(self, mine: Kept, code: Code, controls: Sequence[Control], kept: Sequence[Sequence[Kept]], at: int, block: range) -> bool:
        """Whether a near line finds the operand in the cache."""
        for behind in range(at, min(at + LOOK_AHEAD, len(block) - 1)):
            if controls[block[behind]].yield_ or code.effects[block[behind]].written & mine.registers:
                return False
            sharing = [other for other in kept[behind + 1] if other.slot == mine.slot and other.banks & mine.banks]
            if sharing:
                return any(other.registers == mine.registers for other in sharing)
        return False

    def _kept(self, code: Code, line: int) -> list[Kept]:
        reads = code.effects[line].reads
        kept: list[Kept] = []
        for argument, slot, first, width in self._slots_of(code.ops[line]):
            number = reads[first][0]
            banks = 3 if width > 1 else 1 << (number - R.FIRST) % 2
            kept.append(Kept(argument, slot, (1 << width) - 1 << number, banks))
        return kept

    def _slots_of(self, op: SassInstruction) -> tuple[Slot, ...]:
        template, modifiers = op.properties["template"], op.modifiers
        key = op.MNEMONIC, "" if modifiers is None else modifiers.data, id(template)
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = template, tuple(self._find(op))
        return found[1]

    def _find(self, op: SassInstruction) -> list[Slot]:
        """The operands that can be marked, found out by encoding a sample with each mark."""
        template = marked(op.template, frozenset[int]())
        holes = iter(template.data.holes)
        slots: list[Slot] = []
        first = 0
        for argument, (_, registers) in enumerate(template.data.arguments):
            for hole in [next(holes) for name in registers if name is None]:
                if hole.file == "R" and hole.reads and len(registers) == 1:
                    slots += [
                        Slot(argument, slot, first, hole.width) for slot in self._encoded(op, marked(template, frozenset({argument})))
                    ]
                first += hole.width if hole.reads else 0
        return slots

    def _encoded(self, op: SassInstruction, template: TemplateAttr) -> list[int]:
        """The slots that are marked in the word of an instruction with that template; none if it has no word."""
        try:
            word = table(self.arch).encode(sample(op.MNEMONIC, op.modifiers.data if op.modifiers is not None else "", template))
        except EncodingError:
            return []
        return [slot for slot, bit in enumerate(_SLOT_BITS) if word >> bit & 1]


@cache
def marked(template: TemplateAttr, arguments: frozenset[int]) -> TemplateAttr:
    """The template with marks on these arguments and on no others: `$R.reuse`, `|$R|.reuse`, `$R.reuse.H0_H0`."""
    shown, semicolon, hidden = template.text.replace(".reuse", "").partition("; ")
    texts = [_HOLE.sub(r"\g<0>.reuse", text, count=1) if i in arguments else text for i, text in enumerate(shown.split(", "))]
    return TemplateAttr.of(", ".join(texts) + semicolon + hidden)
