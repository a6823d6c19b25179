"""What the suite gained, and why: the figures of docs/gains.md. The sentences and the bounds beside them are in gains.toml."""

from __future__ import annotations

import math
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from newest import RESULTS, newest, timed

BENCH = Path(__file__).parent
LAUNCH = "full"
"""The launch whose figures the tables show; the suite measures a smaller one beside it."""
GAIN, SURE_GAIN, LOSS = 1.02, 1.2, 0.99
"""Ratios from which on a gain is worth a line, counts as one of the large ones, and below which there is a loss."""
CAPS = (32, 64, 128)
"""The values of -maxrregcount that were built and measured."""
ENOUGH = 0.8
"""The share of the bound, as logarithms, from which on nothing needs explaining."""
WIDTH = 140
"""Characters of a line of text."""


def gains(found: Mapping[str, Any]) -> Iterator[str]:
    """A row for each kernel that became faster, the largest gain first."""
    caps = best_caps()
    yield "\n| kernel | µs | ratio | best register cap | registers | local bytes | instructions | occupancy |"
    yield "|---|---|---|---|---|---|---|---|"
    for kernel, result in _gained(found):
        comparison = result["comparison"]
        times = [f"{1e6 * comparison[side]['median']:,.1f}" for side in ("original", "candidate")]
        resources = [result[side]["resources"] for side in ("original", "candidate")]
        columns = [_change([_sum(r, key) for r in resources]) for key in ("registers", "local", "instructions")]
        occupancy = _change([f"{min(k['occupancy'] for k in r):.0%}" for r in resources])
        cap = caps.get((kernel, LAUNCH))
        shown = "no source" if cap is None else f"{cap.ratio:.2f}" + (f" ({cap.registers})" if cap.ratio >= GAIN else "")
        yield f"| {kernel} | {' → '.join(times)} | {comparison['ratio']:.2f} | {shown} | {' | '.join(columns)} | {occupancy} |"


def totals(found: Mapping[str, Any]) -> Iterator[str]:
    """Geometric means, of the CUDA kernels and of the whole suite, and the best register caps beside them."""
    cuda = {file.stem for file in (BENCH / "kernels").glob("*.cu")}
    ratios = {place: result["comparison"]["ratio"] for place, result in timed(found).items()}
    caps = {place: max(1.0, cap.ratio) for place, cap in best_caps().items()}
    yield "\n| | launches | geometric mean | at least 1.2 | below 0.99 | best register cap, or none |\n|---|---|---|---|---|---|"
    for name, kernels in ((f"{len(cuda)} CUDA kernels", cuda), ("with Triton and CuPy", {kernel for kernel, _ in ratios})):
        for launches, what in (({LAUNCH}, LAUNCH), ({launch for _, launch in ratios}, "all that are timed")):
            chosen = {place: ratio for place, ratio in ratios.items() if place[0] in kernels and place[1] in launches}
            large = sum(ratio >= SURE_GAIN for ratio in chosen.values())
            lost = ", ".join(f"{kernel} {launch} {ratio:.3f}" for (kernel, launch), ratio in chosen.items() if ratio < LOSS)
            beside = f"{_mean([caps[place] for place in chosen]):.3f}" if caps.keys() >= chosen.keys() else "no source for all"
            yield f"| {name} | {what} | {_mean(chosen.values()):.3f} | {large} of {len(chosen)} | {lost or 'none'} | {beside} |"


def reasons(found: Mapping[str, Any]) -> Iterator[str]:
    """For each kernel that became faster: what was inefficient, what changed, why that is faster; and what its warps waited for."""
    told = _told()
    counted = newest("suite-identity", RESULTS)
    counters = timed(counted[1], LAUNCH) if counted else {}
    for kernel, result in _gained(found):
        sentences = told.get(kernel, {})
        text = " ".join(sentences[part].strip() for part in ("inefficient", "changed", "faster")) if sentences else "Not looked at yet."
        before = _stalls(result["original"]) or _stalls(counters.get((kernel, LAUNCH), result)["original"])
        after = _stalls(result["candidate"])
        stalls = f" Stalls of the original: {before}{f'; now: {after}' if after else ''}." if before else ""
        yield "\n" + textwrap.fill(f"**{kernel}.** {text}{stalls}", WIDTH)


def bounds(found: Mapping[str, Any]) -> Iterator[str]:
    """How much of what a change of the source reaches the machine code reaches; where too little, why."""
    measured = timed(found, LAUNCH)
    rows = [(kernel, entry) for kernel, entry in _told().items() if "bound" in entry and (kernel, LAUNCH) in measured]
    yield "\n| kernel | change of the source | gains | sassir | share (logarithms) |\n|---|---|---|---|---|"
    short: list[str] = []
    for kernel, entry in rows:
        ratio = measured[kernel, LAUNCH]["comparison"]["ratio"]
        share = math.log(ratio) / math.log(entry["bound"])
        yield f"| {kernel} | {entry['variant']} | {entry['bound']:.2f} | {ratio:.2f} | {share:.0%} |"
        if share < ENOUGH:
            behind = " ".join(entry.get("behind", "not looked at yet.").split())
            short.append("\n" + textwrap.fill(f"**{kernel}** stays behind: {behind}", WIDTH))
    yield from short


class Cap(NamedTuple):
    """A build with a register cap."""

    ratio: float
    registers: int


def best_caps() -> dict[tuple[str, str], Cap]:
    """By kernel and launch, the fastest of the builds with a register cap."""
    best: dict[tuple[str, str], Cap] = {}
    for cap in CAPS:
        result = newest(f"suite-maxrregcount-{cap}-builds", RESULTS)
        for place, measured in timed(result[1]).items() if result else ():
            mine = Cap(measured["comparison"]["ratio"], cap)
            best[place] = max(mine, best.get(place, mine))
    return best


def _gained(found: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The kernels that became faster, the largest gain first."""
    measured = [(kernel, result) for (kernel, _), result in timed(found, LAUNCH).items() if result["comparison"]["ratio"] >= GAIN]
    return sorted(measured, key=lambda pair: -pair[1]["comparison"]["ratio"])


def _told() -> dict[str, dict[str, Any]]:
    """By kernel, what gains.toml says."""
    return tomllib.loads((BENCH / "gains.toml").read_text(encoding="utf-8"))


def _stalls(side: Mapping[str, Any]) -> str:
    """What a warp waits for most, in cycles for each instruction that it executes, where that was counted."""
    kernels: Sequence[Mapping[str, Any]] = side["counters"]
    texts = [", ".join(_longest(kernel["stalls"])) for kernel in kernels]
    instructions = sum([kernel["executed"] for kernel in kernels])
    return f"{'; '.join(texts)} cycles an instruction, {instructions / 1e6:,.1f} million instructions" if kernels else ""


def _longest(stalls: Mapping[str, float]) -> list[str]:
    longest = sorted(stalls.items(), key=lambda stall: -stall[1])[:3]
    return [f"{reason.replace('_', ' ')} {cycles:.1f}" for reason, cycles in longest if cycles >= 1]


def _sum(resources: Iterable[Mapping[str, Any]], key: str) -> str:
    """Of the kernels of a launch: the most registers and local memory, all instructions."""
    values = [kernel[key] for kernel in resources]
    return str(sum(values) if key == "instructions" else max(values))


def _change(pair: Iterable[str]) -> str:
    return " → ".join(dict.fromkeys(pair))


def _mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))
