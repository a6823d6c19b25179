"""What the functions of a file read when code of another section calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from sassir.analysis.cfg import Cfg
from sassir.asm.program import Function, Program
from sassir.translate.branches import JumpTables
from sassir.translate.flow import find_flow, reads_and_writes


class Callees:
    """The functions of a program by name."""

    def __init__(self, program: Program, tables: Mapping[int, JumpTables]) -> None:
        count = Counter([function.name for function in program.functions])
        self._functions = {f.name: f for f in program.functions if count[f.name] == 1}
        self._tables = tables
        self._reads: dict[str, int | None] = {}

    def reads(self, link: str | None) -> int | None:
        """The registers (as bits) that the callee named by a relocation reads before it writes them; None if that is not known."""
        name = link.partition(" ")[2] if link is not None else ""
        if name not in self._reads:
            function = self._functions.get(name)
            self._reads[name] = None if function is None else self._read_by(function)
        return self._reads[name]

    def _read_by(self, function: Function) -> int | None:
        flow = find_flow(function, self._tables.get(function.section, {}) if function.section is not None else {})
        if flow.problem is not None or flow.calling:
            return None
        return Cfg(flow.successors, [0]).live_in(*reads_and_writes(function, flow, {}))[0]
