"""Changes of operators that are refused, and whether keys can move."""

from __future__ import annotations

from collections.abc import Collection

from statetool.errors import OptionError, StatetoolError, UnknownNameError, UnsupportedError, suggest, warn
from statetool.formats.backends.column_families import family_name
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.metadata import OperatorState, SnapshotMetadata
from statetool.formats.state_meta import KEY_VALUE_V2, StateMetaInfo
from statetool.java.hashing.formulas import HashFormula
from statetool.java.hashing.prove import KeyProof, prove_hashes
from statetool.saving.composition import Composition, OperatorChange
from statetool.saving.forms import KeyedForm
from statetool.saving.uids import find_operator
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import describe_operators


def check_change(operator: OperatorInventory, old: OperatorState, change: OperatorChange) -> None:
    """Refuse changes that exclude each other, or that the tasks of an operator do not allow because they have finished.

    Raises
    ------
    OptionError, UnsupportedError
    """
    edited = bool(change.elements or change.added) or change.coordinator is not None
    if change.keys is not None and (change.bootstraps or change.added or change.filter is not None):
        raise OptionError(
            "keys cannot change together with other changes", hint="write two savepoints, one after the other"
        )
    if change.filter is not None and (change.bootstraps or change.added):
        raise OptionError(
            "keys cannot be erased while states of the operator get new values",
            hint="write two savepoints, one after the other",
        )
    if old.fully_finished and (change.bootstraps or edited):
        raise OptionError(f"operator {operator.label.display!r} had finished: Flink restores no state of it")
    if (change.bootstraps or edited) and any(s.finished for s in old.subtasks):
        raise UnsupportedError(
            "some subtasks have finished and hold no state",
            hint="let the job finish, or take a savepoint before it does",
        )


def check_names(
    operator: OperatorInventory,
    label: str,
    change: OperatorChange,
    keyed_gone: Collection[str],
    elements_gone: Collection[str],
) -> None:
    """Refuse names of unknown states, and two states with the same name.

    Parameters
    ----------
    keyed_gone, elements_gone
        States that are left out or replaced.

    Raises
    ------
    UnknownNameError, OptionError
        A state does not exist, or two states would have one name.
    """
    known = {*operator.keyed_states, *operator.operator_states}
    for name in (*change.dropped_states, *change.renames, *change.elements, *change.conversions):
        if name not in known:
            raise UnknownNameError(f"operator {label!r} has no state {name!r}", hint=suggest(name, known))
    in_both = operator.keyed_states.keys() & operator.operator_states.keys()
    for name in in_both & {*change.dropped_states, *change.renames, *change.conversions}:
        raise OptionError(
            f"operator {label!r} has a keyed state and an operator state {name!r}: the name is ambiguous",
            hint="bootstrap the one that changes with its new values",
        )
    for name in change.renames:
        if name in (keyed_gone if name in operator.keyed_states else elements_gone):
            raise OptionError(
                f"state {name!r} cannot be both renamed and dropped or replaced", hint="give it one change"
            )
    stay = known.difference(keyed_gone, elements_gone, change.renames)
    for name in change.renames.values():
        if name in stay or list(change.renames.values()).count(name) > 1:
            raise OptionError(f"operator {label!r} would have two states {name!r}")


def needs_move(operator: OperatorState, max_parallelism: int, parallelism: int) -> bool:
    """Return True if keys move to other key groups, or key groups to other subtasks."""
    return (max_parallelism, parallelism) != (operator.max_parallelism, operator.parallelism)


def check_moves(
    metadata: SnapshotMetadata,
    operator: OperatorInventory,
    max_parallelism: int,
    parallelism: int,
    *,
    rekeys: bool = False,
) -> None:
    """Refuse state that cannot move to other key groups or subtasks.

    Parameters
    ----------
    rekeys
        Whether keys change, and with them their key groups.

    Raises
    ------
    UnsupportedError
        Keys, key groups or subtasks change, and the operator has in-flight data, custom raw state, or finished subtasks.
    """
    state = operator.state
    if not rekeys and not needs_move(state, max_parallelism, parallelism):
        return
    stops = "stop the job with a savepoint (flink stop) and use that: it holds no such data"
    for other in metadata.operators:
        if any(s.input_channels or s.output_channels for s in other.subtasks):
            raise UnsupportedError(
                "the checkpoint is unaligned: its in-flight records belong to the old key groups", hint=stops
            ).at(operator=other.uid or other.operator_id)
    keyed = any(s.managed_keyed is not None for s in state.subtasks)
    for s in state.subtasks:
        if s.index >= parallelism and s.raw_operator is not None:
            raise UnsupportedError(
                f"raw operator state of subtask {s.index}, which is one too many for parallelism {parallelism}",
                hint="keep the parallelism, at least the number of subtasks that hold such state",
            ).at(operator=operator.label)
        if s.finished and (keyed or parallelism != state.parallelism):
            raise UnsupportedError(
                f"subtask {s.index} had finished, so its state cannot be redistributed", hint=stops
            ).at(operator=operator.label)
        if s.index in operator.keyed.own_raw_subtasks:
            raise UnsupportedError(
                "raw keyed state without timers: only the operator that wrote it can redistribute it",
                hint="keep the max parallelism and parallelism of the operator",
            ).at(operator=operator.label)


