"""Running a launch: the same input and the same kind of result as on the GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sassir.cubin.host import select_cubin
from sassir.emulator.batch import Batch, Checks
from sassir.emulator.constants import Bank, put_launch
from sassir.emulator.decode import decode
from sassir.emulator.execute import Counts, execute, tolerant
from sassir.emulator.lanes import LANES
from sassir.emulator.memory import GlobalMemory
from sassir.emulator.module import Kernel, Module
from sassir.emulator.timed import TimedBlock
from sassir.emulator.trace import Observer, announced, observed
from sassir.errors import EmulationError, LaunchError
from sassir.launch import Launch, Outputs, Step
from sassir.launch.data import STORAGE

BATCH_LANES = 8192
"""Lanes that run together: enough to hide the cost of a numpy call, few enough for the second-level cache."""


class _Options(NamedTuple):
    checks: Checks
    warn: Callable[[str], None] | None
    observer: Observer | None
    before: Observer | None
    blocks: Callable[[Step], Iterable[int]] | None
    counts: Counts
    timed: bool


def emulate(
    cubin: bytes,
    launch: Launch,
    where: str = "<bytes>",
    *,
    checks: Checks | None = None,
    warn: Callable[[str], None] | None = None,
    observer: Observer | None = None,
    before: Observer | None = None,
    blocks: Callable[[Step], Iterable[int]] | None = None,
    counts: Counts | None = None,
    timed: bool = False,
) -> Outputs:
    """Run all steps of a launch on the CPU; the content of the output buffers, as `sassir.gpu` returns it.

    With `warn`, what is only suspicious (reads of what was never written, races) is told to it and does not end the run.
    `observer` is called after every instruction, `before` ahead of it; `counts` is added to. With `blocks` only the blocks of
    each step that it names are run, one after the other. With `timed` the control codes count: blocks run one
    after the other, and a result that is read before it is there is the old value (see `timed`).

    Raises EmulationError, with kernel, offset, instruction, block and thread, for whatever is wrong while it runs (see
    `Checks`) or cannot be emulated; LaunchError where the launch does not fit the kernel; ContainerError for a bad file.
    """
    memory = GlobalMemory()
    module = Module(select_cubin(cubin, where), memory)
    buffers = {buffer.name: memory.allocate(buffer.name, buffer.initial()) for buffer in launch.buffers}
    memory.fix()
    for symbol, buffer in launch.symbols:
        module.fill_symbol(symbol, buffer.initial())
    addresses = {name: allocation.address for name, allocation in buffers.items()}
    options = _Options(checks or Checks(), warn, observer, before, blocks, counts or Counts(), timed)
    with np.errstate(all="ignore"):
        for step in launch.steps:
            _run_step(module, step, addresses, options)
    return {b.name: memory.content(buffers[b.name]).copy().view(STORAGE[b.dtype]).reshape(b.shape) for b in launch.outputs}


def _run_step(module: Module, step: Step, addresses: Mapping[str, int], options: _Options) -> None:
    """One kernel launch."""
    kernel = module.kernel(step.kernel)
    parameters = step.pack(addresses)
    _check_launch(kernel, step, len(parameters))
    bank = Bank("c[0x0]")
    put_launch(bank, kernel.layout, step, parameters, kernel.parameters.offset)
    batch = Batch(kernel, step, module.memory, bank, options.checks)
    timed = TimedBlock(batch) if options.timed else None
    code = decode(batch) if timed is None else timed.steps()
    if options.warn is not None:
        code = [tolerant(batch, place, step, options.warn) for place, step in enumerate(code)]
    if options.observer is not None:
        code = [observed(batch, place, step, options.observer) for place, step in enumerate(code)]
    if options.before is not None:
        code = [announced(batch, place, step, options.before) for place, step in enumerate(code)]
    together = 1 if timed else max(1, BATCH_LANES // (batch.warps * LANES))
    for blocks in _groups(step, together) if options.blocks is None else ([block] for block in options.blocks(step)):
        batch.start(blocks)
        execute(batch, code, options.counts, timed)


def _groups(step: Step, together: int) -> Iterable[Sequence[int]]:
    """All blocks of a launch, as many at a time as run together."""
    blocks = math.prod(step.grid)
    together = blocks if step.cooperative else together
    return [range(first, min(first + together, blocks)) for first in range(0, blocks, together)]


def _check_launch(kernel: Kernel, step: Step, parameters: int) -> None:
    if parameters != kernel.parameters.size:
        raise LaunchError(f"kernel {kernel.name}: takes {kernel.parameters.size} bytes of parameters, the launch has {parameters}")
    required, most = kernel.summary.required_threads, kernel.summary.max_threads
    if required is not None and required != step.block:
        raise LaunchError(f"kernel {kernel.name}: needs blocks of {required} threads, the launch has {step.block}")
    if most is not None and math.prod(step.block) > math.prod(most):
        raise LaunchError(f"kernel {kernel.name}: takes at most {math.prod(most)} threads a block, the launch has {math.prod(step.block)}")
    if math.prod(step.cluster or kernel.summary.cluster or (1,)) > 1:
        raise EmulationError(f"kernel {kernel.name}: clusters of blocks are not emulated")
