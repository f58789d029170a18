"""Entries in the layout of the heap backend, rewritten as canonical ones, one by one.

A key group is an i4 number, then per state, in any order (a separate compressed stream if the header says so): u2 state id, i4 number of
entries, entries. An entry is namespace, key and state back to back (a timer: its element). A list is i4 n and its elements. A map is i4 n,
then key, bool is null, value. Follows ``CopyOnWriteStateMapSnapshot`` and ``StateTableByKeyGroupReaders``.

Entries have no length prefix, so their parts are found with their serializers, value by value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.errors import UnknownSerializerError
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.kernels.entries.layout import join_elements
from statetool.serializers.core.base import Serializer

_MAX_EMPTY_ELEMENTS: Final = 1 << 20


def read_entry(c: Cursor, key: Serializer, meta: StateMetaInfo) -> Iterator[tuple[bytes, bytes]]:
    """Yield an entry as canonical ones, without key group: a map as one per map entry, an empty list or map as none.

    Raises
    ------
    FormatError, UnknownSerializerError
    """
    if meta.backend_type == PRIORITY_QUEUE:
        yield take_bytes(c, meta.value), b""
        return
    assert meta.namespace is not None
    namespace = take_bytes(c, meta.namespace)
    key_bytes = take_bytes(c, key)
    yield from _values(c, meta, composite_key(key_bytes, namespace, key, meta.namespace))


def _values(c: Cursor, meta: StateMetaInfo, key: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the canonical entries of one state of one key: none for an empty list or map."""
    if meta.kind == "list" and meta.parts:
        elements = list_pieces(c, meta)
        if elements:
            yield key, join_elements(elements)
    elif meta.kind == "map" and meta.parts:
        for user_key, value in map_pieces(c, meta):
            yield key + user_key, value
    else:
        yield key, take_bytes(c, meta.value)


def composite_key(key: bytes, namespace: bytes, key_serializer: Serializer, namespace_serializer: Serializer) -> bytes:
    """Return the composite key without its key group, as ``CompositeKeySerializationUtils`` does."""
    if key_serializer.length < 0 and namespace_serializer.length < 0:
        return key + _marker(len(key)) + namespace + _marker(len(namespace))
    return key + namespace


def list_pieces(c: Cursor, meta: StateMetaInfo, *, framed: bool = False) -> list[bytes]:
    """Return the bytes of the elements of a list: i4 n, elements; ``framed`` lists fill the cursor."""
    n = c.count("list elements", at_least=0)
    elements = []
    for i in range(n):
        elements.append(take_bytes(c, meta.parts[0], last=framed and i == n - 1))
        if not elements[-1] and n > _MAX_EMPTY_ELEMENTS:
            raise c.fail(f"{n} list elements that take no bytes (at most {_MAX_EMPTY_ELEMENTS})")
    return elements


def map_pieces(c: Cursor, meta: StateMetaInfo, *, framed: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and canonical values (bool is null, value) of a map: i4 n, entries; ``framed`` maps fill the cursor."""
    n = c.count("map entries")
    for i in range(n):
        user_key = take_bytes(c, meta.parts[0])
        null = c.bool()
        yield user_key, b"\x01" if null else b"\x00" + take_bytes(c, meta.parts[1], last=framed and i == n - 1)


def take_bytes(c: Cursor, serializer: Serializer, *, last: bool = False) -> bytes:
    """Return the bytes of the next value; the ``last`` value of a frame consists of all remaining bytes.

    Raises
    ------
    UnknownSerializerError
        The end of the value cannot be found.
    """
    start = c.pos
    if last:
        c.pos = c.end
    elif serializer.needs_frame:
        raise UnknownSerializerError(
            f"the end of a value of {serializer.type_name} cannot be found in the layout of the heap backend",
            hint=serializer.missing_declaration_hint
            or "take a canonical savepoint of the job, in which every value has its own frame",
        ).at(offset=c.offset)
    else:
        serializer.skip(c)
    return bytes(c.data[start : c.pos])


def _marker(length: int) -> bytes:
    """Return the length marker that follows ambiguous keys: little-endian base 256."""
    return length.to_bytes(max(1, (length.bit_length() + 7) // 8), "little")
