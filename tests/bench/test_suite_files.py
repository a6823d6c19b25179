"""Every kernel of the suite has launches that fit its cubin: types, sizes, blocks, symbols; without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import KernelSummary, summarise
from sassir.gpu.suite import Entry, find_suite
from sassir.launch import Launch

SUITE = find_suite(Path(__file__).parents[2] / "bench", "sm_90")
SMALL = 1 << 20
"""Bytes that are quick to emulate."""

every_kernel = pytest.mark.parametrize("entry", SUITE, ids=[entry.kernel for entry in SUITE])


def kernels(entry: Entry) -> Mapping[str, KernelSummary]:
    return {kernel.name: kernel for kernel in summarise(Cubin.read(entry.cubin.read_bytes())).kernels}


def launches(entry: Entry) -> list[Launch]:
    return [*entry.file.launches.values()]


@every_kernel
def test_parameters_lie_where_the_cubin_says_and_have_its_sizes(entry: Entry) -> None:
    for launch in launches(entry):
        for step in launch.steps:
            assert step.parameters() == [(p.offset, p.size) for p in kernels(entry)[step.kernel].parameters]


@every_kernel
def test_blocks_are_what_the_kernel_was_compiled_for(entry: Entry) -> None:
    for launch in launches(entry):
        for step in launch.steps:
            kernel = kernels(entry)[step.kernel]
            assert kernel.required_threads in (None, step.block)
            assert kernel.max_threads is None or all(x <= most for x, most in zip(step.block, kernel.max_threads, strict=True))


@every_kernel
def test_symbols_are_in_the_cubin_with_the_size_of_their_buffer(entry: Entry) -> None:
    symbols = {symbol.name: symbol.size for symbol in Cubin.read(entry.cubin.read_bytes()).symbols}
    for launch in launches(entry):
        assert all(symbols[name] == buffer.nbytes for name, buffer in launch.symbols)


@every_kernel
def test_two_sizes_are_timed_and_the_others_are_quick_to_emulate(entry: Entry) -> None:
    assert entry.file.timed == ("full", "medium")
    others = [launch for name, launch in entry.file.launches.items() if name not in entry.file.timed]
    assert {"small", "one", "tail", "tile", "border", "hollow", "pair"} & {launch.name for launch in others}
    full = entry.file.launch("full")
    assert full.nbytes > SMALL / 2
    assert full.work["bytes"] > 0
    assert entry.file.launch("medium").work["bytes"] < full.work["bytes"]
    for launch in others:
        assert launch.outputs
        assert launch.nbytes < SMALL
        assert all(buffer.initial().shape == buffer.shape for buffer in launch.buffers)
