"""Launch files: how a kernel is launched, with which data, for emulator, GPU, benchmark and verification alike."""

from sassir.launch.compare import Difference, Error, Outputs, compare, measure_error
from sassir.launch.data import POISON
from sassir.launch.read import read_launch, read_launch_file
from sassir.launch.records import Buffer, Facts, Launch, LaunchFile, Scalar, Step, Tolerance

__all__ = [
    "POISON",
    "Buffer",
    "Difference",
    "Error",
    "Facts",
    "Launch",
    "LaunchFile",
    "Outputs",
    "Scalar",
    "Step",
    "Tolerance",
    "compare",
    "measure_error",
    "read_launch",
    "read_launch_file",
]
