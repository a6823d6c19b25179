"""What the timing model is held against: cubins of the suite, original and changed, with the times that an H200 took for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from build_kernels import build
from newest import newest, timed

from sassir.cli.bench_suite import Job, make_candidate
from sassir.errors import SassirError
from sassir.gpu.suite import Entry
from sassir.timing import Profile, Traffic
from sassir.timing.kernels import Kernel, first_level, read_kernels, shapes_of
from sassir.timing.sample import sample

ARCH = "sm_90"
ORIGINAL = "suite-identity"
CHANGED = {
    "suite-optimize-launch": "optimize -p launch",
    "suite-optimize-default": "optimize -p default",
    "suite-sass-virtualise-sass-schedule-sass-allocate-registers-sass-schedule-sass-assign-control": "order and registers alone",
    "suite-sass-assign-control": "control codes alone",
    "suite-maxrregcount-32-builds": "-maxrregcount 32",
    "suite-maxrregcount-64-builds": "-maxrregcount 64",
    "suite-maxrregcount-128-builds": "-maxrregcount 128",
}
"""The results in bench/results, of each the newest, and what they are of."""
_BUILDS = "maxrregcount-"


class Case(NamedTuple):
    """One cubin with one launch."""

    entry: Entry
    launch: str
    suite: str
    """What it was measured as, see CHANGED."""
    cubin: bytes
    seconds: float
    """Measured: median."""
    share: float
    """Of the copy rate, that the launch reached by its bytes."""
    ratio: float
    """Measured: original over this one."""

    @property
    def place(self) -> tuple[str, str]:
        """Kernel and launch."""
        return self.entry.kernel, self.launch


def originals(entries: Sequence[Entry], launch: str | None) -> Iterator[Case]:
    """What nobody changed: one launch of each kernel, or all that were timed."""
    yield from _cases(entries, ORIGINAL, launch, "original", None)


def changed(entries: Sequence[Entry], launch: str | None, folder: Path) -> Iterator[Case]:
    """Every candidate that was timed and is not the original; from `folder`, SUITE/KERNEL.LAUNCH.cubin, where it is there."""
    for suite, what in CHANGED.items():
        for case in _cases(entries, suite, launch, "candidate", folder / suite):
            if _code(case.cubin, controls=True) != _code(case.entry.cubin.read_bytes(), controls=True):
                yield case._replace(suite=what)


def _cases(entries: Sequence[Entry], suite: str, launch: str | None, side: str, folder: Path | None) -> Iterator[Case]:
    result = newest(suite)
    if result is None:
        return
    by_kernel = {entry.kernel: entry for entry in entries}
    for (kernel, name), measured in timed(result[1], launch).items():
        if kernel in by_kernel:
            entry, times = by_kernel[kernel], measured["comparison"]
            cubin = entry.cubin.read_bytes() if folder is None else _candidate(entry, name, result[1]["pipeline"], folder)
            share = measured["shares"].get("bytes", 0.0)
            yield Case(entry, name, suite, cubin, times[side]["median"], share, times["ratio"])


def _candidate(entry: Entry, launch: str, pipeline: str, folder: Path) -> bytes:
    """What was measured; made again, and kept, if it is not there. Raises SassirError if that fails."""
    path = folder / f"{entry.kernel}.{launch}.cubin"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_make(entry, launch, pipeline, folder))
    return path.read_bytes()


def _make(entry: Entry, launch: str, pipeline: str, folder: Path) -> bytes:
    """As `sassir bench-suite` makes it, or bench/build_kernels.py with a cap on the registers."""
    if pipeline.startswith(_BUILDS):
        cap = pipeline.removeprefix(_BUILDS).split()[0]
        if message := build(entry.kernel, ARCH, folder, ["-maxrregcount", cap]):
            raise SassirError(message)
        return (folder / f"{entry.kernel}.{ARCH}.cubin").read_bytes()
    first, _, name = pipeline.partition(" ")
    case = launch if name not in ("", "default") else None
    made = make_candidate(Job(entry, first, name, case) if name else Job(entry, pipeline))
    if isinstance(made, str):
        raise SassirError(f"{entry.kernel}: {made}")
    return made


@cache
def kernels_of(cubin: bytes) -> dict[str, Kernel]:
    """The kernels of a cubin by name."""
    return {kernel.function.name: kernel for kernel in read_kernels(cubin)}


def sample_of(case: Case, folder: Path) -> Path:
    """Where the sample of a launch is kept. Control codes do not matter to it, so cubins that differ only there have one sample."""
    code = sha256(_code(case.cubin, controls=False).encode()).hexdigest()[:16]
    return folder / f"{case.entry.kernel}.{case.launch}.{code}.json"


def profiles(case: Case, folder: Path) -> list[tuple[Profile, int]]:
    """The profiles of the steps of a launch, and the blocks that were sampled; from `folder`, if they are there."""
    path = sample_of(case, folder)
    if not path.is_file():
        launch = case.entry.file.launch(case.launch)
        kernels = kernels_of(case.cubin)
        size = min([first_level(kernels[name], shape) for name, shape in shapes_of(kernels, launch, str(path))])
        path.parent.mkdir(parents=True, exist_ok=True)
        found = [(sampled.profile, sampled.blocks) for sampled in sample(case.cubin, launch, size)]
        path.write_text(json.dumps([_plain(profile, blocks) for profile, blocks in found]))
    return [
        (Profile(executions, slowest, {line: Traffic(*traffic) for line, *traffic in moved}, source), blocks)
        for executions, slowest, moved, source, blocks in json.loads(path.read_text())
    ]


def _plain(profile: Profile, blocks: int) -> list[Any]:
    """A sample as JSON has it."""
    moved = [[line, *traffic] for line, traffic in profile.traffic.items()]
    return [profile.executions, profile.slowest, moved, profile.source, blocks]


def _code(cubin: bytes, controls: bool) -> str:
    """Kernels, their registers and instructions as text, with or without control codes and marks for the operand cache."""
    lines: list[str] = []
    for name, kernel in kernels_of(cubin).items():
        lines.append(f"{name} {kernel.summary.registers}")
        instructions = [line.instruction for line in kernel.function.lines]
        lines += [f"{i.control} {i.text}" if controls else i.text.replace(".reuse", "") for i in instructions]
    return "\n".join(lines)
