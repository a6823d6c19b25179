"""Traffic from the code and the facts of a launch alone: a dry run of one block tells the addresses of its threads.

Buffers are taken to lie one behind the other. What does not follow from the place of a thread in its block (an index that is
loaded) is not known; such an access has no traffic here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.dry_run import Lookup, dry_run
from sassir.analysis.effects import effects
from sassir.analysis.propagation import Propagation
from sassir.dialect.facts import KernelFacts, facts_of
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.isa.semantics.evaluator import Flags
from sassir.timing.profile import LANES, Traffic
from sassir.timing.traffic import Access, Cache, Moves, Numbers, access_of, memory_shares, move_global, move_shared

_ADDRESS = re.compile(r"(?:desc\[[^]]*\])?\[([^][]*)\]")
_PIECE = re.compile(r"(?P<wide>\$\.64)|\$(?:\.X(?P<scale>\d+))?(?:\.U32)?|(?P<number>-?0x[0-9a-f]+)|RZ|URZ")
_FOLLOWED = frozenset({"LDG", "STG", "LDS", "STS", "ATOMG", "ATOMS", "REDG"})
_ALIGNMENT = 256
_FIRST = 1 << 24
_HIGH = 0x7F00
"""The upper half of addresses in the dry run."""


class _Watched(NamedTuple):
    offset: int
    """Of the instruction, in its code section."""
    access: Access
    shared: bool
    terms: tuple[tuple[SSAValue, int], ...]
    """Low words of registers, and what each is multiplied with."""
    number: int


def dry_traffic(kernel: KernelOp, arch: str, first_level: int) -> dict[int, Traffic]:
    """By the offset of a memory instruction, what it moves on average, in the block that comes first.

    The facts of `kernel` must have a block and the size of each buffer; without these nothing is known. `first_level`: bytes of L1
    for one block.
    """
    facts = facts_of(kernel)
    sizes = [p.nbytes for p in facts.pointers if p.nbytes is not None]
    if facts.block is None or kernel.fixed is not None or len(sizes) < len(facts.pointers):
        return {}
    starts, words = _buffers(facts, sizes)
    watched = {op: found for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and (found := _watched(op))}
    cache, moves, executions = Cache(first_level), dict[int, Moves](), dict[int, int]()
    lanes = np.arange(math.prod(facts.block), dtype=np.int64)

    def visit(op: SassInstruction, lookup: Lookup, active: Flags, reached: Flags) -> None:
        this = watched[op]
        addresses = _addresses(this, lookup, lanes.size)
        if addresses is None:
            return
        executions[this.offset] = executions.get(this.offset, 0) + int(np.unique((lanes // LANES)[reached]).size)
        found = moves.setdefault(this.offset, Moves())
        if not active.any():
            return
        warps, low = (lanes // LANES)[active], addresses[active]
        if this.shared:
            move_shared(found, this.access, warps, low)
        else:
            move_global(found, cache, this.access, warps, low, starts)

    known = Propagation(kernel, replace(facts, words=(*facts.words, *words)), arch)
    dry_run(kernel, known, facts.block, watched.keys(), visit)
    blocks = math.prod(facts.grid) if facts.grid is not None else 1
    shares = memory_shares(moves.values(), [float(size) for size in sizes], blocks)
    return {offset: found.traffic(executions[offset], shares) for offset, found in moves.items()}


def _buffers(facts: KernelFacts, sizes: Sequence[int]) -> tuple[Numbers, list[tuple[int, int]]]:
    """The low words of the addresses of buffers, and the words of the parameters that hold them."""
    starts: list[int] = []
    words: list[tuple[int, int]] = []
    place = _FIRST
    for pointer, size in zip(facts.pointers, sizes, strict=True):
        starts.append(place)
        words += [(pointer.offset, place & 0xFFFFFFFF), (pointer.offset + 4, _HIGH)]
        place += -(-size // _ALIGNMENT) * _ALIGNMENT
    return np.array(starts or [0], np.int64), words


def _watched(op: SassInstruction) -> _Watched | None:
    if op.MNEMONIC not in _FOLLOWED or op.origin is None:
        return None
    address = next((a for a in arguments(op) if _ADDRESS.fullmatch(a.text)), None)
    terms = _terms(address) if address is not None else None
    if terms is None:
        return None
    found = effects(op)
    access = access_of(op.MNEMONIC, op.modifiers.data.split(".") if op.modifiers is not None else [])
    return _Watched(op.origin.data.offset, access, "shared" in found.loads | found.stores, *terms)


def _terms(address: Argument) -> tuple[tuple[tuple[SSAValue, int], ...], int] | None:
    """The registers of an address with their factors, and the number that is added; None for a form that is not known."""
    match = _ADDRESS.fullmatch(address.text)
    assert match is not None
    values = list(address.values[2 if address.text.startswith("desc") else 0 :])
    terms: list[tuple[SSAValue, int]] = []
    number = 0
    for text in match[1].split("+"):
        piece = _PIECE.fullmatch(text)
        if piece is None or ("$" in text and not values):
            return None
        if piece["number"] is not None:
            number += int(piece["number"], 16)
        elif "$" in text:
            terms.append((values[0], int(piece["scale"] or "1")))
            del values[: 2 if piece["wide"] else 1]
    return tuple(terms), number


def _addresses(this: _Watched, lookup: Lookup, size: int) -> Numbers | None:
    """The low word of the address of each thread."""
    total = np.full(size, this.number, np.int64)
    for value, scale in this.terms:
        found = lookup(value)
        if found is None:
            return None
        total = total + np.broadcast_to(found, (size,)).astype(np.int64) * scale
    return total & 0xFFFFFFFF
