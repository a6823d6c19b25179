"""The graph of a kernel in which a call is one step."""

from __future__ import annotations

from collections.abc import Sequence

from sassir.analysis.cfg import Cfg
from sassir.asm.instruction import Instruction
from sassir.translate.flow import Flow


def call_free(code: Sequence[Instruction], flow: Flow) -> Cfg:
    """The blocks and their edges; behind a call comes the block after it, and device functions are roots.

    With the edges of calls and returns, a loop with two calls to one function would not be a loop any more: it could be entered
    by the return of either.
    """
    successors: list[list[int]] = []
    roots = {0}
    for b, block in enumerate(flow.blocks):
        last = code[block[-1]].mnemonic if block else ""
        if last == "CALL" and b + 1 < len(flow.blocks):
            roots.update(flow.successors[b])
            successors.append([b + 1])
        else:
            successors.append([] if last == "RET" else flow.successors[b])
    return Cfg(successors, sorted(roots))
