"""What is read out of ncu's report, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.errors import LaunchError
from sassir.gpu.counters import Counters, Job, parse, read_counters

REPORT = """\
==PROF== Connected to process 12
==PROF== Profiling "fuse_a" - 0: 0%....50%....100% - 2 passes
"ID","Kernel Name","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",\
"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",\
"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio","smsp__inst_executed.sum"
"","","inst","inst","inst","inst"
"0","fuse_a","0","12.5","1","1,234,567"
"1","fuse_b","2.25","1.5","1","89"
"""


def test_a_record_for_each_kernel_with_the_stalls_in_order() -> None:
    first, second = parse(REPORT.splitlines())
    assert first == Counters(1234567, {"long_scoreboard": 12.5})
    assert second == Counters(89, {"barrier": 2.25, "long_scoreboard": 1.5})
    assert [*second.stalls] == ["barrier", "long_scoreboard"]


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """An `ncu` that does what `script` says."""
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


JOB = Job(Path("k.cubin"), Path("k.toml"), "full", steps=2)


def test_kernels_are_given_to_their_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report").write_text(REPORT)
    stand_in(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/arguments\ncat {tmp_path}/report')
    ((first, second),) = read_counters([JOB])
    assert (first.executed, second.executed) == (1234567, 89)
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.rstrip().endswith("-m sassir.gpu.once k.cubin k.toml full")
    assert "--clock-control none" in arguments


def test_the_driver_may_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1")
    with pytest.raises(LaunchError, match="ncu: ERR_NVGPUCTRPERM - The user does not have permission"):
        read_counters([JOB])


def test_without_ncu_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="ncu is not on PATH"):
        read_counters([JOB])
