"""Check a program: stall counts and scoreboards cover every dependence of its code, on every path.

A forward analysis over the control-flow graph of each code section. What is not known is careful: an unknown instruction
is a finding of its own, and before code that is not known everything must be over.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassir.analysis.cfg import Cfg
from sassir.asm.program import Function, Program
from sassir.cubin.cubin import Cubin
from sassir.findings import Finding
from sassir.machine import Machine, machine
from sassir.translate.branches import JumpTables
from sassir.translate.cubin import jump_tables
from sassir.translate.flow import Flow, find_flow, graph_of
from sassir.verify.schedule.accesses import find_accesses
from sassir.verify.schedule.codes import check_codes
from sassir.verify.schedule.flight import Flight
from sassir.verify.schedule.report import Reporter
from sassir.verify.schedule.rules import Fault
from sassir.verify.schedule.transfer import Transfer

_NO_TABLES: JumpTables = {}


def check_schedule(program: Program) -> list[Finding]:
    """What is wrong with the schedule of each function of `program`, in the order of the code. Raises as `find_flow`."""
    tables: Mapping[int, JumpTables] = {}
    if program.container is not None:
        tables = jump_tables(Cubin.read(program.container, "the container"))
    description = machine(program.arch)
    findings: list[Finding] = []
    for function in program.functions:
        known = tables.get(function.section, _NO_TABLES) if function.section is not None else _NO_TABLES
        findings += check_function(function, find_flow(function, known), description)
    return findings


def check_function(function: Function, flow: Flow, description: Machine) -> list[Finding]:
    """What is wrong with the schedule of one code section."""
    faults, report = find_faults(function, flow, description)
    return [*report.flow_problem(), *report.findings(faults)]


def find_faults(function: Function, flow: Flow, description: Machine) -> tuple[list[Fault], Reporter]:
    """The rules that one code section breaks, as records, and what puts them into words."""
    code = [line.instruction for line in function.lines]
    facts = list(find_accesses(code, flow.shapes, description))
    transfer = Transfer(facts, [instruction.control for instruction in code], description)
    cfg = graph_of(flow)
    faults = _propagate(flow, cfg, transfer)
    for block in flow.blocks:
        faults += check_codes(code, facts, block)
    return faults, Reporter(function, flow, cfg, transfer)


def _propagate(flow: Flow, cfg: Cfg, transfer: Transfer) -> list[Fault]:
    """Run the transfer over all blocks until nothing changes; the faults of the final states."""
    entry = [Flight() for _ in flow.blocks]
    faults: list[list[Fault]] = [[] for _ in flow.blocks]
    waiting = set(cfg.order)
    while waiting:
        for b in cfg.order:
            if b not in waiting:
                continue
            waiting.discard(b)
            faults[b] = []
            flight, block = entry[b].copy(), flow.blocks[b]
            for line in block:
                transfer.step(flight, line, faults[b])
            if b in flow.calling:
                transfer.leave(flight, block[-1], faults[b])
            elif cfg.successors[b]:
                after = flight.leave(transfer.horizon)
                waiting.update([s for s in cfg.successors[b] if entry[s].join(after)])
    return [fault for found in faults for fault in found]
