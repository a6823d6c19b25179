"""What a checker reports."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that is wrong, or suspicious, in a file."""

    rule: str
    """Stable name of the rule, lower case with dashes: `raw-too-early`, `symbol-outside-section`."""
    kernel: str
    """Name of the kernel, or of the section for a finding about the container."""
    offset: int | None
    """Byte offset of the instruction in its code section; None for a finding that is about no instruction."""
    message: str
    """What is wrong, what was found and what is needed, with the instructions as a user would write them."""
    evidence: str
    """Where the rule comes from: mined (n samples), measured (GPU, script), or a cited source."""
    error: bool = True
    """An error makes the result of the kernel undefined or the file invalid; otherwise it is a warning."""
