"""Does the GPU compute what sassir says? Every form in semantics_forms.txt on 131072 lanes of random and edge operands.

    python bench/semantics_check.py -o DIR

Each form runs in a kernel of its own, made with sassir's assembler. Writes DIR/semantics-GPU-DATE.json: per form how many lanes
agree, some that do not, and for MUFU and matrix products how far apart they are in units of the last place; and
DIR/semantics-GPU.npz: what the hardware gave on two warps, so that tests repeat the comparison without a GPU.
Exits with 1 if a form that has to agree does not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from semantics_data import LANES, SOURCES, constants, operands
from semantics_kernel import ARCH, CONSTANT_BASE, KERNEL, THREADS, Probe, build, forms, probe

from sassir.asm.operand import register_file
from sassir.errors import LaunchError, SassirError
from sassir.gpu import Worker
from sassir.gpu.runner import load_driver
from sassir.isa.semantics import Constant

RESULTS = Path(__file__).parent / "results"
APPROXIMATE = frozenset({"MUFU", "HMMA"})
"""Mnemonics whose deviation is measured; all others have to agree bit for bit."""
MOST_FAILURES = 30
SHOWN = 12
RECORDED = 2
"""Warps whose results are kept, of each form."""


@dataclass
class Record:
    """What one form showed."""

    form: str
    verdict: str
    """`equal`, `close` for an approximate instruction, `different`, or `failed`."""
    lanes: int = 0
    agree: int = 0
    detail: str = ""
    ulp: dict[str, int] = field(default_factory=dict[str, int])
    """Lanes by distance in units of the last place, sign included; `special` where only one side is a number."""
    mismatches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    digest: str = ""
    """The beginning of the SHA-256 of the hardware's results on all lanes."""

    def row(self) -> str:
        """One line of JSON, without what is empty."""
        return json.dumps({key: value for key, value in asdict(self).items() if value or key == "agree"})


