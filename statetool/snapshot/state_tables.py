"""Names of the tables that each hold one state in its long form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

KEYED_STATE: Final = "keyed_state"
TIMERS: Final = "timers"
Scope = Literal["keyed", "operator"]
#: Start of the names of timer queues, before the time domain.
TIMER_STATE: Final = "_timer_state/"


def timer_names(state: str) -> tuple[str, str]:
    """Return the time domain (``event``, ``processing``) and the timer service of a timer queue.

    Examples
    --------
    >>> timer_names("_timer_state/event_user-timers")
    ('event', 'user-timers')
    """
    domain, _, service = state.removeprefix(TIMER_STATE).partition("_")
    return domain, service


def state_tables(
    keyed: Iterable[str], others: Iterable[str], views: Iterable[str] = ()
) -> dict[str, tuple[Scope, str]]:
    """Return scope and name of each state by table name, which is the state's name.

    If keyed and operator state share a name, or another table has this name (``views`` are the tables that only some operators have),
    it is prefixed with ``keyed:`` or ``operator:``.

    Examples
    --------
    >>> list(state_tables(["seen", "timers"], ["seen", "offsets"]))
    ['keyed:seen', 'keyed:timers', 'operator:seen', 'offsets']
    """
    states: list[tuple[Scope, str]] = [*(("keyed", n) for n in keyed), *(("operator", n) for n in others)]
    counts = Counter([KEYED_STATE, TIMERS, *views, *(name for _, name in states)])
    tables: dict[str, tuple[Scope, str]] = {}
    for scope, name in states:
        table = name
        while counts[table] > 1 or (table != name and counts[table]) or table in tables:
            table = f"{scope}:{table}"
        tables[table] = scope, name
    return tables
