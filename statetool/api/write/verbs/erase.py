"""Parameters of verbs that choose keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from statetool.api.write.verbs.base import (
    BACKEND,
    ON_PLAN,
    CopyVerb,
    format_parameter,
    operator_parameter,
    parameter,
    positional,
)

if TYPE_CHECKING:
    from statetool.saving.verbs.erase import ErasePlan
    from statetool.tables.keys.text import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Erase(CopyVerb):
    """Write a copy without the state of some keys."""

    keys: Iterable[Key] | None = positional(
        "Keys as plain values, as for :meth:`Operator.keyed_state`. Each operator is searched for the keys that have the type of its keys.",
        "Keys as JSON: '[1, 2]' or '[\"a\"]'; one may be a word.",
        kind="text",
        default=None,
        flag="--keys KEYS",
    )
    keys_from: str | None = parameter(
        help="File with one key per line: a text, or JSON.", default=None, flag="--keys-from FILE"
    )
    where: str | None = parameter(
        "Instead of keys, a SQL condition on the columns of ``keyed_state``, which DuckDB evaluates (extra ``sql``): ``key``, and the states"
        " without a namespace. States that a key does not have are null. A condition that is null is not fulfilled: :func:`erase` leaves"
        " the key, and :func:`keep` removes it. A condition that names ``window`` (a struct of ``start`` and ``end``) or ``window_end`` chooses"
        " windows instead of keys; it may also name ``key``. Functions whose result changes, such as ``random()`` and ``now()``, are errors.",
        "Condition on key and states, or on key and window, evaluated by DuckDB.",
        default=None,
        flag="--where SQL",
    )
    operators: Iterable[str] = operator_parameter(
        "Uids or operator ids. By default all operators with keyed state whose key type fits.",
        "Operator to search, by uid, name or operator id.  [default: all whose key type fits]",
        default=(),
    )
    root: str | None = parameter(
        "Directory in which to look for other snapshots that may contain the keys. Defaults to the directory that contains the snapshot, if"
        " the snapshot is named like a checkpoint or savepoint of Flink.",
        "Directory to search for other snapshots.  [default: that of SRC]",
        names="path",
        default=None,
        flag="--root DIR",
    )
    allow_missing: bool = parameter(
        "Go on without keys that no operator has, or if no key fulfills the condition. Files of RocksDB may have old versions of missing"
        " keys, which are removed too.",
        "Go on if keys are missing, or no key fulfills the condition.",
        default=False,
    )
    report: str | None = parameter(
        help="Write a JSON report for an auditor. It contains no keys.", kind="file", default=None, flag="--report FILE"
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)
    on_plan: Callable[[ErasePlan], object] | None = field(default=None, metadata=ON_PLAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep(Erase):
    """Write a copy with the state of some keys only."""

    allow_empty: bool = parameter(
        "Leave operators without any key, if they have none of the keys. Otherwise this is an error (:class:`MissingKeyError`).",
        "Leave operators without any key.",
        default=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(CopyVerb):
    """Write a small copy."""

    answer: ClassVar[str] = "statetool.saving.verbs.sample:SampledRow"

    keys: str | int | float | None = parameter(
        '``"1%"``, a share such as 0.01, or a number of keys per operator. Operators with keys of the same type share their keys.',
        "Share or number of keys per operator: 1% or 1000.",
        default=None,
        flag="--keys SIZE",
    )
    key_groups: str | Iterable[int] | None = parameter(
        'Instead of keys, all keys of these key groups: ``"0-3"``, or numbers. Only these key groups are read.',
        "Key groups instead of keys: 0-3 or 0,7.",
        default=None,
        flag="--key-groups RANGE",
    )
    seed: int = parameter(
        "Selects one of many samples. Equal seeds select equal keys.",
        "Number that selects one of many samples.",
        default=0,
    )
    operators: Iterable[str] = operator_parameter(
        "Uids or operator ids of the operators to sample, by default all with keyed state. Others stay complete.",
        "Operator to sample, by uid, name or operator id.  [default: all with keyed state]",
        default=(),
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)
