"""The figures that README and docs quote, taken from bench/results.

    python bench/figures.py             # write them anew
    python bench/figures.py --check     # exit with 1 where one is not what the results say

A figure stands between `<!-- figures: KIND NAME -->` and `<!-- end -->`. KIND is one of KINDS. The results are NAME-*.json, of several
the newest, or, where nothing was measured on a GPU, NAME.json; with NAME.json as name that file.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from os.path import relpath
from pathlib import Path
from typing import Any

import counted
from gains import bounds, gains, reasons, totals
from newest import RESULTS, newest

ROOT = Path(__file__).parents[1]
DECIDED = ROOT / "bench" / "decided.toml"
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_BLOCK = re.compile(r"(?P<begin><!-- figures: (?P<kind>\S+) (?P<name>\S+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
SHOWN = 3
"""Pairs of a pass that get a row of their own."""
NOTICEABLE = 1.02
"""A ratio that is shown in a table of many."""
_UNITS = {"bytes": "GB/s copied", "f32": "GFLOP/s f32", "f64": "GFLOP/s f64", "tensor": "GFLOP/s f16 on tensor cores"}


def suite(found: Mapping[str, Any]) -> Iterator[str]:
    """What `sassir bench-suite` found."""
    results = found["results"]
    comparisons = [result["measured"]["comparison"] for result in results if result["measured"]]
    ratios = [comparison["ratio"] for comparison in comparisons]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    yield f"{len(results)} launches of {len({result['kernel'] for result in results})} kernels: {_count(r['outcome'] for r in results)}."
    spread = f"from {min(ratios):.3f} to {max(ratios):.3f}, geometric mean {mean:.3f}"
    yield f"{len(ratios)} timed: {_count(c['verdict'] for c in comparisons)}; original / candidate {spread}."
    yield "Ceilings: " + ", ".join(f"{rate / 1e9:,.0f} {_UNITS[key]}" for key, rate in found["ceilings"].items()) + "."


def checks(found: Mapping[str, Any]) -> Iterator[str]:
    """What a script found that checks one thing after the other, as bench/measure_check.py."""
    yield f"{sum(record['holds'] for record in found['records'])} of {len(found['records'])} hold:\n"
    yield "| checked | found |\n|---|---|"
    for record in found["records"]:
        yield f"| {record['check']} | {'' if record['holds'] else '**does not hold** '}{record['detail']} |"


def launches(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/hardware_check.py found."""
    edits = {record["check"] for record in found["records"]} - {"rebuilt"}
    kernels = {record["kernel"] for record in found["records"] if record["check"] == "rebuilt"}
    counted = _count(record["verdict"] for record in found["records"])
    yield f"{len(found['records'])} launches of {len(kernels)} kernels and {len(edits)} text edits: {counted}."


