"""What the change log of a subtask holds: its change sets, and the header of what it describes together with what lies below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from statetool.formats.keyed.change_sets import (
    METADATA_GROUP,
    ChangeFiles,
    ChangeSet,
    described,
    first_changes,
    merged_states,
)
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader
from statetool.formats.keyed.key_types import Sample, find_key_type
from statetool.formats.metadata.handles import (
    ChangelogHandle,
    ChangesHandle,
    InMemoryChangesHandle,
    KeyedHandle,
    StreamHandle,
)
from statetool.formats.state_meta import StateMeta
from statetool.formats.stream import Stream
from statetool.io.output import Output
from statetool.serializers.base import Serializer
from statetool.serializers.runtime import TimerSerializer

Resolve = Callable[[StreamHandle], "Stream | None"]
_SAMPLE_CHANGES: Final = 500


def change_sets(handle: ChangelogHandle, resolve: Resolve, metadata_file: str) -> tuple[ChangeSet, ...]:
    """Return the change sets of a handle in the order in which they are applied."""
    return tuple(s for changes in handle.changes for s in _sets_of(changes, resolve, metadata_file))


def _sets_of(handle: KeyedHandle, resolve: Resolve, metadata_file: str) -> Iterable[ChangeSet]:
    match handle:
        case ChangesHandle(streams=streams):
            for offset, stream in streams:
                resolved = resolve(stream)
                if resolved is not None:
                    yield ChangeSet(stream=resolved, offset=offset)
        case InMemoryChangesHandle(changes=changes):
            # As a set in a file would be: descriptions of states first; each change a group of its own.
            out = Output()
            out.bool(False)
            out.i4(len(changes))
            for key_group, change in sorted(changes, key=lambda c: c[0] >= 0):
                out.i4(1)
                out.i4(key_group)
                out.bytes4(change)
            inline = Stream(file=metadata_file, start=0, size_bytes=len(out), inline=bytes(out))
            yield ChangeSet(stream=inline, offset=0)
        case ChangelogHandle():
            yield from change_sets(handle, resolve, metadata_file)


def states_of(below: Sequence[KeyedHeader], changes: Sequence[ChangeSet]) -> tuple[StateMeta, ...]:
    """Return the states of a change log and of what lies below it.

    Raises
    ------
    FormatError, UnknownSerializerError
    """
    materialized: dict[str, StateMeta] = {}
    for header in below:
        for meta in header.states:
            materialized.setdefault(meta.name, meta)
    with ChangeFiles() as files:
        descriptions = [meta for s in changes for _, meta in described(files, s)]
    return tuple(merged_states(materialized, descriptions).values())


def header_of(states: tuple[StateMeta, ...], key: Serializer) -> KeyedHeader:
    """Return a header as if all states were in one stream."""
    return KeyedHeader(version=CURRENT_VERSION, compressed=False, key=key, states=states, size_bytes=0)


def told_key_type(below: Iterable[KeyedHeader], states: Iterable[StateMeta]) -> Serializer | None:
    """Return the key's serializer where a materialized stream or a timer tells it."""
    for header in below:
        return header.key
    for meta in states:
        if isinstance(meta.value, TimerSerializer):
            return meta.value.nested[0]
    return None


def found_key_type(logs: Iterable[Sequence[ChangeSet]], max_parallelism: int) -> Serializer:
    """Return the key's serializer by trying; ``logs`` are the change sets of each subtask.

    Raises
    ------
    UnknownSerializerError
        None of the common types fits, or too few keys tell.
    """
    with ChangeFiles() as files:
        return find_key_type(list(_samples(files, logs)), max_parallelism)


def _samples(files: ChangeFiles, logs: Iterable[Sequence[ChangeSet]]) -> Iterator[Sample]:
    for log in logs:
        states: dict[int, StateMeta] = {}
        for change_set in log:
            states = {**states, **dict(described(files, change_set))}
            data = ((group, c) for group, c in first_changes(files, change_set) if group != METADATA_GROUP)
            some = tuple((group, c.take(c.left)) for group, c in islice(data, _SAMPLE_CHANGES))
            yield Sample(some, states)
