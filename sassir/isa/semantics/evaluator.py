"""What the semantics of an instruction hands to its users: constant folding, the emulator, and the tests on hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""A `uint32` array (a register of some lanes) or a `bool` array (a predicate)."""
Words: TypeAlias = NDArray[np.uint32]
Flags: TypeAlias = NDArray[np.bool_]


class Register(NamedTuple):
    """A register that is read: `R4`, `UR6`, `P0`, `UP1`; never a zero register."""

    name: str


class Constant(NamedTuple):
    """One 32-bit word of constant memory."""

    bank: int | None
    """None for a bindless bank `cx[UR4][…]`: then `base` is the first register of its descriptor."""
    offset: int
    """In bytes; negative where the instruction says so."""
    base: str | None
    """The register that is added to the offset, or the descriptor of a bindless bank."""


class SpecialRegister(NamedTuple):
    """A special register, `SR_TID.X`."""

    name: str
    word: int = 0
    """1 for the high half of a 64-bit one."""


Source: TypeAlias = Register | Constant | SpecialRegister


class Evaluator(NamedTuple):
    """The meaning of one instruction as a function of numpy arrays. The guard and inactive lanes are the caller's business."""

    sources: tuple[Source, ...]
    """What to hand in, in this order; zero registers and immediates are built in."""
    results: tuple[str, ...]
    """The registers written, in the order of the returned arrays; zero registers are left out."""
    evaluate: Callable[..., tuple[Array, ...]]
    """Takes one array a source, of shapes that broadcast: uint32, bool for predicates. Returns one array a result, of a shape
    that broadcasts to theirs. A returned array may be one that was handed in: do not write into it."""
    warp: bool
    """Lanes work together: arrays have the shape (warps, 32), and `active`, the bool array of the lanes that take part,
    comes before the sources."""
