"""Buffered elements: calls of asynchronous I/O, look-ups of SQL joins, and events before the watermark of complex event processing.

Runs in a task. Follows ``TableKeyedAsyncWaitOperator`` and ``StreamingDeltaJoinOperator``, which store a tuple per element of their queue:
the row of the input, and the last watermark before it. The delta join has a row for each input, one of which is empty, and the number of
the input.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.arrays import as_numpy, is_valid, spread_values
from statetool.columns.types import struct_columns
from statetool.columns.values import StateLayout
from statetool.errors import FormatError, UnsupportedError
from statetool.kernels.core.arrays import Int64s
from statetool.serializers.cep import LockableSerializer
from statetool.serializers.core.base import Serializer
from statetool.tables.kinds.keyed import Columns
from statetool.types import ListType, LogicalType, Scalar, StructType
from statetool.types.options import ReadOptions

_TIME = ("timestamp", Scalar("int64"))
#: Inputs of a join, by number.
_INPUTS = ("left", "right")


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


def event_rows(groups: Int64s, columns: Columns) -> tuple[int, Int64s, Columns]:
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


def lookup_columns(key: LogicalType, queue: StateLayout) -> list[tuple[str, LogicalType]]:
    """Return the columns of rows whose look-ups have not returned."""
    return [("key", key), *_row_columns(queue.element.logical), _TIME, ("watermark", Scalar("int64"))]


def _row_columns(element: LogicalType) -> list[tuple[str, LogicalType]]:
    assert isinstance(element, StructType)
    values = [f.type.fields[0].type for f in element.fields if isinstance(f.type, StructType)]
    if len(values) == 2:
        return [("value", values[0])]
    return [("input", Scalar("string")), *zip(_INPUTS, values, strict=False)]


def lookup_rows(groups: Int64s, columns: Columns, options: ReadOptions) -> tuple[int, Int64s, Columns]:
    """Return one row per element of a keyed queue in long form.

    Raises
    ------
    FormatError
        An element is of another input than the first two.
    """
    (_, key_type, key), _, (_, logical, tuples), *undecoded = columns
    assert isinstance(logical, StructType)
    parts = [
        {name: (kind, array) for name, kind, array in struct_columns(part, of_part, options)}
        for _, of_part, part in struct_columns(tuples, logical, options)
        if isinstance(of_part, StructType)
    ]
    shown: Columns = [("key", key_type, key)]
    time = parts[0]["timestamp"]
    if len(parts) == 2:
        shown.append(("value", *parts[0]["value"]))
    else:
        *_, (_, _, inputs) = struct_columns(tuples, logical, options)
        if wrong := [n for n in inputs.unique().to_pylist() if n not in (None, 0, 1)]:
            raise FormatError(
                f"{wrong[0]} is not an input of a join", hint="the table of the state shows what is there"
            )
        shown.append(("input", Scalar("string"), pa.array(_INPUTS).take(inputs)))
        for number, (name, part) in enumerate(zip(_INPUTS, parts, strict=False)):
            kind, rows = part["value"]
            shown.append((name, kind, pc.if_else(pc.equal(inputs, number), rows, None)))
        time = (time[0], pc.if_else(pc.equal(inputs, 0), time[1], parts[1]["timestamp"][1]))
    name, _ = _TIME
    shown += [(name, *time), ("watermark", *parts[-1]["timestamp"])]
    return len(tuples), groups, [*shown, *undecoded]
