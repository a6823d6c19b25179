"""Write a colouring into the kernel: types, copies before operations and on edges, and SSA form again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from sassir.allocation.colouring import Colouring
from sassir.allocation.copies import parallel_copy
from sassir.allocation.edges import place_for_copies
from sassir.allocation.repair import Move
from sassir.dialect import internals
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import REGISTERS
from sassir.rewrite.reconstruct import reconstruct
from sassir.dialect.edges import forwarded, own_operands


def apply(kernel: KernelOp, colouring: Colouring) -> int:
    """Give every value its register. Returns the number of copy instructions."""
    for value, register in colouring.registers.items():
        internals.retype(value, REGISTERS[register])
    entry = dict(zip(colouring.flow.blocks, colouring.entry, strict=True))
    definitions: dict[SSAValue, SSAValue] = {}
    count = 0
    for op, moves in colouring.moves.items():
        count += _copy_before(op, moves, 0, definitions)
    for terminator, i, moves in list(_edge_moves(colouring)):
        place = colouring.exit[colouring.flow.number[terminator.parent]]
        reads = {place[v] for v in own_operands(terminator)}
        block = place_for_copies(terminator, i, any(m.target in reads for m in moves))
        assert block.last_op is not None
        count += _copy_before(block.last_op, moves, len(own_operands(block.last_op)), definitions)
    reconstruct(kernel.body, definitions, lambda block, variable: REGISTERS[entry[block][variable]])
    return count


def _copy_before(op: Operation, moves: Sequence[Move], shift: int, definitions: dict[SSAValue, SSAValue]) -> int:
    """Put a parallel copy before `op`; `shift` is added to the operand numbers in it. New definitions of values are noted."""
    assert op.parent is not None
    ops, copies = parallel_copy([m[:3] for m in moves])
    op.parent.insert_ops_before(ops, op)
    operands = list(internals.operands(op))
    for move in moves:
        for k in move.operands:
            operands[k + shift] = copies[move.target]
        if not move.operands:
            definitions[copies[move.target]] = move.value
    if any(move.operands for move in moves):
        op.operands = operands
    return len(ops)


def _edge_moves(colouring: Colouring) -> Iterator[tuple[Operation, int, list[Move]]]:
    """For each edge where values must move: the terminator, the number of the successor, the parallel copy."""
    for b, block in enumerate(colouring.flow.blocks):
        place, last = colouring.exit[b], block.last_op
        assert last is not None
        for i, (s, values) in enumerate(zip(colouring.flow.cfg.successors[b], forwarded(last), strict=False)):
            there = colouring.entry[s]
            moves = [
                Move(value, place[value], colouring.registers[argument], (k,))
                for k, (value, argument) in enumerate(zip(values, colouring.flow.blocks[s].args, strict=True))
                if place[value] != colouring.registers[argument]
            ]
            if colouring.moved:
                live = [v for v in colouring.liveness.live_in[s] if v in colouring.moved and place[v] != there[v]]
                moves += [Move(v, place[v], there[v], ()) for v in live]
            if moves:
                yield last, i, moves
