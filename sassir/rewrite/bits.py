"""Values whose bits are those of another value, however they were taken apart and put together again."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sassir.analysis.bit_words import Word
from sassir.analysis.bits import Bits
from sassir.analysis.effects import effects
from sassir.analysis.ranges import WORD_BITS
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import UR, R
from sassir.rewrite.build import instruction
from sassir.rewrite.simplify import replace

_BYTE = 8
_SIGN = 8
"""In a selector of PRMT: the sign of the byte, eight times, in place of the byte."""
_BYTES = 4


def simplify_bits(kernel: KernelOp, bits: Bits) -> set[str] | None:
    """Use a value in place of its copies, and one PRMT in place of several operations that put bytes together.

    Returns the facts that this rests on, beyond those that ranges do; None if nothing changed. What nothing uses any more
    stays: it is dead code.
    """
    used: set[str] | None = None
    for block in kernel.body.blocks:
        for op in internals.operations(block):
            if not isinstance(op, SassInstruction) or isinstance(op, SassBranch) or not _is_free(op):
                continue
            (result,) = op.results
            word = bits.word(result)
            source = copied_word(bits, word)
            if source is result:
                continue
            if source is not None and source.type == result.type:
                new = [source]
            elif (permutation := _permutation(op, bits, word)) is not None:
                block.insert_op_before(permutation, op)
                new = permutation.results
            else:
                continue
            used = (used or set[str]()) | bits.facts(result)
            replace(op, new)
    return used


def _is_free(op: SassInstruction) -> bool:
    """It makes one word and does nothing else."""
    if len(op.results) != 1 or op.guard is not None or op.place is not None or op.link is not None or not effects(op).pure:
        return False
    file = op.results[0].type
    return isinstance(file, R | UR) and file.number is None


def copied_word(bits: Bits, word: Word) -> SSAValue | None:
    """The value of which `word` is a copy, if it is one."""
    source = bits.source(word[0])
    whole = source is not None and source[1] == 0 and [*word] == [*range(word[0], word[0] + WORD_BITS)]
    return source[0] if source is not None and whole else None


def _permutation(op: SassInstruction, bits: Bits, word: Word) -> SassInstruction | None:
    """The PRMT for a word whose bytes are those of at most two values, if that spares an operation in between."""
    found = [_byte(bits, word[i : i + _BYTE]) for i in range(0, WORD_BITS, _BYTE)]
    sources: list[SSAValue] = []
    for byte in found:
        if byte is None:
            return None
        if byte[0] is not None and byte[0] not in sources:
            sources.append(byte[0])
    zeros = any([byte is not None and byte[0] is None for byte in found])
    if not sources or op.results[0] in sources or len(sources) + zeros > 2:
        return None
    if not all([isinstance(v.type, R) for v in (*sources, *op.results)]):
        return None
    between = [v for v in internals.operands(op) if v not in sources]
    if not any([len([*v.uses]) == 1 for v in between]):
        return None
    selector = sum([_selected(byte, sources) << 4 * i for i, byte in enumerate(found) if byte is not None])
    return instruction(f"PRMT =R, $R, {selector:#x}, {'$R' if len(sources) > 1 else 'RZ'}", sources)


def _selected(byte: tuple[SSAValue | None, int], sources: Sequence[SSAValue]) -> int:
    value, which = byte
    return _BYTES if value is None else which + _BYTES * sources.index(value)


def _byte(bits: Bits, eight: Word) -> tuple[SSAValue | None, int] | None:
    """The value that eight bits are a byte of, and which, or the sign of which; no value for zeros. None if it is nothing of these."""
    if not any(eight):
        return None, 0
    source = bits.source(eight[0])
    if source is None:
        return None
    value, start = source
    if start % _BYTE == 0 and [*eight] == [*range(eight[0], eight[0] + _BYTE)]:
        return value, start // _BYTE
    if start % _BYTE == _BYTE - 1 and {*eight} == {eight[0]}:
        return value, start // _BYTE | _SIGN
    return None
