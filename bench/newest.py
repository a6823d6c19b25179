"""The results in bench/results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def newest(name: str, results: Path = RESULTS) -> tuple[Path, dict[str, Any]] | None:
    """The newest of the results NAME-*.json, or NAME.json where nothing was measured on a GPU; None if there is neither.

    NAME.json as name stands for that file alone.
    """
    if name.endswith(".json"):
        file = results / name
        return (file, json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None
    found = [(file, json.loads(file.read_text(encoding="utf-8"))) for file in results.glob(f"{name}-*.json")]
    if found:
        return max(found, key=lambda pair: (pair[1]["date"], pair[0].name))
    return newest(f"{name}.json", results)


def timed(found: Mapping[str, Any], launch: str | None = None) -> dict[tuple[str, str], dict[str, Any]]:
    """What `sassir bench-suite` measured, by kernel and launch: of one launch, or of all."""
    return {(r["kernel"], r["launch"]): r["measured"] for r in found["results"] if r["measured"] and launch in (None, r["launch"])}
