"""Windows: contents and timers of windows that were open, which the new window operator closes.

Follows ``WindowOperator.onEventTime`` and ``MergingWindowSet``. Sessions keep their contents under the first window of a session, and the
state ``merging-window-set`` maps the merged window to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, Step, guarded, loses, may_change, per_pair
from statetool.compatibility.timer_counts import count_entries
from statetool.compatibility.verdicts import Remedy
from statetool.errors import several
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import describe_operators

#: Windows of an operator that are looked at.
_MOST_WINDOWS: Final = 1000
#: State of an operator up to which its windows are read.
_MOST_STATE_BYTES: Final = 1 << 30
_MERGED: Final = ("merging-window-set", "session-window-mapping")


def is_window_operator(operator: OperatorInventory) -> bool:
    """Return True if an operator has state in windows."""
    return bool(window_states(operator))


def window_states(operator: OperatorInventory) -> list[str]:
    """Return the states of an operator that are stored by window, without timers."""
    return [
        n
        for n, (_, m) in operator.listed_keyed.items()
        if m.kind != "timers" and m.namespace is not None and m.namespace.type_name.endswith("Window")
    ]


def _merges(operator: OperatorInventory) -> bool:
    return any(n in operator.listed_keyed for n in _MERGED)


def _irrelevant(restore: Restore) -> str:
    return "" if any(map(is_window_operator, restore.old.operators.values())) else "no operator has windows"


def _assigner(restore: Restore, pair: Pair) -> Iterator[Result]:
    """W1, W2: windows of one kind are not closed by an operator of the other kind."""
    old, new = pair.old, pair.new
    if new is None or not is_window_operator(old) or not is_window_operator(new) or _merges(old) == _merges(new):
        return
    count, is_whole = count_entries(old, window_states(old))
    amount = f"{'' if is_whole else 'more than '}{several(count, 'entry', 'entries')}"
    if not count and is_whole:
        return
    remedy = Remedy(
        "Let the old job close its windows before the snapshot, or give the new window operator another uid."
    )
    if _merges(new):
        text = f"The windows became sessions: the windows of the snapshot ({amount}) never fire, and their state stays."
        yield loses("W1", text, remedy, old)
    else:
        text = f"The sessions became windows of fixed size: merged sessions of the snapshot ({amount}) do not find their contents and are lost."
        yield loses("W2", text, remedy, old)


def _size(restore: Restore) -> Iterator[Result]:
    """W3: windows of another size fire beside the old ones, so events are counted twice or split."""
    unknown = []
    for pair in restore.pairs:
        if not is_window_operator(pair.old) or _merges(pair.old):
            continue
        is_large = operator_row(pair.old).state_bytes > _MOST_STATE_BYTES
        before = set() if is_large else window_sizes(pair.old)
        after = window_sizes(pair.new) if before and pair.new is not None and restore.has_snapshot else set()
        if before and after and not before & after:
            text = f"The windows of the snapshot have {_millis(before)}, those of the new job {_millis(after)}: old windows fire with their bounds beside the new ones, and events are counted twice or split."
            yield may_change("W3", text, "Let the old job close its windows before the snapshot.", pair.old)
        elif is_large or (before and not after):
            unknown.append(str(pair.old.label))
    if unknown:
        text = f"size, slide and offset of the windows of {describe_operators(unknown)} did not change"
        yield Assumption(rule="W3", text=text, option="a savepoint of the new job with open windows")


def window_sizes(operator: OperatorInventory) -> set[int]:
    """Return the sizes in milliseconds of the first windows of an operator; none if it has no open windows."""
    # Arrow takes long to load, and most checks do not need it.
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import scan_table

    names = window_states(operator)
    table = next((t for t, (scope, name) in operator.state_tables.items() if scope == "keyed" and name in names), None)
    if table is None:
        return set()
    for batch in scan_table(operator, ScanRequest.of(table)).batches():
        if batch.num_rows and "namespace" in batch.schema.names:
            windows = batch.slice(0, _MOST_WINDOWS).column("namespace").to_pylist()
            return {w["end"] - w["start"] for w in windows if isinstance(w, dict) and {"start", "end"} <= w.keys()}
    return set()


def _millis(sizes: set[int]) -> str:
    return f"{', '.join(f'{n:,}' for n in sorted(sizes)[:3])} ms"


STEP: Final = Step(
    name="windows",
    title="Windows",
    follows="WindowOperator, MergingWindowSet",
    irrelevant=_irrelevant,
    checks=(per_pair(_assigner), guarded(_size)),
)
