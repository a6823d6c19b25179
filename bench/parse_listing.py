"""How many lines a second of a listing become instructions: `python bench/parse_listing.py LISTING…` (best of three each).

A listing is what `nvdisasm -c`, `cuobjdump -sass` or `sassir-opt --target sass` prints; goal: 12,000 lines/s on one core.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time

from sassir.asm.listing import read_listing

REPEATS = 3


def main() -> None:
    """Print one line for each listing."""
    parser = argparse.ArgumentParser(description="Lines a second from listings to instructions.")
    parser.add_argument("listing", nargs="+", type=Path)
    parser.add_argument("--arch", help="for listings that hold several architectures, or do not say theirs")
    args = parser.parse_args()
    for path in args.listing:
        text = path.read_text("utf-8")
        read_listing(text, str(path), args.arch)  # the grammar is loaded and operands are interned once a process
        seconds, lines = min(_measure(text, str(path), args.arch) for _ in range(REPEATS))
        print(f"{path}: {lines} instructions, {lines / seconds:,.0f} lines/s, {1e6 * seconds / lines:.0f} us a line")


def _measure(text: str, where: str, arch: str | None) -> tuple[float, int]:
    start = process_time()
    listing = read_listing(text, where, arch)
    return process_time() - start, sum(len(section.code) for section in listing.sections)


if __name__ == "__main__":
    main()
