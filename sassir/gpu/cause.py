"""Why a candidate is faster or slower, as far as resources and counters tell; for equal times, what bounds both."""

from __future__ import annotations

from collections.abc import Iterator

from sassir.gpu.pair import Measured, Side

NEAR = 0.8
"""Share of a ceiling from which on the ceiling is what bounds a kernel."""
CHANGE = 0.02
"""Relative change of instruction counts and stalls that is worth a word."""
_UNITS = {"bytes": "memory", "f32": "f32 arithmetic", "f64": "f64 arithmetic", "tensor": "the tensor cores"}


def explain(measured: Measured) -> str:
    """One line; says so when nothing explains the difference."""
    if measured.comparison.verdict == "same":
        near = [f"bound by {_UNITS[key]} ({share:.0%} of the ceiling)" for key, share in measured.shares.items() if share >= NEAR]
        return ", ".join(near) or _waiting(measured.original)
    changes = list(_changes(measured.original, measured.candidate))
    return "; ".join(changes) if changes else "no resource and no counter explains it"


def _changes(original: Side, candidate: Side) -> Iterator[str]:
    """The largest suspects first: memory that spills use, work, parallelism, waiting."""
    for name, unit in (("local", " bytes of local memory"), ("registers", " registers"), ("shared", " bytes of shared memory")):
        before, after = (max(getattr(resources, name) for resources in side.resources) for side in (original, candidate))
        if before != after:
            yield f"{before} → {after}{unit}"
    yield from _instructions(original, candidate)
    occupancy = [min(resources.occupancy for resources in side.resources) for side in (original, candidate)]
    if occupancy[0] != occupancy[1]:
        yield f"occupancy {occupancy[0]:.0%} → {occupancy[1]:.0%}"
    yield from _stalls(original, candidate)


def _instructions(original: Side, candidate: Side) -> Iterator[str]:
    if original.counters and candidate.counters:
        before, after = (sum(counters.executed for counters in side.counters) for side in (original, candidate))
        what = "executed"
    else:
        before, after = (sum(resources.instructions for resources in side.resources) for side in (original, candidate))
        what = "in the code"
    if abs(after / before - 1) >= CHANGE:
        yield f"{abs(after / before - 1):.0%} {'more' if after > before else 'fewer'} instructions {what}"


def _stalls(original: Side, candidate: Side) -> Iterator[str]:
    before, after = total_stalls(original), total_stalls(candidate)
    if not before or not after:
        return
    change = {reason: after.get(reason, 0) - before.get(reason, 0) for reason in before | after}
    reason = max(change, key=lambda reason: abs(change[reason]))
    if abs(change[reason]) >= CHANGE * sum(before.values()):
        figures = f"{before.get(reason, 0):.2f} → {after.get(reason, 0):.2f} cycles an instruction"
        yield f"{'more' if change[reason] > 0 else 'less'} waiting for {reason.replace('_', ' ')} ({figures})"


def _waiting(side: Side) -> str:
    """What its warps wait for most; nothing where nobody counted."""
    stalls = total_stalls(side)
    if not stalls:
        return ""
    reason = max(stalls, key=lambda reason: stalls[reason])
    return f"waits for {reason.replace('_', ' ')} ({stalls[reason]:.1f} of {sum(stalls.values()):.1f} cycles an instruction)"


def total_stalls(side: Side) -> dict[str, float]:
    """The stall reasons of all kernels of a side, weighted by the instructions that each executed."""
    executed = sum(counters.executed for counters in side.counters)
    total = dict[str, float]()
    for counters in side.counters:
        for reason, cycles in counters.stalls.items():
            total[reason] = total.get(reason, 0) + cycles * counters.executed / executed
    return total
