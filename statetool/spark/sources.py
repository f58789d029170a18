"""The data sources ``flink-state`` and ``flink-state-metadata`` (PySpark 4).

Options of ``flink-state``, in any case, with or without underscores:

=========================================  ==================================================================================
``path``                                   the snapshot (the argument of ``load``)
``operatorUid`` or ``operatorId``          the operator
``table``                                  ``keyed_state`` (default), ``timers``, or a state's name (its long form); for a
                                           state ``stateVarName``, as Spark's own state source calls it, is the same
``readRegisteredTimers``                   ``true``: the table ``timers``, as in Spark's own state source
``states``                                 JSON list or comma-separated: columns of ``keyed_state``; others are skipped
                                           undecoded (Spark does not tell Python sources which columns a query needs)
``ttl``, ``ttl_ms``, ``now_ms``,           how values are shown (:class:`statetool.types.options.ReadOptions`)
``nanos``, ``decimals``, ``on_error``
``columns``                                JSON object ``{path: [names]}`` or ``{path: "ROW<...>"}``: names, or names and types, for
                                           the fields of rows (``ReadOptions.columns``)
``key_group``, ``subtask``                 ``true`` adds the column
``split_bytes``, ``memory_bytes``          sizes of tasks
``uids``                                   JSON list or comma-separated: uids for ids that the snapshot does not name
``rebase``                                 JSON object ``{old prefix: new prefix}`` for files that were moved
``declarations``                           JSON list or comma-separated: Avro schema files (or folders) of classes that the
                                           snapshot does not describe
``python``, ``unsafePickle``               JSON object of state names and PyFlink types (``{"count": "LONG"}``); ``true`` loads pickles
``prune``                                  ``true`` prunes by filters on ``key``: only for a frame that is used in one query alone
``kryo``                                   ``2`` or ``5`` where the metadata's version does not tell Kryo's
=========================================  ==================================================================================

With ``prune``, ``=``, ``<=>`` and ``IN`` on ``key`` (or on every field of a tuple key) read only the key groups of those keys; Spark does
not push ``OR``. Spark reads other queries on the same DataFrame with what was planned for the one before (:mod:`statetool.spark.uses`),
so that without ``prune`` filters are right and read everything; frames of ``op.keyed_state()`` and the like prune by themselves. Planning runs in a Python process of the driver, ``read`` in tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from statetool.arrow.metadata import metadata_schema, metadata_table
from statetool.arrow.scan import TableScan, scan_table
from statetool.errors import OptionError, suggest
from statetool.plan.declarations import python_types, read_declarations
from statetool.plan.inventory import Inventory
from statetool.plan.operator import OperatorInventory
from statetool.plan.rows import METADATA_TABLES, metadata_rows
from statetool.plan.splits import Split
from statetool.serializers.base import Serializer
from statetool.spark.guard import read_checked
from statetool.spark.pruning import allowed_keys
from statetool.spark.schema import spark_schema
from statetool.spark.uses import widened
from statetool.types.declared import TypeContext
from statetool.types.options import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_FLAGS: Final = ("key_group", "subtask")
_NUMBERS: Final = ("ttl_ms", "now_ms", "split_bytes", "memory_bytes")
_WORDS: Final = ("ttl", "nanos", "decimals", "on_error")
_PLACES: Final = ("path", "rebase", "uids", "declarations", "kryo", "python", "unsafePickle")
_TABLES: Final = ("operatorUid", "operatorId", "table", "stateVarName", "readRegisteredTimers", "states")
_STATE_OPTIONS: Final = (*_PLACES, *_TABLES, *_WORDS, *_NUMBERS, *_FLAGS, "columns", "prune", "queries")
_METADATA_OPTIONS: Final = (*_PLACES, "table")


def _folded(name: str) -> str:
    return name.lower().replace("_", "")


class _Options:
    """Options of a read, checked by name; Spark hands them over in any case.

    Raises
    ------
    OptionError
        An option that does not exist.
    """

    def __init__(self, options: Mapping[str, str], known: Sequence[str] = _STATE_OPTIONS) -> None:
        names = {_folded(k): k for k in known}
        for name in options:
            if _folded(name) not in names:
                raise OptionError(f"no option {name!r}", hint=suggest(name, known))
        self.given = {names[_folded(k)]: v for k, v in options.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {"given": self.given}  # without the inventory, which tasks do not need

    def get(self, name: str) -> str | None:
        return self.given.get(name)

    def flag(self, name: str) -> bool:
        text = (self.get(name) or "false").lower()
        if text not in ("true", "false"):
            raise OptionError(f"{name}={text!r} is neither true nor false")
        return text == "true"

    def names(self, name: str) -> list[str] | None:
        text = self.get(name)
        if text is None:
            return None
        if text.lstrip().startswith("["):
            return [str(v) for v in _json(name, text)]
        return [part.strip() for part in text.split(",") if part.strip()]

    @cached_property
    def inventory(self) -> Inventory:
        path = self.get("path")
        if not path:
            raise OptionError("no path was given", hint='name the snapshot in .load("...")')
        moved = _json("rebase", self.get("rebase") or "{}")
        if not isinstance(moved, dict):
            raise OptionError("rebase is not a JSON object of old and new prefixes")
        return Inventory(
            path, rebase=tuple(moved.items()), uids=tuple(self.names("uids") or ()), types=self.type_context
        )

    @property
    def type_context(self) -> TypeContext:
        """What the user declares: files of Avro schemas by ``declarations``, the version of Kryo by ``kryo``."""
        kryo = self.get("kryo")
        if kryo not in (None, "2", "5"):
            raise OptionError(f"kryo={kryo!r} is neither 2 (Flink 1.x) nor 5 (Flink 2.x)")
        text = self.get("declarations") or ""
        given = _json("declarations", text) if text.lstrip().startswith("[") else self.names("declarations") or ()
        states = _json("python", self.get("python") or "{}")
        if not isinstance(states, dict):
            raise OptionError("python is not a JSON object of state names and PyFlink types")
        return TypeContext(
            kryo=None if kryo is None else 2 if kryo == "2" else 5,
            classes=read_declarations(given),
            python=python_types(states),
            unsafe_pickle=self.flag("unsafePickle"),
        )

    @property
    def operator(self) -> OperatorInventory:
        """The operator; where both options are given they must agree."""
        given = [name for o in ("operatorUid", "operatorId") if (name := self.get(o))]
        if not given:
            raise OptionError(
                "neither operatorUid nor operatorId was given",
                hint=f"choose one of {', '.join(list(self.inventory.operators)[:10])}",
            )
        found = [self.inventory.operator(name) for name in given]
        if found[0] is not found[-1]:
            raise OptionError(f"operatorUid {given[0]!r} and operatorId {given[1]!r} are not the same operator")
        return found[0]

    @property
    def table(self) -> str:
        asked = [t for t in (self.get("table"), self.get("stateVarName")) if t]
        asked += ["timers"] if self.flag("readRegisteredTimers") else []
        if len(set(asked)) > 1:
            raise OptionError(f"the options ask for different tables: {', '.join(asked)}", hint="give one of them")
        return asked[0] if asked else "keyed_state"

    @property
    def key_serializer(self) -> Serializer | None:
        """Serializer of the column ``key``; ``None`` for operator state, whose ``key`` has nothing to do with key groups."""
        operator = self.operator.with_columns(self.arguments()["options"].columns)
        if operator.state_tables.get(self.table, ("keyed", ""))[0] == "operator":
            return None
        return next((header.key for header, _ in operator.keyed_states.values()), None)

    def arguments(self) -> dict[str, Any]:
        try:
            numbers = {n: int(v) for n in _NUMBERS if (v := self.get(n)) is not None}
        except ValueError as e:
            raise OptionError(f"not a number: {e}") from e
        words: dict[str, Any] = {n: v for n in _WORDS if (v := self.get(n)) is not None}
        columns = _json("columns", self.get("columns") or "{}")
        if not isinstance(columns, dict):
            raise OptionError("columns is not a JSON object of paths and lists of names or ROW<...>")
        reads: dict[str, Any] = {
            **words,
            "columns": columns,
            **{n: numbers.pop(n) for n in ("ttl_ms", "now_ms") if n in numbers},
        }
        flags = {n: self.flag(n) for n in _FLAGS}
        return {"options": ReadOptions(**reads), "states": self.names("states"), **numbers, **flags}

    def scan(self, keys: Sequence[Any] | None = None) -> TableScan:
        return scan_table(self.operator, self.table, keys=keys, **self.arguments())


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise OptionError(f"{name} is not JSON: {e}") from e


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


class PlainFlinkStateSource(FlinkStateSource):
    """The same without pruning: Spark refuses sources that take filters in sessions where that is switched off."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return PlainReader(_Options(self.options))


