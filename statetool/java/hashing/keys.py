"""Java hash codes of encoded keys, and the resulting key groups."""

from __future__ import annotations

from typing import Any

from statetool.errors import DecodeError, StatetoolError
from statetool.formats.keyed.distinct import distinct
from statetool.io.cursor import Cursor
from statetool.java.hashing.formulas import HashFormula, hash_serializer
from statetool.java.hashing.key_hash import hash_keys, is_number
from statetool.java.hashing.vector_hash import hash_pojos
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.serializers.core.base import Serializer
from statetool.serializers.value_ends import find_ends


class KeyHasher:
    """Computes hash codes of keys of one type.

    Parameters
    ----------
    key
        Serializer of the keys.
    formula
        Conventions of classes whose ``hashCode()`` is defined in user code.
    """

    def __init__(self, key: Serializer, formula: HashFormula | None = None) -> None:
        self.key = key
        #: The serializer with the hash codes of the formula.
        self.hashed = key if formula is None else hash_serializer(key, formula)

    def ends(self, data: Bytes, start: Int64s, end: Int64s) -> Int64s:
        """Return the end of each key; ``end`` is the end of its composite key.

        Raises
        ------
        DecodeError
            A key does not fit; the offset is the position in ``data``.
        """
        try:
            return find_ends(self.key.program(), self.key.skip, data, start, end)
        except DecodeError as error:
            raise error.at(type_path="key") from None

    def hashes(self, data: Bytes, start: Int64s, end: Int64s) -> Int64s:
        """Return the hash codes of keys as signed 32-bit numbers.

        Raises
        ------
        UnsupportedError
            A part of the key has no stable hash code.
        DecodeError
            The offset is the position in ``data``.
        """
        codes = hash_pojos(self.hashed, data, start, end)
        return hash_keys(self.hashed, data, start, end) if codes is None else codes

    def hashes_of_entries(self, data: Bytes, start: Int64s, end: Int64s, group: Int64s) -> Int64s:
        """Return the hash codes of the keys of entries in key groups. Each key is hashed once, even if it has several entries.

        Numbers are hashed per entry: that takes less time than finding duplicates.

        Raises
        ------
        UnsupportedError, DecodeError
            As :meth:`hashes`.
        """
        if is_number(self.hashed):
            return self.hashes(data, start, end)
        ids, first = distinct(data, start, end, group)
        return self.hashes(data, start[first], end[first])[ids]


def decode_key(key: Serializer, data: Bytes, start: int, end: int) -> Any:
    """Return one key as a plain value.

    Raises
    ------
    DecodeError
        The offset is the position in ``data``.
    """
    c = Cursor(data.data, start, end)
    try:
        value = key.decode(c)
        c.expect_end("the key")
    except StatetoolError as error:
        raise error.inside("key") from None
    return value
