"""Which values should not be in one bank: an instruction reads one register of each bank in a cycle.

Measured on an H200 (docs/hopper-measured.md, register banks): FFMA takes a cycle more for each further register of the same bank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from xdsl.ir import SSAValue

from sassir.analysis.bonds import filled_holes
from sassir.analysis.effects import effects
from sassir.analysis.flow import Flow
from sassir.analysis.loops import loops_of
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import R
from sassir.machine.register_file import BANKS, bank


class Neighbours:
    """The values that each value is read together with, and how often."""

    def __init__(self, flow: Flow) -> None:
        self._weights: dict[SSAValue, dict[SSAValue, int]] = {}
        loops = loops_of(flow.cfg)
        for b, block in enumerate(flow.blocks):
            weight = loops.weight(b)
            for op in block.ops:
                if isinstance(op, SassInstruction) and effects(op).pure:
                    self._add(op, weight)

    def _add(self, op: SassInstruction, weight: int) -> None:
        singles = [read[0] for hole, read, _ in filled_holes(op) if hole.width == 1 and read and isinstance(read[0].type, R)]
        for a, b in combinations(dict.fromkeys(singles), 2):
            for value, other in ((a, b), (b, a)):
                weights = self._weights.setdefault(value, {})
                weights[other] = weights.get(other, 0) + weight

    def better_bank(self, values: Iterable[SSAValue], *known: Mapping[SSAValue, int]) -> int | None:
        """The bank in which `values` meet fewer of their neighbours, as far as registers are `known`; None if it makes no difference."""
        met = [0] * BANKS
        for value in values:
            for other, weight in self._weights.get(value, {}).items():
                register = next((registers[other] for registers in known if other in registers), None)
                if register is not None:
                    met[bank(register - R.FIRST)] += weight
        return None if len(set(met)) == 1 else met.index(min(met))
