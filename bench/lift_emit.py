"""Speed of words → SSA → words, nothing changed. Usage: python bench/lift_emit.py FILE.cubin …

Prints instructions per second of each step and of all together, the best of three runs, and fails if a word differs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sassir.translate.cubin import encode, read_program
from sassir.translate.emit import emit_program
from sassir.translate.lift import lift_program

ROUNDS = 3


def measure(paths: list[Path]) -> dict[str, float]:
    """Seconds of each step over all files."""
    spent: dict[str, float] = {}

    def timed(step: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        spent[step] = spent.get(step, 0) + time.perf_counter() - start
        return result

    for path in paths:
        program = timed("decode", lambda path=path: read_program(path.read_bytes(), str(path)))
        module = timed("lift", lambda program=program: lift_program(program))
        emitted = timed("emit", lambda module=module: emit_program(module))
        words = timed("encode", lambda emitted=emitted: [encode(f, emitted.arch, from_fields=True) for f in emitted.functions])
        if words != [encode(f, program.arch) for f in program.functions]:
            raise SystemExit(f"{path}: the words differ")
    return spent


def main() -> None:
    """Measure the files of the command line."""
    paths = [Path(name) for name in sys.argv[1:]]
    if not paths:
        raise SystemExit(__doc__)
    count = sum(len(f.lines) for path in paths for f in read_program(path.read_bytes(), str(path)).functions)
    best = min([measure(paths) for _ in range(ROUNDS)], key=lambda spent: sum(spent.values()))
    for step, seconds in (*best.items(), ("all", sum(best.values()))):
        print(f"{step:8}{count / seconds:12,.0f} instructions/s")


if __name__ == "__main__":
    main()
