"""Checkers and proofs that a kernel computes what another one does."""
