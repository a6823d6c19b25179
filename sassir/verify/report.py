"""What verification found: a verdict for each layer of the ladder, and for the pair."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sassir.findings import Finding

Verdict = Literal["holds", "fails", "undecided", "skipped"]

COMPARING = ("emulator", "symbolic", "gpu")
"""The layers that compare what the two compute; the others look at one file."""


class Check(NamedTuple):
    """One thing that was tried."""

    subject: str
    """A launch and its input, or a kernel."""
    verdict: Verdict
    detail: str = ""
    """What differs or fails, or why there is no verdict."""


class Layer(NamedTuple):
    """One rung of the ladder."""

    name: str
    verdict: Verdict
    detail: str
    """In one line."""
    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()
    seconds: float = 0


@dataclass(frozen=True)
class Report:
    """All rungs that were climbed, in order."""

    layers: tuple[Layer, ...]

    @property
    def verdict(self) -> Verdict:
        """`fails` if a layer does; `holds` if a layer that compares results does; else nothing is decided."""
        if any(layer.verdict == "fails" for layer in self.layers):
            return "fails"
        compared = any(layer.verdict == "holds" and layer.name in COMPARING for layer in self.layers)
        return "holds" if compared else "undecided"

    @property
    def good(self) -> bool:
        """The candidate may stand in for the original, as far as was tried."""
        return self.verdict == "holds"

    def failures(self) -> list[str]:
        """A line for each layer that fails."""
        return [f"{layer.name}: {layer.detail}" for layer in self.layers if layer.verdict == "fails"]


def summarise(name: str, checks: Iterable[Check], what: str) -> Layer:
    """The layer of these checks: it fails with the first one that does, and holds if one holds and none fails."""
    checks = tuple(checks)
    failed = next((check for check in checks if check.verdict == "fails"), None)
    if failed is not None:
        return Layer(name, "fails", f"{failed.subject}: {failed.detail}", checks)
    held = sum(check.verdict == "holds" for check in checks)
    rest = [check for check in checks if check.verdict != "holds"]
    text = f"{held} of {len(checks)} {what}"
    if rest:
        text += f"; {rest[0].subject}: {rest[0].detail}"
    return Layer(name, "holds" if held else "undecided", text, checks)
