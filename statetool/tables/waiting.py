"""Buffered elements: calls of asynchronous I/O, and events before the watermark of complex event processing. Runs in a task."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_numpy, is_valid
from statetool.columns.leaves import spread_values
from statetool.columns.types import struct_columns
from statetool.columns.values import StateLayout
from statetool.errors import FormatError, UnsupportedError
from statetool.kernels.arrays import Positions
from statetool.serializers.base import Serializer
from statetool.serializers.cep import LockableSerializer
from statetool.tables.keyed import Columns
from statetool.types import ListType, LogicalType, Scalar, StructType
from statetool.types.options import ReadOptions

_TIME = ("timestamp", Scalar("int64"))


def event_type(events: StateLayout) -> LogicalType:
    """Return the type of the events in a shared buffer.

    Raises
    ------
    UnsupportedError
        The end of an event cannot be determined.
    """
    if not isinstance(events.element, LockableSerializer):
        raise UnsupportedError(
            "the class of the events is not known", hint="declare it (statetool.declare), as statetool states says"
        ).at(state=events.name)
    return events.element.nested[0].logical


def event_columns(key: LogicalType, queue: StateLayout) -> list[tuple[str, LogicalType]]:
    """Return the columns of events before the watermark.

    Raises
    ------
    UnsupportedError
        The end of an event cannot be determined.
    """
    events = queue.element.logical
    if not isinstance(events, ListType):
        raise UnsupportedError(
            "the class of the events is not known", hint="declare it (statetool.declare), as statetool states says"
        ).at(state=queue.name)
    return [("key", key), _TIME, ("value", events.element)]


def event_rows(groups: Positions, columns: Columns) -> tuple[int, Positions, Columns]:
    """Return one row per event of a queue in long form (times as ``map_key``, lists of events). A null list is also a row.

    Raises
    ------
    FormatError
        The queue of this subtask does not hold lists.
    """
    (_, key_type, key), (_, _, time), (_, kind, lists), *undecoded = columns
    if not isinstance(kind, ListType):
        raise FormatError("no lists of events wait in this subtask", hint="the table of the queue shows what is there")
    offsets = as_numpy(lists.offsets).astype(np.int64)
    none = ~is_valid(lists)
    rows = np.repeat(np.arange(len(lists)), np.where(none, 1, np.diff(offsets)))
    values = spread_values(lists.values[int(offsets[0]) : int(offsets[-1])], ~none[rows])
    taken = pa.array(rows)
    name, number = _TIME
    shown: Columns = [
        ("key", key_type, key.take(taken)),
        (name, number, time.take(taken)),
        ("value", kind.element, values),
    ]
    return len(rows), groups[rows], [*shown, *((n, t, a.take(taken)) for n, t, a in undecoded)]


def call_columns(element: Serializer) -> list[tuple[str, LogicalType]]:
    """Return the columns of calls that have not returned. An element among them may also be a watermark (``element``)."""
    logical = element.logical
    assert isinstance(logical, StructType)
    return [(f.name, f.type) for f in logical.fields]


def call_rows(columns: Columns, options: ReadOptions) -> Columns:
    """Return the fields of stream elements as columns.

    Raises
    ------
    FormatError
        The state of this subtask does not hold stream elements.
    """
    (_, logical, elements), *undecoded = columns
    if not isinstance(logical, StructType):
        raise FormatError("no stream elements wait in this subtask", hint="the table of the state shows what is there")
    return [*struct_columns(elements, logical, options), *undecoded]
