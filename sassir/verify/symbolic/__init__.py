"""Proof that two kernels do the same for every input, with terms and z3, as far as one is found in time.

What is shown: each thread meets the same barriers, shuffles, atomics and branches with the same operands, and leaves the same
memory. Assumed: no data races, reconvergence as the code says, floating-point operations as functions of their operands.
"""

from sassir.verify.symbolic.rung import SymbolicRung

__all__ = ["SymbolicRung"]
