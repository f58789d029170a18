"""Restore keyed state: the backend reads the stored form, then each state's serializers are compared.

Follows ``StreamTaskStateInitializerImpl``, ``HeapRestoreOperation``, ``RocksDBFullRestoreOperation``, ``RocksDBIncrementalRestoreOperation``,
``ForStKeyedStateBackendBuilder`` and ``RegisteredKeyValueStateBackendMetaInfo``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.restore import Pair, Restore, hidden_values
from statetool.compatibility.states import NAME_BACKEND, Hidden, Job, check_key, keyed_verdicts, of_error
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Found, Result, StateFound, Step, loses, per_pair, refuses
from statetool.compatibility.verdicts import NEW, A, Level, Remedy, Resolution
from statetool.errors import UNREAD, several
from statetool.snapshot.operator import OperatorInventory

_CONVERT: Final = Remedy("Convert it to a canonical savepoint, which all backends read.", ("convert", A, NEW))
#: The assumption of a check without a snapshot of the new job.
SAME_STATES: Final = Assumption(
    rule="O9",
    text="the new job has the operators and states of this snapshot, with the same uids and types",
    option="B, a savepoint of the new job",
)


def _irrelevant(restore: Restore) -> str:
    keyed = any(s.managed_keyed is not None for o in restore.old.metadata.operators for s in o.subtasks)
    return "" if keyed else "no operator has keyed state"


def keyed_results(
    old: OperatorInventory, new: OperatorInventory | None, job: Job, hidden: tuple[Resolution, Hidden] | None = None
) -> Iterator[Result]:
    """Yield the results of an operator's keyed state. Without ``hidden``, the values that no header describes are read again."""
    try:
        yield Found(rule="K1", resolution=_forms(old, new, job), operator=old)
        if old.keyed.key is not None:
            resolution = check_key(old.keyed.key, None if new is None else new.keyed.key, job)
            yield Found(rule="K2", resolution=resolution, operator=old)
        of_key, of_states = hidden_values(old, new, job) if hidden is None else hidden
        yield Found(rule="K9", resolution=of_key, operator=old)
        states = None if new is None else new.keyed_states
        if not _is_keyed_no_more(old, new):
            for verdict in keyed_verdicts(old.keyed_states, states, job, of_states, old.label):
                yield StateFound(rule="K4", operator=old, verdict=verdict)
    except UNREAD as error:
        yield Found(
            rule="S3", resolution=of_error(Level.UNKNOWN, error, "statetool cannot read its keyed state"), operator=old
        )


def _states(restore: Restore) -> Iterator[Result]:
    """K1 to K5, K9 and S: formats, keys, and each state with its serializers."""
    for pair in restore.pairs:
        # Values that no header describes are read only once for both kinds of state; errors in them are those of this step.
        try:
            hidden = restore.hidden(pair)
        except UNREAD:
            hidden = None
        yield from keyed_results(pair.old, pair.new, restore.job, hidden)
    if restore.new is None:
        yield SAME_STATES


def _is_keyed_no_more(old: OperatorInventory, new: OperatorInventory | None) -> bool:
    return new is not None and bool(old.listed_keyed) and not new.keyed.managed and _has_own_state(new)


def _has_own_state(new: OperatorInventory) -> bool:
    """Return True if the new operator has any state, so that its savepoint shows what it registers."""
    return bool(new.listed_elements) or new.state.coordinator is not None


def _not_keyed(restore: Restore, pair: Pair) -> Iterator[Result]:
    """K8: an operator without a keyed backend ignores its keyed handles (``StreamTaskStateInitializerImpl.keyedStatedBackend``)."""
    old, new = pair.old, pair.new
    if new is None or not old.listed_keyed or new.keyed.managed:
        return
    states = [n for n, (_, meta) in old.listed_keyed.items() if meta.kind != "timers"]
    shown = f"{several(len(states), 'state')} ({', '.join(states[:5])}{', ...' if len(states) > 5 else ''})"
    text = (
        f"The operator has keyed state, and the same operator of the new job has none. If it is not keyed in the new job, Flink drops its"
        f" {shown} without a message; the next checkpoint does not have them."
    )
    remedy = Remedy(
        "Move its state to the operator that has the keys in the new job, with statetool move-state or graft."
    )
    yield loses("K8", text, remedy, old)


def _forst(restore: Restore, pair: Pair) -> Iterator[Result]:
    """V1, V3: ForSt restores only the files of its own checkpoints and native savepoints (FLINK-39949), and V2 states only where V2 is known."""
    old = pair.old
    if restore.job.backend == "forst":
        for stored in old.keyed.managed:
            if not stored.database:
                heap_timers = restore.options.config is not None and (
                    (restore.options.config.text("state.backend.forst.timer-service.factory") or "").lower() == "heap"
                )
                if not heap_timers:
                    text = "ForSt does not restore canonical savepoints or snapshots of the heap backend: Not support restoring yet for ForStStateBackend."
                    remedy = Remedy(
                        "Take a native savepoint of a job with ForSt, or set state.backend.forst.timer-service.factory: heap for the first"
                        " restore and pass that configuration with --config."
                    )
                    yield refuses("V1", text, remedy, old)
                return
        yield Assumption(
            rule="V4",
            text=f"the files of {old.label.display} were written by ForSt, not by RocksDB",
            option="the configuration of the job that wrote the snapshot",
        )


def _forms(old: OperatorInventory, new: OperatorInventory | None, job: Job) -> Resolution:
    """Check whether the new backend reads the stored format: only canonical savepoints can switch backends."""
    for stored in old.keyed.managed:
        if job.backend == "unknown":
            if new is not None and stored.database:
                return Resolution.because(
                    Level.UNKNOWN,
                    "The keyed state has the native format of RocksDB or ForSt, and the snapshot of the new job does not show its backend.",
                    NAME_BACKEND,
                )
        elif job.backend == "forst":
            return Resolution(Level.AS_IS)  # V1
        elif not stored.canonical and stored.database != (job.backend == "rocksdb"):
            form = "RocksDB or ForSt" if stored.database else "another backend than RocksDB"
            return Resolution.because(
                Level.INCOMPATIBLE if stored.database else Level.UNKNOWN,
                f"The keyed state has the native format of {form}, and the job uses the {job.backend} backend.",
                _CONVERT,
            )
    return Resolution(Level.AS_IS)


def _mixed_handles(restore: Restore, pair: Pair) -> Iterator[Result]:
    """M13: the first handle of an operator decides how all are read (``RocksDBKeyedStateBackendBuilder``)."""
    forms = {stored.database for stored in pair.old.keyed.managed}
    if len(forms) > 1:
        text = "Some subtasks have the native format of RocksDB or ForSt, others another one: Flink reads all as the first one."
        yield refuses("M13", text, _CONVERT, pair.old)


STEP: Final = Step(
    name="keyed_state",
    title="Keyed state",
    follows="StreamTaskStateInitializerImpl, HeapRestoreOperation, RocksDB*RestoreOperation, ForStKeyedStateBackendBuilder",
    irrelevant=_irrelevant,
    checks=(_states, per_pair(_not_keyed), per_pair(_forst), per_pair(_mixed_handles)),
)
