"""Lines of CSV and JSON of a whole batch, column by column: numbers and text by Arrow's kernels, other values by a function per type.

:func:`statetool.tables.result_files.json_rows` and its neighbours are the specification, and the way for batches that this module leaves to them:
those without columns or with names that are there twice, and text that is not valid UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.python_values import column_to_python

#: Characters for which a field of CSV is in quotes, and those that JSON escapes.
_QUOTED: Final = '[",\r\n]'
_ESCAPED: Final = r'["\\\x00-\x1f]'

Encode = Callable[[Any], str]


def csv_batch(batch: pa.RecordBatch, shown: Callable[[Any, pa.DataType], Any], text: Encode) -> pa.Array | None:
    """Return the lines of CSV of a batch; ``None`` if they are to be written row by row.

    Parameters
    ----------
    shown, text
        A value in the form of JSON, and that as the text of a field.
    """
    return _batch(batch, lambda column: _csv_column(column, shown, text), _csv_line)


def json_batch(batch: pa.RecordBatch, shown: Callable[[Any, pa.DataType], Any]) -> pa.Array | None:
    """Return one JSON object per row of a batch; ``None`` if they are to be written row by row."""
    names = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
    return _batch(batch, lambda column: _json_column(column, shown), lambda columns: _json_line(names, columns))


def _batch(
    batch: pa.RecordBatch, show: Callable[[pa.Array], pa.Array], join: Callable[[list[pa.Array]], pa.Array]
) -> pa.Array | None:
    if not batch.num_columns or len(set(batch.schema.names)) < batch.num_columns:
        return None
    try:
        return join([show(column) for column in batch.columns])
    except (pa.ArrowException, UnicodeError):
        return None


def _csv_line(columns: list[pa.Array]) -> pa.Array:
    if len(columns) == 1:
        return pc.if_else(pc.equal(columns[0], _text("")), _text('""'), columns[0])
    return pc.binary_join_element_wise(*columns, _text(","))


def _json_line(names: list[str], columns: list[pa.Array]) -> pa.Array:
    parts: list[Any] = []
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        parts += [_text(f"{', ' if number else '{'}{name}: "), column]
    return pc.binary_join_element_wise(*parts, _text("}"), _text(""))


def _csv_column(column: pa.Array, shown: Callable[[Any, pa.DataType], Any], text: Encode) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.fill_null(column.cast(pa.large_string()), _text(""))
    if not _is_text(kind):
        values = _values(column, shown)
        column = pa.array(["" if v is None else text(v) for v in values], pa.large_string())
    return _quote(
        pc.fill_null(_valid(column), _text("")), _QUOTED, lambda s: '"' + s.replace('"', '""') + '"', always=False
    )


def _json_column(column: pa.Array, shown: Callable[[Any, pa.DataType], Any]) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.fill_null(column.cast(pa.large_string()), _text("null"))
    if _is_text(kind):
        quoted = _quote(_valid(column), _ESCAPED, lambda s: json.dumps(s, ensure_ascii=False), always=True)
        return pc.fill_null(quoted, _text("null"))
    return pa.array([json.dumps(v, ensure_ascii=False) for v in _values(column, shown)], pa.large_string())


def _quote(column: pa.Array, pattern: str, special: Encode, *, always: bool) -> pa.Array:
    """Return text in which values that match a pattern are replaced; with ``always``, others are put in quotes."""
    plain = pc.binary_join_element_wise(_text('"'), column, _text('"'), _text("")) if always else column
    matches = pc.match_substring_regex(column, pattern)
    if not pc.any(matches).as_py():
        return plain
    replaced = pa.array([special(s) for s in column.filter(matches).to_pylist()], pa.large_string())
    return pc.replace_with_mask(plain, pc.fill_null(matches, False), replaced)


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _valid(column: pa.Array) -> pa.Array:
    column.validate(full=True)
    return column.cast(pa.large_string())


def _values(column: pa.Array, shown: Callable[[Any, pa.DataType], Any]) -> list[Any]:
    """Return values in the form of JSON. Decimals without a fraction are integers."""
    kind = column.type
    values = column_to_python(column)
    if pa.types.is_floating(kind):
        return [v if v is None or isfinite(v) else str(v) for v in values]
    if pa.types.is_decimal(kind) and kind.scale == 0:
        values = [int(v) if isinstance(v, Decimal) else v for v in values]
    return [shown(v, kind) for v in values]
