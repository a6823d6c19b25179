"""Registers for the values of a kernel: spilling, choosing, and the copies that both ask for."""
