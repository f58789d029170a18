"""Comparison of savepoints of SQL jobs and of new sources with the content read by Flink's classes (``README-sql.md``).

Used by :mod:`tests.corpus_check` for cases whose ``expected.json`` names operators by id. Every entry of keyed state with its key group,
timers, operator state by subtask and coordinator state are compared. A value that the corpus could not print (a Java class with ``@`` and a
hash) only has to decode. ``same_content_as`` names a case with the same rows, but other times of last access.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import statetool
from statetool.columns.values import StateLayout
from statetool.errors import StatetoolError
from statetool.formats.metadata.handles import ByteStreamHandle
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer
from statetool.serializers.runtime import TtlSerializer
from statetool.serializers.sql.external import ExternalSerializer
from statetool.serializers.sql.rowdata import ArrayDataSerializer, MapDataSerializer, RowDataSerializer
from statetool.types import DateType, DecimalType, ListType, MapType, Scalar, StructType, TimestampType, TtlType
from statetool.types.options import ShowingOptions
from tests.support.expected.scalars import json_text
from tests.support.expected.sql import date_text, decimal_json, row_json, slot_json, time_text, timestamp_json
from tests.support.expected.values import to_json
from tests.support.values.plain import plain, row_value, rows_with_numbers

OPTIONS: ShowingOptions = {"nanos": "companion", "decimals": "string", "ttl": "raw"}
_UNITS: Final = {"ms": 1_000_000, "us": 1_000, "ns": 1}
_UNPRINTED: Final = re.compile(r"[\w$]+(\.[\w$]+)+@[0-9a-f]+")
_ISO: Final = re.compile(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z?")


class SqlChecker:
    """Comparison of one case; ``problems`` has the differences, ``rows`` the number of rows compared."""

    def __init__(self, folder: Path, savepoint: statetool.Savepoint, expected: dict[str, Any], spark: Any) -> None:
        self.savepoint = savepoint
        self.spark = spark
        self.rows = 0
        self.problems: list[str] = []
        same = expected.get("same_content_as")
        self.times = same is None
        self.operators = expected["operators"]
        if same is not None:
            other = json.loads((folder.parent / same / "expected.json").read_text())
            self.operators = {**other["operators"], **{k: v for k, v in expected["operators"].items() if len(v) > 2}}

    def run(self) -> None:
        """Compare all operators."""
        by_id = {op.operator_id: op for op in self.savepoint.operators.values()}
        for operator_id, wanted in self.operators.items():
            op = by_id.get(operator_id)
            stateful = wanted.get("keyed_state") or wanted.get("operator_state") or wanted.get("coordinator_state")
            if op is None:
                if stateful:
                    self.problems.append(f"{wanted['name']}: operator is missing")
                continue
            try:
                self.operator(op, wanted)
            except StatetoolError as error:
                self.problems.append(f"{wanted['name']}: {error}")

    def operator(self, op: statetool.Operator, wanted: dict[str, Any]) -> None:
        if op.max_parallelism != wanted["max_parallelism"] or op.parallelism != wanted["parallelism"]:
            self.problems.append(f"{op.name}: parallelism {op.parallelism} of {op.max_parallelism}")
        keyed = wanted.get("keyed_state") or {"states": {}}
        metas = {name: (h.key, meta) for name, (h, meta) in op._operator.keyed_states.items()}
        names = {n for n, (_, m) in metas.items() if m.kind != "timers"}
        for name, state in keyed["states"].items():
            if name in names:
                self.state(op, name, *metas[name], state)
            elif state["entries"]:
                self.problems.append(f"{op.name}.{name}: state is missing")
        if names - keyed["states"].keys():
            self.problems.append(f"{op.name}: unexpected states {sorted(names - keyed['states'].keys())}")
        self.one_row_a_key(op, metas, keyed["states"])
        self.timers(op, metas, keyed.get("timers") or {})
        for name, state in (wanted.get("operator_state") or {}).items():
            self.operator_state(op, name, state)
        self.coordinator(op, wanted.get("coordinator_state"))

    def read(self, op: statetool.Operator, table: str, **arguments: Any) -> list[dict[str, Any]]:
        if self.spark is None:
            read_table: pa.Table = op.to_arrow(table, **OPTIONS, **arguments)
        elif table == "keyed_state":
            read_table = op.keyed_state(**OPTIONS, **arguments).toArrow()
        elif table == "timers":
            read_table = op.timers(**OPTIONS, **arguments).toArrow()
        else:
            read_table = op.state(table, **OPTIONS, **arguments).toArrow()
        return rows_with_numbers(read_table)

    # ---- keyed --------------------------------------------------------------------------------

    def state(
        self, op: statetool.Operator, name: str, key: Serializer, meta: StateMetaInfo, wanted: dict[str, Any]
    ) -> None:
        what = f"{op.name}.{name}"
        if meta.kind.upper() != wanted["kind"]:
            self.problems.append(f"{what}: kind {meta.kind}, expected {wanted['kind']}")
        shape = StateLayout(meta)
        heads: dict[str, dict[str, Any]] = {}
        items: dict[str, list[Any]] = {}
        for row in self.read(op, name, key_group=True):
            head = self.head(row, key, meta.namespace)
            text = json_text(head)
            heads[text] = head
            value = column_json(row, "value", shape.element)
            if shape.kind == "map":
                assert shape.user_key is not None
                value = [column_json(row, "map_key", shape.user_key), value]
            items.setdefault(text, []).append(value)
        actual = []
        for text, values in items.items():
            if shape.kind not in ("list", "map") and len(values) != 1:
                self.problems.append(f"{what}: {len(values)} rows for {text}")
            actual.append({**heads[text], "value": values if shape.kind in ("list", "map") else values[0]})
        self.compare(what, actual, wanted["entries"], is_map=shape.kind == "map")

    def one_row_a_key(
        self, op: statetool.Operator, metas: dict[str, tuple[Serializer, StateMetaInfo]], wanted: dict[str, Any]
    ) -> None:
        void = [n for n in wanted if n in metas and is_void(metas[n][1])]
        if not void:
            return
        rows = self.read(op, "keyed_state", key_group=True)
        for name in void:
            key, meta = metas[name]
            shape = StateLayout(meta)
            actual = []
            for row in rows:
                if row[name] is not None:
                    head = self.head(row, key, None)
                    actual.append({**head, "value": state_json(row, name, shape)})
            self.compare(f"{op.name}.{name} (keyed_state)", actual, wanted[name]["entries"], is_map=shape.kind == "map")

    def head(self, row: dict[str, Any], key: Serializer, namespace: Serializer | None) -> dict[str, Any]:
        head = {"key_group": row["key_group"], "key": column_json(row, "key", key)}
        if namespace is not None and "namespace" in row:
            head["namespace"] = column_json(row, "namespace", namespace)
        return head

    def timers(
        self, op: statetool.Operator, metas: dict[str, tuple[Serializer, StateMetaInfo]], wanted: dict[str, Any]
    ) -> None:
        expected = [
            {"service": service, "namespace": None, **timer} for service, rows in wanted.items() for timer in rows
        ]
        timers = [(k, m) for k, m in metas.values() if m.kind == "timers"]
        if not timers:
            if expected:
                self.problems.append(f"{op.name}: timers are missing")
            return
        key, meta = timers[0]
        namespace = meta.value.children()[1][1]
        actual = []
        for row in self.read(op, "timers", key_group=True):
            head = {"namespace": None, **self.head(row, key, namespace), "timestamp": row["timestamp"]}
            actual.append({**head, "service": f"_timer_state/{row['domain']}_{row['service']}"})
        texts = [sorted(json_text(dict(sorted(r.items()))) for r in rows) for rows in (actual, expected)]
        self.rows += len(expected)
        if texts[0] != texts[1]:
            self.problems.append(f"{op.name}: timers {texts[0][:1]}, expected {texts[1][:1]}")

    def compare(self, what: str, actual: list[Any], expected: list[Any], *, is_map: bool) -> None:
        self.rows += len(expected)
        by_head = [{head_text(r): r for r in rows} for rows in (actual, expected)]
        if by_head[0].keys() != by_head[1].keys() or any(
            len(a) != len(b) for a, b in zip(by_head, (actual, expected), strict=True)
        ):
            extra, missing = by_head[0].keys() - by_head[1].keys(), by_head[1].keys() - by_head[0].keys()
            self.problems.append(
                f"{what}: {len(extra)} unexpected {sorted(extra)[:1]}, {len(missing)} missing {sorted(missing)[:1]}"
            )
            return
        for head, row in by_head[1].items():
            value, other = by_head[0][head]["value"], row["value"]
            if is_map:
                value, other = (sorted(v, key=lambda pair: json_text(pair[0])) for v in (value, other))
            if not self.same(value, other):
                self.problems.append(f"{what}: {value} for {head}, expected {other}")
                return

    def same(self, actual: Any, expected: Any) -> bool:
        """Compare exactly, except values that the corpus could not print."""
        if isinstance(expected, str) and _UNPRINTED.fullmatch(expected):
            return True
        if isinstance(expected, list):
            return isinstance(actual, list) and len(actual) == len(expected) and all(map(self.same, actual, expected))
        if isinstance(expected, dict):
            if not isinstance(actual, dict) or actual.keys() != expected.keys():
                return False
            return all(self.same(actual[k], expected[k]) for k in expected if self.times or k != "last_access")
        if isinstance(actual, float) and isinstance(expected, int | float):
            return actual == expected and math.copysign(1, actual) == math.copysign(1, expected)
        if isinstance(expected, str) and _ISO.fullmatch(expected) and isinstance(actual, str):
            return iso(actual) == iso(expected)
        return bool(type(actual) is type(expected) and actual == expected)

    # ---- operator and coordinator state -------------------------------------------------------

    def operator_state(self, op: statetool.Operator, name: str, wanted: dict[str, Any]) -> None:
        states = op._operator.operator_states
        expected = {int(k): v for k, v in wanted["by_subtask"].items()}
        if name not in states:
            if any(expected.values()):
                self.problems.append(f"{op.name}.{name}: operator state is missing")
            return
        actual: dict[int, list[Any]] = {k: [] for k in expected}
        meta = states[name]
        for row in self.read(op, name, subtask=True):
            value = column_json(row, "value", meta.value)
            if meta.kind == "broadcast":
                value = [column_json(row, "key", meta.serializers["KEY_SERIALIZER"]), value]
            actual.setdefault(row["subtask"], []).append(value)
        self.rows += sum(map(len, expected.values()))
        for subtask, values in expected.items():
            texts = [json_text(hex_text(v)) for v in values]
            if [json_text(hex_text(v)) for v in actual[subtask]] != texts:
                self.problems.append(f"{op.name}.{name}: subtask {subtask} has {actual[subtask]}, expected {values}")

    def coordinator(self, op: statetool.Operator, wanted: dict[str, Any] | None) -> None:
        state = op._operator.state.coordinator
        raw = state.data.hex() if isinstance(state, ByteStreamHandle) else None
        if wanted is not None and raw != wanted["bytes"]:
            self.problems.append(f"{op.name}: coordinator state {raw}, expected {wanted['bytes']}")


def is_void(meta: StateMetaInfo) -> bool:
    """Return True if a state is part of the table ``keyed_state``: its namespace is ``VoidNamespace``."""
    return meta.kind != "timers" and meta.namespace is not None and meta.namespace.logical == Scalar("null")


def head_text(row: dict[str, Any]) -> str:
    """Return the text that identifies an entry."""
    return json_text({k: row[k] for k in ("key_group", "key", "namespace") if row.get(k) is not None})


def iso(text: str) -> tuple[str, str]:
    """Normalize an ISO timestamp: omitted seconds, trailing zeros."""
    zone = "Z" if text.endswith("Z") else ""
    body, _, fraction = text.removesuffix("Z").partition(".")
    return (body if body.count(":") == 2 else body + ":00") + zone, fraction.rstrip("0")


def hex_text(value: Any) -> Any:
    """Return bytes as hex, as written for operator state."""
    if isinstance(value, dict):
        return value.get("bytes", value.get("$hex", value))
    return value


def state_json(row: dict[str, Any], name: str, shape: StateLayout) -> Any:
    """Return the complete value of a state in a row of ``keyed_state``."""
    if shape.kind == "list" and not shape.framed_bytes:
        return [plain_json(ttl_plain(v, shape.element), shape.element) for v in row[name]]
    if shape.kind == "map" and shape.user_key is not None:
        user_key = shape.user_key
        return [
            [plain_json(plain(k, user_key.logical), user_key), plain_json(ttl_plain(v, shape.element), shape.element)]
            for k, v in row[name]
        ]
    return column_json(row, name, shape.element)


def column_json(row: dict[str, Any], column: str, serializer: Serializer) -> Any:
    """Return a column of a row in the corpus's notation."""
    if isinstance(serializer.logical, TtlType):
        return plain_json(ttl_plain(row[column], serializer), serializer)
    return plain_json(row_value(row, column, serializer.logical), serializer)


