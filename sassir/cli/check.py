"""`sassir check`: is a cubin sound? Its container, its schedule, its registers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sassir import __version__
from sassir.cli.extract import read_file
from sassir.cubin.fatbin import EntryKind
from sassir.cubin.host import open_binary
from sassir.errors import ContainerError
from sassir.findings import Finding
from sassir.translate.cubin import read_program
from sassir.verify.allocation import allocation_findings
from sassir.verify.container import check_container
from sassir.verify.schedule import check_schedule

HELP = "check that offsets and sizes agree, that the schedule keeps every dependence, and that registers hold what is read"

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


class Checked(NamedTuple):
    """One cubin and what is wrong with it."""

    file: str
    """The file, and its entry if it holds several."""
    findings: list[Finding]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="cubins, fatbins, or programs and libraries with device code")
    parser.add_argument("--arch", help="only cubins of this architecture")
    layers = parser.add_argument_group("layers (all of them unless some are chosen)")
    for layer in LAYERS:
        layers.add_argument(f"--{layer}", action="append_const", dest="layers", const=layer, help=LAYERS[layer].__doc__)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--sarif", action="store_true", help="print a SARIF 2.1.0 log, for code review tools")


def run(args: argparse.Namespace) -> int:
    """Print what is wrong; status 1 when one of the findings is an error."""
    chosen = args.layers or list(LAYERS)
    checked = [Checked(where, check(data, where, chosen)) for file in args.files for where, data in _cubins(file, args.arch)]
    if args.json:
        print(json.dumps([{"file": c.file, "findings": [f._asdict() for f in c.findings]} for c in checked], indent=2))
    elif args.sarif:
        print(json.dumps(_sarif(checked), indent=2))
    else:
        for line in _lines(checked, chosen):
            print(line)
    return 1 if any(finding.error for c in checked for finding in c.findings) else 0


def check(data: bytes, where: str, layers: Iterable[str]) -> list[Finding]:
    """What is wrong with a cubin. A container that is not sound is all that is said, as nothing behind it can be trusted."""
    container = check_container(data, where)
    if any(finding.error for finding in container):
        return container
    return [finding for layer in layers for finding in (container if layer == "container" else LAYERS[layer](data, where))]


def _container(data: bytes, where: str) -> list[Finding]:
    """sections, symbols, attributes, tables, relocations, counts and debug information agree"""
    return check_container(data, where)


def _schedule(data: bytes, where: str) -> list[Finding]:
    """stall counts and scoreboards keep every dependence, on every path"""
    return check_schedule(read_program(data, where))


def _allocation(data: bytes, where: str) -> list[Finding]:
    """each register holds the value that is read from it, on every path"""
    return allocation_findings(data, where)


LAYERS: dict[str, Callable[[bytes, str], list[Finding]]] = {"container": _container, "schedule": _schedule, "allocation": _allocation}
"""By the name of their option."""


def _cubins(file: Path, arch: str | None) -> Iterator[tuple[str, bytes]]:
    """The cubins in a file, each with what messages call it. A file that cannot be opened is taken for a damaged cubin."""
    data = read_file(file)
    try:
        entries = open_binary(data, str(file))
        cubins = [e for e in entries if e.kind is EntryKind.CUBIN and arch in (None, e.arch)]
    except ContainerError:
        yield str(file), data
        return
    if not cubins:
        raise ContainerError(f"{file}: no cubin{f' for {arch}' if arch else ''} in it; `sassir extract --list` shows what there is")
    for entry in cubins:
        yield entry.where, entry.data


def _lines(checked: list[Checked], layers: list[str]) -> Iterator[str]:
    """One line a finding, and a last one with the counts."""
    for file, findings in checked:
        for rule, kernel, offset, message, evidence, error in findings:
            place = kernel if offset is None else f"{kernel}+{offset:#x}"
            named = "" if place == file else f"{place}: "
            yield f"{file}: {'error' if error else 'warning'}: {named}{message} [{rule}; {evidence}]"
    found = [finding for c in checked for finding in c.findings]
    errors = sum(finding.error for finding in found)
    yield f"{len(checked)} cubins, {errors} errors, {len(found) - errors} warnings ({', '.join(layers)})"


def _sarif(checked: list[Checked]) -> dict[str, object]:
    """A log of one run, by the OASIS standard."""
    found = [(c.file, finding) for c in checked for finding in c.findings]
    rules = [{"id": rule} for rule in dict.fromkeys(finding.rule for _, finding in found)]
    driver = {"name": "sassir", "version": __version__, "rules": rules}
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": [_result(*f) for f in found]}]}


def _result(file: str, finding: Finding) -> dict[str, object]:
    place: dict[str, object] = {"artifactLocation": {"uri": file}}
    if finding.offset is not None:
        place["address"] = {"kind": "instruction", "offsetFromParent": finding.offset, "fullyQualifiedName": finding.kernel}
    return {
        "ruleId": finding.rule,
        "level": "error" if finding.error else "warning",
        "message": {"text": f"{finding.message} ({finding.evidence})"},
        "locations": [{"physicalLocation": place, "logicalLocations": [{"name": finding.kernel, "kind": "function"}]}],
    }
