"""Rows in memory that notebooks show as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from statetool.columns.python_values import rows_to_python
from statetool.columns.to_pandas import pandas_frame
from statetool.errors import printable, several
from statetool.html.fragment import fragment
from statetool.html.markup import Html, element, table

#: Maximum length of values in text and in HTML. ``to_arrow`` and ``to_pandas`` return them complete.
_MOST_TEXT: Final = 60
_MOST_HTML: Final = 1000

if TYPE_CHECKING:
    import pandas as pd

    from statetool.tables.scan import TableScan


class Rows:
    """Rows in memory. Iteration yields dicts, and notebooks show an HTML table.

    Attributes
    ----------
    title
        Caption of the table.
    notes
        Remarks below it, such as why values stay bytes.
    """

    def __init__(self, rows: pa.Table, title: str, notes: Sequence[str] = ()) -> None:
        self._rows = rows
        self.title = title
        self.notes = tuple(notes)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._rows

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame. Integers beside nulls stay integers, and maps are dicts.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        return pandas_frame(self._rows)

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._rows.to_batches():
            yield from rows_to_python(batch)

    def __repr__(self) -> str:
        names = self._rows.column_names
        lines = [
            list(map(printable, names)),
            *([_cut(printable(value_text(row[n])), _MOST_TEXT) for n in names] for row in self),
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = ("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
        return "\n".join([f"{printable(self.title)} ({several(len(self), 'row')})", *texts])

    def _repr_html_(self) -> str:
        names = self._rows.column_names
        cells = ([_cell(row[n]) for n in names] for row in self)
        notes = (element("p", note, class_="soft") for note in self.notes)
        return fragment(table(names, cells, f"{self.title} ({several(len(self), 'row')})"), *notes)


def first_rows(scan: TableScan, limit: int) -> pa.Table:
    """Read up to ``limit`` rows of a table in this process. Further batches are not read."""
    batches: list[pa.RecordBatch] = []
    for batch in scan.batches():
        batches.append(batch.slice(0, limit))
        limit -= batches[-1].num_rows
        if limit <= 0:
            break
    return pa.Table.from_batches(batches, schema=scan.schema)


def value_text(value: Any) -> str:
    """Return a value as text: bytes as ``0x`` and hex, maps as ``{key: value}``, nothing for null.

    Examples
    --------
    >>> value_text([("a", b"\\x01"), ("b", None)]), value_text({"x": [1, 2]})
    ('{a: 0x01, b: null}', '{x: [1, 2]}')
    """
    return "" if value is None else _nested_text(value)


def _nested_text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bytes():
            return f"0x{value.hex()}"
        case dict():
            return "{" + ", ".join(f"{k}: {_nested_text(v)}" for k, v in value.items()) + "}"
        case [(_, _), *_] if all(isinstance(pair, tuple) for pair in value):
            return "{" + ", ".join(f"{_nested_text(k)}: {_nested_text(v)}" for k, v in value) + "}"
        case list():
            return "[" + ", ".join(map(_nested_text, value)) + "]"
    return str(value)


def _cell(value: Any) -> Html | str:
    if isinstance(value, int) and not isinstance(value, bool):
        return element("data", value, value=value)
    return _cut(value_text(value), _MOST_HTML)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
