"""Predicates that the code saves by number: ptxas spills one with a P2R, which ties it to its register."""

from __future__ import annotations

import re

from xdsl.ir import Region

from sassir.analysis.pinned import pinned_values
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import P
from sassir.rewrite.build import instruction

_SAVES_ONE = re.compile(r"=R, PR, RZ, (0x(?:1|2|4|8|10|20|40)); \$P")
"""The operands of a P2R that puts one predicate at the place of its number."""


def free_saved_predicates(region: Region) -> bool:
    """Let a SEL save each predicate that a P2R saves alone: it names the predicate, which may then be any.

    Returns whether there was one; if so, all predicates are free that nothing else ties to their registers.
    """
    saving = [op for block in region.blocks for op in block.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "P2R"]
    if not any([_select(op) for op in saving]):
        return False
    pinned = pinned_values(region)
    for block in region.blocks:
        for value in (*block.args, *[result for op in block.ops for result in op.results]):
            if isinstance(value.type, P) and value not in pinned:
                internals.retype(value, P.free())
    return True


def _select(op: SassInstruction) -> bool:
    found = _SAVES_ONE.fullmatch(op.template.text)
    if found is None or op.modifiers is not None or op.guard is not None or op.constant_guard is not None or op.parent is None:
        return False
    made = instruction(f"SEL =R, RZ, {found[1]}, !$P", internals.operands(op))
    (old,), (new,) = op.results, made.results
    internals.retype(new, old.type)
    new.name_hint = old.name_hint
    op.parent.insert_op_before(made, op)
    old.replace_all_uses_with(new)
    op.detach()
    op.erase()
    return True
