"""The ladder of verification: container, schedule, allocation, emulator; and whatever rungs the caller adds.

    report = verify_pair(original, candidate, file.launches.values(), file.facts)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sassir.cubin.cubin import Cubin
from sassir.errors import SassirError
from sassir.findings import Finding
from sassir.launch import Facts, Launch, Tolerance
from sassir.translate.cubin import read_program
from sassir.verify.allocation import allocation_findings
from sassir.verify.assumptions import Assumptions, broken_fact
from sassir.verify.container import check_container
from sassir.verify.differential import Original, differential
from sassir.verify.report import Layer, Report
from sassir.verify.schedule import check_schedule

NO_FACTS = Facts()
EMULATOR_SECONDS = 15
"""Time for the emulator, so that the whole ladder takes half a minute at most."""


class Pair(NamedTuple):
    """Two cubins that should do the same, and for which launches."""

    original: Original
    candidate: bytes
    launches: tuple[Launch, ...]
    stated: Facts
    """What holds in all launches."""
    assumptions: Assumptions | None
    """What the candidate relies on; None where nobody has recorded it, and it may be whatever is stated."""
    tolerance: Tolerance | None
    """How far results may differ; None: bit for bit."""

    @property
    def noalias(self) -> bool:
        """The candidate may rely on it that no two buffers overlap."""
        used = None if self.assumptions is None else [name for a in self.assumptions.values() for name in a.used]
        return self.stated.noalias and (used is None or "noalias" in used)

    def broken_fact(self, launch: Launch) -> str | None:
        """A fact that the candidate relies on and that does not hold in `launch`."""
        if not self.assumptions:
            return None
        return broken_fact(self.assumptions, launch, self.stated, Cubin.read(self.candidate).arch)


Rung = Callable[[Pair], Layer]


def verify_pair(
    original: bytes | Original,
    candidate: bytes,
    launches: Iterable[Launch],
    stated: Facts = NO_FACTS,
    *,
    assumptions: Assumptions | None = None,
    tolerance: Tolerance | None = None,
    more: Sequence[Rung] = (),
) -> Report:
    """Climb the ladder, and then the rungs in `more`. Whatever is wrong with the candidate is a verdict, not an exception.

    Give an `Original` to verify several candidates: it is emulated once. A container that is not sound ends the climb, as
    nothing behind it can be trusted. A tolerance is for a candidate that uses a float fact.

    Raises SassirError where the original cannot be read or does not fit the launches.
    """
    known = original if isinstance(original, Original) else Original(original)
    pair = Pair(known, candidate, tuple(launches), stated, assumptions, tolerance)
    layers: list[Layer] = []
    for rung in (container, schedule, allocation, emulator, *more):
        begin = time.perf_counter()
        layers.append(rung(pair)._replace(seconds=time.perf_counter() - begin))
        if layers[0].verdict == "fails":
            break
    return Report(tuple(layers))


def container(pair: Pair) -> Layer:
    """Sections, symbols, attributes, relocations and sizes of the candidate agree, and it is for the same architecture."""
    layer = _compare_findings("container", pair, check_container)
    if layer.verdict == "fails":
        return layer
    original, candidate = (Cubin.read(cubin).arch for cubin in (pair.original.cubin, pair.candidate))
    if original != candidate:
        return layer._replace(verdict="fails", detail=f"the candidate is for {candidate}, the original for {original}")
    return layer


def schedule(pair: Pair) -> Layer:
    """Stall counts and scoreboards of the candidate cover every dependence."""
    return _compare_findings("schedule", pair, lambda cubin: check_schedule(read_program(cubin)))


def allocation(pair: Pair) -> Layer:
    """Each register of the candidate holds the value that is read from it."""
    return _compare_findings("allocation", pair, allocation_findings)


def emulator(pair: Pair) -> Layer:
    """Both compute the same in the emulator."""
    return differential(
        pair.original,
        pair.candidate,
        pair.launches,
        noalias=pair.noalias,
        tolerance=pair.tolerance,
        broken_fact=pair.broken_fact,
        seconds=EMULATOR_SECONDS,
    )


def _compare_findings(name: str, pair: Pair, check: Callable[[bytes], list[Finding]]) -> Layer:
    """The candidate must not have an error that the original does not have."""
    try:
        before, after = check(pair.original.cubin), check(pair.candidate)
    except SassirError as error:
        return Layer(name, "undecided", str(error))
    known = {_without_place(finding) for finding in before}
    new = [finding for finding in after if finding.error and _without_place(finding) not in known]
    if new:
        more = f" (and {len(new) - 1} more)" if len(new) > 1 else ""
        place = new[0].kernel if new[0].offset is None else f"{new[0].kernel}+{new[0].offset:#x}"
        return Layer(name, "fails", f"{place}: {new[0].message}{more}", findings=tuple(after))
    text = f"{len(after)} findings, all of them in the original too or warnings" if after else "no findings"
    return Layer(name, "holds", text, findings=tuple(after))


def _without_place(finding: Finding) -> tuple[str, str, str]:
    return finding.rule, finding.kernel, finding.message
