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
    if type(mine) is not type(other):
        return False
    learned = False
    if isinstance(mine, PojoSerializer) and isinstance(other, PojoSerializer):
        if mine.pojo_class != other.pojo_class:
            return False
        learned = mine.adopt(other)
    theirs = dict(other.children())
    inner = [learn(child, theirs[step]) for step, child in mine.children() if step in theirs]
    if isinstance(mine, PojoSerializer):
        mine.settle(changed=learned or any(inner))
    return learned or any(inner)
