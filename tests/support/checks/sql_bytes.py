"""Check of the bytes of savepoints of SQL jobs: every key and value is written back unchanged, every key is in its key group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import statetool
from statetool.columns.values import StateLayout
from statetool.formats.key_groups import key_group_for
from statetool.formats.keyed.header import KeyedHeader
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.types import Scalar


def stored_keys_and_values(op: statetool.Operator) -> Iterator[tuple[KeyedHeader, int, int, bytes, bytes]]:
    """Yield header, state, key group, composite key and value of every entry."""
    for source in op.inventory.keyed.sources():
        header = source.header()
        for batch in source.batches():
            for i in range(len(batch)):
                key = bytes(batch.data[batch.key[i] : batch.key_end[i]])
                value = bytes(batch.data[batch.value[i] : batch.value_end[i]])
                yield header, int(batch.state[i]), int(batch.group[i]), key, value


def _written_back(s: Serializer, raw: bytes, *, whole: bool = True) -> int:
    """Check that a value is encoded back to the same bytes, and return its size."""
    c = Cursor(raw)
    out = Output()
    s.encode(out, s.decode(c))
    assert bytes(out) == raw[: c.pos]
    assert not whole or c.left == 0
    return c.pos


def check_bytes(path: Path) -> int:
    """Check every entry of a savepoint and return the number of entries."""
    entries = 0
    for op in statetool.load(str(path)).operators.values():
        for header, state, group, key, value in stored_keys_and_values(op):
            entries += 1
            meta = header.states[state]
            if meta.kind == "timers":
                _written_back(meta.value, key)
                continue
            size = _written_back(header.key, key, whole=False)
            hash_code = dict(header.key.key_forms(header.key.decode(Cursor(key))))[key[:size]]
            assert hash_code is not None
            assert key_group_for(hash_code, op.max_parallelism) == group
            if meta.kind == "value":
                _written_back(meta.value, value)
            elif meta.kind == "map" and meta.namespace is not None and meta.namespace.logical == Scalar("null"):
                shape = StateLayout(meta)
                assert shape.user_key is not None
                _written_back(shape.user_key, key[size + 1 :])
                if value[0] == 0:
                    _written_back(shape.element, value[1:])
    return entries
