"""Rules for combinations of options. Each returns a finding or None; :mod:`statetool.operations.advice.lint` runs them all.

Follows ``CheckpointConfig``, ``CheckpointCoordinatorConfiguration`` and the pages that each finding names. Defaults are Flink's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from statetool.operations.advice.configuration import Configuration
from statetool.operations.advice.findings import (
    BACKENDS,
    BACKPRESSURE,
    CHECKPOINTING,
    CHECKPOINTS,
    CONFIG,
    KAFKA,
    RECOVERY,
    SAVEPOINTS,
    TUNING,
    Finding,
    Level,
)
from statetool.operations.advice.restore_settings import (
    BACKEND,
    CHANGE_LOG,
    CLAIM_MODE,
    LOCAL_RECOVERY,
    RESTARTS,
    RESTORED,
    RUNTIME_MODE,
    TIMERS,
    checkpoint_storage,
    claim_mode,
    fails_without_claim,
    keeps_timers_on_heap,
    never_restarts,
    own_backend,
    runs_as_batch,
)

_C: Final = "execution.checkpointing."
_INTERVAL: Final = f"{_C}interval"
_PAUSE: Final = f"{_C}min-pause"
_TIMEOUT: Final = f"{_C}timeout"
_CONCURRENT: Final = f"{_C}max-concurrent-checkpoints"
_UNALIGNED: Final = f"{_C}unaligned.enabled"
_TEN_MINUTES_MS: Final = 600_000.0
_LEAST_MS: Final = 10
_MOST_INLINE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A configuration, the sinks' transaction time-out, and the 99th percentile of checkpoint durations, as far as known."""

    configuration: Configuration
    transaction_timeout_ms: float | None = None
    p99_ms: float | None = None

    @property
    def interval_ms(self) -> float | None:
        """Return the milliseconds between checkpoints; ``None`` if the configuration does not enable them."""
        return self.configuration.millis(_INTERVAL) or None

    @property
    def is_at_least_once(self) -> bool:
        """Return True if a checkpoint may contain the effect of records that are read again after a restore."""
        return (self.configuration.text(f"{_C}mode") or "").upper().replace("-", "_") == "AT_LEAST_ONCE"

    @property
    def timeout_ms(self) -> float:
        """Return the maximum duration of a checkpoint in milliseconds."""
        configured = self.configuration.millis(_TIMEOUT)
        return _TEN_MINUTES_MS if configured is None else configured

    @property
    def pause_ms(self) -> float:
        """Return the minimum milliseconds between the end of a checkpoint and the start of the next."""
        return self.configuration.millis(_PAUSE) or 0.0

    @property
    def backend(self) -> str:
        """Return ``hashmap``, ``rocksdb``, ``forst``, or a class name."""
        return (self.configuration.text(BACKEND) or "hashmap").lower()

    @property
    def storage(self) -> str:
        """Return ``filesystem`` or ``jobmanager``, or a class name; a directory alone implies ``filesystem``."""
        return checkpoint_storage(self.configuration)

    def finding(self, level: Level, rule: str, key: str, page: str, message: str) -> Finding:
        """Return a finding about an option."""
        name, value = self.configuration.written(key) or (key, None)
        return Finding(level=level, rule=rule, key=name, value=value, message=message, page=page)


Rule = Callable[[Known], Finding | None]


def _seconds(ms: float) -> str:
    return f"{ms / 1000:g} s"


# ---- time ---------------------------------------------------------------------------------------


def _too_often(known: Known) -> Finding | None:
    for key in (_INTERVAL, _TIMEOUT):
        ms = known.configuration.millis(key)
        if ms is not None and ms < _LEAST_MS and (ms > 0 or key == _TIMEOUT):
            return known.finding("error", "too-short", key, CHECKPOINTING, f"Flink refuses values below {_LEAST_MS} ms")
    return None


def _pause_above_interval(known: Known) -> Finding | None:
    if known.interval_ms is None or known.pause_ms <= known.interval_ms:
        return None
    return known.finding(
        "warning",
        "min-pause-above-interval",
        _PAUSE,
        CHECKPOINTING,
        f"the interval is {_seconds(known.interval_ms)}, but the pause allows at most one checkpoint per"
        f" {_seconds(known.pause_ms)} plus its duration",
    )


def _timeout_below_p99(known: Known) -> Finding | None:
    if known.p99_ms is None or known.timeout_ms >= known.p99_ms:
        return None
    message = (
        f"checkpoints expire after {_seconds(known.timeout_ms)}, but 1 in 100 takes {_seconds(known.p99_ms)} or longer"
    )
    return known.finding("error", "timeout-below-p99", _TIMEOUT, CHECKPOINTING, message)


