"""Layout of the state of Flink's window operators: which states and timers belong to a window, and how its contents are found.

Follows ``WindowOperator`` of DataStream and of SQL, and ``SlicingWindowOperator``:

* Contents, trigger state and timers have the window as their namespace. A window that has not been cleaned up has a timer, unless its end
  plus the allowed lateness is not before the end of time.
* Merging windows (sessions) store their contents under one of the merged windows, which a list or a map of the key records.
* SQL's group windows store contents by pane, and window aggregates by slice (its end): several windows have them in common. Their timers
  have whole windows as namespace, of slices the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from statetool.snapshot.views import MERGED, SLICE_END, WINDOWS, contents_of, has_slices, views_of, window_states

if TYPE_CHECKING:
    from statetool.formats.state_meta import StateMetaInfo
    from statetool.serializers.core.base import Serializer

_TIME_WINDOW: Final = "TimeWindow"
#: State of SQL's window aggregates. Its slices are parts of several windows. Other states with slices have whole windows.
_AGGREGATES: Final = "window-aggs"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLayout:
    """States of an operator whose windows have an end.

    Attributes
    ----------
    states, timers
        States and timer queues with a window as namespace.
    merged
        The state that records merged windows, ``None`` if windows do not merge.
    contents
        The states that are stored under one of the merged windows; empty if windows do not merge.
    sliced
        Whether namespaces are the ends of windows or slices, instead of start and end.
    shares_contents
        Whether contents may be part of several windows: panes or slices.
    """

    states: tuple[str, ...]
    timers: tuple[str, ...]
    merged: str | None
    contents: frozenset[str]
    sliced: bool
    shares_contents: bool

    @property
    def shares_slices(self) -> bool:
        """Whether a slice may be part of several windows, whose size is not stored."""
        return self.sliced and self.shares_contents

    def concerns(self, name: str) -> bool:
        """Return True if entries of a state or timer queue may belong to a window."""
        return name in self.states or name in self.timers or name == self.merged


def window_layout(keyed: Mapping[str, StateMetaInfo]) -> WindowLayout | str | None:
    """Return the layout of an operator's windows, the reason why they cannot be judged, or ``None`` if it has none.

    Parameters
    ----------
    keyed
        Its keyed states and timers by name.
    """
    states = window_states(keyed)
    merged = next((name for name in MERGED if name in keyed), None)
    if not states and merged is None:
        return None
    namespaces = [s for name in states if (s := keyed[name].namespace) is not None]
    if any(s.type_name in ("GlobalWindow", "CountWindow") for s in namespaces):
        return "global windows and windows of counts have no end"
    sliced = has_slices(keyed)
    if WINDOWS not in views_of(keyed, {}) or not all(_is_of_time(s, sliced=sliced) for s in namespaces):
        return "namespaces are not windows of time"
    contents = contents_of(keyed)
    if not contents and not sliced and _AGGREGATES not in states:
        return "it is not a window operator of Flink"
    timers = tuple(
        name
        for name, meta in keyed.items()
        if meta.kind == "timers"
        and (namespace := dict(meta.value.children()).get("namespace")) is not None
        and _is_of_time(namespace, sliced=sliced)
    )
    if not timers:
        return "the snapshot has no timer service of its windows"
    return WindowLayout(
        states=tuple(states),
        timers=timers,
        merged=merged,
        contents=contents if merged is not None else frozenset(),
        sliced=sliced,
        shares_contents=merged is None and _AGGREGATES in states,
    )


def _is_of_time(namespace: Serializer, *, sliced: bool) -> bool:
    return namespace.logical == SLICE_END if sliced else namespace.type_name == _TIME_WINDOW
