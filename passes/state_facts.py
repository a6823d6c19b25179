"""sass-state-facts: what is known of the launches, where no launch file says it: in a test, or on the command line of sassir-opt.

    sass-state-facts{facts="block = [256, 1, 1], word 0x210 = 0x1000, noalias"}

The text is that of the attribute `#sass.facts<…>` (see `sassir.dialect.facts`). It holds for every kernel of the module, in place of
what was stated before.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.dialect.facts import FACTS, FactsAttr, parse_facts
from sassir.dialect.operations import KernelOp


@dataclass(frozen=True)
class StateFacts(ModulePass):
    """Gives every kernel these facts. Who states them answers for them."""

    name = "sass-state-facts"
    facts: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        facts = FactsAttr(parse_facts(self.facts, self.name))
        for kernel in op.body.ops:
            if isinstance(kernel, KernelOp):
                kernel.attributes[FACTS] = facts
