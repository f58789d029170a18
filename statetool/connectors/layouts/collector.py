"""State of a Sink V2 committer: committables by checkpoint and writer (``CommittableCollectorSerializer``, version 2).

i4 0xB91F252C, list of checkpoints: version 0 (1.17): i8 id, list of writers; 1 (1.20 and later): i8 id, i4 number of writers, list of
writers. A writer: version 0 (1.17): list of requests, i4 expected, i4 drained, i4 failed; 1 (1.20): i4 subtask before these; 2 (2.x): i4
subtask, list of requests, i4 expected, i4 failed. A request, version 0: committable (versioned), i4 retries, i4 state.

Version 1, of Flink 1.13 and 1.14 (``StreamingCommitterStateSerializer``): i4 0xB91F252C, list of committables; in a global committer, list of
global committables.

Version 2 of a global committer, of Flink 1.15 and later (``GlobalCommitterSerializer``): i4 0xB91F252B, boolean has a list of global committables
[list], collector (versioned). The list is that of a sink before Sink V2 and has what was restored from Flink 1.13 or 1.14.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from statetool.connectors.wire import known_version, read_all, read_list, read_versioned, write_list, write_versioned
from statetool.io.cursor import Cursor
from statetool.io.output import Output

VERSION: Final = 2
#: The version of Flink 1.13 and 1.14.
LEGACY: Final = 1
_MAGIC: Final = 0xB91F252C
_GLOBAL_MAGIC: Final = 0xB91F252B
STATES: Final = ("received", "retry", "failed", "committed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One committable, as bytes of its version. ``state`` is one of :data:`STATES`."""

    version: int
    data: bytes
    retries: int
    state: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Committables of one writer. ``subtask`` and ``drained`` are set if the version stores them."""

    version: int
    subtask: int | None
    requests_version: int
    requests: tuple[Request, ...]
    expected: int
    drained: int | None
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Committables of one checkpoint. ``count`` (number of writers) is set if the version stores it."""

    version: int
    checkpoint_id: int
    count: int | None
    writers_version: int
    writers: tuple[Writer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """State of one committer subtask."""

    checkpoints_version: int
    checkpoints: tuple[Checkpoint, ...]

    def without(self, forgotten: Callable[[Request], bool]) -> Collector:
        """Return the collector without the forgotten committables; its writers no longer expect them either."""
        return replace(
            self,
            checkpoints=tuple(
                replace(c, writers=tuple(_without(w, forgotten) for w in c.writers)) for c in self.checkpoints
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyCommittables:
    """All committables of one subtask, as bytes of their common version: Flink 1.13 and 1.14 store nothing else."""

    version: int
    committables: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalState:
    """State of a global committer. ``restored`` has global committables, as bytes of their common version, if the sink has a serializer for them."""

    restored: LegacyCommittables | None
    collector: Collector


def _without(writer: Writer, forgotten: Callable[[Request], bool]) -> Writer:
    remaining = tuple(r for r in writer.requests if not forgotten(r))
    return replace(writer, requests=remaining, expected=writer.expected - (len(writer.requests) - len(remaining)))


def read_collector(data: bytes) -> Collector:
    """Read a collector of :data:`VERSION`.

    Raises
    ------
    FormatError, UnsupportedError
        The bytes, or versions inside them, are not known.
    """
    return read_all(data, _read, "a collector of committables")


def write_collector(collector: Collector) -> bytes:
    """Return the bytes of a collector."""
    out = Output()
    out += _MAGIC.to_bytes(4, "big")
    write_list(out, collector.checkpoints_version, [_checkpoint_bytes(c) for c in collector.checkpoints])
    return bytes(out)


def read_legacy(data: bytes) -> LegacyCommittables:
    """Read committables of version :data:`LEGACY`. Raises the errors of :func:`read_collector`."""
    return read_all(data, _read_legacy, "committables")


def write_legacy(legacy: LegacyCommittables) -> bytes:
    """Return the bytes of committables of version :data:`LEGACY`."""
    out = Output()
    out += _MAGIC.to_bytes(4, "big")
    write_list(out, legacy.version, legacy.committables)
    return bytes(out)


def is_global(data: bytes) -> bool:
    """Return True if an element of :data:`VERSION` is the state of a global committer."""
    return data[:4] == _GLOBAL_MAGIC.to_bytes(4, "big")


def read_global(data: bytes) -> GlobalState:
    """Read the state of a global committer. Raises the errors of :func:`read_collector`."""
    return read_all(data, _read_global, "the state of a global committer")


def write_global(state: GlobalState) -> bytes:
    """Return the bytes of a global committer's state."""
    out = Output()
    out += _GLOBAL_MAGIC.to_bytes(4, "big")
    out.bool(state.restored is not None)
    if state.restored is not None:
        write_list(out, state.restored.version, state.restored.committables)
    out += write_versioned(VERSION, write_collector(state.collector))
    return bytes(out)


def _read_global(c: Cursor) -> GlobalState:
    if int.from_bytes(c.take(4), "big") != _GLOBAL_MAGIC:
        raise c.fail("expected the magic number of a global committer (B9 1F 25 2B)", pos=c.pos - 4)
    restored = _read_committables(c) if c.bool() else None
    version, inner = read_versioned(c, "a collector of committables")
    known_version(version, (VERSION,), "a collector of committables")
    collector = _read(inner)
    inner.expect_end("a collector of committables")
    return GlobalState(restored=restored, collector=collector)


def _expect_magic(c: Cursor) -> None:
    if int.from_bytes(c.take(4), "big") != _MAGIC:
        raise c.fail("expected the magic number of a collector (B9 1F 25 2C)", pos=c.pos - 4)


def _read_legacy(c: Cursor) -> LegacyCommittables:
    _expect_magic(c)
    return _read_committables(c)


def _read_committables(c: Cursor) -> LegacyCommittables:
    version = _version_of(c)
    return LegacyCommittables(
        version=version, committables=tuple(read_list(c, lambda _, inner: inner.take(inner.left), "a committable"))
    )


def _version_of(c: Cursor) -> int:
    """Return the version of the list that follows without consuming it: an empty list has no element that stores it."""
    start = c.pos
    version = c.i4()
    c.pos = start
    return version


def _read(c: Cursor) -> Collector:
    _expect_magic(c)
    version = _version_of(c)
    return Collector(checkpoints_version=version, checkpoints=tuple(read_list(c, _read_checkpoint, "a checkpoint")))


def _read_checkpoint(version: int, c: Cursor) -> Checkpoint:
    known_version(version, (0, 1), "a checkpoint of committables")
    checkpoint_id, count = c.i8(), None if version == 0 else c.i4()
    writers_version = _version_of(c)
    return Checkpoint(
        version=version,
        checkpoint_id=checkpoint_id,
        count=count,
        writers_version=writers_version,
        writers=tuple(read_list(c, _read_writer, "a writer's committables")),
    )


def _read_writer(version: int, c: Cursor) -> Writer:
    known_version(version, (0, 1, 2), "a writer's committables")
    subtask = None if version == 0 else c.i4()
    requests_version = _version_of(c)
    requests = tuple(read_list(c, _read_request, "a committable"))
    return Writer(
        version=version,
        subtask=subtask,
        requests_version=requests_version,
        requests=requests,
        expected=c.i4(),
        drained=None if version == 2 else c.i4(),
        failed=c.i4(),
    )


def _read_request(version: int, c: Cursor) -> Request:
    known_version(version, (0,), "a request to commit")
    inner_version, inner = read_versioned(c, "a committable")
    retries, state = c.i4(), c.i4()
    if not 0 <= state < len(STATES):
        raise c.fail(f"state {state} of a committable is not 0 to 3", pos=c.pos - 4)
    return Request(version=inner_version, data=inner.take(inner.left), retries=retries, state=state)


def _checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    out = Output()
    out.i8(checkpoint.checkpoint_id)
    if checkpoint.count is not None:
        out.i4(checkpoint.count)
    write_list(out, checkpoint.writers_version, [_writer_bytes(w) for w in checkpoint.writers])
    return bytes(out)


def _writer_bytes(writer: Writer) -> bytes:
    out = Output()
    if writer.subtask is not None:
        out.i4(writer.subtask)
    write_list(out, writer.requests_version, [_request_bytes(r) for r in writer.requests])
    for number in (writer.expected, writer.drained, writer.failed):
        if number is not None:
            out.i4(number)
    return bytes(out)


def _request_bytes(request: Request) -> bytes:
    out = Output()
    out += write_versioned(request.version, request.data)
    out.i4(request.retries)
    out.i4(request.state)
    return bytes(out)
