"""How the tools end: one message for bad input, no traceback; warnings on a line each."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

from sassir.errors import SassirError, SassirWarning

BAD_INPUT = 1


def finish(action: Callable[[], int], *others: type[Exception]) -> int:
    """The exit status of `action`; for a SassirError, an error of the file system or one of `others` its message goes to standard
    error, and the status is 1."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", SassirWarning)
            warnings.showwarning = warn
            return action()
    except (SassirError, *others) as error:
        message = str(error)
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        sys.stderr.close()
        return 0
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    print(f"error: {message}", file=sys.stderr)
    return BAD_INPUT


def warn(message: Warning | str, *_: object) -> None:
    """A line on standard error."""
    print(f"warning: {message}", file=sys.stderr)
