"""Locations of stored data, for tests that inspect bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import statetool as st
from statetool.entries.database import StoredDatabase
from statetool.entries.form import ALL_ENTRIES
from statetool.entries.streams import StoredStream
from statetool.formats.compression import read_chunks
from statetool.formats.key_groups import prefix_size
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.splits import KeyedSplit, Split


def streams(operator: OperatorInventory) -> list[StoredStream]:
    """Return the keyed streams of an operator, by key groups."""
    return [s for s in operator.keyed.managed if isinstance(s, StoredStream)]


def databases(operator: OperatorInventory) -> list[StoredDatabase]:
    """Return the databases of an operator, by key groups."""
    return [s for s in operator.keyed.managed if isinstance(s, StoredDatabase)]


def groups_of(splits: Iterable[Split]) -> list[int]:
    """Return the key groups that splits of a keyed table read."""
    return [number for s in splits if isinstance(s, KeyedSplit) for number in s.source.group_sizes()]


def stored_entries(operator: st.Operator) -> Counter[tuple[str, int, bytes, bytes]]:
    """Return all keyed entries as bytes."""
    found: Counter[tuple[str, int, bytes, bytes]] = Counter()
    for source in operator.inventory.keyed.sources():
        names = [m.name for m in source.header().states]
        for batch in source.batches(ALL_ENTRIES):
            raw = bytes(batch.data)
            for i in range(len(batch)):
                key, value = raw[batch.key[i] : batch.key_end[i]], raw[batch.value[i] : batch.value_end[i]]
                found[(names[batch.state[i]], int(batch.group[i]), key, value)] += 1
    return found


def records(operator: OperatorInventory) -> Iterator[tuple[int, str, bytes, bytes]]:
    """Yield ``(key group, state, key without prefix, value)``, read record by record without kernels."""
    prefix = prefix_size(operator.state.max_parallelism)
    for part in streams(operator):
        header = part.header()
        with part.stream.open() as f:
            for r in sorted(part.ranges(), key=lambda r: r.number):
                number, raw = r.number, bytes(f.read_at(r.offset, r.size_bytes))
                if header.compressed:
                    raw = b"".join(c.data for c in read_chunks(memoryview(raw), base=0))
                at, seen = 0, []
                while raw and raw[at : at + 2] != b"\xff\xff":
                    state = header.states[int.from_bytes(raw[at : at + 2], "big")].name
                    assert state not in seen
                    seen.append(state)
                    at, last = at + 2, False
                    while not last:
                        n = int.from_bytes(raw[at : at + 4], "big")
                        key = bytes([raw[at + 4] & 0x7F]) + raw[at + 5 : at + 4 + n]
                        last = raw[at + 4] >= 0x80
                        at += 4 + n
                        n = int.from_bytes(raw[at : at + 4], "big")
                        assert int.from_bytes(key[:prefix], "big") == number
                        yield number, state, key[prefix:], raw[at + 4 : at + 4 + n]
                        at += 4 + n
                assert len(raw) in (0, at + 2)


def header_bytes(operator: OperatorInventory) -> set[bytes]:
    return {part.identity() for part in streams(operator)}


def stream_bytes(operator: OperatorInventory) -> list[bytes]:
    """Return all bytes of an operator's streams, in the order of subtasks and slots."""
    found = [s.stream for s in streams(operator)] + [p.stream for p in operator.elements.streams]
    contents = []
    for stream in found:
        with stream.open() as f:
            contents.append(bytes(f.read_at(0, stream.size_bytes)))
    return contents
