"""Types of the state of Python jobs, for ``statetool.load(..., python={"count": pyflink.Types.LONG()})``."""

from __future__ import annotations

from statetool.types.python_types import PythonType, Types, parse_python_type

__all__ = ["PythonType", "Types", "parse_python_type"]
