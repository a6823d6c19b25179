"""`sassir`: the subcommands around `sassir-opt`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from sassir import __version__
from sassir.cli.errors import finish

COMMANDS = {
    "bench": "sassir.cli.bench",
    "bench-suite": "sassir.cli.bench_suite",
    "check": "sassir.cli.check",
    "explain": "sassir.cli.explain",
    "extract": "sassir.cli.extract",
    "info": "sassir.cli.info",
    "launch-template": "sassir.cli.launch_template",
    "mine-encodings": "sassir.cli.mine",
    "mine-latencies": "sassir.cli.mine_latencies",
    "optimize": "sassir.cli.optimize",
    "reduce": "sassir.cli.reduce",
    "roundtrip": "sassir.cli.roundtrip",
    "run": "sassir.cli.run",
    "time": "sassir.cli.time",
    "verify": "sassir.cli.verify",
    "view": "sassir.cli.view",
}
"""Each module has HELP, `add_arguments(parser)` and `run(args) -> exit status`; only the one that is asked for is loaded."""


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("sassir", description="Look at, check and rebuild NVIDIA machine code.")
    parser.add_argument("--version", action="version", version=f"sassir {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in names:
        module = import_module(COMMANDS[name])
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run a subcommand. Returns 0, or 1 with one message on standard error for bad input; bad usage exits with 2."""
    arguments = [*(sys.argv[1:] if args is None else args)]
    names = [arguments[0]] if arguments and arguments[0] in COMMANDS else list(COMMANDS)
    parsed = _parser(names).parse_args(arguments)
    return finish(lambda: parsed.run(parsed))


if __name__ == "__main__":
    sys.exit(main())
