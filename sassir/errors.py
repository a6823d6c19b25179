"""The errors a user can cause. Each layer has one class; the tools print it without a traceback and exit with status 1."""

from __future__ import annotations


class SassirError(Exception):
    """Bad input. The message says where (file and offset, or line and column), what is wrong, and what to do."""

    def at(self, where: str) -> SassirError:
        """The same error with a place put before its message; the class is kept."""
        return type(self)(f"{where}: {self}")


class SassirWarning(UserWarning):
    """What a user should know of a result that was made all the same."""


class ContainerError(SassirError):
    """A cubin, fatbin or host binary that cannot be read or written."""


class EncodingError(SassirError):
    """An instruction that has no machine word on its architecture."""


class ListingError(SassirError):
    """SASS text that cannot be read, or cannot be turned into words without guessing."""


class TranslationError(SassirError):
    """Instructions that cannot become SSA, or SSA that cannot become instructions."""


class LaunchError(SassirError):
    """A kernel that cannot be launched, or that fails on the GPU."""


class SemanticsError(SassirError):
    """An instruction whose meaning is not modelled, with its modifiers and operands as given."""


class EmulationError(SassirError):
    """A kernel that does something wrong while it is emulated, or that the emulator cannot run."""


class VerificationError(SassirError):
    """A certificate that cannot be read, or that is of another cubin."""


class SchedulingError(SassirError):
    """An instruction that cannot be scheduled: its registers or its latencies are not known, or no control code is enough."""
