"""Lift: instructions to SSA. Registers keep their names, so that emitting the result gives the same instructions.

SSA is built with dominance frontiers and pruned by liveness (Cytron et al., 1991; Choi, Cytron and Ferrante, 1991), for
all registers at once: a set of registers is one integer. Blocks that something unknown enters (the kernel's entry,
device functions, the places where calls return) have every register that is live there as an argument.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sassir.asm.control import Control
from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.operand import ZERO_REGISTERS
from sassir.asm.program import Function, Program
from sassir.dialect import internals
from sassir.dialect.attributes import ControlAttr, FieldsAttr, Origin, OriginAttr
from sassir.dialect.container import ContainerAttr
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import EndOp, KernelOp, LabelOp, NextOp
from sassir.dialect.registers import NUMBER, REGISTERS
from sassir.translate.branches import JumpTables
from sassir.translate.callees import Callees
from sassir.translate.flow import Flow, find_flow, graph_of, reads_and_writes
from sassir.translate.held import held_registers
from sassir.translate.shape import members, with_held

ARCH = "sass.arch"
CONTAINER = "sass.container"
_HINTS = tuple(r.register_name.lower() for r in REGISTERS)
_NO_CONTROL = Control()
_COMPLEMENTED = UnitAttr()


def lift_program(program: Program, tables: Mapping[int, JumpTables] | None = None) -> ModuleOp:
    """The module for all code of a file. `tables`: the targets of indirect branches, by section.

    Guarantees that `emit_program` returns an equal program. A function of which something is not known becomes a kernel
    with the attribute `fixed`, which says what; its instructions are all there, but must stay where they are.
    """
    tables = tables or {}
    callees = Callees(program, tables)
    kernels = [lift_function(f, tables.get(f.section, {}) if f.section is not None else {}, callees) for f in program.functions]
    attributes: dict[str, Attribute] = {ARCH: StringAttr(program.arch)}
    if program.container is not None:
        attributes[CONTAINER] = ContainerAttr.of(program.container)
    return ModuleOp(kernels, attributes)


def lift_function(function: Function, tables: JumpTables, callees: Callees | None = None) -> KernelOp:
    """The kernel for one code section; see `lift_program`. `callees`: the functions that it may call."""
    flow = find_flow(function, tables)
    lifter = _Lifter(function, flow, held_registers(function, flow, callees))
    return KernelOp.of(function.name, function.section, Region(lifter.blocks()), flow.problem)


class _Lifter:
    """The state of lifting one function. Registers are numbers (see `REGISTERS`), sets of them integers."""

    def __init__(self, function: Function, flow: Flow, held: dict[int, int]) -> None:
        self.lines = function.lines
        self.flow = flow
        self.held = held
        self.cfg = graph_of(flow)
        self.labels: dict[int, list[LabelOp]] = {}
        for label, offset in function.labels.items():
            self.labels.setdefault(offset // INSTRUCTION_BYTES, []).append(LabelOp.of(label, False))
        for offset, label in flow.private.items():
            self.labels.setdefault(offset // INSTRUCTION_BYTES, []).append(LabelOp.of(label, True))
        self.place_names = {offset: name for name, offset in function.labels.items()} | flow.private
        reads, writes = reads_and_writes(function, flow, held)
        self.live = self.cfg.live_in(reads, writes)
        self.arguments = self._arguments(writes)

    def _arguments(self, writes: list[int]) -> list[list[int]]:
        """The registers that each block takes as arguments."""
        live = self.live
        merged = [live[b] if b in self.cfg.roots else 0 for b in range(len(live))]
        work = list(range(len(live)))
        while work:
            block = work.pop()
            changed = writes[block] | merged[block]
            for other in self.cfg.frontiers[block]:
                new = changed & live[other] & ~merged[other]
                if new:
                    merged[other] |= new
                    work.append(other)
        return [members(m) for m in merged]

    def blocks(self) -> list[Block]:
        """Build every block, dominators first, so that each value exists before it is used."""
        blocks = [Block(arg_types=[REGISTERS[n] for n in numbers]) for numbers in self.arguments]
        holders: list[dict[int, SSAValue]] = [{} for _ in blocks]
        idom = self.cfg.dominators
        for b in self.cfg.order:
            block, start = blocks[b], INSTRUCTION_BYTES * self.flow.blocks[b].start
            internals.name(block, f"x{start:x}" if self.flow.blocks[b] else "entry" if start == 0 else "end")
            above = holders[idom[b]] if idom[b] >= 0 else {}
            holder = {n: above[n] for n in members(self.live[b]) if n in above}
            for n, argument in zip(self.arguments[b], block.args, strict=True):
                holder[n] = argument
                internals.name(argument, _HINTS[n])
            holders[b] = holder
            block.add_ops(self._operations(b, holder, [blocks[s] for s in self.flow.successors[b]]))
        return blocks

    def _operations(self, b: int, holder: dict[int, SSAValue], successors: list[Block]) -> list[Operation]:
        lines, block = self.lines, self.flow.blocks[b]
        before_loop = not block and block.start < len(lines)
        ops: list[Operation] = [] if before_loop else list(self.labels.get(block.start, ()))
        for i in block:
            found = self.flow.shapes[i]
            properties, operands = self._properties(i), [holder[n] for n in (*found.reads, *members(self.held.get(i, 0)))]
            guard = lines[i].instruction.guard
            if guard is not None:
                operands += [holder[NUMBER[n]] for n in guard.registers if n not in ZERO_REGISTERS]
                operands += [holder[n] for n in found.writes]
            if i == block[-1] and issubclass(found.op, SassBranch):
                if b not in self.flow.calling:
                    operands += self._forwarded(b, holder)
                op = found.op.create(operands=operands, properties=properties, result_types=found.types, successors=successors)
            else:
                op = found.op.create(operands=operands, properties=properties, result_types=found.types)
            for n, value in zip(found.writes, op.results, strict=True):
                holder[n] = value
                internals.name(value, _HINTS[n])
            ops.append(op)
        if not block or not issubclass(self.flow.shapes[block[-1]].op, SassBranch):
            ops.append(NextOp.create(operands=self._forwarded(b, holder), successors=successors) if successors else EndOp.create())
        return ops

    def _forwarded(self, b: int, holder: dict[int, SSAValue]) -> list[SSAValue]:
        return [holder[n] for s in self.flow.successors[b] for n in self.arguments[s]]

    def _properties(self, i: int) -> dict[str, Attribute]:
        instruction, origin = self.lines[i]
        properties = dict(self.flow.shapes[i].properties)
        if i in self.held:
            properties["template"] = with_held(self.flow.shapes[i].template, tuple([REGISTERS[n].FILE for n in members(self.held[i])]))
        if i in self.flow.linked:
            properties["link"] = StringAttr(self.flow.linked[i])
        if i in self.flow.named:
            properties["place"] = StringAttr(self.place_names[self.flow.named[i]])
        if instruction.control != _NO_CONTROL:
            properties["control"] = ControlAttr.of(instruction.control)
        guard = instruction.guard
        if guard is not None and guard.registers[0] in ZERO_REGISTERS:
            properties["constant_guard"] = StringAttr(guard.text)
        elif guard is not None and guard.negated:
            properties["unless"] = _COMPLEMENTED
        if instruction.extra:
            properties["fields"] = FieldsAttr(instruction.extra)
        if origin is not None:
            properties["origin"] = OriginAttr(Origin(origin, instruction))
        return properties
