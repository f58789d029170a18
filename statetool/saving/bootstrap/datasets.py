"""Tables that are read a batch at a time: datasets of Arrow, such as a folder of Parquet files, and changed tables of state."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from statetool.errors import EncodeError, OptionError
from statetool.io.threads import in_threads

#: Batches of a file that Arrow reads before they are asked for. Its default, 16, keeps more rows in memory than encoding needs.
_BATCHES_AHEAD: Final = 4
#: Files that Arrow reads before they are asked for.
_FILES_AHEAD: Final = 1


@dataclass(frozen=True, slots=True)
class TableInBatches:
    """A table that is computed a batch at a time, again for each read; ``tables`` returns the batches."""

    schema: pa.Schema
    tables: Callable[[], Iterator[pa.Table]]

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Read columns in batches of at most ``rows`` rows."""
        for table in self.tables():
            yield from table.select(columns).to_batches(rows)


def is_dataset(data: Any) -> bool:
    """Return True for data that is read a batch at a time: a ``pyarrow.dataset.Dataset``, or a :class:`TableInBatches`."""
    module = sys.modules.get("pyarrow.dataset")  # a large module: if nobody has imported it, there is no dataset
    return isinstance(data, TableInBatches) or (module is not None and isinstance(data, module.Dataset))


def dataset_batches(data: Any, schema: pa.Schema, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Read columns of a dataset, or of a part from :func:`dataset_parts`, in batches of at most ``rows`` rows.

    Raises
    ------
    EncodeError
        A file is missing or damaged, or has other types.
    """
    if isinstance(data, TableInBatches):
        yield from data.batches(columns, rows)
        return
    try:
        yield from data.to_batches(
            **({} if is_dataset(data) else {"schema": schema}),
            columns=list(columns),
            batch_size=rows,
            batch_readahead=_BATCHES_AHEAD,
            fragment_readahead=_FILES_AHEAD,
        )
    except (pa.ArrowException, OSError) as error:
        raise EncodeError(
            f"a dataset cannot be read: {error}",
            hint="on Spark, every executor must reach the files under the same path",
        ).at(file=getattr(data, "path", None)) from error


def dataset_parts(data: Any, size_bytes: int) -> list[list[Any]]:
    """Divide a dataset into picklable lists of files and row groups with about ``size_bytes`` stored bytes each.

    Raises
    ------
    OptionError
        The dataset has a filter, or is not stored in files.
    """
    if isinstance(data, TableInBatches):
        raise OptionError(
            "a table that was changed with in_batches=True cannot be written together with DataFrames",
            hint="write this change first, then open the new savepoint and write the DataFrames",
        )
    try:
        files = list(data.get_fragments())
    except ValueError as error:
        raise OptionError(
            f"a dataset that Spark tasks cannot share: {error}",
            hint="pass the dataset without its filter, or a Spark DataFrame with the same filter",
        ) from error
    if not all(hasattr(file, "path") for file in files):
        raise OptionError(
            f"{type(data).__name__} is not stored in files, so Spark tasks cannot share it", hint="pass a pyarrow.Table"
        )
    parts: list[list[Any]] = []
    bytes_left = 0
    for part, size in (sized for file in in_threads(_row_groups, files) for sized in file):
        if bytes_left <= 0:
            parts.append([])
            bytes_left = size_bytes
        parts[-1].append(part)
        bytes_left -= size
    return parts


def _row_groups(file: Any) -> list[tuple[Any, int]]:
    """Return the row groups of a Parquet file with their bytes; of another format, the file with its size."""
    if hasattr(file, "split_by_row_group"):
        return [(part, sum(group.total_byte_size for group in part.row_groups)) for part in file.split_by_row_group()]
    return [(file, file.filesystem.get_file_info(file.path).size or 0)]
