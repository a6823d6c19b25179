"""Write a colouring into the kernel: types, copies before operations and on edges, and SSA form again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import Operation, SSAValue

from sassir.allocation.colouring import Colouring, Places
from sassir.allocation.copies import is_place, parallel_copy, place_again
from sassir.allocation.edges import Ends, can_turn, ends_of_runs, is_before, is_computed, put_block, turn
from sassir.allocation.registers import AllocationError
from sassir.allocation.repair import Move
from sassir.analysis.loops import loops_of
from sassir.dialect import internals
from sassir.dialect.edges import forwarded, own_operands
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import REGISTERS
from sassir.dialect.syntax import written
from sassir.rewrite.reconstruct import reconstruct


def apply(kernel: KernelOp, colouring: Colouring) -> int:
    """Give every value its register. Returns the number of copy instructions."""
    copies = _Copies()
    for value, register in colouring.registers.items():
        internals.retype(value, REGISTERS[register])
    for op, moves in colouring.moves.items():
        copies.put_before(op, moves)
    ends = ends_of_runs(colouring.flow.blocks)
    for b, block in enumerate(colouring.flow.blocks):
        assert block.last_op is not None
        _put_on_edges(colouring, b, block.last_op, copies, ends)
    entry = dict(zip(colouring.flow.blocks, colouring.entry, strict=True))
    reconstruct(kernel.body, copies.definitions, lambda block, variable: REGISTERS[entry[block][variable]])
    for op in dict.fromkeys([v.owner for v in copies.written_again if v.first_use is None]):
        assert isinstance(op, Operation)
        op.detach()
        op.erase()
    return copies.count


def copies_weighed(colouring: Colouring) -> int:
    """The number of registers that are copied, each counted as often as it is expected to be (see `Loops.weight`)."""
    blocks, cfg = colouring.flow.blocks, colouring.flow.cfg
    loops = loops_of(cfg)
    total = 0
    for b, block in enumerate(blocks):
        edges = sum([len(_moves(colouring, b, values, s)) for s, values in _edges(colouring, b, block.last_op)]) if block.last_op else 0
        inside = sum([len(colouring.moves.get(op, ())) for op in block.ops]) if colouring.moves else 0
        total += loops.weight(b) * (edges + inside)
    return total


class _Copies:
    """Copies as they are put into the code."""

    def __init__(self) -> None:
        self.definitions: dict[SSAValue, SSAValue] = {}
        """New definitions of values that moved."""
        self.written_again: list[SSAValue] = []
        """Addresses that were written anew in place of a copy."""
        self.count = 0

    def put_before(self, op: Operation, moves: Sequence[Move]) -> None:
        """Put a parallel copy before `op`."""
        assert op.parent is not None
        again = [m for m in moves if is_place(m.value, op.parent)]
        ops, copies = parallel_copy([m[:3] for m in moves if m not in again])
        for move in again:
            ops.append(made := place_again(move.value, move.target))
            copies[move.target] = made.results[0]
            self.written_again.append(move.value)
        op.parent.insert_ops_before(ops, op)
        self.count += sum(isinstance(made, SassInstruction) for made in ops)
        operands = list(internals.operands(op))
        for move in moves:
            for k in move.operands:
                operands[k] = copies[move.target]
            if not move.operands:
                self.definitions[copies[move.target]] = move.value
        if any(move.operands for move in moves):
            op.operands = operands


def disagreements(colouring: Colouring) -> list[Operation]:
    """The computed branches for which no copies before them suit all the places that they go to."""
    found: list[Operation] = []
    for b, block in enumerate(colouring.flow.blocks):
        last = block.last_op
        assert last is not None
        if any([is_computed(last, i) for i in range(len(last.successors))]) and _moves_before(colouring, b, last) is None:
            found.append(last)
    return found


def _put_on_edges(colouring: Colouring, b: int, terminator: Operation, copies: _Copies, ends: Ends) -> None:
    """Let the values of block `b` be where its successors expect them."""
    before = _moves_before(colouring, b, terminator)
    if before is None:
        raise AllocationError(f"`{written(terminator)}` goes to places that expect one register to hold different values")
    before = before or _moves_of_latch(colouring, b, terminator)
    if before:
        copies.put_before(terminator, before)
        return
    for i, (s, values) in reversed(list(enumerate(_edges(colouring, b, terminator)))):
        if moves := _moves(colouring, b, values, s):
            back = turn(terminator) if i == 0 and s <= b and can_turn(terminator) else put_block(terminator, i, ends)
            copies.put_before(back, moves)


def _moves_before(colouring: Colouring, b: int, terminator: Operation) -> list[Move] | None:
    """The parallel copy that has to happen before a terminator, for all its successors at once; None if they do not agree on one."""
    return _together(colouring, b, terminator, [i for i in range(len(colouring.flow.cfg.successors[b])) if is_before(terminator, i)])


def _moves_of_latch(colouring: Colouring, b: int, terminator: Operation) -> list[Move]:
    """The parallel copy for all successors of a branch that closes a loop, if it can happen before the branch: it happens once an iteration
    anyway, and without a block of its own it takes no second branch."""
    if not any([s <= b and _moves(colouring, b, values, s) for s, values in _edges(colouring, b, terminator)]):
        return []
    return _together(colouring, b, terminator, range(len(terminator.successors))) or []


def _together(colouring: Colouring, b: int, terminator: Operation, edges: Collection[int]) -> list[Move] | None:
    """One parallel copy before a terminator that serves these edges and harms none; None if there is no such copy."""
    shift = len(own_operands(terminator))
    before: list[Move] = []
    for i, (s, values) in enumerate(_edges(colouring, b, terminator)):
        if i in edges:
            moves = _moves(colouring, b, values, s)
            before += [m._replace(operands=tuple([k + shift for k in m.operands])) for m in moves]
        shift += len(values)
    merged = _merge(before)
    return merged if not merged or _agree(colouring, b, terminator, merged) else None


def _edges(colouring: Colouring, b: int, terminator: Operation) -> list[tuple[int, Sequence[SSAValue]]]:
    """The successors of block `b`, and the values that its terminator hands on to each."""
    return list(zip(colouring.flow.cfg.successors[b], forwarded(terminator), strict=False))


def _moves(colouring: Colouring, b: int, passed: Sequence[SSAValue], s: int) -> list[Move]:
    """The parallel copy on the edge from block `b` to its successor, block `s`, which takes the values `passed`.

    A value that goes to another register here is passed from there, even where the argument is in its old one.
    """
    place, there = colouring.exit[b], colouring.entry[s]
    gone = list[Move]()
    if colouring.moved:
        live = colouring.liveness.live_in[s]
        gone = [Move(v, n, there[v], ()) for v, n in place.items() if v in colouring.moved and v in live and n != there[v]]
    leaving = {move.value for move in gone}
    moves = [
        Move(value, place[value], colouring.registers[argument], (k,))
        for k, (value, argument) in enumerate(zip(passed, colouring.flow.blocks[s].args, strict=True))
        if place[value] != colouring.registers[argument] or value in leaving
    ]
    return moves + gone


def _merge(moves: Sequence[Move]) -> list[Move] | None:
    """One parallel copy for all; None if two of them write different values to one register."""
    merged: dict[int, Move] = {}
    for move in moves:
        known = merged.setdefault(move.target, move)
        if known.value is not move.value or bool(known.operands) != bool(move.operands):
            return None
        merged[move.target] = known._replace(operands=tuple(dict.fromkeys(known.operands + move.operands)))
    return list(merged.values())


def _agree(colouring: Colouring, b: int, terminator: Operation, moves: Sequence[Move]) -> bool:
    """With these moves before the terminator, every successor finds its values, and the terminator its own."""
    before = colouring.exit[b]
    holder = {n: v for v, n in before.items()} | {m.target: m.value for m in moves}
    after: Places = before | {m.value: m.target for m in moves if not m.operands}
    if any(holder[after[v]] is not v for v in own_operands(terminator)):
        return False
    for s, values in zip(colouring.flow.cfg.successors[b], forwarded(terminator), strict=False):
        live = colouring.liveness.live_in[s]
        if any(after[v] != n or holder[n] is not v for v, n in colouring.entry[s].items() if v in live):
            return False
        arguments = colouring.flow.blocks[s].args
        if any(holder[colouring.registers[a]] is not v for v, a in zip(values, arguments, strict=True)):
            return False
    return True
