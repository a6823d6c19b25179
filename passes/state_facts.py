"""sass-state-facts: what is known of the launches, where no launch file says it: in a test, or on the command line of sassir-opt.

    sass-state-facts{facts="block = [256, 1, 1], word 0x210 = 0x1000, noalias"}

The text is that of the attribute `#sass.facts<…>` (see `sassir.dialect.facts`). It holds for every kernel of the module, in place of
what was stated before.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ParseError

from sassir.dialect import SASS
from sassir.dialect.facts import FACTS
from sassir.dialect.operations import KernelOp
from sassir.errors import TranslationError


@dataclass(frozen=True)
class StateFacts(ModulePass):
    """Gives every kernel these facts. Who states them answers for them."""

    name = "sass-state-facts"
    facts: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = Context()
        known.load_dialect(SASS)
        try:
            parser = Parser(known, f"#{FACTS}<{self.facts}>", self.name)
            facts = parser.parse_attribute()
            if parser.pos != len(parser.lexer.input.content):
                parser.raise_error("expected nothing more")
        except ParseError as error:
            raise TranslationError(str(error).strip()) from error
        for kernel in op.body.ops:
            if isinstance(kernel, KernelOp):
                kernel.attributes[FACTS] = facts
