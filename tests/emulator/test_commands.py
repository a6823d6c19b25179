"""`sassir run` and `sassir launch-template`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sassir.cli.main import main
from sassir.cubin.host import select_cubin
from sassir.cubin.summary import summarise
from sassir.launch import read_launch_file

ROOT = Path(__file__).parents[2]
CUBINS = ROOT / "tests" / "cubins"
SAXPY = str(ROOT / "bench" / "cubins" / "saxpy_gs.sm_90.cubin")
LAUNCH = str(ROOT / "bench" / "launch" / "saxpy_gs.toml")


def test_outputs_are_summarised(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SAXPY, "--launch", LAUNCH, "--case", "tail"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert "launch tail: emulated" in head
    assert line.split()[:4] == ["y", "f32", "1000", "sha256"]
    assert line.endswith("-0.18831235 0.2664057 -1.0224273 0.4763766 -0.78540534 -0.7652949 …")


def test_outputs_are_saved_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "y.npz"
    assert main(["run", SAXPY, "--launch", LAUNCH, "--case", "tail", "-o", str(saved)]) == 0
    assert main(["run", SAXPY, "--launch", LAUNCH, "--case", "tail", "--reference", str(saved)]) == 0
    assert "equal to" in capsys.readouterr().out
    y = np.load(saved)["y"]
    y[7] = np.nextafter(y[7], np.float32(1))
    np.savez(saved, **{"tail/y": y})
    assert main(["run", SAXPY, "--launch", LAUNCH, "--case", "tail", "--reference", str(saved)]) == 0
    assert "y[7]: " in (out := capsys.readouterr().out)
    assert "within the tolerance of the launch file" in out
    y[7] += 1
    np.savez(saved, y=y)
    assert main(["run", SAXPY, "--launch", LAUNCH, "--case", "tail", "--reference", str(saved)]) == 1
    np.savez(saved, z=y)
    assert main(["run", SAXPY, "--launch", LAUNCH, "--case", "tail", "--reference", str(saved)]) == 1
    assert "no array for the output y; it has z" in capsys.readouterr().err


def test_the_smallest_launch_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SAXPY, "--launch", LAUNCH]) == 0
    assert "launch empty" in capsys.readouterr().out


def test_a_trace_shows_every_instruction_of_a_thread(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SAXPY, "--launch", LAUNCH, "--case", "one", "--trace", "--thread", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[1].split()) == "block 0 thread 0 0x0010 S2R R0, SR_CTAID.X R0 = 0x00000000 (0.0)"
    assert any("FFMA" in line and "= 0xbe40d4f4 (-0.1883123517036438)" in line for line in lines)
    assert "EXIT" in next(line for line in reversed(lines) if "thread" in line)


def test_a_register_is_watched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SAXPY, "--launch", LAUNCH, "--case", "one", "--watch", "P0", "--thread", "0", "--thread", "1"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "thread" in line]
    assert [line.split()[3] + line[line.index("P0 =") :] for line in lines] == ["0P0 = False", "1P0 = True", "0P0 = True"]


def test_a_kernel_that_goes_wrong_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch = tmp_path / "launch.toml"
    launch.write_text(
        '[launches]\nonly = { n = 64 }\n[buffers]\nout = { dtype = "i32", shape = "n", role = "out" }\n'
        '[[steps]]\nkernel = "races"\ngrid = 1\nblock = "n"\narguments = ["out"]\n',
        encoding="utf-8",
    )
    cubin = str(CUBINS / "refused.sm_90.cubin")
    assert main(["run", cubin, "--launch", str(launch)]) == 1
    assert capsys.readouterr().err.startswith("error: kernel races, 0x")
    assert main(["run", cubin, "--launch", str(launch), "--allow-races"]) == 0


@pytest.mark.parametrize("name", ["axpy.sm_75.cubin", "axpy.sm_90.cubin", "axpy.sm_120.cubin"])
def test_a_template_can_be_run_at_once(name: str, tmp_path: Path) -> None:
    launch = tmp_path / "launch.toml"
    assert main(["launch-template", str(CUBINS / name), "-o", str(launch)]) == 0
    file = read_launch_file(launch)
    assert set(file.launches) == {"small", "one"}
    assert main(["run", str(CUBINS / name), "--launch", str(launch)]) == 0


def test_a_template_needs_a_kernel_to_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cubin = str(CUBINS / "calls.sm_90.cubin")
    assert main(["launch-template", cubin]) == 1
    assert "choose one with --kernel: first, second" in capsys.readouterr().err.replace("second, first", "first, second")
    assert main(["launch-template", cubin, "--kernel", "third"]) == 1
    assert "no kernel third" in capsys.readouterr().err
    assert main(["launch-template", cubin, "--kernel", "first"]) == 0
    assert "block = [128, 1, 1]" in capsys.readouterr().out


def test_a_structure_in_a_template_has_the_size_that_the_kernel_expects(tmp_path: Path) -> None:
    launch, cubin = tmp_path / "launch.toml", ROOT / "bench" / "cubins" / "cupy_l2norm.sm_90.cubin"
    assert main(["launch-template", str(cubin), "-o", str(launch)]) == 0
    (kernel,) = summarise(select_cubin(cubin.read_bytes())).kernels
    (step,) = read_launch_file(launch).launch("one").steps
    assert step.parameters() == [(p.offset, p.size) for p in kernel.parameters]
