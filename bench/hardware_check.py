"""Does the GPU agree? Original against rebuilt through text for every bench kernel, and text edits whose result must be seen.

    python bench/build_kernels.py --arch sm_90 -o DIR && python bench/hardware_check.py DIR

Every kernel goes bytes → `.mlir` text → bytes with each word encoded from its fields alone; both files are launched by the
kernel's launch file and all outputs compared bit for bit. Writes bench/results/hardware-check-GPU-DATE.json; exits with 1
if anything disagrees. A kernel whose original differs from itself is listed, and compared within its stated tolerance.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from io import StringIO
from pathlib import Path
from typing import TypeVar

from text_edits import EDITS, Edit
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.targets.mlir import MLIRTarget

from sassir.dialect import SASS
from sassir.errors import SassirError
from sassir.gpu import DeviceInfo, Worker
from sassir.launch import Launch, LaunchFile, compare, read_launch_file
from sassir.translate.cubin import read_program, write_cubin
from sassir.translate.emit import emit_program
from sassir.translate.lift import lift_program

BENCH = Path(__file__).parent
EDITED = "edited"

Result = TypeVar("Result")


@dataclass(frozen=True)
class Record:
    """What one launch, or one edit, showed."""

    kernel: str
    launch: str
    check: str
    """`rebuilt`, or what was edited."""
    verdict: str
    """`equal`, `within tolerance`, `skipped`, or `failed`."""
    detail: str = ""
    seconds: float = 0

    @property
    def failed(self) -> bool:
        return self.verdict == "failed"


@dataclass(frozen=True)
class Candidate:
    """A file made from an original, or the reason why it could not be made."""

    kernel: str
    check: str
    file: LaunchFile
    original: bytes
    made: bytes | str
    edit: Edit | None = None
    """Set when the expected result is not the original's."""