def launch(cubin: bytes, words: int, constant: bytes) -> NDArray[np.uint32]:
    """Run a kernel on all operands; the first `words` words of results, of the shape (words, lanes)."""
    cuda = load_driver()
    result = np.empty((words, LANES), np.uint32)
    try:
        source, target = _memory(cuda)
        cuda.memset_d32(int(target), 0xDEADBEEF, words * LANES)
        function = cuda.module_from_buffer(cubin).get_function(KERNEL)
        parameters = int(source).to_bytes(8, "little") + int(target).to_bytes(8, "little") + constant
        function.prepare([f"{len(parameters)}s"]).prepared_call((LANES // THREADS, 1, 1), (THREADS, 1, 1), parameters)
        cuda.memcpy_dtoh(result, target)
    except cuda.Error as error:
        raise LaunchError(f"the kernel failed: {error}") from error
    return result


_allocations: list[Any] = []


def _memory(cuda: Any) -> list[Any]:
    """Operands and room for results on the device, once a process."""
    if not _allocations:
        _allocations.append(cuda.mem_alloc(operands().nbytes))
        _allocations.append(cuda.mem_alloc(4 * LANES * SOURCES))
        cuda.memcpy_htod(_allocations[0], operands())
    return _allocations


def expected(test: Probe, form: int, lanes: Any = slice(None)) -> list[NDArray[Any]]:
    """Results of the semantics, as words of the shape (warps, 32), for the chosen warps."""
    words = dict(zip(test.registers, operands().reshape(SOURCES, -1, 32)[:, lanes], strict=False))
    values = [_value(source, words, form) for source in test.evaluator.sources]
    shape = operands()[0].reshape(-1, 32)[lanes].shape
    first = [np.ones(shape, np.bool_)] if test.evaluator.warp else []
    results = test.evaluator.evaluate(*first, *values)
    return [np.broadcast_to(x, shape).astype(np.uint32) for x in results]


def _value(source: Any, words: dict[str, NDArray[np.uint32]], form: int) -> Any:
    if isinstance(source, Constant):
        return constants(form)[(source.offset - CONSTANT_BASE) // 4]
    file = register_file(source.name)
    word = words[source.name]
    if file in ("UR", "UP"):
        word = word[:, :1]
    return (word & 1).astype(np.bool_) if file in ("P", "UP") else word


def compare(test: Probe, form: int, hardware: NDArray[np.uint32]) -> Record:
    """The record of a form from the hardware's results."""
    ours = np.stack([x.ravel() for x in expected(test, form)])
    equal = (ours == hardware).all(axis=0)
    agree = int(equal.sum())
    approximate = test.instruction.mnemonic in APPROXIMATE
    verdict = "equal" if agree == LANES else "close" if approximate else "different"
    record = Record(test.text, verdict, LANES, agree, digest=hashlib.sha256(hardware.tobytes()).hexdigest()[:16])
    if approximate:
        record.ulp = distances(test, ours, hardware)
    record.mismatches = [_mismatch(test, form, int(lane), ours, hardware) for lane in _spread(np.flatnonzero(~equal))]
    return record


def _spread(lanes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Some of the lanes, from first to last."""
    return lanes[np.unique(np.linspace(0, len(lanes) - 1, SHOWN).astype(int))] if len(lanes) else lanes


def _mismatch(test: Probe, form: int, lane: int, ours: NDArray[np.uint32], hardware: NDArray[np.uint32]) -> dict[str, Any]:
    first = lane - lane % 32
    place = {r: first if register_file(r) in ("UR", "UP") else lane for r in test.registers}
    shown = {r: f"{operands()[k, place[r]]:#x}" for k, r in enumerate(test.registers)}
    shown |= {f"c{c.offset:#x}": f"{constants(form)[(c.offset - CONSTANT_BASE) // 4]:#x}" for c in test.constants}
    return {"lane": lane, **shown, "ours": [f"{x:#x}" for x in ours[:, lane]], "hardware": [f"{x:#x}" for x in hardware[:, lane]]}


def distances(test: Probe, ours: NDArray[np.uint32], hardware: NDArray[np.uint32]) -> dict[str, int]:
    """The histogram of hardware minus ours in units of the last place."""
    half = "F16" in test.instruction.modifiers
    words = [x.ravel() for x in (ours, hardware)]
    if half:
        words = [np.concatenate((x & 0xFFFF, x >> 16)).astype(np.uint16) for x in words]
    special = (0x7C00 if half else 0x7F800000), (0x7FFF if half else 0x7FFFFFFF)
    finite = [(x & special[1]) < special[0] for x in words]
    steps = [np.where(x > special[1], -(x & special[1]).astype(np.int64), x.astype(np.int64)) for x in words]
    both = finite[0] & finite[1]
    delta = np.clip((steps[1] - steps[0])[both], -64, 64)
    counts = dict(zip(*np.unique(delta, return_counts=True), strict=True))
    return {str(k): int(v) for k, v in counts.items()} | {"special": int(((words[0] != words[1]) & ~both).sum())}


def recorded_warps(form: int) -> NDArray[np.int64]:
    """The warps of a form whose results are kept: others for each form, so that all ways to make operands have their turn."""
    warps = LANES // 32
    return (np.arange(RECORDED) * (warps // 2 + 128) + 193 * form) % warps


def run(worker: Worker, texts: Sequence[str], begin: str, seconds: float) -> Iterator[tuple[Record, NDArray[np.uint32] | None]]:
    """The record of each form that begins so, and the hardware's results that are kept.

    Ends early when the time is over, or when so many forms failed that something else must be wrong.
    """
    end, failures = time.perf_counter() + seconds, 0
    for form, text in enumerate(texts):
        if not text.startswith(begin):
            continue
        if failures == MOST_FAILURES or time.perf_counter() > end:
            yield Record(text, "failed", detail="not run"), None
            continue
        try:
            test = probe(text)
            hardware = worker.call(launch, build(test), len(test.evaluator.results), constants(form).tobytes())
            kept = hardware.reshape(len(hardware), -1, 32)[:, recorded_warps(form)]
            yield compare(test, form, hardware), kept
        except Exception as error:  # whatever goes wrong with one form must not cost the results of the others
            failures += 1
            yield Record(text, "failed", detail=f"{type(error).__name__}: {error}"[:300]), None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="DIR", help="folder of the results")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the forms that begin with this")
    parser.add_argument("--seconds", type=float, default=420, help="start no other form after this time (default: 420)")
    parser.add_argument("--dry-run", action="store_true", help="make all kernels and our results, launch nothing")
    options = parser.parse_args()
    start = time.perf_counter()
    texts = forms()
    if options.dry_run:
        return dry_run([t for t in texts if t.startswith(options.only)])
    with Worker(timeout=20) as worker:
        device = worker.describe_device()
        if device.arch != ARCH:
            parser.error(f"the forms are for {ARCH}, this GPU is {device.arch}")
        outcomes = list(run(worker, texts, options.only, options.seconds))
    records = [r for r, _ in outcomes]
    for record in records:
        if record.verdict != "equal":
            print(f"{record.verdict:<10}{record.agree:>7}  {record.form}  {record.detail}")
    counts = {verdict: sum(r.verdict == verdict for r in records) for verdict in ("equal", "close", "different", "failed")}
    print(counts)
    name = f"semantics-{device.name.lower().replace(' ', '-')}"
    head = {"device": device._asdict(), "date": date.today().isoformat(), "seconds": round(time.perf_counter() - start, 1)}
    options.output.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(r.row() for r in records)
    text = json.dumps({**head, "counts": counts})[:-1] + f', "records": [\n{rows}\n]}}\n'
    (options.output / f"{name}-{date.today().isoformat()}.json").write_text(text, encoding="utf-8")
    write_recorded(options.output / f"{name}.npz", outcomes)
    return 1 if counts["different"] or counts["failed"] else 0


def write_recorded(path: Path, outcomes: Sequence[tuple[Record, NDArray[np.uint32] | None]]) -> None:
    """What the hardware gave: `words` has RECORDED * 32 words for each result, one form after the other; `forms` their texts."""
    kept = [(r.form, words) for r, words in outcomes if words is not None]
    forms = np.frombuffer("\n".join(form for form, _ in kept).encode(), np.uint8)
    np.savez_compressed(path, forms=forms, words=np.concatenate([words.ravel() for _, words in kept]))


def dry_run(texts: Sequence[str]) -> int:
    """Everything but the launches. Counts what cannot be made."""
    bad = 0
    for form, text in enumerate(texts):
        try:
            test = probe(text)
            build(test)
            expected(test, form, recorded_warps(form))
        except SassirError as error:
            bad += 1
            print(f"failed  {text}: {error}")
    print(f"{len(texts)} forms, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
