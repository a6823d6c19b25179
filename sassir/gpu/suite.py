"""The benchmark suite: its kernels, and how a new result is held against an old one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sassir.cubin.cubin import Cubin
from sassir.errors import LaunchError
from sassir.gpu.pair import Result
from sassir.gpu.statistics import MARGIN
from sassir.launch import LaunchFile, read_launch_file


class Entry(NamedTuple):
    """A kernel file of the suite, ready to launch."""

    kernel: str
    cubin: Path
    file: LaunchFile

    def toolkit(self) -> str:
        """The compiler that the cubin names."""
        return Cubin.read(self.cubin.read_bytes(), str(self.cubin)).toolkit.version


def find_suite(folder: Path, arch: str, kernels: Sequence[str] = ()) -> list[Entry]:
    """The kernels named, or all, that `folder` has a `cubins/KERNEL.ARCH.cubin` for, each with its `launch/KERNEL.toml`.

    Raises LaunchError where there is none, or a launch file is missing or bad.
    """
    ending = f".{arch}.cubin"
    found = {path.name.removesuffix(ending): path for path in sorted((folder / "cubins").glob(f"*{ending}"))}
    if not found:
        raise LaunchError(f"{folder / 'cubins'}: no cubins for {arch}; build_kernels.py of the suite makes them")
    if unknown := set(kernels) - found.keys():
        raise LaunchError(f"no kernel {min(unknown)!r} for {arch}; there are {', '.join(found)}")
    chosen = kernels or found
    return [Entry(kernel, found[kernel], read_launch_file(folder / "launch" / f"{kernel}.toml")) for kernel in chosen]


def read_results(path: Path) -> dict[str, Any]:
    """A JSON file that `sassir bench-suite` wrote. Raises LaunchError for another file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        dict(_ratios(found))
    except (ValueError, KeyError, TypeError) as error:
        raise LaunchError(f"{path}: not a result of bench-suite ({type(error).__name__}: {error})") from error
    return found


def _ratios(found: dict[str, Any]) -> Iterator[tuple[tuple[str, str], tuple[float, float]]]:
    """Kernel and launch to the interval of the ratio, where one was measured."""
    for result in found["results"]:
        if result["measured"]:
            comparison = result["measured"]["comparison"]
            yield (result["kernel"], result["launch"]), (comparison["low"], comparison["high"])


def regressions(old: dict[str, Any], results: Sequence[Result], kernels: Collection[str]) -> Iterator[str]:
    """What got worse since `old` in these kernels: a launch that is not good any more, a ratio that fell beyond noise and MARGIN.

    Ratios are compared, not times: the original, measured in the same run, stands for the state of the machine.
    """
    new = {(result.kernel, result.launch): result for result in results}
    for place, (low, high) in _ratios(old):
        name, result = f"{place[0]}, launch {place[1]}", new.get(place)
        if place[0] not in kernels:
            continue
        if result is None:
            yield f"{name}: measured before, missing now"
        elif result.measured is None:
            yield f"{name}: results {result.outcome}: {result.detail}"
        elif (comparison := result.measured.comparison).high * (1 + MARGIN) < low:
            before, now = f"{low:.3f} to {high:.3f}", f"{comparison.low:.3f} to {comparison.high:.3f}"
            yield f"{name}: slower than before: original / candidate was {before}, is {now}"
