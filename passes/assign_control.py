"""sass-assign-control: make every control code anew, from the order of the instructions alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from sassir.dialect.attributes import ControlAttr
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.template import TemplateAttr
from sassir.errors import SchedulingError
from sassir.machine import machine
from sassir.schedule.control import assign
from sassir.translate.emit import emit_function
from sassir.translate.lift import ARCH


@dataclass(frozen=True)
class AssignControl(ModulePass):
    """Makes every control code anew: stall counts, yield, scoreboards, waits, operand reuse. Fixed kernels keep theirs."""

    name = "sass-assign-control"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        arch = op.attributes[ARCH]
        assert isinstance(arch, StringAttr)
        for kernel in op.body.ops:
            if isinstance(kernel, KernelOp) and kernel.fixed is None:
                try:
                    assign_control(kernel, arch.data)
                except SchedulingError as error:
                    raise error.at(f"kernel {kernel.function.data}") from error


def assign_control(kernel: KernelOp, arch: str) -> None:
    """Replace the control codes of an allocated kernel."""
    function = emit_function(kernel)
    ops: list[SassInstruction] = []
    blocks: list[range] = []
    number = {block: i for i, block in enumerate(kernel.body.blocks)}
    successors: list[list[int]] = []
    calls: set[int] = set()
    for b, block in enumerate(kernel.body.blocks):
        start = len(ops)
        ops += [op for op in block.ops if isinstance(op, SassInstruction)]
        blocks.append(range(start, len(ops)))
        last = block.last_op
        successors.append([number[s] for s in last.successors] if last is not None else [])
        if isinstance(last, SassBranch) and last.produces:
            calls.add(b)
    made = assign([line.instruction for line in function.lines], blocks, successors, frozenset(calls), machine(arch))
    for op, instruction in zip(ops, made, strict=True):
        op.properties["control"] = ControlAttr.of(instruction.control)
        op.properties["template"] = _marked(op.template, tuple([operand.reuse for operand in instruction.operands]))


_READ = re.compile(r"\$=?R\d*\|?")


@cache
def _marked(template: TemplateAttr, marks: tuple[bool, ...]) -> TemplateAttr:
    """The template with `.reuse` on the operands that have a mark, and on no other."""
    if not any(marks) and ".reuse" not in template.text:
        return template
    shown, hidden, rest = template.text.replace(".reuse", "").partition("; ")
    arguments = [_READ.sub(lambda match: f"{match[0]}.reuse", a, count=1) if mark else a for a, mark in zip(shown.split(", "), marks, strict=True)]
    return TemplateAttr.of(", ".join(arguments) + hidden + rest)
