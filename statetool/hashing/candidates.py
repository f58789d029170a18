"""Which conventions are tried for a class whose ``hashCode()`` is not known, and how all of them are tested at once.

Which fields count, and in which order, is not known: Flink's snapshots sort the fields of a POJO by name. A polynomial
``h = multiplier * h + hash`` over every ordered choice of fields covers ``Objects.hash``, ``Arrays.hashCode``, records, data classes,
Lombok, commons' HashCodeBuilder and what IDEs generate; exclusive or and sum, and Scala's ``productHash``, are tried beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import Final

import numpy as np

from statetool.formats.keyed.entries import Int64s
from statetool.hashing.formulas import Convention, Style, class_fields
from statetool.hashing.key_hash import key_groups
from statetool.serializers.avro import AvroSerializer
from statetool.serializers.base import Serializer
from statetool.serializers.enums import EnumSerializer
from statetool.serializers.tuples import CaseClassSerializer

#: The most used first: of formulas with equal hash codes for all keys, the first is named.
STARTS: Final = (1, 0, 17, 7, 3, 5, 2, 11, 13, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
MULTIPLIERS: Final = (
    31, 37, 59, 17, 7, 13, 19, 23, 29, 41, 43, 47, 53, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 397, 1000003,
)  # fmt: skip
_MOST_ORDERS: Final = 60_000
_FEW_SHAPES: Final[tuple[tuple[int, int, Style], ...]] = (
    (1, 31, "boxed"),
    (0, 31, "boxed"),
    (1, 59, "lombok"),
    (0, 31, "plain"),
    (1, 31, "plain"),
    (17, 31, "boxed"),
    (17, 37, "boxed"),
    (17, 37, "commons"),
    (7, 31, "boxed"),
    (17, 31, "plain"),
)
#: Releases of Avro differ in what the hash of a string starts with and in where the hash of a record ends.
_AVRO: Final = tuple(
    Convention(kind="avro", start=start, multiplier=most) for start, most in ((1, 10), (0, 0), (1, 0), (0, 10))
)
_FEW_ORDERS: Final = 400


def field_orders(n: int, most: int = _MOST_ORDERS) -> list[tuple[int, ...]]:
    """Return ordered choices of ``n`` fields, those of all fields first; above ``most``, the declared order and short choices."""
    declared = tuple(range(n))
    orders: dict[tuple[int, ...], None] = {declared: None}
    for size in (n, *range(1, n)):
        count = 1
        for i in range(size):
            count *= n - i
        if len(orders) + count <= most:
            orders |= dict.fromkeys(permutations(declared, size))
        elif size < n:
            choices = (tuple(c) for c in combinations(declared, size))
            orders |= dict.fromkeys(c for c, _ in zip(choices, range(most // n), strict=False))
    return list(orders)


def few_conventions(serializer: Serializer) -> Iterator[Convention]:
    """Yield the conventions that are tried for a class inside a key."""
    if isinstance(serializer, EnumSerializer):
        yield Convention(kind="name")
        yield Convention(kind="ordinal")
        return
    if isinstance(serializer, AvroSerializer):
        yield from _AVRO
        return
    names = tuple(class_fields(serializer))
    if isinstance(serializer, CaseClassSerializer):
        yield Convention(kind="scala", fields=names)
        yield Convention(kind="scala2.13", fields=names)
    for order in field_orders(len(names), _FEW_ORDERS):
        for start, multiplier, style in _FEW_SHAPES:
            yield Convention(
                kind="polynomial",
                fields=tuple(names[i] for i in order),
                start=start,
                multiplier=multiplier,
                style=style,
            )


class Polynomials:
    """All polynomials over some fields, tested against the key groups of keys.

    Parameters
    ----------
    orders
        Ordered choices of the columns of ``hashes``.
    hashes
        int64[k, n]: the fields' hash codes of each key.
    groups
        int64[k]: the key groups that the keys lie in.
    """

    def __init__(self, orders: Sequence[tuple[int, ...]], hashes: Int64s, groups: Int64s, max_parallelism: int) -> None:
        self.max_parallelism = max_parallelism
        self.groups = groups
        width = max(map(len, orders))
        # A column of zeros stands for no field; lengths say where a choice ends.
        self.hashes = np.concatenate([hashes, np.zeros((len(hashes), 1), dtype=np.int64)], axis=1)
        none = hashes.shape[1]
        self.orders = np.array([(*o, *[none] * (width - len(o))) for o in orders], dtype=np.int64)
        self.lengths = np.array([len(o) for o in orders], dtype=np.int64)

    @property
    def count(self) -> int:
        """How many polynomials are tested."""
        return len(self.orders) * len(STARTS) * len(MULTIPLIERS)

    def surviving(self) -> list[tuple[int, int, int]]:
        """Return ``(start, multiplier, index of the order)`` of each polynomial that puts every key into its key group."""
        survivors = []
        for multiplier in MULTIPLIERS:
            starts = np.array(STARTS, dtype=np.int64)
            powers = np.array([pow(multiplier, int(n), 1 << 32) for n in self.lengths], dtype=np.int64)
            head = (starts[:, None] * powers[None, :]) & 0xFFFFFFFF
            order_index = np.arange(len(self.orders))
            tail = self._tail(0, multiplier, order_index)
            fitting = np.flatnonzero(self._groups((head + tail[None, :]).ravel()) == self.groups[0])
            at_start, order_index = fitting // len(self.orders), fitting % len(self.orders)
            for key in range(1, len(self.groups)):
                if not len(order_index):
                    break
                unique, back = np.unique(order_index, return_inverse=True)
                tail = self._tail(key, multiplier, unique)[back]
                fitting = np.flatnonzero(self._groups(head[at_start, order_index] + tail) == self.groups[key])
                at_start, order_index = at_start[fitting], order_index[fitting]
            survivors += [(STARTS[s], multiplier, int(o)) for s, o in zip(at_start, order_index, strict=True)]
        return survivors

    def _tail(self, key: int, multiplier: int, order_index: Int64s) -> Int64s:
        """Return the polynomials of one key without their start, modulo 2 to the 32."""
        values = self.hashes[key] & 0xFFFFFFFF
        total = np.zeros(len(order_index), dtype=np.int64)
        orders, lengths = self.orders[order_index], self.lengths[order_index]
        for i in range(orders.shape[1]):
            step = (total * multiplier + values[orders[:, i]]) & 0xFFFFFFFF
            total = np.where(i < lengths, step, total)
        return total

    def _groups(self, hashes: Int64s) -> Int64s:
        return key_groups(hashes, self.max_parallelism)


def other_conventions(serializer: Serializer, usable: Sequence[str]) -> Iterator[Convention]:
    """Yield the conventions that are no polynomials: Avro's, Scala's, exclusive or, sum."""
    if isinstance(serializer, AvroSerializer):
        yield from _AVRO
        return
    names = tuple(class_fields(serializer))
    if set(usable) == set(names):
        orders = [names] if isinstance(serializer, CaseClassSerializer) or len(names) > 6 else permutations(names)
        for order in orders:
            yield Convention(kind="scala", fields=tuple(order))
            yield Convention(kind="scala2.13", fields=tuple(order))
    for size in range(len(usable), 1, -1):
        if size > 8:
            continue
        for chosen in combinations(usable, size):
            yield Convention(kind="xor", fields=chosen)
            yield Convention(kind="sum", fields=chosen)
