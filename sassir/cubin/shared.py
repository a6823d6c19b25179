"""Static shared memory of a kernel: the size of the section `.nv.shared.k`, which holds no bytes.

From sm_90 on the size includes 1 KiB at the start that the driver keeps for itself (nvcc 12.8 to 13.5).
"""

from __future__ import annotations

import struct

from sassir.cubin.elf import PROGRAM_HEADER, SECTION_HEADER, SHT_NOBITS, Elf, Section

_WRITABLE, _ALLOCATED, _INFO_LINK = 1, 2, 0x40
_PT_LOAD = 1
_ALIGNMENT = 16
_RESERVED, _RESERVED_SINCE = 1024, 90


def reserved_shared(arch: str) -> int:
    """Bytes at the start of shared memory that the size of the section includes, though the code did not ask for them."""
    return _RESERVED if int("".join(c for c in arch if c.isdigit())) >= _RESERVED_SINCE else 0


def grown(elf: Elf, code: Section, arch: str, size: int) -> bytes:
    """The file with `size` bytes more shared memory for the kernel in section `code`.

    A kernel without shared memory gets a section for it. It is described, together with all other sections, behind the end of the
    file, so that nothing moves.
    """
    out = bytearray(elf.data)
    kernel = code.name.removeprefix(".text.")
    known = next((s for s in elf.sections if s.name == f".nv.shared.{kernel}" and s.info == code.index), None)
    if known is None:
        size += reserved_shared(arch)
        _add_section(elf, out, f".nv.shared.{kernel}", code.index, size)
    else:
        at = elf.section_table + SECTION_HEADER.size * known.index
        struct.pack_into("<Q", out, at + 32, known.size + size)
    for i, segment in enumerate(elf.segments):
        if segment.type == _PT_LOAD and segment.flags & 2 and not segment.file_size:
            fields = segment._replace(memory_size=segment.memory_size + size)
            PROGRAM_HEADER.pack_into(out, elf.segment_table + PROGRAM_HEADER.size * i, *fields)
    return bytes(out)


def _add_section(elf: Elf, out: bytearray, name: str, code: int, size: int) -> None:
    """Append the names and headers of all sections and of one more, and let the file header tell where they are."""
    (names_index,) = struct.unpack_from("<H", elf.data, 62)
    names = elf.sections[names_index]
    new_names = elf.content(names) + name.encode() + b"\0"
    out += bytes(-len(out) % 8)
    names_at = len(out)
    out += new_names + bytes(-len(new_names) % 8)
    headers = bytearray(elf.data[elf.section_table : elf.section_table + SECTION_HEADER.size * len(elf.sections)])
    struct.pack_into("<QQ", headers, SECTION_HEADER.size * names_index + 24, names_at, len(new_names))
    flags = _WRITABLE | _ALLOCATED | _INFO_LINK
    fields = (names.size, SHT_NOBITS, flags, 0, names_at, size, 0, code, _ALIGNMENT, 0)
    table = len(out)
    out += headers + SECTION_HEADER.pack(*fields)
    struct.pack_into("<Q", out, 40, table)
    struct.pack_into("<H", out, 60, len(elf.sections) + 1)
