"""An emulator of SASS: kernels run without a GPU, bit for bit, and whatever they do wrong is named.

    emulate(cubin, launch)                    run
      Module: kernels, variables, constants   module, constants
      Batch: some blocks together             batch: registers, memory, shared, local, flow
      code: one step an instruction           decode: arithmetic (sassir.isa.semantics), access, atomics, control, …
      groups of lanes, lowest address first   execute, flow

A step is a function of a set of lanes; a register is an array over all lanes of the batch. With `timed`, the steps are run by
`timed`, which keeps back every result as long as the control codes allow.
"""

from sassir.emulator.batch import Checks
from sassir.emulator.execute import Counts
from sassir.emulator.run import emulate
from sassir.emulator.trace import Observer, Trace

__all__ = ["Checks", "Counts", "Observer", "Trace", "emulate"]
