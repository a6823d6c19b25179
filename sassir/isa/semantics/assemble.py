"""From an instruction to its evaluator: the row of the table, its operands as sources, its results as registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.asm.operand import HOLE, ZERO_REGISTERS, Operand, register_file
from sassir.errors import SemanticsError
from sassir.isa.roles import Roles, roles
from sassir.isa.semantics import bits
from sassir.isa.semantics.definition import Definition, Form, definition
from sassir.isa.semantics.evaluator import Evaluator, Register, Source
from sassir.isa.semantics.operands import WORDS, Parts, Read, UnreadableError, reader, take_apart


@cache
def evaluator(instruction: Instruction, arch: str) -> Evaluator:
    """The meaning of an instruction without control code and word. Raises SemanticsError naming it where that is not modelled."""
    found = roles(instruction)
    if found is None or instruction.extra:
        raise SemanticsError(f"`{instruction.text}` on {arch}: not modelled")
    count = _destinations(instruction, found)
    destinations, operands = instruction.operands[:count], instruction.operands[count:]
    row, destinations = _choose(instruction, destinations)
    if row is None:
        raise SemanticsError(f"`{instruction.text}` on {arch}: not modelled")
    if unknown := set(instruction.modifiers) - row.modifiers:
        raise SemanticsError(f"`{instruction.text}` on {arch}: the modifier .{unknown.pop()} is not modelled")
    widths = {access.operand: access.width for access in (*found.writes, *found.reads)}
    writes = row.written([_kind(o) for o in destinations]) or ()
    try:
        sources, reads, immediates = _read(operands, row, [widths.get(count + i, 1) for i in range(len(operands))], found.implicit_reads)
        function = row.build(Form(instruction, arch, writes, count, immediates))
    except UnreadableError as error:
        raise SemanticsError(f"`{instruction.text}` on {arch}: {error}") from error
    names = [_names(o, t, found, widths.get(i, 1)) for i, (o, t) in enumerate(zip(destinations, writes, strict=True))]
    results = tuple([n for group in names for n in group])
    live = [bool(group) for group in names]
    return Evaluator(sources, results, _evaluate(function, reads, writes, live, row.warp), row.warp)


def _destinations(instruction: Instruction, found: Roles) -> int:
    """How many operands, all in front, are written."""
    written = {access.operand for access in found.writes}
    count = next((i for i in range(len(instruction.operands)) if i not in written), len(instruction.operands))
    return 1 if not count and found.implicit_writes else count


def _choose(instruction: Instruction, destinations: tuple[Operand, ...]) -> tuple[Definition | None, tuple[Operand, ...]]:
    """The row for the instruction, and the destinations that it has: predicates PT at the end are left out where a row allows it."""
    for count in range(1, len(destinations) + 1):
        kept, dropped = destinations[:count], destinations[count:]
        row = definition(instruction, [_kind(o) for o in kept])
        if row is not None and all(o.template == HOLE and o.registers[0] in ("PT", "UPT") for o in dropped):
            return row, kept
    return None, destinations


def _kind(operand: Operand) -> str:
    """`p`, `pr` or `r`: what a destination is."""
    if not operand.registers:
        return "pr"
    return "p" if register_file(operand.registers[0]) in ("P", "UP") else "r"


def _names(operand: Operand, kind: str, found: Roles, width: int) -> list[str]:
    """The registers that a destination stands for; none for a zero register."""
    if kind == "pr":
        return list(found.implicit_writes)
    name = operand.registers[0]
    if name in ZERO_REGISTERS:
        return []
    file, number = register_file(name), int(name.lstrip("URP"))
    return [f"{file}{number + i}" for i in range(width if kind == "fragment" else WORDS.get(kind, 1))]


def _read(
    operands: Sequence[Operand], row: Definition, widths: Sequence[int], implicit: Sequence[str]
) -> tuple[tuple[Source, ...], list[Read], tuple[int, ...]]:
    """Sources, how to read each value, and the immediates that go to the builder. Raises UnreadableError."""
    sources: list[Source] = []
    reads: list[Read] = []
    immediates: list[int] = []
    left = list(zip(operands, widths, strict=True))
    for word in row.reads:
        kind = word.rstrip("?")
        if not left:
            if not word.endswith("?"):
                raise UnreadableError(f"expected {len(row.reads)} operands to read")
            break
        operand, width = left.pop(0)
        if kind == "imm":
            if operand.integer is None:
                raise UnreadableError(f"the operand {operand} is not an integer")
            immediates.append(operand.integer)
            continue
        if kind == "pr":
            parts = Parts("", False, "", [Register(name) for name in implicit])
        else:
            parts = take_apart(operand, kind, width if kind == "fragment" else WORDS.get(kind, 1))
        if kind in ("h2", "b2") and not operand.registers and operand.constant is None:
            parts = _two_halves(parts, take_apart(left.pop(0)[0], kind, 1))
        reads.append(reader(parts, kind, sources))
    if left:
        raise UnreadableError(f"the operand {left[0][0]} was not expected")
    return tuple(sources), reads, tuple(immediates)


def _two_halves(high: Parts, low: Parts) -> Parts:
    """A packed immediate is written as two operands, the high half first."""
    return low._replace(words=[bits.pack(low.words[0], high.words[0])])


_STORES: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "f32": lambda x: (x.view(bits.U32),),
    "f64": lambda x: bits.split(x.view(bits.U64)),
    "u64": bits.split,
    "pr": tuple,
    "fragment": tuple,
}


def _one(x: Any) -> tuple[Any, ...]:
    return (x,)


def _evaluate(
    function: Callable[..., Any], reads: Sequence[Read], writes: Sequence[str], live: Sequence[bool], warp: bool
) -> Callable[..., tuple[Any, ...]]:
    """The function over the arrays of the sources."""
    stores = [_STORES.get(kind, _one) for kind in writes]
    several = len(writes) != 1
    whole = stores[0] if len(stores) == 1 and live[0] else None

    def results(out: Any) -> tuple[Any, ...]:
        if whole is not None:
            return whole(out)
        outs = out if several else (out,)
        return tuple([x for o, store, alive in zip(outs, stores, live, strict=True) if alive for x in store(o)])

    if warp:

        @np.errstate(all="ignore")
        def collective(active: Any, *arrays: Any) -> tuple[Any, ...]:
            return results(function(active, *[read(arrays) for read in reads]))

        return collective

    @np.errstate(all="ignore")
    def lanewise(*arrays: Any) -> tuple[Any, ...]:
        return results(function(*[read(arrays) for read in reads]))

    return lanewise