def context() -> Context:
    """What a module needs to be printed and parsed."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(SASS)
    return context


def to_text(cubin: bytes) -> str:
    """The `.mlir` text of a cubin, the cubin itself carried along as a resource."""
    text = StringIO()
    MLIRTarget().emit(context(), lift_program(read_program(cubin)), text)
    return text.getvalue()


def from_text(text: str) -> bytes:
    """The cubin that `.mlir` text describes, every word encoded from its fields."""
    module = Parser(context(), text).parse_module()
    return write_cubin(emit_program(module), from_fields=True)


def rebuild_through_text(data: bytes) -> bytes:
    """The cubin that went through its own text."""
    return from_text(to_text(data))


def attempt(action: Callable[[], Result]) -> Result | str:
    """The result of `action`, or why there is none. Whatever goes wrong with one kernel must not cost the results of the others."""
    try:
        return action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def candidates(folder: Path, arch: str) -> Iterator[Candidate]:
    """Every kernel of `folder` rebuilt, and every edit of the edited kernel."""
    for path in sorted(folder.glob(f"*.{arch}.cubin")):
        kernel, original = path.name.removesuffix(f".{arch}.cubin"), path.read_bytes()
        if kernel == EDITED:
            file = read_launch_file(BENCH / "edits" / f"{kernel}.toml")
            for edit in EDITS:
                made = attempt(lambda edit=edit, original=original: from_text(edit.apply(to_text(original))))
                yield Candidate(kernel, edit.name, file, original, made, edit)
        else:
            file = read_launch_file(BENCH / "launch" / f"{kernel}.toml")
            yield Candidate(kernel, "rebuilt", file, original, attempt(lambda original=original: rebuild_through_text(original)))


def check(worker: Worker, candidate: Candidate, limit: int) -> Iterator[Record]:
    """The candidate over the launches whose buffers hold at most `limit` bytes."""
    for launch in candidate.file.launches.values():
        start = time.perf_counter()
        if launch.nbytes > limit:
            verdict, detail = "skipped", f"{launch.nbytes >> 20} MiB of buffers"
        else:
            outcome = attempt(lambda launch=launch: judge(worker, candidate, launch))
            verdict, detail = ("failed", outcome) if isinstance(outcome, str) else outcome
        yield Record(candidate.kernel, launch.name, candidate.check, verdict, detail, round(time.perf_counter() - start, 3))


def judge(worker: Worker, candidate: Candidate, launch: Launch) -> tuple[str, str]:
    """Verdict and detail of one launch. Raises SassirError when a kernel does not run."""
    if isinstance(candidate.made, str):
        return "failed", candidate.made
    noise = tolerance = None
    if candidate.edit:
        expected, detail = candidate.edit.expected(launch), f"file {len(candidate.made) - len(candidate.original):+d} bytes"
    else:
        # Twice, so that the original's own noise is known.
        expected, again = worker.run(candidate.original, launch), worker.run(candidate.original, launch)
        if noise := compare(launch, expected, again):
            tolerance = candidate.file.tolerance
        detail = "same bytes" if candidate.made == candidate.original else "other bytes"
    if difference := compare(launch, expected, worker.run(candidate.made, launch), tolerance):
        return "failed", str(difference)
    return ("within tolerance", f"the original differs from itself: {noise}") if noise else ("equal", detail)


def commit() -> str | None:
    """The commit that is checked out, if git knows."""
    result = subprocess.run(["git", "rev-parse", "HEAD"], cwd=BENCH, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else None


def summarise(records: list[Record]) -> Iterator[str]:
    """A table: one line a kernel and check, then everything that is not plainly equal."""
    yield f"{'kernel':<18}{'check':<40}{'equal':>6}{'of':>4}{'skipped':>9}{'seconds':>9}"
    for kernel, check in dict.fromkeys((r.kernel, r.check) for r in records):
        rows = [r for r in records if (r.kernel, r.check) == (kernel, check)]
        ran = [r for r in rows if r.verdict != "skipped"]
        equal = sum(r.verdict == "equal" for r in ran)
        yield f"{kernel:<18}{check:<40}{equal:>6}{len(ran):>4}{len(rows) - len(ran):>9}{sum(r.seconds for r in rows):>9.2f}"
    for record in records:
        if record.verdict not in ("equal", "skipped"):
            yield f"{record.verdict}: {record.kernel} {record.launch} ({record.check}): {record.detail}"


def write_result(path: Path, device: DeviceInfo, records: list[Record], seconds: float) -> None:
    """The JSON file."""
    counts = {verdict: sum(r.verdict == verdict for r in records) for verdict in sorted({r.verdict for r in records})}
    head = {"device": device._asdict(), "date": date.today().isoformat(), "commit": commit(), "seconds": round(seconds, 1)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**head, "counts": counts, "records": [asdict(r) for r in records]}, indent=1) + "\n", encoding="utf-8")


def run(name: str, make: Callable[[Path, str], Iterator[Candidate]], description: str) -> int:
    """The command line of a check: judge what `make` gives for a folder and an architecture, write `NAME-GPU-DATE.json`.

    Returns the exit status.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubins", type=Path, metavar="DIR", help="cubins made by build_kernels.py for this GPU")
    parser.add_argument("-o", "--output", type=Path, default=BENCH / "results", metavar="DIR", help="folder of the JSON file")
    parser.add_argument("--limit", type=int, default=300, metavar="MIB", help="skip launches with larger buffers (default: 300)")
    parser.add_argument("--timeout", type=float, default=30, metavar="SECONDS", help="for one launch (default: 30)")
    parser.add_argument("--dry-run", metavar="ARCH", help="make all candidates for this architecture, launch nothing")
    options = parser.parse_args()
    try:
        return try_all(options.cubins, options.dry_run, make) if options.dry_run else judge_all(name, make, options)
    except SassirError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1


def try_all(folder: Path, arch: str, make: Callable[[Path, str], Iterator[Candidate]]) -> int:
    """Make all candidates, launch nothing. Returns the exit status."""
    made = list(make(folder, arch))
    for candidate in made:
        print(f"{candidate.kernel:<18}{candidate.check:<40}{candidate.made if isinstance(candidate.made, str) else 'made'}")
    return 1 if any(isinstance(candidate.made, str) for candidate in made) else 0


def judge_all(name: str, make: Callable[[Path, str], Iterator[Candidate]], options: argparse.Namespace) -> int:
    """Launch all candidates, print and write what came out. Returns the exit status."""
    start = time.perf_counter()
    with Worker(options.timeout) as worker:
        device = worker.describe_device()
        records = [record for c in make(options.cubins, device.arch) for record in check(worker, c, options.limit << 20)]
    if not records:
        raise SassirError(f"{options.cubins} has no cubins for {device.arch}; build them with build_kernels.py --arch {device.arch}")
    print("\n".join(summarise(records)))
    seconds = time.perf_counter() - start
    output = options.output / f"{name}-{device.name.lower().replace(' ', '-')}-{date.today().isoformat()}.json"
    write_result(output, device, records, seconds)
    print(f"{device.name}, CUDA {device.cuda}, driver {device.driver}, {seconds:.0f} s; written to {output}")
    return 1 if any(record.failed for record in records) else 0


if __name__ == "__main__":
    sys.exit(run("hardware-check", candidates, __doc__ or ""))
