"""Avro in the keyed state of jobs run by Flink 1.17 and 2.3, with the flink-avro of 1.14 (``serializers/avro/java/harness``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import statetool
from statetool.columns.text_schemas import avro_schema, ddl_lines
from tests.support.corpora.archives import unpack

COUNT = 40
VERSIONS = ("1.17.2", "2.3.0")
KINDS = ("hashmap-canonical", "hashmap-native", "rocksdb-canonical", "rocksdb-native")

LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
}
ORDER = {
    "type": "record", "name": "Order", "namespace": "statetool.job", "fields": [
        {"name": "id", "type": "long"}, {"name": "customer", "type": "string"}, {"name": "note", "type": ["null", "string"]},
        {"name": "lines", "type": {"type": "array", "items": LINE}}, {"name": "choice", "type": ["int", "string", "Line"]},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
    ],
}  # fmt: skip
KEY = {
    "type": "record", "name": "Key", "namespace": "statetool.job", "fields": [
        {"name": "number", "type": "int"}, {"name": "shop", "type": "string"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "extra", "type": ["null", "long"]}, {"name": "path", "type": {"type": "array", "items": "string"}},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def savepoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = Path(__file__).parents[1] / "serializers" / "avro" / "savepoints.tar.xz"
    return unpack(archive, tmp_path_factory.mktemp("avro"))


def _opened(savepoints: Path, version: str, kind: str) -> statetool.Savepoint:
    return statetool.load(str(savepoints / version / kind)).with_uids(["by-number", "by-record"])


def _line(n: int) -> dict[str, Any]:
    return {"sku": f"sku-{n}", "count": -n}


def _order(n: int) -> dict[str, Any]:
    """Return the result of ``AvroJob.order``."""
    return {
        "id": 1_000_000_007 * n,
        "customer": f"Zoë {n}",
        "note": f"note {n}" if n % 3 else None,
        "lines": [_line(n + i) for i in range(n % 4)],
        "choice": {
            "member0": n if n % 3 == 0 else None,
            "member1": f"text {n}" if n % 3 == 1 else None,
            "member2": _line(n) if n % 3 == 2 else None,
        },
        "tags": [(f"tag {n}", n / 4)] if n % 5 else [],
    }


def _key(n: int) -> dict[str, Any]:
    """Return the result of ``AvroJob.key``."""
    return {
        "number": n,
        "shop": f"shop é {n % 7}",
        "kind": "AB"[n % 2],
        "extra": 10_000_000_000 * n if n % 3 else None,
        "path": [f"p{n}", ""] if n % 4 else [],
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_lists_maps_and_times_to_live(savepoints: Path, version: str, kind: str) -> None:
    table = _opened(savepoints, version, kind)["by-number"].to_arrow()
    rows = {row["key"]: row for row in table.to_pylist()}
    assert sorted(rows) == list(range(COUNT))
    for n, row in rows.items():
        assert row == {
            "key": n,
            "value": _order(n),
            "timed": _order(n + 1),
            "list": [_order(n), _order(n + 2)],
            "map": row["map"],
        }
        assert sorted(row["map"]) == [("first", _order(n)), ("second", _order(n + 3))]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_keys(savepoints: Path, version: str, kind: str) -> None:
    operator = _opened(savepoints, version, kind)["by-record"]
    rows = operator.to_arrow().to_pylist()
    assert sorted(rows, key=lambda row: int(row["number"])) == [{"key": _key(n), "number": n} for n in range(COUNT)]
    timers = operator.to_arrow("timers").to_pylist()
    assert len(timers) == COUNT
    assert {t["key"]["number"] for t in timers} == set(range(COUNT))
    assert all(t["key"] == _key(t["key"]["number"]) for t in timers)


def test_schemas_of_what_is_read(savepoints: Path) -> None:
    schema = _opened(savepoints, "2.3.0", "rocksdb-native")["by-number"].to_arrow().schema
    order = (
        "STRUCT<id: BIGINT, customer: STRING, note: STRING, lines: ARRAY<STRUCT<sku: STRING, count: INT>>, "
        "choice: STRUCT<member0: INT, member1: STRING, member2: STRUCT<sku: STRING, count: INT>>, tags: MAP<STRING, DOUBLE>>"
    )
    assert f"value {order}" in " ".join(ddl_lines(schema)).replace("`", "")
    parsed = fastavro.parse_schema(avro_schema(schema, name="orders"))
    assert {f["name"] for f in parsed["fields"]} == set(schema.names)


def test_state_that_is_bootstrapped(savepoints: Path, tmp_path: Path) -> None:
    """Such savepoints were restored by Flink 1.17 and 2.3, with all values and keys (``AvroJob`` with a ``snapshot``)."""
    source = _opened(savepoints, "2.3.0", "hashmap-canonical")
    order = statetool.flink.avro(ORDER)
    orders = source["by-number"].to_arrow(states=["value", "list"])
    keys = source["by-record"].to_arrow(key_group=True)
    values = statetool.bootstrap_keyed_state(
        orders,
        key="key",
        states={"value": statetool.value(order), "list": statetool.list_of(order)},
    )
    records = statetool.bootstrap_keyed_state(
        keys.select(["key", "number"]),
        key_type=statetool.flink.avro(KEY),
        states={"number": statetool.value("BIGINT")},
        hashes={"org.apache.avro.generic.GenericRecord": "avro[1, 10]()"},
    )
    writer = statetool.SavepointWriter.new(max_parallelism=64)
    written = writer.with_operator("by-number", values).with_operator("by-record", records)
    written.write(str(tmp_path / "new"), flink_version="2.3")
    reopened = statetool.load(str(tmp_path / "new"))
    assert _by_key(reopened["by-number"].to_arrow()) == _by_key(orders)
    assert _by_key(reopened["by-record"].to_arrow(key_group=True)) == _by_key(keys)


def _by_key(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))
