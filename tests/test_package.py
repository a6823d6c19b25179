"""What gets installed, and what the layers may import."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {"sassir": "sassir", "encoders": "sassir.encoders", "grammars": "sassir.grammars", "passes": "sassir.passes"}
LAYERS = ["grammars", "asm", "cubin", "encoders", "isa", "launch", "dialect", "translate", "passes", "gpu", "cli"]
"""Each may import those to its left, and itself."""


def test_every_package_is_listed() -> None:
    """A folder that pyproject.toml forgets would be missing from the wheel."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {
        ".".join([package, *file.parent.relative_to(ROOT / folder).parts])
        for folder, package in FOLDERS.items()
        for suffix in ("py", "txt", "toml", "lark")
        for file in (ROOT / folder).rglob(f"*.{suffix}")
    }
    assert sorted(listed) == sorted(found)


def test_imports_go_one_way() -> None:
    """encoders may use asm but never the dialect, and so on."""
    wrong: list[str] = []
    for folder, package in FOLDERS.items():
        for file in (ROOT / folder).rglob("*.py"):
            layer = file.relative_to(ROOT / folder).parts[0] if folder == "sassir" else folder
            if layer not in LAYERS:
                continue
            for imported in re.findall(r"^\s*(?:from|import) sassir\.(\w+)", file.read_text(), re.M):
                if imported in LAYERS and LAYERS.index(imported) > LAYERS.index(layer):
                    wrong.append(f"{package}: {file.name} imports sassir.{imported}")
    assert wrong == []


@pytest.mark.parametrize("module", ["sassir.cli.opt", "sassir.cli.main"])
def test_help_needs_neither_tables_nor_grammars(module: str) -> None:
    """Start-up is quick because the heavy parts load when they are used."""
    code = f"import sys, {module}; print(*[m for m in ('lark', 'sassir.encoders.table', 'rich', 'pycuda') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
