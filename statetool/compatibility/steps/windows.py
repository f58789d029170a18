"""Windows: contents and timers of windows that were open, which the new window operator closes.

Follows ``WindowOperator.onEventTime`` and ``MergingWindowSet``. Sessions keep their contents under the first window of a session, and the
state ``merging-window-set`` maps the merged window to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, Step, loses, per_pair
from statetool.compatibility.timer_counts import count_entries
from statetool.compatibility.verdicts import Remedy
from statetool.errors import several
from statetool.snapshot.operator import OperatorInventory

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
    operators = [p for p in restore.pairs if is_window_operator(p.old) and not _merges(p.old)]
    if operators:
        text = f"size, slide and offset of the windows did not change ({several(len(operators), 'operator')})"
        yield Assumption(rule="W3", text=text, option="the code of both jobs")


STEP: Final = Step(
    name="windows",
    title="Windows",
    follows="WindowOperator, MergingWindowSet",
    irrelevant=_irrelevant,
    checks=(per_pair(_assigner), _size),
)
