"""Real cubins: every word comes back from its fields, and nvdisasm reads the same text."""

from pathlib import Path

import pytest

from sassir.asm.instruction import OPAQUE
from sassir.cubin.code import words
from sassir.cubin.cubin import Cubin
from sassir.encoders import table
from sassir.encoders.library import CHAIN, base_architecture
from sassir.encoders.mining.agree import agrees
from sassir.encoders.mining.oracle import BATCH, Oracle

CUBINS = sorted((Path(__file__).parent.parent / "cubins").glob("*.cubin"))


def _words(arch: str) -> dict[int, str]:
    """Distinct words of the committed cubins for an architecture, and where each stands."""
    found: dict[int, str] = {}
    for file in CUBINS:
        cubin = Cubin.read(file.read_bytes(), file.name)
        if base_architecture(cubin.arch) == arch:
            for section in cubin.code:
                for i, word in enumerate(words(section)):
                    found.setdefault(word, f"{file.name} {section.kernel}+{16 * i:#x}")
    return found


@pytest.mark.parametrize("arch", CHAIN)
def test_every_word_comes_back_from_its_fields(arch: str) -> None:
    coder = table(arch)
    for word, where in _words(arch).items():
        instruction = coder.decode(word)._replace(word=None)
        assert instruction.mnemonic != OPAQUE, where
        assert coder.encode(instruction) == word, f"{where}: {instruction.text}"


@pytest.mark.parametrize("arch", CHAIN)
def test_text_is_nvdisasms(arch: str, oracle: type[Oracle]) -> None:
    code = _words(arch)
    for i, (word, text) in enumerate(zip(code, oracle(arch).texts(list(code)), strict=True)):
        assert text is not None, code[word]
        instruction = table(arch).decode(word)
        assert agrees(instruction, text, 16 * (i % BATCH), arch), f"{code[word]}: {instruction.text} is {text}"
