"""Splits of operator state at element boundaries, and of in-flight data at stream boundaries."""

from __future__ import annotations

from typing import NamedTuple

from statetool.entries.form import TARGET_BYTES
from statetool.errors import FormatError
from statetool.formats.channel_state import Channel, Side
from statetool.formats.keyed.ranges import even_batches_of
from statetool.formats.keyed.subclasses import may_differ
from statetool.formats.stream import Stream
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.elements import ElementSplit
from statetool.tables.kinds.in_flight import InFlightSplit
from statetool.tables.kinds.kind import ElementKind, TableSpec


class _Element(NamedTuple):
    """The bounds of an element in its stream."""

    start: int
    end: int

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


def plan_elements(
    operator: OperatorInventory, spec: TableSpec, kind: ElementKind, *, one_copy: bool, target_bytes: int = TARGET_BYTES
) -> list[ElementSplit]:
    """Plan the splits of an operator state at element boundaries. With ``one_copy``, only the first subtask is read.

    Raises
    ------
    FormatError
        An offset is outside of the stream.
    """
    (name,) = spec.states
    elements = operator.elements
    descriptions = elements.descriptions if may_differ([elements.states[name]]) else ()
    splits = []
    for subtask_stream in elements.streams:
        offsets = subtask_stream.offsets.get(name)
        if not offsets:
            continue
        try:
            end_of = subtask_stream.ends()
        except FormatError as error:
            raise error.at(operator=operator.label, state=name) from None
        for run in even_batches_of([_Element(o, end_of[o]) for o in offsets], limit=target_bytes):
            splits.append(
                ElementSplit(
                    spec=spec,
                    kind=kind,
                    stream=subtask_stream.stream,
                    header_bytes=min(end_of),
                    starts=tuple(e.start for e in run),
                    ends=tuple(e.end for e in run),
                    subtask=subtask_stream.subtask,
                    types=operator.types,
                    descriptions=descriptions,
                )
            )
        if one_copy:
            break
    return splits


def plan_in_flight(operator: OperatorInventory, spec: TableSpec, side: Side, record: bytes) -> list[InFlightSplit]:
    """Plan the splits of the in-flight data at an operator's inputs or outputs, by subtask and stream."""
    channels_by_stream: dict[tuple[int, Stream], list[Channel]] = {}
    for channel in operator.channels:
        if channel.side == side:
            channels_by_stream.setdefault((channel.subtask, channel.stream), []).append(channel)
    return [
        InFlightSplit(
            spec=spec, stream=stream, channels=tuple(channels), record=record, subtask=subtask, types=operator.types
        )
        for (subtask, stream), channels in channels_by_stream.items()
    ]
