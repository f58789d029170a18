"""Restore timers: queues of the backend (managed), or raw keyed state that the timer service reads itself.

Follows ``InternalTimeServiceManagerImpl``, ``RocksDBPriorityQueueSetFactory`` and ``InternalTimersSnapshot``. RocksDB keeps timers in its
database (the default) or on the heap. Native snapshots contain only those of the database; checkpoints have the others as raw state.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Final

from statetool.compatibility.classes.job_classes import strings_in_jars
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.keyed_state import SAME_STATES
from statetool.compatibility.steps.step import Result, Step, fails_later, guarded, is_unknown, loses, note, per_pair
from statetool.compatibility.steps.windows import is_window_operator
from statetool.compatibility.timer_counts import count_timers, overdue_timers
from statetool.compatibility.verdicts import NEW, A, Remedy
from statetool.errors import CheckpointDeletedError, StatetoolError, several
from statetool.formats.state_meta import KEY_VALUE_V2
from statetool.operations.advice.restore_settings import FORST_TIMERS, TIMERS, keeps_timers_on_heap
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import timer_names
from statetool.types.flink_calls import timer_calls

_CONVERT: Final = Remedy(
    "Write a canonical savepoint: its timers can be restored with both kinds of timer services.", ("convert", A, NEW)
)
_TO_FORST: Final = Remedy(
    "Write a native savepoint of ForSt: its timers can be restored by all operators.",
    ("convert", A, NEW, "--format", "native", "--backend", "forst"),
)
#: State of an operator up to which the times of its timers are read.
_MOST_BYTES: Final = 4 << 20
#: The timer service of process functions, and those of Flink's own operators.
_OF_FUNCTIONS: Final = "user-timers"
_OF_FLINK: Final = (_OF_FUNCTIONS, "window-timers", "cleanup-timers", "watermark-callbacks")


def timer_states(operator: OperatorInventory) -> set[str]:
    """Return the names of an operator's timer queues, also of those in raw keyed state."""
    return {n for n, (_, meta) in operator.listed_keyed.items() if meta.kind == "timers"}


def _in_database(operator: OperatorInventory) -> bool:
    return any(s.database for s in operator.keyed.managed)


def _native_savepoint(restore: Restore) -> bool:
    return restore.properties is not None and restore.properties.format == "native"


def _may_hide_timers(restore: Restore, new: OperatorInventory) -> bool:
    """Return True if an operator of the new job may have timers that its snapshot lacks: a native savepoint has none of the heap."""
    if restore.new is None or not _in_database(new) or timer_states(new):
        return False
    properties = restore.new_properties
    if properties is not None and properties.format != "native":
        return False
    return not any(_database_timers(o) for o in restore.new.operators.values() if o.listed_keyed)


def _irrelevant(restore: Restore) -> str:
    for operator in restore.old.operators.values():
        if operator.listed_keyed and (timer_states(operator) or _in_database(operator)):
            return ""
        if any(s.raw_keyed is not None for s in operator.state.subtasks):
            return ""
    return "no operator has timers"


def _database_timers(operator: OperatorInventory) -> set[str]:
    """Return the timer queues that are stored in a database of RocksDB."""
    return timer_states(operator) - operator.keyed.raw_timer_states if _in_database(operator) else set()


def _heap_instead_of_database(restore: Restore) -> Iterator[Result]:
    """T1: timers in a database are not read by a job that keeps timers of RocksDB on the heap."""
    pairs = [p for p in restore.pairs if _database_timers(p.old)]
    if not pairs or restore.job.backend not in ("rocksdb", "unknown"):
        return
    on_heap = _keeps_on_heap(restore)
    if on_heap is False:
        config = restore.options.config
        if config is not None and config.text(TIMERS) is None and _shown_on_heap(restore) is None:
            text = (
                f"the code of the new job does not keep timers on the heap, and the configuration does not set {TIMERS}"
            )
            yield Assumption(rule="T1", text=text, option="a native savepoint of the new job")
        return
    for pair in pairs:
        if on_heap:
            amount = count_timers(pair.old, _database_timers(pair.old))
            if amount != "no timers":
                text = f"RocksDB of the new job keeps timers on the heap, and does not read the {amount} in the database of the snapshot: none fires."
                yield loses("T1", text, _CONVERT, pair.old)
        else:
            text = f"Its timers are in the database of RocksDB. If the new job keeps timers on the heap ({TIMERS}: heap), none fires."
            ask = "" if restore.options.config is not None else "Pass the configuration of the new job with --config. "
            remedy = Remedy(f"{ask}{_CONVERT.text}", _CONVERT.command)
            yield is_unknown("T1", text, remedy, pair.old)


