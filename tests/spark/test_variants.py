"""Variants, intervals and bitmaps of Flink SQL in Spark: shown as Spark types if available, exported, written back."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql import types as t

import statetool
from statetool.columns.types import VARIANT_STRUCT
from statetool.spark.write.export import export_table
from statetool.tables.request import ScanRequest

needs_variants = pytest.mark.skipif(not hasattr(t, "VariantType"), reason="VARIANT is a type of Spark 4.0 and later")
#: Result of Flink 2.3's PARSE_JSON for the text.
TEXT = '{"a":1,"b":[true,null,1.5,"x"]}'
WRITTEN = {
    "value": bytes.fromhex("020200010002130c010304000102080a040020010f0000000578"),
    "metadata": bytes.fromhex("01020001026162"),
}
TYPE = "ROW<v VARIANT, vs ARRAY<VARIANT>, span INTERVAL DAY TO SECOND(3), months INTERVAL YEAR TO MONTH, bits BITMAP>"
STRUCT = pa.struct(
    {
        "v": VARIANT_STRUCT,
        "vs": pa.list_(VARIANT_STRUCT),
        "span": pa.duration("ms"),
        "months": pa.int32(),
        "bits": pa.list_(pa.int32()),
    }
)
ROWS: list[dict[str, Any]] = [
    {"v": WRITTEN, "vs": [WRITTEN, None], "span": dt.timedelta(days=-1, milliseconds=5), "months": -14, "bits": [1, 9]},
    {"v": None, "vs": None, "span": None, "months": None, "bits": None},
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = pa.table({"key": pa.array([1, 2], pa.int64()), "s": pa.array(ROWS, STRUCT)})
    target = str(tmp_path_factory.mktemp("variants") / "sp")
    bootstrap = statetool.bootstrap_keyed_state(table, states={"s": statetool.value(TYPE)})
    statetool.SavepointWriter.new().with_operator("o", bootstrap).write(target, flink_version="2.3")
    return target


def test_arrow_says_which_structs_are_variants(path: str) -> None:
    kind = statetool.load(path)["o"].to_arrow().schema.field("s").type
    for field in (kind.field("f0"), kind.field("f1").type.value_field):
        assert field.type.equals(VARIANT_STRUCT, check_metadata=True)
    rows = {r["key"]: r["s"] for r in statetool.load(path)["o"].to_arrow().to_pylist()}
    names = ("f0", "f1", "f2", "f3", "f4", "_kind")
    assert rows == {k: dict(zip(names, (*r.values(), "+I"), strict=True)) for k, r in zip((1, 2), ROWS, strict=True)}


@needs_variants
def test_spark_shows_its_own_types(path: str, spark: Any) -> None:
    frame = statetool.load(path, spark=spark)["o"].keyed_state()
    assert frame.schema["s"].dataType.simpleString() == (
        "struct<f0:variant,f1:array<variant>,f2:interval day to second,f3:int,f4:array<int>,_kind:string>"
    )
    first = frame.filter("key = 1").collect()[0].s
    assert (first.f0.toJson(), [v and v.toJson() for v in first.f1]) == (TEXT, [TEXT, None])
    assert (first.f2, first.f3, first.f4) == (ROWS[0]["span"], -14, [1, 9])
    everything = statetool.load(path, spark=spark)["o"].keyed_state()
    rows = everything.selectExpr("key", "variant_get(s.f0, '$.b[3]', 'string') AS x").orderBy("key").collect()
    assert [r.x for r in rows] == ["x", None]


@needs_variants
def test_variants_are_written_back_from_spark(path: str, spark: Any, tmp_path: Path) -> None:
    sp = statetool.load(path, spark=spark)
    changed = (
        sp["o"]
        .keyed_state()
        .selectExpr("key", "named_struct('f0', parse_json('[1]'), 'f1', s.f1, 'f2', s.f2, 'f3', s.f3, 'f4', s.f4) AS s")
    )
    bootstrap = statetool.bootstrap_keyed_state(changed, states=["s"], like=sp["o"])
    statetool.SavepointWriter.from_existing(sp).with_operator("o", bootstrap).write(str(tmp_path / "sp"))
    rows = {r["key"]: r["s"] for r in statetool.load(str(tmp_path / "sp"))["o"].to_arrow().to_pylist()}
    written = {"value": bytes.fromhex("030100020c01"), "metadata": bytes.fromhex("010000")}
    assert [rows[k]["f0"] for k in (1, 2)] == [written, written]
    assert (rows[1]["f1"], rows[1]["f2"], rows[1]["f4"]) == ([WRITTEN, None], ROWS[0]["span"], [1, 9])
    # An undeclared column is a variant as well.
    new = statetool.bootstrap_keyed_state(sp["o"].keyed_state().filter("key = 1").selectExpr("key", "s.f0 AS v"))
    statetool.SavepointWriter.new().with_operator("new", new).write(str(tmp_path / "new"), flink_version="2.1")
    again = statetool.load(str(tmp_path / "new"))["new"].to_arrow().to_pylist()
    assert {r["key"]: r["v"] for r in again} == {1: WRITTEN}


@pytest.mark.full
@needs_variants
def test_exports(path: str, spark: Any, tmp_path: Path) -> None:
    """JSON lines contain the variant's JSON, Parquet the variant, Avro its two binaries."""
    operator = statetool.load(path, spark=spark)["o"]
    jsonl: dict[int, Any] = {}
    for style in ("jsonl", "parquet", "avro"):
        assert export_table(operator, ScanRequest(), str(tmp_path / style), style=style) == 2
    for file in (tmp_path / "jsonl").glob("*.json"):
        jsonl |= {r["key"]: r["s"] for r in map(json.loads, file.read_text().splitlines())}
    assert (jsonl[1]["f0"], jsonl[1]["f1"], jsonl[2]) == (json.loads(TEXT), [json.loads(TEXT), None], {"_kind": "+I"})
    parquet = {r.key: r.s for r in spark.read.parquet(str(tmp_path / "parquet")).collect()}
    assert (parquet[1].f0.toJson(), parquet[1].f2, parquet[2].f0) == (TEXT, ROWS[0]["span"], None)
    avro: dict[int, Any] = {}
    for file in (tmp_path / "avro").glob("*.avro"):
        with file.open("rb") as raw:
            rows: Any = fastavro.reader(raw)
            avro |= {r["key"]: r["s"] for r in rows}
    assert (avro[1]["f0"], avro[1]["f1"], avro[1]["f2"]) == (WRITTEN, [WRITTEN, None], -86_399_995_000)
    assert avro[2]["f0"] is None
