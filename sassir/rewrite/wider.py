"""One wide access in place of several: what was loaded is taken out of its words, what is stored is put into them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from sassir.analysis.adjacent import Merger, Part
from sassir.analysis.arguments import arguments
from sassir.dialect.instruction import SassInstruction
from sassir.rewrite.build import encodable, instruction
from sassir.rewrite.simplify import replace

_WORD = 4
_ZEROS = 4
"""In a selector of PRMT: the first byte of its third operand, here RZ."""
_SIGN = 8
"""In a selector of PRMT: the sign of the byte, eight times."""
_JOINED = {1: 0x40, 2: 0x5410}
"""Selectors of PRMT that put the lowest byte, or half, of the second value behind that of the first."""


def merge(merger: Merger, arch: str) -> bool:
    """Make one access of several. Returns whether `arch` has it."""
    return _merge_loads(merger, arch) if merger.parts[0].loads else _merge_stores(merger, arch)


def _hole(access: str, width: int) -> str:
    words = max(width // _WORD, 1)
    return f"{access}R{words if words > 1 else ''}"


def _merge_loads(merger: Merger, arch: str) -> bool:
    first = merger.parts[0]
    shape, block = first.shape, first.op.parent
    assert block is not None
    kept = [_kept(merger, word) for word in range(max(merger.width // _WORD, 1))] if shape.guard is not None else []
    text = f"{shape.name(merger.width)} {_hole('=', merger.width)}, {shape.address.text(merger.begin)}"
    new = instruction(text, shape.address.values, shape.guard, shape.unless, kept)
    if not encodable(new, arch):
        new.erase()
        return False
    block.insert_op_before(new, first.op)
    for part in merger.parts:
        offset = part.begin - merger.begin
        words = list(new.results)[offset // _WORD :][: max(part.width // _WORD, 1)]
        if part.width < _WORD and not (merger.width == part.width and not part.signed):
            words = [_extract(part, words[0], offset % _WORD)]
        replace(part.op, words)
    return True


def _kept(merger: Merger, word: int) -> SSAValue:
    """What a word of a guarded load keeps: what a part of that word kept."""
    at = merger.begin + _WORD * word
    part = next(p for p in merger.parts if p.begin <= at < p.end)
    return part.op.kept[(at - part.begin) // _WORD]


def _extract(part: Part, word: SSAValue, byte: int) -> SSAValue:
    """Bytes of a loaded word as their own load gives them, taken out where they are first used."""
    last = byte + part.width - 1
    upper = last | _SIGN if part.signed else _ZEROS
    chosen = [byte + i if i < part.width else upper for i in range(_WORD)]
    selector = sum([which << 4 * i for i, which in enumerate(chosen)])
    new = instruction(f"PRMT =R, $R, {selector:#x}, RZ", [word], part.op.guard, part.op.unless is not None, part.op.kept)
    block = part.op.parent
    assert block is not None
    block.insert_op_before(new, _first_use(part.op))
    return new.results[0]


def _first_use(op: SassInstruction) -> Operation:
    """The first operation of its block that uses what `op` makes, else the last one."""
    users = {use.operation for result in op.results for use in result.uses}
    current = op.next_op
    while current is not None and current.next_op is not None and current not in users:
        current = current.next_op
    assert current is not None
    return current


def _merge_stores(merger: Merger, arch: str) -> bool:
    last = merger.parts[-1]
    shape, block = last.shape, last.op.parent
    assert block is not None
    pieces = {part.begin - merger.begin + _WORD * i: value for part in merger.parts for i, value in enumerate(_stored(part))}
    widths = {part.begin - merger.begin: part.width for part in merger.parts}
    made: list[SassInstruction] = []
    words = [_word(pieces, widths, at, min(merger.width, _WORD), made) for at in range(0, merger.width, _WORD)]
    reads: list[SSAValue] = []
    if any(word is not None for word in words):
        for word in words:
            if word is None:
                made.append(instruction("MOV =R, RZ"))
            reads.append(made[-1].results[0] if word is None else word)
    data = _hole("$", merger.width) if reads else "RZ"
    text = f"{shape.name(merger.width)} {shape.address.text(merger.begin)}, {data}"
    new = instruction(text, [*shape.address.values, *reads], shape.guard, shape.unless)
    if not encodable(new, arch):
        for op in (new, *reversed(made)):
            op.erase()
        return False
    block.insert_ops_before([*made, new], last.op)
    for part in merger.parts:
        replace(part.op, [])
    return True


def _stored(part: Part) -> Sequence[SSAValue | None]:
    """What is stored, a value a word; None for zeros."""
    return arguments(part.op)[-1].values or (None,) * max(part.width // _WORD, 1)


def _word(pieces: dict[int, SSAValue | None], widths: dict[int, int], at: int, width: int, made: list[SassInstruction]) -> SSAValue | None:
    """The value whose lowest `width` bytes are those stored from `at` on; what has to be computed for it is added to `made`."""
    if at in pieces and widths.get(at, _WORD) >= width:
        return pieces[at]
    half = width // 2
    low, high = _word(pieces, widths, at, half, made), _word(pieces, widths, at + half, half, made)
    if low is None and high is None:
        return None
    shown = ["RZ" if value is None else "$R" for value in (low, high)]
    made.append(instruction(f"PRMT =R, {shown[0]}, {_JOINED[half]:#x}, {shown[1]}", [v for v in (low, high) if v is not None]))
    return made[-1].results[0]
