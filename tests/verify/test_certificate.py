"""The certificate says what was verified, with what, and on which grounds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import numpy as np
import pytest

from sassir import __version__
from sassir.dialect.facts import KernelFacts, Pointer, WordRange
from sassir.errors import VerificationError
from sassir.launch import LaunchFile
from sassir.verify.assumptions import Assumption
from sassir.verify.certificate import certificate, recorded_assumptions
from sassir.verify.ladder import verify_pair

Bench = Callable[[str], tuple[bytes, LaunchFile]]


def test_it_names_both_files_every_check_facts_passes_and_tools(
    twice: bytes, once: bytes, twice_file: Callable[[bool], LaunchFile]
) -> None:
    file = twice_file(True)
    assumptions = {"twice": Assumption(KernelFacts(noalias=True), ("noalias",))}
    report = verify_pair(twice, once, file.small, file.facts, assumptions=assumptions)
    found = json.loads(json.dumps(certificate(twice, once, report, file.small, file.facts, assumptions, "a,b")))
    assert (found["format"], found["verdict"], found["passes"]) == (1, "holds", "a,b")
    assert [found[name]["sha256"] for name in ("original", "candidate")] == [hashlib.sha256(data).hexdigest() for data in (twice, once)]
    assert found["candidate"]["kernels"]["twice"]["instructions"] == 32
    assert found["original"]["arch"] == "sm_90"
    assert found["facts"]["stated"]["noalias"] is True
    assert found["facts"]["used"]["twice"]["names"] == ["noalias"]
    assert found["launches"] == {"one": {"n": 1, "blocks": 1}, "two": {"n": 64, "blocks": 2}}
    assert [layer["name"] for layer in found["layers"]] == ["container", "schedule", "allocation", "emulator"]
    assert found["layers"][-1]["checks"][0] == {"subject": "launch one, as stated", "verdict": "holds", "detail": ""}
    assert found["tools"]["sassir"] == __version__
    assert found["tools"]["numpy"] == np.__version__


def test_what_a_candidate_relies_on_can_be_read_back(twice: bytes, once: bytes) -> None:
    words, ranges, pointers = ((0x210, 7), (0x214, 8)), (WordRange(0x220, 1, 4096),), (Pointer(0x218, 256, 4096),)
    facts = KernelFacts((32, 1, 1), (2, 1, 1), 0, words, ranges, pointers, noalias=True)
    assumptions = {"twice": Assumption(facts, ("block", "word 0x210", "range 0x220"))}
    report = verify_pair(twice, once, [])
    known = json.dumps(certificate(twice, once, report, assumptions=assumptions)).encode()
    assert recorded_assumptions(known, once) == assumptions
    assert recorded_assumptions(json.dumps(certificate(twice, once, report)).encode(), once) is None
    with pytest.raises(VerificationError, match="the certificate of another cubin"):
        recorded_assumptions(known, twice)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[1]", b"{}", b'{"format": 1, "candidate": 7}'])
def test_what_is_no_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(VerificationError, match="not a certificate"):
        recorded_assumptions(data, b"")


def test_it_holds_the_findings_of_a_layer_that_fails(bench: Bench) -> None:
    cubin, file = bench("saxpy_gs")
    cut = cubin[:2000]
    report = verify_pair(cubin, cut, file.small)
    found = certificate(cubin, cut, report)
    assert found["verdict"] == "fails"
    assert "unreadable" in found["candidate"]
    assert found["facts"] == {"stated": None, "used": None}
    (layer,) = found["layers"]
    assert layer["findings"][0]["rule"]
