"""Encoding tables: machine words to instructions and back, per architecture."""

from sassir.encoders.library import ARCHITECTURES, table
from sassir.encoders.table import Table

__all__ = ["ARCHITECTURES", "Table", "table"]