def _transactions(known: Known) -> Finding | None:
    limit, interval = known.transaction_timeout_ms, known.interval_ms
    if limit is None or interval is None:
        return None
    opened = max(interval, known.pause_ms)
    if limit > opened + known.timeout_ms:
        return None
    message = (
        f"a transaction stays open for up to {_seconds(opened)} until its checkpoint starts, and {_seconds(known.timeout_ms)} until"
        f" the checkpoint completes, but the sink's transactions end after {_seconds(limit)}: data of a transaction that ends earlier is lost"
    )
    return known.finding("error", "transaction-timeout", _TIMEOUT, KAFKA, message)


def _backlog_interval(known: Known) -> Finding | None:
    key = f"{_C}interval-during-backlog"
    ms, interval = known.configuration.millis(key), known.interval_ms
    if ms is None or interval is None or ms == 0 or ms >= interval:
        return None
    message = f"Flink accepts only 0 (no checkpoints during backlog), or at least the interval of {_seconds(interval)}"
    return known.finding("error", "backlog-interval", key, CHECKPOINTING, message)


# ---- concurrency and alignment ------------------------------------------------------------------


def _concurrent(known: Known) -> Finding | None:
    limit = known.configuration.number(_CONCURRENT)
    if limit is None:
        return None
    if limit < 1:
        return known.finding("error", "no-concurrent", _CONCURRENT, CHECKPOINTING, "Flink refuses values below 1")
    if limit > 1 and known.configuration.flag(_UNALIGNED):
        message = "Flink refuses concurrent unaligned checkpoints"
        return known.finding("error", "concurrent-unaligned", _CONCURRENT, BACKPRESSURE, message)
    if limit > 1 and known.pause_ms > 0:
        message = "a minimum pause between checkpoints allows one checkpoint at a time, so this setting has no effect"
        return known.finding("warning", "concurrent-with-min-pause", _CONCURRENT, CHECKPOINTING, message)
    return None


def _unaligned_at_least_once(known: Known) -> Finding | None:
    if not known.configuration.flag(_UNALIGNED):
        return None
    if not known.is_at_least_once:
        return None
    message = "with AT_LEAST_ONCE, Flink disables unaligned checkpoints and only logs it"
    return known.finding("warning", "unaligned-at-least-once", _UNALIGNED, BACKPRESSURE, message)


def _only_unaligned(known: Known) -> Finding | None:
    if known.configuration.flag(_UNALIGNED):
        return None
    key = f"{_C}aligned-checkpoint-timeout"
    if known.configuration.millis(key):
        message = f"it has no effect unless {_UNALIGNED} is true"
        return known.finding("warning", "aligned-timeout-alone", key, BACKPRESSURE, message)
    forced = f"{_C}unaligned.forced"
    if known.configuration.flag(forced):
        message = (
            f"it has no effect unless {_UNALIGNED} is true; jobs with iterations need both for unaligned checkpoints"
        )
        return known.finding("warning", "forced-alone", forced, BACKPRESSURE, message)
    return None


def _aligned_timeout(known: Known) -> Finding | None:
    key = f"{_C}aligned-checkpoint-timeout"
    ms = known.configuration.millis(key)
    if not ms or not known.configuration.flag(_UNALIGNED) or ms < known.timeout_ms:
        return None
    message = f"checkpoints expire after {_seconds(known.timeout_ms)}, before they become unaligned"
    return known.finding("warning", "aligned-timeout-late", key, BACKPRESSURE, message)


# ---- where checkpoints are and how long they stay -----------------------------------------------


def _no_checkpoints(known: Known) -> Finding | None:
    timing = [k for k in (_PAUSE, _TIMEOUT, _CONCURRENT, _UNALIGNED, f"{_C}mode") if known.configuration.text(k)]
    if known.interval_ms is not None or not timing:
        return None
    message = (
        f"{timing[0]} is set, but without an interval Flink takes no checkpoints, unless the job's code enables them"
    )
    return known.finding("advice", "no-interval", _INTERVAL, CHECKPOINTING, message)


def _on_the_job_manager(known: Known) -> Finding | None:
    if known.interval_ms is None or known.storage != "jobmanager":
        return None
    if known.configuration.text(f"{_C}dir"):
        message = "a directory is set, but all state goes through the JobManager's heap, which limits each state handle to 5 MB"
        return known.finding("warning", "storage-ignores-dir", f"{_C}storage", CHECKPOINTS, message)
    if known.configuration.text(f"{_C}storage"):
        return None  # The user chose it.
    message = "without a directory, checkpoints stay on the JobManager's heap, with at most 5 MB per state handle, and cannot be restored by hand"
    return known.finding("advice", "no-directory", f"{_C}dir", CHECKPOINTS, message)


