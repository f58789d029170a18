"""Logical types written by Flink's classes, recorded from every minor release 1.13 to 2.3.

``logical_types.json.xz`` was written by ``python -m tests.support.flink.logical_types VERSION ...``, which runs ``LogicalTypes.java`` in a JVM
with the jars of each release. Output equal to that of the previous release is not repeated.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine

RECORDED: Final = HERE / "serializers" / "logical_types.json.xz"
_LEAVES: Final = (
    "CHAR(3)", "CHAR(2147483647) NOT NULL", "VARCHAR(7)", "STRING", "STRING NOT NULL", "BOOLEAN", "BINARY(2)", "VARBINARY(9)",
    "BYTES", "DECIMAL(5, 0)", "DECIMAL(18, 18)", "DECIMAL(19, 2)", "DECIMAL(38, 4) NOT NULL", "TINYINT", "SMALLINT", "INT",
    "INT NOT NULL", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIME(0)", "TIME(3)", "TIME(9)", "TIMESTAMP(0)", "TIMESTAMP(3)",
    "TIMESTAMP(9) NOT NULL", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)", "INTERVAL YEAR(2)", "INTERVAL YEAR(4)",
    "INTERVAL YEAR(3) TO MONTH", "INTERVAL MONTH", "INTERVAL DAY(2)", "INTERVAL DAY(3) TO HOUR", "INTERVAL DAY(3) TO MINUTE",
    "INTERVAL DAY(3) TO SECOND(9)", "INTERVAL HOUR", "INTERVAL HOUR TO MINUTE", "INTERVAL HOUR TO SECOND(2)",
    "INTERVAL MINUTE", "INTERVAL MINUTE TO SECOND(2)", "INTERVAL SECOND(5)", "VARIANT", "VARIANT NOT NULL", "BITMAP",
)  # fmt: skip
_WIDE: Final = ", ".join(f"f{i} {leaf}" for i, leaf in enumerate(_LEAVES) if leaf[:7] not in ("VARIANT", "BITMAP"))
#: Types with a text in Flink's grammar, in the spelling of :class:`statetool.serializers.sql.logical_types.SqlType`.
TYPES: Final = (
    *_LEAVES,
    *(f"ARRAY<{leaf}>" for leaf in _LEAVES),
    *(f"ARRAY<ARRAY<{leaf}>>" for leaf in _LEAVES),
    "NULL",
    "ARRAY<INT NOT NULL> NOT NULL",
    "ARRAY<ARRAY<ARRAY<STRING NOT NULL>>>",
    "ARRAY<MAP<STRING, INT>>",
    "ARRAY<MULTISET<STRING>>",
    "ARRAY<ROW<a INT, b STRING>>",
    "MAP<STRING, INT>",
    "MAP<INT NOT NULL, ARRAY<BIGINT>> NOT NULL",
    "MAP<ROW<x DATE>, MAP<STRING, ROW<y TIME(0)>>>",
    "MULTISET<STRING>",
    "MULTISET<ROW<a INT>>",
    "ROW<>",
    "ROW<a INT>",
    "ROW<`a b` INT NOT NULL 'an int, isn''t it', b STRING> NOT NULL",
    "ROW<a ROW<a ROW<a INT>>, b ARRAY<INT>, c MAP<STRING, DOUBLE>, d MULTISET<INT>>",
    "ARRAY<ROW<a ROW<a ROW<a INT>>, b ARRAY<INT>, c MAP<STRING, DOUBLE>, d MULTISET<INT>>>",
    f"ROW<{_WIDE}>",
    f"ARRAY<ROW<{_WIDE}>>",
    "ROW<v VARIANT, b BITMAP>",
    "ARRAY<ROW<v VARIANT, b BITMAP>>",
)

#: By type: ``type`` and, if state can store it, ``serializer`` and ``snapshot``.
Written = dict[str, dict[str, bytes]]


def ask(flink: FlinkMachine) -> Written:
    """Query a Flink release."""
    answer: dict[str, dict[str, str]] = flink.call("logical_types", types=TYPES)["types"]
    return {text: {k: bytes.fromhex(v) for k, v in parts.items()} for text, parts in answer.items()}


def recorded() -> dict[str, Written]:
    """Return, by release, the output that differs from that of the previous release."""
    raw: dict[str, dict[str, dict[str, str]]] = json.loads(lzma.decompress(RECORDED.read_bytes()))
    return {
        release: {text: {k: bytes.fromhex(v) for k, v in parts.items()} for text, parts in types.items()}
        for release, types in raw.items()
    }


def record(versions: list[str]) -> None:
    """Rewrite the recording."""
    before: Written = {}
    by_release: dict[str, dict[str, dict[str, str]]] = {}
    with tempfile.TemporaryDirectory() as work:
        for version in versions:
            flink = FlinkMachine(version, Path(work))
            written = ask(flink)
            flink.close()
            by_release[version] = {
                text: {k: v.hex() for k, v in parts.items()}
                for text, parts in written.items()
                if before.get(text) != parts
            }
            before = written
    RECORDED.write_bytes(lzma.compress(json.dumps(by_release).encode(), preset=9))


if __name__ == "__main__":
    record(sys.argv[1:])
