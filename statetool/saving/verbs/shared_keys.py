"""Keys that two operators have in common, in bounded memory.

A key group is the remainder of a key's hash by the max parallelism. Equal keys of two operators therefore have key groups that are equal
modulo the greatest common divisor of both max parallelisms. The keys of some remainders are compared at a time: by hashes of 64 bits, and
by their bytes if these are equal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.entries.form import EntryRequest, KeyGroupReader, error_context
from statetool.entries.keys import split_keys
from statetool.entries.selection import TIMESTAMP_BYTES
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.kernels.core.arrays import Int64s
from statetool.saving.streams.filters import hash_bytes
from statetool.saving.streams.keyed import key_to_text
from statetool.serializers.value_ends import find_ends
from statetool.snapshot.operator import OperatorInventory

#: Stored bytes of both operators whose keys are compared at once.
_PORTION_BYTES: Final = 128 << 20
_REQUEST: Final = EntryRequest(batch_bytes=4 << 20)
#: Keys whose bytes are compared, and keys that a message names.
_CANDIDATES: Final = 1000
_NAMED: Final = 5

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class SharedKeys:
    """The number of keys that two operators share, and the first of them as text."""

    count: int
    first: tuple[str, ...]


def find_shared_keys(first: OperatorInventory, second: OperatorInventory) -> SharedKeys:
    """Return the keys for which both operators have state or timers.

    Raises
    ------
    FormatError, UnknownSerializerError
        Keys are damaged, or their ends cannot be found.
    """
    sources = first.keyed.sources(raw=True), second.keyed.sources(raw=True)
    divisor = math.gcd(first.state.max_parallelism, second.state.max_parallelism)
    count = 0
    texts: set[str] = set()
    for remainders in _portions(sources, divisor):
        mine, theirs = (_narrow(s, divisor, remainders) for s in sources)
        common = np.intersect1d(_distinct_hashes(mine), _distinct_hashes(theirs), assume_unique=True)
        count += len(common)
        for at in range(0, len(common), _CANDIDATES):
            if len(texts) >= _NAMED:
                break
            chosen = common[at : at + _CANDIDATES]
            shared = _keys_with(mine, chosen) & _keys_with(theirs, chosen)
            texts |= {key_to_text(first.keyed.needed_key(), raw) for raw in sorted(shared)[:_NAMED]}
    return SharedKeys(count if texts else 0, tuple(sorted(texts)[:_NAMED]))


def _portions(sources: Collection[list[KeyGroupReader]], divisor: int) -> Iterator[frozenset[int]]:
    """Yield sets of remainders whose key groups have about :data:`_PORTION_BYTES` together."""
    sizes: Counter[int] = Counter()
    for source in (s for side in sources for s in side):
        for group, size in source.group_sizes().items():
            sizes[group % divisor] += size
    chosen: set[int] = set()
    total = 0
    for remainder in sorted(sizes):
        chosen.add(remainder)
        total += sizes[remainder]
        if total >= _PORTION_BYTES:
            yield frozenset(chosen)
            chosen, total = set(), 0
    if chosen:
        yield frozenset(chosen)


def _narrow(sources: list[KeyGroupReader], divisor: int, remainders: Collection[int]) -> list[KeyGroupReader]:
    wanted = ([g for g in s.group_sizes() if g % divisor in remainders] for s in sources)
    narrowed = (s.within(groups) for s, groups in zip(sources, wanted, strict=True) if groups)
    return [s for s in narrowed if s is not None]


def _distinct_hashes(sources: list[KeyGroupReader]) -> Hashes:
    found = np.empty(0, dtype=np.uint64)
    for batch, start, end in _keys(sources):
        found = np.union1d(found, hash_bytes(batch.data, start, end))
    return found


def _keys_with(sources: list[KeyGroupReader], hashes: Hashes) -> set[bytes]:
    """Return the bytes of the keys with some hashes."""
    return {
        batch.data[start[i] : end[i]].tobytes()
        for batch, start, end in _keys(sources)
        for i in np.flatnonzero(np.isin(hash_bytes(batch.data, start, end), hashes)).tolist()
    }


def _keys(sources: list[KeyGroupReader]) -> Iterator[tuple[EntryBatch, Int64s, Int64s]]:
    """Yield entries of one state at a time with the start and the end of their keys."""
    for source in sources:
        with error_context(source):
            header = source.header()
            for batch in source.batches(_REQUEST):
                for state in np.unique(batch.state).tolist():
                    entries = batch.of_state(state)
                    yield entries, *_key_ranges(entries, header, state)


def _key_ranges(entries: EntryBatch, header: KeyedHeader, state: int) -> tuple[Int64s, Int64s]:
    meta = header.states[state]
    if meta.kind != "timers":
        parts = split_keys(entries, header.key, meta)
        return parts.key, parts.key_end
    start = entries.key + TIMESTAMP_BYTES
    return start, find_ends(header.key.program(), header.key.skip, entries.data, start, entries.key_end)
