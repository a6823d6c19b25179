"""Any file with device code: tell a cubin, a fatbin and a host object apart by content, and pick one cubin."""

from __future__ import annotations

from sassir.cubin.cubin import EM_CUDA, Cubin
from sassir.cubin.elf import MAGIC, Elf
from sassir.cubin.fatbin import Compression, Entry, EntryKind, is_fatbin, read_fatbin
from sassir.errors import ContainerError

FATBIN_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""Of linked and of relocatable (`nvcc -dc`) device code."""

_ARCHIVE = b"!<arch>\n"


def open_binary(data: bytes, where: str = "<bytes>") -> tuple[Entry, ...]:
    """All device files in a cubin, fatbin, host object, library or executable, in file order.

    Raises ContainerError for damage, for any other file, and for a host file without device code.
    """
    if is_fatbin(data):
        return read_fatbin(data, where)
    if data.startswith(_ARCHIVE):
        raise ContainerError(f"{where}: a static library; unpack it with `ar x` and give the objects")
    if data and not data.startswith(MAGIC[: len(data)]):
        raise ContainerError(f"{where}: neither a cubin, a fatbin nor an ELF object, library or executable")
    elf = Elf.read(data, where)
    if elf.machine == EM_CUDA:
        cubin = Cubin.read(data, where)
        sm = int("".join(filter(str.isdigit, cubin.arch)))
        return (Entry(EntryKind.CUBIN, 1, sm, "", Compression.RAW, data, len(data), where),)
    entries: list[Entry] = []
    for section in elf.sections:
        if section.name in FATBIN_SECTIONS:
            entries += read_fatbin(elf.content(section), f"{where}: {section.name}", 1 + len(entries))
    if not entries:
        raise ContainerError(f"{where}: a host file without device code (no section {' or '.join(FATBIN_SECTIONS)})")
    return tuple(entries)


def select_cubin(data: bytes, where: str = "<bytes>", arch: str | None = None) -> Cubin:
    """The one cubin of a file, or the one for `arch` (`sm_90`). A cubin found inside another file is a copy: nothing is written back there.

    Raises ContainerError, with the choices, when there is none or more than one.
    """
    entries = open_binary(data, where)
    cubins = [entry for entry in entries if entry.kind is EntryKind.CUBIN]
    found = [entry for entry in cubins if arch in (None, entry.arch)]
    if len(found) == 1:
        return found[0].cubin
    there = ", ".join(sorted({entry.arch for entry in entries}))
    if not cubins:
        raise ContainerError(f"{where}: no cubin in this file, only {there}; compile for one, as with `nvcc -arch=sm_90`")
    if not found:
        raise ContainerError(f"{where}: no cubin for {arch}; there are {there}; choose one with --arch")
    if len({entry.arch for entry in found}) > 1:
        raise ContainerError(f"{where}: {len(found)} cubins, for {there}; choose one with --arch")
    listing = "".join([f"\n  entry {entry.number}: {_kernels(entry.cubin)}" for entry in found])
    raise ContainerError(
        f"{where}: {len(found)} cubins for {found[0].arch}; write them to files with `sassir extract --arch {found[0].arch}` "
        f"and give the one you mean (sassir writes cubins, it does not put them back into this file):{listing}"
    )


def _kernels(cubin: Cubin, most: int = 4) -> str:
    """The names of the first kernels."""
    names = [section.kernel for section in cubin.code]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "") or "no code"
