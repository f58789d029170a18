"""Tables of operators as lazy frames of Polars."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from statetool.errors import MissingDependencyError
from statetool.tables.sql.conditions import Condition, polars_condition
from statetool.tables.sql.source import TableSource


def lazy_frame(source: TableSource) -> Any:
    """Return a lazy frame that reads a table when it is collected, batch by batch, and only the columns and keys that a query needs.

    Raises
    ------
    MissingDependencyError
        Polars is not installed.
    """
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ImportError as error:
        raise MissingDependencyError(
            f"to_polars() needs Polars: {error}", hint="run: pip install 'statetool[polars]'"
        ) from error

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        names = source.schema.names if columns is None else columns
        used = [] if predicate is None else predicate.meta.root_names()
        needed = [*names, *(name for name in dict.fromkeys(used) if name not in names)]
        left = n_rows
        for batch in source.scan(needed, _condition(predicate)).batches():
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([batch])))
            yield (frame if predicate is None else frame.filter(predicate)).select(names)
            if left == 0:
                return

    schema = pl.DataFrame(pl.from_arrow(source.schema.empty_table())).schema
    return register_io_source(read, schema=schema)


def _condition(predicate: Any) -> Condition | None:
    return None if predicate is None else polars_condition(predicate)
