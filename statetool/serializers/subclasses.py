"""Subtasks may know different subclasses of one POJO: what one describes lets the others' values be read.

``PojoSerializer`` meets subclasses that are not registered as it runs, so each subtask's snapshot lists those that it has met; the
bytes name the class, so any subtask's description of it will do.
"""

from __future__ import annotations

from statetool.serializers.base import Serializer
from statetool.serializers.pojo import PojoSerializer


def learn(mine: Serializer, other: Serializer) -> bool:
    """Add to a serializer the subclasses that another subtask's serializer of the same state describes.

    Returns
    -------
    bool
        Whether there were any.
    """
    return _join(mine, other)[0]


def _join(mine: Serializer, other: Serializer) -> tuple[bool, bool]:
    """Return whether subclasses were added, and whether the snapshot of ``mine`` was written anew."""
    if type(mine) is not type(other):
        return False, False
    learned = False
    if isinstance(mine, PojoSerializer) and isinstance(other, PojoSerializer):
        if mine.pojo_class != other.pojo_class:
            return False, False
        learned = mine.adopt(other)
    theirs = dict(other.children())
    inner = [_join(child, theirs[step]) for step, child in mine.children() if step in theirs]
    learned |= any(new for new, _ in inner)
    rewritten = any(anew for _, anew in inner)
    if isinstance(mine, PojoSerializer):
        rewritten = mine.settle(changed=learned or rewritten)
    return learned, rewritten
