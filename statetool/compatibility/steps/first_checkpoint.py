"""The first checkpoint of the new job.

Follows ``StreamTask.checkForcedFullSnapshotSupport``, ``MemCheckpointStreamFactory`` and ``CheckpointCoordinator``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.releases import may_not_claim
from statetool.compatibility.restore import Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import (
    Result,
    Step,
    fails_later,
    is_always_relevant,
    is_unknown,
    loses,
    note,
    refuses,
)
from statetool.errors import several
from statetool.formats.metadata.handles import ChangelogHandle, streams_of
from statetool.formats.metadata.model import handles_of
from statetool.operations.advice.restore_settings import (
    DIRECTORY,
    LOCAL_RECOVERY,
    RESTARTS,
    RUNTIME_MODE,
    STORAGE,
    checkpoint_storage,
    fails_without_claim,
    never_restarts,
    own_backend,
    runs_as_batch,
)

_INTERVAL: Final = "execution.checkpointing.interval"
#: Interfaces of sources that trigger checkpoints themselves.
_TRIGGERS: Final = (
    "org.apache.flink.streaming.api.checkpoint.ExternallyInducedSource",
    "org.apache.flink.api.connector.source.ExternallyInducedSourceReader",
)
_SHOWN: Final = 3
#: Most bytes of a state handle on the JobManager.
_MOST_BYTES: Final = 5 << 20


def _change_log(restore: Restore) -> Iterator[Result]:
    """G1: the changelog backend never supports the full snapshot that NO_CLAIM forces."""
    config, mode = restore.options.config, restore.options.mode
    has_logs = any(
        isinstance(s.managed_keyed, ChangelogHandle) for o in restore.old.metadata.operators for s in o.subtasks
    )
    if mode in ("claim", "legacy") or (config is None and not has_logs):
        return
    if config is not None and not fails_without_claim(config):
        return
    remedy = "Restore with claim mode CLAIM (--claim-mode claim), or switch off the change log for the first run."
    if config is not None:
        text = "The change log is on, and the claim mode is NO_CLAIM: the first checkpoint fails the job, because the changelog backend cannot write a full one."
        yield fails_later("G1", text, remedy)
    else:
        text = "The snapshot has change logs. If the new job has them too and does not claim the snapshot (NO_CLAIM, the default), its first checkpoint fails."
        yield is_unknown("G1", text, f"Pass --config and --claim-mode. {remedy}")


def _own_backend(restore: Restore) -> Iterator[Result]:
    """G3: a state backend of one's own does not support NO_CLAIM by default."""
    config = restore.options.config
    backend = "" if config is None else own_backend(config)
    if backend and restore.options.mode == "no_claim":
        text = f"The claim mode is NO_CLAIM: the first checkpoint fails the job unless the state backend {backend} overrides supportsNoClaimRestoreMode, which is false by default."
        yield is_unknown("G3", text, "Restore with claim mode CLAIM (--claim-mode claim) if it does not.")


def _own_triggers(restore: Restore) -> Iterator[Result]:
    """G2: a source that triggers checkpoints itself cannot be asked for the full snapshot that NO_CLAIM forces."""
    classes = restore.job.classes
    if classes is None or classes.new.source is None or restore.options.mode not in (None, "no_claim"):
        return
    if not may_not_claim(restore.releases):
        return
    source = classes.new.source
    if names := sorted({n for t in _TRIGGERS for n in source.implementations(t) if not source.is_abstract(n)}):
        text = f"{', '.join(names[:_SHOWN])} in the jar of the new job can trigger checkpoints. If the job reads from such a source and does not claim the snapshot (NO_CLAIM, the default), its first checkpoint fails."
        yield is_unknown("G2", text, "Restore with claim mode CLAIM (--claim-mode claim).")


def _directory(restore: Restore) -> Iterator[Result]:
    """H9: without a directory, checkpoints are kept in the memory of the JobManager, up to 5 MB per handle."""
    config = restore.options.config
    if config is None:
        text = "the configuration lets the first checkpoint complete (directory, interval, change log)"
        yield Assumption(rule="H9", text=text, option="--config")
        return
    if checkpoint_storage(config) != "jobmanager":
        return
    sizes = (sum(s.size_bytes for s in streams_of(h)) for h in handles_of(restore.old.metadata))
    largest = max(sizes, default=0)
    if largest > _MOST_BYTES:
        text = f"The job keeps checkpoints on the JobManager, and a subtask has {several(largest, 'byte')} of state: the first checkpoint fails, because the JobManager keeps at most {_MOST_BYTES:,} bytes per handle."
        yield fails_later("H9", text, f"Set {STORAGE}: filesystem, and {DIRECTORY}.")


def _interval(restore: Restore) -> Iterator[Result]:
    """H7: without checkpoints, sinks do not commit, and every restart begins at the snapshot again."""
    config = restore.options.config
    if config is not None and not config.millis(_INTERVAL):
        text = "The job takes no checkpoints: sinks do not commit, and each restart begins at this snapshot again."
        yield note("H7", text, f"Set {_INTERVAL}.")


def _local_recovery(restore: Restore) -> Iterator[Result]:
    """G7: approximate local recovery restarts single tasks, and loses their records by design."""
    config = restore.options.config
    if config is not None and config.flag(LOCAL_RECOVERY):
        name = config.name(LOCAL_RECOVERY)
        yield loses("G7", "Approximate local recovery loses records when a task restarts.", f"Switch off {name}.")


def _batch(restore: Restore) -> Iterator[Result]:
    """H6: a job in BATCH mode ignores the snapshot that it is given."""
    config = restore.options.config
    mode = "" if config is None else runs_as_batch(config)
    remedy = f"Set {RUNTIME_MODE}: STREAMING."
    if mode == "BATCH":
        yield refuses(
            "H6", "The runtime mode is BATCH: Flink ignores the snapshot, and the job begins without state.", remedy
        )
    elif mode:
        yield is_unknown(
            "H6", f"The runtime mode is {mode}: if the job runs in BATCH mode, Flink ignores the snapshot.", remedy
        )


def _restarts(restore: Restore) -> Iterator[Result]:
    """H12: without a restart strategy, the first failure ends the job."""
    config = restore.options.config
    if config is not None and never_restarts(config):
        yield note(
            "H12",
            "The job has no restart strategy: a restore that fails in a task ends it.",
            f"Set {RESTARTS}: exponential-delay.",
        )


STEP: Final = Step(
    name="first_checkpoint",
    title="First checkpoint",
    follows="StreamTask, MemCheckpointStreamFactory",
    irrelevant=is_always_relevant,
    checks=(_change_log, _own_triggers, _own_backend, _directory, _interval, _local_recovery, _batch, _restarts),
)
