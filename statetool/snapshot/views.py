"""Views: tables that join several states of an operator to what its users think of.

``waiting`` are elements that wait: calls of asynchronous I/O that had not come back (``AsyncWaitOperator``), events that complex event
processing keeps until the watermark has reached them (``CepOperator``). ``matches`` are its matches that have begun. ``windows`` has
a row for each key and window, with all that is kept for it: contents, states of triggers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from statetool.errors import FormatError
from statetool.formats.state_meta import StateMeta
from statetool.serializers.base import Serializer
from statetool.serializers.cep import EVENT_ID, NFA_STATE, NODE_ID, LockableSerializer
from statetool.serializers.cep import NODES as NODE_TYPES
from statetool.serializers.streaming import StreamElementSerializer
from statetool.types import Scalar

WAITING: Final = "waiting"
MATCHES: Final = "matches"
WINDOWS: Final = "windows"
VIEWS: Final = (WAITING, MATCHES, WINDOWS)

ASYNC_QUEUE: Final = "_async_wait_operator_state_"
EVENT_QUEUE: Final = "eventQueuesStateName"
NFA: Final = "nfaStateName"
EVENTS: Final = "sharedBuffer-events"
#: Nodes of the shared buffer; up to Flink 1.12 under the second name, with edges that nobody counts.
NODES: Final = ("sharedBuffer-entries-with-lockable-edges", "sharedBuffer-entries")
#: The window that holds the contents of a merged one: pairs in a list of the DataStream operator, in a map of the SQL operator.
MERGED: Final = ("merging-window-set", "session-window-mapping")
#: The states that lie under that other window; triggers keep theirs under the window itself.
CONTENTS: Final = ("window-contents", "window-aggs")


def views_of(keyed: Mapping[str, StateMeta], elements: Mapping[str, StateMeta]) -> tuple[str, ...]:
    """Return which of :data:`VIEWS` an operator has, by its keyed and its operator states.

    A state counts if it has the name and the parts that Flink gives it; with other parts it is the user's, or damaged.
    """
    queued = ASYNC_QUEUE in elements and isinstance(elements[ASYNC_QUEUE].value, StreamElementSerializer)
    matching = NFA in keyed and keyed[NFA].value.logical == NFA_STATE
    present = {
        WAITING: queued or (matching and _is_queue(keyed.get(EVENT_QUEUE))),
        MATCHES: matching and _has_shared_buffer(keyed),
        WINDOWS: _have_one_namespace([keyed[n] for n in window_states(keyed)])
        and all(_pairs_windows(keyed[n]) for n in MERGED if n in keyed),
    }
    return tuple(name for name in VIEWS if present[name])


def check_view(view: str, names: Collection[str], keyed: Mapping[str, StateMeta]) -> None:
    """Check that the states of a subtask make a view, as those of the subtask do by which it was offered.

    Parameters
    ----------
    names
        The states that the view is made of. A subtask that has none of them has no rows of it.

    Raises
    ------
    FormatError
        They have other parts here, or one of those that always come together is missing.
    """
    present = {n for n in names if n in keyed}
    of_view = {WINDOWS: {*window_states(keyed), *MERGED}, MATCHES: set(names) if present == set(names) else set()}
    if present and (view not in views_of(keyed, {}) or not present <= of_view.get(view, present)):
        raise FormatError(
            f"the states of {view!r} have other parts in this subtask than in another one",
            hint="the tables of its states show what is there",
        )


def _is_queue(meta: StateMeta | None) -> bool:
    """Tell whether a state is a map of times and lists of events (bytes where it is not known where an event ends)."""
    return meta is not None and [s.logical for s in meta.parts[:1]] == [Scalar("int64")]


def _have_one_namespace(metas: Sequence[StateMeta]) -> bool:
    return len({str(m.namespace.logical) for m in metas if m.namespace is not None}) == 1


def _has_shared_buffer(keyed: Mapping[str, StateMeta]) -> bool:
    events = keyed[EVENTS].parts if EVENTS in keyed else ()
    nodes = next((keyed[name].parts for name in NODES if name in keyed), ())
    if not (events and nodes and all(isinstance(parts[1], LockableSerializer) for parts in (events, nodes))):
        return False
    ((_, node),) = nodes[1].children()
    return events[0].logical == EVENT_ID.logical and nodes[0].logical == NODE_ID and node.logical in NODE_TYPES


def _pairs_windows(meta: StateMeta) -> bool:
    """Tell whether a state pairs windows: in a list of pairs, or in a map."""
    windows = meta.parts if meta.kind == "map" else [s for pair in meta.parts for _, s in pair.children()]
    return len(windows) == 2 and all(is_window(s) and not s.framed_only for s in windows)


def window_states(keyed: Mapping[str, StateMeta]) -> list[str]:
    """Return the names of the states that are kept by window."""
    return [n for n, m in keyed.items() if m.kind != "timers" and m.namespace is not None and is_window(m.namespace)]


def is_window(namespace: Serializer) -> bool:
    """Tell whether a namespace is a window."""
    return namespace.type_name.endswith("Window")
