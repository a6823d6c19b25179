"""The ladder: which layer fails for which fault, what ends the climb, and what the verdict of a pair is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sassir.dialect.facts import KernelFacts
from sassir.launch import Facts, LaunchFile
from sassir.verify.assumptions import Assumption, broken_fact
from sassir.verify.differential import Original
from sassir.verify.ladder import Pair, verify_pair
from sassir.verify.report import Layer, Report

Bench = Callable[[str], tuple[bytes, LaunchFile]]
Edit = Callable[..., bytes]

RUNGS = ["container", "schedule", "allocation", "emulator"]


def verdicts(report: Report) -> dict[str, str]:
    return {layer.name: layer.verdict for layer in report.layers}


def test_every_layer_holds_for_equal_code_at_other_places(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("poly_strict")
    more = edited(cubin, ("/*0220*/ FADD R7, R7, 0.5 ;", "/*0220*/ FADD R7, R7, 0.5 ;\n[B------:R-:W-:Y:S04] NOP ;"))
    report = verify_pair(cubin, more, file.small, file.facts)
    assert verdicts(report) == dict.fromkeys(RUNGS, "holds")
    assert (report.verdict, report.good, report.failures()) == ("holds", True, [])


def test_a_wait_that_is_too_short_is_seen_by_the_schedule_checker_alone(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("poly_strict")
    hasty = edited(cubin, ("[B------:R-:W-:Y:S04] /*0220*/", "[B------:R-:W-:-:S01] /*0220*/"))
    report = verify_pair(cubin, hasty, file.small, file.facts)
    assert verdicts(report) == {"container": "holds", "schedule": "fails", "allocation": "holds", "emulator": "holds"}
    assert report.verdict == "fails"
    assert "poly_strict+0x230" in next(iter(report.failures()))


def test_what_the_original_has_too_is_no_fault_of_the_candidate(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("poly_strict")
    hasty = edited(cubin, ("[B------:R-:W-:Y:S04] /*0220*/", "[B------:R-:W-:-:S01] /*0220*/"))
    report = verify_pair(hasty, hasty, file.small, file.facts)
    assert verdicts(report) == dict.fromkeys(RUNGS, "holds")


def test_a_container_that_is_not_sound_ends_the_climb(bench: Bench) -> None:
    cubin, file = bench("saxpy_gs")
    report = verify_pair(cubin, cubin[:2000], file.small)
    assert verdicts(report) == {"container": "fails"}


def test_another_architecture_is_no_replacement(bench: Bench) -> None:
    cubin, file = bench("poly_strict")
    (other,) = [path for path in file.path.parents[1].glob("cubins/poly_strict.sm_80.cubin")]
    report = verify_pair(cubin, other.read_bytes(), file.small)
    assert report.failures() == ["container: the candidate is for sm_80, the original for sm_90"]


def test_a_foreign_pair(bench: Bench) -> None:
    """The same kernel from two compilers computes the same; two kernels do not."""
    naive, tiled = (bench(name) for name in ("sgemm_naive", "sgemm_tiled"))
    report = verify_pair(naive[0], tiled[0], naive[1].small)
    assert report.verdict == "fails"
    assert "no kernel sgemm_naive" in [*report.failures()][-1]


def test_without_launches_nothing_is_decided(bench: Bench) -> None:
    cubin, _ = bench("saxpy_gs")
    report = verify_pair(cubin, cubin, [])
    assert (report.verdict, verdicts(report)["emulator"]) == ("undecided", "undecided")


def test_more_rungs_are_climbed_at_the_end(bench: Bench) -> None:
    cubin, file = bench("rgb2gray_u8")

    def rung(pair: Pair) -> Layer:
        return Layer("mine", "fails", f"{len(pair.launches)} launches")

    report = verify_pair(cubin, cubin, file.small, more=[rung])
    assert report.failures() == [f"mine: {len(file.small)} launches"]


def test_the_original_is_emulated_once_for_several_candidates(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from sassir.verify import differential

    cubin, file = bench("rgb2gray_u8")
    runs: list[str] = []
    emulate = differential.emulate

    def counted(data: bytes, launch: object, where: str, **options: object) -> object:
        runs.append(where)
        return emulate(data, launch, where, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(differential, "emulate", counted)
    known = Original(cubin)
    for _ in range(3):
        assert verify_pair(known, cubin, file.small, file.facts).good
    assert runs.count("the candidate") == 3 * runs.count("the original") > 0


FACTS = KernelFacts(block=(256, 1, 1), grid=(4, 1, 1), words=((0x210, 20012), (0x214, 0x3FC00000)), noalias=True)


@pytest.mark.parametrize(
    ("used", "stated", "broken"),
    [
        (("block",), Facts(), None),
        (("grid",), Facts(), "grid = (4, 1, 1) in kernel saxpy_gs"),
        (("word 0x214", "block"), Facts(), None),
        (("word 0x210",), Facts(), "word 0x210 = 20012 in kernel saxpy_gs"),
        (("noalias",), Facts(noalias=True), None),
        (("noalias",), Facts(), "noalias = True in kernel saxpy_gs"),
    ],
)
def test_a_candidate_is_for_launches_with_the_facts_that_it_uses(
    bench: Bench, used: tuple[str, ...], stated: Facts, broken: str | None
) -> None:
    launch = bench("saxpy_gs")[1].launch("tail")
    assert broken_fact({"saxpy_gs": Assumption(FACTS, used)}, launch, stated, "sm_90") == broken
    assert broken_fact({"other": Assumption(FACTS, used)}, launch, stated, "sm_90") is None


def test_facts_that_are_not_used_are_not_relied_on() -> None:
    assert Assumption(FACTS, ("block", "word 0x214")).relied() == KernelFacts(block=(256, 1, 1), words=((0x214, 0x3FC00000),))


def test_overlap_is_tried_unless_the_candidate_uses_that_there_is_none(
    twice: bytes, once: bytes, twice_file: Callable[[bool], LaunchFile]
) -> None:
    file = twice_file(True)
    assert verify_pair(twice, once, file.small, file.facts).good  # nobody has recorded what it uses
    assert verify_pair(twice, once, file.small, file.facts, assumptions={"twice": Assumption(KernelFacts(noalias=True), ("noalias",))}).good
    assert not verify_pair(twice, once, file.small, file.facts, assumptions={}).good
