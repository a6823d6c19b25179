"""From a cubin to a program or a module, and back into the cubin."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.program import Function, Line, Program
from sassir.cubin.attribute_kinds import Payload
from sassir.cubin.code import Code, CodeSection, words
from sassir.cubin.cubin import Cubin
from sassir.cubin.host import select_cubin
from sassir.cubin.nvinfo import IndirectBranch, indirect_branches
from sassir.cubin.resources import counts
from sassir.dialect.container import ContainerAttr
from sassir.encoders import table
from sassir.errors import ContainerError, EncodingError
from sassir.translate.branches import JumpTables
from sassir.translate.lift import ARCH, CONTAINER, lift_program
from sassir.translate.links import read_links, return_labels
from sassir.translate.resources import resources

_PADDING = 0x000FC000_00000000_00000000_00007918.to_bytes(INSTRUCTION_BYTES, "little")
"""The NOP that fills every code section up to its alignment of 128 bytes: in all that were looked at, sm_75 to sm_121."""


def read_module(data: bytes, where: str = "<bytes>", arch: str | None = None) -> ModuleOp:
    """Lift the one cubin in `data` (a cubin, fatbin or host binary), or the one for `arch`.

    Raises ContainerError for a file that cannot be read or does not have exactly one such cubin.
    """
    program, cubin = _read(data, where, arch)
    return lift_program(program, jump_tables(cubin))


def read_program(data: bytes, where: str = "<bytes>", arch: str | None = None) -> Program:
    """The code of the one cubin in `data`, or of the one for `arch`; raises as `read_module`."""
    return _read(data, where, arch)[0]


def _read(data: bytes, where: str, arch: str | None) -> tuple[Program, Cubin]:
    cubin = select_cubin(data, where, arch)
    decode = table(cubin.arch, where).decode
    functions = [
        Function(
            section.kernel,
            section.index,
            tuple([Line(decode(word), INSTRUCTION_BYTES * i) for i, word in enumerate(words(section))]),
            _labels(section),
            links(section),
        )
        for section in cubin.code
        if section.data
    ]
    return Program(cubin.arch, tuple(functions), cubin.data), cubin


def links(section: CodeSection) -> dict[int, str]:
    """What the linker or the driver fills into the code of a section, by offset; see `Function.links`."""
    return read_links(section, _labels(section))


def jump_tables(cubin: Cubin) -> dict[int, JumpTables]:
    """The targets of every indirect branch that the attributes list, by section index."""
    tables: dict[int, JumpTables] = {}
    for section in cubin.code:
        names = {offset: name for name, offset in _labels(section).items()}
        tables[section.index] = {b.offset: tuple([names[t] for t in b.targets if t in names]) for b in _indirect(section)}
    return tables


def _indirect(section: CodeSection) -> list[IndirectBranch]:
    """The branches whose targets are known. The linker of CUDA 11 left all of them 0 in cubins for sm_90: those are not."""
    lists = [a for a in section.attributes if a.kind is not None and a.kind.payload is Payload.BRANCH_TARGETS]
    return [branch for attribute in lists for branch in indirect_branches(attribute) if any(branch.targets)]


def _labels(section: CodeSection) -> dict[str, int]:
    """Names of the places that something outside of the instructions refers to: functions, targets of indirect branches, returns."""
    labels: dict[str, int] = {}
    for function in section.functions:
        if function.offset and function.name and function.offset not in labels.values():
            labels.setdefault(function.name, function.offset)
    for target in sorted({t for branch in _indirect(section) for t in branch.targets}):
        if target not in labels.values():
            labels[f"target_{target:x}"] = target
    for name, place in return_labels(section).items():
        if place not in labels.values():
            labels[name] = place
    return labels


def onto(module: ModuleOp, data: bytes, where: str) -> None:
    """Give a module that comes from a foreign listing the cubin that its code goes into.

    Raises ContainerError when that is no cubin of the same architecture.
    """
    cubin = Cubin.read(data, where)
    arch = module.attributes.get(ARCH)
    if not isinstance(arch, StringAttr) or arch.data != cubin.arch:
        raise ContainerError(f"{where}: a cubin for {cubin.arch}, but the code is for {arch}")
    module.attributes[CONTAINER] = ContainerAttr.of(data)


def write_cubin(program: Program, from_fields: bool = False) -> bytes:
    """The cubin of `program` with its code; the very same file if no instruction changed.

    An instruction that still has its word is written verbatim, unless `from_fields` asks to encode all of them anew.
    Raises ContainerError when there is no container or the code does not fit into it, EncodingError for an instruction
    that has no word. Warns (SassirWarning) of what the new file cannot promise.
    """
    if program.container is None:
        raise ContainerError("there is no cubin to put the code into; give one with --onto FILE")
    cubin = Cubin.read(program.container, "the container")
    if cubin.arch != program.arch:
        raise ContainerError(f"the code is for {program.arch}, but its container for {cubin.arch}")
    sections = {s.index: s for s in cubin.code}
    changed: dict[int, Code] = {}
    written: set[int] = set()
    for function in program.functions:
        section = _section(function, sections)
        if section.index in written:
            raise ContainerError(f"kernel {function.name}: section {section.index} already has code")
        written.add(section.index)
        _check_links(function, section)
        data = encode(function, program.arch, from_fields)
        data += _PADDING * (-len(data) % (cubin.elf.sections[section.index].alignment or 1) // INSTRUCTION_BYTES)
        moved = function.moved()
        before = counts(cubin, section)
        asks_more = function.registers > (before.registers or 0)
        if data != section.data or asks_more or any(old != new for old, new in moved.items()):
            old = _labels(section)
            labels = {old[name]: offset for name, offset in function.labels.items() if name in old}
            instructions, needs = [line.instruction for line in function.lines], resources(function, before, program.arch)
            renamed = _is_renamed(function, section, program.arch)
            changed[section.index] = Code(data, moved, labels, instructions, renamed, needs, function.shared)
    return cubin.rebuild(changed)


def _check_links(function: Function, section: CodeSection) -> None:
    """A relocation stays with its instruction, so one that was changed must still be made for it."""
    expected = links(section)
    for instruction, origin in function.lines:
        if origin is not None and instruction.word is None and function.links.get(origin) != expected.get(origin):
            raise ContainerError(
                f"kernel {function.name}: `{instruction}` stands for the instruction at {origin:#x}; into that the linker fills "
                f"{expected.get(origin, 'nothing')}, but into this one {function.links.get(origin, 'nothing')}"
            )


def _is_renamed(function: Function, section: CodeSection, arch: str) -> bool:
    """An instruction that was there before uses other registers now."""
    decode, old = table(arch).decode, words(section)
    for instruction, origin in function.lines:
        if origin is not None and instruction.word is None and INSTRUCTION_BYTES * len(old) > origin:
            before = decode(old[origin // INSTRUCTION_BYTES])
            if [o.registers for o in before.operands] != [o.registers for o in instruction.operands]:
                return True
    return False


def _section(function: Function, sections: Mapping[int, CodeSection]) -> CodeSection:
    """The section that the code of `function` goes into."""
    if function.section is not None:
        if function.section not in sections:
            raise ContainerError(f"kernel {function.name}: the container has no code in section {function.section}")
        return sections[function.section]
    found = [s for s in sections.values() if s.kernel == function.name]
    if len(found) != 1:
        known = ", ".join([s.kernel for s in sections.values()])
        raise ContainerError(f"kernel {function.name}: {len(found)} sections of the container have that name; it has {known}")
    return found[0]


def encode(function: Function, arch: str, from_fields: bool = False) -> bytes:
    """The code of a function as bytes. Raises EncodingError naming kernel, offset and instruction; see `write_cubin`."""
    encoder = table(arch).encode
    code = bytearray()
    for i, (instruction, _) in enumerate(function.lines):
        word = instruction.word
        if word is None or from_fields:
            try:
                word = encoder(instruction)
            except EncodingError as error:
                raise error.at(f"kernel {function.name}, offset {INSTRUCTION_BYTES * i:#x}, `{instruction}`") from error
        code += word.to_bytes(INSTRUCTION_BYTES, "little")
    return bytes(code)
