"""Proofs: terms mean what the semantics computes, equal kernels are proven equal, different ones never."""

from __future__ import annotations

import itertools
import random
import re
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import KernelFacts, WordRange
from sassir.isa.semantics import Register, semantics
from sassir.verify.report import Check

z3: Any = pytest.importorskip("z3", reason="z3 is not installed (extra `symbolic`)")
terms, values, solver, rung = (import_module(f"sassir.verify.symbolic.{name}") for name in ("terms", "values", "solver", "rung"))
kernels = import_module("sassir.verify.symbolic.kernels")

FORMS = Path(__file__).parents[2] / "bench" / "semantics_forms.txt"


def forms() -> Iterator[str]:
    """Every form of the measured semantics: `{a/b}` stands for a and for b."""
    for line in FORMS.read_text().splitlines():
        if line and not line.startswith("#"):
            pieces = [part.split("/") if i % 2 else [part] for i, part in enumerate(re.split(r"\{([^}]*)\}", line))]
            yield from ("".join(choice) for choice in itertools.product(*pieces))


def is_predicate(source: Any) -> bool:
    return isinstance(source, Register) and source.name.lstrip("U").startswith("P")


def has_function(term: Any) -> bool:
    seen, work = set[Any](), [term]
    while work:
        top = work.pop()
        if top not in seen:
            seen.add(top)
            work += top.parts
    return any(term.op == "function" for term in seen)


def calculated(formula: Any, words: dict[str, int], kinds: dict[str, int]) -> int:
    """A formula of z3 for some values of its variables."""
    known = [(z3.BitVec(n, 32), z3.BitVecVal(v, 32)) if kinds[n] else (z3.Bool(n), z3.BoolVal(bool(v))) for n, v in words.items()]
    found = z3.simplify(z3.substitute(formula, *known))
    return int(z3.is_true(found)) if z3.is_bool(found) else found.as_long()


def test_terms_mean_what_the_semantics_computes() -> None:
    """For every form whose term is made of integer operations alone: term, formula and semantics agree."""
    chance = random.Random(1)
    sample = chance.sample(list(forms()), 250)
    compared = 0
    for text in sample:
        evaluator = semantics(parse_instruction(text), "sm_90")
        kinds = {str(s): 0 if is_predicate(s) else 32 for s in evaluator.sources}
        unknown = [values.Value(terms.variable(n, w), np.dtype(np.uint32 if w else np.bool_)) for n, w in kinds.items()]
        if evaluator.warp or len(kinds) < len(evaluator.sources):
            continue
        try:
            results = [values.term_of(x)[0] for x in evaluator.evaluate(*unknown)]
        except values.NO_TERM:
            continue
        if any(has_function(term) for term in results):
            continue  # of floats nothing is known
        formulas = [solver.Solver(5, {}, {})._formula(term) for term in results]
        for _ in range(3):
            words = {
                n: chance.choice([chance.getrandbits(32), 0, 0xFFFFFFFF, 1 << 31, 33]) if w else chance.getrandbits(1)
                for n, w in kinds.items()
            }
            arrays = [np.array([[words[n]]], np.uint32 if w else np.bool_) for n, w in kinds.items()]
            for formula, expected in zip(formulas, evaluator.evaluate(*arrays), strict=True):
                assert calculated(formula, words, kinds) == int(np.asarray(expected).reshape(-1)[0]), text
                compared += 1
    assert compared > 300


def straight(*lines: str) -> Any:
    return kernels.Kernel(tuple([parse_instruction(line) for line in (*lines, "EXIT")]), {}, {})


def verdict(left: tuple[str, ...], right: tuple[str, ...], facts: KernelFacts | None = None) -> Check:
    """Of two pieces of code, by what they leave in R0."""
    codes = [straight("LDC.64 R2, c[0x0][0x210]", *lines, "STG.E [R2.64], R0") for lines in (left, right)]
    return rung.prove("k", "sm_90", tuple(codes), facts or KernelFacts(), rung.distinct, 10)


