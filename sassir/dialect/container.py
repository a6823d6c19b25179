"""The file that the code came from, carried by the module and printed behind it as an MLIR dialect resource.

The module's attribute holds only the key; the resource holds the file, compressed with zstd. Keys are made from the
content, so that equal files share one entry.
"""

from __future__ import annotations

import hashlib

import zstandard
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from sassir.errors import ContainerError

_ALIGNMENT = (1).to_bytes(4, "little")  # MLIR puts the alignment of a blob before its bytes


class ContainerStorage(OpAsmDialectInterface):
    """The containers of all modules of this process, by key."""

    def declare_resource(self, key: str) -> str:
        self._blob_storage.setdefault(key, "")
        return key

    def store(self, data: bytes) -> str:
        """Keep a file and return its key."""
        key = f"cubin_{hashlib.sha256(data).hexdigest()[:16]}"
        if not self._blob_storage.get(key):
            self._blob_storage[key] = "0x" + (_ALIGNMENT + zstandard.compress(data)).hex()
        return key

    def load(self, key: str) -> bytes:
        """The file stored under `key`. Raises ContainerError if its text lacks it or is damaged."""
        blob = self.lookup(key)
        if not blob:
            raise ContainerError(f"the module names the container {key}, but the text does not carry it; give the cubin with --onto FILE")
        try:
            return zstandard.decompress(bytes.fromhex(blob[2:])[len(_ALIGNMENT) :])
        except (ValueError, zstandard.ZstdError) as error:
            raise ContainerError(f"the container {key} is damaged ({error}); give the cubin with --onto FILE") from error


CONTAINERS = ContainerStorage()


@irdl_attr_definition
class ContainerAttr(Data[str]):
    """`#sass.container<cubin_0123456789abcdef>`."""

    name = "sass.container"

    @classmethod
    def of(cls, data: bytes) -> ContainerAttr:
        """The attribute that carries a file."""
        return cls(CONTAINERS.store(data))

    @property
    def bytes(self) -> bytes:
        """The file. Raises ContainerError if it got lost."""
        return CONTAINERS.load(self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            key = CONTAINERS.declare_resource(parser.parse_identifier())
        parser.dialect_resources.add(("sass", key))
        return key

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_resource_handle("sass", self.data)
