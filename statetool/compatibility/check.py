"""Check of a snapshot against a snapshot of the new job, a release of Flink, or both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from statetool.compatibility.class_trial import NewClasses
from statetool.compatibility.commits import with_commit_ids
from statetool.compatibility.named_files import with_named_files
from statetool.compatibility.plan_rules import plan_resolutions
from statetool.compatibility.states import (
    NAME_BACKEND,
    Backend,
    Hidden,
    Job,
    check_key,
    element_verdicts,
    keyed_verdicts,
    of_error,
)
from statetool.compatibility.undescribed_subclasses import hidden_subclasses
from statetool.compatibility.verdicts import (
    NEW,
    STARTS_EMPTY,
    A,
    Cause,
    Check,
    CheckWarning,
    Level,
    OperatorVerdict,
    Remedy,
    Resolution,
    StateVerdict,
    combine,
    worst,
)
from statetool.errors import NO_FINDING, UNREAD, OptionError, StatetoolError, UnsupportedError, sentence, several
from statetool.formats.key_groups import default_max_parallelism
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.saving.versions import RELEASES, Target, convert_metadata, parse_release
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import ClassSource, TypeContext
from statetool.types.operators import OperatorLabel, display_name

#: The first metadata version of Flink 2.x.
_FIRST_OF_2: Final = 5
#: New operators that are tried as the successor of an operator.
_MOST_TRIALS: Final = 5
_BACKENDS: Final = ("heap", "rocksdb")


def check_inventories(
    old: Inventory,
    new: Inventory | None,
    flink: str | None,
    backend: str | None,
    new_classes: ClassSource | None = None,
) -> Check:
    """Check whether a snapshot is restored. The parameters are those of :func:`statetool.check`.

    Parameters
    ----------
    new_classes
        The classes of the new job, if its jar is known. All values that depend on them are then read.
    """
    if new is None and flink is None and new_classes is None:
        raise OptionError(
            "nothing to check against",
            hint="give a snapshot of the new job, its jar (other_jars=), or a release: flink='2.3'",
        )
    if backend is not None and backend not in _BACKENDS:
        raise OptionError(f"backend={backend!r} is not one of {', '.join(_BACKENDS)}")
    if new is not None:
        old, new = old.with_names_of(new), new.with_names_of(old)
    known_backend = _backend(new, backend)
    classes = None
    if new_classes is not None:
        new = with_new_classes(old, new, flink, new_classes)
        classes = NewClasses(old.types, new.types)
    target = _target(new, flink)
    job = Job(backend=known_backend, target=target, kryo=_kryo(new, target), classes=classes)
    metadata = _metadata(old, job)
    operators = tuple(with_named_files(with_commit_ids(_operators(old, new, job), old, new), old))
    verdict = worst([metadata.level.verdict, *(o.verdict for o in operators)])
    first = next((o for o in operators if o.verdict == verdict), None)
    reason = metadata.reason
    if not reason and first is not None and verdict != "fully":
        states = [f"{s.name}: {s.reason}" for s in first.states if s.verdict == verdict]
        reason = f"{display_name(first.uid)}: {first.reason or ' '.join(states)}"
    return Check(verdict=verdict, reason=reason, operators=operators, causes=metadata.causes)


def with_new_classes(old: Inventory, new: Inventory | None, flink: str | None, classes: ClassSource) -> Inventory:
    """Return the snapshot of the new job, read with its classes. Without one, return what the old job's states become with these classes.

    Parameters
    ----------
    flink
        Release of the new job. Defaults to that of the snapshot.
    """
    target = _target(old if new is None else new, flink)
    types = TypeContext(source=classes, tried=True, python=old.types.python)
    if new is not None:
        return new.with_types(types)
    kryo = old.types.kryo
    if target is not None and target.release is not None:
        kryo = 2 if target.release.startswith("1.") else 5
    return old.with_types(replace(types, kryo=kryo, renewed=True, former=old.types.source, former_kryo=old.types.kryo))


def _target(new: Inventory | None, flink: str | None) -> Target | None:
    if flink is not None:
        return parse_release(flink)
    if new is None:
        return None
    return parse_release("2.3" if new.metadata.version >= _FIRST_OF_2 else "1.20")


def _kryo(new: Inventory | None, target: Target | None) -> int | None:
    """Return the Kryo of the release if the snapshot of the new job does not show it."""
    if target is None or target.release is None:
        return None
    kryo = 2 if target.release.startswith("1.") else 5
    if new is not None and new.types.tried:
        return None
    shown = {o.types.kryo for o in new.operators.values()} if new is not None else set()
    return None if shown == {kryo} else kryo


def _backend(new: Inventory | None, backend: str | None) -> Backend:
    if backend is not None:
        return "heap" if backend == "heap" else "rocksdb"
    for operator in () if new is None else new.operators.values():
        with suppress(*UNREAD):
            for stored in operator.keyed.managed:
                return "rocksdb" if stored.database else "unknown"
    return "unknown"


def _metadata(old: Inventory, job: Job) -> Resolution:
    """Check whether the release reads the metadata and its handles."""
    target = job.target
    if target is None or target.release is None:
        return Resolution(Level.AS_IS)
    if old.metadata.version > target.metadata_version:
        readers = [r for r, (version, _) in RELEASES.items() if version >= old.metadata.version]
        reason = f"Flink {target.release} does not read metadata of version {old.metadata.version}."
        return Resolution.because(Level.INCOMPATIBLE, reason, f"Restore it with Flink {readers[0]} or later.")
    try:
        convert_metadata(old.metadata, target, properties=savepoint_properties())
    except UnsupportedError as error:
        return of_error(Level.INCOMPATIBLE, error)
    return Resolution(Level.AS_IS)


def _operators(old: Inventory, new: Inventory | None, job: Job) -> Iterator[OperatorVerdict]:
    new_operators = {} if new is None else {o.state.operator_id: o for o in new.operators.values()}
    ids = {o.state.operator_id for o in old.operators.values()}
    fresh = [o for i, o in new_operators.items() if i not in ids]
    for operator in old.operators.values():
        successor = new_operators.get(operator.state.operator_id)
        if new is not None and successor is None:
            yield _without_successor(operator, fresh, job)
        else:
            yield _restore_verdict(old, operator, successor, job)
    for operator in fresh:
        yield OperatorVerdict(uid=operator.label, verdict="fully", reason=STARTS_EMPTY, remedy="")


def _restore_verdict(
    snapshot: Inventory, old: OperatorInventory, new: OperatorInventory | None, job: Job
) -> OperatorVerdict:
    return _state_verdict(old, new, job, [_parallelism(snapshot, old, new)])


def _state_verdict(
    old: OperatorInventory, new: OperatorInventory | None, job: Job, resolutions: list[Resolution]
) -> OperatorVerdict:
    """Return the verdict on the state of an operator. ``resolutions`` are those of the operator that are known already."""
    states: list[StateVerdict] = []
    hidden: Hidden = {}

    def keyed() -> None:
        nonlocal hidden
        resolutions.append(_forms(old, new, job))
        if old.keyed.key is not None:
            resolutions.append(check_key(old.keyed.key, None if new is None else new.keyed.key, job))
        if job.classes is not None:
            hidden = job.classes.resolutions(old)
            resolutions.append(hidden.get(("keyed", ""), Resolution(Level.AS_IS)))
        else:
            hidden = {} if new is None else hidden_subclasses(old, new)
        plans = plan_resolutions(old, new)
        resolutions.append(plans.pop(("keyed", ""), Resolution(Level.AS_IS)))
        hidden = {**hidden, **{at: combine([r, *([hidden[at]] if at in hidden else [])]) for at, r in plans.items()}}
        states.extend(
            keyed_verdicts(old.keyed_states, None if new is None else new.keyed_states, job, hidden, old.label)
        )

    def elements() -> None:
        new_states = None if new is None else new.operator_states
        states.extend(element_verdicts(old.operator_states, new_states, job, hidden, old.label))

    for scope, check in (("keyed", keyed), ("operator", elements)):
        try:
            check()
        except UNREAD as error:
            resolutions.append(of_error(Level.UNKNOWN, error, f"statetool cannot read its {scope} state"))
    own = combine(resolutions)
    return OperatorVerdict(
        uid=old.label,
        verdict=worst([own.level.verdict, *(s.verdict for s in states)]),
        reason=own.reason,
        remedy=own.remedy,
        causes=own.causes,
        states=tuple(states),
        warnings=own.warnings,
    )


def _parallelism(snapshot: Inventory, old: OperatorInventory, new: OperatorInventory | None) -> Resolution:
    if new is None:
        return Resolution(Level.AS_IS)
    before, after = old.state.max_parallelism, new.state.max_parallelism
    if new.state.parallelism > before:
        reason = f"The job has parallelism {new.state.parallelism}, the savepoint max parallelism {before}."
        return Resolution.because(
            Level.INCOMPATIBLE, reason, _rescale(snapshot, old, after, "Lower the parallelism of the job")
        )
    if before != after:
        # If the job does not set it, Flink uses the snapshot's value. The job's savepoint does not show whether the job set it.
        unset = after == default_max_parallelism(new.state.parallelism)
        return Resolution.because(
            Level.UNKNOWN if unset else Level.INCOMPATIBLE,
            f"The savepoint has max parallelism {before}, the job {after}. If the job sets {after} explicitly,"
            f" Flink refuses to restore; otherwise Flink keeps {before}.",
            _rescale(snapshot, old, after, "Do not set it in the job"),
        )
    return Resolution(Level.AS_IS)


def _rescale(snapshot: Inventory, operator: OperatorInventory, max_parallelism: int, otherwise: str) -> Remedy:
    """Return the remedy to move the keys of an operator, if they can move."""
    # Loads Arrow, which takes long.
    from statetool.saving.rescale import plan_rescale

    try:
        plan_rescale(snapshot, {operator.state.operator_id: max_parallelism}).check()
    except NO_FINDING:
        raise
    except StatetoolError as error:
        return Remedy(
            f"{otherwise}. statetool cannot write a copy with max parallelism {max_parallelism}: {sentence(error.message)}"
        )
    text = f"{otherwise}, or write a copy with max parallelism {max_parallelism}."
    return Remedy(text, ("rescale", A, NEW, "--uid", f"{operator.label}={max_parallelism}"))


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
        elif not stored.canonical and stored.database != (job.backend == "rocksdb"):
            form = "RocksDB or ForSt" if stored.database else "another backend than RocksDB"
            return Resolution.because(
                Level.INCOMPATIBLE if stored.database else Level.UNKNOWN,
                f"The keyed state has the native format of {form}, and the job uses the {job.backend} backend.",
                Remedy("Convert it to a canonical savepoint, which all backends read.", ("convert", A, NEW)),
            )
    return Resolution(Level.AS_IS)


def _without_successor(old: OperatorInventory, fresh: list[OperatorInventory], job: Job) -> OperatorVerdict:
    row = operator_row(old)
    size = row.state_bytes + row.coordinator_bytes
    if not size:
        return OperatorVerdict(uid=old.label, verdict="fully", reason="Not in the job; it has no state.", remedy="")
    amount = several(size, "byte")
    remedy = Remedy(
        "If its state is not needed, drop it, or restore with --allowNonRestoredState.",
        ("drop", A, NEW, "--uid", old.label),
    )
    names, sure = _successors(old, fresh, job)
    if names:
        shown = " or ".join(n.display for n in names)
        rename = f"If the operator is {shown} in the new job, rename it{'' if sure else ' and check again'}."
        # Which of several it is, only the user knows.
        uid = names[0] if len(names) == 1 else "NEW_UID"
        remedy = Remedy(f"{rename} {remedy.text}", ("uid", A, NEW, f"{old.label}={uid}"))
    cause = Cause(
        level=Level.INCOMPATIBLE,
        reason=f"The new job has no operator with this uid, so its {amount} of state cannot be restored.",
        remedy=remedy,
    )
    lost = f"If non-restored state is allowed, {amount} of state are lost."
    warning = CheckWarning(kind="loses", message=lost, in_reason=True)
    return OperatorVerdict(
        uid=old.label,
        verdict="not",
        reason=cause.reason,
        remedy=str(remedy),
        causes=(cause,),
        warnings=(warning,),
    )


def _successors(old: OperatorInventory, fresh: list[OperatorInventory], job: Job) -> tuple[list[OperatorLabel], bool]:
    """Return the new operators that resemble an operator most, of those that would restore its state under their uid.

    If none would for sure, those for which it is unknown; the second value is then False.
    """
    likeness = {o.label: _likeness(old, o) for o in fresh}
    alike = sorted((o for o in fresh if likeness[o.label] > 0), key=lambda o: -likeness[o.label])[:_MOST_TRIALS]
    verdicts = {o.label: _state_verdict(old, o, job, []).verdict for o in alike}
    for wanted in (("fully", "after_migration"), ("unknown",)):
        if found := [label for label, verdict in verdicts.items() if verdict in wanted]:
            return [label for label in found if likeness[label] == likeness[found[0]]], wanted != ("unknown",)
    return [], False


def _likeness(old: OperatorInventory, new: OperatorInventory) -> float:
    """Return the similarity of two operators by the names of their states, and by their own names."""
    old_states, new_states = ({*o.listed_keyed, *o.listed_elements} for o in (old, new))
    overlap = len(old_states & new_states) / max(1, len(old_states | new_states))
    same_name = bool(old.state.name) and old.state.name == new.state.name
    return overlap + (0.5 if same_name and overlap else 0)
