"""Kernels with one wrong instruction: another immediate, a complemented predicate, swapped operands, a barrier or a load less."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from sassir.asm.instruction import Instruction
from sassir.asm.operand import Operand
from sassir.asm.program import Line
from sassir.encoders import table
from sassir.errors import EncodingError
from sassir.gpu.suite import Entry
from sassir.isa.description import kind_of
from sassir.translate.cubin import read_program, write_cubin

SEED = 1

Mutation = Callable[[Instruction], Iterator[Instruction]]
"""What one instruction may be changed into."""


@dataclass
class Mutant:
    """A kernel file with one other instruction, and what became of it."""

    kernel: str
    kind: str
    function: int
    line: int
    before: str
    after: str
    word: str
    """The new instruction, encoded."""
    emulator: str = ""
    """`holds`, `fails`, `undecided`."""
    detail: str = ""
    symbolic: str | None = None
    gpu: str | None = None
    """`equal`, `different`, `failed`; None where it was not launched."""
    gpu_detail: str = ""

    @property
    def place(self) -> tuple[str, int, int, str]:
        """What is changed, and into what: no two mutants share it."""
        return self.kernel, self.function, self.line, self.word


def immediates(instruction: Instruction) -> Iterator[Instruction]:
    """An integer one larger, a float twice as large."""
    for i, operand in enumerate(instruction.operands):
        if operand.integer is not None:
            yield _with_operand(instruction, i, Operand.of(f"{operand.integer + 1:#x}"))
        elif operand.float is not None and operand.float == operand.float:
            yield _with_operand(instruction, i, Operand.of(f"{2 * operand.float or 1.0!r}"))


def predicates(instruction: Instruction) -> Iterator[Instruction]:
    """The guard, or a predicate that is read, complemented."""
    if instruction.guard is not None:
        yield instruction._replace(guard=_complement(instruction.guard))
    for i, operand in enumerate(instruction.operands):
        if kind_of(operand) == "predicate" and not operand.registers[0].endswith("T"):
            yield _with_operand(instruction, i, _complement(operand))


def swaps(instruction: Instruction) -> Iterator[Instruction]:
    """Two registers that are read change places."""
    read = [i for i, operand in enumerate(instruction.operands) if i and kind_of(operand) == "vector"]
    for i, j in combinations(read, 2):
        a, b = instruction.operands[i], instruction.operands[j]
        if a.registers != b.registers:
            swapped = _with_operand(instruction, i, a.with_registers(*b.registers))
            yield _with_operand(swapped, j, b.with_registers(*a.registers))


def barriers(instruction: Instruction) -> Iterator[Instruction]:
    """No barrier."""
    if instruction.mnemonic == "BAR":
        yield _nothing(instruction)


def loads(instruction: Instruction) -> Iterator[Instruction]:
    """No load: its registers keep what they held."""
    if instruction.mnemonic in ("LDG", "LDS", "LDL", "LDC", "ULDC"):
        yield _nothing(instruction)


MUTATIONS: dict[str, Mutation] = {
    "immediate": immediates,
    "predicate": predicates,
    "swapped operands": swaps,
    "dropped barrier": barriers,
    "removed load": loads,
}


def _with_operand(instruction: Instruction, index: int, operand: Operand) -> Instruction:
    operands = [*instruction.operands]
    operands[index] = operand
    return instruction._replace(operands=tuple(operands))


def _complement(operand: Operand) -> Operand:
    return Operand.of(operand.template[1:] if operand.negated else f"!{operand.template}", operand.registers)


def _nothing(instruction: Instruction) -> Instruction:
    """A NOP that waits like the instruction, and signals nothing."""
    return Instruction("NOP", control=instruction.control._replace(write=None, read=None))


def possible(entry: Entry) -> Iterator[Mutant]:
    """Every mutant of a kernel file that has a word of its own. Labels, padding and branch targets are left alone."""
    program = read_program(entry.cubin.read_bytes())
    coder = table(program.arch)
    for number, function in enumerate(program.functions):
        for place, (instruction, _) in enumerate(function.lines):
            for kind, mutate in MUTATIONS.items():
                for changed in mutate(instruction._replace(word=None)) if instruction.mnemonic != "NOP" else ():
                    try:
                        word = coder.encode(changed)
                    except EncodingError:
                        continue
                    if coder.decode(word).text != instruction.text:
                        yield Mutant(entry.kernel, kind, number, place, instruction.text, coder.decode(word).text, f"{word:#034x}")


def choose(entries: Sequence[Entry], count: int) -> list[Mutant]:
    """So many mutants, each kind and each kernel with about the same share, as far as there are enough."""
    chance = random.Random(SEED)
    pools: dict[tuple[str, str], list[Mutant]] = {}
    for entry in entries:
        for mutant in possible(entry):
            pools.setdefault((mutant.kind, mutant.kernel), []).append(mutant)
    for pool in pools.values():
        chance.shuffle(pool)
    chosen: list[Mutant] = []
    turns = {kind: [pool for (k, _), pool in pools.items() if k == kind] for kind in MUTATIONS}
    while len(chosen) < count and any(turns.values()):
        for kind in turns:
            turns[kind] = [pool for pool in turns[kind] if pool]
            if turns[kind] and len(chosen) < count:
                pool = turns[kind].pop(0)
                chosen.append(pool.pop())
                turns[kind].append(pool)
    return sorted(chosen, key=lambda mutant: mutant.place)


def build(mutant: Mutant, original: bytes) -> bytes:
    """The mutant's cubin, made by sassir's writer."""
    program = read_program(original)
    function = program.functions[mutant.function]
    lines = [*function.lines]
    changed = table(program.arch).decode(int(mutant.word, 16))
    lines[mutant.line] = Line(changed._replace(word=None), lines[mutant.line].origin)
    functions = [*program.functions]
    functions[mutant.function] = function._replace(lines=tuple(lines))
    return write_cubin(program._replace(functions=tuple(functions)))
