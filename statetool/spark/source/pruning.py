"""Keys allowed by pushed filters, so that only their key groups are read.

Spark pushes a conjunction of ``EqualTo``, ``EqualNullSafe`` and ``In`` (never an ``OR``) and evaluates all of them again on the rows read.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final

from statetool.serializers.core.base import Serializer
from statetool.tables.keys.values import KEY, can_look_up, intersect, key_fields, plain_values

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_MOST_COMBINATIONS: Final = 10_000


def allowed_keys(filters: Iterable[Filter], key: Serializer) -> list[Any] | None:
    """Return the keys that all filters together allow, as plain values of the key's serializer.

    Parameters
    ----------
    filters
        Filters pushed by Spark; filters on anything but the key are ignored.
    key
        Serializer of the operator's keys.

    Returns
    -------
    list or None
        ``None`` if the filters do not limit the keys to a small known set.
    """
    conditions = [c for f in filters if (c := _condition(f)) is not None]
    by_key = intersect([plain_values(values, key) for path, values in conditions if path == ()])
    by_field = _by_fields([(path[0], values) for path, values in conditions if len(path) == 1], key)
    keys = intersect([by_key, by_field])
    return keys if keys is not None and can_look_up(keys, key) else None


def _condition(f: Filter) -> tuple[tuple[str, ...], list[Any]] | None:
    """Return the path below ``key`` that a filter applies to, and the values that it allows there."""
    from pyspark.sql.datasource import EqualNullSafe, EqualTo, In

    if not isinstance(f, EqualTo | EqualNullSafe | In) or f.attribute[0] != KEY:
        return None
    if isinstance(f, EqualNullSafe) and f.value is None:
        return None  # the filter allows nulls
    values = list(f.value) if isinstance(f, In) else [f.value]
    return tuple(f.attribute[1:]), [v for v in values if v is not None]


def _by_fields(conditions: list[tuple[str, list[Any]]], key: Serializer) -> list[Any] | None:
    """Return the tuples or rows allowed by conditions on their fields, if every field has one."""
    fields = key_fields(key)
    if not fields:
        return None
    choices = []
    for step, part in fields:
        allowed = intersect([plain_values(values, part) for name, values in conditions if name == step])
        if allowed is None:
            return None
        choices.append(allowed)
    return list(product(*choices)) if prod(map(len, choices)) <= _MOST_COMBINATIONS else None
