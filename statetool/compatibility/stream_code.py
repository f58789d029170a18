"""Code with which both jobs build streams: operators of Flink that have state, connectors, max parallelisms and computed uids.

No descriptor of the job declares the state of a keyed ``sum``, an interval join or a join of windows: its type is that of the stream, and the calls
before it decide it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from statetool.compatibility.record_types import has_same_types
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, is_unknown, may_change, note
from statetool.compatibility.traced_states import check_traced_streams, traced_limit
from statetool.compatibility.verdicts import Remedy
from statetool.snapshot.operator import OperatorInventory
from statetool.types.flink_calls import (
    ASYNC_ELEMENTS,
    GROUPED,
    JOIN_BUFFERS,
    FlinkCall,
    computes_uids,
    connectors_of,
    difference,
    main_classes,
    operator_calls,
    set_max_parallelisms,
    start_calls,
)

_ASK: Final = Remedy("Pass a savepoint of the new job (B), which has its states.")
_SHOWN: Final = 3


def check_stream_operators(restore: Restore, pair: Pair) -> Iterator[Result]:
    """Yield what the code changes of a keyed aggregation or an interval join of Flink: types, and how it works."""
    classes = restore.job.classes
    own = [n for n in (*GROUPED, *JOIN_BUFFERS) if n in pair.old.listed_keyed]
    if not own or classes is None or classes.old.source is None or classes.new.source is None:
        return
    if not restore.has_snapshot and not has_same_types(classes.old, classes.new):
        traced = list(check_traced_streams(restore, pair, own))
        yield from traced or [_unknown_type("K4", own, pair)]
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
        text = f"The code of the new job has other sources or sinks: no longer {gone}; now {fresh}. If one of them has the uid of another one, Flink fails, or takes the bytes for other positions."
        yield is_unknown("C1", text, Remedy("Pass a savepoint of the new job (B), which has their state."))


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
    if any(traced_limit(restore, pair) is not None for pair in restore.pairs):
        return  # The rule of operators knows that Flink refuses.
    if fresh and not (len(numbers) == 1 and set(fresh) == numbers):
        shown = ", ".join(sorted(n or "a computed number" for n in fresh))
        text = f"The code of the new job sets a max parallelism ({shown}), and operators of the snapshot have {', '.join(sorted(numbers))}: Flink refuses to restore an operator that has another one."
        yield is_unknown(
            "P1", text, Remedy("Name the number with --max-parallelism, or pass a savepoint of the new job.")
        )


def check_computed_uids(restore: Restore, operators: list[OperatorInventory]) -> Iterator[Result]:
    """O4 without a snapshot of the new job: the code computes uids, and texts in its classes changed.

    Parameters
    ----------
    operators
        Operators whose uids are no texts of the new jar.
    """
    calls = _calls_of_both(restore)
    classes = restore.job.classes
    if not operators or calls is None or classes is None or not all(map(computes_uids, calls)):
        return
    old, new = classes.old.source, classes.new.source
    assert old is not None
    assert new is not None
    changed = {*old.changed_classes(new), *new.changed_classes(old)}
    if old.texts(changed) != new.texts(changed):
        names = ", ".join(str(o.label) for o in operators[:_SHOWN])
        text = f"The code computes uids, and its texts changed. Whether {names} have the uids that they had is unknown."
        yield is_unknown("O4", text, _ASK)


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
