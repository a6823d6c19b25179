"""Which register each live value is in, at one point of the program."""

from __future__ import annotations

from xdsl.ir import SSAValue


class State:
    """Values and registers, both ways. A register has one value at most."""

    def __init__(self, allowed: int) -> None:
        self.place: dict[SSAValue, int] = {}
        self.holder: dict[int, SSAValue] = {}
        self.free = allowed
        """The registers that may be chosen and hold nothing."""
        self.allowed = allowed

    def put(self, value: SSAValue, register: int) -> None:
        """Let `value` be in `register`, which holds nothing."""
        assert register not in self.holder, "two values in one register"
        self.place[value] = register
        self.holder[register] = value
        self.free &= ~(1 << register)

    def drop(self, value: SSAValue) -> None:
        """Let the register of `value` hold nothing."""
        register = self.place.pop(value)
        del self.holder[register]
        self.free |= 1 << register & self.allowed
