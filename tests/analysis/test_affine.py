"""Addresses as sums: what the linker fills in is known of no two instructions to be the same."""

from __future__ import annotations

from pathlib import Path

from sassir.analysis.affine import Affine
from sassir.analysis.propagation import Propagation
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.translate.cubin import read_module

UNPLACED = Path(__file__).parents[1] / "cubins" / "unplaced.sm_90.cubin"


def test_two_arrays_that_the_linker_places_are_not_at_one_place() -> None:
    kernels = {k.function.data: k for k in read_module(UNPLACED.read_bytes()).body.ops if isinstance(k, KernelOp)}
    kernel = kernels["two_unplaced"]
    linked = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.link is not None]
    affine = Affine(Propagation(kernel, KernelFacts(), "sm_90"))
    assert len({affine.word(op.results[0]) for op in linked}) == len(linked) == 2
