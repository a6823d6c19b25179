"""sass-swizzle-shared: exchange words within the 128-byte lines of shared memory, so that the lanes of a warp use different banks.

Every address a becomes a ^ (a >> distance & mask): bits of the line number are added, without carries, to the place in the
line. That exchanges places within each line and nothing else, so it may be done to all accesses of a kernel, or to none, and
needs no knowledge of what the arrays are. It costs no memory but the rest of the last line, which the hardware hands out anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from sassir.allocation.launch import bounds_of, launch_bounds
from sassir.analysis.affine import Affine, as_signed
from sassir.analysis.arguments import arguments
from sassir.analysis.banks import LINE, WORD, Seen, executions, least_wavefronts, look, total_wavefronts
from sassir.analysis.possible_bits import possible_bits
from sassir.analysis.propagated import propagate
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import LARGEST
from sassir.analysis.shared import SharedAccess, all_shared_accesses
from sassir.dialect.facts import facts_of, record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import SHARED, KernelOp, LabelOp, added_shared
from sassir.dialect.registers import UR
from sassir.dialect.syntax import written
from sassir.errors import TranslationError
from sassir.isa.semantics.evaluator import Words
from sassir.passes.dce import drop_dead_code
from sassir.passes.gvn import number_values
from sassir.rewrite.build import addition, arguments_of, encodable, instruction, name_of, rewritten, signed
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import replace
from sassir.rewrite.sparing import sparing_ranges

_COST = 1.5
"""Wavefronts that a new address must save: it takes up to three integer instructions, of which a multiprocessor issues two a cycle
(CUDA Programming Guide, arithmetic throughput), a wavefront takes one."""
_FARTHEST = 12
_REACH = 1 << 23
"""Displacements are signed numbers of 24 bits (sass-facts: bits 40 to 63 of memory instructions)."""
_XOR, _AND_XOR = "0x3c", "0x6a"
"""Tables of LOP3 for a ^ b and (a & b) ^ c."""


class Swizzle(NamedTuple):
    """An exchange of places within each line."""

    distance: int
    mask: int

    def of(self, address: int) -> int:
        """The new place of what was at `address`."""
        return address ^ (address >> self.distance & self.mask)

    def of_all(self, addresses: Words) -> Words:
        """The same for many."""
        return addresses ^ (addresses >> np.uint32(self.distance) & np.uint32(self.mask))

    @property
    def deciding(self) -> int:
        """The bits of an address that decide what is added, and all below."""
        return (LINE << self.distance) - 1


@dataclass(frozen=True)
class SwizzleShared(ModulePass):
    """Swizzles the shared memory of every kernel in which that saves more wavefronts than it costs instructions."""

    name = "sass-swizzle-shared"

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bounds = launch_bounds(op)
        for kernel, arch in free_kernels(op):
            static = bounds_of(kernel, bounds).shared
            swizzle_shared(kernel, arch, static)


def swizzle_shared(kernel: KernelOp, arch: str, static: int) -> Swizzle | None:
    """Swizzle the accesses of one kernel with `static` bytes of static shared memory. Returns how, None if it stayed as it was."""
    static += added_shared(kernel)
    facts = facts_of(kernel)
    accesses = all_shared_accesses(kernel)
    if not accesses or facts.block is None or facts.shared is None or (facts.shared and static % LINE):
        return None
    known = propagate(kernel, arch)
    chosen = _choose(look(kernel, known, facts.block, accesses), accesses)
    if chosen is None:
        return None
    rewriter = _Rewriter(known, chosen)
    for access in accesses:
        rewriter.rewrite(access)
    record_use(kernel, {*known.used, "block", "shared"})
    rest = -(static + facts.shared) % LINE
    if rest:
        kernel.attributes[SHARED] = IntAttr(added_shared(kernel) + rest)
    number_values(kernel)
    drop_dead_code(kernel.body)
    return chosen


def _candidates(widest: int) -> Iterator[Swizzle]:
    """What an access of `widest` bytes touches stays together, and what is added comes from above the line."""
    unit = max(WORD, widest).bit_length() - 1
    for distance in range(LINE.bit_length() - 1 - unit, _FARTHEST):
        yield Swizzle(distance, LINE - (1 << unit))


def _choose(seen: Sequence[Seen], accesses: Sequence[SharedAccess]) -> Swizzle | None:
    """The swizzle with the fewest wavefronts; None if no one pays."""
    now, cost = total_wavefronts(seen), _COST * executions(seen)
    if now - least_wavefronts(seen) <= cost:
        return None
    best = min(_candidates(max(a.width for a in accesses)), key=lambda swizzle: total_wavefronts(seen, swizzle.of_all))
    return best if now - total_wavefronts(seen, best.of_all) > cost else None


class _Rewriter:
    """Gives every access its new address."""

    def __init__(self, known: Propagation, swizzle: Swizzle) -> None:
        self.known = known
        self.forms = Affine(known)
        self.swizzle = swizzle
        self.places: dict[SSAValue, SSAValue] = {}
        """The new place of what each register points at."""

    def rewrite(self, access: SharedAccess) -> None:
        address, offset = self._address(access)
        new = _at(access, address, offset, self.known.arch)
        assert access.op.parent is not None
        access.op.parent.insert_op_before(new, access.op)
        replace(access.op, new.results)

    def _address(self, access: SharedAccess) -> tuple[SSAValue, int]:
        """The register and the displacement where the access goes now."""
        op, offset = access.op, access.offset & LARGEST
        if not access.terms:
            return _before(op, instruction(f"MOV =R, {self.swizzle.of(offset):#x}")), 0
        base = self._base(access)
        split = self._split(base, offset)
        if split is None:
            moved = _before(op, addition("$R", signed(offset), [base], self.known.arch))
            return self._place(moved), 0
        flipped, displacement = split
        place = self._place(base)
        return _before(op, instruction(f"LOP3.LUT =R, $R, {flipped:#x}, RZ, {_XOR}, !PT", [place])) if flipped else place, displacement

    def _base(self, access: SharedAccess) -> SSAValue:
        """The sum of the registers of an address, in one of them."""
        total: SSAValue | None = None
        for value, scale in access.terms:
            if isinstance(value.type, UR):
                value = _before(access.op, instruction("MOV =R, $UR", [value]))
            if scale > 1:
                value = _before(access.op, instruction(f"SHF.L.U32 =R, $R, {scale.bit_length() - 1:#x}, RZ", [value]))
            total = value if total is None else _before(access.op, addition("$R", "$R", [total, value], self.known.arch))
        assert total is not None
        return total

    def _split(self, base: SSAValue, offset: int) -> tuple[int, int] | None:
        """What to XOR to the place of `base`, and what to add then, for the place of `base` + `offset`.

        Only where adding carries nothing into the bits that matter: let the base be `fixed` and a rest that has none of the bits of
        `fixed`, nor of `fixed` + `offset`. Then the sums are XORs too, and the place of a XOR is the XOR of the places.
        """
        form = self.forms.word(base)
        for fixed in (form.constant, 0):
            moved = (fixed + offset) & LARGEST
            rest = possible_bits(form.constant - fixed, form.terms, self.known)
            displacement = as_signed((moved & -LINE) - (fixed & -LINE))
            if not rest & (fixed | moved) & self.swizzle.deciding and -_REACH <= displacement < _REACH:
                return (self.swizzle.of(fixed) ^ self.swizzle.of(moved)) & (LINE - 1), displacement
        return None

    def _place(self, base: SSAValue) -> SSAValue:
        """The new place of what is at `base`, computed behind it."""
        found = self.places.get(base)
        if found is None:
            shifted = instruction(f"SHF.R.U32.HI =R, RZ, {self.swizzle.distance:#x}, $R", [base])
            added = instruction(f"LOP3.LUT =R, $R, {self.swizzle.mask:#x}, $R, {_AND_XOR}, !PT", [shifted.results[0], base])
            _behind(base, [shifted, added])
            found = self.places[base] = added.results[0]
        return found


def _before(op: SassInstruction, new: SassInstruction) -> SSAValue:
    """Put `new` before `op`. Returns its result."""
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    return new.results[0]


def _behind(value: SSAValue, new: Sequence[SassInstruction]) -> None:
    """Put operations behind the definition of `value`."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    following = next(op for op in owner.ops if not isinstance(op, LabelOp)) if isinstance(owner, Block) else owner.next_op
    assert block is not None
    assert following is not None
    block.insert_ops_before(new, following)


def _at(access: SharedAccess, address: SSAValue, offset: int, arch: str) -> SassInstruction:
    """The access at another address. Raises TranslationError if `arch` has no form for it."""
    op = access.op
    displacement = f"{offset:+#x}" if offset > 0 else f"+-{-offset:#x}" if offset else ""
    reads = [v for k, a in enumerate(arguments(op)) for v in ([address] if k == access.operand else a.values)]
    for text in (f"[$R{displacement}]", f"[$R+URZ{displacement}]"):
        shown = [text if k == access.operand else argument for k, argument in enumerate(arguments_of(op))]
        new = rewritten(op, name_of(op), shown, reads)
        if encodable(new, arch):
            return new
        new.erase()
    raise TranslationError(f"`{written(op)}`: {arch} has no form of it with an address in one register")
