"""Does the GPU compute what sassir says? Every form in semantics_forms.txt on 131072 lanes of random and edge operands.

    python bench/semantics_check.py -o DIR

Each form runs in a kernel of its own, made with sassir's assembler. Writes DIR/semantics-GPU-DATE.json: per form how many lanes
agree, some that do not, and for MUFU how far apart they are in units of the last place; and
DIR/semantics-GPU.npz: what the hardware gave on two warps, so that tests repeat the comparison without a GPU.
Exits with 1 if a form that has to agree does not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from semantics_compare import Record, Words, active_lanes, compare, compare_again, expected, recorded_warps, write_recorded
from semantics_data import LANES, SOURCES, constants, operands
from semantics_forms import forms, untested
from semantics_kernel import ARCH, KERNEL, THREADS, Probe, build, probe

from sassir.errors import LaunchError, SassirError
from sassir.gpu import Worker
from sassir.gpu.device import load_driver
from sassir.gpu.driver import Module

RESULTS = Path(__file__).parent / "results"
PROCESSES = min(8, os.cpu_count() or 1)
"""Forms are tested by so many processes at a time; most of the work is ours, not the GPU's."""
Outcome = tuple[Record, Words | None]
"""The record of a form, and the hardware's results that are kept."""


class IllegalInstructionError(LaunchError):
    """The hardware does not execute the instruction."""


def launch(test: Probe) -> Words:
    """Run the kernel on all operands: words of the shape (results, lanes), 0 where the guard excludes a lane."""
    cuda = load_driver()
    result = np.empty((len(test.evaluator.results), LANES), np.uint32)
    source, target = _memory()
    try:
        cuda.memset_d32(int(target), 0xDEADBEEF, result.size)
        module = Module(build(test))
        parameters = int(source).to_bytes(8, "little") + int(target).to_bytes(8, "little") + constants(test.text).tobytes()
        module.kernel(KERNEL).prepare((LANES // THREADS, 1, 1), (THREADS, 1, 1), parameters)()
        cuda.memcpy_dtoh(result, target)
        module.unload()
    except cuda.Error as error:
        failure = IllegalInstructionError if "illegal instruction" in str(error) else LaunchError
        raise failure(f"the kernel failed: {error}") from error
    return result * active_lanes(test).ravel()


@cache
def _memory() -> tuple[Any, Any]:
    """Operands and room for results on the device, once a process."""
    cuda = load_driver()
    source, target = (cuda.mem_alloc(4 * LANES * SOURCES) for _ in range(2))
    cuda.memcpy_htod(source, operands())
    return source, target


def examine(text: str) -> Outcome:
    """Test one form on the GPU, in this process."""
    test = probe(text)
    hardware = launch(test)
    return compare(test, hardware), hardware.reshape(len(hardware), -1, 32)[:, recorded_warps(text)]


def run(texts: Sequence[str], seconds: float) -> Iterator[Outcome]:
    """The outcome of each form, in order; a process that dies is replaced. No other form is begun after so many seconds."""
    end = time.perf_counter() + seconds
    workers: SimpleQueue[Worker] = SimpleQueue()

    def attempt(text: str) -> Outcome:
        if time.perf_counter() > end:
            return Record(text, "failed", detail="not run"), None
        worker = workers.get()
        try:
            return worker.call(examine, text)
        except IllegalInstructionError:
            return Record(text, "illegal"), None
        except SassirError as error:
            return Record(text, "failed", detail=str(error)), None
        finally:
            workers.put(worker)

    with ExitStack() as stack, ThreadPoolExecutor(PROCESSES) as pool:
        for _ in range(PROCESSES):
            workers.put(stack.enter_context(Worker(timeout=60)))
        yield from pool.map(attempt, texts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="DIR", help="folder of the results")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the forms that begin with this")
    parser.add_argument("--seconds", type=float, default=420, help="start no other form after this time (default: 420)")
    parser.add_argument("--dry-run", action="store_true", help="make all kernels and our results, launch nothing")
    parser.add_argument("--again", type=Path, metavar="JSON", help="compare with these results of an earlier run, without a GPU")
    parser.add_argument("--untested", nargs="+", type=Path, metavar="CUBIN", help="only list the forms in cubins that are not tested")
    options = parser.parse_args()
    texts = [text for text in forms() if text.startswith(options.only)]
    if options.untested:
        return list_untested(options.untested)
    if options.again:
        return again(options.again, texts, options.output)
    if options.dry_run:
        return dry_run(texts)
    start = time.perf_counter()
    with Worker() as worker:
        device = worker.describe_device()
    if device.arch != ARCH:
        parser.error(f"the forms are for {ARCH}, this GPU is {device.arch}")
    outcomes = list(run(texts, options.seconds))
    head = {"device": device._asdict(), "date": date.today().isoformat(), "seconds": round(time.perf_counter() - start, 1)}
    name = f"semantics-{device.name.lower().replace(' ', '-')}"
    options.output.mkdir(parents=True, exist_ok=True)
    write_recorded(options.output / f"{name}.npz", {r.form: words for r, words in outcomes if words is not None})
    return report([record for record, _ in outcomes], head, options.output / f"{name}-{head['date']}.json")


def again(results: Path, texts: Sequence[str], folder: Path) -> int:
    """Compare with the results of an earlier run, without a GPU."""
    head = json.loads(results.read_text(encoding="utf-8"))
    wanted = frozenset(texts)
    records = [Record(**row) for row in head.pop("records") if row["form"] in wanted]
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(PROCESSES) as pool:
        compared = list(pool.map(compare_again, records, chunksize=16))
    return report(compared, {**head, "compared": date.today().isoformat()}, folder / results.name)


def report(records: Sequence[Record], head: dict[str, Any], path: Path) -> int:
    """Write the results; the exit status."""
    for record in records:
        if record.verdict != "equal":
            print(f"{record.verdict:<10}{record.agree:>7}  {record.form}  {record.detail}")
    counts = Counter(record.verdict for record in records)
    print(dict(counts))
    rows = ",\n".join(record.row() for record in records)
    path.write_text(json.dumps({**head, "counts": counts})[:-1] + f', "records": [\n{rows}\n]}}\n', encoding="utf-8")
    return 1 if counts["different"] or counts["failed"] else 0


def list_untested(cubins: Sequence[Path]) -> int:
    """Print the forms that are missing in the list."""
    found = {form: text for cubin in cubins for form, text in untested(cubin.read_bytes()).items()}
    print("\n".join(sorted(found.values())))
    return 1 if found else 0


def dry_run(texts: Sequence[str]) -> int:
    """Everything but the launches. Counts what cannot be made."""
    bad = 0
    for text in texts:
        try:
            test = probe(text)
            build(test)
            expected(test, recorded_warps(text))
        except SassirError as error:
            bad += 1
            print(f"failed  {text}: {error}")
    print(f"{len(texts)} forms, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
