"""Keyed state of one operator: entries of the base with their new key groups, and the new streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from statetool.entries.form import EntryRequest, KeyGroupReader, error_context, size_of
from statetool.entries.selection import key_starts
from statetool.errors import EncodeError, FormatError, StatetoolError
from statetool.formats.key_groups import owner_of, prefix_size, range_for
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.io.cursor import Cursor
from statetool.java.hashing.formulas import HashFormula
from statetool.java.hashing.key_hash import key_groups
from statetool.java.hashing.keys import KeyHasher
from statetool.kernels.core.arrays import Int64s
from statetool.saving.publish import Staging
from statetool.saving.streams.conversion import KeyConversion, StateConversion
from statetool.saving.streams.filters import AddedEntry, EntryFilter, added_batch
from statetool.saving.streams.gather import Gatherer
from statetool.saving.streams.native import HeapForm, NativeForm
from statetool.saving.streams.output import GroupWriter, KeyedStreamWriter, NewStream, StreamOutput
from statetool.saving.streams.runs import PackedRun, Segments, entry_batch
from statetool.serializers.core.base import Serializer
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.types.display import display_value

if TYPE_CHECKING:
    from typing import TypeGuard

#: Handle tag of canonical keyed state, since Flink 1.13.
CANONICAL_TAG: Final = 7
#: Bytes of entries that are partitioned at once, chosen to stay in the processor's cache.
_BATCH_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedEntries:
    """Entries of the base and their destination; picklable and self-contained.

    Attributes
    ----------
    ids
        New state ids by the names of states in the source; others are dropped.
    max_parallelism
        The new max parallelism.
    formula
        Hash function of keys whose serializer does not provide it; ``None`` if it does, or if no hash is needed.
    conversions
        Type conversions of state values, by the names of states in the source.
    filter
        Chooses the entries that stay, by their keys in the source.
    rekeyed
        The streams whose keys replace those of the source, ``None`` if keys stay.
    """

    source: KeyGroupReader
    ids: Mapping[str, int]
    max_parallelism: int
    formula: HashFormula | None = None
    conversions: Mapping[str, StateConversion] = field(default_factory=dict)
    filter: EntryFilter | None = None
    rekeyed: KeyedStreams | None = None

    @property
    def size_bytes(self) -> int:
        """Approximate stored bytes."""
        return size_of(self.source)

    @property
    def stay_in_key_groups(self) -> bool:
        """Whether entries stay in their key groups, because neither the max parallelism nor keys change."""
        return self.rekeyed is None and self.source.context.max_parallelism == self.max_parallelism

    def by_subtask(self, streams: KeyedStreams) -> Iterator[tuple[int, CarriedEntries]]:
        """Yield the entries of each new subtask, if entries stay in their key groups."""
        groups = np.array(list(self.source.group_sizes()), dtype=np.int64)
        owners = streams.owners(groups)
        for subtask in np.unique(owners).tolist():
            own = groups[owners == subtask].tolist()
            source = self.source if len(own) == len(groups) else self.source.within(own)
            if source is not None:
                yield subtask, replace(self, source=source)

    def batches(self) -> Iterator[EntryBatch]:
        """Read the entries with their new key groups and state ids. Keys and values keep their bytes, except values of converted states.

        Raises
        ------
        FormatError
            Damaged bytes, or a key outside the key group of its hash code.
        UnsupportedError
            The hash code of a key cannot be computed.
        """
        source = self.source
        with error_context(source):
            header = source.header()
            ids = self._new_ids(header)
            new_groups = _NewGroups(header, source.context.max_parallelism, self.max_parallelism, self.formula)
            whole_keys = any(c.needs_whole_keys for c in self.conversions.values())
            request = EntryRequest(
                states=tuple(self.ids), batch_bytes=_BATCH_BYTES, whole_keys=whole_keys, reads_on=True
            )
            for batch in source.batches(request):
                if (ids[batch.state] < 0).any():
                    batch = batch.take(np.flatnonzero(ids[batch.state] >= 0))
                if self.filter is not None:
                    batch = self.filter.apply(header, batch)
                if not len(batch):
                    continue
                if self.rekeyed is None:
                    yield from self.convert(header, replace(batch, group=new_groups.of(batch)))
                    continue
                for converted in self.convert(header, batch):
                    try:
                        yield self.rekeyed.rekey(converted)
                    except StatetoolError as error:
                        raise batch.locate(error) from error.__cause__

    def convert(self, header: KeyedHeader, batch: EntryBatch) -> Iterator[EntryBatch]:
        """Yield entries with their new values and state ids. Their key groups are new already."""
        ids = self._new_ids(header)
        for converted in self._converted(header, batch):
            columns = (converted.key, converted.key_end, converted.value, converted.value_end)
            yield entry_batch(converted.data, ids[converted.state], converted.group, *columns)

    def _new_ids(self, header: KeyedHeader) -> Int64s:
        """Return the new ids of the states of a header, -1 for dropped states."""
        return np.array([self.ids.get(m.name, -1) for m in header.states], dtype=np.int64)

    def _converted(self, header: KeyedHeader, batch: EntryBatch) -> Iterator[EntryBatch]:
        """Yield the converted entries of each state with a conversion, then the unchanged ones."""
        unchanged = np.ones(len(batch), dtype=np.bool_)
        for state, meta in enumerate(header.states):
            conversion = self.conversions.get(meta.name)
            if conversion is None:
                continue
            index = np.flatnonzero(batch.state == state)
            if len(index):
                unchanged[index] = False
                yield conversion.entries(header, batch.take(index))
        if unchanged.all():
            yield batch
        elif unchanged.any():
            yield batch.take(np.flatnonzero(unchanged))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedEntries:
    """Entries that the base does not have, with their state ids by name; picklable."""

    added: tuple[AddedEntry, ...]
    ids: Mapping[str, int]

    @property
    def size_bytes(self) -> int:
        """Bytes of keys and values."""
        return sum(len(entry.key) + len(entry.value) for entry in self.added)

    def batches(self) -> Iterator[EntryBatch]:
        """Return the entries as one batch."""
        yield added_batch(self.added, self.ids)


def is_read_where_written(entries: object) -> TypeGuard[CarriedEntries]:
    """Return True if the task or thread that writes a subtask also reads these entries, so that they are not shuffled."""
    return isinstance(entries, CarriedEntries) and entries.stay_in_key_groups


class _NewGroups:
    """Computation of the new key groups of entries.

    The key group of a key is ``murmur(hashCode) % max parallelism``. If the new max parallelism divides the old one, the new key group
    follows from the old one, because both are remainders of the same number. Otherwise keys are hashed, and each is checked against its
    stored key group.
    """

    def __init__(self, header: KeyedHeader, old_max: int, new_max: int, formula: HashFormula | None) -> None:
        self.header, self.old_max, self.new_max = header, old_max, new_max
        self.hasher = KeyHasher(header.key, formula) if old_max % new_max else None

    def of(self, batch: EntryBatch) -> Int64s:
        if self.hasher is None:
            return batch.group % self.new_max
        try:
            return self._hashed(self.hasher, batch)
        except StatetoolError as error:
            raise batch.locate(error) from None

    def _hashed(self, hasher: KeyHasher, batch: EntryBatch) -> Int64s:
        start = key_starts(batch, self.header)
        end = hasher.ends(batch.data, start, batch.key_end)
        hashes = hasher.hashes_of_entries(batch.data, start, end, batch.group)
        expected = key_groups(hashes, self.old_max)
        wrong = np.flatnonzero(expected != batch.group)
        if len(wrong):
            at = int(wrong[0])
            raise FormatError(
                f"a key of {self.header.key.type_name} is stored in key group {int(batch.group[at])}, but its hash code gives "
                f"{int(expected[at])}",
                hint="the job's class computes hashCode() differently: declare it with hashes=, or choose a divisor of "
                f"{self.old_max}, which needs none",
            ).at(offset=int(start[at]))
        return key_groups(hashes, self.new_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedStreams:
    """New keyed streams of one operator; picklable.

    Attributes
    ----------
    header
        Bytes of their header.
    lists
        Ids of list states whose entries are elements, with their index after the key.
    from_tables
        Whether entries come from tables, in which case a duplicate key is an error in the input.
    label
        Part of the names of the streams.
    native
        The native form of the state, ``None`` for canonical streams.
    keys
        The change of the keys of entries, if they change.
    """

    operator: str
    header: bytes
    max_parallelism: int
    parallelism: int
    inline_bytes: int
    lists: frozenset[int] = frozenset()
    from_tables: bool = False
    types: TypeContext = NOTHING_DECLARED
    label: str = "keyed"
    native: NativeForm | HeapForm | None = None
    keys: KeyConversion | None = None

    @property
    def parsed(self) -> KeyedHeader:
        """The parsed header. It is that of the new snapshot, so that no serializer is renewed once more."""
        return parse_keyed_header(self.header, replace(self.types, renewed=False))

    @property
    def prefix(self) -> int:
        """Bytes of the key-group prefix of each key."""
        return prefix_size(self.max_parallelism)

    @property
    def subtasks(self) -> range:
        """The subtasks that get a stream."""
        return range(self.parallelism)

    @property
    def kept_bytes(self) -> dict[int, int]:
        """Nothing: entries of the base come to the subtasks as :class:`CarriedEntries`, or in the shuffle."""
        return {}

    def numbers(self, subtask: int) -> range:
        """Return the key groups of a subtask."""
        return range_for(subtask, self.parallelism, self.max_parallelism)

    def owners(self, groups: Int64s) -> Int64s:
        """Return the subtask of each key group."""
        return owner_of(groups, self.parallelism, self.max_parallelism)

    def gatherer(self, memory_bytes: int) -> Gatherer:
        """Return the assembler of entries for these streams."""
        if self.keys is not None:
            return self.keys.gatherer(self.parsed, self.prefix, memory_bytes, self.duplicate)
        return Gatherer(self.prefix, lists=self.lists, duplicate=self.duplicate, memory_bytes=memory_bytes)

    def rekey(self, batch: EntryBatch) -> EntryBatch:
        """Return entries with their new keys, as :meth:`gatherer` takes them."""
        assert self.keys is not None
        return self.keys.entries(self.parsed, batch, self.max_parallelism)

    def write(
        self, subtask: int, portions: Iterable[Segments | PackedRun], staging: Staging, memory_bytes: int
    ) -> NewStream:
        """Write the stream of one subtask from the entries shuffled to it.

        Parameters
        ----------
        portions
            Portions of ascending key groups, in order: shuffled entries, or key groups in their final form.

        Raises
        ------
        EncodeError, FormatError
            Two entries have the same key; the message names it.
        """
        gatherer = self.gatherer(memory_bytes)

        def fill(writer: GroupWriter) -> None:
            for portion in portions:
                if isinstance(portion, PackedRun):
                    writer.add_groups(portion)
                else:
                    gatherer.write(writer, portion)

        if self.native is None:
            return self.write_with(fill, subtask, staging)
        groups = self.numbers(subtask)
        try:
            return self.native.write(subtask, fill, self.parsed, groups, self.prefix, staging, self.inline_bytes)
        except StatetoolError as error:
            raise error.at(operator=self.operator) from error.__cause__

    def write_with(self, fill: Callable[[KeyedStreamWriter], None], subtask: int, staging: Staging) -> NewStream:
        """Write the canonical stream of one subtask by a function that appends its key groups."""
        groups, compressed = self.numbers(subtask), self.parsed.compressed
        try:
            with StreamOutput(staging, self.label, inline_bytes=self.inline_bytes) as out:
                writer = KeyedStreamWriter(out.write, self.header, groups, compressed=compressed)
                fill(writer)
        except StatetoolError as error:
            raise error.at(operator=self.operator) from error.__cause__
        offsets = tuple(writer.offsets.tolist())
        handle = KeyGroupsHandle(tag=CANONICAL_TAG, start=groups.start, offsets=offsets, stream=out.handle())
        return NewStream(subtask=subtask, handle=handle, files=out.files)

    def duplicate(self, group: int, state: int, key: bytes) -> StatetoolError:
        """Return the error for two entries with the same key."""
        header = self.parsed
        meta = header.states[state] if state < len(header.states) else None
        name = None if meta is None else meta.name
        what, serializer = ("timer", meta.value) if meta is not None and meta.kind == "timers" else ("key", header.key)
        words = f"{what} {key_to_text(serializer, key)} occurs twice"
        if self.from_tables:
            return EncodeError(words, hint="aggregate the input so that each key comes once").at(state=name)
        hint = "two subtasks hold the same keys, which no job writes"
        return FormatError(words, hint=hint).at(state=name, key_group=group)


def key_to_text(serializer: Serializer, raw: bytes) -> str:
    """Return an encoded key as text for a message."""
    try:
        return display_value(serializer.decode(Cursor(raw)), serializer.logical)
    except StatetoolError:
        return f"of bytes {raw.hex()}"


@lru_cache(maxsize=64)
def parse_keyed_header(raw: bytes, types: TypeContext) -> KeyedHeader:
    """Parse the header of keyed streams; equal bytes are parsed once."""
    return read_keyed_header(Cursor(raw), types, end=len(raw))
