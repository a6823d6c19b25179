"""Blocks of a function and the edges between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from sassir.analysis.cfg import Cfg
from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.operand import ZERO_REGISTERS
from sassir.asm.program import Function
from sassir.dialect.registers import NUMBER
from sassir.errors import TranslationError
from sassir.translate.branches import Branches, JumpTables
from sassir.translate.shape import Shape, bits


class Flow(NamedTuple):
    """Blocks are numbered in layout order. An empty one is put before the first if that is a target, and behind the last
    if control or a label can get there."""

    blocks: list[range]
    """The lines of each block."""
    successors: list[list[int]]
    """By block, in the order of the operation's successors."""
    calling: set[int]
    """The blocks whose successors are entered when code of another section comes back."""
    named: dict[int, int]
    """The lines whose operand names a place by a label, and its offset."""
    private: dict[int, str]
    """Labels made for such places, by offset, where the function has none."""
    shapes: list[Shape]
    """By line."""
    linked: dict[int, str]
    """What the linker or the driver fills into a line."""
    problem: str | None
    """Why the function may not be changed; None if everything about it is known."""


def find_flow(function: Function, tables: JumpTables) -> Flow:
    """The flow of `function`. What is not known is named in `problem`, never guessed.

    Raises TranslationError for a label that is not on an instruction.
    """
    for name, offset in function.labels.items():
        if offset % INSTRUCTION_BYTES or not 0 <= offset <= function.size:
            raise TranslationError(f"{function.name}: label {name} is at {offset:#x}; expected a multiple of 16 up to {function.size:#x}")
    found = Branches(function, tables)
    named = {i: place for i, place in found.places.items() if not found.goes_to_place(i)}
    entered = {t for e in found.exits.values() for t in e.targets}
    blocks = _blocks(function, found, entered | {*named.values(), *function.labels.values()}, 0 in entered)
    number = {block.start: n for n, block in enumerate(blocks)}
    successors: list[list[int]] = []
    calling: set[int] = set()
    for n, block in enumerate(blocks):
        exit = found.exits.get(block[-1]) if block else None
        if exit is None:
            successors.append([n + 1] if n + 1 < len(blocks) else [])
            continue
        successors.append([number[t // INSTRUCTION_BYTES] for t in exit.targets])
        if exit.returns:
            calling.add(n)
    problem = found.problems[min(found.problems)] if found.problems else None
    return Flow(blocks, successors, calling, named, _private_labels(function, named.values()), found.shapes, found.linked, problem)


def graph_of(flow: Flow) -> Cfg:
    """The graph of the blocks. Those that are entered when code of another section comes back are roots."""
    forwarding = [[] if b in flow.calling else out for b, out in enumerate(flow.successors)]
    return Cfg(forwarding, [0, *[s for b in flow.calling for s in flow.successors[b]]])


def reads_and_writes(function: Function, flow: Flow, held: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """For each block, the registers (as bits) that it reads before it writes them, and those that it writes.

    A guarded instruction also reads what it may leave as it is; `held`: what lines need besides their operands.
    """
    reads: list[int] = []
    writes: list[int] = []
    for block in flow.blocks:
        read = written = 0
        for i in block:
            found = flow.shapes[i]
            needed = found.read_set | held.get(i, 0)
            guard = function.lines[i].instruction.guard
            if guard is not None:
                needed |= found.write_set | bits([NUMBER[n] for n in guard.registers if n not in ZERO_REGISTERS])
            read |= needed & ~written
            written |= found.write_set
        reads.append(read)
        writes.append(written)
    return reads, writes


def _blocks(function: Function, found: Branches, leaders: set[int], entry_is_target: bool) -> list[range]:
    count = len(function.lines)
    starts = {0, *[offset // INSTRUCTION_BYTES for offset in leaders], *[i + 1 for i in found.exits]} - {count}
    bounds = [0] * entry_is_target + sorted(starts) + [count] * (function.size in leaders) + [count]
    return [range(a, b) for a, b in pairwise(bounds)] or [range(0)]


def _private_labels(function: Function, places: Iterable[int]) -> dict[int, str]:
    """A label for each place that has none; the function's own labels keep their names."""
    known = {*function.labels.values()}
    prefix = "x"
    while any(label.startswith(prefix) for label in function.labels):
        prefix += "x"
    return {place: f"{prefix}{place:x}" for place in places if place not in known}
