"""Windows: contents and timers of windows that were open, which the new window operator closes.

Follows ``WindowOperator.onEventTime`` and ``MergingWindowSet``. Sessions keep their contents under the first window of a session, and the
state ``merging-window-set`` maps the merged window to it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.states import verdict_of
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import (
    Found,
    Result,
    StateFound,
    Step,
    guarded,
    is_unknown,
    loses,
    may_change,
    per_pair,
)
from statetool.compatibility.stream_code import open_choices
from statetool.compatibility.timer_counts import count_entries
from statetool.compatibility.traced_states import resolve_stream
from statetool.compatibility.verdicts import Level, Remedy, Resolution
from statetool.compatibility.window_forms import CONTENTS, resolve_same_windows, resolve_windows
from statetool.errors import StorageError, several
from statetool.snapshot import views
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import TIMERS
from statetool.sql_plans.compiled_plan import WINDOW
from statetool.types.flink_calls import content_calls, difference, window_calls
from statetool.types.operators import describe_operators

#: Windows of an operator that are looked at.
_MOST_WINDOWS: Final = 1000
#: State of an operator up to which its windows are read.
_MOST_STATE_BYTES: Final = 1 << 30
#: State of an operator up to which each window is looked for among the timers.
_MOST_BYTES_WITH_TIMERS: Final = 16 << 20
#: Windows, or slices, with different starts whose distances tell how far windows are apart. Slices do not show the size of windows.
_FEWEST_WINDOWS: Final = 2
_FEWEST_SLICES: Final = 3
_MERGED: Final = ("merging-window-set", "session-window-mapping")


def window_states(operator: OperatorInventory) -> list[str]:
    """Return the states of an operator that are stored by window, or by slice of windows, without timers."""
    return views.window_states({n: m for n, (_, m) in operator.listed_keyed.items()})


def is_window_operator(operator: OperatorInventory) -> bool:
    """Return True if an operator has state in windows."""
    return bool(window_states(operator))


def _merges(operator: OperatorInventory) -> bool:
    return any(n in operator.listed_keyed for n in _MERGED)


def _has_bounds(operator: OperatorInventory) -> bool:
    """Return True if the windows of an operator begin and end, unlike the only one of a global window."""
    namespaces = (operator.listed_keyed[n][1].namespace for n in window_states(operator))
    return any(s is not None and not s.type_name.endswith("GlobalWindow") for s in namespaces)


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


def _declared(restore: Restore, pair: Pair) -> Iterator[Result]:
    """W1 to W5: what the code of both jobs declares of windows."""
    classes = restore.job.classes
    if classes is None or not _is_of_flink(pair.old) or classes.new.source is None:
        return
    if classes.old.source is None:
        yield _assumed(pair)
        return
    calls = [s.flink_calls() for s in (classes.old.source, classes.new.source)]
    before, after = map(window_calls, calls)
    changed = difference(before, after) if before and after else ""
    resolution: Resolution | None = Resolution(Level.AS_IS)
    if not restore.has_snapshot:
        is_same = content_calls(calls[0]) == content_calls(calls[1])
        resolve = resolve_same_windows if is_same else resolve_windows
        resolution = resolve(pair, calls[0], calls[1], classes.old, classes.new)
        if resolution is None or resolution.level == Level.AS_IS:
            resolution = resolve_stream(restore, pair, CONTENTS) or resolution
        metas = {CONTENTS: pair.old.listed_keyed[CONTENTS][1]}
        is_as_is = resolution is not None and resolution.level == Level.AS_IS
        if is_as_is and open_choices(restore, pair, metas, keyed=True):
            resolution, changed = None, changed or "what chooses their types"
    if not changed and resolution is not None and resolution.level == Level.AS_IS:
        yield _assumed(pair)
        return
    changed = changed or "its calls are the same, and a function has other types"
    if resolution is not None and resolution.level == Level.INCOMPATIBLE:
        if all(c.remedy is not None and c.remedy.migrates for c in resolution.causes):
            yield StateFound(rule="W4", operator=pair.old, scope="keyed", verdict=verdict_of(CONTENTS, resolution))
        else:  # The windows themselves or the keys changed, so timers, too.
            yield Found(rule="W4", resolution=resolution.inside(CONTENTS), operator=pair.old)
    elif resolution is not None and resolution.level == Level.AS_IS:
        text = f"The code that declares windows changed ({changed}). Timers and contents of open windows are those of the old code."
        yield may_change("W4", text, "Let the old job close its windows before the snapshot.", pair.old)
    else:
        text = f"The code that declares windows changed ({changed}). Flink may refuse to restore them, close them otherwise, or never."
        yield is_unknown("W4", text, "Pass a savepoint of the new job with open windows (B).", pair.old)


def _is_of_flink(operator: OperatorInventory) -> bool:
    """Return True for a window operator of DataStream."""
    return CONTENTS in operator.listed_keyed


def _assumed(pair: Pair) -> Assumption:
    text = f"trigger, lateness and functions of the windows of {pair.old.label.display} did not change"
    return Assumption(rule="W4", text=text, option="the jars of both jobs (--jar-a, --jar-b), and compare their code")


def _bounds(restore: Restore) -> Iterator[Result]:
    """W3: windows of another size, slide or offset fire beside the old ones, so events are counted twice or split."""
    unknown = []
    for pair in restore.pairs:
        if not _has_bounds(pair.old) or _merges(pair.old) or _plans_tell(pair):
            continue
        change: str | None = None
        if pair.new is not None and restore.has_snapshot:
            before = open_windows(pair.old)
            if before is not None and not before.starts:
                continue  # No window is open.
            after = open_windows(pair.new)
            change = None if before is None or after is None else changed_bounds(before, after)
        if change:
            text = f"{change}: old windows fire with their bounds beside the new ones, and events are counted twice or split."
            yield may_change("W3", text, "Let the old job close its windows before the snapshot.", pair.old)
        elif change is None:
            unknown.append(str(pair.old.label))
    if unknown:
        text = f"size, slide and offset of the windows of {describe_operators(unknown)} did not change"
        yield Assumption(rule="W3", text=text, option="a savepoint of the new job with open windows")


def _without_timers(restore: Restore, pair: Pair) -> Iterator[Result]:
    """W6: windows without a timer are neither closed nor removed (FLINK-33192 leaves such ones behind)."""
    old = pair.old
    if not _is_of_flink(old) or not _has_bounds(old) or _merges(old):
        return
    if not any(m.kind == "timers" for _, m in old.listed_keyed.values()):
        return  # T2
    size = operator_row(old).state_bytes
    if size > _MOST_BYTES_WITH_TIMERS:
        text = f"each window of {old.label.display} has a timer: its {size:,} bytes of state were not read for this"
        yield Assumption(rule="W6", text=text, option="a comparison of the tables windows and timers of the operator")
        return
    try:
        windows = _keys_with_windows(old, CONTENTS)
        leaked = windows - _keys_with_windows(old, TIMERS)
    except StorageError:
        text = f"all windows of {old.label.display} have timers, whose files cannot be read from here"
        yield Assumption(rule="W6", text=text, option="--rebase")
        return
    if leaked:
        text = f"{several(len(leaked), 'window')} of {len(windows):,} have no timer: no timer closes or removes them, and their state stays (FLINK-33192)."
        shown = f"{', '.join(sorted({key for key, _ in leaked})[:3])}{', ...' if len(leaked) > 3 else ''}"
        remedy = f"Find out whether something else closes them (keys: {shown}). statetool erase removes all state of a key, also its open windows."
        yield may_change("W6", text, remedy, old)


def _keys_with_windows(operator: OperatorInventory, table: str) -> set[tuple[str, str]]:
    """Return keys and windows in a table of an operator, as text."""
    # Arrow takes long to load, and most checks do not need it.
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import scan_table

    batches = scan_table(operator, ScanRequest.of(table)).batches()
    rows = (row for batch in batches for row in batch.select(["key", "namespace"]).to_pylist())
    return {(str(row["key"]), str(row["namespace"])) for row in rows}


def _plans_tell(pair: Pair) -> bool:
    """Return True if the compiled plans of both jobs have the windows (:mod:`statetool.compatibility.rules.plans`)."""
    plans = [None if o is None else o.plan_aggregates for o in (pair.old, pair.new)]
    return all(plan is not None and WINDOW in plan.settings for plan in plans)


@dataclass(frozen=True, slots=True)
class OpenWindows:
    """Bounds of open windows in milliseconds: their sizes, and their distinct starts. Slices have no size, and their ends count as starts."""

    sizes: frozenset[int]
    starts: frozenset[int]

    @property
    def step(self) -> int | None:
        """The distance of windows that follow each other, ``None`` if the windows are too few to tell."""
        first = min(self.starts, default=0)
        if len(self.starts) < (_FEWEST_WINDOWS if self.sizes else _FEWEST_SLICES):
            return None
        return math.gcd(*(start - first for start in self.starts), *self.sizes)


def open_windows(operator: OperatorInventory) -> OpenWindows | None:
    """Return the first windows of an operator that are open; ``None`` if its state is large or has no such table."""
    # Arrow takes long to load, and most checks do not need it.
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import scan_table

    names = window_states(operator)
    table = next((t for t, (scope, name) in operator.state_tables.items() if scope == "keyed" and name in names), None)
    if table is None or operator_row(operator).state_bytes > _MOST_STATE_BYTES:
        return None
    for batch in scan_table(operator, ScanRequest.of(table)).batches():
        if batch.num_rows and "namespace" in batch.schema.names:
            found = batch.slice(0, _MOST_WINDOWS).column("namespace").to_pylist()
            windows = [w for w in found if isinstance(w, dict) and {"start", "end"} <= w.keys()]
            starts = [w["start"] for w in windows] or [end for end in found if isinstance(end, int)]
            if not starts and any(found):
                return None  # Windows of the job, or of no bounds that are known.
            return OpenWindows(frozenset(w["end"] - w["start"] for w in windows), frozenset(starts))
    return OpenWindows(frozenset(), frozenset())


def changed_bounds(before: OpenWindows, after: OpenWindows) -> str | None:
    """Return how the windows of the new job differ; empty if they do not, and ``None`` if its open windows do not tell."""
    if not after.starts or bool(before.sizes) != bool(after.sizes):
        return None
    if before.sizes and not before.sizes & after.sizes:
        return f"The windows of the snapshot have {_millis(before.sizes)}, those of the new job {_millis(after.sizes)}"
    if len(before.sizes) > 1 or len(after.sizes) > 1:
        return None
    what = f"The windows of {_millis(before.sizes)}" if before.sizes else "The slices of the windows"
    if before.step and after.step and before.step != after.step:
        return f"{what} begin every {before.step:,} ms in the snapshot, every {after.step:,} ms in the new job"
    size, step = next(iter(before.sizes), None), before.step or after.step
    differs = (min(before.starts) - min(after.starts)) % (step or size or 1) != 0
    if differs and step:
        return f"{what} begin at other times in the new job (another slide or offset)"
    if differs or size is None:
        return None
    # A single window that begins at a multiple of its size is one of tumbling windows.
    return "" if step in (None, size) or (before.step and after.step) else None


def _millis(sizes: Collection[int]) -> str:
    return f"{', '.join(f'{n:,}' for n in sorted(sizes)[:3])} ms"


STEP: Final = Step(
    name="windows",
    title="Windows",
    follows="WindowOperator, MergingWindowSet",
    irrelevant=_irrelevant,
    checks=(per_pair(_assigner), guarded(_bounds), per_pair(_declared), per_pair(_without_timers)),
)
