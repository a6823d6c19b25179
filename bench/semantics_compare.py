"""What the semantics gives for a form, and how far the hardware's results are from it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from semantics_data import LANES, SOURCES, constants, operands
from semantics_kernel import CONSTANT_BASE, Probe, probe

from sassir.asm.operand import register_file
from sassir.isa.semantics import Constant, deviation

Words = NDArray[np.uint32]
SHOWN = 12
"""Lanes that do not agree which are written down."""
RECORDED = 2
"""Warps whose results are kept, of each form."""
FARTHEST = 64


@dataclass
class Record:
    """What one form showed."""

    form: str
    verdict: str
    """`equal`, `close` within the deviation that the semantics allows, `different`, `illegal` if the hardware does not execute
    the instruction, or `failed`."""
    lanes: int = 0
    agree: int = 0
    detail: str = ""
    ulp: dict[str, int] = field(default_factory=dict[str, int])
    """Lanes by distance in units of the last place, sign included, FARTHEST or more together; `nan` where only one side is NaN."""
    beyond: dict[str, int] = field(default_factory=dict[str, int])
    """The greatest distance in units of the last place among lanes that differ by more than a power of two, by its exponent."""
    mismatches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    digest: str = ""
    """The beginning of the SHA-256 of the hardware's results on all lanes."""

    def row(self) -> str:
        """One line of JSON, without what is empty."""
        return json.dumps({key: value for key, value in asdict(self).items() if value or key == "agree"})


