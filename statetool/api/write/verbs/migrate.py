"""Parameters of verbs that convert states to the types of a new job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from statetool.api.write.options import described
from statetool.api.write.verbs.base import (
    BACKEND,
    DST,
    EQUALS_IN_UID,
    FORMAT,
    MATCH,
    ON_PLAN,
    SRC,
    CopyVerb,
    Verb,
    format_parameter,
    parameter,
    positional,
    release_parameter,
)

if TYPE_CHECKING:
    import os

    from statetool.api.savepoint import Savepoint
    from statetool.migration.plan import MigrationPlan
    from statetool.serializers.core.base import Serializer

_ACCEPT: Final = described(
    "Names of steps, from the plan's ``rows``.",
    "Step that loses values and that you accept, by name.",
    flag="--accept STEP",
)
_RENAMES: Final = described(
    'Old field names by new ones: ``{"orders.totals.value.city": "town"}``.',
    "Old name of a renamed field.",
    flag="--rename FIELD=OLD",
)
_FILLS: Final = described(
    'Values of added fields, as in JSON: ``{"orders.totals.value.count": 0}``.',
    "Value of a new field, as JSON.",
    flag="--fill FIELD=JSON",
)
_LAST_ACCESS: Final = described(
    "Last access of values that get a time to live, in epoch milliseconds.",
    "Last access of values that get a time to live: epoch milliseconds, or now, as Flink 2 does.",
    flag="--last-access MS|now",
    kind="text",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationChoices(Verb):
    """The new job of a migration, and the choices of the user."""

    to: str | Savepoint | None = parameter(
        "A savepoint of the new job. Either this or ``plan``.",
        "Savepoint of the new job; its state may be empty.",
        default=None,
        flag="--to JOB",
    )
    plan: str | MigrationPlan | None = parameter(
        "A plan, or its file (see :func:`write_plan`).",
        "Plan to run, from statetool check --write-plan FILE.",
        default=None,
        flag="--plan FILE",
    )
    match: str | Mapping[str, str] | None = field(default=None, metadata=MATCH)
    accept: Iterable[str] = field(default=(), metadata=_ACCEPT)
    renames: Mapping[str, str] | None = field(default=None, metadata=_RENAMES)
    last_access_ms: int | None = field(default=None, metadata=_LAST_ACCESS)
    fills: Mapping[str, Any] | None = field(default=None, metadata=_FILLS)
    flink_version: str | None = release_parameter(
        "Flink release that will read it. Defaults to the metadata version of the new job.", "JOB"
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)
    on_plan: Callable[[MigrationPlan], object] | None = field(default=None, metadata=ON_PLAN)
    on_staged: Callable[[], object] | None = parameter(
        "Called before the savepoint is published, not in a dry run. Meanwhile ``dst`` opens as the new savepoint in this thread, and in"
        " no other. If the function raises an error, nothing is published.",
        default=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrate(MigrationChoices):
    """Write a copy whose states have the types of a new job."""

    answer: ClassVar[str] = "statetool.migration.plan:StepRow"

    src: str | Savepoint = field(metadata=SRC)
    dst: str = field(metadata=DST)
    keys: Mapping[str, str] | None = parameter(
        'New keys of operators, as SQL expressions (of DuckDB) of the old ``key`` and of the states of the key: ``{uid: "key % 100"}``. All'
        " keyed states, windows and timers of the operator follow, into the key groups of their new keys.",
        "New key of all state of an operator: a SQL expression of key and the states of the key.",
        default=None,
        flag="--key UID=SQL",
        example=EQUALS_IN_UID,
    )
    key_types: Mapping[str, str | Serializer] | None = parameter(
        "New types of keys by uid: a SQL type such as ``BIGINT``, or one of ``statetool.flink``. Without an expression, keys keep their values."
        " By default, the type of the new job, or the one that follows from the expression.",
        "New type of the keys of an operator, such as BIGINT.  [default: that of JOB]",
        kind="pairs",
        default=None,
        flag="--key-type UID=TYPE",
        example=EQUALS_IN_UID,
    )
    on_conflict: Mapping[str, str] | None = parameter(
        "What to do if old keys meet under one new key, by kind of state (``value``, ``list``, ``map``, ``reducing``, ``aggregating``,"
        ' ``timers``): ``{"list": "merge", "value": "keep-newest"}``. By default, and for kinds that are not given, it is an error. ``"merge"``'
        ' joins lists, and unites maps without equal keys, and timers. Other kinds need ``merges``. ``"keep-newest"`` takes the value with'
        " the latest access, or the one that ``newest`` chooses, for maps by key of the map.",
        "If old keys meet: merge, keep-newest or error, by kind of state: value, list, map, reducing, aggregating, timers.",
        default=None,
        flag="--on-conflict KIND=POLICY",
    )
    merges: Mapping[str, str] | None = parameter(
        'Associative SQL expressions that merge two values ``a`` and ``b``: ``{"orders.total": "a + b"}``. Values are merged in no particular'
        " order.",
        "Associative SQL expression that merges two values a and b.",
        default=None,
        flag="--merge STATE=SQL",
    )
    newest: Mapping[str, str] | None = parameter(
        'SQL expressions of ``value`` that are greatest for the newest value: ``{"orders.last": "value.time"}``.',
        "SQL expression of value that is greatest for the newest one.",
        default=None,
        flag="--newest STATE=SQL",
    )
    hashes: Mapping[str, str] | None = parameter(
        '``{Java class: "Objects.hash(a, b)"}`` for classes of new keys (words: :mod:`statetool.types.conventions`).',
        "Hash code of a class of new keys: 'Objects.hash(a, b)'.",
        default=None,
        flag="--hash CLASS=FORMULA",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp(MigrationChoices):
    """Migrate a savepoint by converting only what changed since an earlier one."""

    answer: ClassVar[str] = "statetool.migration.plan:StepRow"

    migrated: str | Savepoint = positional(
        "Result of :func:`migrate` for ``before``, or of an earlier call, with the same plan: its path, or an open one.",
        argument="MIGRATED",
    )
    before: str | Savepoint = positional("A savepoint of the job: its path, or an open one.", argument="A")
    after: str | Savepoint = positional("A newer savepoint of the same job.", argument="B")
    dst: str = field(metadata=DST)
    # Not DEFAULT_FORMAT: only canonical results tell ``catch-up`` what they were made from.
    format: Literal["same", "canonical", "native"] = field(default="canonical", metadata=FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade(CopyVerb):
    """Write a copy for new classes and a new release."""

    answer: ClassVar[str] = "statetool.migration.plan:StepRow"

    other_jars: Iterable[str | os.PathLike[str]] | None = parameter(
        "The jars of the new job. Only needed if a state has values of user classes.", default=None
    )
    jars: Iterable[str | os.PathLike[str]] = parameter(
        "The jars of the job that wrote the snapshot, as for :func:`statetool.load`. Defaults to those with which ``src`` was opened.",
        default=(),
    )
    flink_version: str | None = release_parameter(
        "Flink release of the new job. Defaults to that of ``to``, or of the snapshot.", "SRC"
    )
    backend: Literal["heap", "rocksdb", "forst"] | None = parameter(
        "State backend of the new job, as for :func:`statetool.check`. A native snapshot of RocksDB or ForSt needs it if ``to`` is not"
        " given.",
        "State backend of the new job.  [default: that of B]",
        default=None,
    )
    to: str | Savepoint | None = parameter(
        "A savepoint of the new job. Without one, the new job has the states of the old one.",
        "Savepoint of the new job, if its states differ from those of SRC.",
        default=None,
        flag="--to B",
    )
    match: str | Mapping[str, str] | None = field(default=None, metadata=MATCH)
    accept: Iterable[str] = field(default=(), metadata=_ACCEPT)
    renames: Mapping[str, str] | None = field(default=None, metadata=_RENAMES)
    fills: Mapping[str, Any] | None = field(default=None, metadata=_FILLS)
    last_access_ms: int | None = field(default=None, metadata=_LAST_ACCESS)
    format: Literal["same", "canonical", "native"] = format_parameter()
    on_plan: Callable[[MigrationPlan], object] | None = field(default=None, metadata=ON_PLAN)
