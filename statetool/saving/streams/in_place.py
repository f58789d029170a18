"""Removal of entries from keyed state without writing all of it again."""

from __future__ import annotations

from statetool.saving.streams.databases import DatabaseStreams, database_streams
from statetool.saving.streams.filtered import FilteredStreams, filtered_streams
from statetool.saving.streams.filters import EntryFilter
from statetool.snapshot.operator import OperatorInventory


def streams_in_place(
    operator: OperatorInventory, entry_filter: EntryFilter, inline_bytes: int
) -> FilteredStreams | DatabaseStreams | None:
    """Plan to filter an operator's keyed state in its stored form; ``None`` if that form or the filter does not allow it."""
    streams = filtered_streams(operator, entry_filter, inline_bytes)
    return database_streams(operator, entry_filter, inline_bytes) if streams is None else streams
