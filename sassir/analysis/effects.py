"""What an operation does besides computing its results, from the rows of `sassir.isa`."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from xdsl.ir import Operation

from sassir import isa
from sassir.asm.instruction import Instruction
from sassir.asm.operand import Operand
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.template import TemplateAttr


class Effects(NamedTuple):
    """All that decides whether an operation may be dropped, repeated or moved."""

    loads: frozenset[str]
    """Memory spaces read."""
    stores: frozenset[str]
    """Memory spaces written."""
    ordered: bool
    """Memory accesses stay on their side of it."""
    warp: bool
    """Other lanes take part: it must run with the same lanes active."""
    clock: bool
    """It may give another value when it runs again."""
    pinned: bool
    """It does something that is neither a register nor memory, or decides how control goes on."""

    @property
    def droppable(self) -> bool:
        """Nothing but its results tells whether it ran."""
        return not (self.stores or self.ordered or self.pinned)

    @property
    def pure(self) -> bool:
        """Its results follow from its operands alone: it may move to any place and be repeated."""
        return not (self.loads - {"constant"}) and self.droppable and not (self.warp or self.clock)


_NOTHING = frozenset[str]()
NO_EFFECTS = Effects(_NOTHING, _NOTHING, False, False, False, False)
ALL_EFFECTS = Effects(isa.SPACES, isa.SPACES, True, True, True, True)
"""What an unknown instruction may do."""


def effects(op: Operation) -> Effects:
    """The effects of an operation of a kernel; those of labels and of `sass.next` are none."""
    if not isinstance(op, SassInstruction):
        return NO_EFFECTS
    modifiers = op.modifiers
    return _effects(op.MNEMONIC, modifiers.data if modifiers is not None else "", op.template)


@cache
def _effects(mnemonic: str, modifiers: str, template: TemplateAttr) -> Effects:
    parts = tuple(modifiers.split(".")) if modifiers else ()
    row = isa.describe(mnemonic, parts)
    if row is None:
        return ALL_EFFECTS
    instruction = Instruction(mnemonic, parts, tuple([Operand.of(a.template.replace("$", "")) for a in template.data.arguments]))
    pinned = row.pinned or row.control is not None
    return Effects(row.loads, row.stores, isa.is_ordered(instruction), row.warp, isa.reads_clock(instruction), pinned)