def _no_directory(known: Known) -> Finding | None:
    if known.storage != "filesystem" or known.configuration.text(f"{_C}dir"):
        return None
    message = "the filesystem storage needs a directory: Flink refuses to start the job"
    return known.finding("error", "filesystem-without-dir", f"{_C}dir", CHECKPOINTS, message)


def _not_retained(known: Known) -> Finding | None:
    key = f"{_C}externalized-checkpoint-retention"
    text = (known.configuration.text(key) or "NO_EXTERNALIZED_CHECKPOINTS").upper().replace("-", "_")
    if known.interval_ms is None or text != "NO_EXTERNALIZED_CHECKPOINTS":
        return None
    message = "Flink deletes the checkpoints when the job fails or is cancelled, so none is left to restore by hand"
    return known.finding("advice", "not-retained", key, CHECKPOINTS, message)


def _none_retained(known: Known) -> Finding | None:
    key = f"{_C}num-retained"
    retained = known.configuration.number(key)
    if retained is None or retained >= 1:
        return None
    return known.finding(
        "warning",
        "num-retained",
        key,
        CHECKPOINTS,
        "Flink keeps 1 checkpoint if the value is below 1, and only logs it",
    )


def _inline_threshold(known: Known) -> Finding | None:
    key = f"{_C}data-inline-threshold"
    size = known.configuration.size(key)
    if size is None or size <= _MOST_INLINE_BYTES:
        return None
    return known.finding("error", "inline-threshold", key, CONFIG, "Flink refuses values above 1 MB")


# ---- backends -----------------------------------------------------------------------------------


def _incremental_heap(known: Known) -> Finding | None:
    key = f"{_C}incremental"
    if not known.configuration.flag(key) or known.backend != "hashmap":
        return None
    message = (
        "the hashmap backend writes every checkpoint in full; incremental checkpoints need state.backend.type: rocksdb"
    )
    # The job's code may set another backend than the default.
    level: Level = "advice" if known.configuration.text(BACKEND) is None else "warning"
    return known.finding(level, "incremental-hashmap", key, BACKENDS, message)


def _compressed_incremental(known: Known) -> Finding | None:
    key = f"{_C}snapshot-compression"
    flag = known.configuration.flag
    if not flag(key) or not flag(f"{_C}incremental") or known.backend not in ("rocksdb", "forst"):
        return None
    message = (
        "it has no effect on keyed state in incremental checkpoints, because the database compresses its files itself"
    )
    return known.finding("warning", "compression-incremental", key, TUNING, message)


def _changelog(known: Known) -> Finding | None:
    if not known.configuration.flag(CHANGE_LOG):
        return None
    storage, base = "state.changelog.storage", "state.changelog.dstl.dfs.base-path"
    if (known.configuration.text(storage) or "memory").lower() == "memory":
        message = "the changelog stays in memory, which is for tests only: set it to filesystem, with a base path"
        return known.finding("error", "changelog-memory", storage, BACKENDS, message)
    if known.configuration.text(storage) == "filesystem" and known.configuration.text(base) is None:
        message = "the changelog has no directory: Flink refuses to start the job"
        return known.finding("error", "changelog-no-path", base, BACKENDS, message)
    return None


# ---- recovery -----------------------------------------------------------------------------------


def _never_restarts(known: Known) -> Finding | None:
    if known.interval_ms is None or not never_restarts(known.configuration):
        return None
    message = "Flink does not restart a failed job, so it never restores a checkpoint by itself"
    return known.finding("advice", "never-restarts", RESTARTS, RECOVERY, message)


def _high_availability(known: Known) -> Finding | None:
    kind = (known.configuration.text("high-availability.type") or "none").lower()
    if kind == "none" or known.configuration.text("high-availability.storageDir"):
        return None
    message = "high availability has no directory for the JobManager's metadata: Flink refuses to start"
    return known.finding(
        "error", "ha-no-storage", "high-availability.storageDir", f"{CONFIG}#high-availability", message
    )


def _drops_in_flight(known: Known) -> Finding | None:
    key = "execution.state-recovery.without-channel-state.checkpoint-id"
    number = known.configuration.number(key)
    if number is None or number < 0:
        return None
    message = f"a recovery from checkpoint {number} drops in-flight data: remove the setting after that recovery"
    return known.finding("error", "drops-in-flight", key, BACKPRESSURE, message)


def _unclaimed(known: Known) -> Finding | None:
    key = "execution.state-recovery.ignore-unclaimed-state"
    if not known.configuration.flag(key):
        return None
    message = "for every job with this configuration, Flink silently drops state whose operator does not exist, such as after a changed uid"
    return known.finding("warning", "ignores-unclaimed", key, SAVEPOINTS, message)


