"""Advice from a history, one function per topic; letters as in :mod:`statetool.operations.advice.history`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

from statetool.errors import several
from statetool.operations.advice.findings import BACKPRESSURE, CHECKPOINTING, CHECKPOINTS, KAFKA, RECOVERY, TUNING
from statetool.operations.advice.history import DETECTION_MS, Advice, History, Unmeasured, Unmet

_HOUR_MS: Final = 3_600_000
_TIMEOUT_MS: Final = 600_000.0
#: A time-out is this multiple of the 99th percentile of checkpoint durations.
_TIMEOUT_FACTOR: Final = 3
#: While the job catches up with backlog, the overhead should be smaller by this factor.
_BACKLOG_FACTOR: Final = 10
#: Barriers make a checkpoint slow if they take a larger share of it than this.
_BARRIER_SHARE: Final = 0.5
#: Snappy costs CPU time on all cores, which pays off if it saves at least this share of the written bytes.
_LEAST_GAIN: Final = 0.2
#: Minimum state for conclusions about how to write it, and minimum time for conclusions about growth.
_LEAST_BYTES: Final = 1 << 20
_LEAST_SAMPLE: Final = 1 << 16
_LEAST_HOURS: Final = 1 / 60
_C: Final = "execution.checkpointing."


def _s(ms: float) -> str:
    return f"{ms / 1000:.4g} s"


def _size(size: float) -> str:
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size:.4g} B"


def _saved(part: float, whole: float) -> str:
    """Return the arithmetic of the saving."""
    return f"1 - {_size(part)} / {_size(whole)} = {1 - part / whole:.3g}" if whole else "no bytes to compare"


def _whole_seconds(ms: float) -> int:
    """Return seconds, rounded up."""
    return math.ceil(ms / 1000)


def _growth(history: History) -> Iterator[Advice]:
    points = [(c.modified_ms, c.total_bytes) for c in history.chain.checkpoints if c.modified_ms is not None]
    hours = (points[-1][0] - points[0][0]) / _HOUR_MS if points else 0.0
    if len(points) < 2 or hours < _LEAST_HOURS:
        return
    added = points[-1][1] - points[0][1]
    yield Advice(
        topic="growth",
        key=None,
        now=_size(points[-1][1]),
        advised=None,
        message=f"state {'grew' if added >= 0 else 'shrank'} by {_size(abs(added) / hours)} per hour over the retained checkpoints",
        arithmetic=f"({_size(points[-1][1])} - {_size(points[0][1])}) / {hours:.3g} h",
        page=TUNING,
    )
    if history.statistics is not None and len(history.statistics.checkpoints) > 3:
        times = [c.duration_ms for c in history.statistics.checkpoints]
        half = len(times) // 2
        older, newer = sum(times[:half]) / half, sum(times[-half:]) / half
        yield Advice(
            topic="duration",
            key=None,
            now=_s(newer),
            advised=None,
            message=f"checkpoints take {newer / max(older, 1):.2g} times as long as in the older half of the history",
            arithmetic=f"average of the newer {half}: {_s(newer)}; of the older {half}: {_s(older)}",
            page=TUNING,
        )


def _interval(history: History) -> Iterator[Advice]:
    d, now, aims = history.duration_ms, history.interval_ms, history.aims
    if d is None:
        yield Unmeasured(
            topic="interval",
            key=f"{_C}interval",
            now=None if now is None else _s(now),
            advised=None,
            message="the duration of checkpoints is unknown: save the response of /jobs/<id>/checkpoints and pass it with --rest",
            arithmetic="overhead = d / max(I, d + min-pause)",
            page=CHECKPOINTING,
        )
        return
    x, y, c, r = aims.overhead, aims.recovery_ms, aims.catch_up, history.restore_ms
    least, most = _whole_seconds(d / x), math.floor(((y - r) * (c - 1) - d - r) / 1000)
    low = f"d / x = {_s(d)} / {x:g} = {least} s"
    high = f"(y - r) * (c - 1) - d - r = ({_s(y)} - {_s(r)}) * {c - 1:g} - {_s(d)} - {_s(r)} = {most} s"
    if least > most:
        yield Unmet(
            topic="interval",
            key=f"{_C}interval",
            now=None if now is None else _s(now),
            advised=None,
            message=f"no interval keeps overhead below {x:.0%} and recovery below {_s(y)}: make checkpoints or restores faster",
            arithmetic=f"at least {low}; at most {high}",
            page=CHECKPOINTING,
        )
        return
    advised = least if now is None else min(max(_whole_seconds(now), least), most)
    fits = now is not None and least * 1000 <= now <= most * 1000
    yield Advice(
        topic="interval",
        key=f"{_C}interval",
        now=None if now is None else _s(now),
        advised=None if fits else f"{advised} s",
        message=f"between {least} s and {most} s, overhead stays below {x:.0%} and recovery below {_s(y)}",
        arithmetic=f"at least {low}; at most {high}",
        page=CHECKPOINTING,
    )
    pause, set_pause = _whole_seconds(d * (1 - x) / x), history.option_ms("min-pause") or 0.0
    yield Advice(
        topic="min-pause",
        key=f"{_C}min-pause",
        now=_s(set_pause),
        advised=None if set_pause >= pause * 1000 else f"{pause} s",
        message="the pause limits the overhead if checkpoints take longer than they do now",
        arithmetic=f"d * (1 - x) / x = {_s(d)} * {1 - x:g} / {x:g} = {pause} s",
        page=CHECKPOINTING,
    )


def _backlog(history: History) -> Iterator[Advice]:
    d, x = history.duration_ms, history.aims.overhead
    if d is None:
        return
    now = history.option_ms("interval-during-backlog")
    advised = _whole_seconds(max(d * _BACKLOG_FACTOR / x, history.interval_ms or 0.0))
    yield Advice(
        topic="backlog",
        key=f"{_C}interval-during-backlog",
        now=None if now is None else _s(now),
        advised=None if now == 0 or (now or 0) >= advised * 1000 else f"{advised} s",
        message="a source that reports backlog (isProcessingBacklog) catches up faster with fewer checkpoints; 0 takes none",
        arithmetic=f"{_BACKLOG_FACTOR} * d / x = {_BACKLOG_FACTOR} * {_s(d)} / {x:g}, and at least the interval: {advised} s",
        page=CHECKPOINTING,
    )


def _timeouts(history: History) -> Iterator[Advice]:
    d = history.duration_ms
    if d is None:
        return
    configured = history.option_ms("timeout")
    now = _TIMEOUT_MS if configured is None else configured
    advised = _whole_seconds(_TIMEOUT_FACTOR * d)
    timeout = max(now, advised * 1000.0)
    yield Advice(
        topic="timeout",
        key=f"{_C}timeout",
        now=_s(now),
        advised=None if now >= advised * 1000 else f"{advised} s",
        message=f"{several(history.statistics.failed if history.statistics else 0, 'checkpoint')} of the job failed",
        arithmetic=f"{_TIMEOUT_FACTOR} * d = {_TIMEOUT_FACTOR} * {_s(d)} = {advised} s",
        page=CHECKPOINTING,
    )
    if not history.writes_to_kafka:
        return
    period = max(history.interval_ms or 0.0, d + (history.option_ms("min-pause") or 0.0))
    yield Advice(
        topic="transactions",
        key="transaction.timeout.ms",
        now=None,
        advised=f"{math.ceil(period + timeout)}",
        message="transactions of exactly-once sinks must stay open at least this long, plus the time that a restart takes",
        arithmetic=f"P + timeout = {_s(period)} + {_s(timeout)}",
        page=KAFKA,
    )


def _barriers(history: History) -> Iterator[Advice]:
    if not history.subtasks:
        return
    slowest = max(history.subtasks, key=lambda s: s.duration_ms)
    slow = slowest.duration_ms > 0 and slowest.barrier_ms > _BARRIER_SHARE * slowest.duration_ms
    configuration = history.configuration
    unaligned = configuration is not None and configuration.flag(f"{_C}unaligned.enabled")
    words = "checkpoints mostly wait for barriers, so the job is under backpressure"
    yield Advice(
        topic="barriers",
        key=f"{_C}unaligned.enabled",
        now=_s(slowest.barrier_ms),
        advised="true" if slow and not unaligned else None,
        message=words if slow else "waiting for barriers does not make checkpoints slow",
        arithmetic=f"end to end - sync - async = {_s(slowest.duration_ms)} - {_s(slowest.sync_ms)} - {_s(slowest.async_ms)}"
        f" = {_s(slowest.barrier_ms)} (subtask {slowest.subtask}, the slowest)",
        page=BACKPRESSURE,
    )


def _incremental(history: History) -> Iterator[Advice]:
    later = history.chain.checkpoints[1:]
    if not later:
        return
    total, new = sum(c.total_bytes for c in later), sum(c.new_bytes for c in later)
    saved = 1 - new / total if total else 0.0
    shares, enough = any(c.reused_bytes for c in later), history.state_bytes >= _LEAST_BYTES
    if shares:
        message = f"sharing files with earlier checkpoints saves {saved:.0%} of the bytes written"
    elif enough:
        message = "with state.backend.type: rocksdb, Flink writes changed files only; the saving is unknown until then"
    else:
        message = f"{_size(history.state_bytes)} of state are too little to gain from incremental checkpoints"
    yield Advice(
        topic="incremental",
        key=f"{_C}incremental",
        now="shares files" if shares else "writes everything each time",
        advised="true" if enough and not shares else None,
        message=message,
        arithmetic=f"1 - new / needed: {_saved(new, total)}, over {several(len(later), 'checkpoint')} after the first",
        page=TUNING,
    )


def _compression(history: History) -> Iterator[Advice]:
    from statetool.operations.advice.compression import (
        measure_compression,  # imports the readers of entries, which is slow
    )

    compression = measure_compression(history.chain.checkpoints[-1].path)
    if not compression.streams and not compression.databases and not compression.problem:
        return
    gain = 1 - compression.packed_bytes / compression.plain_bytes if compression.plain_bytes else 0.0
    enough = history.state_bytes >= _LEAST_BYTES and compression.plain_bytes >= _LEAST_SAMPLE
    worth = bool(compression.streams) and not compression.compressed and gain >= _LEAST_GAIN and enough
    if compression.problem:
        message = f"the saving of Snappy could not be measured: {compression.problem}"
    elif not compression.streams:
        message = "RocksDB and ForSt compress their files themselves, so Snappy has no effect"
    elif not enough:
        message = f"{_size(history.state_bytes)} of state ({_size(compression.plain_bytes)} sampled) are too little to estimate the saving of Snappy"
    else:
        message = f"Snappy {'saves' if compression.compressed else 'would save'} {gain:.0%} of keyed state that is written as a stream"
    kind = Unmeasured if compression.problem else Advice
    yield kind(
        topic="compression",
        key=f"{_C}snapshot-compression",
        now=("true" if compression.compressed else "false") if compression.streams else None,
        advised="true" if worth else None,
        message=message,
        arithmetic=f"1 - compressed / plain: {_saved(compression.packed_bytes, compression.plain_bytes)}, of a sample; worth it from {_LEAST_GAIN:g}",
        page=TUNING,
    )


def _restore(history: History) -> Iterator[Advice]:
    aims = history.aims
    yield Advice(
        topic="restore",
        key=None,
        now=_s(history.restore_ms),
        advised=None,
        message="time until a failed job resumes: detecting the failure and loading state",
        arithmetic=f"{_s(DETECTION_MS)} + {_size(history.state_bytes)} / ({history.parallelism} * {_size(aims.restore_bytes_s)}/s)",
        page=RECOVERY,
    )


def _retention(history: History) -> Iterator[Advice]:
    chain = history.chain
    retained_bytes = sum(c.new_bytes for c in chain.checkpoints)
    newest = chain.checkpoints[-1].total_bytes
    yield Advice(
        topic="retention",
        key=f"{_C}num-retained",
        now=f"{several(len(chain.checkpoints), 'snapshot')}, {_size(retained_bytes)}",
        advised=None,
        message=f"keeping more than the newest costs {_size(retained_bytes - newest)}",
        arithmetic=f"sum of the bytes that each added - the newest = {_size(retained_bytes)} - {_size(newest)}",
        page=CHECKPOINTS,
    )


SUGGESTIONS: Final[tuple[Callable[[History], Iterator[Advice]], ...]] = (
    _growth,
    _interval,
    _backlog,
    _timeouts,
    _barriers,
    _incremental,
    _compression,
    _restore,
    _retention,
)
