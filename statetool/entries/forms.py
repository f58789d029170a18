"""Registry of the stored forms of keyed state: a new form is a module of this package and a line here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from statetool.entries.change_log import ChangeLogFormat
from statetool.entries.database import DatabaseFormat
from statetool.entries.form import KeyedHandleRef, OperatorReadContext, StateFormat, StoredState
from statetool.entries.raw_timers import RawTimerFormat
from statetool.entries.streams import StreamFormat

_MATERIALIZED: Final[tuple[StateFormat, ...]] = (DatabaseFormat(), StreamFormat())
#: A handle is read by the first form that it matches.
FORMS: Final[list[StateFormat]] = [RawTimerFormat(), ChangeLogFormat(_MATERIALIZED), *_MATERIALIZED]


def open_states(
    places: Iterable[KeyedHandleRef], read_context: OperatorReadContext
) -> tuple[list[StoredState], list[KeyedHandleRef]]:
    """Return the stored state of each handle, by key groups, and the handles of no form."""
    matched: dict[int, list[KeyedHandleRef]] = {}
    others: list[KeyedHandleRef] = []
    for place in places:
        form = next((i for i, f in enumerate(FORMS) if f.matches(place, read_context)), None)
        if form is None:
            others.append(place)
        else:
            matched.setdefault(form, []).append(place)
    stored = [s for i, own in matched.items() for s in FORMS[i].open(own, read_context)]
    return sorted(stored, key=lambda s: s.place.handle.start if s.place.handle is not None else 0), others
