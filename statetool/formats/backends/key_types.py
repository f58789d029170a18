"""Inference of the key type if a snapshot does not store it.

A changelog without materialized state contains keys but not their serializer. Common types are tried. A type is accepted only if every
sampled change can be read with it to its end, every key hashes to the key group of its change, there are enough distinct keys to rule out
chance, and no other type passes as well.

Some types have the same bytes and the same hash codes: Long, Double and Date; Int and Float; Short and Char up to 32767. If all keys could
be of the other type as well, neither is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log2
from typing import Any, Final

from statetool.errors import StatetoolError, UndescribedClassError, UnknownSerializerError
from statetool.formats.changelog.deltas import deltas_of
from statetool.formats.key_groups import key_group_for
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.entries.delta_codes import PUT
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.tuples import TupleSerializer

#: Total bits and fraction bits of the floating-point type with which an integer type can be confused.
_FLOATS: Final = {"Long": ("Double", 64, 52), "Int": ("Float", 32, 23)}
#: Milliseconds of 1973 to 2286: plausible for dates, unlikely for other numbers.
_DATES_MS: Final = (10**11, 10**13)
_BASE: Final = "org.apache.flink.api.common.typeutils.base."
_TUPLE: Final = "org.apache.flink.api.java.typeutils.runtime.TupleSerializerSnapshot"
_ALSO_IN_TUPLES: Final = ("String", "Long", "Int", "Short", "Byte", "Boolean", "Char")
_NOT_IN_TUPLES: Final = ("BigInt", "BigDec", "LocalDate", "Instant", "LocalDateTime")
_MOST_FIELDS: Final = 4
_ENOUGH_BITS: Final = 32
_HINT: Final = (
    "say the type: statetool.load(..., key_types={'...': 'BIGINT'}), a type of statetool.flink, or an operator with the same keys, of "
    "a savepoint say: key_types={'...': sp['...']}"
)


@dataclass(frozen=True, slots=True)
class Sample:
    """Changes of data with their key groups, and the states of their log by id."""

    changes: tuple[tuple[int, bytes], ...]
    states: Mapping[int, StateMetaInfo]


def find_key_type(samples: Sequence[Sample], max_parallelism: int) -> Serializer:
    """Return the serializer of the keys, or one that writes the same bytes.

    Raises
    ------
    UnknownSerializerError
        None of the known types fits, there are too few keys, or they could be of another type with the same bytes.
    """
    too_few: list[str] = []
    for candidates in _candidates():
        fitting: list[tuple[Serializer, set[bytes]]] = []
        for candidate in candidates:
            keys = _keys_read_by(candidate, samples, max_parallelism)
            if keys is None:
                continue
            if log2(max_parallelism) * len(keys) >= _ENOUGH_BITS:
                fitting.append((candidate, keys))
            else:
                too_few.append(candidate.type_name)
        if fitting:
            return _unambiguous(fitting)
    raise _raise_undecided(
        f"too few keys tell ({', '.join(too_few[:3])} would fit)" if too_few else "none of the common types fits"
    )


def _unambiguous(fitting: Sequence[tuple[Serializer, set[bytes]]]) -> Serializer:
    # If everything fits Short, Char fits as well: :func:`other_type` decides between them.
    by_type = {s.type_name.replace("Char", "Short"): (s, keys) for s, keys in reversed(fitting)}
    if len(by_type) > 1:
        raise _raise_undecided(f"they may be {' or '.join(s.type_name for s, _ in fitting[:3])}")
    ((candidate, keys),) = by_type.values()
    other = other_type(candidate, [candidate.decode(Cursor(key)) for key in keys])
    if other is not None:
        raise _raise_undecided(f"they may be {other}, which have the same bytes")
    return candidate


def _raise_undecided(why: str) -> UnknownSerializerError:
    return UnknownSerializerError(
        f"the snapshot does not say the type of its keys: nothing was materialized below the change log, and {why}",
        hint=_HINT,
    )


def _candidates() -> Iterator[Iterator[Serializer]]:
    """Yield groups of types, simplest first; all types of a group are tried."""
    simple = [_simple(name) for name in _ALSO_IN_TUPLES]
    yield iter([*simple, *map(_simple, _NOT_IN_TUPLES)])
    for n in range(2, _MOST_FIELDS + 1):
        name = f"org.apache.flink.api.java.tuple.Tuple{n}"
        yield (TupleSerializer(_TUPLE, 3, 2, name, fields) for fields in product(simple, repeat=n))


def _simple(name: str) -> Serializer:
    out = Output()
    out.utf(f"{_BASE}{name}Serializer${name}SerializerSnapshot")
    out.i4(3)
    return snapshot_reader().snapshot(Cursor(bytes(out)))


def _keys_read_by(candidate: Serializer, samples: Sequence[Sample], max_parallelism: int) -> set[bytes] | None:
    """Return the distinct keys; ``None`` if a key is of another type, or the value after it does not end with its change."""
    keys: set[bytes] = set()
    for sample in samples:
        states = tuple(sample.states.values())
        header = KeyedHeader(version=CURRENT_VERSION, compressed=False, key=candidate, states=states, size_bytes=0)
        ids = {state_id: i for i, state_id in enumerate(sample.states)}
        wanted = [i for i, m in enumerate(states) if m.backend_type != PRIORITY_QUEUE]
        for key_group, change in sample.changes:
            c = Cursor(change)
            try:
                c.skip(1)
                if ids.get(c.i2()) not in wanted:
                    continue
                start = c.pos
                value = candidate.decode(c)
                if key_group_for(candidate.hash_code(value), max_parallelism) != key_group:
                    return None
                keys.add(bytes(c.data[start : c.pos]))
                for number, _, delta in deltas_of(Cursor(change), key_group, header, ids, wanted):
                    if not _value_fits(states[number], delta):
                        return None
            except UnknownSerializerError:
                continue  # only the user's code knows the end of this value
            except StatetoolError:
                return None
    return keys


def _value_fits(meta: StateMetaInfo, delta: bytes) -> bool:
    """Return True if a new value ends where its change does, or if that cannot be determined."""
    if delta[0] != PUT or meta.kind in ("list", "map") or meta.value.needs_frame:
        return True
    c = Cursor(delta, 1)
    try:
        meta.value.skip(c)
    except UndescribedClassError:
        return True
    except StatetoolError:
        return False
    return c.left == 0


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
