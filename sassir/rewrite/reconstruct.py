"""Make SSA form again after values got further definitions: copies in other registers, reloads.

Each value is then a variable with several definitions. Block arguments go where definitions meet and the variable is live (Cytron et
al., 1991), and each use gets the definition that reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import Attribute, Block, Region, SSAValue

from sassir.analysis.flow import flow_of
from sassir.dialect import internals
from sassir.dialect.edges import forwarded, own_operands
from sassir.errors import TranslationError
from sassir.translate.shape import members

ArgumentType = Callable[[Block, SSAValue], Attribute]
"""The type of the argument that a block gets for a variable."""


def reconstruct(region: Region, definitions: Mapping[SSAValue, SSAValue], argument_type: ArgumentType) -> None:
    """Let every use of a variable read the definition that reaches it.

    `definitions`: new definitions and the variable each belongs to. Uses name the variable by its first definition, its value.
    """
    if definitions:
        _Reconstruction(region, definitions).run(argument_type)


class _Reconstruction:
    def __init__(self, region: Region, definitions: Mapping[SSAValue, SSAValue]) -> None:
        self.blocks, _, self.cfg = flow_of(region)
        self.variables = list(dict.fromkeys(definitions.values()))
        self.number = {v: i for i, v in enumerate(self.variables)}
        self.defines = dict(self.number)
        """The variable that a value is a definition of."""
        for value, variable in definitions.items():
            self.defines[value] = self.number[variable]
        self.ends: list[dict[int, SSAValue]] = [{} for _ in self.blocks]
        """The last definitions in each block."""
        self.merged = self._merges()

    def _merges(self) -> list[int]:
        """The variables for which each block needs an argument."""
        uses: list[int] = []
        defined: list[int] = []
        for block in self.blocks:
            used = defs = 0
            for value in block.args:
                if value in self.defines:
                    defs |= 1 << self.defines[value]
            for op in block.ops:
                for value in internals.operands(op):
                    if value in self.number:
                        used |= 1 << self.number[value] & ~defs
                for value in op.results:
                    if value in self.defines:
                        defs |= 1 << self.defines[value]
            uses.append(used)
            defined.append(defs)
        live = self.cfg.live_in(uses, defined)
        merged = [0] * len(self.blocks)
        work = [b for b, d in enumerate(defined) if d]
        while work:
            b = work.pop()
            for other in self.cfg.frontiers[b]:
                new = (defined[b] | merged[b]) & live[other] & ~merged[other]
                if new:
                    merged[other] |= new
                    work.append(other)
        return merged

    def run(self, argument_type: ArgumentType) -> None:
        passed = {b: forwarded(block.last_op) for b, block in enumerate(self.blocks) if block.last_op is not None}
        own = {b: own_operands(block.last_op) for b, block in enumerate(self.blocks) if block.last_op is not None}
        added: list[dict[int, SSAValue]] = []
        for b, block in enumerate(self.blocks):
            added.append({})
            for i in members(self.merged[b]):
                argument = block.insert_arg(argument_type(block, self.variables[i]), len(block.args))
                added[b][i] = argument
                self.defines[argument] = i
        for b in self.cfg.order:
            self._rename(b, added[b])
        for b, lists in passed.items():
            last = self.blocks[b].last_op
            assert last is not None
            operands = [self._renamed(v, b) for v in own[b]]
            for s, values in zip(self.cfg.successors[b], lists, strict=False):
                operands += [self._renamed(v, b) for v in values]
                operands += [self._reaching(i, b) for i in added[s]]
            if operands != [*internals.operands(last)]:
                last.operands = operands

    def _rename(self, b: int, added: dict[int, SSAValue]) -> None:
        """Rename the uses in a block, its terminator's aside."""
        now = self.ends[b]
        now.update(added)
        block = self.blocks[b]
        for value in block.args:
            if value in self.defines:
                now[self.defines[value]] = value
        for op in block.ops:
            if op is not block.last_op:
                operands = internals.operands(op)
                if any([v in self.number for v in operands]):
                    op.operands = [self._renamed(v, b) for v in operands]
            for value in op.results:
                if value in self.defines:
                    now[self.defines[value]] = value

    def _renamed(self, value: SSAValue, b: int) -> SSAValue:
        i = self.number.get(value)
        return value if i is None else self._reaching(i, b)

    def _reaching(self, i: int, b: int) -> SSAValue:
        """The definition of variable `i` at the end of what is renamed of block `b`."""
        seen: list[int] = []
        while i not in self.ends[b]:
            seen.append(b)
            b = self.cfg.dominators[b]
            if b < 0:
                raise TranslationError(f"%{self.variables[i].name_hint} is used where it is not made on every path; run sass-verify-ssa")
        found = self.ends[b][i]
        for other in seen:
            self.ends[other].setdefault(i, found)
        return found
