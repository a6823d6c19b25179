"""The underscore members of xDSL 0.75 that sassir uses for speed, all in this file.

`op.operands` builds a proxy object on each call (0.7 µs against 0.04), and setting `name_hint` matches two patterns. `list(block.ops)`
takes two calls an operation to count them and two to go through them; a generator goes through them here, and through the blocks of a
region. The hash of a value, an operation or a block is its identity, but by a function in Python (0.27 µs against 0.05), and whether an
object is of an abstract class is asked of two functions (0.55 µs against 0.2).
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.core import BlockOps, RegionBlocks
from xdsl.irdl import IRDLOperation

Class = TypeVar("Class")


def by_identity(cls: type[Class]) -> type[Class]:
    """Let objects of a class be equal only to themselves, without a call of Python."""
    for method in ("__hash__", "__eq__"):
        setattr(cls, method, getattr(object, method))
    return cls


for _class in (SSAValue, IRDLOperation, Block):
    by_identity(_class)


def _each_operation(ops: BlockOps) -> Iterator[Operation]:
    op = ops.block.first_op
    while op is not None:
        following = op._next_op
        yield op
        op = following


def _each_block(blocks: RegionBlocks) -> Iterator[Block]:
    block = blocks._region.first_block
    while block is not None:
        following = block._next_block
        yield block
        block = following


for _view, _method, _each in ((BlockOps, "__iter__", _each_operation), (RegionBlocks, "__iter__", _each_block)):
    setattr(_view, _method, _each)


class Concrete(ABCMeta):
    """The class of classes whose instances are only those of their subclasses: nothing is registered with them."""

    __instancecheck__ = type.__instancecheck__


def operands(op: Operation) -> tuple[SSAValue, ...]:
    """The operands as a plain tuple."""
    return op._operands


def operations(block: Block) -> list[Operation]:
    """The operations of a block, in order."""
    found: list[Operation] = []
    op = block.first_op
    while op is not None:
        found.append(op)
        op = op._next_op
    return found


def content(region: Region) -> list[object]:
    """All objects that the blocks of a region are made of, equal only as long as nothing in them changes: attributes and tuples are never
    changed in place, and of a value at most which register it is in."""
    found: list[object] = []
    for block in region.blocks:
        found += (block, block.args)
        op = block.first_op
        while op is not None:
            found += (op, op._operands, op._successors)
            found += op.properties.values()
            op = op._next_op
    return found


def successors(op: Operation) -> tuple[Block, ...]:
    """The blocks that a terminator leads to as a plain tuple."""
    return op._successors


def uses(value: SSAValue) -> list[tuple[Operation, int]]:
    """The operations that read a value, each with the number of the operand that it is."""
    found: list[tuple[Operation, int]] = []
    use = value.first_use
    while use is not None:
        found.append((use._operation, use._index))
        use = use._next_use
    return found


def name(values: tuple[SSAValue, ...] | SSAValue | Block, hint: str) -> None:
    """Set a name hint that is known to be valid."""
    for value in values if isinstance(values, tuple) else (values,):
        value._name = hint


def of_type(attribute: str) -> Callable[[SSAValue], Any]:
    """A function that tells an attribute of the type of a value."""
    return attrgetter(f"_type.{attribute}")


def retype(value: SSAValue, type: Attribute) -> None:
    """Give a value another type where it is; its users are not told."""
    value._type = type