def _ignored_by_forst(restore: Restore) -> Iterator[Result]:
    """T1: asynchronous operators of ForSt, and those that keep timers on the heap, do not read the timers of a database."""
    if restore.job.backend != "forst":
        return
    config, assumed = restore.options.config, []
    for old, new in ((p.old, p.new) for p in restore.pairs):
        names = _database_timers(old)
        amount = count_timers(old, names) if names else "no timers"
        if amount == "no timers":
            continue
        if config is not None and keeps_timers_on_heap(config, FORST_TIMERS):
            text = f"ForSt of the new job keeps timers on the heap, and does not read the {amount} in the database of the snapshot: none fires."
            yield loses("T1", text, _TO_FORST, old)
        elif _is_asynchronous(new if new is not None and new.listed_keyed else old):
            text = f"The operator has asynchronous state, and does not read the {amount} in the database of the snapshot: none fires."
            yield loses("T1", text, _TO_FORST, old)
        elif new is None or not _database_timers(new):
            assumed.append(old.label.display)
    if assumed:
        shown = f"{', '.join(assumed[:3])}{', ...' if len(assumed) > 3 else ''}"
        text = f"the state of {several(len(assumed), 'operator')} with timers in a database is not asynchronous in the new job ({shown}): asynchronous operators of ForSt do not read these timers"
        yield Assumption(rule="T1", text=text, option="a native savepoint of the new job")


def _is_asynchronous(operator: OperatorInventory) -> bool:
    return any(meta.backend_type == KEY_VALUE_V2 for _, meta in operator.listed_keyed.values())


def _keeps_on_heap(restore: Restore) -> bool | None:
    """Return True if RocksDB of the new job keeps its timers on the heap; ``None`` if that is not known.

    Nor is it if configuration and snapshot differ: the code sets another service, or the job ran with another configuration.
    """
    shown, config = _shown_on_heap(restore), restore.options.config
    if config is None:
        return shown
    configured = keeps_timers_on_heap(config)
    return configured if shown in (None, configured) else None


def _shown_on_heap(restore: Restore) -> bool | None:
    if not restore.has_snapshot:
        return None
    known: bool | None = None
    for pair in restore.pairs:
        new = pair.new
        if new is None or not new.listed_keyed or not _in_database(new):
            continue
        if _database_timers(new):
            return False
        if timer_states(pair.old):
            known = True  # Its timers are in raw state, or missing.
    return known


def _lost_when_written(restore: Restore, pair: Pair) -> Iterator[Result]:
    """T2: a native savepoint does not contain the timers that RocksDB keeps on the heap."""
    old, new = pair.old, pair.new
    if not _native_savepoint(restore) or not _in_database(old) or timer_states(old):
        return
    if any(_database_timers(o) for o in restore.old.operators.values() if o.listed_keyed):
        return  # The old job kept its timers in the database.
    if is_window_operator(old) or (new is not None and timer_states(new)):
        text = "The native savepoint of RocksDB has no timers of this operator: if the old job kept timers on the heap, they are lost."
        remedy = "Take a canonical savepoint of the old job (flink savepoint --type canonical)."
        yield loses("T2", text, remedy, old)


def _may_have_lost(restore: Restore) -> Iterator[Result]:
    """T2: a native savepoint of RocksDB without any timers is that of a job without timers, or of one that kept them on the heap."""
    if not _native_savepoint(restore):
        return
    stored = [p.old for p in restore.pairs if p.old.listed_keyed and _in_database(p.old)]
    if stored and not any(map(timer_states, stored)):
        text = "the job that wrote the native savepoint had no timers, or kept them in RocksDB: the savepoint has none"
        yield Assumption(rule="T2", text=text, option="a canonical savepoint of the old job")


def _no_service(restore: Restore, pair: Pair) -> Iterator[Result]:
    """T3, T4: timers of a service that the new operator does not have."""
    old, new = pair.old, pair.new
    if new is None or not new.listed_keyed:
        return
    missing = timer_states(old) - timer_states(new)
    if not missing or (_may_hide_timers(restore, new) and _database_timers(old)):
        return  # T1 says that these timers are lost.
    amount = count_timers(old, missing)
    if amount == "no timers":
        return
    if _may_hide_timers(restore, new):
        text = f"{old.label.display} still has a timer service, for {amount}: the native savepoint of the new job has no timers, which its RocksDB may keep on the heap"
        yield Assumption(rule="T3", text=text, option="a canonical savepoint of the new job")
        return
    names = ", ".join(sorted(n.removeprefix("_timer_state/") for n in missing))
    if missing & old.keyed.raw_timer_states:
        text = f"The new job has no timer service for {amount} ({names}): the first checkpoint, or the first timer that is due, fails."
        yield fails_later("T4", text, _CONVERT, old)
    else:
        text = (
            f"The new job has no timer service for {amount} ({names}): Flink carries them along, and they never fire."
        )
        remedy = Remedy(
            "Keep the function that registers them. If its service was renamed, rename the states with statetool state rename."
        )
        yield loses("T3", text, remedy, old)


