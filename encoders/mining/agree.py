"""Does sassir's text of an instruction say the same as nvdisasm's?

sassir writes more: the payload of a NaN, hidden fields, the descriptor that nvdisasm hides on sm_80 to sm_89; it writes
a target as a displacement, and separates all operands by commas. Nothing else may differ.
"""

from __future__ import annotations

import re

from sassir.asm.instruction import Instruction
from sassir.encoders.mining.text import split_guard, tokenize, without_payload

HIDES_DESCRIPTOR = frozenset({"sm_80", "sm_86", "sm_87", "sm_89"})

_DISPLACEMENT = re.compile(r"(?<= )\.([-+]0x[0-9a-f]+)")
_DESCRIPTOR = re.compile(r"desc\[\w+\]")


def agrees(instruction: Instruction, text: str, address: int, arch: str) -> bool:
    """`text` is nvdisasm's line for the word at `address`."""
    ours = without_payload(instruction._replace(extra=()).text)
    ours = _DISPLACEMENT.sub(lambda m: f"{address + int(m[1], 16):#x}", ours)
    if arch in HIDES_DESCRIPTOR:
        ours, text = _DESCRIPTOR.sub("", ours), _DESCRIPTOR.sub("", text)
    guard, body = split_guard(text)
    our_guard, our_body = split_guard(ours)
    return guard == our_guard and tokenize(body) == tokenize(our_body)
