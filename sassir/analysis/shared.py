"""Accesses to shared memory, and the sum that each of their addresses is."""

from __future__ import annotations

import re
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from sassir.analysis.arguments import arguments
from sassir.analysis.effects import effects
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp

_PLAIN = frozenset({"ATOMS", "LDS", "STS"})
_ADDRESS = re.compile(r"\[([^][]*)\]")
_TERM = re.compile(r"\$(?:\.X(?P<scale>\d+)|\.reuse)*|RZ|URZ|\+?(?P<number>-?0x[0-9a-f]+)|\+")
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


class SharedAccess(NamedTuple):
    """An LDS, STS or ATOMS."""

    op: SassInstruction
    operand: int
    """Which operand is the address."""
    terms: tuple[tuple[SSAValue, int], ...]
    """Registers, vector or uniform, and what each is multiplied with."""
    offset: int
    """Bytes that are added."""
    width: int
    """Bytes a lane accesses."""


def shared_access(op: Operation) -> SharedAccess | None:
    """The access that `op` makes; None for one of another kind, or with an address that is written in another way."""
    if not isinstance(op, SassInstruction) or op.MNEMONIC not in _PLAIN:
        return None
    operands = arguments(op)
    place = next((i for i, a in enumerate(operands) if _ADDRESS.fullmatch(a.text)), None)
    if place is None:
        return None
    text = operands[place].text[1:-1]
    if _TERM.sub("", text):
        return None
    offset, terms, values = 0, list[tuple[SSAValue, int]](), iter(operands[place].values)
    for match in _TERM.finditer(text):
        if match["number"] is not None:
            offset += int(match["number"], 16)
        elif match[0].startswith("$"):
            terms.append((next(values), int(match["scale"] or "1")))
    modifiers = op.modifiers.data.split(".") if op.modifiers is not None else []
    width = next((_WIDTHS[m] for m in modifiers if m in _WIDTHS), 4)
    return SharedAccess(op, place, tuple(terms), offset, width)


def all_shared_accesses(kernel: KernelOp) -> list[SharedAccess] | None:
    """Every access that `kernel` makes to shared memory. None if it may make others.

    Others are those through generic addresses, by asynchronous copies and matrix instructions, on barrier objects, to the
    shared memory of other blocks, by functions outside of the code section, and whatever is not known.
    """
    found: list[SharedAccess] = []
    for block in kernel.body.blocks:
        for op in block.ops:
            does = effects(op)
            if isinstance(op, SassBranch) and op.produces:
                return None
            if "shared" not in does.loads | does.stores or _never_runs(op):
                continue
            access = shared_access(op)
            if access is None:
                return None
            found.append(access)
    return found


def _never_runs(op: Operation) -> bool:
    """`@!PT LDS RZ, [RZ]`, which ptxas puts before asynchronous copies."""
    return isinstance(op, SassInstruction) and op.constant_guard is not None and op.constant_guard.data.startswith("!")