def check_native(
    form: KeyedForm, header: KeyedHeader, operator: OperatorInventory | None, label: str, *, raw_timers: bool
) -> None:
    """Refuse states that the native form of a backend cannot have.

    Parameters
    ----------
    raw_timers
        Whether timers are written as raw keyed state.

    Raises
    ------
    UnsupportedError
        An asynchronous state, a name that is not that of a column family of its own, raw keyed state beside timers, or a value whose end is not
        known where the form does not store it.
    """
    gets_raw_timers = raw_timers and any(meta.kind == "timers" for meta in header.states)
    if (
        operator is not None
        and operator.keyed.own_raw_subtasks
        and (operator.keyed.raw_timer_states or gets_raw_timers)
    ):
        raise UnsupportedError(
            f"raw keyed state of subtask {operator.keyed.own_raw_subtasks[0]} without timers, where a native savepoint has timers",
            hint="use the canonical format (--format canonical, format='canonical')",
        ).at(operator=label)
    names = {"default"}  # a family that each database has, and that is not for states
    for meta in header.states:
        if form != "forst" and meta.backend_type == KEY_VALUE_V2:
            raise UnsupportedError(
                "asynchronous state, which only ForSt restores from native files",
                hint="add --state-api v1 (state_api='v1'), which writes it as state of the other API, or choose --backend forst",
            ).at(operator=label, state=meta.name)
        if form == "heap":
            _check_ends(header, meta, label)
            continue
        if family_name(meta.name) in names:
            raise UnsupportedError(
                "a name that RocksDB and ForSt cannot use for a column family",
                hint="give the state another name first (statetool state rename), or use the canonical format (--format canonical, format='canonical')",
            ).at(operator=label, state=meta.name)
        names.add(family_name(meta.name))


def _check_ends(header: KeyedHeader, meta: StateMetaInfo, label: str) -> None:
    """Refuse values that cannot be read in the layout of the heap backend, which has no lengths."""
    namespace = () if meta.namespace is None else (meta.namespace,)
    for serializer in (header.key, *namespace, *(meta.parts or (meta.value,))):
        if serializer.needs_frame:
            raise UnsupportedError(
                f"the end of a value of {serializer.type_name}, which the layout of the heap backend does not store, is not known",
                hint=serializer.missing_declaration_hint
                or "use the canonical format (--format canonical, format='canonical')",
            ).at(operator=label, state=meta.name)


def writes_raw_timers(form: KeyedForm | None, operators: Collection[OperatorInventory]) -> bool:
    """Return True if a native form has the timers of an operator in raw keyed state; ``operators`` are those whose timers it gets.

    A job finds raw timers wherever it keeps its timers, and timers of a database only if it keeps them there: asynchronous operators of ForSt
    never do, and nothing shows which operators will be asynchronous.
    """
    return form == "forst" or (form == "rocksdb" and any(o.keyed.raw_timer_states for o in operators))


def warn_of_assumed_timers(composition: Composition, *, stacklevel: int) -> None:
    """Warn of operators whose timers are written into databases, and were not read from one: the job may keep its timers on the heap.

    ``stacklevel`` counts from the caller.
    """
    if composition.form != "rocksdb":
        return
    base = () if composition.base is None else tuple(composition.base.operators.values())
    removed = {find_operator([o.state for o in base], name).operator_id for name in composition.removed}
    sources = [o for o in base if o.state.operator_id not in removed]
    sources += [graft.operator for graft in composition.grafts]
    found: list[str] = [o.label for o in sources if not writes_raw_timers("rocksdb", [o]) and _assumes_timers(o)]
    for uid, change in composition.changes.items():
        found += [uid for b in change.bootstraps if getattr(b, "timers", None) is not None and uid not in found]
    if found:
        warn(
            f"{describe_operators(found)} {'has' if len(found) == 1 else 'have'} timers: a job that keeps timers on the heap"
            " (state.backend.rocksdb.timer-service.factory: HEAP) does not find them in a native savepoint of RocksDB. If this job"
            " does, use the canonical format",
            stacklevel=stacklevel + 1,
        )


def has_timers(operator: OperatorInventory) -> bool:
    """Return True if an operator has timers, wherever they are stored."""
    return any(meta.kind == "timers" for _, meta in operator.keyed_states.values())


def _assumes_timers(operator: OperatorInventory) -> bool:
    """Return True if an operator has timers, and they do not come from a database."""
    return has_timers(operator) and any(stored.owned_database() is None for stored in operator.keyed.managed)


def prove_moves(operator: OperatorInventory, max_parallelism: int, declared: HashFormula) -> KeyProof:
    """Return the proof of the hash formula by which an operator's keys move to other key groups.

    Nothing is read if no hash code is needed: if key groups stay, or the new max parallelism divides the old one.

    Raises
    ------
    UnsupportedError, OptionError
        As for :func:`statetool.java.hashing.prove.prove_hashes`.
    """
    if operator.state.max_parallelism % max_parallelism == 0:
        return KeyProof()
    header = operator.keyed.joined_header(raw=True)
    if header is None:
        return KeyProof()
    try:
        return prove_hashes(operator.keyed.sources(raw=True), header.key, declared)
    except StatetoolError as error:
        raise error.at(operator=operator.label) from None
