"""Original against candidate over one launch: the same results? faster? Each runs in the worker's process and may fail there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import summarise
from sassir.errors import LaunchError
from sassir.gpu.counters import Counters
from sassir.gpu.device import device_limits
from sassir.gpu.driver import FunctionAttribute
from sassir.gpu.runner import allow_shared, doing, load, run
from sassir.gpu.statistics import Comparison, compare_times
from sassir.gpu.timing import Samples, sample
from sassir.gpu.worker import Worker
from sassir.launch import Error, Launch, Outputs, Tolerance, compare, measure_error

Outcome = Literal["equal", "within tolerance", "different", "failed"]

SAMPLING_PATIENCE = 10
"""Sampling may take so many times as long as one launch may."""


class Resources(NamedTuple):
    """What one kernel takes. Sizes in bytes."""

    kernel: str
    registers: int
    local: int
    """Local memory of a thread: stack frame and spills."""
    shared: int
    """Shared memory of a block, static and dynamic."""
    instructions: int
    """In the code section, padding included."""
    occupancy: float
    """Share of a multiprocessor's warps that can be resident."""


@dataclass
class Side:
    """One of the two cubins: its kernels, one a step."""

    resources: list[Resources]
    counters: list[Counters] = field(default_factory=list[Counters])
    """Empty where nobody read them."""


@dataclass
class Measured:
    """Both timed."""

    comparison: Comparison
    rounds: int
    runs: int
    """Timed together in one sample."""
    buffer_sets: int
    original: Side
    candidate: Side
    reached: Mapping[str, float]
    """Work a second of the candidate, by the keys of WORK."""
    shares: Mapping[str, float]
    """The same as a share of what the device was measured to reach at most."""


@dataclass
class Result:
    """One launch of one pair."""

    kernel: str
    launch: str
    outcome: Outcome
    detail: str = ""
    """What failed or differs."""
    error: Error | None = None
    """How far the results lie apart, where they do."""
    measured: Measured | None = None
    """None if the outcome forbids a comparison of times, or nobody asked."""
    cause: str = ""

    @property
    def good(self) -> bool:
        """The candidate may stand in for the original."""
        return self.outcome in ("equal", "within tolerance")


class Pair(NamedTuple):
    """Two cubins that should do the same."""

    kernel: str
    original: bytes
    candidate: bytes
    tolerance: Tolerance | None = None
    """How far results may differ; None: bit for bit."""


def check(worker: Worker, pair: Pair, launch: Launch) -> Result:
    """Run both over `launch` and compare all outputs. Whatever the kernels do is a result; nothing is raised."""
    result = Result(pair.kernel, launch.name, "equal")
    try:
        worker.call(prepare_reference, pair.original, launch)
    except LaunchError as error:
        result.outcome, result.detail = "failed", f"the original: {error}"
        return result
    try:
        found = worker.call(compare_outputs, pair, launch)
    except LaunchError as error:
        result.outcome, result.detail = "failed", str(error)
        return result
    if found is not None:
        result.error = found.error
        result.outcome, result.detail = "within tolerance" if found.tolerated else "different", found.text
    return result


def measure(worker: Worker, pair: Pair, launch: Launch, ceilings: Mapping[str, float], seconds: float) -> Result:
    """`check`, and if the results are good the times, sampled for about so many seconds."""
    result = check(worker, pair, launch)
    if not result.good:
        return result
    try:
        samples = take_samples(worker, pair.original, pair.candidate, launch, seconds)
        original, candidate = (Side(worker.call(read_resources, cubin, launch)) for cubin in (pair.original, pair.candidate))
    except LaunchError as error:
        result.outcome, result.detail = "failed", str(error)
        return result
    comparison = compare_times(samples)
    reached = {key: amount / comparison.candidate.median for key, amount in launch.work.items()}
    shares = {key: rate / ceilings[key] for key, rate in reached.items()}
    result.measured = Measured(comparison, len(samples.original), samples.runs, samples.buffer_sets, original, candidate, reached, shares)
    return result


def take_samples(worker: Worker, original: bytes, candidate: bytes, launch: Launch, seconds: float) -> Samples:
    """Both timed in turn, for about so many seconds in all. Raises LaunchError where either does not run."""
    timeout = worker.timeout
    worker.timeout = SAMPLING_PATIENCE * timeout
    try:
        return worker.call(sample, original, candidate, launch, seconds)
    finally:
        worker.timeout = timeout


class Found(NamedTuple):
    """A difference of the results."""

    text: str
    error: Error
    tolerated: bool


@lru_cache(maxsize=1)
def _reference(original: bytes, launch: Launch) -> Outputs:
    return run(original, launch)


def prepare_reference(original: bytes, launch: Launch) -> None:
    """In the worker: run the original and keep its outputs there. Raises LaunchError."""
    _reference(original, launch)


def compare_outputs(pair: Pair, launch: Launch) -> Found | None:
    """In the worker: the first difference of the candidate's outputs from the original's. Raises LaunchError."""
    expected, outputs = _reference(pair.original, launch), run(pair.candidate, launch)
    difference = compare(launch, expected, outputs)
    if difference is None:
        return None
    tolerated = pair.tolerance is not None and compare(launch, expected, outputs, pair.tolerance) is None
    again = compare(launch, expected, run(pair.original, launch))
    text = f"{difference} (the original differs from itself: {again})" if again else str(difference)
    return Found(text, measure_error(launch, expected, outputs), tolerated)


def read_resources(cubin: bytes, launch: Launch) -> list[Resources]:
    """In the worker: what each step's kernel takes at this launch. Raises LaunchError."""
    instructions = {kernel.name: kernel.instructions for kernel in summarise(Cubin.read(cubin)).kernels}
    module, device = load(cubin, launch), device_limits()
    found = list[Resources]()
    for step in launch.steps:
        with doing(launch, f"looking at {step.kernel}"):
            kernel = module.kernel(step.kernel)
            allow_shared(kernel, step.shared)
            registers, local, static = (
                kernel.attribute(which)
                for which in (FunctionAttribute.REGISTERS, FunctionAttribute.LOCAL_BYTES, FunctionAttribute.SHARED_BYTES)
            )
            x, y, z = step.block
            warps = -(-x * y * z // device.warp_threads) * kernel.resident_blocks(x * y * z, step.shared)
        found.append(Resources(step.kernel, registers, local, static + step.shared, instructions[step.kernel], warps / device.warps))
    module.unload()
    return found
