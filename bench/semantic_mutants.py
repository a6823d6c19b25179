"""Does the emulator see a wrong kernel? One instruction of a bench kernel changed, hundreds of times, in the emulator and on the GPU.

    python bench/semantic_mutants.py emulate      # make them, compare each with its original in the emulator
    python bench/semantic_mutants.py launch       # launch those that the emulator ran to their end, on this GPU

A mutant has another immediate, a complemented predicate, two swapped operands, a barrier less or a load less. `emulate` is the
differential of `sassir verify` (bench/launch, all its inputs); with `--symbolic` also its proof, which must not succeed where
results differ. Stopped and started again, it goes on with what is not yet in bench/results/semantic-mutants.json. `launch` reads that
and writes semantic-mutants-GPU-DATE.json: of the mutants that change what the GPU computes, how many the emulator caught, and whether
original and rebuilt original ever differ in the emulator. It exits with 1 below 98 %, or after a false alarm. Every mutant has a time
limit, and a process that is replaced after a failure; after `--seconds` altogether the rest is not launched.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from mutations import Mutant, build, choose

from sassir.errors import LaunchError, SassirError
from sassir.gpu import Worker
from sassir.gpu.report import find_commit
from sassir.gpu.suite import Entry, find_suite
from sassir.launch import Launch, Outputs, compare
from sassir.translate.cubin import read_program, write_cubin
from sassir.verify.cases import cases
from sassir.verify.differential import Original, differential
from sassir.verify.ladder import Pair

BENCH = Path(__file__).parent
MUTANTS = BENCH / "results" / "semantic-mutants.json"
ARCH = "sm_90"
SECONDS = 20
"""For one mutant in the emulator."""
PROOF_SECONDS = 5
"""For the proof of one."""
LAUNCH_SECONDS = 5
"""For one launch on the GPU."""
STEP = 10
"""Mutants after which the file is written."""
CAUGHT = 0.98
CHANGED = ("different", "failed")
"""Outcomes on the GPU of a mutant that shows."""


@cache
def original(kernel: str) -> tuple[Entry, Original]:
    """A kernel of the suite; what it computes is emulated once a process."""
    (entry,) = find_suite(BENCH, ARCH, [kernel])
    return entry, Original(entry.cubin.read_bytes())


def emulate(mutant: Mutant, symbolic: bool) -> Mutant:
    """The mutant with the verdicts that it does not have yet."""
    entry, known = original(mutant.kernel)
    candidate = build(mutant, known.cubin)
    if not mutant.emulator:
        layer = differential(known, candidate, entry.file.small, noalias=entry.file.facts.noalias, seconds=SECONDS)
        mutant.emulator, mutant.detail = layer.verdict, layer.detail
    if symbolic and mutant.symbolic is None:
        from sassir.verify.symbolic import SymbolicRung

        pair = Pair(known, candidate, entry.file.small, entry.file.facts, None, None)
        mutant.symbolic = SymbolicRung(PROOF_SECONDS)(pair).verdict
    return mutant


def false_alarm(kernel: str) -> str | None:
    """What the emulator finds between a kernel and its rebuild from fields, which is nothing."""
    entry, known = original(kernel)
    rebuilt = write_cubin(read_program(known.cubin), from_fields=True)
    layer = differential(known, rebuilt, entry.file.small, noalias=entry.file.facts.noalias, seconds=SECONDS)
    return None if layer.verdict == "holds" else f"{kernel}: {layer.detail}"


class Device:
    """Mutants on the GPU."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._known: dict[Launch, Outputs | str] = {}

    def compare(self, mutant: Mutant) -> tuple[str, str]:
        """Outcome and detail, over the inputs of the differential."""
        entry, known = original(mutant.kernel)
        candidate = build(mutant, known.cubin)
        for launch in entry.file.small:
            for case in cases(launch, entry.file.facts.noalias):
                expected = self._expected(known.cubin, case.launch)
                if isinstance(expected, str):
                    continue
                try:
                    outputs = self.worker.run(candidate, case.launch)
                except LaunchError as error:
                    return "failed", str(error)
                if difference := compare(case.launch, expected, outputs):
                    return "different", f"{case}: {difference}"
        return "equal", ""

    def _expected(self, cubin: bytes, launch: Launch) -> Outputs | str:
        """What the original computes; a text where it fails or differs from itself."""
        if launch not in self._known:
            try:
                first, second = self.worker.run(cubin, launch), self.worker.run(cubin, launch)
                self._known[launch] = "differs from itself" if compare(launch, first, second) else first
            except LaunchError as error:
                self._known[launch] = str(error)
        return self._known[launch]


