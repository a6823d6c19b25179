"""Put what is known into the text of an instruction: words as immediates, zeros as RZ, predicates as PT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.ir import SSAValue

from sassir.analysis.arguments import Argument, arguments, constants, form_of
from sassir.analysis.ranges import LARGEST, MIRROR
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.registers import UP, UR, P
from sassir.dialect.sample import sample
from sassir.encoders import table
from sassir.encoders.floats import format_float, parse_float
from sassir.rewrite.build import arguments_of, encodable, name_of, rewritten, signed

FLOAT = frozenset({"FADD", "FFMA", "FMNMX", "FMUL", "FSEL", "FSET", "FSETP"})
INTEGER = frozenset(
    {"BMSK", "IADD", "IADD3", "IMAD", "IMNMX", "ISETP", "LEA", "LOP3", "MOV", "PRMT", "SEL", "SGXT", "SHF", "VIADD", "VIADDMNMX", "VIMNMX"}
)
"""The instructions whose sources are 32-bit words, by how an immediate of theirs is written; uniform ones as without U."""

_SIGN = 1 << 31
_IMMEDIATE_SHIFT = 32
"""Where the encoders put a 32-bit immediate (sass-facts: bits 32 to 63 on every architecture)."""

Known = Callable[[SSAValue], "int | None"]
ReadConstant = Callable[[int, int], "int | None"]


def with_known(op: SassInstruction, known: Known, constant: ReadConstant, arch: str) -> SassInstruction:
    """`op` with each operand replaced that is known and that an instruction of `arch` can hold as text; `op` itself if none is.

    `known` gives the word or flag of a value, `constant` the word at a bank and offset. The new operation is not inserted.
    """
    template = op.template.data
    if isinstance(op, SassBranch) or template.visible != len(template.holes):
        return op
    places = constants(*form_of(op)) if "c[" in template.text else ()
    if not any([known(v) is not None for v in op.reads]) and not any([constant(*place) is not None for place in places]):
        return op
    original, changed = op, True
    while changed:
        changed = False
        operands = arguments(op)
        sources = [i for i, a in enumerate(operands) if not a.written]
        for i in sources:
            new = _replace(op, operands, i, sources, known, constant, arch)
            if new is not None:
                if op is not original:
                    op.erase()
                op, changed = new, True
                break
    return op


def _replace(
    op: SassInstruction,
    operands: Sequence[Argument],
    i: int,
    sources: Sequence[int],
    known: Known,
    constant: ReadConstant,
    arch: str,
) -> SassInstruction | None:
    """`op` with operand `i` as text, or None."""
    argument = operands[i]
    place = argument.constant
    words: list[int] = []
    for word in map(known, argument.values) if place is None else (constant(*place),):
        if word is None:
            return None
        words.append(word)
    if not words:
        return None
    if argument.text.startswith("-") and not any(words) and any(isinstance(r.type, P | UP) for r in op.results):
        return None  # a sum with -0 has a carry, one with 0 has none
    for text in _texts(op.MNEMONIC, argument, words):
        for name, shown, order in _exchanges(op, i, sources):
            reads = [v for k in order if k != i for v in operands[k].values]
            new = rewritten(op, name, [text if k == i else shown[n] for n, k in enumerate(order)], reads)
            if _holds(new, text, arch):
                return new
            new.erase()
    return None


def _texts(mnemonic: str, argument: Argument, values: Sequence[int]) -> Iterator[str]:
    """How an operand with these words could be written, best first."""
    operand = argument.operand
    file = argument.values[0].type if argument.values else None
    if isinstance(file, P | UP):
        yield ("" if bool(values[0]) != operand.negated else "!") + ("UPT" if isinstance(file, UP) else "PT")
        return
    if operand.template in ("$", "$.reuse") and not any(values):
        yield "URZ" if isinstance(file, UR) else "RZ"
    if len(values) != 1 or "." in operand.template.replace(".reuse", ""):
        return
    family = mnemonic if mnemonic in FLOAT | INTEGER else mnemonic.removeprefix("U")
    if family in FLOAT:
        word = values[0] & ~_SIGN if operand.absolute else values[0]
        yield format_float("f32", word ^ _SIGN if operand.negated else word)
    elif family in INTEGER and not operand.absolute:
        word = ~values[0] if operand.inverted else -values[0] if operand.negated else values[0]
        yield f"{word & LARGEST:#x}"
        yield signed(word)


def _exchanges(op: SassInstruction, i: int, sources: Sequence[int]) -> Iterator[tuple[str, list[str], list[int]]]:
    """The name, operand texts and order of operands of the instruction as it is, then with operand `i` exchanged for another one."""
    name, texts, order = name_of(op), arguments_of(op), list(range(len(arguments_of(op))))
    yield name, texts, order
    position = sources.index(i)
    family = op.MNEMONIC if op.MNEMONIC in FLOAT | INTEGER else op.MNEMONIC.removeprefix("U")
    for other in _exchangeable(family, op, position):
        j = sources[other]
        moved = [j if k == i else i if k == j else k for k in order]
        shown = [texts[k] for k in moved]
        head, _, rest = name.partition(".")
        compare, _, rest = rest.partition(".")
        if family == "LOP3":
            shown[sources[3]] = _exchanged_table(int(shown[sources[3]], 16), position, other)
        if family not in ("ISETP", "FSETP"):
            yield name, shown, moved
        elif compare in MIRROR and not rest.startswith("EX"):
            yield f"{head}.{MIRROR[compare]}.{rest}", shown, moved


def _exchangeable(family: str, op: SassInstruction, position: int) -> tuple[int, ...]:
    """The source positions that source `position` may change places with."""
    match family:
        case "IADD3" if op.modifiers is None:
            return tuple(k for k in (0, 1, 2) if k != position) if position < 3 else ()
        case "LOP3":
            return tuple(k for k in (0, 1, 2) if k != position) if position < 3 else ()
        case "FADD" | "FFMA" | "FMUL" | "IMAD" | "VIADD" | "FMNMX" | "IMNMX" | "VIMNMX" | "ISETP" | "FSETP":
            return (1 - position,) if position < 2 else ()
        case _:
            return ()


def _exchanged_table(table_bits: int, a: int, b: int) -> str:
    """The truth table of a LOP3 whose sources `a` and `b` are exchanged."""
    exchanged = 0
    for row in range(8):
        bits = [row >> 2 & 1, row >> 1 & 1, row & 1]
        bits[a], bits[b] = bits[b], bits[a]
        exchanged |= (table_bits >> (bits[0] << 2 | bits[1] << 1 | bits[2]) & 1) << row
    return f"{exchanged:#x}"


def _holds(op: SassInstruction, text: str, arch: str) -> bool:
    """Whether `arch` has the instruction, and an immediate `text` comes out as the word that was meant."""
    if not encodable(op, arch):
        return False
    if text[0] in "RUP!":
        return True
    word = table(arch).encode(sample(op.MNEMONIC, op.modifiers.data if op.modifiers is not None else "", op.template))
    meant = int(text, 16) & LARGEST if "0x" in text else parse_float("f32", text)
    return word >> _IMMEDIATE_SHIFT & LARGEST == meant
