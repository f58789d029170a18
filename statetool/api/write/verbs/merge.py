"""Parameters of verbs that combine operators of snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from statetool.api.write.verbs.base import (
    BACKEND,
    DST,
    HASHES,
    SRC,
    CopyVerb,
    Verb,
    format_parameter,
    operator_parameter,
    parameter,
    positional,
    release_parameter,
)

if TYPE_CHECKING:
    from statetool.api.savepoint import Savepoint

_ADDED_MAX_PARALLELISM: Final = "Max parallelism of the added operators.  [default: unchanged]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Graft(Verb):
    """Write a copy with operators of another snapshot."""

    answer: ClassVar[str] = "statetool.saving.verbs.merge:MergeRow"

    src: str | Savepoint = field(metadata=SRC)
    other: str | Savepoint = positional(
        "The snapshot with the operators to add: its path, or one that :func:`statetool.load` opened.", argument="OTHER"
    )
    dst: str = field(metadata=DST)
    operators: Mapping[str, str | None] | Iterable[str] = operator_parameter(
        "Operators of ``other``, or ``{operator: new uid}`` (``None`` keeps the uid).",
        "Operator of OTHER to add, by uid, name or operator id; with =NEW under another uid.",
        kind="texts",
        flag="--uid UID[=NEW]",
        positional=True,
    )
    max_parallelism: int | None = parameter(
        "Max parallelism of the added operators. By default each keeps its own.", _ADDED_MAX_PARALLELISM, default=None
    )
    hashes: Mapping[str, str] | None = field(default=None, metadata=HASHES)
    flink_version: str | None = release_parameter(
        "Flink release that will read the new snapshot. By default one that reads ``src``.", "SRC"
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Verb):
    """Merge two snapshots into one."""

    answer: ClassVar[str] = "statetool.saving.verbs.merge:MergeRow"

    first: str | Savepoint = positional(
        "The first snapshot: its path, or one that :func:`statetool.load` opened.", argument="A"
    )
    second: str | Savepoint = positional("The second snapshot, in the same form.", argument="B")
    dst: str = field(metadata=DST)
    max_parallelism: int | None = parameter(
        "Max parallelism of operators that only ``second`` has. By default each keeps its own. Operators of both keep that of ``first``.",
        _ADDED_MAX_PARALLELISM,
        default=None,
    )
    hashes: Mapping[str, str] | None = field(default=None, metadata=HASHES)
    flink_version: str | None = release_parameter(
        "Flink release that will read the new snapshot. By default one that reads ``first``.", "A"
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Verb):
    """Split a snapshot into those of two jobs."""

    src: str | Savepoint = field(metadata=SRC)
    first: str = positional("A new directory for the savepoint of the first job.", argument="DST1")
    second: str = positional(
        "The same for the second job. It is published when the first one is staged and proved. If the last steps for the first one fail"
        " then, the second one stays, and the error or a warning says so.",
        argument="DST2",
    )
    operators: Iterable[str] = operator_parameter(
        "Operators of the second job, by uid or operator id. All others belong to the first.",
        "Operator of the second job, by uid, name or operator id.",
        positional=True,
    )
    both: Iterable[str] = parameter(
        "Operators that both jobs get.", "Operator that both jobs get.", names="operator", default=(), flag="--both UID"
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveState(CopyVerb):
    """Write a copy in which keyed states belong to another operator."""

    answer: ClassVar[str] = "statetool.saving.verbs.merge:MergeRow"

    source: str = positional(
        "The operator that has the states.", "Operator that has the state.", flag="--from UID", names="operator"
    )
    target: str = positional(
        "The operator that gets them.", "Operator that gets the state.", flag="--to UID", names="operator"
    )
    states: Mapping[str, str | None] | Iterable[str] = positional(
        "States (or timer queues) of ``source``, or ``{state: new name}`` (``None`` keeps the name).",
        "Keyed state to move; with =NEW under another name.",
        flag="--state NAME[=NEW]",
        kind="texts",
        names="state",
    )
    hashes: Mapping[str, str] | None = field(default=None, metadata=HASHES)
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)
