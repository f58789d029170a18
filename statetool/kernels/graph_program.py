"""Programs by which kernels walk Kryo's values: the flat form of :class:`statetool.kernels.program.GraphPart`."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.kernels import program as ir

UNSERVED: Final = -1
FULL: Final = -2
#: What one step writes at most, strings and bytes apart.
STEP: Final = 64
KINDS: Final = (
    "bool", "i8", "i16", "char", "int", "long", "f32", "f64", "text", "bytes", "big_int", "big_dec", "millis", "timestamp",
    "instant", "date", "time", "date_time", "uuid", "enum", "record", "list", "map", "array",
)  # fmt: skip
(
    BOOL, I8, I16, CHAR, INT, LONG, F32, F64, TEXT, BYTES, BIG_INT, BIG_DEC, MILLIS, TIMESTAMP, INSTANT, DATE,
    TIME, DATE_TIME, UUID, ENUM, RECORD, LIST, MAP, ARRAY,
) = range(len(KINDS))  # fmt: skip
MODES: Final = ("body", "nullable", "present", "value")
BODY, NULLABLE, PRESENT, VALUE = range(len(MODES))
#: What the kernels remember of a value: up to so many names of classes and objects, and where in their state these are.
MAX_NAMES: Final = 32
MAX_OBJECTS: Final = 256
OBJECTS_MET: Final = 2 + MAX_NAMES
OBJECTS: Final = OBJECTS_MET + 1
LIMIT: Final = OBJECTS + 3 * MAX_OBJECTS
#: How many times its own size a value may be rewritten to by objects that it refers to more than once.
MOST_TIMES: Final = 64

Words = npt.NDArray[np.int64]
Layout = tuple[Words, Words, npt.NDArray[np.uint8]]


@lru_cache(maxsize=256)
def compile_graph(root: ir.GraphPart) -> Layout:
    """Return a program: its words, its classes int64[m, 5] (id or -1, offset and size of the name, number of the name, whether a
    comparator stands in front), and the names of classes as Kryo writes them."""
    words: list[int] = []
    classes: list[tuple[int, int, int, int, int]] = []
    names: dict[bytes, tuple[int, int]] = {}
    _emit(root, words, classes, names, {})
    text = np.frombuffer(b"".join(names) or b"\0", dtype=np.uint8)
    return np.array(words, dtype=np.int64), np.array(classes or [(-1, 0, 0, 0, 0)], dtype=np.int64), text


def _emit(
    part: ir.GraphPart,
    words: list[int],
    classes: list[tuple[int, int, int, int, int]],
    names: dict[bytes, tuple[int, int]],
    known: dict[ir.GraphPart, int],
) -> int:
    """Append a part and return where it is; equal parts are there once, so that objects of one are known as such in others."""
    at = known.get(part)
    if at is not None:
        return at
    at = known[part] = len(words)
    words += [KINDS.index(part.kind), int(part.reference), len(classes), len(part.classes)]
    for cls in part.classes:
        offset, number = names.setdefault(cls.name, (sum(map(len, names)), len(names)))
        classes.append((-1 if cls.id is None else cls.id, offset, len(cls.name), number, int(cls.sorted)))
    words.append(part.size)
    slots = len(words)
    words += [0] * (2 * len(part.parts))
    for i, (mode, inner) in enumerate(part.parts):
        words[slots + 2 * i] = MODES.index(mode)
        words[slots + 2 * i + 1] = _emit(inner, words, classes, names, known)
    return at
