"""Code with which both jobs build streams: operators of Flink that have state, connectors, max parallelisms and computed uids.

No descriptor of the job declares the state of a keyed ``sum``, an interval join or a join of windows: its type is that of the stream, and the calls
before it decide it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from statetool.compatibility.record_types import has_same_types
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, is_unknown, may_change, note
from statetool.compatibility.traced_states import CONTENTS, check_traced_streams, is_refused, is_traced, traced_limit
from statetool.compatibility.verdicts import NEW, A, Remedy
from statetool.connectors.sinks import COMMITTER_UIDS
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.state_meta import StateMetaInfo
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.types.flink_calls import (
    ASYNC_ELEMENTS,
    GROUPED,
    JOIN_BUFFERS,
    FlinkCall,
    chooses,
    connectors_of,
    connectors_of_uids,
    declared_states,
    difference,
    main_classes,
    operator_calls,
    set_max_parallelisms,
    settled_uids,
    start_calls,
)

_ASK: Final = Remedy("Pass a savepoint of the new job (B), which has its states.")
_SHOWN: Final = 3
#: States of Flink's operators that have the type of a stream.
_OF_STREAMS: Final = (CONTENTS, *GROUPED, *JOIN_BUFFERS)


def check_choices(restore: Restore, pair: Pair, *, keyed: bool) -> Iterator[Result]:
    """K4 and E4 without a snapshot of the new job: code that decides types of states by conditions or arguments changed."""
    listed = pair.old.listed_keyed
    # The step of windows knows the types that their functions give.
    metas = {n: m for n, (_, m) in listed.items() if n != CONTENTS} if keyed else dict(pair.old.listed_elements)
    if names := open_choices(restore, pair, metas, keyed=keyed):
        text = f"The code chooses types, functions or uids by conditions or arguments, and it changed. Whether {', '.join(names[:_SHOWN])} has the same type is unknown."
        yield is_unknown("K4" if keyed else "E4", text, _ASK, pair.old)


def open_choices(restore: Restore, pair: Pair, metas: Mapping[str, StateMetaInfo], *, keyed: bool) -> list[str]:
    """Return the states whose types code chooses, unless it is the same in both jobs, or executing it shows the type.

    The same code makes the same choices, if it has the same arguments. Other code is executed on all ways that it can take.
    """
    classes = restore.job.classes
    if restore.has_snapshot or classes is None or classes.old.source is None or classes.new.source is None:
        return []
    old, new = classes.old.source, classes.new.source
    calls = old.flink_calls()
    declared = {s.name for s in declared_states(calls)}
    # States of other operators of Flink have no type that code of the job gives.
    names = [n for n, m in metas.items() if m.kind != "timers" and (n in declared or n in _OF_STREAMS)]
    if (
        not names
        or not any(chooses((*s.flink_calls(), *s.own_calls())) for s in (old, new))
        or old.has_same_building(new)
    ):
        return []
    if pair.old.state.operator_id in gone_uids(restore) or is_refused(restore, pair):
        return []
    return [n for n in names if not is_traced(restore, pair, metas[n], keyed=keyed)]


def check_stream_operators(restore: Restore, pair: Pair) -> Iterator[Result]:
    """Yield what the code changes of a keyed aggregation or an interval join of Flink: types, and how it works."""
    classes = restore.job.classes
    own = [n for n in (*GROUPED, *JOIN_BUFFERS) if n in pair.old.listed_keyed]
    if not own or classes is None or classes.old.source is None or classes.new.source is None:
        return
    traced = list(check_traced_streams(restore, pair, own))
    yield from traced
    if not restore.has_snapshot and not traced and not has_same_types(classes.old, classes.new):
        yield _unknown_type("K4", own, pair)
    changed = difference(*(operator_calls(s.flink_calls(), own) for s in (classes.old.source, classes.new.source)))
    if changed:
        text = f"The code that aggregates or joins by key changed ({changed}). The values of {', '.join(own)} are those of the old code."
        yield may_change("K15", text, "Compare the results, or give the new operator another uid.", pair.old)


def check_asynchronous_functions(restore: Restore, pair: Pair) -> Iterator[Result]:
    """W9 without a snapshot of the new job: the elements that an asynchronous function waits for have the type of the stream."""
    classes = restore.job.classes
    own = [n for n in ASYNC_ELEMENTS if n in pair.old.listed_elements]
    if own and not restore.has_snapshot and classes is not None and not has_same_types(classes.old, classes.new):
        yield _unknown_type("W9", own, pair)


def _unknown_type(rule: str, states: list[str], pair: Pair) -> Result:
    text = f"The state {', '.join(states)} has the type of the stream, and the code of both jobs builds its streams otherwise. Whether the type is the same is unknown."
    return is_unknown(rule, text, _ASK, pair.old)


def check_connectors(restore: Restore) -> Iterator[Result]:
    """C1 without a snapshot of the new job: its code creates other sources or sinks."""
    calls = _calls_of_both(restore)
    if restore.has_snapshot or calls is None:
        return
    before, after = map(connectors_of, calls)
    if before - after and after - before:
        gone, fresh = (", ".join(sorted(side)[:_SHOWN]) for side in (before - after, after - before))
        changed = changed_connectors(restore)
        shown = [
            f"{uid} had {', '.join(sorted(was))}, and has {', '.join(sorted(now))}" for uid, was, now, _ in changed
        ]
        if shown:
            text = f"The code of the new job has another source or sink: {'; '.join(shown[:_SHOWN])}. Flink fails, or takes the bytes for something else."
            stored = dict.fromkeys(label for *_, labels in changed for label in labels)
            remedy = Remedy(
                "Leave out what the old connector stored. Let a sink finish its commits before the snapshot. A new source begins at its start option.",
                ("drop", A, NEW, *(word for label in stored for word in ("--uid", label))),
            )
            yield is_unknown("C1", text, remedy)
            return
        text = f"The code of the new job has other sources or sinks: no longer {gone}; now {fresh}. If one of them has the uid of another one, Flink fails, or takes the bytes for other positions."
        yield is_unknown("C1", text, Remedy("Pass a savepoint of the new job (B), which has their state."))


def changed_connectors(restore: Restore) -> list[tuple[str, set[str], set[str], list[str]]]:
    """Return the uids that other connectors have in the new job, the classes of both, and the operators whose state the old one stored."""
    calls = _calls_of_both(restore)
    was, now = map(connectors_of_uids, calls or ((), ()))
    labels = {o.state.operator_id: str(o.label) for o in restore.old.operators.values() if operator_row(o).state_bytes}
    found = []
    for uid in sorted(was.keys() & now.keys()):
        ids = [operator_id_for_uid(form.format(uid)) for form in ("{}", *COMMITTER_UIDS)]
        stored = [labels[i] for i in ids if i in labels]
        if was[uid] and now[uid] and not was[uid] & now[uid] and stored:
            found.append((uid, was[uid], now[uid], stored))
    return found


def check_start(restore: Restore) -> Iterator[Result]:
    """C6: splits that the snapshot has go on at their positions, wherever the code of the new job lets its sources start."""
    calls = _calls_of_both(restore)
    changed = "" if calls is None else difference(*map(start_calls, calls))
    if changed:
        text = f"The code says otherwise where sources start ({changed}). That holds for new splits only: those of the snapshot go on at their positions."
        yield note("C6", text, "To begin elsewhere, set the positions with statetool sources set.")


def check_max_parallelism(restore: Restore) -> Iterator[Result]:
    """P1 without a snapshot of the new job: its code sets a max parallelism that operators of the snapshot do not have."""
    classes = restore.job.classes
    if restore.has_snapshot or restore.options.set_max_parallelism is not None or classes is None:
        return
    if classes.new.source is None:
        return
    before = [] if classes.old.source is None else set_max_parallelisms(classes.old.source.flink_calls())
    after = set_max_parallelisms(classes.new.source.flink_calls())
    numbers = {str(p.old.state.max_parallelism) for p in restore.pairs}
    fresh = Counter(after) - Counter(before) if classes.old.source is not None else Counter(set(after) - numbers)
    for limit in filter(None, (traced_limit(restore, pair) for pair in restore.pairs)):
        # The rule of operators knows that Flink refuses.
        fresh -= Counter([str(limit) if fresh[str(limit)] else ""])
    if fresh and not (len(numbers) == 1 and set(fresh) == numbers):
        shown = ", ".join(sorted(n or "a computed number" for n in fresh))
        text = f"The code of the new job sets a max parallelism ({shown}), and operators of the snapshot have {', '.join(sorted(numbers))}: Flink refuses to restore an operator that has another one."
        yield is_unknown(
            "P1", text, Remedy("Name the number with --max-parallelism, or pass a savepoint of the new job.")
        )


def check_computed_uids(restore: Restore, operators: list[OperatorInventory]) -> Iterator[Result]:
    """O4 without a snapshot of the new job: the code computes or chooses uids, and it changed.

    Parameters
    ----------
    operators
        Operators that have state.
    """
    classes = restore.job.classes
    calls = _calls_of_both(restore)
    if not operators or calls is None or classes is None or classes.old.source is None or classes.new.source is None:
        return
    old, new = classes.old.source, classes.new.source
    (_, computed_before), (settled, computes) = map(settled_uids, calls)
    if not (computed_before and computes) or old.has_same_building(new):
        return
    given = {operator_id_for_uid(uid) for uid in settled}
    given |= {operator_id_for_uid(uid) for uid, one in new.traced_job.operators.items() if one.is_whole}
    given |= gone_uids(restore).keys()
    was = old.traced_job
    named = {operator_id_for_uid(uid) for uid in was.uids}
    # If executing the old code shows all of its uids, Flink generated the others.
    unsure = [o for o in operators if (i := o.state.operator_id) not in given and (i in named or not was.is_whole)]
    if unsure:
        names = ", ".join(str(o.label) for o in unsure[:_SHOWN])
        text = f"The code computes uids, and it changed. Whether {names} have the uids that they had is unknown."
        yield is_unknown("O4", text, rename_uids(restore, unsure) or _ASK)


def rename_uids(restore: Restore, operators: Sequence[OperatorInventory]) -> Remedy | None:
    """Return the remedy for computed uids if executed code gives operators other ones, ``None`` if it does not tell."""
    classes = restore.job.classes
    if classes is None or classes.old.source is None or classes.new.source is None:
        return None
    before, after = (s.traced_job.operators for s in (classes.old.source, classes.new.source))
    labels = {o.state.operator_id: str(o.label) for o in operators}
    gone = {uid: one for uid, one in before.items() if uid not in after}
    fresh = {uid: one for uid, one in after.items() if uid not in before}
    renames = {}
    for uid, one in gone.items():
        alike = [name for name, other in fresh.items() if other == one]
        if len(alike) == 1 and list(gone.values()).count(one) == 1 and (old_id := operator_id_for_uid(uid)) in labels:
            renames[labels[old_id]] = alike[0]
    if not renames:
        return None
    shown = ", ".join(f"{old} the uid {new}" for old, new in renames.items())
    text = f"Executed, it gives {shown}: give them these uids, or pass a savepoint of the new job (B)."
    return Remedy(text, ("uid", A, NEW, *(f"{old}={new}" for old, new in renames.items())))


def gone_uids(restore: Restore) -> Mapping[str, str]:
    """Return ids and uids that the code of the old job gives and that of the new job does not, if both were executed on all ways that they can take."""
    classes = restore.job.classes
    if restore.has_snapshot or classes is None or classes.old.source is None or classes.new.source is None:
        return {}
    was, now = classes.old.source.traced_job, classes.new.source.traced_job
    if not now.is_whole or not now.uids:
        return {}
    return {operator_id_for_uid(uid): uid for uid, one in was.operators.items() if one.is_whole and uid not in now.uids}


def check_main_classes(restore: Restore) -> Iterator[Assumption]:
    """Yield the assumption that the job is still built by the same class, if the jar of the new job has several."""
    classes = restore.job.classes
    if restore.has_snapshot or classes is None or classes.new.source is None:
        return
    mains = main_classes(classes.new.source.flink_calls())
    if len(mains) > 1:
        shown = ", ".join(mains[:_SHOWN]) + (", ..." if len(mains) > _SHOWN else "")
        text = f"the same class builds the new job as the old one: its jar has {len(mains)} that build jobs ({shown})"
        yield Assumption(rule="O1", text=text, option="B, a savepoint of the new job")


def _calls_of_both(restore: Restore) -> tuple[tuple[FlinkCall, ...], tuple[FlinkCall, ...]] | None:
    classes = restore.job.classes
    if classes is None or classes.old.source is None or classes.new.source is None:
        return None
    return classes.old.source.flink_calls(), classes.new.source.flink_calls()
