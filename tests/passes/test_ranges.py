"""Ranges of parameters: what they decide, that nothing else is said to rest on them, and that the code is right for all of a range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sassir.asm import Function
from sassir.dialect.facts import KernelFacts, WordRange
from sassir.launch import Buffer, Launch, Scalar, read_launch_file
from sassir.launch.records import Argument
from sassir.machine.constant_bank import constant_bank
from sassir.optimize import Optimised, Task, optimise_cubin, read_pipeline
from sassir.translate.cubin import read_program
from sassir.translate.facts import launch_facts
from sassir.verify.assumptions import broken_fact
from sassir.verify.ladder import verify_pair
from sassir.verify.report import Report
from sassir.verify.symbolic import SymbolicRung

CUBINS, BENCH = Path(__file__).parents[1] / "cubins", Path(__file__).parents[2] / "bench"
CUBIN = (CUBINS / "facts.sm_90.cubin").read_bytes()
FILE = read_launch_file(CUBINS / "facts.toml")
STRIDE, UPPER, COUNT, TURNS = 0x220, 0x224, 0x228, 0x218
"""Where in constant bank 0: the lower and the upper word of `stride`, `n` of strided, `n` of clipped."""
BLOCKS = KernelFacts(block=(256, 1, 1), grid=(4, 1, 1), words=((UPPER, 0),))


def made_for(strided: KernelFacts, clipped: KernelFacts) -> Optimised:
    return optimise_cubin(Task(CUBIN, "facts", read_pipeline("launch"), given={"strided": strided, "clipped": clipped}))


def with_ranges(*ranges: WordRange) -> KernelFacts:
    return KernelFacts(block=BLOCKS.block, grid=BLOCKS.grid, words=BLOCKS.words, ranges=ranges)


def code(made: Optimised, kernel: str) -> list[str]:
    function: Function = next(f for f in read_program(made.cubin).functions if f.name == kernel)
    return [str(line.instruction) for line in function.lines]


def emulated(made: Optimised, *launches: str) -> Report:
    return verify_pair(CUBIN, made.cubin, [FILE.launch(name) for name in launches], assumptions=made.assumptions)


def broken(made: Optimised, launch: Launch) -> str | None:
    return broken_fact(made.assumptions, launch, FILE.facts, "sm_90")


def test_guards_go_and_products_of_64_bits_become_narrow() -> None:
    """All of 4 blocks of 256 threads are below n, 1023 * 100 fits into a word, and 64 turns do not reach the inner guard."""
    made = made_for(with_ranges(WordRange(STRIDE, 0, 100), WordRange(COUNT, 1024, 4096)), KernelFacts(ranges=(WordRange(TURNS, 1, 64),)))
    strided, clipped = (code(made, kernel) for kernel in ("strided", "clipped"))
    assert not any("ISETP" in line or "WIDE.U32" in line or line.startswith("@") for line in strided)
    assert not any(", 0x3f" in line for line in clipped)
    assert made.assumptions["strided"].used == ("block", "grid", "range 0x220", "range 0x228", "word 0x224")
    assert made.assumptions["clipped"].used == ("range 0x218",)
    assert emulated(made, "least", "some", "most").good
    assert [broken(made, launch) for launch in FILE.launches.values()] == [
        None,
        None,
        None,
        "range 0x228 = [1024, 4096] in kernel strided",
    ]


def test_a_range_that_decides_nothing_is_not_relied_on() -> None:
    """The same with one number more in each."""
    wide = with_ranges(WordRange(STRIDE, 0, 0x7FFFFFFF), WordRange(COUNT, 1023, 4096))
    made = made_for(wide, KernelFacts(ranges=(WordRange(TURNS, 0, 65),)))
    strided, clipped = (code(made, kernel) for kernel in ("strided", "clipped"))
    assert any("ISETP" in line for line in strided)
    assert any("WIDE.U32" in line for line in strided)
    assert any(", 0x3f" in line or ", 0x40" in line for line in clipped)
    assert not [use for kernel in made.assumptions.values() for use in kernel.used if use.startswith("range")]
    assert emulated(made, "least", "some", "most", "fewer").good
    assert {broken(made, launch) for launch in FILE.launches.values()} == {None}


@pytest.mark.parametrize(("needed", "idle"), [(WordRange(COUNT, 1024, 4096), STRIDE), (WordRange(STRIDE, 0, 100), COUNT)])
def test_only_the_range_that_decides_is_relied_on(needed: WordRange, idle: int) -> None:
    made = made_for(with_ranges(WordRange(idle, 0, 0x7FFFFFFF), needed), KernelFacts())
    assert [use for use in made.assumptions["strided"].used if use.startswith("range")] == [needed.use]
    assert made.assumptions["strided"].relied().ranges == (needed,)
    assert emulated(made, "most").good


def test_a_launch_outside_of_the_range_is_not_tried() -> None:
    """It would fail: n is 1000, the new code stores 1024 elements."""
    made = made_for(with_ranges(WordRange(COUNT, 1024, 4096)), KernelFacts())
    layer = emulated(made, "fewer").layers[-1]
    assert layer.name == "emulator"
    assert {check.verdict for check in layer.checks} == {"skipped"}
    assert "range 0x228 = [1024, 4096]" in layer.detail
    assert not verify_pair(CUBIN, made.cubin, [FILE.launch("fewer")], assumptions={}).good


def test_it_is_proven_for_all_of_the_range() -> None:
    pytest.importorskip("z3")
    made = made_for(with_ranges(WordRange(STRIDE, 0, 100), WordRange(COUNT, 1024, 4096)), KernelFacts())
    layer = verify_pair(CUBIN, made.cubin, [], assumptions=made.assumptions, more=(SymbolicRung(30),)).layers[-1]
    assert {check.subject: check.verdict for check in layer.checks}["strided"] == "holds"


def with_counts(launch: Launch, ranges: Mapping[int, WordRange], share: float) -> Launch:
    """The launch with other values of the parameters at these offsets: so far from the least to what it has."""
    base = constant_bank("sm_90").parameters

    def changed(offset: int, argument: Argument) -> Argument:
        least = ranges[base + offset].low if isinstance(argument, Scalar) and base + offset in ranges else None
        return (
            argument
            if least is None or isinstance(argument, Buffer)
            else replace(argument, value=least + int((argument.value - least) * share))
        )

    steps = [replace(s, arguments=tuple(map(changed, s.offsets(), s.arguments))) for s in launch.steps]
    return replace(launch, steps=tuple(steps))


@pytest.mark.parametrize("kernel", ["conv3x3", "fuse2", "reduce_sum", "rgb2gray_u8", "poly_strict"])
def test_it_is_right_wherever_in_the_range_a_number_is(kernel: str) -> None:
    """Every whole number that is passed is known to be from half to twice as large as in a launch; the emulator tries smaller ones."""
    original, file = (BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes(), read_launch_file(BENCH / "launch" / f"{kernel}.toml")
    launch, base = file.small[0], constant_bank("sm_90").parameters
    counts = {
        base + o for s in launch.steps for o, a in zip(s.offsets(), s.arguments, strict=False) if isinstance(a, Scalar) and a.dtype == "i32"
    }
    given: dict[str, KernelFacts] = {}
    ranges: dict[int, WordRange] = {}
    for name, facts in launch_facts(launch, file.facts, "sm_90").items():
        found = [WordRange(offset, value // 2, 2 * value) for offset, value in facts.words if offset in counts]
        given[name] = replace(facts, words=(), ranges=tuple(found))
        ranges |= {r.offset: r for r in found}
    made = optimise_cubin(Task(original, kernel, read_pipeline("launch"), file.facts, given=given))
    assert any(use.startswith("range") for found in made.assumptions.values() for use in found.used)
    for share in (0, 0.6, 1):
        report = verify_pair(original, made.cubin, [with_counts(launch, ranges, share)], file.facts, assumptions=made.assumptions)
        assert report.good, (share, report.failures())
