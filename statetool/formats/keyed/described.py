"""Headers of several subtasks: each may describe subclasses of POJOs that the others have not met."""

from __future__ import annotations

from statetool.formats.keyed.header import KeyedHeader
from statetool.serializers.described import learn


def learn_header(mine: KeyedHeader, other: KeyedHeader) -> bool:
    """Let key and states learn the subclasses that another subtask's header describes; returns whether there were any."""
    known = {m.name: m.serializers for m in other.states}
    learned = learn(mine.key, other.key)
    for meta in mine.states:
        theirs = known.get(meta.name, {})
        for role, serializer in meta.serializers.items():
            if role in theirs:
                learned |= learn(serializer, theirs[role])
    return learned