def _not_registered(restore: Restore, pair: Pair) -> Iterator[Result]:
    """T3 without a snapshot of the new job: only the code of the old job registers timers, or has the name of their service."""
    classes = restore.job.classes
    if restore.has_snapshot or classes is None or classes.old.source is None or classes.new.source is None:
        return
    services = {n: n.rpartition("/")[2].partition("_")[2] for n in timer_states(pair.old)}
    own = set(services.values()) - set(_OF_FLINK)
    gone = strings_in_jars(restore.old_jars, own) - strings_in_jars(restore.new_jars, own) if own else set()
    registers = [timer_calls(s.flink_calls()) for s in (classes.old.source, classes.new.source)]
    if registers[0] and not registers[1]:
        gone |= {_OF_FUNCTIONS}
    names = {n for n, service in services.items() if service in gone}
    amount = count_timers(pair.old, names) if names else "no timers"
    if amount != "no timers":
        shown = ", ".join(sorted({services[n] for n in names}))
        text = f"The code of the old job has the timer service of {amount} ({shown}), and that of the new job does not: Flink carries them along, and they never fire."
        yield loses("T3", text, "Keep the function that registers them, and the name of its service.", pair.old)


def _own_raw_state(restore: Restore, pair: Pair) -> Iterator[Result]:
    """T6: raw keyed state that is not timers is read as timers, unless the operator has raw state of its own."""
    old, new = pair.old, pair.new
    if old.keyed.own_raw_subtasks and new is not None and not new.keyed.own_raw_subtasks:
        text = f"{several(len(old.keyed.own_raw_subtasks), 'subtask')} with raw keyed state that is not timers, which only an operator with the same code reads. The new job's savepoint shows none."
        yield is_unknown("T6", text, "Restore a copy of the job from this snapshot to find out.", old)


def _overdue(restore: Restore, pair: Pair) -> Iterator[Result]:
    """T7, Z2: processing-time timers that are due fire when the job starts (``InternalTimerServiceImpl.startTimerService``)."""
    old = pair.old
    names = [n for n in timer_states(old) if timer_names(n)[0] == "processing"]
    if not names:
        return
    size = operator_row(old).state_bytes
    unread = f"its {size:,} bytes of state were not read for this" if size > _MOST_BYTES else ""
    count = first = 0
    try:
        if not unread:
            count, first = overdue_timers(old, names, time.time_ns() // 1_000_000)
    except CheckpointDeletedError:
        raise
    except StatetoolError:
        unread = "its timers cannot be read without its values, or not from here"
    if unread:
        text = f"no processing-time timer of {old.label.display} is due when the job starts: {unread}"
        yield Assumption(rule="T7", text=text, option="statetool stats, which counts timers by their time")
    elif count:
        is_one = count == 1
        since = datetime.fromtimestamp(first // 1000, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        text = f"{several(count, 'processing-time timer')} {'is' if is_one else 'are'} overdue, the first since {since}: {'it fires' if is_one else 'all of them fire'} when the job starts."
        of_windows = is_window_operator(old)  # purge leaves their timers
        advice = "If they should not fire, write a copy without them (statetool purge --processing-timers-before)."
        yield note("T7", text, None if of_windows else advice, old)
        if of_windows:
            text = "The windows of processing time close with the records that they have. Records that arrived while the job was down fall into windows of the time after the restore."
            yield note("Z2", text, None, old)


def _assumed(restore: Restore) -> Iterator[Result]:
    if not restore.has_snapshot:
        yield SAME_STATES


STEP: Final = Step(
    name="timers",
    title="Timers",
    follows="InternalTimeServiceManagerImpl, RocksDBPriorityQueueSetFactory",
    irrelevant=_irrelevant,
    checks=(
        _heap_instead_of_database,
        guarded(_ignored_by_forst),
        per_pair(_lost_when_written),
        guarded(_may_have_lost),
        per_pair(_no_service),
        per_pair(_not_registered),
        per_pair(_own_raw_state),
        per_pair(_overdue),
        _assumed,
    ),
)
