"""sass-stage-constants: look tables of constant memory up in shared memory, where the lanes of a warp want different places.

The constant cache serves one address at a time (CUDA C++ Best Practices Guide, Constant Memory): a table that is indexed with data
takes up to 32 turns where shared memory takes three or four. Each block copies the table first. What the table holds does not
matter: nobody writes constant memory while a kernel runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.arguments import arguments
from sassir.analysis.banks import WORD
from sassir.analysis.divergence import Divergence
from sassir.analysis.dry_run import Lookup, dry_run
from sassir.analysis.occupancy import occupancy
from sassir.analysis.propagated import propagate
from sassir.analysis.propagation import Propagation
from sassir.cubin.shared import reserved_shared
from sassir.dialect.edges import predecessors
from sassir.dialect.facts import Dim3, facts_of, record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import SHARED, KernelOp, LabelOp, added_shared
from sassir.dialect.registers import R
from sassir.dialect.syntax import written
from sassir.errors import TranslationError
from sassir.isa.semantics.evaluator import Flags
from sassir.rewrite.build import arguments_of, encodable, instruction, name_of, rewritten
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import put_in_place
from sassir.rewrite.sparing import sparing_ranges
from sassir.translate.summaries import summaries

_TURNS, _TURNS_OF_BANKS, _BARRIER = 32, 4, 30
"""Cycles that a look-up with different places takes at most in constant memory, and on average in shared memory (32 random words in
32 banks: the fullest bank has 3.5), and a barrier."""
_GAIN = 2
"""How often over the copy must pay, since the lanes may want fewer places than they could."""
_MOST_BYTES = 16 * 1024
_MOST_STATIC = 48 * 1024
"""Bytes of static shared memory that a kernel can have (CUDA Programming Guide 13.0, compute capabilities)."""
_ALIGNMENT = 16
_CLUSTERS_SINCE = 90
"""Bits 24 and up of an address in shared memory tell the block of the cluster."""
_ADDRESS = re.compile(r"c\[0x3\]\[\$(?P<offset>[-+]+0x[0-9a-f]+)?\]")
_WIDTHS = {"": 4, "U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8}


class Staged(NamedTuple):
    """One look-up in a table in constant bank 3."""

    op: SassInstruction
    register: SSAValue
    offset: int
    """What is added to the index in the register, for the place in the bank."""
    first: int
    last: int
    """The first byte that it may read, and the one behind the last."""


class _Table(NamedTuple):
    """The part of the bank that is copied, and where to."""

    begin: int
    end: int
    place: int
    """In the shared memory of the block."""


@dataclass(frozen=True)
class StageConstants(ModulePass):
    """Copies tables of constant memory to shared memory, for kernels that make enough look-ups."""

    name = "sass-stage-constants"

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = summaries(op)
        for kernel, arch in free_kernels(op):
            summary = found.kernels.get(kernel.section.data) if kernel.section is not None else None
            if found.constants and summary is not None and summary.registers is not None:
                stage_constants(kernel, arch, found.constants, summary.shared, summary.registers)


def stage_constants(kernel: KernelOp, arch: str, size: int, static: int, registers: int) -> int:
    """Stage the table of a kernel, of a module with `size` bytes in constant bank 3. Returns the number of look-ups changed.

    `static`: bytes of static shared memory that it has, the driver's included.
    """
    facts = facts_of(kernel)
    entry = kernel.body.blocks[0]
    if facts.block is None or facts.shared != 0 or predecessors(kernel.body)[entry]:
        return 0
    known = propagate(kernel, arch)
    found = _lookups(kernel, known, size)
    if not found:
        return 0
    clusters = int("".join(c for c in arch if c.isdigit())) >= _CLUSTERS_SINCE
    reserved = reserved_shared(arch)
    used = (static or reserved) + added_shared(kernel)
    begin, end = min(s.first for s in found) & -_ALIGNMENT, -(-max(s.last for s in found) // WORD) * WORD
    table = _Table(begin, end, -(-used // _ALIGNMENT) * _ALIGNMENT)
    more = table.place + end - begin - used
    threads = prod(facts.block)
    fits = end <= size and end - begin <= _MOST_BYTES and used + more <= _MOST_STATIC
    blocks, fewer = (occupancy(arch, registers, used - reserved + extra, threads).blocks for extra in (0, more))
    if not fits or fewer < blocks or not _pays(kernel, known, facts.block, found, table):
        return 0
    base = _copy(entry, facts.block, table, clusters, arch)
    for lookup in found:
        _stage(lookup, table, base, arch)
    kernel.attributes[SHARED] = IntAttr(added_shared(kernel) + more)
    record_use(kernel, {*known.used, "block", "shared"})
    return len(found)


def _lookups(kernel: KernelOp, known: Propagation, size: int) -> list[Staged]:
    """The loads from bank 3 whose index differs between lanes and is sure to lie in the bank."""
    varying = Divergence(kernel.body).varying
    found: list[Staged] = []
    for block in kernel.body.blocks:
        for op in block.ops:
            if isinstance(op, SassInstruction) and op.MNEMONIC == "LDC" and op.link is None:
                lookup = _lookup(op, known)
                if lookup is not None and lookup.register in varying and lookup.first >= 0 and lookup.last <= size:
                    found.append(lookup)
    return found


def _lookup(op: SassInstruction, known: Propagation) -> Staged | None:
    address = arguments(op)[1]
    match = _ADDRESS.fullmatch(address.text)
    width = _WIDTHS.get(op.modifiers.data if op.modifiers is not None else "")
    if match is None or width is None or not isinstance(address.values[0].type, R):
        return None
    offset = int((match["offset"] or "0").replace("+-", "-"), 16)
    index = known.range(address.values[0])
    return Staged(op, address.values[0], offset, index.low + offset, index.high + offset + width)


def _pays(kernel: KernelOp, known: Propagation, threads: Dim3, found: Sequence[Staged], table: _Table) -> bool:
    """Whether the turns saved are more than what the copy takes."""
    runs = 0

    def visit(op: SassInstruction, lookup: Lookup, active: Flags, reached: Flags) -> None:
        nonlocal runs
        runs += int(active.sum())

    dry_run(kernel, known, threads, {lookup.op for lookup in found}, visit)
    copies = -(-(table.end - table.begin) // (WORD * prod(threads)))
    saved = runs / prod(threads) * (_TURNS - _TURNS_OF_BANKS)
    return saved > _GAIN * (copies * (_TURNS + 1) + _BARRIER)


def _copy(entry: Block, threads: Dim3, table: _Table, clusters: bool, arch: str) -> SSAValue | None:
    """Let the block copy the table before it does anything else. Returns the uniform register to add to addresses, if there is one."""
    ops: list[SassInstruction] = []

    def add(text: str, *reads: SSAValue, guard: SSAValue | None = None, kept: Sequence[SSAValue] = ()) -> SSAValue:
        ops.append(instruction(text, reads, guard, False, kept))
        return ops[-1].results[0]

    base = add("ULEA =UR, $UR, 0x0, 0x18", add("S2UR =UR, SR_CgaCtaId")) if clusters else None
    thread = add("S2R =R, SR_TID.X")
    for axis, before in (("Y", threads[0]), ("Z", threads[0] * threads[1])):
        if prod(threads) > before:
            thread = add(f"IMAD =R, $R, {before:#x}, $R", add(f"S2R =R, SR_TID.{axis}"), thread)
    place = add("SHF.L.U32 =R, $R, 0x2, RZ", thread)
    row = WORD * prod(threads)
    for begin in range(table.begin, table.end, row):
        whole = table.end - begin >= row
        guard = None if whole else add(f"ISETP.LT.U32.AND =P, PT, $R, {table.end - begin:#x}, PT", place)
        kept = () if guard is None else (add("MOV =R, RZ"),)
        word = add(f"LDC =R, c[0x3][$R{_displacement(begin)}]", place, guard=guard, kept=kept)
        address = _shared(base, table.place + begin - table.begin)
        ops.append(instruction(f"STS {address}, $R", [place, *([base] if base is not None else []), word], guard))
    forms = [instruction(f"{name} 0x0") for name in ("BAR.SYNC.DEFER_BLOCKING", "BAR.SYNC")]
    first = next(op for op in entry.ops if not isinstance(op, LabelOp))
    entry.insert_ops_before([*ops, next(op for op in forms if encodable(op, arch))], first)
    return base


def _stage(lookup: Staged, table: _Table, base: SSAValue | None, arch: str) -> None:
    """Let a look-up read the copy. Raises TranslationError if `arch` cannot."""
    op, shown = lookup.op, arguments_of(lookup.op)
    shown[1] = _shared(base, table.place + lookup.offset - table.begin)
    new = rewritten(op, name_of(op).replace("LDC", "LDS"), shown, [lookup.register, *([base] if base is not None else [])])
    if not encodable(new, arch):
        raise TranslationError(f"`{written(op)}`: {arch} has no such load from shared memory")
    put_in_place(op, new)


def _shared(base: SSAValue | None, offset: int) -> str:
    """An address in shared memory, `offset` bytes behind what is in a register, in the part of the block itself."""
    return f"[$R{_displacement(offset)}]" if base is None else f"[$R+$UR{_displacement(offset)}]"


def _displacement(offset: int) -> str:
    return f"{offset:+#x}" if offset > 0 else f"+-{-offset:#x}" if offset else ""
