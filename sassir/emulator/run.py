"""Running a launch: the same input and the same kind of result as on the GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.host import select_cubin
from sassir.emulator.batch import Batch, Checks, Step
from sassir.emulator.constants import Bank, put_launch
from sassir.emulator.decode import decode
from sassir.emulator.lanes import LANES, LaneError
from sassir.emulator.memory import GlobalMemory
from sassir.emulator.module import Kernel, Module
from sassir.emulator.trace import Observer
from sassir.errors import EmulationError, LaunchError
from sassir.launch import Launch, Outputs
from sassir.launch import Step as LaunchStep
from sassir.launch.data import STORAGE

BATCH_LANES = 8192
"""Lanes that run together: enough to hide the cost of a numpy call, few enough for the second-level cache."""


@dataclass
class Counts:
    """What was executed, guards that do not hold included."""

    instructions: int = 0
    """Of groups of lanes that go together."""
    thread_instructions: int = 0


def emulate(
    cubin: bytes,
    launch: Launch,
    where: str = "<bytes>",
    checks: Checks | None = None,
    observer: Observer | None = None,
    counts: Counts | None = None,
) -> Outputs:
    """Run all steps of a launch on the CPU; the content of the output buffers, as `sassir.gpu` returns it.

    `counts` is added to.

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
    for step in launch.steps:
        run_step(module, step, addresses, checks or Checks(), observer, counts or Counts())
    return {b.name: memory.content(buffers[b.name]).copy().view(STORAGE[b.dtype]).reshape(b.shape) for b in launch.outputs}


def run_step(
    module: Module, step: LaunchStep, addresses: Mapping[str, int], checks: Checks, observer: Observer | None, counts: Counts
) -> None:
    """One kernel launch."""
    kernel = module.kernel(step.kernel)
    parameters = step.pack(addresses)
    _check_launch(kernel, step, len(parameters))
    bank = Bank("c[0x0]")
    put_launch(bank, kernel.layout, step, parameters, kernel.parameters.offset)
    batch = Batch(kernel, step, module.memory, bank, checks)
    code = decode(batch, observer)
    blocks = math.prod(step.grid)
    together = max(1, BATCH_LANES // (batch.warps * LANES))
    with np.errstate(all="ignore"):
        for first in range(0, blocks, together):
            batch.start(range(first, min(first + together, blocks)))
            run_batch(batch, code, counts)


def _check_launch(kernel: Kernel, step: LaunchStep, parameters: int) -> None:
    if parameters != kernel.parameters.size:
        raise LaunchError(f"kernel {kernel.name}: takes {kernel.parameters.size} bytes of parameters, the launch has {parameters}")
    required, most = kernel.summary.required_threads, kernel.summary.max_threads
    if required is not None and required != step.block:
        raise LaunchError(f"kernel {kernel.name}: needs blocks of {required} threads, the launch has {step.block}")
    if most is not None and math.prod(step.block) > math.prod(most):
        raise LaunchError(f"kernel {kernel.name}: takes at most {math.prod(most)} threads a block, the launch has {math.prod(step.block)}")
    if kernel.summary.cluster is not None and math.prod(kernel.summary.cluster) > 1:
        raise EmulationError(f"kernel {kernel.name}: clusters of blocks are not emulated")


def run_batch(batch: Batch, code: list[Step], counts: Counts) -> None:
    """Run the blocks of a started batch to their end."""
    flow, last, executed, place = batch.flow, len(code), 0, 0
    try:
        while flow.ready:
            start, meets, lanes = flow.next()
            end = last if meets is None else meets
            for place in range(start, end):
                if code[place](lanes):
                    break
            else:
                if end == last:
                    raise LaneError("the kernel goes on behind its last instruction", int(lanes.numbers[0]))
                flow.go(end, lanes.flags)
            executed += place - start + 1
            counts.thread_instructions += (place - start + 1) * lanes.count
            if executed > batch.checks.steps:
                raise LaneError(f"no end after {executed} instructions: an endless loop?", int(lanes.numbers[0]))
    except LaneError as fault:
        raise EmulationError(f"{_where(batch, place, fault.lane)}: {fault}") from fault
    counts.instructions += executed
    if flow.everyone.count:
        raise EmulationError(f"kernel {batch.kernel.name}: {_stuck(batch)}")


def _where(batch: Batch, place: int, lane: int | None) -> str:
    text = f"kernel {batch.kernel.name}, {INSTRUCTION_BYTES * place:#x}, `{batch.kernel.code[place].text}`"
    return text if lane is None else f"{text}, {_thread(batch, lane)}"


def _thread(batch: Batch, lane: int) -> str:
    x, y, _ = batch.launch.block
    gx, gy, _ = batch.launch.grid
    thread, block = int(batch.threads.reshape(-1)[lane]), int(batch.blocks[lane // LANES, 0])
    return f"block ({block % gx}, {block // gx % gy}, {block // (gx * gy)}) thread ({thread % x}, {thread // x % y}, {thread // (x * y)})"


def _stuck(batch: Batch) -> str:
    """Who waits where, and for ever."""
    flow = batch.flow
    named = [(f"barrier {n}", m) for n, m in flow.barriers.items()] + [*flow.convergence.items()]
    for name, meeting in named:
        for place, lanes in meeting.waiting.items():
            first = int(np.flatnonzero(lanes)[0])
            text = batch.kernel.code[place - 1].text
            return (
                f"deadlock: {int(lanes.sum())} threads wait for {name} at {INSTRUCTION_BYTES * (place - 1):#x} `{text}`, "
                f"the first is {_thread(batch, first)}, and the others never come"
            )
    return "deadlock"
