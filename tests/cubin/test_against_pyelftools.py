"""pyelftools, which knows nothing of CUDA, reads the same sections and symbols from our cubins as we do."""

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from sassir.cubin.elf import Elf

CUBINS = sorted((Path(__file__).parent.parent / "cubins").glob("*.cubin"))


@pytest.mark.parametrize("path", CUBINS, ids=lambda p: p.name)
def test_sections_and_symbols(path: Path) -> None:
    elf = Elf.read(path.read_bytes(), path.name)
    with path.open("rb") as stream:
        other = ELFFile(stream)
        assert [(s.name, s.offset) for s in elf.sections] == [(s.name, s["sh_offset"]) for s in other.iter_sections()]
        for section in other.iter_sections():
            if isinstance(section, SymbolTableSection):
                (table,) = elf.named(section.name)
                assert [s.name for s in elf.symbols(table)] == [s.name for s in section.iter_symbols()]
