"""Savepoints of Flink's migration tests, 1.3 to 1.13: canonical and heap layout, to the last byte."""

from __future__ import annotations

from pathlib import Path

import statetool
from statetool.errors import UnknownSerializerError


def test_all_states_decode_but_for_classes_of_user_code(migration_savepoints: Path) -> None:
    """In the layout of the heap backend, a value of a class that only user code can read hides the start of the next one."""
    read = 0
    for path in sorted(migration_savepoints.rglob("_metadata")):
        savepoint = statetool.load(str(path))
        for operator in savepoint.operators.values():
            for table in operator.tables:
                try:
                    operator.to_arrow(table, nanos="companion", decimals="string")
                    read += 1
                except UnknownSerializerError as error:
                    assert "TestSerializerSnapshot" in error.message
    assert read >= 570
