"""Estimated restore time from the bytes that each subtask reads, at the current parallelism and at another one.

If a stream has an offset per key group, a subtask reads only its key groups. From a database it fetches every file with any of
its key groups completely, as Flink does: after a change of parallelism most of these bytes are other subtasks' keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from statetool.analysis.statistics.records import RestoreRow
from statetool.entries.form import StoredState
from statetool.errors import OptionError
from statetool.formats.key_groups import owner_of
from statetool.formats.metadata.handles import ByteStreamHandle, streams_of
from statetool.snapshot.operator import OperatorInventory


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One subtask's connection to the files: bytes per second, and latency per request."""

    bytes_per_second: float
    latency_ms: float

    @classmethod
    def of(cls, *, bandwidth_mib: float, latency_ms: float) -> Link:
        """Check options.

        Raises
        ------
        OptionError
            A number is out of range.
        """
        if not (0 < bandwidth_mib < math.inf and 0 <= latency_ms < math.inf):  # rejects nan too
            raise OptionError(
                f"a bandwidth of {bandwidth_mib} MiB/s with a latency of {latency_ms} ms",
                hint="pass a bandwidth above 0 and a latency of at least 0",
            )
        return cls(bytes_per_second=bandwidth_mib * (1 << 20), latency_ms=latency_ms)

    def seconds(self, requests: int, size_bytes: float) -> float:
        """Return the duration of consecutive requests in seconds."""
        return requests * self.latency_ms / 1000 + size_bytes / self.bytes_per_second


@dataclass(slots=True)
class _Reads:
    """Bytes, files and requests that one subtask reads."""

    requests: int = 0
    read_bytes: float = 0.0
    own_bytes: float = 0.0
    files: set[str] = field(default_factory=set)

    def add(self, requests: int, read_bytes: float, own_bytes: float, files: Iterable[str]) -> None:
        self.requests += requests
        self.files.update(files)
        self.read_bytes += read_bytes
        self.own_bytes += own_bytes


def restore_rows(
    operator: OperatorInventory, keyed: Sequence[StoredState], wished: int | None, link: Link
) -> Iterator[RestoreRow]:
    """Yield the reads of each subtask of an operator, for ``keyed`` state and the rest, using only the metadata."""
    if not keyed and not operator.elements.streams:
        return
    max_parallelism = operator.state.max_parallelism
    today = min(operator.state.parallelism, max_parallelism)
    for parallelism in dict.fromkeys((today, min(wished or today, max_parallelism))):
        reads = [_Reads() for _ in range(parallelism)]
        for stored in keyed:
            _keyed_links(stored, reads, max_parallelism)
        _elements(operator, reads)
        for subtask, subtask_reads in enumerate(reads):
            yield RestoreRow(
                operator=operator.label,
                parallelism=parallelism,
                subtask=subtask,
                files=len(subtask_reads.files),
                requests=subtask_reads.requests,
                read_bytes=round(subtask_reads.read_bytes),
                own_bytes=round(subtask_reads.own_bytes),
                seconds=round(link.seconds(subtask_reads.requests, subtask_reads.read_bytes), 3),
            )


def _keyed_links(stored: StoredState, reads: list[_Reads], max_parallelism: int) -> None:
    groups = list(stored.key_groups())
    streams = list(streams_of(stored.place.handle))
    files = [s.path for s in streams if not isinstance(s, ByteStreamHandle)]
    owners = {owner_of(g.key_group, len(reads), max_parallelism) for g in groups}
    if all(g.size_bytes is not None for g in groups):
        header = 0 if stored.place.raw else len((stored.description() or (b"", 0))[0])
        for owner in owners:
            own = sum(g.size_bytes or 0 for g in groups if owner_of(g.key_group, len(reads), max_parallelism) == owner)
            if own:
                reads[owner].add(1, header + own, header + own, files)
        return
    size = sum(s.size_bytes for s in streams)
    for owner in owners:
        share = sum(owner_of(g.key_group, len(reads), max_parallelism) == owner for g in groups) / len(groups)
        reads[owner].add(len(streams), size, size * share, files)


def _elements(operator: OperatorInventory, reads: list[_Reads]) -> None:
    """Add operator state: lists are distributed, all subtasks read unions, and each subtask reads one copy of broadcast state."""
    kinds = {name: meta.kind for name, meta in operator.operator_states.items()}
    for index, stream in enumerate(operator.elements.streams):
        sizes = {n: sum(end - start for start, end in stream.ranges(n)) for n in stream.offsets}
        union = sum(size for n, size in sizes.items() if kinds[n] == "union")
        split = sum(size for n, size in sizes.items() if kinds[n] == "list")
        shared = sum(size for n, size in sizes.items() if kinds[n] == "broadcast")
        files = () if stream.stream.inline is not None else (stream.stream.file,)
        for subtask, subtask_reads in enumerate(reads):
            own = split / len(reads) + (shared if subtask % len(operator.elements.streams) == index else 0) + union
            if own:
                subtask_reads.add(1, stream.first + own, stream.first + own, files)
