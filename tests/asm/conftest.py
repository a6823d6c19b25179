"""A table that knows no bits: it numbers the instructions it meets, so that listings can be tested without encoders."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sassir.asm import Instruction
from sassir.errors import EncodingError

LISTINGS = Path(__file__).parent / "listings"

MNEMONICS = frozenset(
    """BRA BRX BSSY BSYNC CALL EXIT FADD FFMA FMNMX FMUL FSETP HFMA2 IADD3 IMAD ISETP
    LDC LDG MOV NOP RET S2R STG ULDC UMOV""".split()  # noqa: SIM905
)


class NumberingTable:
    """Words are numbers handed out one by one; `words` can hold real ones."""

    mnemonics = MNEMONICS

    def __init__(self) -> None:
        self.instructions: dict[int, Instruction] = {}

    def decode(self, word: int) -> Instruction:
        return self.instructions[word]

    def encode(self, instruction: Instruction) -> int:
        if instruction.mnemonic not in MNEMONICS:
            raise EncodingError(f"no instruction {instruction.mnemonic}")
        for word, known in self.instructions.items():
            if known == instruction:
                return word
        word = 1 << 127 | len(self.instructions)
        self.instructions[word] = instruction
        return word


@pytest.fixture
def table() -> NumberingTable:
    return NumberingTable()


@pytest.fixture
def printed() -> Callable[[str], str]:
    """What one of NVIDIA's tools printed for a file of tests/cubins, such as `nvdisasm13_hex.sm_90` for loop.sm_90.cubin."""
    return lambda name: (LISTINGS / f"{name}.txt").read_text("utf-8")


_ENCODED = re.compile(r"^ *(/\*[0-9a-f]+\*/ .*;) */\* 0x([0-9a-f]{16}) \*/\s*/\* 0x([0-9a-f]{16}) \*/$", re.MULTILINE)


@pytest.fixture
def community(printed: Callable[[str], str]) -> str:
    """The listing of loop.sm_90.cubin as CuAssembler writes it: a control code before each line, no encoding."""
    return _ENCODED.sub(
        lambda m: f"{_control(int(m[3], 16))} {m[1].replace('+QNAN ', '+QNAN(0x7fc12345)')}", printed("nvdisasm13_hex.sm_90")
    )


def _control(high: int) -> str:
    """CuAssembler's notation, straight from the fields of the control code: a reading of its own, independent of sassir's."""
    bits = high >> 41
    read, write = [str(field) if field < 7 else "-" for field in (bits >> 8 & 7, bits >> 5 & 7)]
    wait = "".join(str(i) if bits >> 11 + i & 1 else "-" for i in range(6))
    return f"[B{wait}:R{read}:W{write}:{'-' if bits >> 4 & 1 else 'Y'}:S{bits & 15:02d}]"
