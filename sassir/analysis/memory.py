"""Memory accesses of a kernel: which of them may touch the same bytes.

Two accesses are told apart by their spaces, by different displacements from the same registers, by the pointer parameters
that their addresses are made from (where a fact says that buffers do not overlap), and by `.CONSTANT`, which promises
memory that nobody writes while the kernel runs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sassir.analysis.arguments import arguments
from sassir.analysis.effects import effects
from sassir.dialect.edges import forwarded
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction

ATOMIC = frozenset({"ATOM", "ATOMG", "ATOMS", "RED", "REDG"})
"""Read and write their own address, at once; they order no other access (PTX ISA, memory consistency model: relaxed)."""
_ADDRESS = re.compile(r"(?P<desc>desc\[[^]]*\])?\[(?P<registers>[^]]*?)(?P<offset>[-+]?0x[0-9a-f]+)?\]")
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_PLAIN = frozenset({"LD", "LDG", "LDL", "LDS", "ST", "STG", "STL", "STS"}) | ATOMIC
_FOLLOWED = frozenset({"IADD", "IADD3", "IMAD", "LDC", "LDCU", "LEA", "MOV", "R2UR", "SEL", "VIADD"})
"""Through which an address goes on to be one of the same buffer; a uniform instruction is as the one without U."""
_GLOBAL = frozenset({"global"})
_LIMIT = 256
"""How many values are followed from an address to its pointer."""


class Access(NamedTuple):
    """One memory access of a thread."""

    spaces: frozenset[str]
    writes: bool
    registers: tuple[object, ...]
    """What the address is made from besides the displacement: values, and the rest of the text."""
    begin: int
    """Displacement in bytes."""
    end: int
    pointer: int | None
    """The pointer parameter that the address is made from: its offset in constant bank 0; None if not known."""
    constant: bool
    """Nobody writes this memory while the kernel runs."""


def access(op: Operation, facts: KernelFacts) -> Access | None:
    """The access of a plain load, store or atomic; None for every other operation, also one that touches memory in another way."""
    if not isinstance(op, SassInstruction) or op.MNEMONIC not in _PLAIN:
        return None
    found = effects(op)
    address = next((a for a in arguments(op) if _ADDRESS.fullmatch(a.text)), None)
    if address is None:
        return None
    match = _ADDRESS.fullmatch(address.text)
    assert match is not None
    modifiers = op.modifiers.data.split(".") if op.modifiers is not None else []
    width = next((_WIDTHS[m] for m in modifiers if m in _WIDTHS), 4)
    offset = int(match["offset"] or "0", 16)
    address_values = address.values[match["desc"].count("$") * 2 if match["desc"] else 0 :]
    pointers = frozenset([p.offset for p in facts.pointers])
    pointer = _root(address_values[0], pointers) if address_values and "global" in found.loads | found.stores else None
    registers = (match["registers"], *address.values)
    return Access(
        found.loads | found.stores, bool(found.stores), registers, offset, offset + width, pointer, "CONSTANT" in modifiers
    )


def may_overlap(a: Access, b: Access, facts: KernelFacts) -> bool:
    """Whether two accesses of one thread may touch the same byte."""
    if a.spaces.isdisjoint(b.spaces) or a.constant or b.constant:
        return False
    if a.registers == b.registers:
        return a.begin < b.end and b.begin < a.end
    if a.spaces != _GLOBAL or b.spaces != _GLOBAL:
        return True
    return not (facts.noalias and a.pointer is not None and b.pointer is not None and a.pointer != b.pointer)


def _root(value: SSAValue, pointers: frozenset[int]) -> int | None:
    """The one pointer parameter that an address is computed from, by its low word; None if there is none, or more than one.

    Sums, products with scales, selections and copies are followed; what is loaded counts as an index.
    """
    found: set[int] = set()
    seen = {value}
    work = [value]
    while work and len(seen) <= _LIMIT:
        current = work.pop()
        op = current.owner
        sources: list[SSAValue] = []
        if isinstance(op, Block):
            sources += [v[0] for p in op.predecessors() if p.last_op is not None for v in _passed(p.last_op, current)]
        elif isinstance(op, SassInstruction) and op.MNEMONIC.removeprefix("U") in _FOLLOWED:
            read = [a for a in arguments(op) if not a.written]
            found.update([a.constant[1] for a in read if a.constant is not None and a.constant[0] == 0 and a.constant[1] in pointers])
            sources += [*[v for a in read for v in a.values[:1]], *op.kept]
        work += [v for v in sources if v not in seen]
        seen.update(sources)
    return found.pop() if len(found) == 1 and not work else None


def _passed(terminator: Operation, argument: SSAValue) -> list[tuple[SSAValue, ...]]:
    """What a branch passes to a block argument, once for each edge to its block."""
    assert isinstance(argument, BlockArgument)
    pairs = zip(terminator.successors, forwarded(terminator), strict=False)
    return [values[argument.index : argument.index + 1] for block, values in pairs if block is argument.owner and values]
