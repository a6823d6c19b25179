"""Launch files: how a kernel is launched, with which data, for emulator, GPU, benchmark and verification alike."""

from sassir.launch.compare import Difference, Outputs, compare
from sassir.launch.data import POISON
from sassir.launch.read import read_launch_file
from sassir.launch.records import Buffer, Facts, Launch, LaunchFile, Scalar, Step, Tolerance

__all__ = [
    "POISON",
    "Buffer",
    "Difference",
    "Facts",
    "Launch",
    "LaunchFile",
    "Outputs",
    "Scalar",
    "Step",
    "Tolerance",
    "compare",
    "read_launch_file",
]