class PlainReader(DataSourceReader):
    """Plans on the driver, reads splits in tasks."""

    def __init__(self, options: _Options) -> None:
        self.options = options
        self.keys: list[Any] | None = None

    def partitions(self) -> Sequence[InputPartition]:
        return [SplitPartition(s) for s in self.options.scan(self.keys).splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SplitPartition):
            yield from read_checked(partition.split)


class FlinkStateReader(PlainReader):
    """Reads only the key groups of the keys that filters allow."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Prune by equalities on the key, where no other query can get to see it; Spark evaluates every filter again."""
        key = self.options.key_serializer
        queries = self.options.get("queries")
        if key is None or (queries is None and not self.options.flag("prune")):
            return filters
        keys = allowed_keys(filters, key)
        self.keys = keys if queries is None else widened(queries, keys)
        return filters


class FlinkStateMetadataSource(DataSource):
    """``spark.read.format("flink-state-metadata")``.

    Options: ``path``; ``table`` (operators, states by default, files, key_groups); ``uids``, ``rebase``.
    """

    @classmethod
    def name(cls) -> str:
        return "flink-state-metadata"

    @property
    def _table(self) -> str:
        table = self._given.get("table") or "states"
        if table not in METADATA_TABLES:
            raise OptionError(f"no metadata table {table!r}", hint=f"choose one of {', '.join(METADATA_TABLES)}")
        return table

    @property
    def _given(self) -> _Options:
        return _Options(self.options, _METADATA_OPTIONS)

    def schema(self) -> StructType:
        schema: StructType = spark_schema(metadata_schema(self._table))
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return MetadataReader(self._given, self._table)


class MetadataReader(DataSourceReader):
    """Reads metadata in one task."""

    def __init__(self, options: _Options, table: str) -> None:
        self.options = options
        self.table = table

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = metadata_rows(self.table, self.options.inventory.operators.values())
        yield from metadata_table(self.table, rows).to_batches()
