"""The GPU's rung of the ladder: original and candidate on the device, over every launch and with every kind of input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sassir.errors import LaunchError
from sassir.gpu import pair as pairs
from sassir.gpu.worker import Worker
from sassir.launch import Launch
from sassir.verify.cases import cases
from sassir.verify.ladder import Pair
from sassir.verify.report import Check, Layer, summarise


class GpuRung(NamedTuple):
    """Compares on the device of `worker`, over `launches`: also those that are too large for the emulator."""

    worker: Worker
    launches: tuple[Launch, ...]

    def __call__(self, pair: Pair) -> Layer:
        """See `sassir.verify.ladder.Rung`. Raises LaunchError without PyCUDA or a GPU."""
        device = self.worker.describe_device()
        layer = summarise("gpu", self._checks(pair), "inputs give equal results")
        return layer._replace(detail=f"{device.name}: {layer.detail}")

    def _checks(self, pair: Pair) -> Iterator[Check]:
        both = pairs.Pair("", pair.original.cubin, pair.candidate, pair.tolerance)
        for launch in self.launches:
            if (broken := pair.broken_fact(launch)) is not None:
                yield Check(f"launch {launch.name}", "skipped", f"the candidate is made for launches with {broken}")
                continue
            yield from self._compare(both, launch, pair.noalias)

    def _compare(self, both: pairs.Pair, launch: Launch, noalias: bool) -> Iterable[Check]:
        for case in cases(launch, noalias):
            try:
                self.worker.call(pairs.prepare_reference, both.original, case.launch)
            except LaunchError as error:
                yield Check(str(case), "undecided", f"the original: {error}")
                continue
            result = pairs.check(self.worker, both, case.launch)
            yield Check(str(case), "holds" if result.good else "fails", result.detail)
