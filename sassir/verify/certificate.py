"""The certificate: what was verified, on which grounds, and with what, for machines to read."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from sassir import __version__
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import summarise
from sassir.dialect.facts import KernelFacts, Pointer
from sassir.errors import ContainerError, VerificationError
from sassir.launch import Facts, Launch
from sassir.verify.assumptions import Assumption, Assumptions
from sassir.verify.report import Layer, Report

FORMAT = 1
_TOOLS = ("numpy", "xdsl", "z3-solver", "pycuda")


def certificate(
    original: bytes,
    candidate: bytes,
    report: Report,
    launches: Iterable[Launch] = (),
    stated: Facts | None = None,
    assumptions: Assumptions | None = None,
    passes: str | None = None,
    kernels: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Plain objects for `json.dumps`: both files by their hashes, facts stated and used, passes, every check, versions of the tools.

    `passes`: the pipeline that made the candidate; `kernels`: what it gained for each, predicted and measured, and why one stayed as it
    was. None where that is not known.
    """
    return {
        "format": FORMAT,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "verdict": report.verdict,
        "original": _file(original),
        "candidate": _file(candidate),
        "passes": passes,
        "kernels": kernels,
        "facts": {"stated": None if stated is None else asdict(stated), "used": _used(assumptions)},
        "launches": {launch.name: dict(launch.sizes) for launch in launches},
        "layers": [_layer(layer) for layer in report.layers],
        "tools": {"sassir": __version__, "python": platform.python_version(), "machine": platform.machine(), **_versions()},
    }


def recorded_assumptions(data: bytes, candidate: bytes) -> Assumptions | None:
    """What the certificate in `data` says that `candidate` relies on; None where it does not know.

    Raises VerificationError for what is no certificate, or the one of another cubin.
    """
    try:
        found = json.loads(data)
        if found["format"] != FORMAT:
            raise VerificationError(f"a certificate of form {found['format']}, expected {FORMAT}")
        if found["candidate"]["sha256"] != _file(candidate)["sha256"]:
            raise VerificationError("the certificate of another cubin")
        used = found["facts"]["used"]
        return None if used is None else {kernel: _assumption(**stated) for kernel, stated in used.items()}
    except (ValueError, KeyError, TypeError) as error:
        raise VerificationError(f"not a certificate ({type(error).__name__}: {error})") from error


def _assumption(names: list[str], known: dict[str, Any]) -> Assumption:
    """What `_used` wrote."""
    pointers = tuple([Pointer(*pointer) for pointer in known.pop("pointers")])
    facts = {name: _tuples(value) for name, value in known.items()}
    return Assumption(KernelFacts(pointers=pointers, **facts), tuple(names))


def _tuples(value: Any) -> Any:
    """JSON has lists only."""
    return tuple([_tuples(item) for item in cast(list[Any], value)]) if isinstance(value, list) else value


def _file(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    try:
        summary = summarise(Cubin.read(data))
    except ContainerError as error:
        return found | {"unreadable": str(error)}
    kernels = {k.name: {"registers": k.registers, "stack": k.stack, "instructions": k.instructions} for k in summary.kernels}
    return found | {"arch": summary.arch, "tool": summary.tool, "version": summary.version, "kernels": kernels}


def _used(assumptions: Assumptions | None) -> Mapping[str, Any] | None:
    """By kernel; None where nobody has recorded them."""
    if assumptions is None:
        return None
    return {kernel: {"names": list(a.used), "known": asdict(a.facts)} for kernel, a in assumptions.items()}


def _layer(layer: Layer) -> dict[str, Any]:
    checks, findings = [check._asdict() for check in layer.checks], [finding._asdict() for finding in layer.findings]
    return layer._asdict() | {"seconds": round(layer.seconds, 3), "checks": checks, "findings": findings}


def _versions() -> dict[str, str]:
    """Of the packages that are installed."""
    found: dict[str, str] = {}
    for name in _TOOLS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
