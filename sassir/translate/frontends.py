"""What xDSL's tools need to read and write cubins and listings: frontends and targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.frontend import Frontend
from xdsl.utils.target import Target

from sassir.asm.assemble import assemble
from sassir.asm.listing import read_listing
from sassir.asm.print import print_listing
from sassir.cubin.cubin import Cubin
from sassir.dialect import SASS
from sassir.encoders import table
from sassir.errors import ContainerError, ListingError
from sassir.translate.cubin import jump_tables, links, read_module, write_cubin
from sassir.translate.emit import emit_program
from sassir.translate.lift import lift_program


@dataclass(frozen=True)
class CubinFrontend(Frontend):
    """Reads a cubin, also out of a fatbin, object file, library or executable."""

    name = "cubin"
    arch: str | None = None

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:
        _load_dialect(ctx)
        return read_module(input.read(), input_name, self.arch)


@dataclass(frozen=True)
class SassFrontend(Frontend):
    """Reads a listing: sassir's, nvdisasm's, cuobjdump's."""

    name = "sass"
    arch: str | None = None

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:
        _load_dialect(ctx)
        try:
            text = input.read().decode()
        except UnicodeDecodeError as error:
            raise ListingError(f"{input_name}: byte {error.start:#x} is no UTF-8 text; expected a listing") from error
        listing = read_listing(text, input_name, self.arch)
        program = assemble(listing, table(listing.arch))
        if program.container is None:
            return lift_program(program)
        cubin = Cubin.read(program.container, input_name)
        filled = {section.index: links(section) for section in cubin.code}
        functions = tuple([f._replace(links=filled.get(f.section, {})) if f.section is not None else f for f in program.functions])
        return lift_program(program._replace(functions=functions), jump_tables(cubin))


@dataclass(frozen=True)
class SassTarget(Target):
    """Writes sassir's listing."""

    name = "sass"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(print_listing(emit_program(module)))


@dataclass(frozen=True)
class CubinTarget(Target):
    """Writes the cubin that the module came from, with its code as it is now."""

    name = "cubin"
    from_fields: bool = False
    """Encode every instruction from its fields, also those that did not change."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        raise ContainerError("a cubin is no text; write it with `sassir-opt -o FILE.cubin`")

    def emit_bytes(self, module: ModuleOp) -> bytes:
        """The file."""
        return write_cubin(emit_program(module), self.from_fields)


def _load_dialect(ctx: Context) -> None:
    """Text of the module can be printed only by a context that knows the dialect."""
    if SASS.name in ctx.registered_dialect_names:
        ctx.load_registered_dialect(SASS.name)
    else:
        ctx.load_dialect(SASS)
