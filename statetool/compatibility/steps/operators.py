"""Map operators: each operator of the snapshot needs an operator of the same id in the new job.

Follows ``Checkpoints.loadAndValidateCheckpoint``, ``StateAssignmentOperation.checkStateMappingCompleteness`` (restores of the JobManager)
and ``StreamGraphHasherV2`` (generated ids).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from statetool.compatibility.job_classes import ids_in_jars
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.states import Job, check_key
from statetool.compatibility.steps.keyed_state import SAME_STATES, keyed_results
from statetool.compatibility.steps.operator_state import element_results
from statetool.compatibility.steps.step import (
    Found,
    Result,
    StateFound,
    Step,
    guarded,
    is_always_relevant,
    is_unknown,
    loses,
    per_pair,
    refuses,
)
from statetool.compatibility.verdicts import (
    NEW,
    STARTS_EMPTY,
    A,
    Cause,
    CheckWarning,
    Level,
    Remedy,
    Resolution,
    Verdict,
    worst,
)
from statetool.errors import several
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorLabel

#: Number of a node of SQL's plan in the name of its operator.
_NODE: Final = re.compile(r"\[\d+\]")
#: New operators that are tried as the successor of an operator.
_MOST_TRIALS: Final = 5


def _removed(restore: Restore) -> Iterator[Result]:
    """O1 to O3: operators of the snapshot that the new job does not have."""
    if not restore.has_snapshot:
        yield SAME_STATES
        return
    for old in restore.removed:
        row = operator_row(old)
        size = row.state_bytes + row.coordinator_bytes
        if restore.options.last_state:
            yield _not_in_last_state(old, size)
        elif size:
            yield _without_successor(restore, old, size)
        else:
            cause = Cause(level=Level.AS_IS, reason="Not in the job; it has no state.")
            yield Found(rule="O1", resolution=Resolution(Level.AS_IS, (cause,)), operator=old)


def _not_in_last_state(old: OperatorInventory, size: int) -> Found:
    state = f"{several(size, 'byte')} of state" if size else "no state"
    text = (
        f"The new job has no operator with this uid ({state}). A restore from high-availability data (last-state) refuses each operator that"
        " the job does not have, even without state, and ignores --allowNonRestoredState (FLINK-39513)."
    )
    remedy = Remedy(
        "Start the job from a savepoint without the operator (upgradeMode: savepoint).",
        ("drop", A, NEW, "--uid", str(old.label)),
    )
    return refuses("O3", text, remedy, old)


def _without_successor(restore: Restore, old: OperatorInventory, size: int) -> Found:
    amount = several(size, "byte")
    lost = f"{amount} of state are lost"
    if restore.options.skips_state:
        text = f"The new job has no operator with this uid: with --allowNonRestoredState, {lost}."
        return loses(
            "O2", text, _rename_or_drop(restore, old, "If its state is needed, give it the uid of the new job."), old
        )
    remedy = _rename_or_drop(
        restore, old, "If its state is not needed, drop it, or restore with --allowNonRestoredState."
    )
    reason = f"The new job has no operator with this uid, so its {amount} of state cannot be restored."
    cause = Cause(level=Level.INCOMPATIBLE, reason=reason, remedy=remedy)
    warning = CheckWarning(kind="loses", message=f"If non-restored state is allowed, {lost}.", in_reason=True)
    return Found(rule="O1", resolution=Resolution(Level.INCOMPATIBLE, (cause,), (warning,)), operator=old)


def _only_in_old_jar(restore: Restore) -> Iterator[Result]:
    """O1 without a snapshot of the new job: a uid that is a text in the old jar and nowhere in the new one."""
    if restore.has_snapshot or not restore.old_jars or not restore.new_jars:
        return
    operators = {o.state.operator_id: o for o in restore.old.operators.values() if operator_row(o).state_bytes}
    before, after = (ids_in_jars(jars, operators) for jars in (restore.old_jars, restore.new_jars))
    for operator_id in sorted(before - after):
        old = operators[operator_id]
        text = f"The uid of {old.label.display} is in the jar of the old job and not in that of the new one: if the new job does not have the operator, Flink refuses to restore."
        remedy = Remedy(
            "Pass a savepoint of the new job, or leave out the operator.", ("drop", A, NEW, "--uid", str(old.label))
        )
        yield is_unknown("O1", text, remedy, old)


def _rename_or_drop(restore: Restore, old: OperatorInventory, otherwise: str) -> Remedy:
    names, verdict = _successors(old, restore.added, restore.job)
    if not names:
        return Remedy(otherwise, ("drop", A, NEW, "--uid", old.label))
    shown = " or ".join(n.display for n in names)
    # Which of several it is, only the user knows.
    command = ("uid", A, NEW, f"{old.label}={names[0] if len(names) == 1 else 'NEW_UID'}")
    if verdict == "not":
        return Remedy(
            f"It looks like {shown} of the new job, with values of another type. Rename it, and convert the values of the copy with statetool"
            " migrate or upgrade (--rename FIELD=OLD, --fill FIELD=JSON).",
            command,
        )
    rename = (
        f"If the operator is {shown} in the new job, rename it{'' if verdict != 'unknown' else ' and check again'}."
    )
    return Remedy(f"{rename} {otherwise}", command)


def _added(restore: Restore) -> Iterator[Result]:
    """O9: operators that only the new job has start empty."""
    for new in restore.added:
        cause = Cause(level=Level.AS_IS, reason=STARTS_EMPTY)
        yield Found(rule="O9", resolution=Resolution(Level.AS_IS, (cause,)), operator=new)


def _generated_ids(restore: Restore, pair: Pair) -> Iterator[Result]:
    """O4: ids that Flink generates depend on the position in the job, so another operator may take the place of one."""
    old, new = pair.old, pair.new
    if new is None or old.uid or new.uid:
        return
    names = (old.state.name, new.state.name)
    if not all(names) or names[0] == names[1]:
        return
    states = {*old.listed_keyed, *old.listed_elements}
    if not states:
        return
    common = states & {*new.listed_keyed, *new.listed_elements}
    text = f"The id was generated by Flink from the position in the job, and the operator there is {names[1]} in the new job, not {names[0]}."
    remedy = Remedy("Set uids in the job, and give the operators of the snapshot the new uids with statetool uid.")
    if common:
        yield is_unknown("O4", f"{text} Whether it is the same operator is unknown.", remedy, old)
    else:
        yield loses(
            "O4", f"{text} They have no state in common: the old state is carried along and not used.", remedy, old
        )


def _trial_verdict(old: OperatorInventory, new: OperatorInventory, job: Job) -> Verdict:
    """Return the verdict on the states of an operator if a new operator restored them."""
    found = [*keyed_results(old, new, job), *element_results(old, new, job)]
    return worst(r.verdict.verdict if isinstance(r, StateFound) else _level(r).verdict for r in found)


def _level(result: Result) -> Level:
    return result.resolution.level if isinstance(result, Found) else Level.AS_IS


def _successors(
    old: OperatorInventory, fresh: tuple[OperatorInventory, ...], job: Job
) -> tuple[list[OperatorLabel], Verdict]:
    """Return the new operators that resemble an operator most, and the verdict on its state under their uid.

    The best verdict counts. Operators that would not restore the state are only returned if name and keys are alike.
    """
    likeness = {o.label: _likeness(old, o) for o in fresh}
    alike = sorted((o for o in fresh if likeness[o.label] > 0), key=lambda o: -likeness[o.label])[:_MOST_TRIALS]
    verdicts = {o.label: _trial_verdict(old, o, job) for o in alike}
    same = {o.label for o in alike if _is_alike(old, o, job)}
    for wanted in (("fully", "after_migration"), ("unknown",), ("not",)):
        found = [
            label for label, verdict in verdicts.items() if verdict in wanted and (verdict != "not" or label in same)
        ]
        if found:
            return [label for label in found if likeness[label] == likeness[found[0]]], wanted[0]
    return [], "not"


def _is_alike(old: OperatorInventory, new: OperatorInventory, job: Job) -> bool:
    """Return True if two operators have the same name, apart from the numbers of SQL's nodes, and keys of the same type.

    Releases before 2.0 store no names: operators without uids that have the same states are then alike.
    """
    names = [_NODE.sub("", o.state.name) for o in (old, new)]
    if all(names):
        is_same = names[0] == names[1]
    else:
        states, new_states = ({*o.listed_keyed, *o.listed_elements} for o in (old, new))
        is_same = not old.uid and not new.uid and states == new_states
    if not is_same:
        return False
    keys = old.keyed.key, new.keyed.key
    if keys[0] is None or keys[1] is None:
        return keys == (None, None)
    return check_key(keys[0], keys[1], job).level < Level.INCOMPATIBLE


def _likeness(old: OperatorInventory, new: OperatorInventory) -> float:
    """Return the similarity of two operators by the names of their states, and by their own names."""
    old_states, new_states = ({*o.listed_keyed, *o.listed_elements} for o in (old, new))
    overlap = len(old_states & new_states) / max(1, len(old_states | new_states))
    same_name = bool(old.state.name) and _NODE.sub("", old.state.name) == _NODE.sub("", new.state.name)
    return overlap + (0.5 if same_name and overlap else 0)


STEP: Final = Step(
    name="operators",
    title="Operators",
    follows="Checkpoints, StateAssignmentOperation, StreamGraphHasherV2",
    irrelevant=is_always_relevant,
    checks=(_removed, guarded(_only_in_old_jar), per_pair(_generated_ids), _added),
)
