#!/usr/bin/env python3
"""Gather real code: public wheels with device code, and the bench kernels assembled by ptxas of three CUDA generations.

    python bench/fetch_corpus.py DIR

Needs pip and nvcc on PATH (for PTX); ptxas 11.8, 12.9 and 13.5 come from PyPI. The files are NVIDIA's and bitsandbytes', so
they are fetched, not committed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LIBRARIES = ("nvidia-nvjpeg==13.3.2.43", "nvidia-nvjpeg-cu11==11.9.0.86", "bitsandbytes==0.50.2")
FIRST_FIVE = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90")
PTXAS = {
    "11.8": ("nvidia-cuda-nvcc-cu11==11.8.89", "7.8", FIRST_FIVE),
    "12.9": ("nvidia-cuda-nvcc-cu12==12.9.86", "8.8", (*FIRST_FIVE, "sm_90a", "sm_100", "sm_100a", "sm_120", "sm_120a")),
    "13.5": ("nvidia-cuda-nvcc==13.5.37", "9.0", (*FIRST_FIVE, "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120", "sm_120a", "sm_121")),
}
"""Release: wheel, newest PTX version that it is given, architectures."""


def fetch(requirements: tuple[str, ...], where: Path) -> Path:
    """Download wheels and unpack them into one folder."""
    if not where.exists():
        with tempfile.TemporaryDirectory() as wheels:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, *requirements], check=True)
            for wheel in Path(wheels).glob("*.whl"):
                zipfile.ZipFile(wheel).extractall(where)
    return where


def ptx_of(source: Path) -> str:
    """The kernel as PTX for sm_75, which every later architecture takes."""
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        subprocess.run(["nvcc", "-O3", "-ptx", "-arch=compute_75", "-DV_base", "-o", file.name, source], check=True, capture_output=True)
        return Path(file.name).read_text()


def main() -> None:
    """Fill the folder named on the command line with `libraries` and `cubins`."""
    root = Path(sys.argv[1])
    fetch(LIBRARIES, root / "libraries")
    cubins = root / "cubins"
    cubins.mkdir(exist_ok=True)
    sources = {s.stem: ptx_of(s) for s in sorted((Path(__file__).parent / "kernels").glob("*.cu"))}
    for release, (wheel, version, architectures) in PTXAS.items():
        ptxas = next(fetch((wheel,), root / release).rglob("bin/ptxas"))
        ptxas.chmod(0o755)
        for name, ptx in sources.items():
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
                file.write(re.sub(r"^\.version .*", f".version {version}", ptx, flags=re.M))
                file.flush()
                for arch in architectures:
                    target = cubins / f"{name}.cuda{release}.{arch}.cubin"
                    done = subprocess.run([ptxas, f"-arch={arch}", "-o", target, file.name], capture_output=True, text=True, check=False)
                    if done.returncode:
                        print(f"{target.name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    print(f"{len(list(cubins.glob('*.cubin')))} cubins and {len(LIBRARIES)} libraries in {root}")


if __name__ == "__main__":
    main()
