"""Copies of blocks, for unrolling and for fast and slow versions of the same code."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from itertools import count

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, SSAValue

from sassir.analysis.counted import home
from sassir.analysis.flow import flow_of
from sassir.dialect import internals
from sassir.dialect.edges import forwarded
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import KernelOp, LabelOp, UndefinedOp
from sassir.dialect.registers import SassRegister
from sassir.rewrite.reconstruct import reconstruct

Values = MutableMapping[SSAValue, SSAValue]
"""From each value to the copy of it."""


def clone_blocks(
    kernel: KernelOp, blocks: Sequence[Block], after: Block, values: Values, order: Sequence[Block] = ()
) -> dict[Block, Block]:
    """Put a copy of `blocks` behind the block `after`; what `values` has no copy of is shared with the original.

    Branches among the blocks go to the copies, others where they went before. Labels get new names; the places that BSSY and
    return addresses name follow. `values` is extended by all results and arguments copied. `order`: what `definitions_first`
    says of the blocks, for who copies them several times.
    """
    copies = {block: Block(arg_types=[a.type for a in block.args]) for block in blocks}
    labels = _new_labels(kernel, blocks)
    place = after
    for block in blocks:
        copy = copies[block]
        kernel.body.insert_block_after(copy, place)
        place = copy
        for old, new in zip(block.args, copy.args, strict=True):
            values[old] = new
    table = dict(values)
    for block in order or definitions_first(kernel, blocks):
        for op in block.ops:
            if isinstance(op, LabelOp):
                copies[block].add_op(LabelOp.of(labels[op.label.data], True))
                continue
            new = op.clone(table, copies, clone_name_hints=False)
            new.properties.pop("origin", None)
            named = new.properties.get("place")
            if isinstance(named, StringAttr) and named.data in labels:
                new.properties["place"] = StringAttr(labels[named.data])
            copies[block].add_op(new)
    values.update(table)
    _return_to_copies(kernel, copies)
    return copies


def _return_to_copies(kernel: KernelOp, copies: dict[Block, Block]) -> None:
    """Where a call was copied and its function was not, let the RET of that lead behind the copy too."""
    added = set(copies.values())
    for block in kernel.body.blocks:
        end = block.last_op
        if block in copies or block in added or not isinstance(end, SassBranch) or end.MNEMONIC != "RET":
            continue
        behind = [(copies[place], passed) for place, passed in zip(end.successors, forwarded(end), strict=True) if place in copies]
        end.operands = [*internals.operands(end), *[v for _, passed in behind for v in passed]]
        end.successors = [*end.successors, *[copy for copy, _ in behind]]


def definitions_first(kernel: KernelOp, blocks: Sequence[Block]) -> list[Block]:
    """The blocks, each behind those that dominate it."""
    chosen, flow = set(blocks), flow_of(kernel.body)
    return [flow.blocks[b] for b in flow.cfg.order if flow.blocks[b] in chosen]


def _new_labels(kernel: KernelOp, blocks: Sequence[Block]) -> dict[str, str]:
    old = [label for block in blocks for label in _labels(block)]
    used = {label for block in kernel.body.blocks for label in _labels(block)} if old else frozenset[str]()
    free = (name for i in count() if (name := f"copy_{i}") not in used)
    return {label: next(free) for label in old}


def _labels(block: Block) -> Iterator[str]:
    """The labels of a block: they are at its start."""
    for op in block.ops:
        if not isinstance(op, LabelOp):
            return
        yield op.label.data


def join_definitions(kernel: KernelOp, copies: Sequence[Values]) -> None:
    """Where code behind the copied blocks uses their values, let it get the copy that control comes from."""
    definitions = {new: old for values in copies for old, new in values.items() if new is not old and _used_elsewhere(old)}
    reconstruct(kernel.body, definitions, lambda _, value: value.type)


def join_across_calls(kernel: KernelOp, copies: Sequence[Values]) -> None:
    """As `join_definitions`, for blocks that call functions which were not copied.

    What was defined on every path to a use may not be any more: every call of a function seems to come back behind all of them.
    So each value with its copies becomes a variable that is undefined at first, and which functions hand through.
    """
    entry = kernel.body.blocks[0]
    undefined: list[UndefinedOp] = []
    definitions: dict[SSAValue, SSAValue] = {}
    for old in copies[0]:
        members = list(dict.fromkeys([old, *[values[old] for values in copies]]))
        uses = [use for member in members for use in member.uses if use.operation.parent is not home(member)]
        if len(members) == 1 or not uses or not isinstance(old.type, SassRegister):
            continue
        undefined.append(UndefinedOp.of(old.type))
        for use in uses:
            use.operation.operands[use.index] = undefined[-1].value
        definitions.update(dict.fromkeys(members, undefined[-1].value))
    first = next(op for op in entry.ops if not isinstance(op, LabelOp))
    entry.insert_ops_before(undefined, first)
    reconstruct(kernel.body, definitions, lambda _, value: value.type)
    for op in undefined:
        if op.value.first_use is None:
            op.detach()
            op.erase()


def _used_elsewhere(value: SSAValue) -> bool:
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent
    return any(use.operation.parent is not home for use in value.uses)


def operands_of(values: Values, passed: Sequence[SSAValue]) -> list[SSAValue]:
    """The copies of what a branch passes."""
    return [values.get(v, v) for v in passed]