def _batch(known: Known) -> Finding | None:
    if known.interval_ms is None or not (mode := runs_as_batch(known.configuration)):
        return None
    if mode == "BATCH":
        message = "in batch mode Flink takes no checkpoints, although an interval is set, and restores no snapshot"
        return known.finding("warning", "batch", RUNTIME_MODE, CHECKPOINTING, message)
    message = "if all sources are bounded, the job runs in batch mode: Flink takes no checkpoints, although an interval is set, and restores no snapshot"
    return known.finding("advice", "batch", RUNTIME_MODE, CHECKPOINTING, message)


def _claims(known: Known) -> Finding | None:
    """Rules G1, G3 and G6 of restores (:mod:`statetool.compatibility.steps.first_checkpoint`)."""
    configuration = known.configuration
    mode = claim_mode(configuration)
    if mode == "legacy":
        message = "later checkpoints may need files of the restored snapshot at any time, so it must never be deleted: use CLAIM or NO_CLAIM"
        return known.finding("warning", "claim-legacy", CLAIM_MODE, SAVEPOINTS, message)
    if mode != "no_claim":
        return None
    is_chosen = configuration.text(CLAIM_MODE) is not None or configuration.text(RESTORED) is not None
    if fails_without_claim(configuration):
        message = (
            "the changelog backend cannot write the full checkpoint that NO_CLAIM, the default, forces after a restore from a savepoint or"
            " retained checkpoint: the first checkpoint fails the job. Restore with CLAIM"
        )
        return known.finding("error" if is_chosen else "advice", "changelog-no-claim", CLAIM_MODE, SAVEPOINTS, message)
    if backend := own_backend(configuration):
        message = f"unless {backend} supports NO_CLAIM (supportsNoClaimRestoreMode), the first checkpoint after a restore fails the job"
        return known.finding("advice", "backend-no-claim", CLAIM_MODE, SAVEPOINTS, message)
    return None


def _approximate_recovery(known: Known) -> Finding | None:
    if not known.configuration.flag(LOCAL_RECOVERY):
        return None
    message = "a task that restarts alone loses its records in flight, by design"
    return known.finding("error", "approximate-recovery", LOCAL_RECOVERY, RECOVERY, message)


def _heap_timers(known: Known) -> Finding | None:
    if known.backend != "rocksdb" or not keeps_timers_on_heap(known.configuration):
        return None
    message = (
        "native savepoints do not contain timers on the heap, and timers in the database of an older snapshot never fire: take canonical"
        " savepoints (flink savepoint --type canonical)"
    )
    return known.finding("warning", "heap-timers", TIMERS, BACKENDS, message)


# ---- sinks and the end of input -----------------------------------------------------------------


def _exactly_once_sinks(known: Known) -> Finding | None:
    """Sinks with transactions commit when a checkpoint completes, and are exactly once only if the checkpoint is."""
    if known.transaction_timeout_ms is None:
        return None
    if known.is_at_least_once:
        message = (
            "the job has exactly-once sinks, but after a restore from an AT_LEAST_ONCE checkpoint records are read"
            " again whose results are committed: set it to EXACTLY_ONCE"
        )
        return known.finding("error", "exactly-once-sink", f"{_C}mode", CHECKPOINTING, message)
    if known.interval_ms is None:
        message = "without checkpoints, exactly-once sinks never commit, unless the job's code enables them"
        return known.finding("advice", "sinks-never-commit", _INTERVAL, CHECKPOINTING, message)
    return None


def _none_after_tasks_finish(known: Known) -> Finding | None:
    key = f"{_C}checkpoints-after-tasks-finish"
    if known.interval_ms is None or known.configuration.flag(key, default=True):
        return None
    message = (
        "once a task has finished, such as that of a bounded source, Flink takes no checkpoints: sinks never commit what comes later, and"
        " a failure reads it again"
    )
    return known.finding("warning", "none-after-tasks-finish", key, CHECKPOINTING, message)


RULES: Final[tuple[Rule, ...]] = (
    _too_often,
    _pause_above_interval,
    _timeout_below_p99,
    _transactions,
    _backlog_interval,
    _concurrent,
    _unaligned_at_least_once,
    _only_unaligned,
    _aligned_timeout,
    _no_checkpoints,
    _on_the_job_manager,
    _no_directory,
    _not_retained,
    _none_retained,
    _inline_threshold,
    _incremental_heap,
    _compressed_incremental,
    _changelog,
    _never_restarts,
    _high_availability,
    _drops_in_flight,
    _unclaimed,
    _batch,
    _claims,
    _approximate_recovery,
    _heap_timers,
    _exactly_once_sinks,
    _none_after_tasks_finish,
)
