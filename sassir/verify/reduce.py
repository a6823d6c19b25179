"""A failing verification made smaller: a smaller launch, fewer passes, fewer changed instructions that still fail.

Lists are reduced by delta debugging (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, TSE 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.program import Function, Line, Program
from sassir.errors import LaunchError
from sassir.launch import Launch
from sassir.translate.cubin import read_program, write_cubin
from sassir.verify.cases import Case, cases
from sassir.verify.differential import Deadline, Original, compare_in_emulator
from sassir.verify.report import Check

Item = TypeVar("Item")
Make = Callable[[Sequence[str], Launch], bytes | None]
"""The candidate that a list of passes makes of the original, for a launch; None where they make none."""
Resize = Callable[[str, dict[str, int]], Launch]
"""The launch of that name with other values for some sizes. Raises LaunchError."""

SECONDS = 20
"""For one attempt in the emulator."""


def minimise(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """A part of `items`, in order, that fails, and does not without any one of its items. `items` itself has to fail."""
    kept, parts = [*items], 2
    while len(kept) >= 2:
        chunks = [kept[len(kept) * i // parts : len(kept) * (i + 1) // parts] for i in range(parts)]
        rests = [[x for j, chunk in enumerate(chunks) if j != i for x in chunk] for i in range(parts)]
        smaller = next((part for part in (*chunks, *rests) if len(part) < len(kept) and fails(part)), None)
        if smaller is not None:
            kept, parts = smaller, 2 if smaller in chunks else max(parts - 1, 2)
        elif parts == len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return kept if len(kept) != 1 or not fails([]) else []


class Failing(NamedTuple):
    """A way to make a candidate, and an input on which that differs from the original."""

    original: Original
    make: Make
    passes: tuple[str, ...]
    case: Case
    candidate: bytes = b""
    check: Check = Check("", "undecided")

    def attempt(self, passes: Sequence[str], case: Case) -> Failing | None:
        """The same with other passes or another input, if it fails as well."""
        candidate = self.make(passes, case.launch)
        if candidate is None:
            return None
        found = self._replace(passes=tuple(passes), case=case, candidate=candidate)
        return found.compared()

    def compared(self) -> Failing | None:
        """With the verdict of the emulator, if that is that it fails."""
        check = compare_in_emulator(self.original, self.candidate, self.case, Deadline(SECONDS))
        return self._replace(check=check) if check.verdict == "fails" else None


def find_failure(original: Original, make: Make, passes: Sequence[str], launches: Sequence[Launch], noalias: bool) -> Failing | None:
    """The first input, smallest launch first, on which original and candidate differ in the emulator."""
    for launch in sorted(launches, key=lambda launch: launch.nbytes):
        for case in cases(launch, noalias):
            found = Failing(original, make, tuple(passes), case).attempt(passes, case)
            if found is not None:
                return found
    return None


def shrink_launch(failing: Failing, resize: Resize, noalias: bool) -> tuple[dict[str, int], Failing]:
    """The sizes that can be smaller, as small as they can be one after the other, and the failure with them and the same kind of input."""
    sizes: dict[str, int] = {}
    while True:
        for changed in [{**sizes, **one} for one in _smaller(failing.case.launch)]:
            case = _resized(failing.case, resize, changed, noalias)
            smaller = failing.attempt(failing.passes, case) if case is not None else None
            if smaller is not None:
                sizes, failing = changed, smaller
                break
        else:
            return sizes, failing


def _smaller(launch: Launch) -> Iterator[dict[str, int]]:
    """A smaller value for one of the sizes, the boldest first."""
    for name, value in launch.sizes.items():
        if isinstance(value, int):
            yield from [{name: new} for new in dict.fromkeys((1, value // 8, value // 2, value - 1)) if 0 < new < value]


def _resized(case: Case, resize: Resize, sizes: dict[str, int], noalias: bool) -> Case | None:
    try:
        launch = resize(case.launch.name, sizes)
    except LaunchError:
        return None
    return next((found for found in cases(launch, noalias) if found.kind == case.kind), None)


def reduce_passes(failing: Failing) -> Failing:
    """The passes without which it does not fail."""
    kept = minimise(failing.passes, lambda chosen: failing.attempt(chosen, failing.case) is not None)
    return failing.attempt(kept, failing.case) or failing


class Region(NamedTuple):
    """Adjacent instructions that were changed."""

    function: int
    lines: range

    def describe(self, before: Program, after: Program) -> Iterator[str]:
        """A line for each instruction."""
        old, new = before.functions[self.function], after.functions[self.function]
        for i in self.lines:
            yield f"{old.name}+{INSTRUCTION_BYTES * i:#x}: `{old.lines[i].instruction}` became `{new.lines[i].instruction}`"


def reduce_regions(failing: Failing) -> tuple[list[Region], Failing] | None:
    """The changed regions without which it does not fail, and the failure of the original with them alone.

    None where the code was laid out anew: then no part of one file fits into the other.
    """
    before, after = read_program(failing.original.cubin), read_program(failing.candidate)
    sizes = [[len(function.lines) for function in program.functions] for program in (before, after)]
    if sizes[0] != sizes[1]:
        return None

    def attempt(regions: Sequence[Region]) -> Failing | None:
        return failing._replace(candidate=write_cubin(_mixed(before, after, regions))).compared()

    regions = _regions(before, after)
    if attempt(regions) is None:  # something other than the code differs
        return None
    kept = minimise(regions, lambda chosen: attempt(chosen) is not None)
    return kept, attempt(kept) or failing


def _regions(before: Program, after: Program) -> list[Region]:
    found: list[Region] = []
    for number, (old, new) in enumerate(zip(before.functions, after.functions, strict=True)):
        changed = [i for i, (a, b) in enumerate(zip(old.lines, new.lines, strict=True)) if a.instruction != b.instruction]
        for _, group in groupby(enumerate(changed), lambda pair: pair[1] - pair[0]):
            lines = [i for _, i in group]
            found.append(Region(number, range(lines[0], lines[-1] + 1)))
    return found


def _mixed(before: Program, after: Program, regions: Sequence[Region]) -> Program:
    """The original with some regions as they are in the candidate."""
    functions: list[Function] = []
    for number, (old, new) in enumerate(zip(before.functions, after.functions, strict=True)):
        chosen = {i for region in regions if region.function == number for i in region.lines}
        lines = [Line(new.lines[i].instruction, line.origin) if i in chosen else line for i, line in enumerate(old.lines)]
        functions.append(old._replace(lines=tuple(lines)))
    return before._replace(functions=tuple(functions))
