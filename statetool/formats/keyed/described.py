"""Headers of several subtasks: each may describe subclasses of POJOs that the others have not met."""

from __future__ import annotations

from statetool.formats.described import learn_states
from statetool.formats.keyed.header import KeyedHeader
from statetool.serializers.described import learn


def learn_header(mine: KeyedHeader, other: KeyedHeader) -> bool:
    """Let key and states learn the subclasses that another subtask's header describes; returns whether there were any."""
    learned = learn(mine.key, other.key)
    return learn_states(mine.states, other.states) or learned
