"""What each instruction means: the registers it reads and writes, the memory it touches, how control goes on."""

from sassir.isa.description import CONTROL, SPACES, Description
from sassir.isa.effects import is_ordered, reads_clock
from sassir.isa.roles import Access, Roles, alignment, roles
from sassir.isa.table import DESCRIPTIONS, describe

__all__ = [
    "CONTROL",
    "DESCRIPTIONS",
    "SPACES",
    "Access",
    "Description",
    "Roles",
    "alignment",
    "describe",
    "is_ordered",
    "reads_clock",
    "roles",
]
