"""Splitting of composite keys into key, namespace and user key (``CompositeKeySerializationUtils``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from statetool.errors import DecodeError, UnknownSerializerError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.core.codes import BAD_FLAG, MESSAGES, OK
from statetool.kernels.entries.walk import skip_length_markers
from statetool.kernels.values.decode_fixed import first_unfilled
from statetool.kernels.values.sizes import fixed_size
from statetool.serializers.core.base import Serializer
from statetool.serializers.value_ends import find_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitKeys:
    """Int64s of the parts of each entry's composite key; all arrays are int64[n]."""

    key: Int64s
    key_end: Int64s
    namespace: Int64s
    namespace_end: Int64s
    user_key: Int64s

    def of(self, part: slice | Int64s) -> SplitKeys:
        """Return those of some entries."""
        return SplitKeys(
            key=self.key[part],
            key_end=self.key_end[part],
            namespace=self.namespace[part],
            namespace_end=self.namespace_end[part],
            user_key=self.user_key[part],
        )


def split_keys(batch: EntryBatch, key: Serializer, meta: StateMetaInfo) -> SplitKeys:
    """Split the keys of the entries of one state.

    Raises
    ------
    DecodeError
        A key does not fit its serializers; the offset is the position in ``batch.data``.
    """
    keys = find_parts(batch, key, meta)
    if meta.kind != "map":
        check_whole(keys.user_key, batch.key_end)
    return keys


def find_parts(batch: EntryBatch, key: Serializer, meta: StateMetaInfo) -> SplitKeys:
    """Split the keys of entries, of which those of maps go on with a user key. Those of other states still have to end.

    Raises
    ------
    DecodeError
        A key does not fit its serializers; the offset is the position in ``batch.data``.
    """
    namespace = meta.namespace
    assert namespace is not None
    start, stop = batch.key, batch.key_end
    ambiguous = key.length < 0 and namespace.length < 0
    if key.needs_frame:
        return _from_the_end(batch, key, namespace, meta)
    key_end = find_ends(key.program(), key.skip, batch.data, start, stop)
    namespace_start = _behind_marker(batch, start, key_end, stop) if ambiguous else key_end
    namespace_end = find_ends(namespace.program(), namespace.skip, batch.data, namespace_start, stop)
    user_key = _behind_marker(batch, namespace_start, namespace_end, stop) if ambiguous else namespace_end
    return SplitKeys(
        key=start, key_end=key_end, namespace=namespace_start, namespace_end=namespace_end, user_key=user_key
    )


def check_whole(after: Int64s, stop: Int64s) -> None:
    """Check that composite keys end after key and namespace.

    Raises
    ------
    DecodeError
        Bytes follow; the offset is their position.
    """
    i = int(first_unfilled(after, stop))
    if i >= 0:
        raise DecodeError(f"{int(stop[i] - after[i])} bytes follow key and namespace").at(offset=int(after[i]))


def _behind_marker(batch: EntryBatch, start: Int64s, stop: Int64s, end: Int64s) -> Int64s:
    after = np.empty_like(start)
    code, index = skip_length_markers(batch.data, start, stop, end, after)
    if code != OK:
        message = "a length marker that is not the length of its key" if code == BAD_FLAG else MESSAGES[int(code)][0]
        raise DecodeError(message).at(offset=int(stop[index]))
    return after


def _from_the_end(batch: EntryBatch, key: Serializer, namespace: Serializer, meta: StateMetaInfo) -> SplitKeys:
    """Split keys whose end cannot be found: everything before a fixed-size namespace is the key."""
    size = fixed_size(namespace.program())
    if meta.kind == "map" or size is None:
        raise UnknownSerializerError(
            f"the end of a key of {key.type_name} cannot be found before the rest of the composite key",
            hint="only states without map keys and with a namespace of fixed size can be read with such keys",
        ).at(offset=int(batch.key[0]) if len(batch) else 0, type_path="key")
    namespace_start = batch.key_end - size
    if (namespace_start < batch.key).any():
        raise DecodeError("a composite key that is shorter than its namespace").at(offset=int(batch.key[0]))
    end = batch.key_end
    return SplitKeys(key=batch.key, key_end=namespace_start, namespace=namespace_start, namespace_end=end, user_key=end)
