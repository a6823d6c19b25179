"""Every given launch once, and nothing else, for a profiler to watch: `python -m sassir.gpu.once CUBIN LAUNCH_FILE LAUNCH …`."""

from __future__ import annotations

import sys
from pathlib import Path

from sassir.gpu.runner import run
from sassir.launch import read_launch_file


def main(arguments: list[str]) -> None:
    """Run the launches in the order given. Raises LaunchError."""
    for cubin, file, launch in zip(arguments[::3], arguments[1::3], arguments[2::3], strict=True):
        run(Path(cubin).read_bytes(), read_launch_file(file).launch(launch))


if __name__ == "__main__":
    main(sys.argv[1:])
