"""All forms of one architecture: words to instructions and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from sassir.asm.control import Control, decode_control, encode_control
from sassir.asm.instruction import OPAQUE, Instruction
from sassir.asm.operand import Operand
from sassir.encoders.aliases import ALIASED, add_alias, drop_alias
from sassir.encoders.compiled import ABSENT, FOREIGN, Bits, Component
from sassir.encoders.form import Form, gather, opcode_of, scatter
from sassir.encoders.notation import parse_form, runs
from sassir.errors import EncodingError

_CONTROL_AT = 105
_CONTROL = (1 << 20) - 1
_REUSE = 7 << 122
_NO_YIELD = 1 << 109
_ILLEGAL_SCHEDULES = frozenset({16, 28, 29, 30, 31})
"""Stall and yield bits that no hardware of sm_75 to sm_121 knows."""
_GUARD_BITS = (15, 14, 13, 12)
_TRUE = 7
_SPELLED = (1 << 105) - 1 | _REUSE
"""Word bits that name and operands can decide."""
SPELLING = "spelling"
"""The hidden field that says which reading of an ambiguous text is meant: 0, the usual one, is not written."""


class CompiledForm:
    """One form ready for use."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.name, *operands = [Component(form, parts) for parts in form.components]
        self.operands = tuple(operands)
        self.optional = tuple(c.encode("", "") for c in operands)
        self.optional_mask = self.name.mask if any(self.optional) else 0
        for component, hidden in zip(operands, self.optional, strict=True):
            self.optional_mask |= component.mask if hidden else 0
        self.spellings: dict[int, int] = {}
        self.fixed_mask, self.fixed_value = form.fixed_mask, form.fixed_value
        self.constant = form.opcode & 0xFFF | (form.opcode >> 12) << 91 | self.fixed_value
        shown = self.name.mask
        for component in operands:
            shown |= component.mask
        hidden = tuple(b for b in (127, 126, 125, 124, 123, 122) if not shown >> b & 1) + form.inert
        self.default = form.default
        if form.guard is None:
            hidden += _GUARD_BITS
            self.default |= _TRUE << 12
        self.hidden_mask = sum(1 << b for b in hidden)
        self.hidden = {f"b{run[-1]}": run for run in runs(hidden)}
        self.names: dict[int, tuple[str, tuple[str, ...]] | None] = {}
        self.extras: dict[int, tuple[tuple[str, int], ...]] = {self.default: ()}

    def decode(self, word: int, control: Control, original: int) -> Instruction | None:
        """The instruction; None when the word is not of this form."""
        key = word & self.name.mask
        name = self.names.get(key)
        if name is None:
            if key in self.names or (name := self._name(key)) is None:
                self.names[key] = None
                return None
            self.names[key] = name
        operands: list[Operand] = []
        for component in self.operands:
            operand = component.operands.get(word & component.mask) or component.operand(word)
            if operand is FOREIGN:
                return None
            if operand is not ABSENT:
                operands.append(operand)
        mnemonic, modifiers = name
        if mnemonic == ALIASED:
            modifiers = add_alias(modifiers, tuple(operands))
        key = word & self.hidden_mask
        extra = self.extras.get(key)
        if extra is None:
            extra = self.extras[key] = self._extra(key)
        guard = None
        if word & 0xF000 != 0x7000 and self.form.guard is not None:
            guard = decode_guard(self.form.guard, word >> 12 & 15)
        return Instruction(mnemonic, modifiers, tuple(operands), guard, control, extra, original)

    def _name(self, word: int) -> tuple[str, tuple[str, ...]] | None:
        text = self.name.text(word)
        if text is None:
            return None
        mnemonic, *modifiers = text.split(".")
        return mnemonic, tuple(modifiers)

    def _extra(self, word: int) -> tuple[tuple[str, int], ...]:
        return tuple((name, gather(word, run)) for name, run in self.hidden.items() if gather(word ^ self.default, run))

    def encode(self, name: str, operands: tuple[Operand, ...]) -> Iterator[int]:
        """Word bits that name and operands decide, with the form's own: once for each way to see hidden operands between them."""
        head = self.name.encode(name, name)
        if head:
            for spelling in self._align(operands, 0, 0):
                word = _combine((head, *spelling))
                if word is not None:
                    yield word | self.constant

    def _align(self, operands: tuple[Operand, ...], at: int, used: int) -> Iterator[tuple[tuple[Bits, ...], ...]]:
        """For each way to lay the operands over the components, an earlier operand first, the spellings of each."""
        if at == len(self.operands):
            if used == len(operands):
                yield ()
            return
        if used < len(operands):
            operand = operands[used]
            found = self.operands[at].encode(operand, operand.text)
            if found:
                for rest in self._align(operands, at + 1, used + 1):
                    yield (found, *rest)
        if self.optional[at]:
            for rest in self._align(operands, at + 1, used):
                yield (self.optional[at], *rest)


