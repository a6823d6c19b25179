"""Kernels to allocate, and a checker of its own for what allocation must not change: which value each operation reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.parser import Parser

from sassir.allocation.allocate import Allocation, allocate
from sassir.analysis.allocation import check_allocation
from sassir.analysis.effects import effects
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.ssa import verify_ssa
from sassir.dialect import SASS, internals
from sassir.dialect.edges import forwarded, own_operands
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.passes.virtualise import Virtualise
from sassir.rewrite.kernels import free_kernels
from sassir.translate.cubin import read_module

CUBINS = Path(__file__).parents[1] / "cubins"

Allocated = Callable[..., tuple[KernelOp, Allocation]]
Values = frozenset[SSAValue]
"""Values of the original kernel that are equal to what some place holds now."""


class Exclusive(NamedTuple):
    """What a place holds between the steps of an exchange."""

    a: Values
    b: Values


State = dict[SSAValue | str, Values | Exclusive]
"""By place: a value of the new kernel, or the address of a spill slot."""
_EXCLUSIVE = ("LOP3", "ULOP3", "PLOP3", "UPLOP3")
_SAME = ("MOV", "UMOV", "SEL", "USEL", "ISETP", "UISETP", "R2UR", "PLOP3", "UPLOP3")


class ValueFlow:
    """A kernel before allocation; `check` compares what became of it.

    A forward analysis over all paths: where paths meet, a place holds what it holds on each of them. On an edge that gives `x`
    to an argument `a`, what holds `x` holds `a` behind it.
    """

    def __init__(self, kernel: KernelOp) -> None:
        self.kernel = kernel
        self.reads: dict[Operation, tuple[SSAValue, ...]] = {}
        self.passed: dict[Operation, list[list[tuple[SSAValue, SSAValue]]]] = {}
        self.unless: dict[Operation, UnitAttr | None] = {}
        self.constants: dict[str, set[SSAValue]] = {}
        self.repeatable: dict[str, list[tuple[SSAValue, SSAValue]]] = {}
        """What pure operations made from one value, and that value."""
        flow = flow_of(kernel.body)
        for b, block in enumerate(flow.blocks):
            for op in block.ops:
                self.reads[op] = own_operands(op) if op is block.last_op else internals.operands(op)
                if isinstance(op, SassInstruction) and op.results and not internals.operands(op) and effects(op).pure:
                    for i, result in enumerate(op.results):
                        self.constants.setdefault(f"{_text(op)} {i}", set()).add(result)
                elif isinstance(op, SassInstruction) and len(self.reads[op]) == 1 and effects(op).pure:
                    for i, result in enumerate(op.results):
                        self.repeatable.setdefault(f"{_text(op)} {i}", []).append((result, self.reads[op][0]))
            last = block.last_op
            assert last is not None
            targets = [flow.blocks[s] for s in flow.cfg.successors[b]]
            if isinstance(last, SassInstruction):
                self.unless[last] = last.unless
            self.passed[last] = [list(zip(forwarded(last)[i], s.args, strict=True)) for i, s in enumerate(targets)]
        self.blocks = set(flow.blocks)
        self.undefined = frozenset(flow.blocks[0].args if not flow.cfg.predecessors[0] else ())
        self.steady = frozenset(v for values in self.constants.values() for v in values) | self.undefined

    def check(self) -> None:
        """Fails if an operation may read another value than it read before."""
        flow = flow_of(self.kernel.body)
        live = Liveness(flow).live_out
        entry: list[State | None] = [None] * len(flow.blocks)
        for b in flow.cfg.roots:
            entry[b] = {a: frozenset([a]) for a in flow.blocks[b].args}
        work = list(reversed(flow.cfg.order))
        while work:
            b = work.pop()
            before = entry[b]
            if before is None:
                continue
            state = self._run(flow.blocks[b], dict(before), complain=False)
            passed = flow.blocks[b].last_op
            kept = live[b].union(internals.operands(passed) if passed is not None else ())
            state = {place: held for place, held in state.items() if isinstance(place, str) or place in kept}
            for i, s in enumerate(flow.cfg.successors[b]):
                new = self._along(flow.blocks[b], i, flow.blocks[s], state)
                known = entry[s]
                met = new if known is None else {p: _meet(v, new[p]) for p, v in known.items() if p in new}
                if known is None or met != known:
                    entry[s] = met
                    work.append(s)
        for b, block in enumerate(flow.blocks):
            before = entry[b]
            if before is not None:
                self._run(block, dict(before), complain=True)

    def _run(self, block: Block, state: State, complain: bool) -> State:
        for op in block.ops:
            operands = internals.operands(op)
            if op in self.reads:
                for old, new in zip(self.reads[op], operands, strict=False):
                    held = state.get(new, frozenset())
                    if complain and old not in self.undefined:
                        assert not isinstance(held, Exclusive), f"{op} reads a half-done exchange"
                        assert old in held, f"{op} reads {new.name_hint}, which need not be {old}"
                gone = frozenset(op.results) - self.steady
                for place, held in state.items() if gone else ():
                    if not isinstance(held, Exclusive) and held & gone:
                        state[place] = held - gone
                state.update({r: frozenset([r]) for r in op.results})
            elif isinstance(op, SassInstruction) and op is not block.last_op:
                self._run_new(op, operands, state)
        return state

    def _run_new(self, op: SassInstruction, operands: tuple[SSAValue, ...], state: State) -> None:
        name = op.MNEMONIC
        if not operands:
            for i, result in enumerate(op.results):
                state[result] = frozenset(self.constants.get(f"{_text(op)} {i}", ())) | self.undefined
        elif name in ("STL", "STS"):
            state[op.template.text.split("]")[0]] = state[operands[1]]
        elif name in ("LDL", "LDS"):
            state[op.results[0]] = state.get("[" + op.template.text.split("[")[1].split("]")[0], frozenset())
        elif name in _EXCLUSIVE and len(operands) == 2:
            state[op.results[0]] = _exclusive(state[operands[0]], state[operands[1]])
        else:
            held = state.get(operands[0], frozenset())
            for i, result in enumerate(op.results):
                sources = () if isinstance(held, Exclusive) or len(operands) > 1 else held
                again = frozenset([made for made, source in self.repeatable.get(f"{_text(op)} {i}", ()) if source in sources])
                same = held if name in _SAME and i == 0 else frozenset[SSAValue]()
                state[result] = same if isinstance(same, Exclusive) else same | again

    def _along(self, block: Block, i: int, target: Block, state: State) -> State:
        """What holds at the start of successor `i` of `block`."""
        last = block.last_op
        assert last is not None
        given = dict(zip(target.args, [state.get(v, frozenset()) for v in forwarded(last)[i]], strict=True))
        pairs = self._pairs(last, i)
        became: dict[SSAValue, set[SSAValue]] = {}
        for value, argument in pairs:
            became.setdefault(value, set()).add(argument)
        arguments = frozenset(a for _, a in pairs)
        anything = frozenset(a for v, a in pairs if v in self.undefined)

        def renamed(held: Values | Exclusive) -> Values | Exclusive:
            if isinstance(held, Exclusive):
                return held
            return (held - arguments) | {a for v in held for a in became.get(v, ())} | anything

        return {place: renamed(held) for place, held in {**state, **given}.items()}

    def _pairs(self, terminator: Operation, i: int) -> list[tuple[SSAValue, SSAValue]]:
        """Values and the arguments that they became at the end of the original edge; nothing in the middle of it."""
        if terminator in self.passed:
            return self.passed[terminator][self._before(terminator, i)] if terminator.successors[i] in self.blocks else []
        block = terminator.parent
        assert block is not None
        (before,) = [op for op in self.passed if block in op.successors]
        return self.passed[before][self._before(before, list(before.successors).index(block))]

    def _before(self, terminator: Operation, i: int) -> int:
        """Which successor of the original terminator is successor `i` now: a branch may have been turned around."""
        turned = isinstance(terminator, SassInstruction) and terminator.unless != self.unless[terminator]
        return len(terminator.successors) - 1 - i if turned else i


def _text(op: SassInstruction) -> str:
    return f"{op.MNEMONIC} {op.modifiers} {op.template.text} {op.place}"


def _exclusive(a: Values | Exclusive, b: Values | Exclusive) -> Values | Exclusive:
    for whole, part in ((a, b), (b, a)):
        if isinstance(whole, Exclusive) and not isinstance(part, Exclusive):
            return whole.b if whole.a == part else whole.a if whole.b == part else frozenset()
    assert not isinstance(a, Exclusive)
    assert not isinstance(b, Exclusive)
    return Exclusive(a, b)


def _meet(a: Values | Exclusive, b: Values | Exclusive) -> Values | Exclusive:
    if isinstance(a, Exclusive) or isinstance(b, Exclusive):
        return a if a == b else frozenset()
    return a & b


@pytest.fixture
def same_values() -> Callable[[KernelOp], Callable[[], None]]:
    """Takes the kernel before allocation; what it returns fails if an operation reads another value than before."""
    return lambda kernel: ValueFlow(kernel).check


@pytest.fixture
def kernel() -> Callable[..., KernelOp]:
    """A kernel of free values, from the operations of its first block and the blocks behind it. It ends with an EXIT.

    `undefined`: names of registers of a `file` that nothing was written to when the kernel starts.
    """

    def parse(body: str, undefined: Sequence[str] = (), file: str = "r") -> KernelOp:
        arguments = f"({', '.join([f'%{name}: !sass.{file}' for name in undefined])})" if undefined else ""
        ctx = Context()
        ctx.load_dialect(Builtin)
        ctx.load_dialect(SASS)
        module = Parser(ctx, f'sass.kernel @k {{\n^entry{arguments}:\n{body}\nsass.exit ""()\n}}').parse_module()
        (op,) = module.body.ops
        assert isinstance(op, KernelOp)
        verify_ssa(op.body)
        return op

    return parse


@pytest.fixture
def allocated(kernel: Callable[..., KernelOp], same_values: Callable[[KernelOp], Callable[[], None]]) -> Allocated:
    """A kernel (as `kernel` makes it), allocated and checked, and what that took."""

    def run(body: str, *undefined: Sequence[str] | str) -> tuple[KernelOp, Allocation]:
        check = same_values(k := kernel(body, *undefined))
        found = allocate(k, "sm_90")
        verify_ssa(k.body)
        check_allocation(k.body)
        check()
        return k, found

    return run


@pytest.fixture
def freed() -> Callable[[str], list[tuple[KernelOp, str]]]:
    """The kernels of a cubin of tests/cubins whose registers sass-virtualise frees, and their architecture."""

    def read(name: str) -> list[tuple[KernelOp, str]]:
        module = read_module((CUBINS / f"{name}.cubin").read_bytes(), name)
        Virtualise().apply(Context(), module)
        return list(free_kernels(module))

    return read
