"""Detection of keys that could be of another type with the same bytes and hash codes.

Long, Double and Date are 8 bytes with the same hash code. Int and Float are 4 bytes. Short and Char are 2 bytes with the same hash code up
to 32767. Numbers whose bits are not a valid floating-point number (Java writes a single NaN), or a subnormal one, are integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.tuples import TupleSerializer

#: Total bits and fraction bits of the floating-point type with which an integer type can be confused.
_FLOATS: Final = {"Long": ("Double", 64, 52), "Int": ("Float", 32, 23)}
#: Milliseconds of 1973 to 2286: plausible for dates, unlikely for other numbers.
_DATES_MS: Final = (10**11, 10**13)


def other_type(candidate: Serializer, keys: Sequence[Any]) -> str | None:
    """Return the types that the keys could have, as text; ``None`` if only ``candidate`` fits."""
    if isinstance(candidate, TupleSerializer):
        for i, field in enumerate(candidate.nested):
            other = other_type(field, [key[i] for key in keys])
            if other is not None:
                return f"{other} (f{i} of a tuple)"
        return None
    name = candidate.type_name
    if name in _FLOATS:
        other, bits, fraction = _FLOATS[name]
        if _may_be_floats(keys, bits, fraction):
            return f"{name} or {other}"
    if name == "Long" and all(_DATES_MS[0] <= key < _DATES_MS[1] for key in keys):
        return "Long or Date"
    if name == "Short" and all(key >= 0 and chr(key).isprintable() for key in keys):
        return "Short or Char"
    return None


def _may_be_floats(keys: Iterable[int], bits: int, fraction: int) -> bool:
    plausible = False
    infinite = ((1 << (bits - 1 - fraction)) - 1) << fraction
    java_nan = infinite | 1 << (fraction - 1)
    for key in keys:
        unsigned = key & ((1 << bits) - 1)
        magnitude = unsigned & ((1 << (bits - 1)) - 1)
        if magnitude > infinite and unsigned != java_nan:
            return False
        if 1 < magnitude < 1 << fraction:
            return False
        plausible = plausible or magnitude > 1
    return plausible