def _combine(spellings: tuple[tuple[Bits, ...], ...], at: int = 0, bits: int = 0, mask: int = 0) -> int | None:
    """The first choice of one spelling each that agree on the bits they share."""
    for i in range(at, len(spellings)):
        ways = spellings[i]
        if len(ways) == 1:
            value, decides = ways[0]
            if (bits ^ value) & mask & decides:
                return None
            bits |= value
            mask |= decides
            continue
        for value, decides in ways:
            if not (bits ^ value) & mask & decides:
                word = _combine(spellings, i + 1, bits | value, mask | decides)
                if word is not None:
                    return word
        return None
    return bits


def decode_guard(file: str, bits: int) -> Operand:
    """`bits` is predicate number and, as the highest bit, negation."""
    index = bits & 7
    return Operand.of("!$" if bits & 8 else "$", (file + ("T" if index == _TRUE else str(index)),))


class Table:
    """Encoder and decoder of one architecture."""

    def __init__(self, arch: str, blocks: Mapping[str, str]) -> None:
        """`blocks` are the forms in table notation by identifier `MNEMONIC.opcode.n`; each is compiled when first needed."""
        self.arch, self.blocks = arch, blocks
        self._opcodes: dict[int, list[str]] = {}
        self._mnemonics: dict[str, list[str]] = {}
        for identifier in blocks:
            mnemonic, opcode, _ = identifier.split(".")
            self._opcodes.setdefault(int(opcode, 16), []).append(identifier)
            self._mnemonics.setdefault(mnemonic, []).append(identifier)
        self._compiled: dict[str, CompiledForm] = {}
        self._by_opcode: dict[int, tuple[tuple[int, int, CompiledForm], ...]] = {}
        self._by_mnemonic: dict[str, tuple[CompiledForm, ...]] = {}

    @property
    def mnemonics(self) -> tuple[str, ...]:
        """All mnemonics, alphabetically."""
        return tuple(sorted(self._mnemonics))

    def form(self, identifier: str) -> CompiledForm:
        """A form of the table."""
        compiled = self._compiled.get(identifier)
        if compiled is None:
            compiled = self._compiled[identifier] = CompiledForm(parse_form(self.blocks[identifier]))
        return compiled

    def _decoders(self, opcode: int) -> tuple[tuple[int, int, CompiledForm], ...]:
        """Forms of an opcode, those that require the most bits first."""
        forms = sorted((self.form(i) for i in self._opcodes.get(opcode, ())), key=lambda f: -len(f.form.fixed))
        found = self._by_opcode[opcode] = tuple((f.fixed_mask, f.fixed_value, f) for f in forms)
        return found

    def _encoders(self, mnemonic: str) -> tuple[CompiledForm, ...]:
        """Forms of a mnemonic, in the order of the table."""
        found = self._by_mnemonic[mnemonic] = tuple(self.form(i) for i in self._mnemonics.get(mnemonic, ()))
        return found

    def identify(self, word: int) -> str | None:
        """The identifier of the form that describes a word; None when no form does."""
        identifiers = self._opcodes.get(opcode_of(word), ())
        for identifier in sorted(identifiers, key=lambda i: -len(self.form(i).form.fixed)):
            form = self.form(identifier)
            if word & form.fixed_mask == form.fixed_value and form.decode(word, Control(), word):
                return identifier
        return None

    def decode(self, word: int) -> Instruction:
        """The instruction of a 128-bit word; OPAQUE when no form of the table describes it."""
        opcode = word & 0xFFF | word >> 79 & 0x1000
        forms = self._by_opcode.get(opcode)
        if forms is None:
            forms = self._decoders(opcode)
        if word >> _CONTROL_AT & 31 not in _ILLEGAL_SCHEDULES:
            control = decode_control(word >> _CONTROL_AT & _CONTROL)
            code = word if word & _NO_YIELD else word & ~_REUSE
            for mask, value, form in forms:
                if code & mask == value:
                    instruction = form.decode(code, control, word)
                    if instruction is not None:
                        checked = form.optional_mask or form.form.ambiguous
                        return self._with_spelling(instruction, form, code) if checked else instruction
        return opaque(word)

    def encode(self, instruction: Instruction) -> int:
        """The 128-bit word, made from the fields alone: `instruction.word` is not looked at.

        Raises EncodingError when the mnemonic is unknown, an operand or modifier has no place in any of its forms, or the
        control code or a hidden field is out of range.
        """
        mnemonic, _, _, guard, control, extra, _ = instruction
        if mnemonic == OPAQUE:
            return _encode_opaque(instruction)
        skip = dict(extra).get(SPELLING, 0) if extra else 0
        found = next(islice(self._spell(instruction), skip, None), None)
        if found is None:
            raise EncodingError(self._why_not(instruction))
        form, word = found
        hidden = form.default
        for field, value in extra:
            if field == SPELLING:
                continue
            run = form.hidden.get(field)
            if run is None or value >> len(run):
                raise EncodingError(f"`{instruction.text}`: {self.arch} has no hidden field {field} that can hold {value:#x}")
            hidden = hidden & ~scatter((1 << len(run)) - 1, run) | scatter(value, run)
        try:
            bits = encode_control(control)
        except ValueError as error:
            raise EncodingError(f"`{instruction.text}`: {error}") from error
        if word & _REUSE and control.yield_:
            raise EncodingError(f"`{instruction.text}`: .reuse needs a control code without yield")
        return word | hidden | _encode_guard(guard, form.form.guard, instruction) | bits << _CONTROL_AT

    def _spell(self, instruction: Instruction) -> Iterator[tuple[CompiledForm, int]]:
        """All ways to encode name and operands, the preferred first."""
        forms = self._by_mnemonic.get(instruction.mnemonic)
        if forms is None:
            forms = self._encoders(instruction.mnemonic)
        name = _encoded_name(instruction)
        for form in forms:
            for word in form.encode(name, instruction.operands):
                yield form, word

    def _with_spelling(self, instruction: Instruction, form: CompiledForm, code: int) -> Instruction:
        """The instruction, marked where NVIDIA's text is ambiguous and the preferred reading is another word: `IADD3 R0, P1, …`
        does not say which of the two carries P1 is."""
        key = code & form.optional_mask
        index = None if form.form.ambiguous else form.spellings.get(key)
        if index is None:
            wanted = code & ~form.hidden_mask & ~(0xF << 12) & _SPELLED
            index = next((i for i, (f, w) in enumerate(self._spell(instruction)) if f is form and w & ~form.hidden_mask == wanted), 0)
            form.spellings[key] = index
        return instruction._replace(extra=(*instruction.extra, (SPELLING, index))) if index else instruction

    def _why_not(self, instruction: Instruction) -> str:
        """What to tell the user who wrote an instruction without a form."""
        forms, name = self._encoders(instruction.mnemonic), _encoded_name(instruction)
        where = f"`{instruction.text}` has no encoding on {self.arch}"
        if not forms:
            return f"{where}: {instruction.mnemonic} is not a mnemonic of this architecture"
        if not any(f.name.encode(name, name) for f in forms):
            return f"{where}: no form of {instruction.mnemonic} has the modifiers .{'.'.join(instruction.modifiers)}"
        for i, operand in enumerate(instruction.operands):
            if not any(c.encode(operand, operand.text) for f in forms for c in f.operands):
                return f"{where}: operand {i + 1}, `{operand.text}`, fits no form of {instruction.mnemonic}"
        return f"{where}: its operands do not fit together in any form of {instruction.mnemonic}"


