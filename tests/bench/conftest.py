"""The scripts of bench/ are not installed; tests import them from there."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "bench"))
