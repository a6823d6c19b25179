"""Results of measurements as JSON and as Markdown tables: where, when, with what, and every figure."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any, NamedTuple

from sassir.gpu.cause import total_stalls
from sassir.gpu.device import DeviceInfo
from sassir.gpu.pair import Measured, Result, Side

_UNITS = {"bytes": "GB/s copied", "f32": "GFLOP/s f32", "f64": "GFLOP/s f64", "tensor": "GFLOP/s on tensor cores (f16)"}


class Setting(NamedTuple):
    """Under which circumstances something was measured."""

    device: DeviceInfo
    ceilings: Mapping[str, float]
    """Work a second, by the keys of WORK, measured in the same run."""
    commit: str | None
    counters: str
    """Where executed instructions and stalls come from: `ncu`, or why there are none."""
    seconds: float
    """What the whole run took, ceilings and counters included."""

    def sentence(self) -> str:
        """One line of text."""
        commit = f", commit {self.commit}" if self.commit else ""
        device = f"{self.device.name}, driver {self.device.driver}, CUDA {self.device.cuda}"
        return f"{device}, {date.today().isoformat()}{commit}, {self.seconds:.0f} s"

    def ceilings_sentence(self) -> str:
        """One line of text."""
        return "Measured ceilings: " + ", ".join(f"{rate / 1e9:,.0f} {_UNITS[key]}" for key, rate in self.ceilings.items())


def find_commit() -> str | None:
    """The commit checked out in the working folder, if git knows."""
    try:
        result = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def as_json(setting: Setting, results: Sequence[Result], **more: object) -> dict[str, Any]:
    """Everything as plain objects; times in seconds, sizes in bytes, rates a second."""
    head = {"device": setting.device._asdict(), "date": date.today().isoformat(), "commit": setting.commit}
    run = {"seconds": round(setting.seconds, 1), "counters": setting.counters}
    return {**head, **run, **more, "ceilings": dict(setting.ceilings), "results": [_result_json(result) for result in results]}


def _result_json(result: Result) -> dict[str, Any]:
    found = asdict(result)
    if result.error:  # JSON has no infinity
        found["error"] = {key: amount if math.isfinite(amount) else None for key, amount in found["error"].items()}
    if result.measured:
        comparison = result.measured.comparison
        times = {"original": comparison.original._asdict(), "candidate": comparison.candidate._asdict()}
        found["measured"] |= {"comparison": comparison._asdict() | times}
        for name, side in (("original", result.measured.original), ("candidate", result.measured.candidate)):
            rows = {"resources": side.resources, "counters": side.counters}
            found["measured"][name] = {key: [row._asdict() for row in records] for key, records in rows.items()}
    return found


def markdown(setting: Setting, results: Sequence[Result], title: str, *remarks: str) -> str:
    """A table with a line for each launch that was timed or is not good."""
    head = [f"{setting.sentence()}.", f"{setting.ceilings_sentence()}.", f"Counters: {setting.counters}.", *remarks]
    lines = [f"# {title}", "", *head, ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += ["| " + " | ".join(row(result)) + " |" for result in results if result.measured or not result.good]
    lines += ["", *summary(results)]
    return "\n".join(lines) + "\n"


COLUMNS = (
    "kernel", "launch", "results", "original µs", "candidate µs", "ratio", "99 % interval", "verdict",
    "of ceiling", "registers", "local", "occupancy", "instructions", "executed", "cause",
)  # fmt: skip


_RESOURCES = (("registers", "{}"), ("local", "{}"), ("occupancy", "{:.0%}"), ("instructions", "{}"))


def row(result: Result) -> list[str]:
    """The cells of a launch, in the order of COLUMNS."""
    measured = result.measured
    if measured is None:
        return [result.kernel, result.launch, f"**{result.outcome}**", *[""] * (len(COLUMNS) - 4), result.detail]
    comparison = measured.comparison
    times = [f"{side.median * 1e6:.1f}" for side in (comparison.original, comparison.candidate)]
    ratio = [f"{comparison.ratio:.3f}", f"{comparison.low:.3f} to {comparison.high:.3f}", comparison.verdict]
    share = ", ".join(f"{share:.0%} {key}" for key, share in measured.shares.items())
    resources = [_change(measured, name, form) for name, form in _RESOURCES]
    return [result.kernel, result.launch, result.outcome, *times, *ratio, share, *resources, _executed(measured), result.cause]


def _change(measured: Measured, name: str, form: str) -> str:
    return _arrow(*("/".join(form.format(getattr(r, name)) for r in side.resources) for side in (measured.original, measured.candidate)))


def _executed(measured: Measured) -> str:
    """Warp instructions of each kernel, where somebody counted."""
    return _arrow(*("/".join(f"{c.executed:,}" for c in side.counters) for side in (measured.original, measured.candidate)))


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def summary(results: Sequence[Result]) -> Iterator[str]:
    """Counts of outcomes and verdicts, and the geometric mean of the ratios."""
    outcomes = [result.outcome for result in results]
    yield f"{len(results)} launches: " + ", ".join(f"{outcomes.count(o)} {o}" for o in dict.fromkeys(outcomes)) + "."
    timed = [result.measured.comparison for result in results if result.measured]
    if timed:
        verdicts = [comparison.verdict for comparison in timed]
        mean = math.exp(sum(math.log(comparison.ratio) for comparison in timed) / len(timed))
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        yield f"{len(timed)} timed: {counts}; geometric mean of the ratios {mean:.3f}."


def describe(result: Result) -> Iterator[tuple[str, str, str]]:
    """What is known of each side, as rows of a table: what, original, candidate."""
    if result.measured is None:
        return
    measured, times = result.measured, (result.measured.comparison.original, result.measured.comparison.candidate)
    sides = (measured.original, measured.candidate)
    yield "median µs", *_pair(f"{t.median * 1e6:.2f}" for t in times)
    yield "minimum µs", *_pair(f"{t.minimum * 1e6:.2f}" for t in times)
    yield "spread", *_pair(f"{t.spread:.1%}" for t in times)
    for name, form in (("registers", "{}"), ("local", "{} B"), ("shared", "{} B"), ("instructions", "{}"), ("occupancy", "{:.0%}")):
        yield name, *_pair(", ".join(form.format(getattr(r, name)) for r in side.resources) for side in sides)
    if all(side.counters for side in sides):
        yield "executed", *_pair(f"{sum(c.executed for c in side.counters):,}" for side in sides)
        yield "waiting for", *_pair(_top_stalls(side) for side in sides)


def _pair(texts: Iterator[str]) -> tuple[str, str]:
    original, candidate = texts
    return original, candidate


def _top_stalls(side: Side, most: int = 3) -> str:
    ranked = sorted(total_stalls(side).items(), key=lambda item: -item[1])[:most]
    return ", ".join(f"{reason.replace('_', ' ')} {warps:.2f}" for reason, warps in ranked)


def rates(measured: Measured) -> str:
    """What the candidate reaches, as text: `4100 GB/s (95 % of the ceiling)`."""
    texts = {key: f"{rate / 1e9:,.0f} {_UNITS[key].split()[0]}" for key, rate in measured.reached.items()}
    return ", ".join(f"{text} ({measured.shares[key]:.0%} of the ceiling)" for key, text in texts.items())