def _encoded_name(instruction: Instruction) -> str:
    """Mnemonic and those modifiers that have bits."""
    mnemonic, modifiers = instruction.mnemonic, instruction.modifiers
    return ".".join((mnemonic, *(drop_alias(modifiers) if mnemonic == ALIASED else modifiers)))


def _encode_guard(guard: Operand | None, file: str | None, instruction: Instruction) -> int:
    if guard is None:
        return _TRUE << 12 if file is not None else 0
    name = guard.registers[0]
    index = name[len(file or "") :]
    if file is None or not name.startswith(file) or index not in "0123456T" or guard.template not in ("$", "!$"):
        raise EncodingError(f"`{instruction.text}`: guard {guard.text} should be {'absent' if file is None else f'a {file} register'}")
    return (_TRUE if index == "T" else int(index)) << 12 | (guard.template == "!$") << 15


def opaque(word: int) -> Instruction:
    """The instruction that keeps a word as it is: control code readable, everything else one number."""
    if word >> _CONTROL_AT & 31 in _ILLEGAL_SCHEDULES:
        return Instruction(OPAQUE, (), (Operand.of(f"{word:#x}"),), None, Control(0, True), (("schedule", 1),), word)
    control = decode_control(word >> _CONTROL_AT & _CONTROL)
    rest = word & ~(encode_control(control) << _CONTROL_AT | _control_mask(control))
    return Instruction(OPAQUE, (), (Operand.of(f"{rest:#x}"),), None, control, (), word)


def _control_mask(control: Control) -> int:
    """Word bits that the control code owns: reuse bits belong to it only as a batch marker."""
    return ((1 << 17) - 1 | (7 << 17 if control.yield_ else 0)) << _CONTROL_AT


def _encode_opaque(instruction: Instruction) -> int:
    (operand,) = instruction.operands
    rest = operand.integer
    if rest is None or rest >> 128:
        raise EncodingError(f"`{instruction.text}`: the operand of {OPAQUE} is the instruction's word in hexadecimal")
    if instruction.extra:
        return rest
    return rest & ~_control_mask(instruction.control) | encode_control(instruction.control) << _CONTROL_AT
