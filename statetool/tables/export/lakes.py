"""Tables of Delta and Iceberg, written in this process by ``deltalake`` and ``pyiceberg``: without Spark and Java.

Each export is one commit: an error leaves no rows in the table. Rows are passed batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from statetool.columns.storable import is_plain, store_empty_structs
from statetool.errors import MissingDependencyError, OptionError, StatetoolError, TargetExistsError
from statetool.io.files import exists, is_local
from statetool.tables.export.directories import CHECKPOINT, new_directory, target_exists
from statetool.tables.export.files import KEY_GROUP, batch_groups
from statetool.tables.scan import TableScan

#: Table formats.
LAKES: Final = ("delta", "iceberg")
#: Characters that Delta stores in names of columns only with column mapping, which ``deltalake`` does not write.
_MAPPED: Final = frozenset(" ,;{}()\n\t=")


def export_to_lake(scan: TableScan, target: str, *, style: str, by_key_group: bool, append_as: int | None) -> int:
    """Write a planned table to a new table of Delta or Iceberg in one commit, and return the number of rows.

    Parameters
    ----------
    target
        Delta: a directory. Iceberg: ``catalog.namespace.table``, with a catalog of pyiceberg's configuration.
    style
        One of :data:`LAKES`.
    by_key_group
        Whether the table is partitioned by the column ``key_group``.
    append_as
        The checkpoint's id: the rows are added to those of other checkpoints, with the id in the column ``checkpoint_id``.

    Raises
    ------
    TargetExistsError
        The table exists; with ``append_as``, it already has rows of this checkpoint.
    OptionError
        The format has no type for a column, or the table already has a column ``checkpoint_id``.
    MissingDependencyError
        The library is not installed.
    """
    if append_as is not None and CHECKPOINT in scan.schema.names:
        raise OptionError(f"the table already has a column {CHECKPOINT}", hint="export it without --append")
    for column in scan.schema:
        if not is_plain(pa.schema([column])):
            raise OptionError(
                f"{style} has no type for column {column.name!r} ({column.type})",
                hint="choose --format jsonl, or leave it out with --states",
            )
    rows = _Rows(scan, append_as)
    partitions = [*([CHECKPOINT] if append_as is not None else []), *([KEY_GROUP] if by_key_group else [])]
    write = _write_delta if style == "delta" else _write_iceberg
    write(rows, target, partitions, append_as)
    return rows.count


@dataclass(slots=True)
class _Rows:
    """The rows of an export, which are counted while they are read. ``failure`` is the error that ended them."""

    scan: TableScan
    checkpoint: int | None
    schema: pa.Schema = field(init=False)
    count: int = 0
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self.schema = self._shown(pa.RecordBatch.from_pylist([], schema=self.scan.schema)).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self.scan.batches():
                self.count += batch.num_rows
                yield self._shown(batch)
        except BaseException as error:
            self.failure = error
            raise

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def _shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        batch = store_empty_structs(batch)
        if self.checkpoint is None:
            return batch
        column = pa.repeat(pa.scalar(self.checkpoint, pa.int64()), batch.num_rows)
        return batch.append_column(CHECKPOINT, column)


@contextmanager
def _telling(rows: _Rows, target: str, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Raise the error that ended the rows, or one of the library's as an error that names the target."""
    try:
        yield
    except StatetoolError:
        raise
    except (*errors, pa.ArrowException, NotImplementedError, TypeError, ValueError, OSError) as error:
        if rows.failure is not None:
            raise rows.failure from None
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise OptionError(f"{target} cannot be written: {first}", hint="choose another target or format") from error


def _write_delta(rows: _Rows, target: str, partitions: Sequence[str], checkpoint: int | None) -> None:
    try:
        from deltalake import DeltaTable, write_deltalake
        from deltalake.exceptions import DeltaError
    except ImportError as error:
        raise _missing("delta", "deltalake", error) from error
    for name in rows.schema.names:
        if _MAPPED & set(name):
            raise OptionError(
                f"Delta has no column {name!r} without column mapping",
                hint="pass --spark, with a session that maps columns, or leave it out with --states",
            )
    with _telling(rows, target, (DeltaError,)):
        if checkpoint is not None and DeltaTable.is_deltatable(target):
            if any(p.get(CHECKPOINT) == str(checkpoint) for p in DeltaTable(target).partitions()):
                raise _has_checkpoint(target, checkpoint)
            write_deltalake(target, rows.reader(), mode="append", partition_by=[*partitions])
            return
        if exists(target):
            raise target_exists(target)
        if not is_local(target):
            write_deltalake(target, rows.reader(), mode="error", partition_by=[*partitions])
            return
        with new_directory(target) as place:
            write_deltalake(place, rows.reader(), mode="error", partition_by=[*partitions])


def _write_iceberg(rows: _Rows, target: str, partitions: Sequence[str], checkpoint: int | None) -> None:
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import TableAlreadyExistsError
        from pyiceberg.expressions import EqualTo
    except ImportError as error:
        raise _missing("iceberg", "pyiceberg", error) from error
    catalog_name, dot, name = target.partition(".")
    if not dot or "." not in name or "/" in target:
        raise OptionError(
            f"{target!r} is not the name of a table of Iceberg",
            hint="write CATALOG.NAMESPACE.TABLE, with a catalog of pyiceberg's configuration",
        )
    with _telling(rows, target, _iceberg_errors()):
        catalog = load_catalog(catalog_name)
        catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        if catalog.table_exists(name):
            if checkpoint is None:
                raise _table_exists(target)
            table = catalog.load_table(name)
            if table.scan(row_filter=EqualTo(CHECKPOINT, checkpoint), limit=1).count():
                raise _has_checkpoint(target, checkpoint)
            started: Callable[[], Any] = table.transaction
        else:

            def started() -> Any:
                return catalog.create_table_transaction(name, rows.schema)

        try:
            with started() as transaction:
                if partitions and not transaction.table_metadata.spec().fields:
                    with transaction.update_spec() as spec:
                        for column in partitions:
                            spec.add_identity(column)
                if partitions:
                    for group in batch_groups(rows.batches()):
                        transaction.append(pa.Table.from_batches(group))
                else:
                    transaction.append(rows.reader())
        except TableAlreadyExistsError:
            raise _table_exists(target) from None


def _iceberg_errors() -> tuple[type[Exception], ...]:
    from pyiceberg import exceptions

    return tuple(
        found for found in vars(exceptions).values() if isinstance(found, type) and issubclass(found, Exception)
    )


def _has_checkpoint(target: str, checkpoint: int) -> TargetExistsError:
    return TargetExistsError(f"{target} already has rows of checkpoint {checkpoint}", hint="nothing was written")


def _table_exists(target: str) -> TargetExistsError:
    return TargetExistsError(
        f"{target} already exists", hint="choose a new table, or --append to that of other checkpoints"
    )


def _missing(style: str, package: str, error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(
        f"--format {style} without Spark needs {package}: {error}",
        hint=f"run: pip install 'statetool[{style}]', or pass --spark to a session that has the format",
    )
