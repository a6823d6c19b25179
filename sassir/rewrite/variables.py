"""Words of memory as variables: moves in the place of the loads and stores of them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sassir.analysis.arguments import arguments
from sassir.dialect.instruction import SassInstruction
from sassir.rewrite.build import instruction
from sassir.rewrite.simplify import replace


def stored_values(op: SassInstruction, count: int) -> list[SSAValue | None]:
    """The words that a store of `count` of them writes; None for each where that is a zero register."""
    return list(arguments(op)[-1].values) or [None] * count


def replace_by_moves(op: SassInstruction, variables: Sequence[SSAValue]) -> list[SSAValue]:
    """Let a load of whole words get, or a store of them set, one variable a word, under the guard that the access had.

    Returns what the moves of a store define, each a new definition of its variable for `reconstruct`; nothing for a load.
    """
    block = op.parent
    assert block is not None
    loads = bool(op.results)
    sources: Sequence[SSAValue | None] = variables if loads else stored_values(op, len(variables))
    made: list[SassInstruction] = []
    for i, (variable, source) in enumerate(zip(variables, sources, strict=True)):
        kept = op.kept[i : i + 1] if loads else [variable]
        text = "MOV =R, RZ" if source is None else "MOV =R, $R"
        made.append(instruction(text, [] if source is None else [source], op.guard, op.unless is not None, kept))
    block.insert_ops_before(made, op)
    results: list[SSAValue] = [move.results[0] for move in made]
    replace(op, results if loads else [])
    return [] if loads else results
