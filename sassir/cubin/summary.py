"""What a cubin says about itself: resources and parameters of each kernel, origin of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.attribute_kinds import MIN_STACK_SIZE
from sassir.cubin.code import CodeSection
from sassir.cubin.cubin import Cubin
from sassir.cubin.elf import located
from sassir.cubin.nvinfo import Attribute, Parameter, decode
from sassir.cubin.resources import counts, function_values
from sassir.cubin.shared import reserved_shared


class KernelSummary(NamedTuple):
    """One code section. Sizes in bytes; None: the file does not say."""

    name: str
    section: int
    """ELF section index."""
    entry: bool
    """It can be launched; a relocatable device function cannot."""
    functions: tuple[str, ...]
    """Device functions behind the kernel."""
    code: int
    instructions: int
    """NOP padding included."""
    registers: int | None
    barriers: int
    """Named barriers, counted up to the highest in use."""
    shared: int
    """Static shared memory, what the driver reserves for itself included."""
    asked_shared: int
    """Static shared memory that the code asks for; what `sassir.analysis.occupancy` counts from."""
    stack: int | None
    """Local memory: stack frame, of the deepest call chain where the linker computed it."""
    constant: int
    """Constant bank 0: what the driver puts there, then the parameters."""
    parameters: tuple[Parameter, ...]
    """By ordinal; offsets are from the start of the parameters, not of the bank."""
    max_threads: tuple[int, ...] | None
    """`__launch_bounds__`: most threads of a block in x, y, z."""
    required_threads: tuple[int, ...] | None
    """`.reqntid`: exactly this block."""
    cluster: tuple[int, ...] | None
    """`__cluster_dims__`"""


class Summary(NamedTuple):
    """One cubin."""

    arch: str
    abi: int
    tool: str
    version: str
    options: str
    relocatable: bool
    line_info: bool
    mercury: bool
    """It also holds the form that is finished for other SMs of the family (`.nv.capmerc`); sassir leaves that as it is."""
    kernels: tuple[KernelSummary, ...]


def summarise(cubin: Cubin) -> Summary:
    """Raises ContainerError when an attribute contradicts what is known of its kind."""
    names = {section.name for section in cubin.elf.sections}
    with located(cubin.where):
        kernels = tuple([_summarise_kernel(cubin, section) for section in cubin.code])
    return Summary(
        arch=cubin.arch,
        abi=cubin.abi,
        tool=cubin.toolkit.tool,
        version=cubin.toolkit.version,
        options=cubin.toolkit.options,
        relocatable=cubin.relocatable,
        line_info=".debug_line" in names,
        mercury=any(name.startswith(".nv.capmerc") for name in names),
        kernels=kernels,
    )


def _summarise_kernel(cubin: Cubin, section: CodeSection) -> KernelSummary:
    elf = cubin.elf
    own = {attribute.name: attribute for attribute in section.attributes}
    registers, barriers, frame = counts(cubin, section)
    belonging = [s for s in elf.sections if s.info == section.index]
    parameters = [value for attribute in section.attributes if isinstance(value := decode(attribute), Parameter)]
    shared = sum(s.size for s in belonging if s.name.startswith(".nv.shared."))
    return KernelSummary(
        name=section.kernel,
        section=section.index,
        entry=bool(section.head and section.head.entry),
        functions=tuple([f.name for f in section.functions if f.offset]),
        code=len(section.data),
        instructions=len(section.data) // INSTRUCTION_BYTES,
        registers=registers,
        barriers=barriers or 0,
        shared=shared,
        asked_shared=max(0, shared - reserved_shared(cubin.arch)),
        stack=function_values(cubin, section).get(MIN_STACK_SIZE, frame),
        constant=sum(s.size for s in belonging if s.name.startswith(".nv.constant0")),
        parameters=tuple(sorted(parameters)),
        max_threads=_dimensions(own, "MAX_THREADS"),
        required_threads=_dimensions(own, "REQNTID"),
        cluster=_dimensions(own, "CTA_PER_CLUSTER"),
    )


def _dimensions(attributes: Mapping[str, Attribute], name: str) -> tuple[int, ...] | None:
    return attributes[name].words if name in attributes else None
