"""Assembly of entries with new keys: entries of several old keys that meet under one new key are merged or refused.

Each entry has a hash of its old key after its new key, as elements of lists have their index, so that all entries with one new key are in one
batch in a repeatable order. The old key precedes the value. Markers, which are not written, tell of old keys that must not meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

import numpy as np

from statetool.columns.pieces import Joined, Ranges, pack
from statetool.errors import StatetoolError, UnsupportedError
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.entries.deal import mark_equal
from statetool.saving.rekeying.merging import merge_values, newest_of
from statetool.saving.rekeying.rows import RowMerge
from statetool.saving.streams.gather import Gatherer
from statetool.saving.streams.keyed import key_to_text
from statetool.saving.streams.runs import INDEX_BYTES, PackedRun, entry_batch, order_of_keys, pack_run
from statetool.serializers.core.base import Serializer

if TYPE_CHECKING:
    from statetool.saving.streams.conversion import DuplicateError

#: What happens to entries of two old keys that meet.
Policy: TypeAlias = Literal["error", "merge", "keep-newest"]
#: Bytes of the length of an old key before a value.
OLD_KEY_BYTES: Final = 4
_POLICY: Final = (
    "choose an expression that keeps keys apart, or say what becomes of such states with --on-conflict (on_conflict=)"
)


class MeetingRules(Protocol):
    """What happens to entries of two old keys that meet: a :class:`~statetool.saving.rekeying.change.KeyChange`."""

    @property
    def old_key(self) -> Serializer:
        """The serializer of the old keys."""
        ...

    @property
    def merges(self) -> Mapping[str, str | RowMerge]:
        """SQL expressions that merge two values, or the rules of their columns, by state."""
        ...

    @property
    def newest(self) -> Mapping[str, str]:
        """SQL expressions whose greatest result marks the newest value, by state."""
        ...

    def policy(self, meta: StateMetaInfo) -> Policy:
        """Return what happens to entries of a state that meet."""
        ...

    def shuffled_states(self, header: KeyedHeader) -> frozenset[int]:
        """Return the state ids of entries, and of the markers of old keys."""
        ...


class MeetingGatherer(Gatherer):
    """Assembler of the entries that :meth:`~statetool.saving.rekeying.change.KeyChange.entries` makes."""

    def __init__(
        self,
        change: MeetingRules,
        header: KeyedHeader,
        prefix: int,
        *,
        memory_bytes: int,
        duplicate: DuplicateError,
    ) -> None:
        super().__init__(prefix, lists=change.shuffled_states(header), duplicate=duplicate, memory_bytes=memory_bytes)
        self.change, self.header = change, header

    def within_parts(self, prefix: int, duplicate: DuplicateError) -> MeetingGatherer:
        """Return the assembler of the parts of a large key group."""
        return MeetingGatherer(self.change, self.header, prefix, memory_bytes=self.memory_bytes, duplicate=duplicate)

    def sorted(self, batch: EntryBatch) -> Int64s:
        """Return the order of entries. Entries with equal keys are looked at later."""
        return order_of_keys(batch)[0]

    def changes(self, batch: EntryBatch) -> bool:
        """Return True: no entry is written as it is."""
        return bool(len(batch))

    def settled(self, batch: EntryBatch, order: Int64s) -> tuple[PackedRun, EntryBatch, Int64s]:
        """Pack sorted entries in their final form: without hashes, old keys and markers, and merged where they meet.

        Raises
        ------
        UnsupportedError
            Old keys meet that must not meet, or cannot be merged.
        """
        batch = batch.take(order)
        end = batch.key_end - INDEX_BYTES
        old_start, old_end = _old_keys(batch)
        meets = self.goes_on(batch, end)
        same_old = self._equal(batch, old_start, old_end)
        marker = batch.state >= len(self.header.states)
        self._check(batch, end, meets & marker & ~same_old, old_start, old_end)
        twins = np.flatnonzero(meets & same_old & ~marker)
        if len(twins):
            i = int(twins[0])
            raise self.duplicate(int(batch.group[i]), int(batch.state[i]), bytes(batch.data[batch.key[i] : end[i]]))
        own = np.flatnonzero(~marker)
        plain = entry_batch(batch.data, batch.state, batch.group, batch.key, end, old_end, batch.value_end).take(own)
        settled = self._merged(plain, meets[own], old_start[own], old_end[own])
        everything = np.arange(len(settled))
        return pack_run(settled, everything, self.prefix), settled, everything

    def _equal(self, batch: EntryBatch, start: Int64s, end: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        same = np.zeros(len(batch), dtype=np.bool_)
        zeros = np.zeros(len(batch), dtype=np.int64)
        mark_equal(batch.data, zeros, zeros, start, end, same)
        return same

    def _check(
        self,
        batch: EntryBatch,
        end: Int64s,
        wrong: np.ndarray[tuple[int], np.dtype[np.bool_]],
        start: Int64s,
        stop: Int64s,
    ) -> None:
        """Refuse old keys that meet."""
        found = np.flatnonzero(wrong)
        if not len(found):
            return
        i = int(found[0])
        number = int(batch.state[i]) - len(self.header.states) - 1
        old = [bytes(batch.data[start[k] : stop[k]]) for k in (i - 1, i)]
        raise self._refusal(old, bytes(batch.data[batch.key[i] : end[i]]), None if number < 0 else number, _POLICY)

    def _refusal(
        self, old: list[bytes], composite: bytes, state: int | None, hint: str, why: str = ""
    ) -> StatetoolError:
        texts = " and ".join(key_to_text(self.change.old_key, raw) for raw in old)
        new = key_to_text(self.header.key, self._key_in(composite))
        error = UnsupportedError(f"the old keys {texts} meet under the new key {new}{why}", hint=hint)
        return error if state is None else error.at(state=self.header.states[state].name)

    def _key_in(self, composite: bytes) -> bytes:
        """Return the key at the start of a composite key."""
        from statetool.io.cursor import Cursor

        c = Cursor(composite)
        self.header.key.skip(c)
        return composite[: c.pos]

    def _merged(
        self, batch: EntryBatch, meets: np.ndarray[tuple[int], np.dtype[np.bool_]], start: Int64s, stop: Int64s
    ) -> EntryBatch:
        """Return entries in which those with equal keys are merged to one."""
        if not meets.any():
            return batch
        first = np.flatnonzero(~meets)
        counts = np.diff(np.append(first, len(batch)))
        runs = np.flatnonzero(counts > 1)
        parts: list[EntryBatch] = [batch.take(first[counts == 1])]
        places = [first[counts == 1]]
        for state in np.unique(batch.state[first[runs]]).tolist():
            own = runs[batch.state[first[runs]] == state]
            ends = np.cumsum(counts[own])
            index = np.repeat(first[own] - ends + counts[own], counts[own]) + np.arange(ends[-1])
            try:
                data, offsets = self._values(state, batch.take(index), counts[own], index, (start, stop))
            except _MeetingError as error:
                i = error.index
                old = [bytes(batch.data[start[k] : stop[k]]) for k in error.both]
                composite = bytes(batch.data[batch.key[i] : batch.key_end[i]])
                if self.header.states[state].kind == "timers":
                    composite = composite[8:]
                raise self._refusal(old, composite, state, error.hint, error.why) from None
            joined: Bytes = np.concatenate([batch.data, data])
            at = len(batch.data) + offsets
            kept = batch.take(first[own])
            parts.append(entry_batch(joined, kept.state, kept.group, kept.key, kept.key_end, at[:-1], at[1:]))
            places.append(first[own])
        merged = concat([p for p in parts if len(p)])
        return merged.take(np.argsort(np.concatenate(places), kind="stable"))

    def _values(
        self, state: int, entries: EntryBatch, counts: Int64s, index: Int64s, old: tuple[Int64s, Int64s]
    ) -> tuple[Bytes, Int64s]:
        """Return the merged values of entries of one state; ``counts`` entries meet each time."""
        meta = self.header.states[state]
        policy = self.change.policy(meta)
        edges = np.concatenate([[0], np.cumsum(counts)])
        if meta.kind == "timers" and policy == "merge":
            chosen = edges[:-1]
        elif meta.kind == "list" and policy == "merge":
            elements = pack(Ranges(entries.data, entries.value, entries.value_end - entries.value))
            encoded = pack(Joined(elements, counts))
            return encoded.data, encoded.offsets
        elif policy == "keep-newest":
            chosen, tie = newest_of(meta, entries, edges, self.change.newest.get(meta.name))
            if tie is not None:
                both = index[tie[0]], index[tie[1]]
                raise _MeetingError(
                    int(both[1]), both, ", and neither value is newer", "pass --newest STATE=SQL (newest=)"
                )
        elif policy == "merge" and meta.kind == "map":
            both = index[0], index[1]
            hint = "pass --on-conflict map=keep-newest (on_conflict=)"
            raise _MeetingError(int(index[1]), both, ", with an equal key of the map", hint)
        elif policy == "merge" and meta.name in self.change.merges:
            encoded = merge_values(meta, entries, edges, self.change.merges[meta.name])
            return encoded.data, encoded.offsets
        else:
            raise _MeetingError(int(index[1]), (index[0], index[1]), "", _POLICY)
        encoded = pack(Ranges(entries.data, entries.value[chosen], (entries.value_end - entries.value)[chosen]))
        return encoded.data, encoded.offsets


class _MeetingError(Exception):
    """Two entries meet that cannot be merged: their numbers, why, and what helps."""

    def __init__(self, index: int, both: tuple[int, int], why: str, hint: str) -> None:
        self.index, self.both, self.why, self.hint = index, both, why, hint


def _old_keys(batch: EntryBatch) -> tuple[Int64s, Int64s]:
    """Return the start and end of the old key of each entry, which precedes its value."""
    size = np.zeros(len(batch), dtype=np.int64)
    for i in range(OLD_KEY_BYTES):
        size = size << 8 | batch.data[batch.value + i]
    start = batch.value + OLD_KEY_BYTES
    return start, start + size
