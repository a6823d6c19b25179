"""An emulator of SASS: kernels run without a GPU, lane by lane the same bits, and every wrong access is named."""

from sassir.emulator.batch import Checks
from sassir.emulator.run import Counts, emulate
from sassir.emulator.trace import Trace

__all__ = ["Checks", "Counts", "Trace", "emulate"]
