"""Keyed state of a snapshot, entry by entry."""

from __future__ import annotations

from typing import TypeAlias

import statetool
from statetool.entries.form import ALL_ENTRIES
from tests.support.corpora.kryo_classes import CLASSES

#: Operator, state, key group and key: value.
Content: TypeAlias = dict[tuple[str, str, int, bytes], bytes]


def content_of(snapshot: str, *, raw: bool = True) -> Content:
    """All entries of a snapshot, each once, in the key groups of its subtask; those of raw timers too."""
    found: Content = {}
    for operator in statetool.load(snapshot, declarations=CLASSES)._inventory.operators.values():
        for source in operator.keyed.sources(raw=raw):
            header = source.header()
            for batch in source.batches(ALL_ENTRIES):
                columns = (batch.state, batch.group, batch.key, batch.key_end, batch.value, batch.value_end)
                for state, group, key, key_end, value, value_end in zip(*(c.tolist() for c in columns), strict=True):
                    place = operator.state.operator_id, header.states[state].name, group, bytes(batch.data[key:key_end])
                    assert place not in found
                    found[place] = bytes(batch.data[value:value_end])
    return found
