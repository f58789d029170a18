"""Registry of the stored forms of keyed state: a new form is a module of this package and a line here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from statetool.entries.change_log import ChangeLogForm
from statetool.entries.database import DatabaseForm
from statetool.entries.form import Form, KeyedPlace, StoredState, Surroundings
from statetool.entries.raw_timers import RawTimerForm
from statetool.entries.streams import StreamForm

_MATERIALIZED: Final[tuple[Form, ...]] = (DatabaseForm(), StreamForm())
#: A handle is read by the first form that claims it.
FORMS: Final[list[Form]] = [RawTimerForm(), ChangeLogForm(_MATERIALIZED), *_MATERIALIZED]


def bind(places: Iterable[KeyedPlace], around: Surroundings) -> tuple[list[StoredState], list[KeyedPlace]]:
    """Return the stored state of each handle, by key groups, and the handles that no form claims."""
    claimed: dict[int, list[KeyedPlace]] = {}
    others: list[KeyedPlace] = []
    for place in places:
        form = next((i for i, f in enumerate(FORMS) if f.claims(place, around)), None)
        if form is None:
            others.append(place)
        else:
            claimed.setdefault(form, []).append(place)
    stored = [s for i, own in claimed.items() for s in FORMS[i].bind(own, around)]
    return sorted(stored, key=lambda s: s.place.handle.start if s.place.handle is not None else 0), others
