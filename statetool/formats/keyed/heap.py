"""Key groups in the layout of the heap backend, rewritten as canonical ones.

Per key group: i4 its number; for each state, in any order (its own compressed stream where the header says so): u2 state id, i4
number of entries, entries. An entry is namespace, key and state back to back (a timer: its element); a list is i4 n and its
elements, a map i4 n and key, bool is null, value. Follows ``CopyOnWriteStateMapSnapshot`` and ``StateTableByKeyGroupReaders``.

Nothing frames an entry, so its parts are found with their serializers, value by value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from statetool.errors import FormatError, StatetoolError, UnknownSerializerError
from statetool.formats.compression import read_chunks
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMeta
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.base import Serializer


def heap_to_canonical(raw: memoryview, header: KeyedHeader, *, key_group: int, prefix: int, base: int) -> bytes:
    """Return a heap key group as the bytes of a canonical one, empty where it has no entries.

    Raises
    ------
    FormatError
        Damaged; offsets count uncompressed bytes behind the key group's number.
    UnknownSerializerError
        The end of a key or value cannot be found.
    """
    if int.from_bytes(raw[:4], "big") != key_group or len(raw) < 4:
        raise FormatError(f"expected the number of key group {key_group}").at(offset=base)
    body: bytes | memoryview = raw[4:]
    if header.compressed:
        body = b"".join(chunk.data for chunk in read_chunks(raw[4:], base=base + 4)) if len(raw) > 4 else b""
    c = Cursor(body, base=base + 4)
    head = key_group.to_bytes(prefix, "big")
    found: dict[int, list[tuple[bytes, bytes]]] = {}
    while c.left:
        state_id = c.u2()
        if state_id >= len(header.states) or state_id in found:
            raise c.fail(f"state id {state_id}, which the header does not have or which came before", pos=c.pos - 2)
        meta = header.states[state_id]
        try:
            found[state_id] = list(_entries(c, header.key, meta, head))
        except StatetoolError as error:
            raise error.at(state=meta.name, key_group=key_group) from None
    return canonical_group(found)


def _entries(c: Cursor, key: Serializer, meta: StateMeta, head: bytes) -> Iterator[tuple[bytes, bytes]]:
    for _ in range(c.count("entries")):
        if meta.backend_type == PRIORITY_QUEUE:
            yield head + taken(c, meta.value), b""
            continue
        assert meta.namespace is not None
        namespace = taken(c, meta.namespace)
        own = taken(c, key)
        yield from _values(c, meta, head + composite_key(own, namespace, key, meta.namespace))


def _values(c: Cursor, meta: StateMeta, key: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the canonical entries of one state of one key: none for an empty list or map."""
    if meta.kind == "list" and meta.parts:
        elements = list_pieces(c, meta)
        if elements:
            yield key, b",".join(elements)
    elif meta.kind == "map" and meta.parts:
        for user_key, value in map_pieces(c, meta):
            yield key + user_key, value
    else:
        yield key, taken(c, meta.value)


def composite_key(key: bytes, namespace: bytes, key_serializer: Serializer, namespace_serializer: Serializer) -> bytes:
    """Return the composite key, without its key group, of ``CompositeKeySerializationUtils``."""
    if key_serializer.length < 0 and namespace_serializer.length < 0:
        return key + _marker(len(key)) + namespace + _marker(len(namespace))
    return key + namespace


def list_pieces(c: Cursor, meta: StateMeta, *, framed: bool = False) -> list[bytes]:
    """Return the bytes of the elements of a list: i4 n, elements; ``framed`` lists fill the cursor."""
    n = c.count("list elements", at_least=0)
    return [taken(c, meta.parts[0], last=framed and i == n - 1) for i in range(n)]


def map_pieces(c: Cursor, meta: StateMeta, *, framed: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and canonical values (bool is null, value) of a map: i4 n, entries; ``framed`` maps fill the cursor."""
    n = c.count("map entries")
    for i in range(n):
        user_key = taken(c, meta.parts[0])
        null = c.bool()
        yield user_key, b"\x01" if null else b"\x00" + taken(c, meta.parts[1], last=framed and i == n - 1)


def taken(c: Cursor, serializer: Serializer, *, last: bool = False) -> bytes:
    """Return the bytes of the next value; the ``last`` one of a frame is what is left of it, whatever it is.

    Raises
    ------
    UnknownSerializerError
        The end of the value cannot be found.
    """
    start = c.pos
    if last:
        c.pos = c.end
    elif serializer.framed_only:
        raise UnknownSerializerError(
            f"the end of a value of {serializer.type_name} cannot be found in the layout of the heap backend",
            hint=serializer.what_is_missing
            or "take a canonical savepoint of the job, in which every value has a frame of its own",
        ).at(offset=c.offset)
    else:
        serializer.skip(c)
    return bytes(c.data[start : c.pos])


def _marker(length: int) -> bytes:
    """Return the length behind ambiguous keys: little-endian base 256."""
    return length.to_bytes(max(1, (length.bit_length() + 7) // 8), "little")


def canonical_group(found: Mapping[int, Sequence[tuple[bytes, bytes]]]) -> bytes:
    """Return entries by state id, keys with their key group, as the bytes of a canonical key group."""
    out = Output()
    for state_id, entries in found.items():
        for i, (key, value) in enumerate(entries):
            if i == 0:
                out.u2(state_id)
            last = i == len(entries) - 1
            out.i4(len(key))
            out.u1(key[0] | (0x80 if last else 0))
            out += key[1:]
            out.bytes4(value)
    if out:
        out.u2(0xFFFF)
    return bytes(out)
