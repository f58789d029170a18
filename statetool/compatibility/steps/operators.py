"""Map operators: each operator of the snapshot needs an operator of the same id in the new job.

Follows ``Checkpoints.loadAndValidateCheckpoint``, ``StateAssignmentOperation.checkStateMappingCompleteness`` (restores of the JobManager)
and ``StreamGraphHasherV2`` (generated ids).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from statetool.compatibility.classes.job_classes import ids_in_jars, strings_in_jars
from statetool.compatibility.declared_states import check_returning_states
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.states import Job, check_key
from statetool.compatibility.step_verdicts import Assumption
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
    may_change,
    note,
    per_pair,
    refuses,
)
from statetool.compatibility.stream_code import check_computed_uids, check_main_classes, gone_uids, rename_uids
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
from statetool.formats.operator_id import operator_id_for_uid
from statetool.operations.advice.restore_settings import RESTORED
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.types.flink_calls import function_counts, functions_of_uids, given_uids
from statetool.types.operators import OperatorLabel, describe_operators

#: Number of a node of SQL's plan in the name of its operator.
_NODE: Final = re.compile(r"\[\d+\]")
#: Uids that SQL gives, by ``table.exec.uid.format``: that of Flink 1.16 and later (``5_calc``), and that of 1.15 (``5_stream-exec-calc_1_calc``).
_SQL_UID: Final = re.compile(r"\d+_[a-z-]+")
_SQL_UID_OF_1_15: Final = re.compile(r"\d+_[a-z-]+_\d+_[a-z-]+")
#: Options of SQL that decide which operators a query has, and their state.
_SQL_OPTIONS: Final = (
    "table.exec.mini-batch.", "table.exec.async-state.", "table.exec.sink.upsert-materialize", "table.exec.state.ttl",
    "table.optimizer.agg-phase-strategy", "table.optimizer.distinct-agg.split.", "table.optimizer.multi-join.", "table.optimizer.delta-join.",
)  # fmt: skip
#: New operators that are tried as the successor of an operator.
_MOST_TRIALS: Final = 5
#: The state of sources (``SourceOperator``).
_SPLITS: Final = "SourceReaderState"


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
    by_hash = strings_in_jars(restore.new_jars, before - after)
    gone = _gone_ids(restore)
    for operator_id in sorted(before - after):
        old = operators[operator_id]
        if operator_id in by_hash:
            text = (
                f"The jar of the new job has the id of {old.label.display} as a text instead of its uid (setUidHash)."
            )
            yield note("O6", text, None, old)
            continue
        text = f"The uid of {old.label.display} is in the jar of the old job and not in that of the new one"
        if operator_id in gone:
            yield _gone(restore, old, f"{text}, whose code gives only constant uids")
            continue
        remedy = Remedy(
            "Pass a savepoint of the new job, or leave out the operator.", ("drop", A, NEW, "--uid", str(old.label))
        )
        text = f"{text}: if the new job does not have the operator, Flink refuses to restore."
        yield is_unknown("O1", text, remedy, old)


def _gone_ids(restore: Restore) -> set[str]:
    """Return the ids of uids that the code of the old job gives, if that of the new job gives other ones, and computes none."""
    classes = restore.job.classes
    if classes is None or classes.old.source is None or classes.new.source is None:
        return set()
    after, computes = given_uids(classes.new.source.flink_calls())
    if computes or not after:
        return set()
    before, _ = given_uids(classes.old.source.flink_calls())
    return {operator_id_for_uid(uid) for uid in before - after}


def _gone(restore: Restore, old: OperatorInventory, text: str, remedy: Remedy | None = None) -> Found:
    """Return the finding about an operator that the code of the new job does not have."""
    amount = several(operator_row(old).state_bytes, "byte")
    if restore.options.skips_state:
        text = f"{text}: with --allowNonRestoredState, its {amount} of state are lost."
        return loses("O2", text, "If its state is needed, give it the uid of the new job (statetool uid).", old)
    found = f"{text}: no operator restores its {amount} of state, and Flink refuses."
    if remedy is not None:
        return refuses("O1", found, remedy, old)
    renamed = _new_uids(restore, old.uid)
    if len(renamed) == 1 and renamed[0]:
        advice = f"The new job gives its function the uid {renamed[0]}: rename the operator."
    else:
        advice = "If the operator has another uid in the new job, rename it (statetool uid)."
    # Which of several it is, only the user knows.
    new_uid = (renamed[0] if len(renamed) == 1 else "") or "NEW_UID"
    command = ("uid", A, NEW, f"{old.label}={new_uid}") if renamed else ("drop", A, NEW, "--uid", str(old.label))
    return refuses("O1", found, Remedy(f"{advice} If its state is not needed, drop it.", command), old)


def _new_uids(restore: Restore, uid: str) -> list[str]:
    """Return the uids that only the new job gives to the function of a uid; ``""`` instead if code does not show which functions have new uids."""
    assert restore.job.classes is not None
    calls = [t.source.flink_calls() for t in (restore.job.classes.old, restore.job.classes.new) if t.source is not None]
    given = [given_uids(c)[0] for c in calls]
    before, after = map(functions_of_uids, calls)
    fresh = sorted(given[1] - given[0])
    if not before.get(uid) or not all(after.get(n) for n in fresh):
        return [""] if fresh else []
    return [n for n in fresh if after[n] == before[uid]]


def _named(restore: Restore) -> Iterator[Result]:
    """O1 without a snapshot of the new job: a function that had no uid has one, so no operator has the id that Flink generated."""
    classes = restore.job.classes
    if restore.has_snapshot or classes is None or classes.old.source is None or classes.new.source is None:
        return
    calls = [s.flink_calls() for s in (classes.old.source, classes.new.source)]
    counts = [function_counts(c) for c in calls]
    before, after = map(functions_of_uids, calls)
    known = {operator_id_for_uid(uid) for uid in (*given_uids(calls[0])[0], *after)}
    unnamed = [o for o in restore.old.operators.values() if not o.uid and o.state.operator_id not in known]
    traced = classes.new.source.traced_job.operators
    sometimes = {a[1:-1] for c in calls[1] if c.name == "uid" and c.branches for a in c.arguments}
    for uid in sorted(after.keys() - given_uids(calls[0])[0] - sometimes):
        functions = after[uid]
        states = {s.name for s in traced[uid].states} if uid in traced else set()
        once = all(count[name] == 1 for name in functions for count in counts)
        alike = [o for o in unnamed if _own_states(o) and _own_states(o) == states]
        if len(alike) != 1 or not once or functions in before.values():
            continue
        (old,) = alike
        amount = several(operator_row(old).state_bytes, "byte")
        text = (
            f"The code of the new job gives {', '.join(functions)} the uid {uid}, and that of the old job gave it none"
        )
        if restore.options.skips_state:
            yield loses("O2", f"{text}: with --allowNonRestoredState, its {amount} of state are lost.", None, old)
            continue
        remedy = Remedy("Give the operator its uid.", ("uid", A, NEW, f"{old.label}={uid}"))
        yield refuses("O1", f"{text}: no operator restores its {amount} of state, and Flink refuses.", remedy, old)


def _own_states(operator: OperatorInventory) -> set[str]:
    """Return the names of the states of an operator that its function declares."""
    keyed = {name for name, (_, meta) in operator.listed_keyed.items() if meta.kind != "timers"}
    return {*keyed, *operator.listed_elements} if operator_row(operator).state_bytes else set()


def _by_hash(restore: Restore) -> Iterator[Result]:
    """O6: an operator that restores another id than that of its own snapshots (``setUidHash``)."""
    for operator_id, new_id in restore.by_hash.items():
        old = next(p.old for p in restore.pairs if p.old.state.operator_id == operator_id)
        text = f"The jar of the new job has the id of {old.label.display} as a text (setUidHash): its operator {new_id}, which has the same states, is taken for it."
        yield note("O6", text, "Name another one with --map OLD=NEW.", old)


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


def _alike(restore: Restore) -> Iterator[Result]:
    """O4: operators without uids that have the same states exchange them if their order in the job changes."""
    without = [p.old for p in restore.pairs if not p.old.uid and (p.new is None or not p.new.uid)]
    groups: dict[tuple[tuple[str, ...], ...], list[OperatorInventory]] = {}
    for old in without:
        if shape := _shape(old):
            groups.setdefault(shape, []).append(old)
    alike = {o.state.operator_id: o for group in groups.values() if len(group) > 1 for o in group}
    if alike and (jars := restore.old_jars or restore.new_jars):
        alike = {i: alike[i] for i in alike.keys() - ids_in_jars(jars, alike)}
    for group in groups.values():
        same = [o for o in group if o.state.operator_id in alike]
        if len(same) > 1:
            names = describe_operators([str(o.label) for o in same])
            text = f"The ids of {names} were generated by Flink from the position in the job, and they have the same states: if their order changed, each restores the state of another one."
            yield note(
                "O4",
                text,
                "Set uids in the job, and give the operators of the snapshot the new uids with statetool uid.",
            )


def _other_functions(restore: Restore) -> Iterator[Result]:
    """O5: the function of one operator has the uid of another one in the new job."""
    classes = restore.job.classes
    if classes is None or classes.old.source is None or classes.new.source is None:
        return
    before, after = (functions_of_uids(s.flink_calls()) for s in (classes.old.source, classes.new.source))
    for pair in restore.pairs:
        uid = pair.old.uid
        was, now = before.get(uid), after.get(uid)
        if was is None or now is None or was == now or now not in before.values() or was not in after.values():
            continue
        if operator_row(pair.old).state_bytes:
            text = f"The code of the old job gives {pair.old.label.display} the function {', '.join(was)}, that of the new job {', '.join(now)}, which had another uid: it restores the state of the other function."
            yield may_change("O5", text, "Give each function the uid that it had.", pair.old)


def _not_in_jar(restore: Restore) -> Iterator[Result]:
    """O4 without a snapshot of the new job: ids whose uids are no texts of its jar are generated, or their uids are computed."""
    if restore.has_snapshot or not restore.new_jars:
        return
    stateful = {o.state.operator_id: o for o in restore.old.operators.values() if operator_row(o).state_bytes}
    known = ids_in_jars(restore.new_jars, stateful) | strings_in_jars(restore.new_jars, stateful)
    unnamed = [o for i, o in stateful.items() if i not in known]
    others = [str(o.label) for o in unnamed]
    gone = gone_uids(restore)
    for operator_id in sorted(gone.keys() & stateful.keys() - _gone_ids(restore)):
        old = stateful[operator_id]
        text = (
            f"Executed, the code of the old job gives {old.label.display} its uid, and that of the new job only others"
        )
        yield _gone(restore, old, text, rename_uids(restore, [old]))
    yield from check_computed_uids(restore, [*stateful.values()])
    if others:
        text = f"the new job has the same ids for {describe_operators(others)}: Flink generates them from the position in the job, or the code computes their uids, which are no texts of its jar"
        yield Assumption(rule="O4", text=text, option="B, a savepoint of the new job")


def _sql_ids(restore: Restore) -> Iterator[Result]:
    """Q1, Q2: operators of SQL have no counterpart in the new job because its query or an option gives them other ids (``ExecNodeBase``)."""
    gone, fresh = ([o for o in side if o.has_sql_rows] for side in (restore.removed, restore.added))
    if not restore.has_snapshot or not gone or not fresh:
        return
    names = describe_operators([str(o.label) for o in gone])
    before, after = map(_uid_format, (gone, fresh))
    if before and before == after:
        text = f"The ids of {names} come from the plan of the query, which differs in the new job."
        remedy = "Compile the query into a plan (COMPILE PLAN), whose uids stay. Give the operators of the snapshot the new ids with statetool uid."
        yield note("Q1", text, remedy)
    elif before != after and before and after:
        option = "table.exec.uid.generation" if "none" in (before, after) else "table.exec.uid.format"
        text = f"The uids of {names} have another form in the new job, as with another {option}: {_example(gone)} in the snapshot, {_example(fresh)} in the new job."
        yield note("Q2", text, f"Set {option} as in the old job, or rename all operators with statetool uid.")


def _uid_format(operators: Sequence[OperatorInventory]) -> str:
    """Return the form of the uids of SQL operators: ``none``, ``1.15``, ``1.16``; empty if they are of several, or of another form."""
    forms = {
        "none"
        if not o.uid
        else "1.15"
        if _SQL_UID_OF_1_15.fullmatch(o.uid)
        else "1.16"
        if _SQL_UID.fullmatch(o.uid)
        else ""
        for o in operators
    }
    return forms.pop() if len(forms) == 1 else ""


def _example(operators: Sequence[OperatorInventory]) -> str:
    return next((o.uid for o in operators if o.uid), "generated ids")


def _sql_options(restore: Restore) -> Iterator[Result]:
    """Q6: the run that wrote the savepoint of the new job had the options of SQL with which the job will run."""
    config = restore.options.config
    sql = [p.new for p in restore.pairs if p.new is not None and p.new.has_sql_rows] if restore.has_snapshot else []
    if not sql or any(o.plan_aggregates is not None for o in sql):
        return
    given = [] if config is None else [k for k in config.values if k.startswith(_SQL_OPTIONS)]
    shown = f" ({', '.join(f'{k}: {config.values[k]}' for k in given[:3])})" if config is not None and given else ""
    text = f"the savepoint of the new job was written with the options of SQL with which the job will run{shown}: they decide operators and state"
    yield Assumption(rule="Q6", text=text, option="a compiled plan")


def _path_of_all(restore: Restore) -> Iterator[Result]:
    """Q9: a path in the configuration, or of ``SET`` in the SQL client, is that of all jobs (``SavepointRestoreSettings.fromConfiguration``)."""
    config = restore.options.config
    if config is not None and config.text(RESTORED):
        text = f"The configuration sets {config.name(RESTORED)}: each job that is submitted with it, and names no other snapshot, restores that one."
        yield note("Q9", text, "Remove it after the restore; in the SQL client with RESET.")


def _shape(operator: OperatorInventory) -> tuple[tuple[str, ...], ...]:
    """Return names, kinds and types of the states of an operator, without those of sources, which know their splits."""
    metas = [*(m for _, m in operator.listed_keyed.values()), *operator.listed_elements.values()]
    if any(m.name == _SPLITS for m in metas):
        return ()
    return tuple(sorted((m.name, m.kind, *(s.type_name for s in m.serializers.values())) for m in metas))


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
    checks=(
        _removed,
        guarded(_only_in_old_jar),
        guarded(_named),
        _by_hash,
        per_pair(_generated_ids),
        guarded(_alike),
        guarded(_other_functions),
        guarded(_sql_ids),
        guarded(_sql_options),
        _path_of_all,
        per_pair(check_returning_states),
        guarded(_not_in_jar),
        guarded(check_main_classes),
        _added,
    ),
)
