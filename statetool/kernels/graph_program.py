"""Programs by which kernels walk Kryo's values: the flat form of :class:`statetool.kernels.program.GraphPart`."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from statetool.kernels import program as ir

#: What kernels return in place of a position: a value that is left to the reference, no room left, a program that they do not know.
UNSERVED: Final = -1
FULL: Final = -2
UNKNOWN: Final = -3
#: Most bytes that one step writes, apart from strings and bytes.
STEP: Final = 64
KINDS: Final[tuple[ir.GraphKind, ...]] = get_args(ir.GraphKind)
(
    BOOL, I8, I16, CHAR, INT, LONG, F32, F64, TEXT, BYTES, BIG_INT, BIG_DEC, MILLIS, TIMESTAMP, INSTANT, DATE,
    TIME, DATE_TIME, UUID, ENUM, RECORD, LIST, MAP, ARRAY,
) = range(len(KINDS))  # fmt: skip
MODES: Final = ("body", "nullable", "present", "value")
BODY, NULLABLE, PRESENT, VALUE = range(len(MODES))
#: Most names of classes, and most objects, that the kernels remember of a value.
MAX_NAMES: Final = 32
MAX_OBJECTS: Final = 256
#: Slots of the kernels' state, int64[STATE_WORDS]: bytes written; how many names of classes the value had so far, and their numbers; how many
#: objects, and of each three slots: the part that it is of (-1 while it is not whole), where it starts in what is written, and the byte
#: behind; how far in what is written objects met before may reach.
WRITTEN: Final = 0
NAMES_MET: Final = 1
NAMES: Final = 2
OBJECTS_MET: Final = NAMES + MAX_NAMES
OBJECTS: Final = OBJECTS_MET + 1
LIMIT: Final = OBJECTS + 3 * MAX_OBJECTS
STATE_WORDS: Final = LIMIT + 1
#: How many times its own size a value may be rewritten to by objects that it refers to more than once.
MOST_TIMES: Final = 64

Words = npt.NDArray[np.int64]


class Layout(NamedTuple):
    """A program as kernels walk it.

    ``words`` int64[:]: of each part its kind, 1 where its objects have a mark of their own, its first class and number of classes, its size
    (number of fields or constants), then mode and index of each of its parts. ``classes`` int64[m, 5]: id or -1, offset and size of the name
    in ``names``, number of the name, 1 where a comparator stands in front. ``names`` uint8[:]: names of classes as Kryo writes them.
    ``little``: Kryo 5, else 2.24.
    """

    words: Words
    classes: Words
    names: npt.NDArray[np.uint8]
    little: bool


@lru_cache(maxsize=256)
def compile_graph(root: ir.GraphPart, little: bool) -> Layout:
    """Return the program of a part and all of its parts."""
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
    """Append a part and return where it is; equal parts are there once, so that an object met in one is known in the others."""
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
