"""Lines of CSV and JSON of a whole batch, column by column, by Arrow's kernels where these write what Python does.

:func:`statetool.tables.export.result_files.json_rows` and its neighbours are the specification, and the way for batches that this module leaves to them:
those without columns, and text that is not valid UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from math import isfinite
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.python_values import column_to_python

#: Characters for which a field of CSV is in quotes, and those that JSON escapes by a number or a letter.
_QUOTED: Final = '[",\r\n]'
_CONTROL: Final = r"[\x00-\x1f]"
#: Days of Python's years 1 to 9999 since 1970-01-01.
_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896
_DAY_MICROS: Final = 86_400_000_000
#: Arrow writes small decimals with an exponent if they have more digits after the point.
_MOST_SCALE: Final = 6

Encode: TypeAlias = Callable[[Any], str]
Shown: TypeAlias = Callable[[Any, pa.DataType], Any]


def csv_batch(batch: pa.RecordBatch, shown: Shown, text: Encode) -> pa.Array | None:
    """Return the lines of CSV of a batch; ``None`` if they are to be written row by row.

    Parameters
    ----------
    shown, text
        A value in the form of JSON, and that as the text of a field.
    """
    return _batch(batch, lambda column: _csv_column(column, shown, text), _csv_line)


def json_batch(batch: pa.RecordBatch, shown: Shown) -> pa.Array | None:
    """Return one JSON object per row of a batch; ``None`` if they are to be written row by row."""
    names = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
    return _batch(batch, lambda column: _json_column(column, shown), lambda columns: _json_line(names, columns))


def _batch(
    batch: pa.RecordBatch, show: Callable[[pa.Array], pa.Array], join: Callable[[list[pa.Array]], pa.Array]
) -> pa.Array | None:
    if not batch.num_columns:
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


def _csv_column(column: pa.Array, shown: Shown, text: Encode) -> pa.Array:
    kind = column.type
    if _is_text(kind):
        return _csv_quoted(_valid(column))
    if pa.types.is_nested(kind):
        nested = _nested(column, shown)
        if nested is not None:
            return _csv_quoted(nested)
    plain = _plain_text(column)
    if plain is not None:
        return pc.fill_null(plain, _text(""))
    return _csv_quoted(_text_array("" if v is None else text(v) for v in _values(column, shown)))


def _csv_quoted(column: pa.Array) -> pa.Array:
    column = pc.fill_null(column, _text(""))
    matches = pc.match_substring_regex(column, _QUOTED)
    if not pc.any(matches).as_py():
        return column
    return pc.if_else(matches, _joined('"', pc.replace_substring(column, '"', '""'), '"'), column)


def _json_column(column: pa.Array, shown: Shown, *, is_nested: bool = False) -> pa.Array:
    return pc.fill_null(_json_text(column, shown, is_nested=is_nested), _text("null"))


def _json_text(column: pa.Array, shown: Shown, *, is_nested: bool) -> pa.Array:
    """Return JSON of each value. Nulls are null or text."""
    kind = column.type
    if _is_text(kind):
        return _json_quoted(_valid(column))
    if pa.types.is_nested(kind):
        nested = _nested(column, shown)
        if nested is not None:
            return nested
    plain = _plain_text(column)
    if plain is None:
        values = [shown(v, kind) for v in column_to_python(column)] if is_nested else _values(column, shown)
        return _text_array(json.dumps(v, ensure_ascii=False) for v in values)
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), plain, _joined('"', plain, '"'))
    is_whole = pa.types.is_decimal(kind) and kind.scale == 0 and not is_nested
    is_bare = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or is_whole
    return plain if is_bare else _joined('"', plain, '"')


def _json_quoted(column: pa.Array) -> pa.Array:
    escaped = pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), '"', '\\"')
    plain = _joined('"', escaped, '"')
    matches = pc.match_substring_regex(column, _CONTROL)
    if not pc.any(matches).as_py():
        return plain
    replaced = _text_array(json.dumps(s, ensure_ascii=False) for s in column.filter(matches).to_pylist())
    return pc.replace_with_mask(plain, pc.fill_null(matches, False), replaced)


def _nested(column: pa.Array, shown: Shown) -> pa.Array | None:
    """Return JSON of structs, lists and maps, ``None`` for other types."""
    kind = column.type
    if pa.types.is_struct(kind) and kind.num_fields:
        names = [json.dumps(field.name, ensure_ascii=False) for field in kind]
        text = _json_line(names, [_json_column(part, shown, is_nested=True) for part in column.flatten()])
    elif pa.types.is_map(kind):
        keys, values = (
            _json_column(_used(column, part), shown, is_nested=True) for part in (column.keys, column.items)
        )
        if pa.types.is_string(kind.key_type):
            text = _joined("{", _join_lists(column, _joined("", keys, ": ", values)), "}")
        else:
            text = _joined("[", _join_lists(column, _json_line(['"key"', '"value"'], [keys, values])), "]")
    elif pa.types.is_list(kind):
        elements = _json_column(_used(column, column.values), shown, is_nested=True)
        text = _joined("[", _join_lists(column, elements), "]")
    else:
        return None
    return pc.if_else(column.is_valid(), text, _text(None))


def _used(column: pa.Array, elements: pa.Array) -> pa.Array:
    """Return the elements of a list or map that belong to its rows."""
    first, last = (column.offsets[i].as_py() for i in (0, len(column)))
    return elements.slice(first, last - first)


def _join_lists(column: pa.Array, elements: pa.Array) -> pa.Array:
    offsets = column.offsets.cast(pa.int64())
    return pc.binary_join(pa.LargeListArray.from_arrays(pc.subtract(offsets, offsets[0]), elements), _text(", "))


def _plain_text(column: pa.Array) -> pa.Array | None:
    """Return values that need no quotes in CSV as text, ``None`` if only Python writes them so."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.large_string())
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= _MOST_SCALE:
        return column.cast(pa.large_string())
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _float_text(column.cast(pa.float64()))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _hex_text(column.cast(pa.large_binary()))
    if pa.types.is_date32(kind) and _is_within(column.view(pa.int32()), _FIRST_DAY, _LAST_DAY):
        return column.cast(pa.large_string())
    if kind == pa.time64("us"):
        return _without_zeros(column.cast(pa.large_string()))
    if pa.types.is_duration(kind) and kind.unit == "us":
        return _duration_text(column.view(pa.int64()))
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        numbers = column.view(pa.int64())
        if _is_within(numbers, _FIRST_DAY * _DAY_MICROS, (_LAST_DAY + 1) * _DAY_MICROS - 1):
            text = _without_zeros(numbers.view(pa.timestamp("us")).cast(pa.large_string()))
            return _joined("", pc.replace_substring(text, " ", "T"), "" if kind.tz is None else "+00:00")
    return None


