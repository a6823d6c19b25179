"""The table of `sassir optimize`: what became of each kernel, in the code, by the timing model and on the device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sassir.analysis.occupancy import occupancy
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import KernelSummary, summarise
from sassir.launch import Launch
from sassir.optimize import Optimised, Outcome

if TYPE_CHECKING:
    from sassir.gpu.statistics import Comparison


class Gains(NamedTuple):
    """How many times as fast kernels are."""

    predicted: Mapping[str, float]
    """By kernel; none where loops are not known."""
    measured: Mapping[str, Comparison]
    """By launch; empty without a GPU."""
    launches: Mapping[str, Launch]
    """The launches of the file."""

    def of(self, kernel: str) -> dict[str, Comparison]:
        """The measured launches that start `kernel`."""
        return {name: found for name, found in self.measured.items() if any(s.kernel == kernel for s in self.launches[name].steps)}


def print_table(original: bytes, made: Optimised, gains: Gains, case: Launch | None) -> None:
    """A row for each kernel, before → after; columns of which nothing is known are left out. `case`: whose blocks count for occupancy."""
    from rich.console import Console
    from rich.table import Table

    found = [summarise(Cubin.read(data)) for data in (original, made.cubin)]
    before, after = ({kernel.name: kernel for kernel in summary.kernels} for summary in found)
    rows = [_row(o, before[o.kernel], after[o.kernel], found[0].arch, gains, case) for o in made.outcomes]
    names = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    table = Table(*names, box=None)
    for row in rows:
        table.add_row(*[row[name] for name in names])
    console = Console(markup=False, highlight=False, soft_wrap=True)
    console.print(table)
    for launch, found in gains.measured.items():
        before_us, after_us = (1e6 * times.median for times in (found.original, found.candidate))
        interval = f"{found.ratio:.3f} x, {found.low:.3f} to {found.high:.3f}"
        console.print(f"launch {launch}: {before_us:.2f} → {after_us:.2f} µs, {interval}")
    for outcome in made.outcomes:
        if outcome.facts:
            console.print(f"{outcome.kernel} relies on {', '.join(outcome.facts)}")
        if outcome.reason:
            console.print(f"{outcome.kernel} stays as it was: {outcome.reason}")


def _row(outcome: Outcome, old: KernelSummary, new: KernelSummary, arch: str, gains: Gains, case: Launch | None) -> dict[str, str]:
    return {
        "kernel": outcome.kernel,
        "instructions": _change(*[str(count) for count in outcome.instructions]),
        "registers": _change(*[str(kernel.registers) for kernel in (old, new)]),
        "spills": _change(*[f"{kernel.stack or 0} B" for kernel in (old, new)]),
        "occupancy": _change(*[_occupancy(kernel, arch, case) for kernel in (old, new)]),
        "predicted": f"{gains.predicted[outcome.kernel]:.2f} x" if outcome.kernel in gains.predicted else "",
        "measured": ", ".join([f"{found.ratio:.2f} x" for found in gains.of(outcome.kernel).values()]),
    }


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _occupancy(kernel: KernelSummary, arch: str, case: Launch | None) -> str:
    """The share of a multiprocessor's warps that can be resident in the first launch of the kernel."""
    step = next((s for s in case.steps if s.kernel == kernel.name), None) if case is not None else None
    if step is None or kernel.registers is None:
        return ""
    return f"{occupancy(arch, kernel.registers, kernel.asked_shared + step.shared, math.prod(step.block), kernel.barriers).share:.0%}"


def as_json(made: Optimised, gains: Gains) -> dict[str, Any]:
    """What the certificate says of each kernel."""
    return {
        outcome.kernel: {
            "changed": outcome.changed,
            "reason": outcome.reason,
            "predicted": gains.predicted.get(outcome.kernel),
            "measured": {launch: _plain(found) for launch, found in gains.of(outcome.kernel).items()},
        }
        for outcome in made.outcomes
    }


def _plain(found: Comparison) -> dict[str, Any]:
    """Times in seconds."""
    return found._asdict() | {"original": found.original._asdict(), "candidate": found.candidate._asdict()}
