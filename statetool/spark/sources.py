"""The data sources ``flink-state`` and ``flink-state-metadata`` (PySpark 4).

Options of ``flink-state``: ``path``; ``operatorUid`` or ``operatorId``; ``table`` (``keyed_state`` by default, ``timers``, or a
state's name); ``states`` (JSON list or comma-separated; unselected states are skipped undecoded: Spark does not tell Python data
sources which columns a query needs); ``ttl``, ``ttl_ms``, ``now_ms``, ``nanos``, ``decimals``, ``on_error``; ``key_group``,
``subtask``; ``split_bytes``, ``memory_bytes``; ``uids``; ``rebase`` (JSON object). ``=``, ``<=>`` and ``IN`` on ``key`` read only
the key groups of those keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    In,
    InputPartition,
)
from pyspark.sql.types import StructType

from statetool.arrow.metadata import metadata_schema, metadata_table
from statetool.arrow.scan import Split, TableScan, read_split, scan_table
from statetool.errors import OptionError
from statetool.plan.inventory import Inventory
from statetool.spark.guard import checked
from statetool.spark.schema import spark_schema
from statetool.types.options import ReadOptions

_FLAGS: Final = ("key_group", "subtask")
_NUMBERS: Final = ("ttl_ms", "now_ms", "split_bytes", "memory_bytes")
_WORDS: Final = ("ttl", "nanos", "decimals", "on_error")
_METADATA: Final = {
    "operators": lambda o: [o.row()],
    "states": lambda o: list(o.states),
    "files": lambda o: o.file_rows(),
    "key_groups": lambda o: o.key_group_rows(),
}


class _Options:
    """Options of a read; Spark hands over their names in any case."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.given = {k.lower(): v for k, v in options.items()}

    def get(self, name: str) -> str | None:
        return self.given.get(name.lower())

    def names(self, name: str) -> list[str] | None:
        text = self.get(name)
        if text is None:
            return None
        if text.lstrip().startswith("["):
            return [str(v) for v in json.loads(text)]
        return [part.strip() for part in text.split(",") if part.strip()]

    def inventory(self) -> Inventory:
        path = self.get("path")
        if not path:
            raise OptionError("no path was given", hint='name the snapshot in .load("...")')
        moved: dict[str, str] = json.loads(self.get("rebase") or "{}")
        return Inventory(path, rebase=tuple(moved.items()), uids=tuple(self.names("uids") or ()))

    def arguments(self) -> dict[str, Any]:
        try:
            numbers = {n: int(v) for n in _NUMBERS if (v := self.get(n)) is not None}
        except ValueError as e:
            raise OptionError(f"not a number: {e}") from e
        words: dict[str, Any] = {n: v for n in _WORDS if (v := self.get(n)) is not None}
        reads: dict[str, Any] = {**words, **{n: numbers.pop(n) for n in ("ttl_ms", "now_ms") if n in numbers}}
        flags = {n: v.lower() == "true" for n in _FLAGS if (v := self.get(n)) is not None}
        return {"options": ReadOptions(**reads), "states": self.names("states"), **numbers, **flags}

    def scan(self, keys: Sequence[Any] | None = None) -> TableScan:
        inventory = self.inventory()
        name = self.get("operatorUid") or self.get("operatorId")
        if not name:
            raise OptionError(
                "neither operatorUid nor operatorId was given",
                hint=f"choose one of {', '.join(list(inventory.operators)[:10])}",
            )
        return scan_table(inventory.operator(name), self.get("table") or "keyed_state", keys=keys, **self.arguments())


class SplitPartition(InputPartition):
    """One split."""

    def __init__(self, split: Split) -> None:
        super().__init__(0)
        self.split = split


class FlinkStateSource(DataSource):
    """``spark.read.format("flink-state")``."""

    @classmethod
    def name(cls) -> str:
        return "flink-state"

    def schema(self) -> StructType:
        schema: StructType = spark_schema(_Options(self.options).scan().schema)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return FlinkStateReader(_Options(self.options))


class FlinkStateReader(DataSourceReader):
    """Plans on the driver, reads splits in tasks."""

    def __init__(self, options: _Options) -> None:
        self.options = options
        self.keys: list[Any] | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Use equalities on the key to prune; Spark checks every filter again."""
        keyed = (self.options.get("table") or "keyed_state") not in self.options_operator_states()
        for f in filters:
            wanted = _keys_of(f) if keyed else None
            if wanted is not None and _exact(wanted):
                self.keys = wanted if self.keys is None else [k for k in self.keys if k in wanted]
            yield f

    def options_operator_states(self) -> Sequence[str]:
        """Names of operator states, whose column ``key`` is not the key of the stream."""
        name = self.options.get("operatorUid") or self.options.get("operatorId") or ""
        return list(self.options.inventory().operator(name).operator_states)

    def partitions(self) -> Sequence[InputPartition]:
        return [SplitPartition(s) for s in self.options.scan(self.keys).splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SplitPartition):
            yield from checked(read_split(partition.split))


def _keys_of(f: Filter) -> list[Any] | None:
    """Return the keys that a filter allows, ``None`` where it says nothing about the key."""
    if isinstance(f, EqualTo | EqualNullSafe) and f.attribute == ("key",):
        return [f.value]
    if isinstance(f, In) and f.attribute == ("key",):
        return list(f.value)
    return None


def _exact(keys: list[Any]) -> bool:
    """Tell whether key values are plain values as they stand (others, e.g. dates, are left to Spark to filter)."""
    return all(isinstance(k, bool | int | str) for k in keys)


class FlinkStateMetadataSource(DataSource):
    """``spark.read.format("flink-state-metadata")``: ``table`` is operators, states (default), files or key_groups."""

    @classmethod
    def name(cls) -> str:
        return "flink-state-metadata"

    @property
    def _table(self) -> str:
        table = _Options(self.options).get("table") or "states"
        if table not in _METADATA:
            raise OptionError(f"no metadata table {table!r}", hint=f"choose one of {', '.join(_METADATA)}")
        return table

    def schema(self) -> StructType:
        schema: StructType = spark_schema(metadata_schema(self._table))
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return MetadataReader(_Options(self.options), self._table)


class MetadataReader(DataSourceReader):
    """Reads metadata in one task."""

    def __init__(self, options: _Options, table: str) -> None:
        self.options = options
        self.table = table

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = [r for o in self.options.inventory().operators.values() for r in _METADATA[self.table](o)]
        yield from metadata_table(self.table, rows).to_batches()
