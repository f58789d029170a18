"""Rows in states of SQL operators that were made by generated projections: sort keys, unique keys.

Projections reserve space for the nulls of wide decimals and precise timestamps; other rows do not. Operators look up such rows by their
bytes, so Flink would not find rows written differently. Serializers do not distinguish the two, but state names do, as Flink's operators
assign them (``org.apache.flink.table.runtime.operators``: ``rank``, ``over``, ``join``, ``window.rank``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer
from statetool.serializers.naming import Path, rows_of, with_part
from statetool.serializers.sql.rowdata import BinaryRowSerializer, RowDataSerializer

#: States whose rows are all sort keys.
_SORT_KEYS: Final = frozenset({"sorted-map", "sortedListState"})
#: Maps keyed by sort keys or unique keys.
_BY_KEY: Final = frozenset(
    {"accMapState", "data-state", "data-state-with-append", "data-state-with-update", "window_rank"}
)
#: Maps keyed by unique keys if their values are rows as well; otherwise the rows themselves are the keys.
_BY_UNIQUE_KEY: Final = ("left-records", "right-records", "multi-join-input-")
_USER_KEY: Final = "USER_KEY_SERIALIZER"
_VALUE: Final = "VALUE_SERIALIZER"


def with_projections(meta: StateMetaInfo) -> StateMetaInfo:
    """Return a state whose sort keys and unique keys are written like those of Flink's projections."""
    if meta.name not in _SORT_KEYS | _BY_KEY and not meta.name.startswith(_BY_UNIQUE_KEY):
        return meta
    slots = [slot for slot in (_USER_KEY, _VALUE) if slot in meta.serializers]
    rows = {slot: list(rows_of(meta.serializers[slot])) for slot in slots}
    if meta.name.startswith(_BY_UNIQUE_KEY) and sum(map(len, rows.values())) < 2:
        return meta
    serializers = dict(meta.serializers)
    for slot in slots:
        for path, _ in rows[slot]:
            if meta.name in _SORT_KEYS or slot == _USER_KEY or path[:1] == ("key",):
                serializers[slot] = _project(serializers[slot], path)
    return replace(meta, serializers=serializers)


def _project(serializer: Serializer, path: Path) -> Serializer:
    row = serializer
    for step in path:
        row = dict(row.children())[step]
    if not isinstance(row, RowDataSerializer | BinaryRowSerializer):
        return serializer
    return with_part(serializer, path, row.as_projection())
