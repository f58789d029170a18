"""Keys and namespaces that Flink accepts.

Flink's heap tables and timers refuse a null key and a null namespace. The parts of a key may be null if their serializer writes
null: the fields of tuples (``TupleSerializer`` delegates to the serializers of its fields), of case classes, POJOs and rows, including the
only field of the rows in which PyFlink wraps keys, and the elements of lists. ``hashCode()`` of all of them counts null as a number. Keys
inside map state may be null too: the heap backend stores them in a ``HashMap``, RocksDB in the bytes of their serializer.

The hash code of an array is its identity hash, alone and inside tuples and collections, so its key group differs between processes.
``KeyedStream`` refuses such keys. Rows hash the elements of their arrays, and a user class may do so.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.errors import OptionError
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleSerializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.typeutils.arrays import ARRAY_ELEMENTS, GenericArraySerializer
from statetool.serializers.typeutils.composite import CompositeSerializer
from statetool.serializers.typeutils.row import RowSerializer

#: Types whose only value is null.
_ONLY_NULL: Final = ("Void", "Null")


def check_key_type(key: Serializer) -> None:
    """Refuse types of keys that no job can have.

    Raises
    ------
    OptionError
        Keys of the type hash by identity, or can only be null.
    """
    if isinstance(key, SimpleSerializer) and key.spec.name in _ONLY_NULL:
        raise OptionError(f"keys of type {key.type_name} can only be null", hint="Flink has no null keys")
    array = _array_inside(key)
    if array is not None:
        where = "" if array is key else f", inside of {key.type_name},"
        raise OptionError(
            f"a key of type {array.type_name}{where} is an array, which Java hashes by its address in memory",
            hint="no job can find such a key again: use a string, or a row, which looks into its arrays",
        )


def _array_inside(serializer: Serializer) -> Serializer | None:
    """Return the serializer of an array that hashes by identity, ``None`` if the key has no such array."""
    if isinstance(serializer, GenericArraySerializer):
        return serializer
    if isinstance(serializer, SimpleSerializer):
        return serializer if serializer.spec.name in ARRAY_ELEMENTS else None
    if isinstance(serializer, KryoSerializer):
        return serializer if serializer.type_class.startswith("[") else None
    if isinstance(serializer, RowSerializer) or not isinstance(serializer, CompositeSerializer):
        return None
    return next((array for part in serializer.nested if (array := _array_inside(part)) is not None), None)


def nulls_among(serializer: Serializer, data: Bytes, start: Int64s, end: Int64s) -> Int64s:
    """Return the indices of encoded values (``data[start:end]`` each) that are Java's null.

    Parameters
    ----------
    data
        uint8[:].
    start, end
        int64[n].

    Returns
    -------
    int64[m]
    """
    form = serializer.null_form()
    if form is None:
        return np.empty(0, dtype=np.int64)
    nulls = np.flatnonzero(end - start == len(form))
    for i, byte in enumerate(form):
        nulls = nulls[data[start[nulls] + i] == byte]
    return nulls
