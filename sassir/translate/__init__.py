"""Lift (instructions to SSA) and emit (SSA to instructions), and what reads and writes modules with them."""
