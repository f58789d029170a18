"""Conversion of tables to pandas DataFrames with pandas' nullable types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statetool.errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd


def pandas_frame(table: pa.Table) -> pd.DataFrame:
    """Return a DataFrame in which integers and booleans beside nulls keep their types, lists are lists, and maps and structs are dicts.

    A map that has a key twice, or keys that Python cannot hash, stays a list of pairs, so nothing is lost.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError(f"to_pandas() needs pandas: {error}", hint="pip install 'pandas<3'") from error

    kinds: dict[pa.DataType, Any] = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type):
            plain = _plain(column.type)
            columns[name] = pd.Series([plain(v) for v in column.to_pylist()], dtype=object)
        else:
            columns[name] = column.to_pandas(types_mapper=kinds.get)
    return pd.DataFrame(columns)


def _plain(kind: pa.DataType) -> Callable[[Any], Any]:
    """Return a function that converts the maps in a value of ``to_pylist`` to dicts."""
    if pa.types.is_map(kind):
        key, value = _plain(kind.key_type), _plain(kind.item_type)
        return lambda pairs: None if pairs is None else _mapping([(key(k), value(v)) for k, v in pairs])
    if pa.types.is_struct(kind):
        fields = {f.name: _plain(f.type) for f in kind}
        return lambda struct: None if struct is None else {n: plain(struct[n]) for n, plain in fields.items()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        element = _plain(kind.value_type)
        return lambda values: None if values is None else [element(v) for v in values]
    return lambda value: value


def _mapping(pairs: list[tuple[Any, Any]]) -> dict[Any, Any] | list[tuple[Any, Any]]:
    try:
        mapping = dict(pairs)
    except TypeError:
        return pairs
    return mapping if len(mapping) == len(pairs) else pairs
