"""Tables as DataFrames.

On PySpark 4 a table is read by the data source ``flink-state``, so that filters on ``key`` prune; on 3.5 by ``mapInArrow`` over
one row a split. Planning runs on the driver, :func:`statetool.arrow.read.read_split` in tasks.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from statetool.arrow.scan import TableScan, scan_table
from statetool.plan.inventory import Inventory
from statetool.plan.operator import OperatorInventory
from statetool.spark.guard import read_checked
from statetool.spark.schema import spark_schema
from statetool.spark.session import has_data_sources, register
from statetool.spark.uses import new_frame
from statetool.types.declared import to_json
from statetool.types.options import ReadOptions

_READ_OPTIONS = tuple(ReadOptions.__dataclass_fields__)


def table_frame(spark: Any, inventory: Inventory, operator: OperatorInventory, table: str, **arguments: Any) -> Any:
    """Return a table of an operator as a DataFrame."""
    given = {k: v for k, v in arguments.items() if v is not None}
    reads = {k: given.pop(k) for k in _READ_OPTIONS if k in given}
    if reads.get("ttl") == "hide_expired":
        # Said once, so that every evaluation of the frame gives the same rows.
        reads.setdefault("now_ms", int(time.time() * 1000))
    # Planned here as well, so that mistakes show before Spark is involved.
    scan = scan_table(operator, table, options=ReadOptions(**reads), **given)
    if "keys" in given or inventory.key_types or not has_data_sources():
        return scan_frame(spark, scan)
    register(spark)
    reader = spark.read.format("flink-state").option("operatorId", operator.state.operator_id).option("table", table)
    for name, value in {**reads, **given}.items():
        reader = reader.option(name, json.dumps(list(value)) if name == "states" else str(value))
    if inventory.given_uids:
        reader = reader.option("uids", json.dumps(list(inventory.given_uids)))
    if inventory.rebase:
        reader = reader.option("rebase", json.dumps(dict(inventory.rebase)))
    if inventory.types.classes:
        reader = reader.option("declarations", json.dumps([to_json(c) for c in inventory.types.classes]))
    if inventory.types.python:
        named = {state: str(declared) for state, declared in inventory.types.python}
        reader = reader.option("python", json.dumps(named)).option("unsafePickle", str(inventory.types.unsafe_pickle))
    reader = reader.option("kryo", str(inventory.types.kryo))
    if "key" not in scan.schema.names or pa.types.is_null(scan.schema.field("key").type) or reads.get("on_error"):
        return reader.load(inventory.metadata_file)
    frame = reader.option("queries", new_frame()).load(inventory.metadata_file)
    return frame.filter(frame["key"].isNotNull())


def scan_frame(spark: Any, scan: TableScan) -> Any:
    """Return a planned scan as a DataFrame, without the data source: one partition a split."""
    schema = spark_schema(scan.schema)
    splits = scan.splits
    if not splits:
        return spark.createDataFrame([], schema)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_checked(splits[number])

    return spark.range(0, len(splits), 1, len(splits)).mapInArrow(read, schema)


def metadata_frame(spark: Any, table: pa.Table) -> Any:
    """Return a metadata table as a DataFrame."""
    return spark.createDataFrame([tuple(r.values()) for r in table.to_pylist()], spark_schema(table.schema))


def register_views(spark: Any, prefix: str, tables: Sequence[tuple[str, str, Any]]) -> list[str]:
    """Make a temporary view of each ``(operator, table, Operator)`` and return their names."""
    wanted = [
        re.sub(r"\W", "_", f"{prefix}_{operator}_{table}", flags=re.ASCII).lower() for operator, table, _ in tables
    ]
    taken = set(wanted)
    names: list[str] = []
    for plain in wanted:
        name, n = plain, 1
        while name in names or (name != plain and name in taken):
            n += 1
            name = f"{plain}_{n}"
        names.append(name)
    for name, (_, table, operator) in zip(names, tables, strict=True):
        operator.table(table).createOrReplaceTempView(name)
    return names
