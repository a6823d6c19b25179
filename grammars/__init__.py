"""Lark grammars of SASS text: one for an instruction, thin ones for the listings that instructions appear in."""

from pathlib import Path
from typing import Any

from lark import Lark, Transformer


def load(*names: str, start: str, transformer: Transformer[Any, Any]) -> Lark:
    """The LALR parser for rule `start` of grammars `names`, read as one text.

    The callbacks of `transformer` run while it parses; no tree is built for the rules and terminals that have one.
    """
    texts = [Path(__file__).with_name(f"{name}.lark").read_text("utf-8") for name in names]
    return Lark("\n".join(texts), parser="lalr", start=start, transformer=transformer)