TID, N, M = "S2R R4, SR_TID.X", "LDC R5, c[0x0][0x220]", "LDC R6, c[0x0][0x224]"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (("IADD3 R0, R4, R5, R6",), ("IADD3 R7, R6, R4, RZ", "IADD3 R0, R7, R5, RZ")),
        (("IMAD R0, R4, 0x8, R5",), ("SHF.L.U32 R7, R4, 0x3, RZ", "IADD3 R0, R5, R7, RZ")),
        (("LEA R0, R4, R5, 0x2",), ("IMAD.SHL.U32 R7, R4, 0x4, RZ", "VIADD R0, R7, R5")),
        (("LOP3.LUT R0, R4, R5, R6, 0x96, !PT",), ("LOP3.LUT R7, R5, R6, RZ, 0x3c, !PT", "LOP3.LUT R0, R7, R4, RZ, 0x3c, !PT")),
        (("LOP3.LUT R7, R4, R5, RZ, 0xc0, !PT", "IADD3 R0, R4, -R7, RZ"), ("LOP3.LUT R0, R4, R5, RZ, 0x30, !PT",)),
        (("ISETP.GE.AND P0, PT, R4, R5, PT", "SEL R0, R4, R5, P0"), ("VIMNMX R0, R4, R5, !PT",)),
        (("FADD R7, R4, R5", "FMUL R0, R7, R6"), ("FADD R8, R5, R4", "FMUL R0, R6, R8")),
        (("ISETP.GT.AND P0, PT, R4, R5, PT", "@P0 IADD3 R4, R4, R6, RZ", "MOV R0, R4"),
         ("ISETP.GT.AND P1, PT, R4, R5, PT", "SEL R7, R6, RZ, P1", "IADD3 R0, R4, R7, RZ")),
        (("ISETP.GT.AND P0, PT, R4, R5, PT", "@P0 FADD R7, R4, R5", "@!P0 FADD R7, R4, R6", "MOV R0, R7"),
         ("ISETP.GT.AND P0, PT, R4, R5, PT", "FADD R8, R4, R6", "@P0 FADD R8, R4, R5", "MOV R0, R8")),
        (("MOV R0, R4",), ("LOP3.LUT R4, R4, R5, RZ, 0x3c, !PT", "LOP3.LUT R5, R4, R5, RZ, 0x3c, !PT",
                           "LOP3.LUT R4, R4, R5, RZ, 0x3c, !PT", "MOV R0, R5")),
    ],
)  # fmt: skip
def test_equal_code_is_proven_equal(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    found = verdict((TID, N, M, *left), (TID, N, M, *right))
    assert (found.verdict, found.detail) == ("holds", "1 pairs of places")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (("IADD3 R0, R4, R5, R6",), ("IADD3 R0, R4, R5, -R6",)),
        (("IMAD R0, R4, 0x8, R5",), ("IMAD R0, R4, 0x9, R5",)),
        (("SHF.R.S32.HI R0, RZ, 0x1, R5",), ("SHF.R.U32.HI R0, RZ, 0x1, R5",)),
        (("FADD R7, R4, R5", "FADD R0, R7, R6"), ("FADD R7, R5, R6", "FADD R0, R4, R7")),
        (("FADD R0, R4, R5",), ("FADD.FTZ R0, R4, R5",)),
        (("MOV R0, R4",), ("MOV R0, R5",)),
        (("S2R R0, SR_CLOCKLO",), ("MOV R0, RZ",)),
    ],
)
def test_different_code_is_not(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert verdict((TID, N, M, *left), (TID, N, M, *right)).verdict == "undecided"


def test_facts_decide_what_would_not_be_decided_without_them() -> None:
    left, right = (TID, "ISETP.LT.U32.AND P0, PT, R4, 0x100, PT", "SEL R0, R4, RZ, P0"), (TID, "MOV R0, R4")
    assert verdict(left, right).verdict == "undecided"
    assert verdict(left, right, KernelFacts(block=(256, 1, 1))).verdict == "holds"
    assert verdict((N, "MOV R0, R5"), ("MOV R0, 0x7",), KernelFacts(words=((0x220, 7),))).verdict == "holds"


@pytest.mark.parametrize(
    ("compare", "low", "high", "expected"),
    [
        ("GT", 1, 4096, "holds"),
        ("GT", 0, 4096, "undecided"),
        ("LT", -5, -1, "holds"),
        ("LT", -5, 0, "undecided"),
        ("GE", 0, 2**31 - 1, "holds"),
    ],
)
def test_a_range_decides_a_comparison(compare: str, low: int, high: int, expected: str) -> None:
    left = (N, M, f"ISETP.{compare}.AND P0, PT, R5, RZ, PT", "SEL R0, R5, R6, P0")
    assert verdict(left, (N, M, "MOV R0, R5"), KernelFacts(ranges=(WordRange(0x220, low, high),))).verdict == expected


def test_no_block_is_larger_than_the_hardware_allows() -> None:
    for limit, expected in ((1024, "holds"), (1023, "undecided")):
        compare = f"ISETP.LT.U32.AND P0, PT, R4, {limit:#x}, PT"
        assert verdict((TID, compare, "SEL R0, R4, RZ, P0"), (TID, "MOV R0, R4")).verdict == expected


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_proof_ends_in_time(seconds: int) -> None:
    """a * b = (a & b) * (a | b) + (a & ~b) * (~a & b) is true, and too much for a solver."""
    known = ("LDC R4, c[0x0][0x220]", "LDC R5, c[0x0][0x224]", "LDC.64 R2, c[0x0][0x210]")
    tables = {7: "0xc0", 8: "0xfc", 9: "0x30", 10: "0xc"}
    logic = [f"LOP3.LUT R{register}, R4, R5, RZ, {table}, !PT" for register, table in tables.items()]
    left = straight(*known, "IMAD R0, R4, R5, RZ", "STG.E [R2.64], R0")
    right = straight(*known, *logic, "IMAD R0, R7, R8, RZ", "IMAD R0, R9, R10, R0", "STG.E [R2.64], R0")
    begin = time.monotonic()
    found = rung.prove("k", "sm_90", (left, right), KernelFacts(), rung.distinct, seconds)
    assert time.monotonic() - begin < seconds + 5
    assert found.verdict == "undecided"
    if not seconds:
        assert found.detail == "no proof within 0 s"


STACK = "MOV R1, c[0x0][0x28]"


def memory(*lines: str) -> Any:
    return straight("LDC.64 R2, c[0x0][0x210]", "LDC.64 R4, c[0x0][0x218]", TID.replace("R4", "R6"), *lines)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (("STG.E [R2.64], R6", "STG.E [R2.64+0x4], R7"), ("STG.E [R2.64+0x4], R7", "STG.E [R2.64], R6"), "holds"),
        (("STG.E.64 [R2.64], R6",), ("STG.E [R2.64+0x4], R7", "STG.E [R2.64], R6"), "holds"),
        (("STG.E [R2.64], R6", "STG.E [R2.64], R7"), ("STG.E [R2.64], R7",), "holds"),
        (("STG.E [R2.64], R6", "LDG.E R8, [R2.64]", "STG.E [R4.64], R8"), ("STG.E [R2.64], R6", "STG.E [R4.64], R6"), "holds"),
        (("STG.E [R2.64], R6", "STG.E [R4.64], R7"), ("STG.E [R4.64], R7", "STG.E [R2.64], R6"), "undecided"),
        (("STG.E [R2.64], R6",), ("STG.E [R2.64+0x4], R6",), "undecided"),
        (("STG.E [R2.64], R6", "BAR.SYNC 0x0"), ("BAR.SYNC 0x0", "STG.E [R2.64], R6"), "undecided"),
        (("BAR.SYNC 0x0", "STG.E [R2.64], R6"), ("STG.E [R2.64], R6",), "undecided"),
        (("STS.U8 [R6], R7", "STS.U8 [R6+0x1], R7"), ("STS.U8 [R6+0x1], R7", "STS.U8 [R6], R7"), "holds"),
        ((STACK, "STL [R1], R6", "LDL R8, [R1]", "STG.E [R2.64], R8"), ("STG.E [R2.64], R6",), "holds"),
        ((STACK, "STL [R1], R6", "LD.E R8, [R4.64]", "STG.E [R2.64], R8"),
         (STACK, "STL [R1], R7", "LD.E R8, [R4.64]", "STG.E [R2.64], R8"), "undecided"),
        ((STACK, "STL [R1], R6", "ST.E [R4.64], R7", "LDL R8, [R1]", "STG.E [R2.64], R8"),
         (STACK, "STL [R1], R6", "ST.E [R4.64], R7", "STG.E [R2.64], R6"), "undecided"),
    ],
)  # fmt: skip
def test_memory(left: tuple[str, ...], right: tuple[str, ...], expected: str) -> None:
    assert rung.prove("k", "sm_90", (memory(*left), memory(*right)), KernelFacts(), rung.distinct, 10).verdict == expected


def test_what_the_driver_fills_in_is_not_known() -> None:
    code = memory("MOV R8, 0x0", "STG.E [R2.64], R8")
    left, right = (code._replace(links={3: f"ABS32_LO_32 {name}"}) for name in "fg")
    found = rung.prove("k", "sm_90", (left, right), KernelFacts(), rung.distinct, 10)
    assert (found.verdict, found.detail) == ("undecided", "`MOV R8, 0x0` is completed by the driver (ABS32_LO_32 f)")
