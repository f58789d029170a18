"""Settings of a job that decide how a restore ends: ``lint`` reports them, and ``check`` applies them to a snapshot.

Follows ``StreamTask.checkForcedFullSnapshotSupport``, ``StateBackend.supportsNoClaimRestoreMode``, ``RestartStrategyOptions`` and
``CheckpointStorageLoader``.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from statetool.operations.advice.configuration import Configuration

ClaimMode: TypeAlias = Literal["claim", "no_claim", "legacy"]
CLAIM_MODE: Final = "execution.state-recovery.claim-mode"
RESTORED: Final = "execution.state-recovery.path"
CHANGE_LOG: Final = "state.changelog.enabled"
BACKEND: Final = "state.backend.type"
LOCAL_RECOVERY: Final = "execution.state-recovery.approximate-local-recovery"
RUNTIME_MODE: Final = "execution.runtime-mode"
RESTARTS: Final = "restart-strategy.type"
DIRECTORY: Final = "execution.checkpointing.dir"
STORAGE: Final = "execution.checkpointing.storage"
TIMERS: Final = "state.backend.rocksdb.timer-service.factory"
FORST_TIMERS: Final = "state.backend.forst.timer-service.factory"
_MODES: Final[dict[str, ClaimMode]] = {"claim": "claim", "no_claim": "no_claim", "legacy": "legacy"}


def claim_mode(configuration: Configuration) -> ClaimMode | None:
    """Return the claim mode; ``None`` if the configuration has another word. The default is NO_CLAIM."""
    return _MODES.get((configuration.text(CLAIM_MODE) or "no_claim").lower().replace("-", "_"))


def fails_without_claim(configuration: Configuration) -> bool:
    """Return True if NO_CLAIM fails the job: the changelog backend never writes the full snapshot that this mode forces."""
    return configuration.flag(CHANGE_LOG)


def own_backend(configuration: Configuration) -> str:
    """Return the class name of a state backend that is not Flink's, which does not support NO_CLAIM by default; empty for Flink's."""
    backend = configuration.text(BACKEND) or ""
    return backend if "." in backend and not backend.startswith("org.apache.flink.") else ""


def checkpoint_storage(configuration: Configuration) -> str:
    """Return ``filesystem`` or ``jobmanager``, whose heap keeps at most 5 MB per handle, or a class name; a directory alone implies ``filesystem``."""
    return (configuration.text(STORAGE) or ("filesystem" if configuration.text(DIRECTORY) else "jobmanager")).lower()


def never_restarts(configuration: Configuration) -> bool:
    """Return True if a failure ends the job."""
    return (configuration.text(RESTARTS) or "").lower() in (
        "none",
        "off",
        "disable",
    )


def runs_as_batch(configuration: Configuration) -> str:
    """Return the runtime mode if the job runs, or may run, without checkpoints: BATCH or AUTOMATIC; else an empty text."""
    mode = (configuration.text(RUNTIME_MODE) or "").upper()
    return mode if mode in ("BATCH", "AUTOMATIC") else ""


def keeps_timers_on_heap(configuration: Configuration, option: str = TIMERS) -> bool:
    """Return True if RocksDB, or ForSt by its ``option``, keeps timers on the heap."""
    return (configuration.text(option) or "").lower() == "heap"
