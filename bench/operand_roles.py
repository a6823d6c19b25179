"""Does `sassir.isa` name the registers that nvdisasm names? One valid word or more of every form of every encoding table.

    python bench/operand_roles.py -o bench/results/operand-roles.json

The words of an architecture become the code of one kernel, whose life ranges nvdisasm then shows. Registers are renamed so that no
two operands share one, and so that groups are aligned.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from counted import UNEXPLAINED
from life_ranges import EXCEPTIONS, compare, life_ranges

from sassir import __version__
from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.operand import ZERO_REGISTERS, Operand, register_file, target
from sassir.asm.parse import parse_instruction
from sassir.cubin.code import Code
from sassir.cubin.cubin import Cubin
from sassir.encoders import table
from sassir.encoders.library import CHAIN
from sassir.encoders.mining.oracle import Oracle
from sassir.encoders.random_words import random_word
from sassir.encoders.table import Table
from sassir.errors import EncodingError, SassirWarning
from sassir.isa import describe, roles

CUBINS = Path(__file__).parents[1] / "tests" / "cubins"
TRIES, KEPT = 24, 4
"""Words drawn for each form, and how many of the valid ones are compared."""
GENERAL = (8, 136, 152, 168, 184, 200, 216, 232)
"""First registers of the operands of one instruction; a product of warp groups writes up to 128."""
UNIFORM, PREDICATES = range(8, 56, 8), range(6)
END = ("EXIT", "BRA .+0x0")
LISTED = 4
_MEANINGLESS = re.compile(r"\?\?\?|INVALID")
"""What nvdisasm prints for a value that nothing is known of."""


class Probe(NamedTuple):
    """A word of one form."""

    form: str
    instruction: Instruction
    word: int


def renamed(instruction: Instruction) -> Instruction:
    """The instruction on registers of its own for each operand; branches go to the next instruction, if they go at all."""
    names = {"R": iter(GENERAL), "UR": iter(UNIFORM), "P": iter(PREDICATES), "UP": iter(PREDICATES), "B": iter(range(8))}

    def rename(name: str) -> str:
        file = register_file(name)
        return name if name in ZERO_REGISTERS else f"{file}{next(names[file])}"

    operands = [target(INSTRUCTION_BYTES) if o.displacement is not None else o for o in instruction.operands]
    description = describe(instruction.mnemonic, instruction.modifiers)
    leaves = description is not None and description.control not in (None, "converge")
    guard = Operand.parse("P6") if leaves else instruction.guard
    return instruction._replace(operands=tuple([o.with_registers(*map(rename, o.registers)) for o in operands]), guard=guard)


def probes(arch: str, rng: Random) -> Iterator[Probe]:
    """Valid words of every form that has some, at most `KEPT` each."""
    coder = table(arch)
    drawn = [(form, word) for form in coder.blocks for word in dict.fromkeys(_draw(coder, form, rng))]
    texts = Oracle(arch).texts([word for _, word in drawn])
    kept: Counter[str] = Counter()
    for (form, word), text in zip(drawn, texts, strict=True):
        if text and not _MEANINGLESS.search(text) and kept[form] < KEPT:
            kept[form] += 1
            yield Probe(form, coder.decode(word), word)


def _draw(coder: Table, form: str, rng: Random) -> Iterator[int]:
    """Words of a form on registers of their own, where those fit into it."""
    for _ in range(TRIES):
        word = random_word(coder, rng, form)
        try:
            yield coder.encode(renamed(coder.decode(word)))
        except (EncodingError, StopIteration, RuntimeError):
            yield word


def carrier(arch: str, words: list[int]) -> bytes:
    """A cubin whose kernel is these words."""
    coder = table(arch)
    end = [coder.encode(parse_instruction(f"[B------:R-:W-:Y:S00] {text}")) for text in END]
    name = "axpy.sm_80" if arch in ("sm_86", "sm_89") else f"axpy.{arch}"
    cubin = Cubin.read((CUBINS / f"{name}.cubin").read_bytes(), name)
    code = b"".join([word.to_bytes(INSTRUCTION_BYTES, "little") for word in (*words, *end)])
    data = bytearray(cubin.rebuild({cubin.code[0].index: Code(code, {})}))
    data[49] = int(arch.removeprefix("sm_"))  # the SM in the flags of the ELF header, ABI 8
    return bytes(data)


def has_life_ranges(instruction: Instruction) -> bool:
    """nvdisasm follows control to a place in the text; for code with a branch through a register it gives no life ranges at all."""
    description = describe(instruction.mnemonic, instruction.modifiers)
    control = description.control if description is not None else None
    return control in (None, "converge", "exit", "trap") or any(o.displacement is not None for o in instruction.operands)


def measure(arch: str, seed: int) -> dict[str, Any]:
    """One architecture: how many forms and words, and how they compare."""
    valid = list(probes(arch, Random(seed)))
    found = [probe for probe in valid if has_life_ranges(probe.instruction)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "probes.cubin")
        path.write_bytes(carrier(arch, [probe.word for probe in found]))
        shown = list(life_ranges(path))
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for probe, row in zip(found, shown, strict=False):  # behind the probes the code is closed
        form, instruction, _ = probe
        verdict = compare(row, roles(instruction), instruction)
        counts[verdict if verdict in ("equal", *EXCEPTIONS) else UNEXPLAINED] += 1
        if verdict in EXCEPTIONS:
            examples.setdefault(verdict, []).append(f"{form}: {row.text}")
        elif verdict != "equal":
            examples.setdefault(UNEXPLAINED, []).append(f"{form}: {verdict}")
    return {
        "forms": len(table(arch).blocks),
        "forms with a valid word": len({probe.form for probe in valid}),
        "words": len(found),
        "left out": sorted({p.instruction.mnemonic for p in valid if not has_life_ranges(p.instruction)}),
        "verdicts": dict(counts.most_common()),
        "examples": {reason: texts if reason == UNEXPLAINED else texts[:LISTED] for reason, texts in examples.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="JSON file to write")
    parser.add_argument("--arch", choices=CHAIN, help="only this architecture")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", SassirWarning)  # the cubins that carry the words are read by nvdisasm alone
    architectures = {arch: measure(arch, options.seed) for arch in CHAIN if options.arch in (None, arch)}
    head = {"date": date.today().isoformat(), "sassir": __version__, "nvdisasm": Oracle("sm_90").version(), "seed": options.seed}
    text = json.dumps({**head, "architectures": architectures}, indent=1)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