def _is_within(numbers: pa.Array, first: int, last: int) -> bool:
    bounds = pc.min_max(numbers).as_py()
    return bounds["min"] is None or (first <= bounds["min"] and bounds["max"] <= last)


def _without_zeros(times: pa.Array) -> pa.Array:
    """Return times without a fraction of zero."""
    return pc.replace_substring(times, ".000000", "")


def _duration_text(micros: pa.Array) -> pa.Array:
    size = pc.abs_checked(micros)
    seconds = pc.divide(size, 1_000_000)
    fraction = pc.add(pc.subtract(size, pc.multiply(seconds, 1_000_000)), 1_000_000).cast(pa.large_string())
    sign = pc.if_else(pc.less(micros, 0), _text("-"), _text(""))
    digits = pc.utf8_slice_codeunits(fraction, 1)
    return pc.binary_join_element_wise(sign, seconds.cast(pa.large_string()), _text("."), digits, _text(""))


def _float_text(column: pa.Array) -> pa.Array:
    """Return the shortest text of each number in Python's form, which differs from Arrow's for whole, large and small numbers."""
    size = pc.abs(column)
    is_usual = pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e9))
    text = column.cast(pa.large_string())
    text = pc.if_else(pc.equal(column, pc.trunc(column)), _joined("", text, ".0"), text)
    unusual = pc.fill_null(pc.invert(is_usual), False)
    if not pc.any(unusual).as_py():
        return text
    return pc.replace_with_mask(text, unusual, _text_array(map(str, column.filter(unusual).to_pylist())))


def _hex_text(column: pa.Array) -> pa.Array:
    _, offsets, data = column.buffers()
    ends = pa.Array.from_buffers(pa.int64(), len(column) + 1, [None, offsets], offset=column.offset)
    first, last = ends[0].as_py(), ends[len(column)].as_py()
    digits = b"" if data is None else bytes(data[first:last]).hex().encode()
    doubled = pc.multiply(pc.subtract(ends, first), 2)
    text = pa.LargeStringArray.from_buffers(len(column), doubled.buffers()[1], pa.py_buffer(digits))
    return pc.if_else(column.is_valid(), text, _text(None))


def _joined(*parts: Any) -> pa.Array:
    """Return the parts, texts or columns of texts, as one column."""
    return pc.binary_join_element_wise(*(_text(p) if isinstance(p, str) else p for p in parts), _text(""))


def _text(value: str | None) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _text_array(values: Iterable[str]) -> pa.Array:
    return pa.array(list(values), pa.large_string())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _valid(column: pa.Array) -> pa.Array:
    column.validate(full=True)
    return column.cast(pa.large_string())


def _values(column: pa.Array, shown: Shown) -> list[Any]:
    """Return values in the form of JSON. Decimals without a fraction are integers."""
    kind = column.type
    values = column_to_python(column)
    if pa.types.is_floating(kind):
        return [v if v is None or isfinite(v) else str(v) for v in values]
    if pa.types.is_decimal(kind) and kind.scale == 0:
        values = [int(v) if isinstance(v, Decimal) else v for v in values]
    return [shown(v, kind) for v in values]
