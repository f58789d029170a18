"""Flat programs with which kernels walk Kryo's values, compiled from :class:`statetool.kernels.values.program.GraphPart`."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from statetool.kernels.values import program as ir

#: Returned in place of a position: the value is left to the reference decoder, no room is left, the program is unknown.
UNSERVED: Final = -1
FULL: Final = -2
UNKNOWN: Final = -3
#: Maximum bytes that one step writes, apart from strings and bytes.
STEP: Final = 64
KINDS: Final[tuple[ir.GraphKind, ...]] = get_args(ir.GraphKind)
(
    BOOL, I8, I16, CHAR, INT, LONG, F32, F64, TEXT, BYTES, BIG_INT, BIG_DEC, MILLIS, TIMESTAMP, INSTANT, DATE,
    TIME, DATE_TIME, UUID, ENUM, RECORD, LIST, MAP, ARRAY,
) = range(len(KINDS))  # fmt: skip
MODES: Final = ("body", "nullable", "present", "value")
BODY, NULLABLE, PRESENT, VALUE = range(len(MODES))
#: Maximum number of class names, and of objects, that the kernels remember per value.
MAX_NAMES: Final = 32
MAX_OBJECTS: Final = 256
#: Slots of the kernels' state, int64[STATE_WORDS]: bytes written; number of class names seen in this value, then their numbers; number of
#: objects, then three slots per object (its part, -1 while incomplete; its start in the output; its end); limit of the output for
#: repeated objects.
WRITTEN: Final = 0
NAMES_MET: Final = 1
NAMES: Final = 2
OBJECTS_MET: Final = NAMES + MAX_NAMES
OBJECTS: Final = OBJECTS_MET + 1
LIMIT: Final = OBJECTS + 3 * MAX_OBJECTS
STATE_WORDS: Final = LIMIT + 1
#: Maximum growth of a value, as a multiple of its size, from writing repeated objects in full.
MOST_TIMES: Final = 64

Words = npt.NDArray[np.int64]


class Layout(NamedTuple):
    """Flat program in the form that kernels walk.

    ``words`` int64[:]: for each part its kind, 1 if its objects carry a marker, its first class and number of classes, its size (number of
    fields or constants), then mode and index of each of its parts. ``classes`` int64[m, 5]: id or -1, offset and size of the name in
    ``names``, number of the name, 1 if a comparator precedes it. ``names`` uint8[:]: class names as Kryo writes them. ``little``: Kryo 5,
    else 2.24.
    """

    words: Words
    classes: Words
    names: npt.NDArray[np.uint8]
    little: bool


@lru_cache(maxsize=256)
def compile_graph(root: ir.GraphPart, little: bool) -> Layout:
    """Return the program of a part and all its descendants."""
    words: list[int] = []
    classes: list[tuple[int, int, int, int, int]] = []
    names: dict[bytes, tuple[int, int]] = {}
    _emit(root, words, classes, names, {})
    text = np.frombuffer(b"".join(names) or b"\0", dtype=np.uint8)
    table = np.array(classes or [(-1, 0, 0, 0, 0)], dtype=np.int64)
    return Layout(np.array(words, dtype=np.int64), table, text, little)


def _emit(
    part: ir.GraphPart,
    words: list[int],
    classes: list[tuple[int, int, int, int, int]],
    names: dict[bytes, tuple[int, int]],
    places: dict[ir.GraphPart, int],
) -> int:
    """Append a part and return its index. Equal parts are stored once, so that an object met in one is known in the others."""
    at = places.get(part)
    if at is not None:
        return at
    at = places[part] = len(words)
    words += [KINDS.index(part.kind), int(part.reference), len(classes), len(part.classes)]
    for cls in part.classes:
        offset, number = names.setdefault(cls.name, (sum(map(len, names)), len(names)))
        classes.append((-1 if cls.id is None else cls.id, offset, len(cls.name), number, int(cls.sorted)))
    words.append(part.size)
    slots = len(words)
    words += [0] * (2 * len(part.parts))
    for i, (mode, inner) in enumerate(part.parts):
        words[slots + 2 * i] = MODES.index(mode)
        words[slots + 2 * i + 1] = _emit(inner, words, classes, names, places)
    return at
