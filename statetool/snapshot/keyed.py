"""The keyed state of one operator: its states by name over all subtasks, and readers of its entries. Reads headers only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from statetool.entries import forms
from statetool.entries.form import (
    TARGET_BYTES,
    KeyedContext,
    KeyedHandleRef,
    KeyGroupReader,
    OperatorReadContext,
    StoredState,
)
from statetool.entries.headers import learn_all
from statetool.entries.joined_headers import join_headers
from statetool.entries.raw_timers import is_own_state
from statetool.errors import FormatError, OptionError, StatetoolError
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.keyed.subclasses import learn_header
from statetool.formats.metadata import OperatorState
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import prefetch
from statetool.io.cursor import Cursor
from statetool.serializers.core.base import Serializer
from statetool.snapshot.needed_headers import needed_headers
from statetool.types.operators import display_name


class KeyedInventory:
    """The keyed state of one operator."""

    def __init__(self, state: OperatorState, read_context: OperatorReadContext) -> None:
        self._state = state
        self._read_context = read_context

    @cached_property
    def managed(self) -> tuple[StoredState, ...]:
        """State stored by the state backend, by key groups.

        Raises
        ------
        FormatError
            No format reads handles of this kind.
        """
        places = [
            KeyedHandleRef(subtask=s.index, handle=s.managed_keyed)
            for s in self._state.subtasks
            if s.managed_keyed is not None
        ]
        stored, others = forms.open_states(places, self._read_context)
        for place in others:
            raise FormatError(f"a handle of kind {type(place.handle).__name__} instead of keyed state").at(
                operator=self._read_context.operator, file=self._read_context.metadata_file
            )
        return tuple(stored)

    @cached_property
    def _raw(self) -> tuple[list[StoredState], list[KeyedHandleRef]]:
        places = [
            KeyedHandleRef(subtask=s.index, handle=s.raw_keyed, raw=True)
            for s in self._state.subtasks
            if s.raw_keyed is not None
        ]
        read_context = replace(self._read_context, managed=self._managed_header)
        return forms.open_states(places, read_context)

    def _managed_header(self) -> tuple[bytes, int] | None:
        return next((d for s in self.managed if (d := s.description()) is not None), None)

    @property
    def raw_timers(self) -> tuple[StoredState, ...]:
        """Timers stored in raw keyed state."""
        return tuple(self._raw[0])

    @cached_property
    def own_raw_subtasks(self) -> tuple[int, ...]:
        """Subtasks whose raw keyed state does not hold timers. Only the operator's code can read it."""
        return tuple(place.subtask for place in self._raw[1] if is_own_state(place, self._read_context))

    @cached_property
    def raw_timer_states(self) -> frozenset[str]:
        """Names of the timer states stored in raw keyed state."""
        return frozenset(m.name for s in self.raw_timers for m in s.header().states)

    def _prefetch_headers(self) -> None:
        """Fetch headers in object stores concurrently, before they are read one by one."""
        heads = (head for s in self.managed if s.raw_header is None and (head := s.head()) is not None)
        unknown = (head for head in heads if head[0].is_far)  # there may be thousands that are stored in the metadata
        prefetch((stream, 0, min(size, stream.size_bytes)) for stream, size in unknown)

    def headers(self, *, raw: bool = True) -> Iterator[KeyedHeader]:
        """Read each distinct header again. With ``raw``, include the headers of raw timers."""
        self._prefetch_headers()
        seen: set[bytes] = set()
        for stored in (*self.managed, *(self.raw_timers if raw else ())):
            identity = stored.identity()
            if identity not in seen:
                seen.add(identity)
                yield stored.header()

    @cached_property
    def states(self) -> Mapping[str, tuple[KeyedHeader, StateMetaInfo]]:
        """States (and timers) by name, with the header of the first subtask that has each."""
        states: dict[str, tuple[KeyedHeader, StateMetaInfo]] = {}
        for header in self.headers():
            learn_all(header, self.descriptions, self._read_context.types)
            for meta in header.states:
                states.setdefault(meta.name, (header, meta))
        return states

    @cached_property
    def stored_headers(self) -> Mapping[bytes, int]:
        """The distinct headers of managed state, each with its offset in the file."""
        bases: dict[bytes, int] = {}
        self._prefetch_headers()
        for stored in self.managed:
            if (description := stored.description()) is not None:
                bases.setdefault(*description)
        return bases

    @cached_property
    def descriptions(self) -> tuple[tuple[bytes, int], ...]:
        """Headers (bytes and offset) that together describe all subclasses of POJOs. Empty if all subtasks agree.

        Headers learned from another snapshot come last: what the snapshot itself describes takes precedence.
        """
        bases = self.stored_headers
        try:
            needed = needed_headers(list(bases), lambda raw: self._parse(raw, bases[raw]), learn_header)
        except StatetoolError as error:
            raise error.at(operator=self._read_context.operator) from None
        return (*((raw, bases[raw]) for raw in needed), *self._read_context.learned)

    def _parse(self, raw: bytes, base: int) -> KeyedHeader:
        return read_keyed_header(Cursor(raw, base=base), self._read_context.types, end=len(raw))

    def undescribed_in(self, other: Mapping[bytes, int]) -> tuple[tuple[bytes, int], ...]:
        """Return the headers of another snapshot (bytes and offset) with subclasses that this snapshot does not describe."""
        headers = [self._parse(raw, base) for raw, base in self.stored_headers.items()]
        for header in headers:
            learn_all(header, self.descriptions, self._read_context.types)
        theirs = [(raw, base, self._parse(raw, base)) for raw, base in other.items()]
        return tuple((raw, base) for raw, base, header in theirs if any(learn_header(h, header) for h in headers))

    @property
    def key(self) -> Serializer | None:
        """The serializer of the keys, ``None`` if there is no keyed state."""
        return next((header.key for header, _ in self.states.values()), None)

    def needed_key(self) -> Serializer:
        """Return the serializer of the keys.

        Raises
        ------
        OptionError
            The operator has no keyed state.
        """
        if self.key is None:
            raise OptionError(
                f"operator {display_name(self._read_context.operator)!r} has no keyed state, so its key type is unknown"
            )
        return self.key

    @cached_property
    def key_found(self) -> bool:
        """Whether the key type was inferred from key groups, because the snapshot does not store it."""
        return any(s.key_found for s in self.managed)

    @cached_property
    def context(self) -> KeyedContext:
        """The context for reading entries."""
        return replace(self._read_context.context, descriptions=self.descriptions)

    @property
    def context_without_headers(self) -> KeyedContext:
        """The context for reading entries as far as it is known without reading headers."""
        return replace(self._read_context.context, descriptions=self._read_context.learned)

    @property
    def is_described_by_each(self) -> bool:
        """Whether :attr:`context` has no more than :attr:`context_without_headers`: the header of each subtask describes all of its entries.

        Raises
        ------
        FormatError, UnknownSerializerError
            A header is damaged, or of an unknown serializer.
        """
        return self.context == self.context_without_headers

    def expect_files(self, groups: Collection[int] | None = None, *, opens: bool = True) -> None:
        """Look for the files of key groups, or of all, in an object store at the same time, before they are opened one after another.

        ``opens`` says whether all of their table files will be opened.
        """
        self._read_context.expect(
            (handle for stored in self.managed for handle in stored.needed_files(groups)), opens=opens
        )

    def sources(
        self,
        *,
        groups: Collection[int] | None = None,
        raw: bool = False,
        target_bytes: int = TARGET_BYTES,
    ) -> list[KeyGroupReader]:
        """Return sources of all entries, each of about ``target_bytes``.

        Parameters
        ----------
        groups
            Key groups to read, ``None`` for all.
        raw
            Whether to include timers in raw keyed state, in the same form as managed ones.

        Raises
        ------
        FormatError, UnknownSerializerError
            Headers or offsets are damaged, or the key type cannot be determined.
        """
        self.expect_files(groups)
        return [
            source
            for stored in (*self.managed, *(self.raw_timers if raw else ()))
            for source in stored.sources(self.context, groups=groups, target_bytes=target_bytes)
        ]

    def joined_header(self, *, raw: bool = False, without: Collection[str] = ()) -> KeyedHeader | None:
        """Return the header for new keyed streams of the operator, ``None`` if it has no keyed state.

        The header has all states of all subtasks. Entries belong to the state of the same name.

        Raises
        ------
        UnsupportedError
            Two subtasks describe a state differently.
        """
        try:
            headers = list(self.headers(raw=raw))
            return join_headers(headers, self._read_context.types, without=without) if headers else None
        except StatetoolError as error:
            raise error.at(operator=self._read_context.operator) from None
