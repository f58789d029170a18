"""Estimated gain of Snappy, measured on a sample of the entries of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from statetool.entries.form import EntryRequest, StoredState
from statetool.errors import StatetoolError
from statetool.formats.compression import packed_size
from statetool.snapshot.inventory import Inventory

if TYPE_CHECKING:
    from statetool.formats.keyed.entries import EntryBatch

#: Bytes of keyed state to read per subtask, and in total.
_SAMPLE_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """Bytes of a sample of entries, plain and compressed by Snappy.

    ``streams`` counts subtasks whose keyed state is a stream of entries, ``databases`` those whose database compresses its files itself;
    ``compressed`` is True if streams are already compressed. ``problem`` is the reason why nothing was measured.
    """

    plain_bytes: int = 0
    packed_bytes: int = 0
    streams: int = 0
    databases: int = 0
    compressed: bool = False
    problem: str = ""


def measure_compression(path: str) -> Compression:
    """Measure a snapshot; a read error becomes the result's ``problem``."""
    try:
        stored = [s for o in Inventory(path).operators.values() for s in o.keyed.managed]
        streams = [s for s in stored if not s.database]
        plain = packed = 0
        for state in streams:
            for batch in _sample(state):
                plain += len(batch.data)
                packed += packed_size(batch.data.data)
            if plain >= _MOST_BYTES:
                break
        return Compression(
            plain_bytes=plain,
            packed_bytes=packed,
            streams=len(streams),
            databases=len(stored) - len(streams),
            compressed=any(s.header().compressed for s in streams),
        )
    except (StatetoolError, OSError) as error:
        return Compression(problem=str(error))


def _sample(stored: StoredState) -> Iterator[EntryBatch]:
    for source in islice(stored.sources(stored.read_context.context, groups=None, target_bytes=_SAMPLE_BYTES), 1):
        yield from islice(source.batches(EntryRequest(batch_bytes=_SAMPLE_BYTES)), 1)
