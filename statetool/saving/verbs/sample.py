"""Plan a small copy of a snapshot: some keys of each operator with all their state, or some key groups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.entries.form import KeyGroupReader, error_context
from statetool.errors import OptionError, UnsupportedError
from statetool.formats.key_groups import MAX_PARALLELISM_LIMIT
from statetool.io.threads import Map
from statetool.saving.composition import OperatorChange
from statetool.saving.forms import DEFAULT_FORMAT, SnapshotForm
from statetool.saving.streams.filters import (
    EntryFilter,
    KeyGroupFilter,
    SampleFilter,
    hash_keys_of,
    key_bounds,
    sample_hashes,
)
from statetool.saving.verbs.erase import Form, form_of
from statetool.saving.verbs.tally import DistinctHashes, Hashes, tally, whole_key_groups
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import metadata_rows
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord
from statetool.types.options import whole_number

_HASHES: Final = 1 << 64
#: Hashes that a task returns at most, and number of first bits by which the keys of larger samples are counted.
_MOST_HASHES: Final = 1 << 16
_BUCKET_BITS: Final = 16
#: The last key group of the largest max parallelism.
_LAST_GROUP: Final = MAX_PARALLELISM_LIMIT - 1
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")
#: Filter that keeps no entry: it counts all.
_NOTHING: Final = KeyGroupFilter(groups=frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRow(OperatorRecord):
    """One sampled operator.

    Attributes
    ----------
    form
        How its keyed state is written, as for :class:`statetool.saving.verbs.erase.ErasedOperator`.
    keys, entries
        Number of keys and entries in the sample, ``None`` in a dry run.
    old_bytes, new_bytes
        Stored bytes of the operator in the source and in the sample. The latter is ``None`` in a dry run.
    """

    operator_id: str
    key_type: str
    form: Form
    keys: int | None
    entries: int | None
    old_bytes: int
    new_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSize:
    """The size of a sample: a share of the keys, a number of keys per operator, or key groups."""

    share: float | None = None
    count: int | None = None
    key_groups: frozenset[int] | None = None

    @classmethod
    def of(cls, keys: str | int | float | None, key_groups: str | Iterable[int] | None) -> SampleSize:
        """Parse the size.

        Parameters
        ----------
        keys
            ``"1%"``, a share such as 0.01, or a whole number of keys per operator.
        key_groups
            Key groups: ``"0-3,7"``, or numbers.

        Raises
        ------
        OptionError
            Neither or both were given, or one is not valid.
        """
        if (keys is None) == (key_groups is None):
            raise OptionError("pass either a number of keys or key groups", hint="pass --keys 1% or --key-groups 0-3")
        if key_groups is not None:
            return cls(key_groups=frozenset(_parse_groups(key_groups)))
        if isinstance(keys, str) and keys.endswith("%"):
            return cls._of_share(_number(keys[:-1], keys) / 100, keys)
        if isinstance(keys, float):
            return cls._of_share(keys, keys)
        number = int(keys) if isinstance(keys, str) and keys.isdecimal() else keys
        return cls(count=whole_number("keys", number, least=1))

    @classmethod
    def _of_share(cls, share: float, given: object) -> SampleSize:
        if not 0 < share <= 1:
            raise OptionError(f"keys={given} is not a share of the keys", hint="pass more than 0% and at most 100%")
        return cls(share=share)


def _number(text: str, given: object) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"keys={given!r} is neither a share nor a number", hint="pass 1% or 1000") from None


def _parse_groups(given: str | Iterable[int]) -> set[int]:
    if not isinstance(given, str):
        return {whole_number("key_groups", g, least=0, most=_LAST_GROUP) for g in given}
    groups: set[int] = set()
    for part in given.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None or int(found[1]) > int(found[2] or found[1]):
            raise OptionError(f"key groups {part!r} are not a range", hint="pass 0-3 or 0,7")
        last = whole_number("key_groups", int(found[2] or found[1]), most=_LAST_GROUP)
        groups |= set(range(int(found[1]), last + 1))
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """The operators to sample.

    Attributes
    ----------
    filters
        The filter of each operator with keyed state, by operator id.
    """

    operators: tuple[SampledRow, ...]
    filters: Mapping[str, EntryFilter]
    changes: Mapping[str, OperatorChange]


def plan_sample(
    inventory: Inventory,
    size: SampleSize,
    operators: Sequence[str],
    in_tasks: Map,
    *,
    seed: int = 0,
    target: SnapshotForm = DEFAULT_FORMAT,
) -> SamplePlan:
    """Plan which keys stay. For a number of keys, all keys are read to find those with the smallest hashes.

    Parameters
    ----------
    operators
        Uids or operator ids. By default all operators with keyed state.
    seed
        Selects one of many samples. Operators with keys of the same type share their keys.
    target
        The form of the copy.

    Raises
    ------
    OptionError
        No operator has keyed state, or a key group does not exist.
    UnsupportedError
        The keys of an operator cannot be decoded.
    """
    chosen = [inventory.operator(name) for name in dict.fromkeys(operators)] or list(inventory.operators.values())
    rows: list[SampledRow] = []
    filters: dict[str, EntryFilter] = {}
    for operator in chosen:
        operator.check_listed("keyed")
        if not operator.keyed_states:
            if operators:
                operator.keyed.needed_key()
            continue
        entry_filter = _filter(operator, size, seed, in_tasks)
        filters[operator.state.operator_id] = entry_filter
        rows.append(
            SampledRow(
                operator=operator.label,
                operator_id=operator.state.operator_id,
                key_type=operator.keyed.needed_key().type_name,
                form=form_of(operator, entry_filter, target),
                keys=None,
                entries=None,
                old_bytes=_stored_bytes(operator),
                new_bytes=None,
            )
        )
    if not rows:
        raise OptionError("no operator has keyed state, so there is nothing to sample", hint="run: statetool copy")
    changes = {operator_id: OperatorChange(filter=chosen) for operator_id, chosen in filters.items()}
    return SamplePlan(operators=tuple(rows), filters=filters, changes=changes)


def _filter(operator: OperatorInventory, size: SampleSize, seed: int, in_tasks: Map) -> EntryFilter:
    if size.key_groups is not None:
        most = operator.state.max_parallelism
        if max(size.key_groups, default=0) >= most:
            raise OptionError(
                f"key group {max(size.key_groups)} does not exist: max parallelism is {most}",
                hint=f"pass key groups below {most}, or choose operators with --uid",
            ).at(operator=operator.label)
        return KeyGroupFilter(groups=size.key_groups)
    serializer = operator.keyed.needed_key()
    if isinstance(serializer, OpaqueSerializer) or serializer.needs_frame:
        raise UnsupportedError(
            f"the end of keys of type {serializer.type_name} cannot be found",
            hint="pass the job's jar (--jar), declare the class (--declare), or pass --key-groups instead of --keys",
        ).at(operator=operator.label)
    if size.share is not None:
        return SampleFilter(seed=seed, below=round(size.share * _HASHES))
    assert size.count is not None
    return SampleFilter(seed=seed, below=_bound(operator, size.count, seed, in_tasks))


def _bound(operator: OperatorInventory, count: int, seed: int, in_tasks: Map) -> int:
    """Return the exclusive upper bound of the ``count`` smallest hashes of keys.

    For more than :data:`_MOST_HASHES`, keys are read twice: first they are counted by the first bits of their hashes.
    """
    low = 0
    parts = whole_key_groups(operator)
    if count > _MOST_HASHES:
        counts = np.zeros(1 << _BUCKET_BITS, dtype=np.int64)
        for part in in_tasks(partial(_count_by_bucket, seed), parts):
            counts += part
        before = np.cumsum(counts)
        bucket = int(np.searchsorted(before, count))
        if bucket == len(counts):
            return _HASHES
        count -= int(before[bucket] - counts[bucket])
        low = bucket << (64 - _BUCKET_BITS)
    smallest = DistinctHashes(count)
    for part in in_tasks(partial(_smallest_hashes, count, seed, low), parts):
        smallest.add(part)
    found = smallest.sorted()
    return int(found[-1]) + 1 if len(found) == count else _HASHES


def _count_by_bucket(seed: int, readers: Iterable[KeyGroupReader]) -> npt.NDArray[np.int64]:
    """Return the number of distinct keys by the first bits of their hashes."""
    distinct = DistinctHashes()
    for hashes in _hashes(seed, readers):
        distinct.add(hashes)
    buckets = distinct.sorted() >> np.uint64(64 - _BUCKET_BITS)
    return np.bincount(buckets.astype(np.int64), minlength=1 << _BUCKET_BITS)


def _smallest_hashes(count: int, seed: int, low: int, readers: Iterable[KeyGroupReader]) -> Hashes:
    """Return the ``count`` smallest hashes of keys that are not below ``low``."""
    smallest = DistinctHashes(count)
    for hashes in _hashes(seed, readers):
        smallest.add(hashes[hashes >= np.uint64(low)])
    return smallest.sorted()


def _hashes(seed: int, readers: Iterable[KeyGroupReader]) -> Iterator[Hashes]:
    """Yield the hashes of the keys of all entries."""
    for reader in readers:
        with error_context(reader):
            header = reader.header()
            for batch in reader.batches():
                yield sample_hashes(hash_keys_of(batch, *key_bounds(header, batch)), seed)


def _stored_bytes(operator: OperatorInventory) -> int:
    return sum(int(row.state_bytes) for row in metadata_rows("operators", [operator]))


def measure_sample(inventory: Inventory, plan: SamplePlan, in_tasks: Map) -> tuple[SampledRow, ...]:
    """Return the rows of a plan with the keys, entries and bytes of the written sample."""
    by_id = {o.state.operator_id: o for o in inventory.operators.values()}
    rows = []
    for row in plan.operators:
        operator = by_id[row.operator_id]
        held = tally(operator, _NOTHING, in_tasks)
        rows.append(
            replace(
                row, operator=operator.label, keys=held.keys, entries=held.entries, new_bytes=_stored_bytes(operator)
            )
        )
    return tuple(rows)
