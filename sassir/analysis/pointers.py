"""Which pointer parameter an address is made from, so that accesses to different buffers can be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, Region, SSAValue

from sassir.analysis.arguments import constants, form_of, lowest_reads
from sassir.dialect import internals
from sassir.dialect.edges import forwarded
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import NextOp

_FOLLOWED = frozenset(
    [f"{u}{name}" for name in ("IADD", "IADD3", "IMAD", "LDC", "LDCU", "LEA", "MOV", "R2UR", "SEL", "VIADD") for u in ("", "U")]
)
"""Through which an address goes on to be one of the same buffer; a uniform instruction is as the one without U."""


def pointers_of(region: Region, facts: KernelFacts) -> Mapping[SSAValue, int]:
    """For each value that is computed from one pointer parameter alone, by low words, where that lies in constant bank 0.

    Sums, products with scales, selections and copies are followed; what is loaded counts as an index. Nothing without the fact
    `noalias`. Time is linear in the uses of values that are computed from pointers.
    """
    offsets = [pointer.offset for pointer in facts.pointers] if facts.noalias else []
    found: dict[SSAValue, int] = {}
    """A bit for each of `offsets`."""
    work: dict[SSAValue, None] = {}
    """A set in order: the one that waits longest goes on first, by then with most of the pointers that it will have."""
    for block in region.blocks if offsets else ():
        for op in internals.operations(block):
            for i in _pointers_read(op, offsets):
                _add(found, op.results, 1 << i, work)
    taken: dict[Operation, list[SSAValue]] = {}
    """By terminator: the arguments that take what it passes on, in the order of its last operands."""
    made: dict[SSAValue, list[SSAValue]] = {}
    while work:
        value = next(iter(work))
        del work[value]
        if value not in made:
            made[value] = _made_from(value, taken)
        _add(found, made[value], found[value], work)
    return {value: offsets[bits.bit_length() - 1] for value, bits in found.items() if bits.bit_count() == 1}


def _made_from(value: SSAValue, taken: dict[Operation, list[SSAValue]]) -> list[SSAValue]:
    """The values that are addresses of the same buffer as `value`, one step on. What terminators do is kept in `taken`."""
    made: list[SSAValue] = []
    for user, index in internals.uses(value):
        if isinstance(user, SassInstruction) and user.MNEMONIC in _FOLLOWED:
            made += user.results if _is_lower_word(user, index) else ()
        elif isinstance(user, SassBranch | NextOp):
            behind = taken[user] if user in taken else taken.setdefault(user, _taken(user))
            i = index - len(internals.operands(user)) + len(behind)
            made += behind[i : i + 1] if i >= 0 else ()
    return made


def _add(found: dict[SSAValue, int], values: Sequence[SSAValue], bits: int, changed: dict[SSAValue, None]) -> None:
    for value in values:
        before = found.get(value, 0)
        if before | bits != before:
            found[value] = before | bits
            changed[value] = None


def _pointers_read(op: Operation, offsets: Sequence[int]) -> list[int]:
    """Which of the pointers at these offsets `op` takes from constant memory, by position."""
    if not isinstance(op, SassInstruction) or op.MNEMONIC not in _FOLLOWED:
        return []
    return [offsets.index(offset) for bank, offset in constants(*form_of(op)) if bank == 0 and offset in offsets]


def _is_lower_word(op: SassInstruction, index: int) -> bool:
    """Operand `index` may be the lower word of an address that `op` reads, or is kept under its guard."""
    kept = op.kept
    return index in lowest_reads(*form_of(op)) or index >= len(internals.operands(op)) - len(kept)


def _taken(terminator: SassBranch | NextOp) -> list[SSAValue]:
    passed = zip(internals.successors(terminator), forwarded(terminator), strict=True)
    return [argument for block, values in passed if values for argument in block.args]
