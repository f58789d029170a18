"""Changelogs of the changelog state backend: change sets on top of materialized state, which may have any stored form.

A changelog does not store the type of its keys. Materialized state does, or a timer. Otherwise the user declares it, or it is inferred by
testing which of the common types puts every key into the key group of its changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from statetool.entries.form import (
    ALL_ENTRIES,
    EntryRequest,
    KeyedContext,
    KeyedHandleRef,
    KeyGroupLocation,
    KeyGroupReader,
    OperatorReadContext,
    StateFormat,
    StoredState,
    cut_evenly,
    error_context,
    size_of,
)
from statetool.entries.headers import header_of_task
from statetool.errors import FormatError, OptionError, StatetoolError, UnknownSerializerError
from statetool.formats.backends.key_types import Sample, find_key_type
from statetool.formats.changelog.change_sets import (
    METADATA_GROUP,
    ChangeFiles,
    ChangeSet,
    first_changes,
    merge_states,
    read_descriptions,
    writes_alike,
)
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader, write_keyed_header
from statetool.formats.metadata.handles import ChangelogHandle, ChangesHandle, InMemoryChangesHandle, KeyedHandle
from statetool.formats.state_meta import StateMetaInfo, write_meta_v6
from statetool.formats.stream import Stream, begin, whole
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.runtime import TimerSerializer

if TYPE_CHECKING:
    from statetool.formats.keyed.entries import EntryBatch

_SAMPLE_CHANGES: Final = 500


class ChangeLogFormat:
    """Stored form of changelogs.

    Parameters
    ----------
    below
        Possible forms of the materialized state.
    """

    def __init__(self, below: Sequence[StateFormat]) -> None:
        self._below = below

    def matches(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> bool:
        return isinstance(place.handle, ChangelogHandle) and not place.raw

    def open(self, places: Sequence[KeyedHandleRef], read_context: OperatorReadContext) -> Iterable[StoredState]:
        logs = [_Log(place, read_context, self._below) for place in places]
        keys = _KeyType(logs, read_context)
        return [StoredLog(place, read_context, log, keys) for place, log in zip(places, logs, strict=True)]


class _Log:
    """Change sets and materialized state of one subtask."""

    def __init__(self, place: KeyedHandleRef, read_context: OperatorReadContext, forms: Sequence[StateFormat]) -> None:
        assert isinstance(place.handle, ChangelogHandle)
        self.place = place
        self.handle = place.handle
        self.read_context = read_context
        self._forms = forms

    @cached_property
    def changes(self) -> tuple[ChangeSet, ...]:
        """Change sets in the order in which they are applied."""
        try:
            return tuple(_sets_of(self.handle, self.read_context))
        except StatetoolError as error:
            raise error.at(operator=self.read_context.operator) from None

    @cached_property
    def below(self) -> tuple[StoredState, ...]:
        """The materialized state.

        Raises
        ------
        FormatError
            No form matches a handle.
        """
        stored: list[StoredState] = []
        for handle in self.handle.materialized:
            place = replace(self.place, handle=handle)
            form = next((f for f in self._forms if f.matches(place, self.read_context)), None)
            if form is None:
                raise FormatError(f"a handle of kind {type(handle).__name__} below a change log").at(
                    operator=self.read_context.operator, file=self.read_context.metadata_file
                )
            stored += form.open([place], self.read_context)
        return tuple(stored)

    @cached_property
    def below_headers(self) -> tuple[KeyedHeader, ...]:
        """Headers of the materialized state."""
        return tuple(b.header() for b in self.below)

    @cached_property
    def states(self) -> tuple[StateMetaInfo, ...]:
        """States of the changelog and of the materialized state.

        Raises
        ------
        FormatError, UnknownSerializerError
        """
        materialized: dict[str, StateMetaInfo] = {}
        for header in self.below_headers:
            for meta in header.states:
                materialized.setdefault(meta.name, meta)
        try:
            with ChangeFiles() as files:
                descriptions = [
                    m for s in self.changes for _, m in read_descriptions(files, s, self.read_context.types)
                ]
            return tuple(merge_states(materialized, descriptions).values())
        except StatetoolError as error:
            raise error.at(operator=self.read_context.operator) from None

    def described_key(self) -> Serializer | None:
        """Return the key serializer, ``None`` if neither materialized state nor a timer stores it."""
        if self.below_headers:
            return self.below_headers[0].key
        return next((m.value.nested[0] for m in self.states if isinstance(m.value, TimerSerializer)), None)

    def sample(self, files: ChangeFiles) -> Iterator[Sample]:
        """Yield some changes of each change set, with the states declared up to that point."""
        states: dict[int, StateMetaInfo] = {}
        for change_set in self.changes:
            states = {**states, **dict(read_descriptions(files, change_set, self.read_context.types))}
            data = ((group, c) for group, c in first_changes(files, change_set) if group != METADATA_GROUP)
            changes = tuple((group, c.take(c.left)) for group, c in islice(data, _SAMPLE_CHANGES))
            yield Sample(changes, states)


def _sets_of(handle: KeyedHandle, read_context: OperatorReadContext) -> Iterator[ChangeSet]:
    match handle:
        case ChangelogHandle(changes=changes):
            for inner in changes:
                yield from _sets_of(inner, read_context)
        case ChangesHandle(streams=streams):
            for offset, stream in streams:
                resolved = read_context.resolve(stream)
                if resolved is not None:
                    yield ChangeSet(stream=resolved, offset=offset)
        case InMemoryChangesHandle(changes=inline):
            # In the layout of a set in a file: state metadata first, then each change as a group of one.
            out = Output()
            out.bool(False)
            out.i4(len(inline))
            for key_group, change in sorted(inline, key=lambda c: c[0] >= 0):
                out.i4(1)
                out.i4(key_group)
                out.bytes4(change)
            written = Stream(file=read_context.metadata_file, start=0, size_bytes=len(out), inline=bytes(out))
            yield ChangeSet(stream=written, offset=0)


class _KeyType:
    """The type of the keys of all changelogs of an operator."""

    def __init__(self, logs: Sequence[_Log], read_context: OperatorReadContext) -> None:
        self._logs = logs
        self._read_context = read_context

    @cached_property
    def _known(self) -> Serializer | None:
        """The serializer that the snapshot stores or the user declares.

        Raises
        ------
        OptionError
            The two write different bytes.
        """
        in_snapshot = next((key for log in self._logs if (key := log.described_key()) is not None), None)
        declared = self._read_context.given_key
        if in_snapshot is not None and declared is not None and not writes_alike(in_snapshot, declared):
            raise OptionError(
                f"key_types says {declared.type_name}, the snapshot says {in_snapshot.type_name}",
                hint="remove the operator from key_types",
            ).at(operator=self._read_context.operator)
        return in_snapshot if in_snapshot is not None else declared

    @cached_property
    def _tried(self) -> Serializer | UnknownSerializerError:
        """The serializer inferred from keys and their key groups, or the error if there is none."""
        try:
            with ChangeFiles() as files:
                samples = [s for log in self._logs for s in log.sample(files)]
            return find_key_type(samples, self._read_context.max_parallelism)
        except UnknownSerializerError as error:
            return error.at(operator=self._read_context.operator)
        except StatetoolError as error:
            raise error.at(operator=self._read_context.operator) from None

    @property
    def found_by_trying(self) -> bool:
        """Whether the type was inferred from keys and their key groups."""
        return self._known is None and isinstance(self._tried, Serializer)

    @property
    def error(self) -> UnknownSerializerError | None:
        """The reason why keys cannot be read."""
        return self._tried if self._known is None and isinstance(self._tried, UnknownSerializerError) else None

    @property
    def serializer(self) -> Serializer:
        """The key serializer, an opaque one if the type is unknown."""
        if self._known is not None:
            return self._known
        if isinstance(self._tried, StatetoolError):
            return OpaqueSerializer(b"", self._tried.message, self._tried.hint)
        return self._tried


class StoredLog(StoredState):
    """The changelog of one subtask, with the materialized state below it."""

    def __init__(self, place: KeyedHandleRef, read_context: OperatorReadContext, log: _Log, keys: _KeyType) -> None:
        super().__init__(place, read_context)
        self._log = log
        self._keys = keys

    @property
    def key_found(self) -> bool:
        return self._keys.found_by_trying

    def below(self) -> tuple[StoredState, ...]:
        return self._log.below

    @property
    def own_groups(self) -> range:
        """The key groups that belong to the subtask."""
        return range(self._log.handle.start, self._log.handle.start + self._log.handle.count)

    def key_groups(self) -> Iterator[KeyGroupLocation]:
        for number in self.own_groups:
            yield KeyGroupLocation(key_group=number, offset=None, size_bytes=None)

    def header(self) -> KeyedHeader:
        """Return a header as if all states of the changelog and of materialized state were in one stream."""
        key = self._keys.serializer
        return KeyedHeader(
            version=CURRENT_VERSION, compressed=False, key=key.as_key(), states=self._log.states, size_bytes=0
        )

    def identity(self) -> bytes:
        if self._keys.error is None:
            return write_keyed_header(self.header())
        # Without the type of its keys no header can be written: only the states distinguish changelogs.
        out = Output()
        for meta in self._log.states:
            write_meta_v6(out, meta)
        return bytes(out)

    def description(self) -> tuple[bytes, int] | None:
        return None if self._keys.error is not None else (self.identity(), 0)

    def sources(
        self, context: KeyedContext, *, groups: Collection[int] | None, target_bytes: int
    ) -> Iterator[KeyGroupReader]:
        log = self._log
        if self._keys.error is not None:
            raise self._keys.error
        header = self.identity()
        wanted = [g for g in self.own_groups if groups is None or g in groups]
        below = [s for b in log.below for s in b.sources(context, groups=frozenset(wanted), target_bytes=1 << 62)]
        log_bytes = sum(c.stream.size_bytes for c in log.changes)
        size = log_bytes + sum(map(size_of, below))
        for run in cut_evenly(wanted, size, target_bytes):
            yield LogSource(
                context=context,
                subtask=self.place.subtask,
                raw_header=header,
                below=tuple(part for b in below if (part := b.within(run)) is not None),
                changes=log.changes,
                key_groups=run,
                log_bytes=log_bytes * len(run) // max(1, len(wanted)),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """Some key groups of one changelog. Each source reads the complete log; ``log_bytes`` is the estimated share of these key groups."""

    context: KeyedContext
    subtask: int
    raw_header: bytes
    below: tuple[KeyGroupReader, ...]
    changes: tuple[ChangeSet, ...]
    key_groups: tuple[int, ...]
    log_bytes: int

    @property
    def file(self) -> str:
        return ", ".join(dict.fromkeys(c.stream.file for c in self.changes))

    @property
    def kernels(self) -> tuple[str, ...]:
        return ()

    @property
    def is_canonical(self) -> bool:
        return False

    @property
    def reads_by_key(self) -> bool:
        return False

    def group_sizes(self) -> Mapping[int, int]:
        sizes = dict.fromkeys(self.key_groups, max(1, self.log_bytes // len(self.key_groups)))
        for source in self.below:
            for number, size in source.group_sizes().items():
                sizes[number] += size
        return sizes

    def within(self, key_groups: Collection[int]) -> LogSource | None:
        own = tuple(g for g in self.key_groups if g in key_groups)
        if not own:
            return None
        below = tuple(part for b in self.below if (part := b.within(own)) is not None)
        return replace(self, key_groups=own, below=below, log_bytes=self.log_bytes * len(own) // len(self.key_groups))

    def header(self) -> KeyedHeader:
        with error_context(self):
            return header_of_task(self.raw_header, 0, self.context)

    def begin(self, request: EntryRequest) -> bool:
        begin(whole(change.stream for change in self.changes))
        begun = [source.begin(request) for source in self.below]
        return all(begun)

    def batches(self, request: EntryRequest = ALL_ENTRIES) -> Iterator[EntryBatch]:
        """Read entries. All entries of a key are in one batch, regardless of the request."""
        from statetool.entries.log_reader import read_log

        with error_context(self):
            yield from read_log(
                self.below,
                self.changes,
                self.header(),
                self.key_groups,
                self.context.prefix,
                request,
                file=self.file,
                types=self.context.types,
            )

    def checksum_errors(self) -> Iterator[StatetoolError]:
        """Yield the errors of the materialized state."""
        for source in self.below:
            yield from source.checksum_errors()
