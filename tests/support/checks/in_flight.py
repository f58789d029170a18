"""Comparison of the in-flight data of an unaligned checkpoint with the expected records.

No snapshot names the class of these records. The corpus gives their fields, so a POJO of them is tried with each choice of number types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

import statetool
from statetool.errors import StatetoolError
from statetool.types.declared import ClassDeclaration, class_of_fields
from tests.support.expected.scalars import json_text

_CLASS = "corpus.InFlight"


def wrong_records(metadata: Path, expected: dict[str, Any], spark: Any) -> tuple[int, list[str]]:
    """Return the number of records compared, and the differences."""
    wanted = [r for o in expected["operators"].values() for r in o.get("in_flight") or ()]
    if not wanted:
        return 0, []
    problem = ""
    for declared in _classes(wanted):
        try:
            records = _all_records(metadata, declared, None)
        except StatetoolError as error:
            problem = str(error)
            continue
        if spark is not None:
            records = _all_records(metadata, declared, spark)
        left, right = Counter(map(json_text, records)), Counter(map(json_text, wanted))
        if left == right:
            return len(wanted), []
        problem = f"{sum((left - right).values())} unexpected, {sum((right - left).values())} missing"
    return len(wanted), [f"in flight: {problem}"]


def _all_records(metadata: Path, declared: ClassDeclaration, spark: Any) -> list[dict[str, Any]]:
    savepoint = statetool.load(str(metadata), spark=spark, declarations=[declared])
    return [r for op in savepoint.operators.values() for r in _records(op)]


def _classes(rows: list[dict[str, Any]]) -> Iterator[ClassDeclaration]:
    names = sorted(rows[0])
    for types in product(*(_types([r[n] for r in rows]) for n in names)):
        yield class_of_fields(_CLASS, dict(zip(names, types, strict=True)))


def _types(values: list[Any]) -> tuple[str, ...]:
    first = next((v for v in values if v is not None), "")
    if isinstance(first, bool):
        return ("boolean",)
    if isinstance(first, int):
        return "int", "long", "short", "byte"
    return ("double", "float") if isinstance(first, float) else ("String",)


def _records(op: statetool.Operator) -> Iterator[dict[str, Any]]:
    channels = op.in_flight()
    rows = (channels if isinstance(channels, pa.Table) else channels.toArrow()).to_pylist()
    for side in sorted({r["side"] for r in rows}):
        table = op.in_flight(side=side, like=_CLASS)
        for row in (table if isinstance(table, pa.Table) else table.toArrow()).to_pylist():
            if row["element"] == "record":
                yield row["value"]


__all__ = ["wrong_records"]
