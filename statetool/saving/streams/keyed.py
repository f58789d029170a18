"""Keyed state of one operator: the entries kept of a base, with their new key groups, and the new streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from statetool.entries.form import EntryRequest, EntrySource, placed, size_of
from statetool.entries.selection import key_starts
from statetool.errors import EncodeError, FormatError, StatetoolError
from statetool.formats.key_groups import owner_of, prefix_size, range_for
from statetool.formats.keyed.entries import EntryBatch, Int64s
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.hashing.formulas import HashFormula
from statetool.hashing.key_hash import key_groups
from statetool.hashing.keys import KeyHasher
from statetool.io.cursor import Cursor
from statetool.saving.publish import Staging
from statetool.saving.streams.gather import Gatherer
from statetool.saving.streams.output import KeyedStreamWriter, NewStream, StreamOutput
from statetool.saving.streams.runs import PackedRun, Segments, entry_batch
from statetool.serializers.base import Serializer
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.types.shown import shown

if TYPE_CHECKING:
    from statetool.saving.composition import StateConversion

#: Handles of canonical keyed state, since Flink 1.13.
CANONICAL_TAG: Final = 7
#: Bytes of entries that are dealt at once: few enough to stay in the processor's cache.
_BATCH_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEntries:
    """Entries kept of a base, and where they go; picklable and self-contained.

    Attributes
    ----------
    ids
        New state ids by the names that states have in the source; others are left out.
    max_parallelism
        The new one.
    formula
        How keys hash where their own serializer does not know; ``None`` where it does, or where no hash is needed.
    conversions
        How values of states get another type, by the states' names in the source.
    """

    source: EntrySource
    ids: Mapping[str, int]
    max_parallelism: int
    formula: HashFormula | None = None
    conversions: Mapping[str, StateConversion] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Stored bytes, about."""
        return size_of(self.source)

    def batches(self) -> Iterator[EntryBatch]:
        """Read the entries, with their new key groups and state ids; keys and values keep their bytes, but values of converted states.

        Raises
        ------
        FormatError
            Damaged bytes, or a key that does not lie in the key group of its hash code.
        UnsupportedError
            The hash code of a key is not known.
        """
        source = self.source
        with placed(source):
            header = source.header()
            ids = np.array([self.ids.get(m.name, -1) for m in header.states], dtype=np.int64)
            new_groups = _NewGroups(header, source.context.max_parallelism, self.max_parallelism, self.formula)
            for batch in source.batches(EntryRequest(states=tuple(self.ids), batch_bytes=_BATCH_BYTES)):
                if (ids[batch.state] < 0).any():
                    batch = batch.take(np.flatnonzero(ids[batch.state] >= 0))
                if len(batch):
                    for converted in self._converted(header, replace(batch, group=new_groups.of(batch))):
                        columns = (converted.key, converted.key_end, converted.value, converted.value_end)
                        yield entry_batch(converted.data, ids[converted.state], converted.group, *columns)

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


class _NewGroups:
    """Finds the new key groups of entries.

    A key lies in key group ``murmur(hashCode) % max parallelism``. For a divisor of the old number the new key group follows from the
    old one, as both are remainders of one number; else keys are hashed, and every one is checked against the key group that it lies in.
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
                f"a key of {self.header.key.type_name} lies in key group {int(batch.group[at])}, its hash code says "
                f"{int(expected[at])}",
                hint="the job's class has another hashCode(): declare it with hashes=, or choose a divisor of "
                f"{self.old_max}, which needs none",
            ).at(offset=int(start[at]))
        return key_groups(hashes, self.new_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedStreams:
    """The new keyed streams of one operator; picklable.

    Attributes
    ----------
    header
        Bytes of their header.
    lists
        Ids of list states whose entries are elements, with their index behind the key.
    from_tables
        Whether entries come from tables: then a duplicate key is an error of the input.
    """

    operator: str
    header: bytes
    max_parallelism: int
    parallelism: int
    inline_bytes: int
    lists: frozenset[int] = frozenset()
    from_tables: bool = False
    types: TypeContext = NOTHING_DECLARED

    @property
    def parsed(self) -> KeyedHeader:
        """The parsed header."""
        return parse_keyed_header(self.header, self.types)

    @property
    def prefix(self) -> int:
        """Bytes of the key group in front of each key."""
        return prefix_size(self.max_parallelism)

    @property
    def subtasks(self) -> range:
        """The subtasks that get a stream."""
        return range(self.parallelism)

    @property
    def kept_bytes(self) -> dict[int, int]:
        """None: all entries are dealt to the subtasks, also those of a base."""
        return {}

    def numbers(self, subtask: int) -> range:
        """Return the key groups of a subtask."""
        return range_for(subtask, self.parallelism, self.max_parallelism)

    def owners(self, groups: Int64s) -> Int64s:
        """Return the subtask of each key group."""
        return owner_of(groups, self.parallelism, self.max_parallelism)

    def gatherer(self, memory_bytes: int) -> Gatherer:
        """Return what puts entries together for these streams."""
        return Gatherer(self.prefix, lists=self.lists, duplicate=self.duplicate, memory_bytes=memory_bytes)

    def write(
        self, subtask: int, portions: Iterable[Segments | PackedRun], staging: Staging, memory_bytes: int
    ) -> NewStream:
        """Write the stream of one subtask from the entries that were dealt to it.

        Parameters
        ----------
        portions
            One after the other, of ascending key groups: entries as they were dealt, or key groups as they are written.

        Raises
        ------
        EncodeError, FormatError
            Two entries have one key; names it.
        """
        groups, parsed = self.numbers(subtask), self.parsed
        gatherer = self.gatherer(memory_bytes)
        try:
            with StreamOutput(staging, "keyed", inline_bytes=self.inline_bytes) as out:
                writer = KeyedStreamWriter(out.write, self.header, groups, compressed=parsed.compressed)
                for portion in portions:
                    if isinstance(portion, PackedRun):
                        writer.add_groups(portion)
                    else:
                        gatherer.write(writer, portion)
        except StatetoolError as error:
            raise error.at(operator=self.operator) from error.__cause__
        offsets = tuple(writer.offsets.tolist())
        handle = KeyGroupsHandle(tag=CANONICAL_TAG, start=groups.start, offsets=offsets, stream=out.handle())
        return NewStream(subtask=subtask, handle=handle, file=out.file)

    def duplicate(self, group: int, state: int, key: bytes) -> StatetoolError:
        """Make the error for two entries with one key."""
        header = self.parsed
        meta = header.states[state] if state < len(header.states) else None
        name = None if meta is None else meta.name
        what, serializer = ("timer", meta.value) if meta is not None and meta.kind == "timers" else ("key", header.key)
        words = f"{what} {shown_bytes(serializer, key)} is there twice"
        if self.from_tables:
            return EncodeError(words, hint="aggregate the input so that each key comes once").at(state=name)
        hint = "two subtasks hold the same keys, which no job leaves behind"
        return FormatError(words, hint=hint).at(state=name, key_group=group)


def shown_bytes(serializer: Serializer, raw: bytes) -> str:
    """Return an encoded key for a message."""
    try:
        return shown(serializer.decode(Cursor(raw)), serializer.logical)
    except StatetoolError:
        return f"of bytes {raw.hex()}"


@lru_cache(maxsize=64)
def parse_keyed_header(raw: bytes, types: TypeContext) -> KeyedHeader:
    """Parse the header of keyed streams, equal bytes once."""
    return read_keyed_header(Cursor(raw), types, end=len(raw))