def recorded_warps(text: str) -> NDArray[np.int64]:
    """The warps of a form whose results are kept: others for each form, so that all ways to make operands have their turn."""
    warps = LANES // 32
    return (np.arange(RECORDED) * (warps // 2 + 77) + crc32(text.encode())) % warps


def expected(test: Probe, warps: Any = slice(None)) -> Words:
    """Results of the semantics for the chosen warps: words of the shape (results, warps, 32), 0 for lanes that the guard excludes."""
    words = _words(test, warps)
    active = active_lanes(test, warps)
    values = [_value(source, test, words) for source in test.evaluator.sources]
    results = test.evaluator.evaluate(*([active] if test.evaluator.warp else []), *values)
    return np.stack([np.where(active, x, 0).astype(np.uint32) for x in results])


def active_lanes(test: Probe, warps: Any = slice(None)) -> NDArray[np.bool_]:
    """Where the guard holds, of the shape (warps, 32)."""
    words, guard = _words(test, warps), test.instruction.guard
    if guard is None:
        return np.ones_like(operands()[0].reshape(-1, 32)[warps], np.bool_)
    return words[guard.registers[0]] & np.uint32(1) != np.uint32(guard.negated)


def _words(test: Probe, warps: Any) -> dict[str, Words]:
    """The words that each register is loaded with."""
    return dict(zip(test.registers, operands().reshape(SOURCES, -1, 32)[:, warps], strict=False))


def _value(source: Any, test: Probe, words: dict[str, Words]) -> Any:
    if isinstance(source, Constant):
        return constants(test.text)[(source.offset - CONSTANT_BASE) // 4]
    file = register_file(source.name)
    word = words[source.name]
    if file in ("UR", "UP"):
        word = word[:, :1]
    return (word & 1).astype(np.bool_) if file in ("P", "UP") else word


def compare(test: Probe, hardware: Words) -> Record:
    """The record of a form from the hardware's results, of the shape (results, lanes)."""
    ours = expected(test).reshape(hardware.shape)
    equal = (ours == hardware).all(axis=0)
    agree = int(equal.sum())
    verdict = "equal" if agree == LANES else "close" if close(test, ours, hardware).all() else "different"
    record = Record(test.text, verdict, LANES, agree, digest=digest(hardware))
    if deviation(test.instruction) is not None:
        record.ulp, record.beyond = distances(test, ours, hardware)
    record.mismatches = [_mismatch(test, int(lane), ours, hardware) for lane in _spread(np.flatnonzero(~equal))]
    return record


def compare_again(record: Record) -> Record:
    """The record for the semantics as it is now, without a GPU: by the digest of what the hardware gave on all lanes.

    Where the digests differ, it stays as it was, and is `different` if it was `equal`.
    """
    if not record.digest:
        return record
    if digest(expected(probe(record.form))) == record.digest:
        return Record(record.form, "equal", LANES, LANES, digest=record.digest)
    return replace(record, verdict="different", agree=0) if record.verdict == "equal" else record


def digest(results: Words) -> str:
    """The beginning of the SHA-256 of all results."""
    return hashlib.sha256(np.ascontiguousarray(results).tobytes()).hexdigest()[:16]


def _spread(lanes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Some of the lanes, from first to last."""
    return lanes[np.unique(np.linspace(0, len(lanes) - 1, SHOWN).astype(int))] if len(lanes) else lanes


def _mismatch(test: Probe, lane: int, ours: Words, hardware: Words) -> dict[str, Any]:
    first = lane - lane % 32
    place = {r: first if register_file(r) in ("UR", "UP") else lane for r in test.registers}
    shown = {r: f"{operands()[k, place[r]]:#x}" for k, r in enumerate(test.registers)}
    shown |= {f"c{c.offset:#x}": f"{constants(test.text)[(c.offset - CONSTANT_BASE) // 4]:#x}" for c in test.constants}
    return {"lane": lane, **shown, "ours": [f"{x:#x}" for x in ours[:, lane]], "hardware": [f"{x:#x}" for x in hardware[:, lane]]}


def close(test: Probe, ours: Words, hardware: Words) -> NDArray[np.bool_]:
    """Where results agree as well as the semantics promises."""
    allowed = deviation(test.instruction)
    if allowed is None:
        return ours == hardware
    apart, steps, nan = _differences(test, ours, hardware)
    return ~nan & ((np.abs(steps) <= allowed.places) | (apart <= allowed.absolute))


def distances(test: Probe, ours: Words, hardware: Words) -> tuple[dict[str, int], dict[str, int]]:
    """`ulp` and `beyond` of a Record: hardware minus ours."""
    apart, steps, nan = _differences(test, ours, hardware)
    counts = zip(*np.unique(np.clip(steps, -FARTHEST, FARTHEST), return_counts=True), strict=True)
    ulp = {str(k): int(v) for k, v in counts} | {"nan": int(nan.sum())}
    beyond = {str(e): int(np.abs(steps[apart > 2.0**e]).max(initial=0)) for e in range(-30, -10, 2)}
    return ulp, beyond


@np.errstate(invalid="ignore")
def _differences(test: Probe, ours: Words, hardware: Words) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """Hardware minus ours: the size of the difference, the places between them, 0 for NaN, and where only one is NaN."""
    (x, x_steps), (y, y_steps) = (_numbers(test, words) for words in (ours, hardware))
    numbers = (x == x) & (y == y)
    apart = np.where(numbers & (x != y), np.abs(y - x), 0)
    return apart, np.where(numbers, y_steps - x_steps, 0), (x == x) != (y == y)


def _numbers(test: Probe, words: Words) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The numbers that a form gives, and their places in the row of all numbers of their type."""
    modifiers = test.instruction.modifiers
    bits = np.ascontiguousarray(words).view(np.uint16) if "F16" in modifiers else words
    if "RCP64H" in modifiers or "RSQ64H" in modifiers:
        numbers = (words.astype(np.uint64) << np.uint64(32)).view(np.float64)
    else:
        numbers = bits.view(f"f{bits.itemsize}").astype(np.float64)
    sign = bits.dtype.type(1 << 8 * bits.itemsize - 1)
    size = (bits & ~sign).astype(np.int64)
    return numbers.ravel(), np.where(bits & sign, -size, size).ravel()


def write_recorded(path: Path, results: dict[str, Words]) -> None:
    """Keep what the hardware gave on the recorded warps, by form: words of the shape (results, warps, 32)."""
    forms = np.frombuffer("\n".join(results).encode(), np.uint8)
    counts = np.array([len(words) for words in results.values()], np.uint8)
    np.savez_compressed(path, forms=forms, counts=counts, words=np.concatenate([words.ravel() for words in results.values()]))


def read_recorded(path: Path) -> dict[str, Words]:
    """What `write_recorded` kept."""
    with np.load(path) as file:
        forms, words = file["forms"].tobytes().decode().split("\n"), file["words"].reshape(-1, RECORDED, 32)
        ends = np.cumsum(file["counts"], dtype=np.int64)
    return dict(zip(forms, np.split(words, ends[:-1]), strict=True))
