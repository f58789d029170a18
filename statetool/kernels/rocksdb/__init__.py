"""Kernels for RocksDB's table files."""

from __future__ import annotations

from typing import Final

#: The byte with which merge operators of the kind ``StringAppend`` join operands.
DELIMITER: Final = 0x2C
