"""Changelog changes of data, rewritten as entries of canonical key groups with operations as values.

A delta is an entry. Its key is the composite key (of the map entry if the change is about one). Its value is one byte and an argument:

- 0 put: the new value.
- 1 remove.
- 2 append: list elements joined by commas.
- 3 clear: removes all entries of the map.
- 4 merge: the composite keys of the namespaces whose lists or values are merged into this key, each with an i4 length before it.

A change of data has, after i1 operation and i2 state id:

- Keyed state: key, namespace; then 0 clear; 1 set and 2 set internal: value; 3 add: list to append or map to put; 4 merge: target
  namespace, i4 n, namespaces; 5 add element: an element (map: key, value); 6 add or update: map key, value; 7 remove: map key.
- Timers: 5 add: i4 n, timers; 7 remove: timer.

Follows ``KvStateChangeLoggerImpl``, ``PriorityQueueStateChangeLoggerImpl`` and the ``StateChangeApplier`` of each kind.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from statetool.errors import FormatError, StatetoolError
from statetool.formats.heap.layout import composite_key, list_pieces, map_pieces, take_bytes
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.entries.delta_codes import APPEND, CLEAR, MERGE, OP_ADD_ELEMENT, OP_REMOVE_ELEMENT, PUT, REMOVE
from statetool.kernels.entries.layout import join_elements

Delta = tuple[int, bytes, bytes]


def deltas_of(
    c: Cursor, key_group: int, header: KeyedHeader, ids: Mapping[int, int], wanted: Container[int]
) -> Iterator[Delta]:
    """Yield state index, composite key and value of the deltas of one change.

    Parameters
    ----------
    c
        The complete change.
    header
        Header with the states.
    ids
        Index of a state in the header by its id in the log.
    wanted
        Indexes of the states to read; changes of others are skipped.

    Raises
    ------
    FormatError, DecodeError
        Damaged; with offset, state and key group.
    UnknownSerializerError
        The end of a key or value cannot be found.
    """
    state = None
    try:
        operation = c.i1()
        state_id = c.i2()
        if state_id not in ids:
            raise c.fail(f"state id {state_id}, which the change log does not describe before", pos=c.pos - 2)
        number = ids[state_id]
        if number not in wanted:
            return
        meta = header.states[number]
        state = meta.name
        read_deltas = _timer_deltas if meta.backend_type == PRIORITY_QUEUE else _value_deltas
        for key, value in read_deltas(c, operation, header, meta):
            yield number, key, value
        c.expect_end("a change")
    except StatetoolError as error:
        raise error.at(state=state, key_group=key_group) from None


def _timer_deltas(c: Cursor, operation: int, header: KeyedHeader, meta: StateMetaInfo) -> Iterator[tuple[bytes, bytes]]:
    if operation == OP_ADD_ELEMENT:
        for _ in range(c.count("timers")):
            yield take_bytes(c, meta.value), bytes([PUT])
    elif operation == OP_REMOVE_ELEMENT:
        yield take_bytes(c, meta.value), bytes([REMOVE])
    else:
        raise _unknown(c, operation, meta)


def _value_deltas(c: Cursor, operation: int, header: KeyedHeader, meta: StateMetaInfo) -> Iterator[tuple[bytes, bytes]]:
    assert meta.namespace is not None
    key_bytes = take_bytes(c, header.key)
    key = composite_key(key_bytes, take_bytes(c, meta.namespace), header.key, meta.namespace)
    is_map, is_list = meta.kind == "map" and bool(meta.parts), meta.kind == "list" and bool(meta.parts)
    match operation:
        case 0:  # clear
            yield key, bytes([CLEAR if is_map else REMOVE])
        case 1 | 2 if is_list:  # set
            elements = list_pieces(c, meta, framed=True)
            yield key, bytes([PUT]) + join_elements(elements) if elements else bytes([REMOVE])
        case 1 | 2 if not is_map:
            yield key, bytes([PUT]) + take_bytes(c, meta.value, last=True)
        case 3 if is_list:  # add
            if elements := list_pieces(c, meta, framed=True):
                yield key, bytes([APPEND]) + join_elements(elements)
        case 3 if is_map:
            for user_key, value in map_pieces(c, meta, framed=True):
                yield key + user_key, bytes([PUT]) + value
        case 4 if not is_map:
            yield from _merges(c, key_bytes, header, meta)
        case 5 if is_list:  # add element
            yield key, bytes([APPEND]) + take_bytes(c, meta.parts[0], last=True)
        case 5 | 6 if is_map:
            user_key = take_bytes(c, meta.parts[0])
            yield key + user_key, bytes([PUT, 0]) + take_bytes(c, meta.parts[1], last=True)
        case 7 if is_map:
            yield key + take_bytes(c, meta.parts[0], last=True), bytes([REMOVE])
        case _:
            raise _unknown(c, operation, meta)


def _merges(c: Cursor, key_bytes: bytes, header: KeyedHeader, meta: StateMetaInfo) -> Iterator[tuple[bytes, bytes]]:
    assert meta.namespace is not None
    target = composite_key(key_bytes, take_bytes(c, meta.namespace), header.key, meta.namespace)
    out = Output()
    out.u1(MERGE)
    for _ in range(c.count("namespaces")):
        out.bytes4(composite_key(key_bytes, take_bytes(c, meta.namespace), header.key, meta.namespace))
    yield target, bytes(out)


def _unknown(c: Cursor, operation: int, meta: StateMetaInfo) -> FormatError:
    return c.fail(f"operation {operation} on {meta.kind} state in the change log", pos=c.pos)


__all__ = ["Delta", "deltas_of"]