def run_emulate(options: argparse.Namespace) -> int:
    """The command `emulate`."""
    entries = find_suite(BENCH, ARCH, options.kernels)
    mutants = [known for known in read_record(options.output) if known.emulator] if options.output.exists() else []
    places = {mutant.place for mutant in mutants}
    mutants += [mutant for mutant in choose(entries, options.count) if mutant.place not in places]
    done = [mutant for mutant in mutants if mutant.emulator and (mutant.symbolic or not options.symbolic)]
    left = [mutant for mutant in mutants if mutant not in done]
    begin = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for mutant in pool.map(emulate, left, [options.symbolic] * len(left), chunksize=4):
            done.append(mutant)
            verdicts = f"{mutant.emulator:10}{mutant.symbolic or '':10}"
            print(f"{len(done):4} {mutant.kernel:18}{mutant.kind:18}{verdicts} {mutant.after}", flush=True)
            if not len(done) % STEP:
                write_record(options.output, {"mutants": done})
        alarms = [alarm for alarm in pool.map(false_alarm, [entry.kernel for entry in entries]) if alarm]
    unsound = _unsound(done)
    head = {"date": date.today().isoformat(), "commit": find_commit(), "identical": len(entries)}
    write_record(options.output, {**head, "false_alarms": alarms, "unsound": unsound, "mutants": done})
    print(f"{_count(done)}; {len(alarms)} false alarms; {time.perf_counter() - begin:.0f} s; written to {options.output}")
    return 1 if alarms or unsound else 0


def read_record(path: Path) -> list[Mutant]:
    """The mutants of a file."""
    return [Mutant(**fields) for fields in json.loads(path.read_text(encoding="utf-8"))["mutants"]]


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """All of it, its mutants in order."""
    mutants = [asdict(mutant) for mutant in sorted(record["mutants"], key=lambda mutant: mutant.place)]
    path.write_text(json.dumps({**record, "mutants": mutants}, indent=1) + "\n", encoding="utf-8")


def _unsound(mutants: Sequence[Mutant]) -> int | None:
    """How many are proven equal that compute something else; None where no proof was tried."""
    proven = [m for m in mutants if m.symbolic == "holds"]
    if all(m.symbolic is None for m in mutants):
        return None
    return sum(m.emulator == "fails" or m.gpu in CHANGED for m in proven)


def _count(mutants: Sequence[Mutant]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(m.emulator for m in mutants).items())


def run_launch(options: argparse.Namespace) -> int:
    """The command `launch`."""
    record: dict[str, Any] = json.loads(options.mutants.read_text(encoding="utf-8"))
    mutants = read_record(options.mutants)
    begin = time.perf_counter()
    with Worker(LAUNCH_SECONDS) as worker:
        info, device = worker.describe_device(), Device(worker)
        for mutant in mutants:
            if time.perf_counter() - begin < options.seconds and (options.faults or not _faulted(mutant)):
                mutant.gpu, mutant.gpu_detail = device.compare(mutant)
                print(f"{mutant.kernel:18}{mutant.kind:18}{mutant.emulator:10}{mutant.gpu:10} {mutant.after}", flush=True)
    changed = [m for m in mutants if m.gpu in CHANGED]
    missed = [m for m in changed if m.emulator != "fails"]
    share = 1 - len(missed) / max(1, len(changed))
    record["unsound"] = _unsound(mutants)
    holds = bool(changed) and share >= CAUGHT and not record["false_alarms"] and not record["unsound"]
    summary = {
        "device": info._asdict(),
        "date": date.today().isoformat(),
        "commit": options.commit or find_commit(),
        "seconds": round(time.perf_counter() - begin, 1),
        "launched": sum(m.gpu is not None for m in mutants),
        "changed": len(changed),
        "caught": len(changed) - len(missed),
        "only_in_emulator": sum(m.gpu == "equal" and m.emulator == "fails" for m in mutants),
        "holds": holds,
    }
    path = options.output / f"semantic-mutants-{info.name.lower().replace(' ', '-')}-{date.today().isoformat()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_record(path, {**record, **summary, "mutants": mutants})
    print(f"{len(changed)} of {summary['launched']} mutants change the GPU's results, {share:.1%} of them were caught; written to {path}")
    return 0 if holds else 1


def _faulted(mutant: Mutant) -> bool:
    """The emulator refused to go on: the GPU may fail or hang, which costs a new process each time."""
    return mutant.emulator == "fails" and "elements differ" not in mutant.detail


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("emulate")
    first.add_argument("kernels", nargs="*", metavar="KERNEL", help="all by default")
    first.add_argument("-n", "--count", type=int, default=500)
    first.add_argument("-j", "--jobs", type=int, help="processes (default: one a processor)")
    first.add_argument("--symbolic", action="store_true", help="try to prove each mutant equal, too")
    first.add_argument("-o", "--output", type=Path, default=MUTANTS, metavar="FILE")
    first.set_defaults(run=run_emulate)
    second = commands.add_parser("launch")
    second.add_argument("mutants", type=Path, nargs="?", default=MUTANTS, metavar="FILE")
    second.add_argument("--seconds", type=float, default=150)
    second.add_argument("--faults", action="store_true", help="launch also those that the emulator refuses: slow")
    second.add_argument("-o", "--output", type=Path, default=BENCH / "results", metavar="DIR")
    second.add_argument("--commit", help="what to record as commit, where git does not know")
    second.set_defaults(run=run_launch)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SassirError as error:
        print(f"semantic_mutants: {error}", file=sys.stderr)
        sys.exit(1)
