"""One header for the streams of all subtasks: each subtask of a job may have registered its states in another order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from statetool.errors import StatetoolError, UnsupportedError
from statetool.formats.keyed.described import learn_header
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader, read_keyed_header, write_keyed_header
from statetool.formats.state_meta import StateMeta, write_m6
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.snapshot import write_proxied


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedHeader:
    """The header that new streams get.

    Attributes
    ----------
    raw
        Its bytes: those of the old streams where they all agree.
    header
        The same, parsed.
    state_ids
        By the bytes of an old header: the new id of each of its states, -1 for those that are left out.
    """

    raw: bytes
    header: KeyedHeader
    state_ids: Mapping[bytes, tuple[int, ...]]


def join_headers(headers: Sequence[tuple[bytes, KeyedHeader]], *, without: Collection[str] = ()) -> JoinedHeader:
    """Return the header of all states of some streams, serializer snapshots byte for byte.

    Where subtasks have met different subclasses of a POJO, all of them are described.

    Parameters
    ----------
    headers
        Bytes and content of each stream's header; at least one.
    without
        Names of states to leave out.

    Raises
    ------
    UnsupportedError
        Two streams describe the key or one state differently.
    """
    first_raw, first = headers[0]
    for _, header in headers[1:]:
        learn_header(first, header)
    for _, header in headers[1:]:
        learn_header(header, first)
    states: dict[str, StateMeta] = {}
    described: dict[str, bytes] = {}
    key = _key_bytes(first)
    for _, header in headers:
        if _key_bytes(header) != key:
            raise UnsupportedError("two subtasks describe the key differently", hint=_HINT)
        for meta in header.states:
            if meta.name in without:
                continue
            found = _state_bytes(meta)
            states.setdefault(meta.name, meta)
            if described.setdefault(meta.name, found) != found:
                raise UnsupportedError("two subtasks describe this state differently", hint=_HINT).at(state=meta.name)
    ids = {name: i for i, name in enumerate(states)}
    joined = replace(first, compressed=any(h.compressed for _, h in headers), states=tuple(states.values()))
    same = len(headers) == 1 and joined == first and first.version == CURRENT_VERSION
    raw = first_raw if same else written_header(joined)
    return JoinedHeader(
        raw=raw,
        header=replace(joined, version=CURRENT_VERSION, size_bytes=len(raw)),
        state_ids={raw: tuple(ids.get(m.name, -1) for m in header.states) for raw, header in headers},
    )


def written_header(header: KeyedHeader) -> bytes:
    """Return the bytes of a header that cannot be taken as it was read, and make sure that they can be read.

    Raises
    ------
    UnsupportedError
        A serializer has no form that a header of today can hold (of Flink 1.6 and older).
    """
    raw = write_keyed_header(header)
    try:
        again = read_keyed_header(Cursor(raw), end=len(raw))
    except StatetoolError as error:
        raise UnsupportedError(
            f"a serializer snapshot of Flink 1.6 or older that cannot be written into a new header: {error}",
            hint="restore the job with Flink 1.7 to 1.16 and take a savepoint there",
        ) from error
    if [m.name for m in again.states] != [m.name for m in header.states]:
        raise UnsupportedError("the new header does not read as it was written", hint=_HINT)
    return raw


_HINT = "restore the job with its present parallelism and take a new savepoint, in which all subtasks agree"


def _key_bytes(header: KeyedHeader) -> bytes:
    out = Output()
    write_proxied(out, header.key)
    return bytes(out)


def _state_bytes(meta: StateMeta) -> bytes:
    out = Output()
    write_m6(out, meta)
    return bytes(out)
