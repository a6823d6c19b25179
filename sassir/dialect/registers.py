"""Register types: `!sass.r<R4>` is register R4, `!sass.r` a register that is not chosen yet.

A value is one 32-bit register of one thread (R), or of the warp (UR); predicates (P, UP) hold one bit. B holds the
threads that wait for reconvergence. Wider operands are several values. The zero registers RZ, URZ, PT and UPT are no
types: they stay in the operand text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar, Self

from xdsl.backend.register_type import RegisterType
from xdsl.dialects.builtin import IntAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_attr_definition

from sassir.dialect import internals


class SassRegister(RegisterType, metaclass=internals.Concrete):
    """One register of a file. Instances come from `register`, `of` and `free`, which share them: building one costs 8 µs."""

    FILE: ClassVar[str]
    COUNT: ClassVar[int]
    FIRST: ClassVar[int]
    """The number of register 0 of the file, in `REGISTERS`."""

    @property
    def number(self) -> int | None:
        """The position in `REGISTERS`; None for a register that is not chosen, or beyond the real file."""
        index = self.index
        return self.FIRST + index.data if type(index) is IntAttr and index.data >= 0 else None

    @classmethod
    def index_by_name(cls) -> dict[str, int]:
        return {f"{cls.FILE}{i}": i for i in range(cls.COUNT)}

    @classmethod
    def infinite_register_prefix(cls) -> str:
        if not hasattr(cls, "FILE"):
            raise NotImplementedError  # RegisterType probes this class too, which has no file
        return f"v{cls.FILE}"

    @classmethod
    @cache
    def of(cls, index: int) -> Self:
        """The register with this number."""
        return cls.from_index(index)

    @classmethod
    @cache
    def free(cls) -> Self:
        """The type of a value that has no register yet."""
        return cls.unallocated()


@irdl_attr_definition
class R(SassRegister):
    """A general register of a thread."""

    name = "sass.r"
    FILE: ClassVar = "R"
    COUNT: ClassVar = 255


@irdl_attr_definition
class UR(SassRegister):
    """A uniform register, one for the whole warp; sm_75 to sm_90 have the first 63."""

    name = "sass.ur"
    FILE: ClassVar = "UR"
    COUNT: ClassVar = 255


@irdl_attr_definition
class P(SassRegister):
    """A predicate of a thread."""

    name = "sass.p"
    FILE: ClassVar = "P"
    COUNT: ClassVar = 7


@irdl_attr_definition
class UP(SassRegister):
    """A uniform predicate."""

    name = "sass.up"
    FILE: ClassVar = "UP"
    COUNT: ClassVar = 7


@irdl_attr_definition
class B(SassRegister):
    """A convergence barrier: the set of threads that BSYNC waits for."""

    name = "sass.b"
    FILE: ClassVar = "B"
    COUNT: ClassVar = 16


number_of: Callable[[SSAValue], int | None] = internals.of_type("number")
"""The number of the register of a value of a kernel; None for one that is not chosen."""
FILES: dict[str, type[SassRegister]] = {cls.FILE: cls for cls in (R, UR, P, UP, B)}


file_of: Callable[[SSAValue], str] = internals.of_type("FILE")
"""The register file of a value of a kernel; quicker than to ask for the class of its type, which is abstract."""


@cache
def register(name: str) -> SassRegister:
    """The type named `R4` (register 4), `vR4` (register 4 of an endless file) or `R` (not chosen yet).

    Raises ValueError for a name that is none of these.
    """
    if name in FILES:
        return FILES[name].free()
    file = FILES.get(name.lstrip("v").rstrip("0123456789"))
    if file is None:
        raise ValueError(f"{name} is not a register; expected one like R4, UR4, P0, UP0 or B0")
    return file.from_name(name)


REGISTERS: tuple[SassRegister, ...] = tuple(file.of(i) for file in FILES.values() for i in range(file.COUNT))
"""Every register; its position is its number, and its bit in a set of registers."""
NUMBER: dict[str, int] = {r.register_name: i for i, r in enumerate(REGISTERS)}
"""The number of a register by its name."""
REGISTER_NAMES = tuple(NUMBER)
"""The names, by number."""
for _file in FILES.values():
    _file.FIRST = NUMBER[f"{_file.FILE}0"]
