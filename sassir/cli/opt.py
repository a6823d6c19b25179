"""`sassir-opt`: mlir-opt for machine code. xDSL's tool, plus cubins and listings as input and output."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.xdsl_opt_main import xDSLOptMain

from sassir import __version__
from sassir.cli.errors import finish
from sassir.cli.facts import add_facts_argument
from sassir.errors import SassirError
from sassir.passes import PASSES, load_passes
from sassir.universe import SASSIR

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_BINARY = (b"\x7fELF", bytes.fromhex("50ed55ba"))
"""How an ELF file and a fatbin begin."""
_CONTAINERS = ("exe", "fatbin", "o", "so")
_STRING = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"|//[^\n]*|(?P<bad>")')
"""A string, a comment, or a quote that does neither begin nor end a string."""
_PIPELINE = "builtin.module("


class _Output(StringIO):
    """Output that is held back until everything went well."""

    text = ""

    def close(self) -> None:
        self.text = self.getvalue()
        super().close()


class _ListPasses(argparse.Action):
    """Prints a line for each pass of sassir, and for those of --load-pass."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        for name, load in sorted(PASSES.items()):
            options = "".join([f" [{field.name.replace('_', '-')}: {field.type}]" for field in fields(load())])
            print(f"{name:<24} {(load().__doc__ or '').partition(chr(10))[0]}{options}")
        parser.exit()


class SassirOpt(xDSLOptMain):
    """The tool for one command line. `run` writes the output only when nothing failed."""

    version_format = f"sassir-opt {__version__}, with xDSL {{xdsl_version}}"

    def __init__(self, args: Sequence[str] | None = None) -> None:
        arguments = [*(sys.argv[1:] if args is None else args)]
        for file in _given("--load-pass", arguments):
            load_passes(Path(file))
        super().__init__("Optimise NVIDIA machine code: cubins, listings (.sass) and their SSA form (.mlir)", _with_target(arguments))

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        self.usage = arg_parser
        arg_parser.add_argument("--arch", help="which cubin of a fatbin, library or executable, or part of a listing: sm_90")
        arg_parser.add_argument("--onto", metavar="FILE", help="the cubin that the code of a listing goes into")
        add_facts_argument(arg_parser)
        arg_parser.add_argument("--facts-from", metavar="TOML[:NAME]", help="the facts of a launch of a launch file (default: the first)")
        arg_parser.add_argument("--load-pass", metavar="FILE", action="append", help="a Python file with passes of your own; repeatable")
        arg_parser.add_argument(
            "--list-passes", nargs=0, action=_ListPasses, help="say what the passes of sassir do, with their options, and exit"
        )
        arg_parser.add_argument("--pass-pipeline", dest="passes", type=_pipeline, help="passes as mlir-opt takes them: builtin.module(a,b)")
        arg_parser.add_argument("--mlir-print-op-generic", dest="print_op_generic", action="store_true", help="like --print-op-generic")

    def register_all_dialects(self) -> None:
        super().register_all_dialects()
        for name, factory in SASSIR.all_dialects.items():
            if name not in self.ctx.registered_dialect_names:
                self.ctx.register_dialect(name, factory)

    def register_all_frontends(self) -> None:
        super().register_all_frontends()
        self.available_frontends = {**SASSIR.all_frontends, **self.available_frontends}

    def register_all_passes(self) -> None:
        super().register_all_passes()
        self.available_passes = {**SASSIR.all_passes, **self.available_passes}

    def register_all_targets(self) -> None:
        super().register_all_targets()
        self.available_targets = {**SASSIR.all_targets, **self.available_targets}

    def setup_pipeline(self) -> None:
        try:
            super().setup_pipeline()
        except (ValueError, ArgSpecParseError, ParseError) as error:
            self.usage.error(str(error))

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The input, and its kind: by content where that is binary, else by the extension (standard input: mlir)."""
        name = self.get_input_name()
        data = sys.stdin.buffer.read() if self.args.input_file is None else Path(name).read_bytes()
        extension = "mlir" if self.args.input_file is None else Path(name).suffix.removeprefix(".")
        kind = "cubin" if data.startswith(_BINARY) or extension in _CONTAINERS else extension
        if self.args.frontend is not None:
            kind = parse_spec(self.args.frontend).name
        if kind not in self.available_frontends:
            raise SassirError(f"{name}: unknown kind of file; name it with -f: {', '.join(self.available_frontends)}")
        if self.args.arch is not None and kind not in SASSIR.all_frontends:
            self.usage.error(f"--arch chooses a part of a cubin or listing, but the input is {kind}")
        if kind == "mlir":
            _check_strings(data, name)
        return BytesIO(data), kind

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        kind = parse_spec(self.args.frontend or file_extension).name
        if self.args.arch is not None:
            self.args.frontend = f'{kind}{{arch="{self.args.arch}"}}'
        module = super().parse_chunk(chunk, file_extension, start_offset)
        if module is not None and self.args.onto is not None:
            from sassir.translate.cubin import onto

            onto(module, Path(self.args.onto).read_bytes(), self.args.onto)
        if module is not None and (self.args.facts or self.args.facts_from is not None):
            self._state_facts(module)
        return module

    def _state_facts(self, module: ModuleOp) -> None:
        from sassir.rewrite.kernels import arch_of
        from sassir.translate.facts import attach_facts, with_facts
        from sassir.translate.facts_file import facts_from, kernels_of, stated_facts

        arch, kernels = arch_of(module), kernels_of(module)
        known = stated_facts(self.args.facts, kernels, arch)
        if self.args.facts_from is not None:
            known = with_facts(facts_from(self.args.facts_from, kernels, arch), known)
        attach_facts(module, known)

    def prepare_output(self) -> IO[str]:
        self.output, self.binary = _Output(), b""
        return self.output

    def output_resulting_program(self, prog: ModuleOp) -> str:
        spec = parse_spec(self.args.target)
        if spec.name != "cubin":
            return super().output_resulting_program(prog)
        from sassir.translate.frontends import CubinTarget

        if self.binary:
            raise SassirError("one cubin cannot hold the parts of a split input; write each to a file of its own")
        self.binary = CubinTarget.from_spec(spec).emit_bytes(prog)
        return ""

    def run(self) -> None:
        from sassir.cli.extract import check_target

        check_target(Path(self.args.output_file) if self.args.output_file is not None else None)
        super().run()
        data = self.binary or self.output.text.encode()
        if self.args.output_file is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            _replace(Path(self.args.output_file), data)


def _check_strings(data: bytes, name: str) -> None:
    """Refuse text in which a string is not closed or has an unknown escape.

    xDSL's lexer takes exponential time on such a string (its pattern backtracks), for example where a file was cut.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SassirError(f"{name}: byte {error.start:#x} is no UTF-8 text; expected MLIR") from error
    for match in _STRING.finditer(text):
        if match["bad"]:
            raise ParseError(Span(match.start(), match.end(), Input(text, name)), "this string is not closed, or has an unknown escape")


