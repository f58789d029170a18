"""Find the type of keys that a snapshot does not tell.

A change log on top of nothing holds keys but not their serializer. The common types are tried: one is taken only if every change that
is looked at can be read with it, and every key hashes into the key group that the change stands in; with enough different keys, so that
chance is out of the question.

Types whose bytes and hashes agree for the same bits cannot be told apart; the plainest stands for all of them: Long for Double and Date,
Int for Float, Short for Char where no key is above 32767.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log2
from typing import Final

from statetool.errors import StatetoolError, UnknownSerializerError
from statetool.formats.key_groups import key_group_for
from statetool.formats.keyed.deltas import deltas_of
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMeta
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.delta_codes import PUT
from statetool.serializers.base import Serializer
from statetool.serializers.snapshot import read_snapshot
from statetool.serializers.tuples import TupleSerializer

_BASE: Final = "org.apache.flink.api.common.typeutils.base."
_TUPLE: Final = "org.apache.flink.api.java.typeutils.runtime.TupleSerializerSnapshot"
_PLAIN: Final = ("String", "Long", "Int", "Short", "Byte", "Boolean", "Char")
_ALONE: Final = ("BigInt", "BigDec", "LocalDate", "Instant", "LocalDateTime")
_MOST_FIELDS: Final = 4
_ENOUGH_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class Sample:
    """Some changes of data with their key groups, and the states of their log by id."""

    changes: tuple[tuple[int, bytes], ...]
    states: Mapping[int, StateMeta]


def find_key_type(samples: Sequence[Sample], max_parallelism: int) -> Serializer:
    """Return the serializer that the keys were written with, or one that writes the same bytes.

    Raises
    ------
    UnknownSerializerError
        None of the known types fits, or too few keys tell.
    """
    fitting = []
    for candidate in _candidates():
        found = _keys_read_by(candidate, samples, max_parallelism)
        if found is None:
            continue
        keys, values_fit = found
        if log2(max_parallelism) * len(keys) >= _ENOUGH_BITS:
            return candidate
        if values_fit:
            fitting.append(candidate.type_name)
    why = f"too few keys tell ({', '.join(fitting[:3])} would fit)" if fitting else "none of the common types fits"
    raise UnknownSerializerError(
        f"the snapshot does not say the type of its keys: nothing was materialized below the change log, and {why}",
        hint="name an operator with the same keys, of a savepoint say: statetool.load(..., key_types={'...': sp['...']})",
    )


def _candidates() -> Iterator[Serializer]:
    plain = [_simple(name) for name in _PLAIN]
    yield from plain
    yield from map(_simple, _ALONE)
    for n in range(2, _MOST_FIELDS + 1):
        for parts in product(plain, repeat=n):
            yield TupleSerializer(_TUPLE, 3, 2, f"org.apache.flink.api.java.tuple.Tuple{n}", parts)


def _simple(name: str) -> Serializer:
    out = Output()
    out.utf(f"{_BASE}{name}Serializer${name}SerializerSnapshot")
    out.i4(3)
    return read_snapshot(Cursor(bytes(out)))


def _keys_read_by(
    candidate: Serializer, samples: Sequence[Sample], max_parallelism: int
) -> tuple[set[bytes], bool] | None:
    """Return the different keys, and whether the values behind them end where they should; ``None`` where a key is of another type."""
    found: set[bytes] = set()
    fit = True
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
                found.add(bytes(c.data[start : c.pos]))
                for number, _, delta in deltas_of(Cursor(change), key_group, header, ids, wanted):
                    fit = fit and _value_fits(states[number], delta)
            except StatetoolError:
                return None
    return found, fit


def _value_fits(meta: StateMeta, delta: bytes) -> bool:
    """Tell whether a new value ends where its change does; of subclasses that the snapshot does not describe that is not known."""
    if delta[0] != PUT or meta.kind in ("list", "map") or meta.value.framed_only:
        return True
    c = Cursor(delta, 1)
    try:
        meta.value.skip(c)
    except StatetoolError:
        return False
    return c.left == 0
