"""How often each instruction runs and what its memory accesses move: counted in the emulator, or reckoned from the code alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sassir import isa
from sassir.analysis.cfg import Cfg
from sassir.analysis.loops import Loop, Loops
from sassir.asm.instruction import Instruction
from sassir.machine.hierarchy import LINE, SECTOR
from sassir.translate.flow import Flow

LANES = 32
_FLOAT = ("DADD", "DFMA", "DMUL", "F", "HADD2", "HFMA2", "HMMA", "HMUL2", "MUFU")
Went = Mapping[tuple[int, int], int]
"""How many threads go from one basic block to another, out of blocks of which that is known."""
NOWHERE: Went = {}
TRIPS = 16
"""Iterations that a loop is taken to make where nobody says."""


class Traffic(NamedTuple):
    """What one warp moves when it executes a memory instruction once, on average."""

    passes: float
    """Cycles that the load/store unit, or the constant cache, of the multiprocessor is busy: distinct lines, conflicting banks."""
    sectors: float
    """32-byte sectors that go to the second-level cache."""
    missed: float
    """Share of the executions of which at least one sector goes there, 0 to 1."""
    memory: float
    """Share of these sectors that memory must deliver or take, 0 to 1."""


class Profile(NamedTuple):
    """What the timing depends on besides the code."""

    executions: Sequence[float]
    """By line: how often a warp executes it, on average over all warps."""
    slowest: Sequence[float]
    """The same for the warp of a block that executes it most: barriers, and the end of the block, wait for that one."""
    traffic: Mapping[int, Traffic]
    """By line, of memory instructions."""
    source: str
    """Where that comes from."""
    assumed: tuple[str, ...] = ()
    """Of each loop of which nobody says how often it runs, the memory accesses and float operations of one turn, sorted."""


def static_profile(
    code: Sequence[Instruction],
    flow: Flow,
    cfg: Cfg,
    loops: Loops,
    trips: Mapping[int, float],
    traffic: Mapping[int, Traffic],
    assumed: int = TRIPS,
    went: Went = NOWHERE,
    runs: Mapping[int, tuple[float, float]] | None = None,
) -> Profile:
    """A profile from the code alone.

    `trips`: iterations of a loop each time it is entered, by the block of its header; `assumed` for the others. `traffic`, by line,
    of accesses whose addresses are known; in others neighbouring threads access neighbours, all in memory. A branch goes where
    threads `went`; where that is not known, one that can pass by a loop goes into it, one to a call (the slow way of a division) is
    not taken, and others go each way equally often. `runs`: by block, where all of that is known, how often a warp runs it on average,
    and the one that runs it most.
    """
    calls = frozenset(b for b, block in enumerate(flow.blocks) if any(code[line].mnemonic == "CALL" for line in block))
    entries = _entries(cfg, loops, calls, went)
    executions, slowest = [0.0] * len(code), [0.0] * len(code)
    for b, block in enumerate(flow.blocks):
        mean = most = _often(loops.innermost[b], entries[b], trips, assumed)
        if runs is not None:
            mean, most = runs.get(b, (0.0, 0.0))
        for line in block:
            executions[line], slowest[line] = mean, most
    unknown = sorted([_work(code, flow, loop) for loop in loops.loops if loop.header not in trips and entries[loop.header] > 0])
    moved = {i: traffic.get(i) or t for i, instruction in enumerate(code) if (t := _coalesced(instruction))}
    unseen = len(moved.keys() - traffic.keys())
    source = f"code alone: {len(unknown)} loops taken to run {assumed} times, {unseen} of {len(moved)} accesses taken to be coalesced"
    return Profile(executions, slowest, moved, source, tuple(unknown))


def _often(loop: Loop | None, entries: float, trips: Mapping[int, float], assumed: int) -> float:
    """How often a block runs that is entered so often from outside of all loops around it."""
    while loop is not None:
        entries *= trips.get(loop.header, assumed)
        loop = loop.parent
    return entries


def _work(code: Sequence[Instruction], flow: Flow, loop: Loop) -> str:
    """What a turn of the loop is there for, whatever its addresses and tests look like."""
    names = [code[line].mnemonic for b in loop.blocks() for line in flow.blocks[b] if _counts(code[line])]
    return ", ".join(f"{often} {name}" for name, often in sorted(Counter(names).items()))


def _counts(instruction: Instruction) -> bool:
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    return instruction.mnemonic.startswith(_FLOAT) or (row is not None and bool((row.loads | row.stores) - {"constant"}))


def _entries(cfg: Cfg, loops: Loops, calls: Collection[int], went: Went) -> list[float]:
    """For each block, how often it is entered from the first if every loop runs once. What leaves a loop is shared by its exits."""
    inside = {loop: frozenset(loop.blocks()) for loop in loops.loops}
    leaving = {loop: [(b, s) for b in inside[loop] for s in cfg.successors[b] if s not in inside[loop]] for loop in loops.loops}
    exits = {loop: _shares(edges, went) for loop, edges in leaving.items()}
    rank = {block: i for i, block in enumerate(cfg.order)}
    entries = [float(b == 0) for b in range(len(cfg.order))]
    for b in cfg.order:
        forward = [s for s in cfg.successors[b] if rank[s] > rank[b]]
        staying = [s for s in forward if _left(loops.innermost[b], s, inside) is None]
        likely = [s for s in staying if _loop_behind(cfg, loops, s) not in (None, loops.innermost[b])]
        likely = likely or [s for s in staying if s not in calls] or staying
        shares = _shares([(b, s) for s in (staying if any((b, s) in went for s in staying) else likely)], went)
        for (_, s), share in shares.items():
            entries[s] += entries[b] * share
        for s in forward:
            if (loop := _left(loops.innermost[b], s, inside)) is not None:
                entries[s] += entries[loop.header] * exits[loop][b, s]
    return entries


def _shares(edges: Sequence[tuple[int, int]], went: Went) -> dict[tuple[int, int], float]:
    """The share of each edge in what goes along all of them: as many as went there, or the same for each if none did."""
    total = sum([went.get(edge, 0) for edge in edges])
    return {edge: went.get(edge, 0) / total if total else 1 / len(edges) for edge in edges}


def _loop_behind(cfg: Cfg, loops: Loops, block: int) -> Loop | None:
    """The loop whose header `block` is, or leads to and nowhere else."""
    if len(cfg.successors[block]) == 1 and loops.innermost[block] is not loops.innermost[cfg.successors[block][0]]:
        block = cfg.successors[block][0]
    loop = loops.innermost[block]
    return loop if loop is not None and loop.header == block else None


def _left(loop: Loop | None, target: int, inside: Mapping[Loop, frozenset[int]]) -> Loop | None:
    """The outermost loop that an edge from a block of `loop` to `target` leaves."""
    left = None
    while loop is not None and target not in inside[loop]:
        left, loop = loop, loop.parent
    return left


def _coalesced(instruction: Instruction) -> Traffic | None:
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    spaces = (row.loads | row.stores) - {"constant"} if row is not None else frozenset[str]()
    if not spaces:
        return None
    width = access_bytes(instruction.modifiers)
    passes = max(1.0, width * LANES / LINE)
    far = "global" in spaces
    return Traffic(passes, width * LANES / SECTOR if far else 0.0, float(far), float(far))


_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


def access_bytes(modifiers: Sequence[str]) -> int:
    """Bytes of one lane."""
    return next((_WIDTHS[m] for m in modifiers if m in _WIDTHS), 4)