def forms(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/semantics_check.py found, and for forms that are only close, how close."""
    records = found["records"]
    yield f"{len(records)} forms: {_count(record['verdict'] for record in records)}.\n"
    yield "| close | lanes equal | places apart | most, of lanes that differ by more than 2^-30 | 2^-22 | 2^-20 |"
    yield "|---|---|---|---|---|---|"
    for record in records:
        if record["verdict"] == "close":
            places = [int(key) for key, lanes in record["ulp"].items() if key != "nan" and lanes]
            far = " | ".join(str(record["beyond"][exponent]) for exponent in ("-30", "-22", "-20"))
            form = record["form"].replace("|", "\\|")
            yield f"| {form} | {record['agree']} of {record['lanes']} | {_places(places)} | {far} |"


def _places(places: list[int]) -> str:
    least, most = min(places), max(places)
    return "64 and more" if most - least > 64 else f"{least} to {most}"


def mutants(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/semantic_mutants.py found, on the GPU or in the emulator alone."""
    verdicts = Counter(mutant["emulator"] for mutant in found["mutants"])
    yield f"{len(found['mutants'])} mutants in the emulator: {verdicts['fails']} differ or fail, {verdicts['holds']} do not;"
    yield f"{found['identical']} kernels against their rebuild: {len(found['false_alarms'])} false alarms."
    if found["unsound"] is not None:
        proven = sum(mutant["symbolic"] == "holds" for mutant in found["mutants"])
        yield f"Proven equal: {proven}; of these with other results: {found['unsound']}."
    if "launched" in found:
        share = found["caught"] / max(1, found["changed"])
        yield f"{found['launched']} mutants launched on the GPU; {found['changed']} of them change the results,"
        yield f"and the emulator caught {found['caught']} of those ({share:.1%})."
    else:
        yield "Not launched on a GPU yet."


def emulation(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/emulator_speed.py found."""
    yield "\n| kernel | thread instructions | millions a second |"
    yield "|---|---|---|"
    for kernel, record in found["kernels"].items():
        yield f"| {kernel} | {record['thread_instructions']:,} | {record['millions_a_second']} |"


def verification(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/verify_speed.py found."""
    seconds = sorted([pair["processor_seconds"] for pair in found["pairs"]])
    yield f"{len(seconds)} pairs: {seconds[len(seconds) // 2]} s of processor time in the middle, {seconds[-1]} s at most."


def speed(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/schedule_speed.py found."""
    yield "instructions a second of processor time, one core.\n"
    names = list(found["kernels"][0]["per_second"])
    yield f"| instructions | {' | '.join(names)} |\n|---{'|---' * len(names)}|"
    for row in found["kernels"]:
        yield f"| {row['instructions']:,} | {' | '.join([f'{count:,}' for count in row['per_second'].values()])} |"


def timing(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/timing_model.py found."""
    total = found["summary"]
    yield f"{total['launches']} launches, rank correlation of predicted and measured time {total['rank_correlation_of_times']}."
    yield f"Below 70 % of the copy rate: {total['not_memory_bound']} launches of {total['kernels_not_memory_bound']} kernels,"
    yield f"mean absolute error {total['error_not_memory_bound']:.1%} (held out: {total['error_not_memory_bound_held_out']:.1%}),"
    yield f"{total['within_20_percent']} of them within 20 %. Changes, predicted from the code alone (c) and from samples (s):"
    yield "\n| candidates | predicted | rank correlation | beyond 2 % | of these | right direction | losses seen as such |"
    yield "|---|---|---|---|---|---|---|"
    for name, suite in (*found["suites"].items(), ("all", total)):
        for way, letter in (("from_code", "c"), ("sampled", "s")):
            if (known := suite[way])["changes"]:
                lost = f"{known['losses_foreseen']} of {known['losses']}"
                columns = (known["changes"], known["rank_correlation"], known["beyond_2_percent"], known["rank_correlation_of_these"])
                numbers = " | ".join("" if number is None else str(number) for number in (*columns, known["right_direction"], lost))
                yield f"| {name} ({letter}) | {numbers} |"
    yield "\n| kernel | launch | predicted µs | measured µs | error | bound | of the copy rate | `-p launch` (c) | (s) | measured |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    changes = {(c["kernel"], c["launch"]): c for c in found["changes"] if c["suite"] == next(iter(found["suites"]))}
    for row in found["kernels"]:
        change = changes.get((row["kernel"], row["launch"]), {})
        ratios = " | ".join("" if (ratio := change.get(way)) is None else f"{ratio:.2f}" for way in ("from_code", "sampled", "measured"))
        numbers = f"{row['predicted_us']:.1f} | {row['measured_us']:.1f} | {row['predicted_us'] / row['measured_us'] - 1:+.0%}"
        bound = ", ".join(row["bound"])
        name = f"{row['kernel']}{'' if row['held_out'] else ' *'}"
        yield f"| {name} | {row['launch']} | {numbers} | {bound} | {row['memory_share']:.0%} | {ratios} |"
    yield "\n`*`: the estimate of the overheads has seen it."


def passes(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/pass_gains.py found: by pass, the largest gain of each first."""
    records = found["records"]
    what = "Each pass alone" if found["alone"] else f"Pipeline `{found['pipeline']}`"
    yield f"{what}; {len(records)} pairs: {_count(record['outcome'] for record in records)}.\n"
    yield "| pass | kernel, launch | µs without → with | without / with | 99 % interval |\n|---|---|---|---|---|"
    by_pass = defaultdict[str, list[Mapping[str, Any]]](list)
    for record in sorted(records, key=lambda record: (record["pass"], -record.get("ratio", math.inf))):
        by_pass[record["pass"]].append(record)
    for name, own in by_pass.items():
        yield from map(_pair, own[:SHOWN])
        if rest := own[SHOWN:]:
            yield f"| `{name}` | {len(rest)} more | | {rest[-1]['ratio']:.2f} to {rest[0]['ratio']:.2f} | |"
    for name in found["unchanged"]:
        yield f"| `{name}` | no kernel of the suite needs it | | | |"


def best(found: Mapping[str, Any]) -> Iterator[str]:
    """Of each pass the pair in which it gains most, and in which comparison of bench/pass_gains.py that is; `found` is one of them."""
    settings = {
        "pass-gains-launch": "left out of `launch`",
        "pass-gains-default": "left out of `default`",
        "pass-alone-launch": "by itself",
        "pass-gains-unoptimised-launch": "left out, unoptimised build",
        "pass-alone-unoptimised-launch": "by itself, unoptimised build",
    }
    rows = dict[str, tuple[float, str]]()
    for name, setting in settings.items():
        result = newest(name, RESULTS)
        for record in result[1]["records"] if result is not None else ():
            if record["outcome"] == "equal" and record["ratio"] > rows.get(record["pass"], (0.0, ""))[0]:
                times = " → ".join([f"{1e6 * record['seconds'][side]:,.1f}" for side in ("without", "with")])
                row = f"| `{record['pass']}` | {record['kernel']}, {setting} | {times} | {record['ratio']:.3f} | {record['low']:.3f} |"
                rows[record["pass"]] = record["ratio"], row
    yield f"Commit {found['commit']}.\n"
    yield "| pass | kernel, comparison | µs without → with | without / with | at least (99 %) |\n|---|---|---|---|---|"
    yield from [row for _, (_, row) in sorted(rows.items(), key=lambda item: -item[1][0])]


def _pair(record: Mapping[str, Any]) -> str:
    place = f"`{record['pass']}` | {record['kernel']}, {record['launch']}"
    if record["outcome"] != "equal":
        return f"| {place} | **{record['outcome']}**: {record['detail']} | | |"
    times = " → ".join([f"{1e6 * record['seconds'][side]:,.1f}" for side in ("without", "with")])
    return f"| {place} | {times} | {record['ratio']:.2f} | {record['low']:.3f} to {record['high']:.3f} |"


def first_level(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/first_level.py found: kernels by how much they change, those that hardly do in one line."""
    least = min([record["least"] for record in found["records"]])
    records = [record for record in found["records"] if record["least"] == least]
    by_code = defaultdict[str, dict[int, float]](dict)
    for record in records:
        if record["outcome"] == "equal":
            by_code[f"{record['kernel']}, {record['code']}"][record["left"] >> 10] = record["ratio"]
    sizes = sorted({size for ratios in by_code.values() for size in ratios})
    outcomes = _count(record["outcome"] for record in records)
    yield f"{len(records)} pairs: {outcomes}. How many times as fast as with {least >> 10} KiB of L1:\n"
    yield f"| kernel, code | {' | '.join([f'{size} KiB' for size in sizes])} |\n|{'---|' * (len(sizes) + 1)}"
    change = {code: max([abs(math.log(ratio)) for ratio in ratios.values()]) for code, ratios in by_code.items()}
    shown = sorted([code for code in change if change[code] >= math.log(NOTICEABLE)], key=lambda code: -change[code])
    for code in shown:
        yield f"| {code} | {' | '.join([f'{ratio:.2f}' if (ratio := by_code[code].get(size)) else '' for size in sizes])} |"
    yield f"\nThe other {len(change) - len(shown)} change by less than {NOTICEABLE - 1:.0%}."


def decided(found: Mapping[str, Any]) -> Iterator[str]:
    """The launches that became faster or slower, with the reasons of bench/decided.toml."""
    reasons = tomllib.loads(DECIDED.read_text("utf-8"))["sass-schedule" if "sass-schedule" in found["pipeline"] else "sass-assign-control"]
    measured = [(r["kernel"], r["launch"], r["measured"]["comparison"]) for r in found["results"] if r["measured"]]
    ratios = [comparison["ratio"] for _, _, comparison in measured]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    yield f"{len(measured)} launches, geometric mean {mean:.3f}; {_count(c['verdict'] for _, _, c in measured)}.\n"
    yield "| kernel | launch | original / candidate | 99 % interval | why |\n|---|---|---|---|---|"
    for kernel, launch, comparison in sorted(measured, key=lambda row: -row[2]["ratio"]):
        if comparison["verdict"] != "same":
            numbers = f"{comparison['ratio']:.3f} | {comparison['low']:.3f} to {comparison['high']:.3f}"
            yield f"| {kernel} | {launch} | {numbers} | {reasons.get(kernel, 'not explained yet')} |"


KINDS: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = {
    "suite": suite,
    "gains": gains,
    "totals": totals,
    "reasons": reasons,
    "bounds": bounds,
    "checks": checks,
    "launches": launches,
    "mutants": mutants,
    "passes": passes,
    "best": best,
    "first-level": first_level,
    "emulation": emulation,
    "verification": verification,
    "forms": forms,
    "timing": timing,
    "decided": decided,
    "speed": speed,
    "encodings": counted.encodings,
    "roles": counted.roles,
    "freed": counted.freed,
    "allocated": counted.allocated,
    "launched": counted.launched,
    "planted": counted.planted,
    "hazards": counted.hazards,
    "rules": counted.rules,
    "tables": counted.tables,
    "corpus": counted.corpus,
    "libraries": counted.libraries,
}


def _count(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items())


def refresh(text: str, folder: Path) -> str:
    """A document of `folder` with every figure as the results have it. Raises KeyError for a KIND that is not there."""

    def block(match: re.Match[str]) -> str:
        lines = quote(match["kind"], match["name"], folder)
        return match["begin"] + "\n".join(lines) + "\n" + match["end"]

    return _BLOCK.sub(block, text)


def quote(kind: str, name: str, folder: Path) -> Iterator[str]:
    """The lines of a figure: where and when it was measured, and what came out."""
    result = newest(name, RESULTS)
    if result is None:
        yield "Not measured yet."
        return
    file, found = result
    device = found.get("device")
    place = f"{device['name']}, driver {device['driver']}, CUDA {device['cuda']}, " if device else ""
    day = found["date"] if "date" in found else max(row["date"] for row in found["architectures"].values())
    yield f"{place}{day} ([result]({relpath(file, folder)})):"
    yield from KINDS[kind](found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options, status = parser.parse_args(), 0
    for document in DOCUMENTS:
        old = document.read_text(encoding="utf-8")
        new = refresh(old, document.parent)
        if new == old:
            continue
        if options.check:
            print(f"{document.relative_to(ROOT)}: figures are not those of bench/results; run python bench/figures.py")
            status = 1
        else:
            document.write_text(new, encoding="utf-8")
            print(f"{document.relative_to(ROOT)}: written")
    return status


if __name__ == "__main__":
    sys.exit(main())