def _with_target(args: list[str]) -> list[str]:
    """Without -t, the extension of the output file chooses the target."""
    output = _given("-o", args, "--output-file")
    extension = Path(output[-1]).suffix.removeprefix(".") if output else ""
    return args if _given("-t", args, "--target") or extension not in SASSIR.all_targets else [*args, "-t", extension]


def _given(option: str, args: list[str], *others: str) -> list[str]:
    """What the command line says for an option, before xDSL reads it."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(option, *others, dest="values", action="append", default=[])
    return parser.parse_known_args(args)[0].values


def _pipeline(text: str) -> str:
    """The passes inside of `builtin.module( )`."""
    if not (text.startswith(_PIPELINE) and text.endswith(")")):
        raise argparse.ArgumentTypeError(f"expected {_PIPELINE}PASS,PASS), got {text}")
    return text[len(_PIPELINE) : -1]


def _replace(path: Path, data: bytes) -> None:
    """Write a file at once: it is there whole, or as it was before. Devices, pipes and links are written in place."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.write_bytes(data)
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.chmod(file.name, 0o666 & ~_umask())
    os.replace(file.name, path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool. Returns 0, or 1 for bad input, with one message on standard error; bad usage exits with 2."""

    def run() -> int:
        SassirOpt(args).run()
        return 0

    return finish(run, ParseError, DiagnosticException)


if __name__ == "__main__":
    sys.exit(main())
