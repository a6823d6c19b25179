"""Arrays whose elements are variables: loads and stores at an index that is not known, but cannot be out of bounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, MutableMapping

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sassir.analysis.counted import home
from sassir.dialect.edges import entered_from_elsewhere, forwarded, pass_values
from sassir.dialect.instruction import SassInstruction
from sassir.rewrite.build import instruction
from sassir.rewrite.simplify import replace
from sassir.rewrite.variables import stored_values

Elements = Mapping[int, SSAValue]
"""The variable for each index."""
Definitions = MutableMapping[SSAValue, SSAValue]
"""New definitions of variables, for `reconstruct`."""


def replace_load(op: SassInstruction, index: SSAValue, elements: Elements) -> None:
    """Let a load of one word get the element that `index` says: one selection for each of them."""
    block = op.parent
    assert block is not None
    (_, found), *others = elements.items()
    made: list[SassInstruction] = []
    for i, element in others:
        test = instruction(f"ISETP.EQ.AND =P, PT, $R, {i:#x}, PT", [index])
        selected = instruction("SEL =R, $R, $R, $P", [element, found, test.results[0]])
        made += [test, selected]
        found = selected.results[0]
    made.append(instruction("MOV =R, $R", [found], op.guard, op.unless is not None, op.kept))
    block.insert_ops_before(made, op)
    replace(op, made[-1].results)


def replace_store(op: SassInstruction, index: SSAValue, elements: Elements, definitions: Definitions) -> None:
    """Let a store of one word set the element that `index` says: one selection for each of them."""
    block = op.parent
    assert block is not None
    (word,) = stored_values(op, 1)
    text, words = ("RZ", []) if word is None else ("$R", [word])
    guard, guards = ("PT", []) if op.guard is None else ("!$P" if op.unless is not None else "$P", [op.guard])
    for i, element in elements.items():
        test = instruction(f"ISETP.EQ.AND =P, PT, $R, {i:#x}, {guard}", [index, *guards])
        selected = instruction(f"SEL =R, {text}, $R, $P", [*words, element, test.results[0]])
        block.insert_ops_before([test, selected], op)
        definitions[selected.results[0]] = element
    replace(op, [])


def store_at_joint(
    op: SassInstruction,
    index: SSAValue,
    elements: Elements,
    number: Callable[[SSAValue], int | None],
    accesses: Collection[Operation],
    definitions: Definitions,
) -> bool:
    """Where edges with known indices meet and then the store `op` comes, let each edge pass on the element that it means as stored.

    Returns whether that is possible: `number` tells the index on each edge, and none of the `accesses` to elements lies between.
    """
    joint = index.owner
    if not isinstance(index, BlockArgument) or not isinstance(joint, Block) or op.guard is not None or joint.parent is None:
        return False
    (word,) = stored_values(op, 1)
    path = _path(joint, op)
    if word is None or joint in entered_from_elsewhere(joint.parent) or not path or any(o in accesses for o in path):
        return False
    lasts = [block.last_op for block in joint.predecessors() if block.last_op is not None]
    numbers = [number(v[index.index]) for last in lasts for s, v in zip(last.successors, forwarded(last), strict=True) if s is joint]
    chosen = sorted({i for i in numbers if i is not None})
    if None in numbers or (home(word) in {o.parent for o in path} and word.owner is not joint):
        return False

    def passed(values: tuple[SSAValue, ...]) -> list[SSAValue]:
        stored = values[word.index] if isinstance(word, BlockArgument) and word.owner is joint else word
        return [*values, *[stored if number(values[index.index]) == i else elements[i] for i in chosen]]

    for last in lasts:
        pairs = zip(last.successors, forwarded(last), strict=True)
        pass_values(last, [passed(values) if successor is joint else values for successor, values in pairs])
    for i in chosen:
        definitions[joint.insert_arg(elements[i].type, len(joint.args))] = elements[i]
    replace(op, [])
    return True


def _path(joint: Block, op: Operation) -> list[Operation]:
    """What runs from the start of `joint` until `op`; empty if control does not go straight from one to the other."""
    block, found = op.parent, [op]
    assert block is not None
    while (before := found[-1].prev_op) is not None or block is not joint:
        if before is None:
            above = block.predecessors()
            before = above[0].last_op if len(above) == 1 else None
            if before is None or len(before.successors) != 1:
                return []
            block = above[0]
        found.append(before)
    return found[1:] or [op]
