"""sassir: lift, optimise and re-encode finished NVIDIA GPU machine code (SASS)."""

from pathlib import Path as _Path

__version__ = "0.1.0"

# In a source checkout the subpackages are siblings of this folder; installed, they are inside it.
if not (_Path(__file__).parent / "passes").is_dir():
    __path__.append(str(_Path(__file__).parent.parent))
