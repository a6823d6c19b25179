"""Bank conflicts in shared memory, from what a dry run tells of the addresses.

Shared memory has 32 banks of 4-byte words: word i lies in bank i modulo 32. In one wavefront each bank gives one word, to as
many lanes as want it. Lanes with 8 bytes each are served half a warp at a time, with 16 bytes a quarter (CUDA C++ Programming
Guide, Shared Memory; the counts are what Nsight Compute calls shared wavefronts, without conflicts between warps).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sassir.analysis.dry_run import Lookup, dry_run
from sassir.analysis.propagation import Propagation
from sassir.analysis.shared import SharedAccess
from sassir.dialect.facts import Dim3
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.isa.semantics.evaluator import Flags, Words

BANKS, WORD, WARP = 32, 4, 32
LINE = BANKS * WORD
"""Bytes that lie in different banks, or in the same word."""

_MOST_WARPS = 8
"""Warps of a block that are looked at."""
_Lane = TypeVar("_Lane", np.uint32, np.bool_)


class Seen(NamedTuple):
    """What one access did in a dry run: a row for every time a warp ran it."""

    access: SharedAccess
    addresses: Words
    """Rows of 32 lanes."""
    active: Flags
    """The lanes that took part."""


def wavefronts(addresses: Words, active: Flags, width: int) -> int:
    """The wavefronts of accesses of `width` bytes a lane, all rows together. `addresses` and `active` have rows of 32 lanes."""
    words = max(1, width // WORD)
    rows = np.ascontiguousarray(addresses).reshape(-1, WARP // words, 1).astype(np.int64) // WORD + np.arange(words)
    use = np.broadcast_to(np.ascontiguousarray(active).reshape(-1, WARP // words, 1), rows.shape)
    row = np.broadcast_to(np.arange(len(rows))[:, None, None], rows.shape)[use]
    wanted: NDArray[np.int64] = np.unique(row << 32 | rows[use])
    turns = np.bincount((wanted >> 32) * BANKS + wanted % BANKS, minlength=len(rows) * BANKS)
    return int(turns.reshape(-1, BANKS).max(axis=1, initial=0).sum())


def look(kernel: KernelOp, known: Propagation, threads: Dim3, accesses: Sequence[SharedAccess]) -> list[Seen]:
    """What a block of `threads` does at those of the `accesses` whose addresses follow from its shape. One that never runs is left out."""
    by_op = {access.op: access for access in accesses}
    rows: dict[SassInstruction, list[tuple[Words, Flags]]] = {}

    def visit(op: SassInstruction, lookup: Lookup, active: Flags, reached: Flags) -> None:
        found = _address(by_op[op], lookup)
        if found is not None and active.any():
            rows.setdefault(op, []).append((_rows(np.broadcast_to(found, active.shape)), _rows(active)))

    dry_run(kernel, known, threads, by_op.keys(), visit)
    return [Seen(by_op[op], np.concatenate([a for a, _ in found]), np.concatenate([a for _, a in found])) for op, found in rows.items()]


def total_wavefronts(seen: Sequence[Seen], moved: Callable[[Words], Words] = lambda addresses: addresses) -> int:
    """The wavefronts of all of them, with the addresses that `moved` makes of theirs."""
    return sum(wavefronts(moved(s.addresses), s.active, s.access.width) for s in seen)


def least_wavefronts(seen: Sequence[Seen]) -> int:
    """How many they would be without conflicts, if every lane had words of its own."""
    groups = [s.active.reshape(-1, WARP // max(1, s.access.width // WORD)) for s in seen]
    return sum(int(group.any(axis=1).sum()) for group in groups)


def executions(seen: Sequence[Seen]) -> int:
    """How often warps ran these accesses."""
    return sum(int(s.active.any(axis=1).sum()) for s in seen)


def _address(access: SharedAccess, lookup: Lookup) -> Words | None:
    total = np.array([access.offset & 0xFFFFFFFF], np.uint32)
    for value, scale in access.terms:
        found = lookup(value)
        if found is None:
            return None
        total = total + found.astype(np.uint32) * np.uint32(scale)
    return total


def _rows(lanes: NDArray[_Lane]) -> NDArray[_Lane]:
    """One row a warp, of some warps; lanes that the last one lacks are 0."""
    rows = np.pad(lanes, (0, -len(lanes) % WARP)).reshape(-1, WARP)
    return rows[:: -(-len(rows) // _MOST_WARPS)]
