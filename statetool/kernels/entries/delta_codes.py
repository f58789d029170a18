"""Operations of changes in a changelog, and of the deltas that they become: :mod:`statetool.formats.changelog.deltas`."""

from __future__ import annotations

OP_CLEAR, OP_SET, OP_SET_INTERNAL, OP_ADD, OP_MERGE, OP_ADD_ELEMENT, OP_ADD_OR_UPDATE, OP_REMOVE_ELEMENT = range(8)
PUT, REMOVE, APPEND, CLEAR, MERGE = range(5)
