"""The registers of a batch of warps, and what is known of them.

A value that was never written may be copied and computed with: compilers do that in lanes whose results nobody uses. What
comes of it counts as never written, too, and is refused where it matters: in an address, a condition, or a store. This is the
rule of Valgrind's Memcheck (Seward and Nethercote, 2005), by register instead of by bit.
"""

from __future__ import annotations

import numpy as np

from sassir.asm.operand import register_file
from sassir.emulator.lanes import Array, Flags, Lanes, SuspicionError

UNDEFINED = 0xCDCDCDCD
"""What a register holds that nothing has written."""

Known = Flags | bool
"""Where a register has been written: everywhere, nowhere, or by lane."""


class Registers:
    """Registers, and whatever else is read like one, by slot. A value is never changed in place: it is replaced by a new array."""

    def __init__(self, strict: bool, undefined: int = UNDEFINED) -> None:
        """`strict`: it is refused to use what was never written; `undefined`: what it holds, a predicate the lowest bit of that."""
        self.names: list[str] = []
        self.values: list[Array] = []
        self.defined: list[Known] = []
        self.strict = strict
        self._undefined = np.full((1, 1), undefined, np.uint32)
        self._slots: dict[str, int] = {}
        self._pinned: set[int] = set()
        self._origins: dict[int, str] = {}
        """Why a register that was written counts as never written."""
        self._absent: Known = False
        for name, value in _ZERO.items():
            self.pin(name, value)

    def slot(self, name: str) -> int:
        """The number of a register, or of anything else with a name that is read like one."""
        if name not in self._slots:
            self._slots[name] = len(self.names)
            self.names.append(name)
            self.values.append(self._initial(name))
            self.defined.append(False)
        return self._slots[name]

    def pin(self, name: str, value: Array) -> int:
        """A slot that always has this value."""
        slot = self.slot(name)
        self._pinned.add(slot)
        self.set(slot, value)
        return slot

    def _initial(self, name: str) -> Array:
        return (self._undefined & 1).astype(np.bool_) if register_file(name) in ("P", "UP") else self._undefined

    def reset(self, exists: Flags) -> None:
        """Forget everything that was written; the lanes of `exists` will count."""
        self._absent = ~exists
        self._origins.clear()
        for name, slot in self._slots.items():
            if slot not in self._pinned:
                self.values[slot] = self._initial(name)
                self.defined[slot] = False

    def set(self, slot: int, value: Array) -> None:
        """Give all lanes a value."""
        self.values[slot] = value
        self.defined[slot] = True

    def write(self, slot: int, value: Array, lanes: Lanes, known: Known = True) -> None:
        """Give `lanes` a value, which is as good as never written where it is not `known`; the other lanes keep theirs."""
        if lanes.full:
            self.values[slot] = value
            self.defined[slot] = known if known is True else self._simplified(known)
            return
        old = self.values[slot]
        self.values[slot] = old ^ ((old ^ value) & (lanes.flags if value.dtype == np.bool_ else lanes.words))
        defined = self.defined[slot]
        if defined is not True or known is not True:
            self.defined[slot] = self._simplified(np.where(lanes.flags, known, defined))

    def _simplified(self, known: Known) -> Known:
        return True if np.all(known | self._absent) else known

    def known(self, slots: tuple[int, ...]) -> Known:
        """Where all of these were written."""
        known: Known = True
        for slot in slots:
            known = known & self.defined[slot]
        return known

    def blame(self, slot: int, sources: tuple[int, ...], reader: str) -> None:
        """Remember which source, read by the instruction `reader`, made the result in `slot` as good as never written."""
        source = next((source for source in sources if self.defined[source] is not True), None)
        if source is not None:
            story = f"it comes from {self.names[source]}, never written where `{reader}` reads it"
            self._origins[slot] = self._origins.get(source, story)

    def check(self, slot: int, lanes: Lanes) -> None:
        """Raise SuspicionError if one of the lanes has never written what it now uses."""
        if self.defined[slot] is True or not self.strict:
            return
        missing = lanes.where(np.logical_not(self.defined[slot]))
        if missing.count:
            name = self.names[slot]
            unknown = "its value is not known to the emulator" if name.startswith(("c[", "SR")) else "it was never written"
            raise SuspicionError(f"{name} is used, but {self._origins.get(slot, unknown)}", int(missing.numbers[0]))


_ZERO: dict[str, Array] = {
    "RZ": np.zeros((1, 1), np.uint32),
    "URZ": np.zeros((1, 1), np.uint32),
    "PT": np.ones((1, 1), np.bool_),
    "UPT": np.ones((1, 1), np.bool_),
}
