"""Tables of a TOML file, their keys and numbers: what launch files and files of facts have in common."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from sassir.errors import LaunchError
from sassir.launch.expression import Number, evaluate
from sassir.launch.records import Dim3

Table = Mapping[str, Any]
Sizes = Mapping[str, Number]

MAX_BLOCK = (1024, 1024, 64)
MAX_BLOCK_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
"""CUDA C++ Programming Guide, compute capabilities."""


def load_toml(path: Path, kind: str) -> Table:
    """The document in a file of some `kind`. Raises LaunchError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LaunchError(f"cannot read the {kind}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LaunchError(f"cannot read the {kind}: {error}") from error


@contextmanager
def place(name: str) -> Generator[None]:
    """Put a place, a file or a key, before the message of a LaunchError raised within."""
    try:
        yield
    except LaunchError as error:
        raise error.at(name) from error


def check_keys(table: Table, required: set[str], optional: set[str]) -> None:
    """Raises LaunchError for a key that is missing, or that nobody knows."""
    if missing := required - table.keys():
        raise LaunchError(f"the key {min(missing)!r} is missing")
    if unknown := table.keys() - required - optional:
        raise LaunchError(f"unknown key {min(unknown)!r}; known: {', '.join(sorted(required | optional))}")


def table_of(document: Table, key: str) -> Table:
    """The table at `key`; an empty one if there is none. Raises LaunchError for anything else."""
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise LaunchError(f"{key}: expected a table, found {value!r}")
    return cast(Table, value)


def read_block(value: object, sizes: Sizes) -> Dim3:
    """The threads of a block in x, y, z. Raises LaunchError."""
    block = read_dim3(value, sizes, "block", MAX_BLOCK)
    if math.prod(block) > MAX_BLOCK_THREADS:
        raise LaunchError(f"block: {math.prod(block)} threads; a block has at most {MAX_BLOCK_THREADS}")
    return block


def read_dim3(value: object, sizes: Sizes, key: str, limits: Dim3) -> Dim3:
    """A count or up to three, each from 1 to its limit; those left out are 1. Raises LaunchError."""
    extents = [whole(extent, sizes, key) for extent in (cast(list[object], value) if isinstance(value, list) else [value])]
    x, y, z = (*extents, 1, 1, 1)[:3]
    if len(extents) > 3 or not all(1 <= extent <= limit for extent, limit in zip((x, y, z), limits, strict=True)):
        raise LaunchError(f"{key}: {extents} is not up to three counts from 1 to {limits}")
    return x, y, z


def whole(value: object, sizes: Sizes, key: str) -> int:
    """A whole number from 0, or an expression that is one. Raises LaunchError."""
    with place(key):
        number = evaluate(value, sizes)
        if number != int(number) or number < 0:
            raise LaunchError(f"{value!r} is {number}, not a whole number from 0")
        return int(number)
