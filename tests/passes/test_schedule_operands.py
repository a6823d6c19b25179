"""sass-schedule where registers are chosen: banks, the operand cache, and the order of loads."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.launch import read_launch_file
from sassir.machine import machine
from sassir.optimize import Task, make_pass, optimise_cubin, read_pipeline
from sassir.schedule.graph import Graph
from sassir.schedule.operand_cache import reading_cycles
from sassir.timing.warp import reading_cycles as reading_cycles_of_code
from sassir.translate.cubin import read_module
from sassir.translate.emit import emit_program
from sassir.translate.flow import find_flow

BENCH = Path(__file__).parents[2] / "bench"
CUBIN = Path(__file__).parents[1] / "cubins" / "tiles.sm_90.cubin"
"""A product of matrices: its loop is eight times 64 FFMAs with eight loads from shared memory."""


def made(*passes: str) -> ModuleOp:
    module = read_module(CUBIN.read_bytes())
    for text in ("sass-virtualise", "sass-allocate-registers", *passes):
        make_pass(text).apply(Context(), module)
    return module


def loop(module: ModuleOp) -> Graph:
    """Of the block with the products."""
    kernel = next(op for op in module.body.ops if isinstance(op, KernelOp))
    return max([Graph(block, KernelFacts(), {}, machine("sm_90")) for block in kernel.body.blocks], key=lambda graph: len(graph.ops))


@pytest.fixture(scope="module")
def before() -> Graph:
    return loop(made())


@pytest.fixture(scope="module")
def after() -> ModuleOp:
    return made("sass-schedule", "sass-assign-control", "sass-check-allocation", "sass-check-schedule")


def test_products_find_more_in_the_operand_cache(before: Graph, after: ModuleOp) -> None:
    graph = loop(after)
    assert len(graph.ops) == len(before.ops)
    ideal, old, new = len(graph.ops), reading_cycles(before, range(len(before.ops))), reading_cycles(graph, range(len(graph.ops)))
    assert new - ideal < 0.6 * (old - ideal)


def test_what_the_scheduler_counts_is_what_the_marked_code_takes(after: ModuleOp) -> None:
    """The timing model reads the marks that sass-assign-control made from that order; near the edge of the look-ahead both may differ."""
    graph = loop(after)
    (function,) = emit_program(after).functions
    code = [line.instruction for line in function.lines]
    flow = find_flow(function, {})
    block = max(flow.blocks, key=len)
    cycles = list(reading_cycles_of_code(code, flow, machine("sm_90")))
    assert sum(cycles[line] for line in block[:-1]) == pytest.approx(reading_cycles(graph, range(len(graph.ops))), rel=0.01)


def test_loads_keep_their_order(before: Graph, after: ModuleOp) -> None:
    assert _loads(loop(after)) == _loads(before)


def _loads(graph: Graph) -> list[str]:
    return [str(op.template) for op in graph.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "LDG"]


def test_what_a_value_from_nowhere_is_said_to_overwrite_stays_before_it() -> None:
    """With nw_tile's full launch, an operand that is never written got the register of a value that a store had yet to read."""
    file = read_launch_file(BENCH / "launch" / "nw_tile.toml")
    cubin = (BENCH / "cubins" / "nw_tile.sm_90.cubin").read_bytes()
    made = optimise_cubin(Task(cubin, "nw_tile", read_pipeline("launch"), file.facts, file.launch("full")))
    assert [outcome.reason for outcome in made.outcomes] == [""]
