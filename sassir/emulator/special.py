"""Special registers: what S2R, S2UR and CS2R read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from sassir.emulator.lanes import LANES, Array
from sassir.emulator.memory import SHARED_WINDOW

if TYPE_CHECKING:
    from sassir.emulator.batch import Batch


def special_register(name: str, batch: Batch) -> Array | None:
    """Its value for the blocks of the batch, of a shape that broadcasts to (warps, 32); None for one that is not emulated."""
    read = _REGISTERS.get(name)
    return None if read is None else np.atleast_2d(np.asarray(read(batch))).astype(np.uint32)


def _thread(axis: int) -> Callable[[Batch], Array]:
    def read(batch: Batch) -> Array:
        x, y, _ = batch.launch.block
        return (batch.threads % x, batch.threads // x % y, batch.threads // (x * y))[axis]

    return read


def _block(axis: int) -> Callable[[Batch], Array]:
    def read(batch: Batch) -> Array:
        x, y, _ = batch.launch.grid
        return (batch.blocks % x, batch.blocks // x % y, batch.blocks // (x * y))[axis]

    return read


def _mask(lanes: Callable[[int], int]) -> Callable[[Batch], Array]:
    values = np.array([[lanes(lane) & 0xFFFFFFFF for lane in range(LANES)]])
    return lambda batch: values


def _number(value: int) -> Callable[[Batch], Array]:
    return lambda batch: np.array(value)


_REGISTERS: Mapping[str, Callable[[Batch], Array]] = {
    "SRZ": _number(0),
    **{f"SR_TID.{axis}": _thread(i) for i, axis in enumerate("XYZ")},
    **{f"SR_CTAID.{axis}": _block(i) for i, axis in enumerate("XYZ")},
    **{f"SR_NTID.{axis}": lambda batch, i=i: np.array(batch.launch.block[i]) for i, axis in enumerate("XYZ")},
    **{f"SR_NCTAID.{axis}": lambda batch, i=i: np.array(batch.launch.grid[i]) for i, axis in enumerate("XYZ")},
    "SR_LANEID": lambda batch: np.arange(LANES),
    "SR_EQMASK": _mask(lambda lane: 1 << lane),
    "SR_LTMASK": _mask(lambda lane: (1 << lane) - 1),
    "SR_LEMASK": _mask(lambda lane: (2 << lane) - 1),
    "SR_GTMASK": _mask(lambda lane: ~((2 << lane) - 1)),
    "SR_GEMASK": _mask(lambda lane: ~((1 << lane) - 1)),
    "SR_SWINHI": _number(SHARED_WINDOW >> 32),
    "SR_SWINLO": _number(SHARED_WINDOW & 0xFFFFFFFF),
    "SR_LMEMHIOFF": lambda batch: np.array(batch.local.lowest),
    "SR_CgaCtaId": _number(0),  # no cluster
}
