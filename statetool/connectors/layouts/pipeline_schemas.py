"""Schemas of the tables of a CDC pipeline (``org.apache.flink.cdc.runtime.operators.schema``), in the state of its schema coordinator.

Coordinator state: i4 version, i4 length and ``SchemaManager``. Version 1 and 2 are followed by i4 count of derived tables, each table id, i4 count
and table ids of its sources (always 0 since release 3.3), except in the distributed topology (since 3.3), which writes nothing more.

``SchemaManager``: schemas that the pipeline writes (*evolved*) and, in version 2, those that it reads (*original*) and utf behavior. Schemas: i4
count of tables, each table id, i4 count of versions, each i4 version and schema. Table id: i4 number of parts, utf parts. Schema: list of
columns, list of primary keys, list of partition keys (not in version 0), options (i4 count, key, boolean is null, value), comment. Column:
i4 0 (physical) or 1 (metadata), name, type, comment; then the default value of a physical column (version 2), or the metadata key.
Type: i4 index in ``_TYPES``, boolean nullable, parameters. Texts are strings of Flink, lists begin with an i4 count.

Version 0 is that of releases before 3.1.1, 1 of 3.1.1, 2 of 3.2 to 3.6. Bytes of the coordinators of 3.0.1, 3.1.1, 3.2.1 and 3.5.0 (both
topologies) confirm them. The type VARIANT (since 3.6) follows the project's sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import as_json
from statetool.connectors.sources import READER_STATE
from statetool.errors import OptionError, StatetoolError, warn
from statetool.io.cursor import Cursor
from statetool.serializers.typeutils.basic import read_string
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord

_VERSIONS: Final = range(3)
_TYPES: Final = (
    "BINARY", "ARRAY", "BOOLEAN", "DECIMAL", "TIMESTAMP_LTZ", "VARBINARY", "CHAR", "SMALLINT", "TIMESTAMP", "INT", "ROW", "FLOAT", "MAP", "TIME",
    "TINYINT", "VARCHAR", "DATE", "TIMESTAMP_TZ", "DOUBLE", "BIGINT", "VARIANT",
)  # fmt: skip
#: Types with a length or precision.
_SIZED: Final = frozenset(
    {"BINARY", "TIMESTAMP_LTZ", "VARBINARY", "CHAR", "TIMESTAMP", "TIME", "VARCHAR", "TIMESTAMP_TZ"}
)
_ZONES: Final = {"TIMESTAMP_LTZ": "WITH LOCAL TIME ZONE", "TIMESTAMP_TZ": "WITH TIME ZONE"}
_UNBOUNDED: Final = {"VARCHAR": "STRING", "VARBINARY": "BYTES"}
_MAX_LENGTH: Final = (1 << 31) - 1
_BEHAVIORS: Final = frozenset({"IGNORE", "LENIENT", "TRY_EVOLVE", "EVOLVE", "EXCEPTION"})
_MOST_PARTS: Final = 3
_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchemaRow(OperatorRecord):
    """One version of the schema of a table.

    Attributes
    ----------
    kind
        ``evolved``: as the pipeline writes the table. ``original``: as it reads the table.
    version
        Number of the schema. The coordinator keeps the newest three.
    columns
        Names and types in SQL.
    primary_key, partition_key
        Names of columns, empty if there are none.
    behavior
        The pipeline's ``schema.change.behavior``, ``None`` before release 3.2.
    details
        JSON of columns with comments, default values and metadata keys, of the options of the table, and of its comment.
    """

    kind: str
    table: str
    version: int
    columns: str
    primary_key: str
    partition_key: str
    behavior: str | None
    details: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    comment: str | None
    default: str | None = None
    metadata_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """One version of the schema of a table."""

    kind: str
    table: str
    version: int
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    partition_key: tuple[str, ...]
    options: dict[str, str | None]
    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSchemas:
    """State of a schema coordinator."""

    schemas: tuple[TableSchema, ...]
    behavior: str | None = None


def table_schema_rows(operators: Iterable[OperatorInventory], *, required: bool = False) -> list[TableSchemaRow]:
    """Return the schemas of the pipelines in a snapshot.

    Parameters
    ----------
    required
        Whether each operator has to be the schema operator of a pipeline. Otherwise those with other coordinator state are left out, with a
        warning: they may be of a version that is not known.

    Raises
    ------
    OptionError
        A required operator has no coordinator state, or is a source.
    FormatError
        The coordinator state of a required operator is not that of a schema coordinator, or has another version.
    """
    rows: list[TableSchemaRow] = []
    for operator in operators:
        data = OperatorBytes(operator)
        if READER_STATE in data.states or not data.coordinator:
            if required:
                raise OptionError(
                    f"operator {operator.label.display!r} has no coordinator of schemas",
                    hint="statetool sources schemas without --uid shows all schemas",
                )
            continue
        try:
            found = read_schemas(data.coordinator)
        except StatetoolError as error:
            if required:
                raise error.at(operator=operator.label) from None
            name = operator.label.display
            warn(
                f"operator {name!r} is left out: its coordinator state is not that of a known coordinator of schemas. "
                f"To see why, run: statetool sources schemas SRC --uid {name}",
                stacklevel=2,
            )
            continue
        rows += _rows(operator, found)
    return rows


def _rows(operator: OperatorInventory, found: PipelineSchemas) -> Iterator[TableSchemaRow]:
    for schema in sorted(found.schemas, key=lambda s: (s.table, s.kind, s.version)):
        yield TableSchemaRow(
            operator=operator.label,
            kind=schema.kind,
            table=schema.table,
            version=schema.version,
            columns=", ".join(f"{c.name} {c.type}" for c in schema.columns),
            primary_key=", ".join(schema.primary_key),
            partition_key=", ".join(schema.partition_key),
            behavior=found.behavior,
            details=as_json({"columns": schema.columns, "options": schema.options, "comment": schema.comment}),
        )


def read_schemas(data: bytes) -> PipelineSchemas:
    """Read the state of a schema coordinator.

    Raises
    ------
    FormatError
        It is of another version, or of another coordinator.
    """
    c = Cursor(data)
    version = c.i4()
    if version not in _VERSIONS:
        raise c.fail(f"version {version} of a coordinator of schemas is not known, only 0, 1, 2", pos=0)
    manager = c.slice(c.i4(), "schemas")
    schemas = list(_read_tables(manager, version, "evolved"))
    behavior = None
    if version > 1:
        schemas += _read_tables(manager, version, "original")
        behavior = manager.utf()
        if behavior not in _BEHAVIORS:
            raise manager.fail(f"{behavior!r} is not a behavior at changes of schemas")
    manager.expect_end("schemas")
    if version and c.left:
        for _ in range(c.count("derived tables", at_least=14)):
            _read_table_id(c)
            for _ in range(c.count("tables", at_least=6)):
                _read_table_id(c)
    c.expect_end("the state of a coordinator of schemas")
    return PipelineSchemas(schemas=tuple(schemas), behavior=behavior)


def _read_tables(c: Cursor, version: int, kind: str) -> Iterator[TableSchema]:
    for _ in range(c.count("tables", at_least=10)):
        table = _read_table_id(c)
        for _ in range(c.count("versions", at_least=17)):
            number = c.i4()
            columns = tuple(_read_column(c, version) for _ in range(c.count("columns", at_least=8)))
            primary_key = _read_texts(c)
            partition_key = _read_texts(c) if version else ()
            options = {_text(c): None if c.bool() else _text(c) for _ in range(c.count("options", at_least=2))}
            yield TableSchema(
                kind=kind,
                table=table,
                version=number,
                columns=columns,
                primary_key=primary_key,
                partition_key=partition_key,
                options=options,
                comment=read_string(c),
            )


def _read_table_id(c: Cursor) -> str:
    start = c.pos
    parts = c.i4()
    if not 1 <= parts <= _MOST_PARTS:
        raise c.fail(f"an id of a table with {parts} parts", pos=start)
    return ".".join(c.utf() for _ in range(parts))


def _read_column(c: Cursor, version: int) -> Column:
    start = c.pos
    kind = c.i4()
    if kind not in (0, 1):
        raise c.fail(f"kind {kind} of a column is not known", pos=start)
    name, column_type, comment = _text(c), _read_type(c, 0), read_string(c)
    if kind == 1:
        return Column(name=name, type=column_type, comment=comment, metadata_key=read_string(c))
    return Column(name=name, type=column_type, comment=comment, default=read_string(c) if version > 1 else None)


def _read_type(c: Cursor, depth: int) -> str:
    """Read a type and return it in SQL."""
    start = c.pos
    index = c.i4()
    if not 0 <= index < len(_TYPES) or depth > _MAX_DEPTH:
        raise c.fail(f"type {index} of a column is not known", pos=start)
    name = _TYPES[index]
    suffix = "" if c.bool() else " NOT NULL"
    if name in _SIZED:
        size = c.i4()
        if size < 0:
            raise c.fail(f"a {name} of size {size}", pos=start)
        if name in _ZONES:
            return f"TIMESTAMP({size}) {_ZONES[name]}{suffix}"
        is_unbounded = size == _MAX_LENGTH and name in _UNBOUNDED
        return (_UNBOUNDED[name] if is_unbounded else f"{name}({size})") + suffix
    match name:
        case "DECIMAL":
            return f"DECIMAL({c.i4()}, {c.i4()}){suffix}"
        case "ARRAY":
            return f"ARRAY<{_read_type(c, depth + 1)}>{suffix}"
        case "MAP":
            return f"MAP<{_read_type(c, depth + 1)}, {_read_type(c, depth + 1)}>{suffix}"
        case "ROW":
            fields = [_read_field(c, depth) for _ in range(c.count("fields", at_least=7))]
            return f"ROW<{', '.join(fields)}>{suffix}"
    return name + suffix


def _read_field(c: Cursor, depth: int) -> str:
    name, field_type, comment = _text(c).replace("`", "``"), _read_type(c, depth + 1), read_string(c)
    quoted = "" if comment is None else " '" + comment.replace("'", "''") + "'"
    return f"`{name}` {field_type}{quoted}"


def _read_texts(c: Cursor) -> tuple[str, ...]:
    return tuple(_text(c) for _ in range(c.count("names", at_least=1)))


def _text(c: Cursor) -> str:
    start = c.pos
    text = read_string(c)
    if text is None:
        raise c.fail("null for a name", pos=start)
    return text