def ttl_plain(value: Any, serializer: Serializer) -> Any:
    """Return a value read with ``ttl='raw'`` as plain."""
    logical = serializer.logical
    if not isinstance(logical, TtlType):
        return plain(value, logical)
    return (
        None
        if value is None
        else (plain(value["last_access"], TimestampType("ms", zoned=True)), row_value(value, "value", logical.value))
    )


def plain_json(value: Any, serializer: Serializer) -> Any:
    """Return a plain value in the corpus's notation."""
    if value is None:
        return None
    parts = [s for _, s in serializer.children()]
    match serializer:
        case RowDataSerializer():
            kind = value[-1] if serializer.row_kind else "+I"
            form = serializer.format
            fields = [slot_json(v, f, "sql", plain_json) for v, f in zip(value, form.fields, strict=False)]
            return row_json(kind, [number(f) for f in fields], "sql")
        case ArrayDataSerializer() | MapDataSerializer():
            return slot_json(value, serializer.format, "sql", plain_json)
        case ExternalSerializer():
            return plain_json(value, serializer.internal)
        case TtlSerializer():
            return {"value": plain_json(value[1], parts[1]), "last_access": value[0]}
    match serializer.logical:
        case TimestampType(unit, zoned):
            return timestamp_json(value * _UNITS[unit], zoned, "sql")
        case DateType():
            return date_text(value)
        case Scalar("time"):
            return time_text(value)
        case DecimalType():
            return decimal_json(value, "sql")
        case ListType() if parts:
            return [plain_json(v, parts[0]) for v in value]
        case MapType() if parts:
            return [[plain_json(k, parts[0]), plain_json(v, parts[1])] for k, v in value]
        case StructType() if parts and len(parts) == len(value):
            return [plain_json(v, s) for v, s in zip(value, parts, strict=True)]
    return number(to_json(value, serializer.logical, serializer))


def number(value: Any) -> Any:
    """Return a float without a JSON number as its name."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value["$double"] if isinstance(value, dict) and "$double" in value else value
