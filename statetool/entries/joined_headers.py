"""Merging of the headers of all subtasks: each subtask of a job may have registered its states in another order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from statetool.errors import StatetoolError, UnknownSerializerError, UnsupportedError
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader, read_keyed_header, write_keyed_header
from statetool.formats.keyed.subclasses import learn_header
from statetool.formats.state_meta import StateMetaInfo, write_meta_v6
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import write_proxied
from statetool.types.declared import TypeContext

_HINT: Final = "restore the job with its present parallelism and take a new savepoint, in which all subtasks agree"


def join_headers(
    headers: Sequence[KeyedHeader],
    types: TypeContext,
    *,
    without: Collection[str] = (),
    of: str = "two subtasks",
    hint: str = _HINT,
) -> KeyedHeader:
    """Return a header of the current version with all states of the headers, serializer snapshots byte for byte.

    If subtasks have seen different subclasses of a POJO, the result has all of them.

    Parameters
    ----------
    headers
        At least one; each gets the subclasses of the others.
    without
        Names of states to leave out.
    of, hint
        Words for the errors about different metadata.

    Raises
    ------
    UnsupportedError
        Two headers have different metadata for the key or a state, one has a serializer of Flink 1.6 or older, which no current header can
        store, or the key type is unknown.
    """
    first = headers[0]
    for header in headers[1:]:
        learn_header(first, header)
    for header in headers[1:]:
        learn_header(header, first)
    states: dict[str, StateMetaInfo] = {}
    described: dict[str, bytes] = {}
    key = _key_bytes(first.key)
    for header in headers:
        if _key_bytes(header.key) != key:
            names = [h.key.type_name for h in (first, header)]
            if names[0] != names[1]:
                raise UnsupportedError(f"{of} have different key types: {names[0]} and {names[1]}")
            raise UnsupportedError(f"{of} describe the key differently", hint=hint)
        for meta in header.states:
            if meta.name in without:
                continue
            raw = meta_bytes(meta)
            states.setdefault(meta.name, meta)
            if described.setdefault(meta.name, raw) != raw:
                raise UnsupportedError(f"{of} describe this state differently", hint=hint).at(state=meta.name)
    compressed = any(h.compressed for h in headers)
    joined = replace(first, compressed=compressed, states=tuple(states.values()), stored_ids=None)
    return replace(joined, version=CURRENT_VERSION, size_bytes=len(_write(joined, types)))


def _write(header: KeyedHeader, types: TypeContext) -> bytes:
    """Return the bytes of a header after a successful read-back."""
    raw = write_keyed_header(header)
    try:
        reread = read_keyed_header(Cursor(raw), types, end=len(raw))
    except StatetoolError as error:
        raise UnsupportedError(
            f"a serializer snapshot of Flink 1.6 or older that cannot be written into a new header: {error}",
            hint="restore the job with Flink 1.7 to 1.16 and take a savepoint there",
        ) from error
    if [m.name for m in reread.states] != [m.name for m in header.states]:
        raise UnsupportedError("the new header is not read back unchanged", hint=_HINT)
    return raw


def _key_bytes(key: Serializer) -> bytes:
    out = Output()
    try:
        write_proxied(out, key)
    except UnknownSerializerError as error:
        raise UnsupportedError(error.message, hint=error.hint) from error
    return bytes(out)


def meta_bytes(meta: StateMetaInfo) -> bytes:
    """Return the metadata of a state in the layout of headers."""
    out = Output()
    write_meta_v6(out, meta)
    return bytes(out)
