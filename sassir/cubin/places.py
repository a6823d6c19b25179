"""Places: where the offsets of old code are in new code."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.code import Code, CodeSection
from sassir.errors import ContainerError


class Places:
    """The map from old to new code offsets of one section.

    An offset means one of two things. As an *instruction* (the EXIT at 0x120) it goes where that instruction went. As a *place*
    (a branch target, the start of a function) it goes to the seam between what stood before it and what stood behind it,
    however both were reordered; where the two were mixed, or where new instructions stand at the seam, only a label can tell.
    """

    def __init__(self, section: CodeSection, code: Code, where: str) -> None:
        """Raises ContainerError when the new code is not whole instructions or the maps point outside old or new code."""
        self.name = f"{where}: {section.name}"
        self.old_size, self.new_size = len(section.data), len(code.data)
        self.moved, self.labels = code.moved, code.labels
        if not code.data or self.new_size % INSTRUCTION_BYTES:
            raise ContainerError(f"{self.name}: {self.new_size} bytes of new code, expected a positive multiple of {INSTRUCTION_BYTES}")
        for old, new in (*self.moved.items(), *self.labels.items()):
            if old % INSTRUCTION_BYTES or new % INSTRUCTION_BYTES or not (0 <= old <= self.old_size and 0 <= new <= self.new_size):
                raise ContainerError(f"{self.name}: old offset {old:#x} and new offset {new:#x} are not both instructions of this code")
        if len(set(self.moved.values())) != len(self.moved):
            raise ContainerError(f"{self.name}: two old instructions are said to be at the same new offset")
        self.unmoved = self.old_size == self.new_size and all(old == new for old, new in (*self.moved.items(), *self.labels.items()))
        self._origins = {new: old for old, new in self.moved.items()}
        self._old = sorted(self.moved)
        new = [self.moved[old] for old in self._old]
        self._first_from = [*accumulate(reversed(new), min, initial=self.new_size)][::-1]
        self._end_before = [*accumulate((n + INSTRUCTION_BYTES for n in new), max, initial=0)]

    def instruction(self, offset: int) -> int | None:
        """Where the instruction at this old offset is now; None when it is gone."""
        return self.moved.get(offset)

    def origin(self, offset: int) -> int | None:
        """The old offset of the instruction that is at this new one; None when it is a new instruction."""
        return self._origins.get(offset)

    def nearest(self, offset: int) -> int:
        """The first new offset of what stood at or behind this old offset: enough for line tables and ends of functions."""
        if self.unmoved or offset in (0, self.old_size):
            return offset if self.unmoved or not offset else self.new_size
        return self.labels.get(offset, self._first_from[bisect_left(self._old, offset)])

    def left_of(self, offset: int, end: int) -> int | None:
        """Where the first instruction of these old offsets that is left is now: unlike `nearest`, wherever those behind it went."""
        first = bisect_left(self._old, offset)
        return self.moved[self._old[first]] if first < len(self._old) and self._old[first] < end else None

    def place(self, offset: int, what: str) -> int:
        """Where control that came to this old offset has to come now. Raises ContainerError, naming `what`, when that is not certain."""
        new = self.nearest(offset)
        if self.unmoved or offset in self.labels or offset in (0, self.old_size):
            return new
        if offset % INSTRUCTION_BYTES or offset > self.old_size:
            raise ContainerError(f"{self.name}: {what} refers to offset {offset:#x}, which is no instruction of this code")
        if self._end_before[bisect_left(self._old, offset)] != new:
            raise ContainerError(
                f"{self.name}: {what} refers to offset {offset:#x}, but instructions were added or moved across it; "
                "give its new offset as a label"
            )
        return new
