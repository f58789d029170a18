"""Write a copy of a snapshot in which single values of one key are set, or expired values and overdue timers are removed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from statetool.api.savepoint import Savepoint
from statetool.api.write.options import KeyedWriteOptions, WriteOptions
from statetool.types.options import whole_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.saving.verbs.purge import PurgePlan
    from statetool.saving.verbs.set_elements import ElementsPlan
    from statetool.saving.verbs.set_values import SetPlan, TimerEdit
    from statetool.tables.keys.text import Key


def set_values(
    src: str | Savepoint,
    dst: str,
    uid: str,
    key: Key,
    values: Mapping[str, Any] | None = None,
    *,
    remove: Iterable[str] = (),
    add_timers: Iterable[tuple[str, int]] = (),
    remove_timers: Iterable[tuple[str, int]] = (),
    namespace: Any = None,
    new_key: bool = False,
    now_ms: int | None = None,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
) -> SetPlan:
    """Write a copy of a snapshot in which values and timers of one key are changed, without Spark. Everything else keeps its bytes.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    uid
        The operator.
    key
        The key as a plain value, as for :meth:`Operator.keyed_state`.
    values
        New values by path: ``{"account.balance": 1, "history[0].amount": 5, 'prices["EUR"]': 1.5, "history[+]": {...}}``. Values are JSON
        values: structs are objects, and maps with other keys than strings are lists of pairs. ``[+]`` appends to a list. Values with a time
        to live keep their last access.
    remove
        Paths to remove: states of the key, elements of lists, entries of maps.
    add_timers
        Timers to add: pairs of time domain and epoch milliseconds, ``("event", 1700000000000)``. If an operator has several timer services
        in a domain, name it: ``("event/cleanup", ...)``.
    remove_timers
        Timers to remove, in the same form. A timer of a window is only removed together with the state of the window, or if another one is
        added.
    namespace
        The window or other namespace of all states and timers to change: ``(start_ms, end_ms)``, or a JSON value. ``None`` for states and
        timers without a namespace, and for those of global windows.
    new_key
        Add state of a key, or of a window, that has none.
    now_ms
        Time of the last access of new values with a time to live, by default the current time.
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    backend
        The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.

    Returns
    -------
    SetPlan
        Each change with the value before and after it.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError
        The key, its namespace, a path or a timer does not exist, or does not fit the type.
    EncodeError
        The key or a value does not fit its type.
    UnsupportedError
        A value cannot be decoded, or its other parts would not keep their bytes.
    """
    from statetool.saving.composition import OperatorChange
    from statetool.saving.verbs.set_values import ValueEdit, plan_set
    from statetool.saving.verbs.value_paths import REMOVED

    options = KeyedWriteOptions.of(locals())
    inventory = options.open(src, dst)
    operator = inventory.operator(uid)
    edits = [ValueEdit(path=path, value=value) for path, value in (values or {}).items()]
    edits += [ValueEdit(path=path, value=REMOVED) for path in remove]
    timers = [_timer(*timer, adds=True) for timer in add_timers] + [_timer(*t, adds=False) for t in remove_timers]
    plan = plan_set(operator, key, edits, timers, now_ms=_now(now_ms), new_key=new_key, namespace=namespace)
    options.write(inventory, dst, changes={operator.label: OperatorChange(filter=plan.filter)})
    return plan


def set_elements(
    src: str | Savepoint,
    dst: str,
    uid: str,
    state: str,
    *,
    where: str | None = None,
    change: Mapping[str, Any] | None = None,
    remove: bool = False,
    add: Iterable[Any] = (),
    subtask: int | str | None = None,
    remove_copies: bool = False,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
) -> ElementsPlan:
    """Write a copy of a snapshot in which elements of an operator state are changed, removed or added. Everything else keeps its bytes.

    Elements stay in their subtask, so that a job gets the others as before. All copies of a broadcast state change.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    uid
        The operator.
    state
        The list, union list or broadcast state.
    where
        A SQL condition on the elements to change or to remove, which DuckDB evaluates (extra ``sql``): the column ``value``, ``key`` of a
        broadcast state, and ``subtask`` of lists.
    change
        New values of these elements by path: ``{"value.offset": 5}``. Values are JSON values, as for :func:`set_values`.
    remove
        Remove these elements.
    add
        Elements to add, as JSON values. Those of a broadcast state are objects with ``key`` and ``value``.
    subtask
        The subtask that gets added elements, or ``"all"``. By default, the one with the fewest. It is needed for a union list if each
        subtask has the same elements.
    remove_copies
        Remove elements of a union list that equal an earlier one. They may be meant: a dry run lists them.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.

    Returns
    -------
    ElementsPlan
        Each change with the element before and after it.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError
        The state does not exist, or the condition, a path or a value does not fit it.
    MissingKeyError
        No element fulfills the condition, or no element has a copy.
    EncodeError
        A value does not fit its type.
    UnsupportedError
        Elements cannot be decoded, their other parts would not keep their bytes, or copies of a broadcast state differ.
    MissingDependencyError
        A condition was given, and DuckDB is not installed.
    """
    from statetool.saving.composition import OperatorChange
    from statetool.saving.verbs.set_elements import ElementEdits, plan_set_elements

    options = WriteOptions.of(locals())
    edits = ElementEdits(
        where=where,
        change=change or {},
        remove=remove,
        add=list(add),
        subtask="all" if subtask == "all" else None if subtask is None else whole_number("subtask", subtask, least=0),
        remove_copies=remove_copies,
    )
    inventory = options.open(src, dst)
    operator = inventory.operator(uid)
    plan = plan_set_elements(operator, state, edits)
    options.write(inventory, dst, changes={operator.label: OperatorChange(elements=plan.elements)})
    return plan


def _timer(domain: str, timestamp_ms: int, *, adds: bool) -> TimerEdit:
    from statetool.errors import OptionError
    from statetool.saving.verbs.set_values import TimerEdit

    name, _, service = domain.partition("/")
    kinds: dict[str, Literal["event", "processing"]] = {"event": "event", "processing": "processing"}
    if name not in kinds:
        raise OptionError(f"{name!r} is not a time domain", hint="pass event or processing")
    stamp = whole_number("timestamp", timestamp_ms)
    return TimerEdit(domain=kinds[name], timestamp_ms=stamp, adds=adds, service=service or None)


def _now(now_ms: int | None) -> int:
    return time.time_ns() // 1_000_000 if now_ms is None else whole_number("now_ms", now_ms)


def purge(
    src: str | Savepoint,
    dst: str,
    ttl_ms: Mapping[str, int] | None = None,
    *,
    now_ms: int | None = None,
    event_timers_before_ms: int | None = None,
    processing_timers_before_ms: int | None = None,
    windows_before_ms: int | None = None,
    windows_without_timer: bool = False,
    window_size_ms: int | None = None,
    empty: bool = False,
    operators: Iterable[str] = (),
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
) -> PurgePlan:
    """Write a copy of a snapshot without expired values, overdue timers, and empty lists. Everything else keeps its bytes.

    A snapshot does not store times to live, so you pass them.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    ttl_ms
        Time to live in milliseconds by state, as the job configures it: values whose last access is at least as long ago are removed, from
        lists and maps too.
    now_ms
        The time of the comparison, by default the current time.
    event_timers_before_ms
        Remove event-time timers before this time (epoch milliseconds). They never fire. Timers of windows stay, because their windows may
        never fire, or their state may never be removed; ``left_timers`` of the result counts them.
    processing_timers_before_ms
        The same for processing-time timers.
    windows_before_ms
        Remove windows that end before this time (epoch milliseconds) and have no timer at or after it: contents, trigger states, timers and
        entries of merged windows. They never fire, and later records of these windows start new ones. Windows without end stay.
    windows_without_timer
        Remove windows of which no timer is left: they never fire by time, and Flink never removes them. Windows of the operator that have a
        timer, and windows without end, stay. Do not use it if the job allows lateness without limit: such windows need no timer.
    window_size_ms
        Size of the windows of SQL's window aggregates, the greatest if operators differ. A snapshot does not store it.
        ``windows_before_ms`` needs it there, because a slice may be part of several windows.
    empty
        Remove lists without elements, and maps without entries.
    operators
        Uids or operator ids. By default all operators with such states or timers.
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    backend
        The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.

    Returns
    -------
    PurgePlan
        Entries and bytes of each state before and after.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError
        A state does not exist or has no time to live, or nothing would be removed by these options.
    UnsupportedError
        Values of a state cannot be decoded.
    """
    from statetool.saving.streams.windows import ObsoleteWindows
    from statetool.saving.verbs.purge import PurgeRequest, plan_purge

    options = KeyedWriteOptions.of(locals())
    request = PurgeRequest(
        ttl_ms={state: whole_number(f"ttl_ms of {state}", ttl, least=1) for state, ttl in (ttl_ms or {}).items()},
        now_ms=_now(now_ms),
        timers_before_ms={
            domain: whole_number(f"{domain}_timers_before_ms", limit)
            for domain, limit in (("event", event_timers_before_ms), ("processing", processing_timers_before_ms))
            if limit is not None
        },
        empty=empty,
        windows=ObsoleteWindows(
            before_ms=None if windows_before_ms is None else whole_number("windows_before_ms", windows_before_ms),
            without_timer=windows_without_timer,
            size_ms=None if window_size_ms is None else whole_number("window_size_ms", window_size_ms, least=1),
        ),
    )
    inventory = options.open(src, dst)
    plan = plan_purge(inventory, request, list(operators), options.execution.map, target=options.form)
    options.write(inventory, dst, changes=plan.changes)
    return plan
