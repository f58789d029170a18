"""Rows as text and in files: CSV, lines of JSON, and Parquet."""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, Final

import pyarrow as pa

from statetool.columns.python_values import rows_to_python
from statetool.errors import OptionError, TargetExistsError
from statetool.io.files import exists, file_system
from statetool.io.targets import move, remove, writing
from statetool.tables.export.text_lines import csv_batch, json_batch

_QUOTE: Final = '"'
#: Characters for which a field of CSV is in quotes.
_QUOTED: Final = re.compile(r'[",\r\n]')
#: Formats of files by suffix.
SUFFIXES: Final = (".parquet", ".csv", ".jsonl")


def plain_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as Python values. Sums of integers, which DuckDB returns as decimals, are integers."""
    rows = rows_to_python(batch)
    whole = [f.name for f in batch.schema if pa.types.is_decimal(f.type) and f.type.scale == 0]
    for row in rows if whole else ():
        row.update({name: int(row[name]) for name in whole if row[name] is not None})
    return rows


def json_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield rows as JSON values.

    Bytes are hexadecimal, decimals and times are text, and maps are objects, or lists of ``key`` and ``value`` if keys are not text. NaN and
    infinities are text, because JSON has no such numbers.
    """
    for row in plain_rows(batch):
        yield {name: _json_value(value, batch.schema.field(name).type) for name, value in row.items()}


def _json_value(value: Any, kind: pa.DataType) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return value.hex()
    if pa.types.is_map(kind):
        pairs = [(_json_value(k, kind.key_type), _json_value(v, kind.item_type)) for k, v in value]
        if pa.types.is_string(kind.key_type):
            return dict(pairs)
        return [{"key": k, "value": v} for k, v in pairs]
    if pa.types.is_struct(kind):
        return {field.name: _json_value(value[field.name], field.type) for field in kind}
    if isinstance(value, list):
        return [_json_value(v, kind.value_type) for v in value]
    if isinstance(value, date | datetime):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else _duration(value)


def _duration(value: Any) -> Any:
    """Return a duration as seconds with up to 6 digits, and DuckDB's intervals as text."""
    if isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
        sign = "-" if micros < 0 else ""
        return f"{sign}{abs(micros) // 1_000_000}.{abs(micros) % 1_000_000:06d}"
    return str(value)


def with_distinct_names(result: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return a result whose columns have different names: a second ``a`` is ``a_1``, as in DuckDB's own tables of a result."""
    names: list[str] = []
    for name in result.schema.names:
        numbered = (f"{name}_{number}" for number in count(1))
        taken = {*names, *result.schema.names}
        names.append(name if name not in names else next(n for n in numbered if n not in taken))
    if names == result.schema.names:
        return result
    schema = pa.schema([field.with_name(name) for field, name in zip(result.schema, names, strict=True)])
    renamed = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in result)
    return pa.RecordBatchReader.from_batches(schema, renamed)


def csv_lines(batches: pa.RecordBatchReader) -> Iterator[str]:
    """Yield lines of CSV, the first of which has the names of columns. Nested values are JSON, and nulls are empty."""
    yield csv_header(batches.schema)
    yield from csv_rows(batches)


def csv_header(schema: pa.Schema) -> str:
    """Return the line with the names of columns."""
    return _csv_line(schema.names)


def csv_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Yield the lines of rows."""
    for batch in batches:
        lines = csv_batch(batch, _json_value, lambda value: str(_csv_value(value)))
        if lines is not None:
            yield from lines.to_pylist()
            continue
        for row in json_rows(batch):
            yield _csv_line([_csv_value(value) for value in row.values()])


def _csv_value(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _csv_line(values: Iterable[Any]) -> str:
    """Return a line without its end. ``csv.writer`` leaves line breaks unquoted then, and refuses the character 0 before Python 3.11."""
    fields = ["" if value is None else str(value) for value in values]
    if fields == [""]:
        return '""'
    return ",".join(f'"{field.replace(_QUOTE, _QUOTE * 2)}"' if _QUOTED.search(field) else field for field in fields)


def json_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Yield one JSON object per row."""
    for batch in batches:
        lines = json_batch(batch, _json_value)
        if lines is not None:
            yield from lines.to_pylist()
            continue
        for row in json_rows(batch):
            yield json.dumps(row, ensure_ascii=False)


def write_result(result: pa.RecordBatchReader, target: str) -> int:
    """Write rows to a new file in the format of its suffix, and return their number. A failure leaves no file.

    Raises
    ------
    OptionError
        The suffix is not known.
    TargetExistsError
        The file exists.
    """
    suffix = next((s for s in SUFFIXES if target.endswith(s)), None)
    if suffix is None:
        raise OptionError(f"{target!r} has no known suffix", hint=f"choose one of {', '.join(SUFFIXES)}")
    if exists(target):
        raise TargetExistsError(f"{target} already exists", hint="choose another name")
    counted = _Counted(result)
    staging = f"{target}.{uuid.uuid4().hex}.tmp"
    fs, path = file_system(staging)
    try:
        with writing(target), fs.open(path, "wb") as out:
            if suffix == ".parquet":
                write_parquet(counted.reader(), out)
            else:
                write_lines(csv_lines(counted.reader()) if suffix == ".csv" else json_lines(counted.reader()), out)
        move(staging, target)
    except BaseException:
        with suppress(FileNotFoundError):
            remove(staging)
        raise
    return counted.rows


class _Counted:
    """A reader that counts rows."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader
        self.rows = 0

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._reader.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._reader:
            self.rows += batch.num_rows
            yield batch


def write_parquet(batches: pa.RecordBatchReader, out: Any) -> None:
    """Write a Parquet file."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(out, batches.schema, compression="snappy") as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_lines(lines: Iterable[str], out: Any) -> None:
    """Write lines of text as UTF-8."""
    for line in lines:
        out.write(line.encode("utf-8", "surrogatepass") + b"\n")
