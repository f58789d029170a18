"""Compiled plans of one aggregation, in the form of Flink's JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_SOURCE = "ROW<`shop` VARCHAR(2147483647), `city` VARCHAR(2147483647), `amount` BIGINT>"


def ref(index: int) -> dict[str, Any]:
    """Return a reference to an input column."""
    return {"kind": "INPUT_REF", "inputIndex": index, "type": "BIGINT"}


def literal(value: Any, type: str) -> dict[str, Any]:
    """Return a constant."""
    return {"kind": "LITERAL", "value": value, "type": type}


def call(name: str, *operands: Mapping[str, Any], type: str = "BIGINT") -> dict[str, Any]:
    """Return a call of a built-in function (``$+$1``)."""
    return {"kind": "CALL", "syntax": "BINARY", "internalName": name, "operands": list(operands), "type": type}


def aggregate(name: str, *arguments: int, distinct: bool = False) -> dict[str, Any]:
    """Return an aggregate call of input columns: 0 is the key, 1 ``amount``, others are the computed ones of a plan."""
    return {"internalName": f"${name}$1", "argList": list(arguments), "filterArg": -1, "distinct": distinct}


def aggregation_plan(
    calls: Sequence[Mapping[str, Any]], computed: Sequence[Mapping[str, Any]] = (), *, key: str = "shop"
) -> str:
    """Return the plan of a query that groups by one column of a table (shop, city, amount).

    Parameters
    ----------
    computed
        Expressions of the source's columns that follow key and amount in the aggregation's input.
    """
    columns = ["`" + key + "` VARCHAR(2147483647)", "`amount` BIGINT"]
    columns += [f"`$f{i + 2}` BIGINT" for i in range(len(computed))]
    before = f"ROW<{', '.join(columns)}>"
    nodes = [
        {"id": 1, "type": "stream-exec-table-source-scan_2", "outputType": _SOURCE},
        {"id": 2, "type": "stream-exec-calc_1", "projection": [ref(0 if key == "shop" else 1), ref(2), *computed], "outputType": before},
        {"id": 3, "type": "stream-exec-exchange_1", "outputType": before},
        {
            "id": 4,
            "type": "stream-exec-group-aggregate_1",
            "grouping": [0],
            "aggCalls": list(calls),
            "aggCallNeedRetractions": [False] * len(calls),
            "needRetraction": False,
            "outputType": "ROW<>",
        },
    ]  # fmt: skip
    return json.dumps({"nodes": nodes, "edges": [{"source": i, "target": i + 1} for i in (1, 2, 3)]})
