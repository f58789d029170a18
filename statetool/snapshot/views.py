"""Views: tables that join several states of an operator into one user-level table.

* ``waiting``: buffered elements. These are calls of asynchronous I/O that have not returned (``AsyncWaitOperator``), rows of SQL joins
  whose look-ups have not returned (``TableKeyedAsyncWaitOperator`` and ``StreamingDeltaJoinOperator``), or events that complex event
  processing buffers until the watermark reaches them (``CepOperator``).
* ``matches``: started matches of complex event processing.
* ``windows``: one row per key and window, with all state of the window: contents and trigger state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from statetool.errors import FormatError
from statetool.snapshot.state_tables import timer_names
from statetool.types import Scalar

if TYPE_CHECKING:
    from statetool.formats.state_meta import StateMetaInfo
    from statetool.serializers.core.base import Serializer

WAITING: Final = "waiting"
MATCHES: Final = "matches"
WINDOWS: Final = "windows"
VIEWS: Final = (WAITING, MATCHES, WINDOWS)

ASYNC_QUEUE: Final = "_async_wait_operator_state_"
#: Keyed queues of look-ups: of a lookup join in the order of its keys (Flink 2.0), and of a delta join (2.1).
LOOKUP_QUEUE: Final = "_keyed_async_wait_operator_state_"
DELTA_JOIN_QUEUE: Final = "_delta_join_operator_async_wait_state_"
#: Numbers of their stream elements. The delta join also stores the number of the input.
_LOOKUPS: Final = {LOOKUP_QUEUE: 2, DELTA_JOIN_QUEUE: 3}
EVENT_QUEUE: Final = "eventQueuesStateName"
NFA: Final = "nfaStateName"
EVENTS: Final = "sharedBuffer-events"
#: Nodes of the shared buffer. Up to Flink 1.12 they have the second name and edges without a reference count.
NODES: Final = ("sharedBuffer-entries-with-lockable-edges", "sharedBuffer-entries")
#: States that map a merged window to the window that holds its contents: a list of pairs in the DataStream operator, a map in the SQL
#: operator.
MERGED: Final = ("merging-window-set", "session-window-mapping")
#: The timer service of the window operators of DataStream and SQL.
WINDOW_TIMERS: Final = "window-timers"
#: States of SQL's window operators, of which each has one. The namespace of slices is their end in milliseconds (``SlicingWindowOperator``).
_SLICED: Final = ("window-aggs", "window_rank", "window_deduplicate", "left-records", "right-records")
SLICE_END: Final = Scalar("int64")
#: The states stored under that other window: of the DataStream operator, and the operators of DataStream V2 with one input, two inputs and
#: two outputs. Trigger state is stored under the merged window itself, and may have any name.
_CONTENTS: Final = (
    ("window-contents",),
    ("window-state",),
    ("two-input-window-left-state", "two-input-window-right-state"),
    ("two-output-window-state",),
)
#: The states that the SQL operator stores under the merged window itself: the last results, and those of its triggers.
_NOT_CONTENTS: Final = ("previous-aggs", "trigger-count-", "processingTime-every-", "eventTime-afterEOW")


def views_of(keyed: Mapping[str, StateMetaInfo], elements: Mapping[str, StateMetaInfo]) -> tuple[str, ...]:
    """Return the operator's views, out of :data:`VIEWS`, based on its keyed and operator states.

    A state counts if it has the name and the structure that Flink gives it. A state with another structure is user state, or damaged.
    """
    from statetool.serializers.cep import NFA_STATE
    from statetool.serializers.streaming import StreamElementSerializer

    queued = ASYNC_QUEUE in elements and isinstance(elements[ASYNC_QUEUE].value, StreamElementSerializer)
    matching = NFA in keyed and keyed[NFA].value.logical == NFA_STATE
    present = {
        WAITING: queued or lookup_queue(keyed) is not None or (matching and _is_queue(keyed.get(EVENT_QUEUE))),
        MATCHES: matching and _has_shared_buffer(keyed),
        WINDOWS: _have_one_namespace([keyed[n] for n in window_states(keyed)])
        and all(_pairs_windows(keyed[n]) for n in MERGED if n in keyed),
    }
    return tuple(name for name in VIEWS if present[name])


def check_view(view: str, names: Collection[str], keyed: Mapping[str, StateMetaInfo]) -> None:
    """Check that the states of a subtask form a view, like those of the subtask that the view was detected in.

    Parameters
    ----------
    names
        The states of the view. A subtask with none of them has no rows in it.

    Raises
    ------
    FormatError
        A state has another structure in this subtask, or a state that always accompanies the others is missing.
    """
    present = {n for n in names if n in keyed}
    of_view = {WINDOWS: {*window_states(keyed), *MERGED}, MATCHES: set(names) if present == set(names) else set()}
    if present and (view not in views_of(keyed, {}) or not present <= of_view.get(view, present)):
        raise FormatError(
            f"the states of {view!r} have different parts in different subtasks",
            hint="read the tables of the single states",
        )


def lookup_queue(keyed: Mapping[str, StateMetaInfo]) -> str | None:
    """Return the name of the keyed queue of look-ups, a list of tuples of stream elements; None if absent."""
    return next((n for n, elements in _LOOKUPS.items() if n in keyed and _queues_lookups(keyed[n], elements)), None)


def _queues_lookups(meta: StateMetaInfo, elements: int) -> bool:
    from statetool.serializers.streaming import StreamElementSerializer

    if meta.kind != "list" or len(meta.parts) != 1 or meta.parts[0].needs_frame:
        return False
    parts = [part for _, part in meta.parts[0].children()]
    others = [part.logical for part in parts if not isinstance(part, StreamElementSerializer)]
    return len(parts) - len(others) == elements and others == [Scalar("int32")] * (
        elements == _LOOKUPS[DELTA_JOIN_QUEUE]
    )


def _is_queue(meta: StateMetaInfo | None) -> bool:
    """Return True if a state is a map of times to lists of events (bytes if the end of an event cannot be determined)."""
    return meta is not None and [s.logical for s in meta.parts[:1]] == [Scalar("int64")]


def _have_one_namespace(metas: Sequence[StateMetaInfo]) -> bool:
    return len({str(m.namespace.logical) for m in metas if m.namespace is not None}) == 1


def _has_shared_buffer(keyed: Mapping[str, StateMetaInfo]) -> bool:
    from statetool.serializers.cep import EVENT_ID, NODE_ID, LockableSerializer
    from statetool.serializers.cep import NODES as NODE_TYPES

    events = keyed[EVENTS].parts if EVENTS in keyed else ()
    nodes = next((keyed[name].parts for name in NODES if name in keyed), ())
    if not (events and nodes and all(isinstance(parts[1], LockableSerializer) for parts in (events, nodes))):
        return False
    ((_, node),) = nodes[1].children()
    return events[0].logical == EVENT_ID.logical and nodes[0].logical == NODE_ID and node.logical in NODE_TYPES


def _pairs_windows(meta: StateMetaInfo) -> bool:
    """Return True if a state pairs windows, either in a list of pairs or in a map."""
    windows = meta.parts if meta.kind == "map" else [s for pair in meta.parts for _, s in pair.children()]
    return len(windows) == 2 and all(is_window(s) and not s.needs_frame for s in windows)


def window_states(keyed: Mapping[str, StateMetaInfo]) -> list[str]:
    """Return the names of the states whose namespace is a window, or the end of a slice of windows."""
    slices = has_slices(keyed)
    namespaces = {n: m.namespace for n, m in keyed.items() if m.kind != "timers"}
    return [n for n, s in namespaces.items() if s is not None and (is_window(s) or (slices and s.logical == SLICE_END))]


def has_slices(keyed: Mapping[str, StateMetaInfo]) -> bool:
    """Return True for the operators of SQL's windowing table-valued functions, apart from SESSION: their windows are cut into slices.

    Their timers do not tell: if RocksDB keeps them on the heap, headers of subtasks do not have them.
    """
    namespaces = (keyed[name].namespace for name in _SLICED if name in keyed)
    return any(s is not None and s.logical == SLICE_END and not is_window(s) for s in namespaces)


def contents_of(keyed: Mapping[str, StateMetaInfo]) -> frozenset[str]:
    """Return the names of the states with the contents of windows. In SQL, these include the maps and lists of aggregate functions."""
    if MERGED[1] in keyed:
        return frozenset(name for name in window_states(keyed) if not name.startswith(_NOT_CONTENTS))
    return next((frozenset(names) for names in _CONTENTS if any(name in keyed for name in names)), frozenset())


#: The reason to keep timers of windows, after "without it, the window". A window may have another timer, and a trigger may need either.
NEEDED_TIMERS: Final = "may never fire, or its state may never be removed"


def has_window_timers(meta: StateMetaInfo) -> bool:
    """Return True if a timer queue has the timers of windows: those of window operators, slices included, or with a namespace that holds state,
    such as a window, or what an operator of the user's own has instead.
    """
    if meta.kind != "timers":
        return False
    namespace = dict(meta.value.children()).get("namespace")
    return timer_names(meta.name)[1] == WINDOW_TIMERS or (
        namespace is not None and namespace.type_name != "VoidNamespace"
    )


def is_window(namespace: Serializer) -> bool:
    """Return True if a namespace is a window."""
    return namespace.type_name.endswith("Window")
