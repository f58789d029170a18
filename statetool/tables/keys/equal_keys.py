"""Find keys by value if equal values can have different bytes.

The ``BigDecimal`` s ``1.5`` and ``1.50`` in Java are two keys in two key groups, but one number. The entries of a map are in the order of
the job's map. Scales and orders are not known in advance, so all keys of an operator are read: in threads or tasks, of which each returns
only keys that equal a given one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np

from statetool.entries.form import KeyGroupReader, error_context
from statetool.entries.selection import key_starts
from statetool.formats.keyed.distinct import distinct
from statetool.io.threads import Map, in_threads
from statetool.java.hashing.keys import KeyHasher, decode_key
from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types import ListType, LogicalType, MapType, StructType

#: Bytes of a key, and its key group; ``None`` if the key may be in any.
KeyPlace: TypeAlias = tuple[bytes, int | None]
#: Bytes and key group of keys, each with its value with scales.
Places: TypeAlias = dict[KeyPlace, Any]


def equal_keys(
    operator: OperatorInventory,
    key: Serializer,
    wanted: Sequence[tuple[KeyPlace, ...]],
    *,
    exact: bool,
    in_tasks: Map = in_threads,
) -> list[tuple[KeyPlace, ...]]:
    """Return the bytes and key group of those of an operator's keys that equal each of the given ones, or the given forms if none does.

    Parameters
    ----------
    wanted
        The forms of each given key.
    exact
        Whether keys with exactly the given scales are the only ones that equal it, if there are some.
    in_tasks
        Reads the keys: a task returns only those that equal a given one.
    """
    given = [[_decode(key, raw) for raw, _ in forms] for forms in wanted]
    values = [{_comparable(value, key.logical) for value in forms} for forms in given]
    found: dict[Any, Places] = {value: {} for each in values for value in each}
    for of_task in in_tasks(partial(_find, frozenset(found)), operator.keyed.sources(raw=True)):
        for value, equal_places in of_task.items():
            found[value].update(equal_places)
    places = []
    for forms, plains, each in zip(wanted, given, values, strict=True):
        equal = {place: scaled for value in each for place, scaled in found[value].items()}
        own = {_comparable(plain, key.logical, scales=True) for plain in plains}
        same = [place for place, scaled in equal.items() if scaled in own] if exact else []
        places.append(tuple(same or equal) or forms)
    return places


def _find(wanted: frozenset[Any], source: KeyGroupReader) -> dict[Any, Places]:
    """Return the keys of a source that equal wanted values, by value."""
    found: dict[Any, Places] = {}
    with error_context(source):
        header = source.header()
        key, hasher = header.key, KeyHasher(header.key)
        for batch in source.batches():
            start = key_starts(batch, header)
            end = hasher.ends(batch.data, start, batch.key_end)
            _, first = distinct(batch.data, start, end, batch.group)
            for i in first.tolist():
                plain = decode_key(key, batch.data, int(start[i]), int(end[i]))
                value = _comparable(plain, key.logical)
                if value in wanted:
                    place = bytes(batch.data[start[i] : end[i]]), int(batch.group[i])
                    found.setdefault(value, {})[place] = _comparable(plain, key.logical, scales=True)
    return found


def _decode(key: Serializer, raw: bytes) -> Any:
    return decode_key(key, np.frombuffer(raw, dtype=np.uint8), 0, len(raw))


def _comparable(value: Any, logical: LogicalType, *, scales: bool = False) -> Any:
    """Return a value that is equal for keys that differ only in the order of map entries, and without ``scales`` in those of decimals."""
    match logical, value:
        case _, Decimal():
            sign, digits, exponent = value.as_tuple()
            text = "".join(map(str, digits)).lstrip("0")
            if scales:
                return "decimal", sign, text, exponent
            short = text.rstrip("0")
            return ("decimal", sign, short, int(exponent) + len(text) - len(short)) if short else ("decimal",)
        case _, float():
            return struct.pack(">d", value)  # NaN equals itself
        case MapType(key, item), list() | tuple():
            return frozenset(
                (_comparable(k, key, scales=scales), _comparable(v, item, scales=scales)) for k, v in value
            )
        case ListType(element), list() | tuple():
            return tuple(_comparable(v, element, scales=scales) for v in value)
        case StructType(fields), list() | tuple():
            kinds = [field.type for field in fields]
            return tuple(_comparable(v, kind, scales=scales) for v, kind in zip_longest(value, kinds))
    return value
