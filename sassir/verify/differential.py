"""Two cubins on the same inputs in the emulator: do they compute the same?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from sassir.emulator import Checks, Counts, emulate
from sassir.emulator.batch import Batch
from sassir.emulator.lanes import Lanes
from sassir.errors import EmulationError, LaunchError
from sassir.launch import Difference, Launch, Outputs, Tolerance, compare
from sassir.launch.data import STORAGE
from sassir.verify.cases import Case, cases
from sassir.verify.report import Check, Layer, summarise
from sassir.verify.writer import LastWriter, Written

_STRICTNESS = (Checks(), Checks(registers=False), Checks(registers=False, races=False))
"""The candidate is held to the strictest of these that the original keeps."""
_UNDEFINED = (0, 0xFFFFFFFF, 0x40490FDA)
"""What registers may hold that were never written: zero and false, NaN and true, a number and false."""
_PATIENCE, _LEAST_STEPS = 4, 50_000
"""The candidate may execute so many times as many instructions as the original, and at least so many."""


class OutOfTimeError(Exception):
    """The emulation was given up."""


class Deadline:
    """An observer of the emulator that gives up at some time of `time.perf_counter`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.perf_counter() + seconds

    def __call__(self, batch: Batch, place: int, lanes: Lanes) -> None:
        """Raises OutOfTimeError."""
        if time.perf_counter() > self._end:
            raise OutOfTimeError(f"not emulated to its end within {self.seconds:g} s")


class Expected(NamedTuple):
    """What the original does with one input."""

    outputs: Outputs
    checks: Checks
    """The strictest that it keeps, and how many instructions a candidate may execute."""


class Original:
    """The cubin that decides what is right. What it computes is kept, for the next candidate."""

    def __init__(self, cubin: bytes, where: str = "the original") -> None:
        self.cubin = cubin
        self.where = where
        self._known: dict[Launch, Expected | str] = {}

    def expected(self, launch: Launch, deadline: Deadline) -> Expected | str:
        """What it computes, or why that is not defined or not known. Raises OutOfTimeError, and LaunchError where it does not fit."""
        if launch not in self._known:
            self._known[launch] = self._run(launch, deadline)
        return self._known[launch]

    def _run(self, launch: Launch, deadline: Deadline) -> Expected | str:
        reason = ""
        for checks in _STRICTNESS:
            counts = Counts()
            try:
                outputs = emulate(self.cubin, launch, self.where, checks=checks, observer=deadline, counts=counts)
            except EmulationError as error:
                reason = reason or str(error)
            else:
                return Expected(outputs, replace(checks, steps=max(_PATIENCE * counts.instructions, _LEAST_STEPS)))
        return reason


def differential(
    original: Original,
    candidate: bytes,
    launches: Iterable[Launch],
    *,
    noalias: bool = False,
    tolerance: Tolerance | None = None,
    broken_fact: Callable[[Launch], str | None] = lambda launch: None,
    seconds: float = 20,
) -> Layer:
    """Compare over all launches, each with several inputs, and stop at the first difference.

    A launch is left out if `broken_fact` names a fact that does not hold in it. Inputs for which there is no time are undecided.
    Raises LaunchError where a launch does not fit the original.
    """
    deadline = Deadline(seconds)

    def checks() -> Iterator[Check]:
        for case in _interleaved(launches, noalias):
            if (broken := broken_fact(case.launch)) is not None:
                yield Check(str(case), "skipped", f"the candidate is made for launches with {broken}")
                continue
            check = compare_in_emulator(original, candidate, case, deadline, tolerance)
            yield check
            if check.verdict == "fails":
                return

    return summarise("emulator", checks(), f"inputs give {'equal results' if tolerance is None else 'results within tolerance'}")


def _interleaved(launches: Iterable[Launch], noalias: bool) -> Iterator[Case]:
    """All launches as they are stated, smallest first; then each with its other inputs."""
    ordered = [cases(launch, noalias) for launch in sorted(launches, key=lambda launch: launch.nbytes)]
    yield from [next(kinds) for kinds in ordered]
    for kinds in ordered:
        yield from kinds


def compare_in_emulator(original: Original, candidate: bytes, case: Case, deadline: Deadline, tolerance: Tolerance | None = None) -> Check:
    """The verdict on one input: undecided where the original itself fails or time is up. Raises LaunchError as `differential`."""
    try:
        expected = original.expected(case.launch, deadline)
        if isinstance(expected, str):
            return Check(str(case), "undecided", f"the original: {expected}")
        return _compare(original, expected, candidate, case, deadline, tolerance)
    except OutOfTimeError as error:
        return Check(str(case), "undecided", str(error))


def _compare(
    original: Original, expected: Expected, candidate: bytes, case: Case, deadline: Deadline, tolerance: Tolerance | None
) -> Check:
    try:
        outputs = emulate(candidate, case.launch, "the candidate", checks=expected.checks, observer=deadline)
    except (EmulationError, LaunchError) as error:
        harmless = expected.checks.registers and _ignores_undefined(expected, candidate, case.launch, deadline)
        return Check(str(case), "holds" if harmless else "fails", str(error))
    difference = compare(case.launch, expected.outputs, outputs, tolerance)
    if difference is None:
        return Check(str(case), "holds")
    left, right = [find_writer(cubin, case.launch, difference, expected.checks) for cubin in (original.cubin, candidate)]
    written = f"written by {left or 'nobody'} in the original, by {right or 'nobody'} in the candidate"
    return Check(str(case), "fails", f"{difference}; {written}")


def _ignores_undefined(expected: Expected, candidate: bytes, launch: Launch, deadline: Deadline) -> bool:
    """Whether the results are the original's bit for bit, whatever registers hold that were never written.

    Two registers exchanged by three XORs both count as never written if one of them was not.
    """
    try:
        for undefined in _UNDEFINED:
            checks = replace(expected.checks, registers=False, undefined=undefined)
            if compare(launch, expected.outputs, emulate(candidate, launch, "the candidate", checks=checks, observer=deadline)):
                return False
    except (EmulationError, LaunchError):
        return False
    return True


def find_writer(cubin: bytes, launch: Launch, difference: Difference, checks: Checks) -> Written | None:
    """The last store to the element that differs; None if there is none. Raises EmulationError as `emulate`."""
    buffer = next(b for b in launch.outputs if b.name == difference.buffer)
    size, place = STORAGE[buffer.dtype].itemsize, 0
    for i, extent in zip(difference.index, buffer.shape, strict=True):
        place = place * extent + i
    writer = LastWriter(buffer.name, size * place, size)
    emulate(cubin, launch, checks=checks, observer=writer)
    return writer.found
