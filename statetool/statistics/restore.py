"""How long a restore takes, about: what each subtask has to read, at today's parallelism and at another one.

Streams with an offset for each key group are read where a subtask's own key groups lie. Of a database each subtask fetches all files
that hold any of its key groups, whole, as Flink does: after a change of parallelism that is mostly other subtasks' keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from statetool.entries.form import StoredState
from statetool.errors import OptionError
from statetool.formats.key_groups import owner_of
from statetool.formats.metadata.handles import ByteStreamHandle, streams_of
from statetool.snapshot.operator import OperatorInventory
from statetool.statistics.records import RestoreRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The way to the files: bytes in a second, and the time that a request waits; of one subtask."""

    bytes_per_second: float
    latency_ms: float

    @classmethod
    def of(cls, *, bandwidth_mib: float, latency_ms: float) -> Link:
        """Check options.

        Raises
        ------
        OptionError
            A number that makes no sense.
        """
        if bandwidth_mib <= 0 or latency_ms < 0:
            raise OptionError(
                f"a bandwidth of {bandwidth_mib} MiB/s with a latency of {latency_ms} ms",
                hint="the bandwidth is above 0, the latency at least 0",
            )
        return cls(bytes_per_second=bandwidth_mib * (1 << 20), latency_ms=latency_ms)

    def seconds(self, requests: int, size_bytes: float) -> float:
        """Return how long one request after another takes."""
        return requests * self.latency_ms / 1000 + size_bytes / self.bytes_per_second


@dataclass(slots=True)
class _Reads:
    """What one subtask reads."""

    requests: int = 0
    read_bytes: float = 0.0
    own_bytes: float = 0.0
    files: set[str] = field(default_factory=set)

    def add(self, requests: int, read_bytes: float, own_bytes: float, files: Iterable[str]) -> None:
        self.requests += requests
        self.files.update(files)
        self.read_bytes += read_bytes
        self.own_bytes += own_bytes


def restore_rows(operator: OperatorInventory, wished: int | None, link: Link) -> Iterator[RestoreRow]:
    """Yield what each subtask of an operator reads; from the metadata alone."""
    if not operator.keyed.managed and not operator.keyed.raw_timers and not operator.elements.streams:
        return
    most = operator.state.max_parallelism
    today = min(operator.state.parallelism, most)
    for parallelism in dict.fromkeys((today, min(wished or today, most))):
        reads = [_Reads() for _ in range(parallelism)]
        for stored in (*operator.keyed.managed, *operator.keyed.raw_timers):
            _keyed(stored, reads, most)
        _elements(operator, reads)
        for subtask, some in enumerate(reads):
            yield RestoreRow(
                operator=operator.label,
                parallelism=parallelism,
                subtask=subtask,
                files=len(some.files),
                requests=some.requests,
                read_bytes=round(some.read_bytes),
                own_bytes=round(some.own_bytes),
                seconds=round(link.seconds(some.requests, some.read_bytes), 3),
            )


def _keyed(stored: StoredState, reads: list[_Reads], most: int) -> None:
    groups = list(stored.key_groups())
    streams = list(streams_of(stored.place.handle))
    files = [s.path for s in streams if not isinstance(s, ByteStreamHandle)]
    owners = {owner_of(g.key_group, len(reads), most) for g in groups}
    if all(g.size_bytes is not None for g in groups):
        header = 0 if stored.place.raw else len((stored.description() or (b"", 0))[0])
        for owner in owners:
            own = sum(g.size_bytes or 0 for g in groups if owner_of(g.key_group, len(reads), most) == owner)
            if own:
                reads[owner].add(1, header + own, header + own, files)
        return
    size = sum(s.size_bytes for s in streams)
    for owner in owners:
        share = sum(owner_of(g.key_group, len(reads), most) == owner for g in groups) / len(groups)
        reads[owner].add(len(streams), size, size * share, files)


def _elements(operator: OperatorInventory, reads: list[_Reads]) -> None:
    """Add operator state: lists are dealt out, unions go to all, of broadcast state each subtask reads one copy."""
    kinds = {name: meta.kind for name, meta in operator.operator_states.items()}
    for number, part in enumerate(operator.elements.streams):
        sizes = {n: sum(end - start for start, end in part.ranges(n)) for n in part.offsets}
        union = sum(size for n, size in sizes.items() if kinds[n] == "union")
        split = sum(size for n, size in sizes.items() if kinds[n] == "list")
        shared = sum(size for n, size in sizes.items() if kinds[n] == "broadcast")
        files = () if part.stream.inline is not None else (part.stream.file,)
        for subtask, some in enumerate(reads):
            own = split / len(reads) + (shared if subtask % len(operator.elements.streams) == number else 0) + union
            if own:
                some.add(1, part.first + own, part.first + own, files)
