"""The figures of what was counted: words and forms of the tables, kernels that are freed and allocated, changes that were launched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

UNEXPLAINED = "unexplained"
"""What bench/operand_roles.py calls a difference that is not in its list."""


def encodings(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/encoding_tables.py found."""
    columns = ("cubins", "kernels", "instructions", "exact", "opaque", "wrong", "hidden", "distinct", "text_differs")
    yield f"\n| architecture | {' | '.join(column.replace('_', ' ') for column in columns)} |\n|---|{'--:|' * len(columns)}"
    for arch, row in found["architectures"].items():
        yield f"| {arch} | {' | '.join(f'{row.get(column, 0):,}' for column in columns)} |"


def roles(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/operand_roles.py found."""
    yield "\n| architecture | forms | words | equal | listed differences | unexplained |\n|---|---|---|---|---|---|"
    for arch, row in found["architectures"].items():
        verdicts = row["verdicts"]
        equal, unexplained = verdicts.get("equal", 0), verdicts.get(UNEXPLAINED, 0)
        words = sum(verdicts.values())
        yield f"| {arch} | {row['forms']} | {words} | {equal} | {words - equal - unexplained} | {unexplained} |"


def freed(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/virtualise.py found: the counts, the table, then the refusals."""
    rows = [row for by_arch in found["sets"].values() for row in by_arch.values()]
    kernels, done, instructions = (sum(row[key] for row in rows) for key in ("kernels", "freed", "instructions"))
    yield f"{done:,} of {kernels:,} kernels are freed, with {instructions:,} instructions in all.\n"
    yield "| set | architecture | kernels | freed | R | P | UR | UP | device functions |\n|---|---|---|---|---|---|---|---|---|"
    for name, by_arch in found["sets"].items():
        for arch, row in sorted(by_arch.items(), key=lambda item: int(item[0].removeprefix("sm_"))):
            free = {file: f"{a / b:.1%}" for file, (a, b) in row["values free"].items() if b}
            shares = " | ".join([free.get(file, "-") for file in ("R", "P", "UR", "UP")])
            share = f"{row['freed'] / row['kernels']:.1%}" if row["kernels"] else "-"
            yield f"| {name} | {arch} | {row['kernels']} | {share} | {shares} | {row['device functions']} |"
    yield "\n| kernels | refused because | for example |\n|---|---|---|"
    for row in rows:
        for cause, refused in row["refused"].items():
            yield f"| {refused['kernels']} | {cause} | {refused['example']} |"


def allocated(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/allocation.py found, over all sets and architectures."""
    yield "\n| way | kernels | allocated | more registers or spills | copies | loads of spilled values |\n|---|---|---|---|---|---|"
    ways: dict[str, Counter[str]] = {}
    for by_arch in found["sets"].values():
        for by_way in by_arch.values():
            for way, row in by_way.items():
                ways.setdefault(way, Counter()).update({key: count for key, count in row.items() if isinstance(count, int)})
    for way, row in ways.items():
        keys = ("kernels", "allocated", "more registers or spills", "copies", "loads")
        yield f"| {way} | {' | '.join(f'{row[key]:,}' for key in keys)} |"
    (few, first), (many, second) = found["linear, seconds"].items()
    yield f"\nA synthetic kernel takes {first} s with {few}, {second} s with {many}."


def launched(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/growth.py and bench/allocation_check.py found; skipped is what has more buffers than they launch."""
    checks = Counter((record["check"], record["verdict"]) for record in found["records"])
    kernels = {record["kernel"] for record in found["records"]}
    by_check: dict[str, list[str]] = {}
    for (check, verdict), count in checks.items():
        by_check.setdefault(check, []).append(f"{count} {verdict}")
    yield f"launches of {len(kernels)} kernels: {'; '.join([f'{check}: ' + ', '.join(counts) for check, counts in by_check.items()])}."


def planted(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/mutants.py found."""
    rows = found["architectures"].values()
    changes, violating, reported = (sum(row[key] for row in rows) for key in ("planted", "violating", "found"))
    yield f"{changes:,} changes on {len(rows)} architectures; {violating:,} violate a dependence, and {reported:,} of these are reported."


def hazards(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/run_mutants.py found."""
    launches = Counter((bool(record["reported"]), record["outcome"] == "equal") for record in found["records"])
    reported, changed = launches[True, False], launches[True, False] + launches[False, False]
    yield f"{launches.total()} launches of mutants. {changed} give another result or fail; of these the checker reports {reported}."
    yield f"It also reports {launches[True, True]} of those that give the same result."


def rules(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/container_rules.py found."""
    yield f"{found['code sections']:,} code sections of {found['cubins']:,} cubins, {_ends(found['architectures'])}.\n"
    yield "| count | as the rule says | 24 | else |\n|---|---|---|---|"
    for name, row in found["rules"].items():
        yield f"| {name} | {row['holds']:,} | {row['least']:,} | {row['does not']:,} |"
    for kind in ("errors", "warnings"):
        counts = ", ".join([f"{count:,} `{rule}`" for rule, count in found[kind].items()])
        yield f"{chr(10) if kind == 'errors' else ''}{kind.capitalize()} of the checker: {counts or 'none'}."


def _ends(architectures: Iterable[str]) -> str:
    numbers = sorted({int(arch.removeprefix("sm_").rstrip("af")) for arch in architectures})
    return f"sm_{numbers[0]} to sm_{numbers[-1]}"


def tables(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/latency_tables.py found."""
    yield "\n| table | mined from | cells | the same again |\n|---|---|---|---|"
    for arch, row in found["architectures"].items():
        yield f"| {arch} | {row['mined_from'].rstrip('.')} | {row['cells']:,} | {row['same']:,} |"


def corpus(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/schedule_check.py found."""
    yield "\n| architecture | cubins | kernels | instructions | errors | warnings |\n|---|---|---|---|---|---|"
    for arch, row in found["architectures"].items():
        errors, warnings = [sum(row[kind].values()) for kind in ("errors", "warnings")]
        yield f"| {arch} | {row['cubins']:,} | {row['kernels']:,} | {row['instructions']:,} | {errors} | {warnings} |"


def libraries(found: Mapping[str, Any]) -> Iterator[str]:
    """What bench/optimise_corpus.py found."""
    runs, done, refused = found["runs"], found["optimised"], found["refused"]
    yield f"{found['kernels']:,} of the {found['distinct kernels']:,} different kernels of {len(found['files'])} libraries, drawn"
    yield f"at random, through both pipelines: {done:,} of {runs:,} runs optimised and checked ({done / runs:.2%}), {refused:,} refused,"
    yield f"{found['crashed']} crashed."
