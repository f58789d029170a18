"""Parameters of verbs that change parallelism, format, uids, operators and names of states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from statetool.api.write.verbs.base import (
    BACKEND,
    FORMAT,
    HASHES,
    ON_PLAN,
    CopyVerb,
    Verb,
    format_parameter,
    operator_parameter,
    parameter,
    positional,
    release_parameter,
)

if TYPE_CHECKING:
    from statetool.saving.verbs.rescale import RescalePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale(CopyVerb):
    """Write a copy with another max parallelism."""

    answer: ClassVar[str] = "statetool.saving.verbs.rescale:RescaleRow"

    max_parallelism: int | Mapping[str, int] = positional(
        "One number for all operators, or ``{uid: number}`` by uid or operator id."
    )
    number: int | None = parameter(
        help="Max parallelism of all operators, except those of --uid.", flag="--max-parallelism", default=None
    )
    by_uid: Mapping[str, int] | None = operator_parameter(
        "",
        "Max parallelism of one operator, by uid, name or operator id.",
        kind="texts",
        default=None,
        flag="--uid UID=N",
    )
    excepted: Iterable[str] = parameter(
        help="Operator that keeps its max parallelism.", flag="--except UID", names="operator", default=()
    )
    parallelism: int | Mapping[str, int] | None = parameter(
        "Number of subtasks, in the same form. Defaults to the old parallelism, up to the new max parallelism.",
        "Number of subtasks of rescaled operators.  [default: unchanged]",
        kind="number",
        default=None,
    )
    hashes: Mapping[str, str] | None = field(default=None, metadata=HASHES)
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)
    on_plan: Callable[[RescalePlan], object] | None = field(default=None, metadata=ON_PLAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert(CopyVerb):
    """Write a self-contained savepoint."""

    answer: ClassVar[str] = "statetool.saving.verbs.convert:ConvertRow"

    state_api: Literal["v1", "v2"] | None = parameter(
        '``"v1"`` writes asynchronous state of ForSt as keyed state that RocksDB and the heap backend restore, ``"v2"`` the opposite.'
        ' By default, states stay what they are. For ``"v2"``, write a native savepoint of ForSt: no backend restores it from a canonical'
        " one by default.",
        "Write keyed state for this API: v1 is restored by RocksDB and heap, v2 is asynchronous state of ForSt (add --format native"
        " --backend forst).",
        default=None,
    )
    # Not DEFAULT_FORMAT: other commands' hints recommend a plain ``convert`` for what only a canonical savepoint mends.
    format: Literal["same", "canonical", "native"] = field(default="canonical", metadata=FORMAT)
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)
    flink_version: str | None = release_parameter(
        "Flink release that reads the savepoint. Defaults to that of the snapshot, and is needed if no release exists that reads its metadata.",
        "SRC",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeUids(CopyVerb):
    """Write a copy in which operators have other uids."""

    commands: ClassVar[tuple[str, ...]] = ("uid",)
    answer: ClassVar[str] = "statetool.saving.uids:UidChange"

    changes: Mapping[str, str] = positional(
        "New uid by old uid, name or id prefix. Either may be the 32 hex digits of an operator id (``setUidHash``).",
        argument="OLD=NEW...",
        required=False,
        example="pass the operator id of an operator whose uid contains an equals sign (run: statetool ls PATH)",
    )
    match: str | None = parameter(
        help="File of statetool match --write: rename each operator that has another id in B.",
        default=None,
        flag="--match FILE",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(CopyVerb):
    """Write a copy without some operators or states."""

    answer: ClassVar[str] = "statetool.saving.verbs.drop:DropRow"

    operators: Iterable[str] = operator_parameter(
        "Operators to drop, by uid or operator id.",
        "Operator to remove, by uid, name or operator id.",
        required=True,
        default=(),
        positional=True,
    )
    state: Iterable[str] = parameter(help="State to remove instead of the operator.", names="state", default=())
    states: Mapping[str, Iterable[str]] | None = parameter(
        "States to drop from other operators: ``{uid: [state, ...]}``.", default=None
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameStates(CopyVerb):
    """Write a copy in which states of an operator have other names."""

    commands: ClassVar[tuple[str, ...]] = ("state rename",)
    answer: ClassVar[str] = "statetool.saving.verbs.rename:RenameRow"

    operator: str = operator_parameter(
        "The operator, by uid or operator id.", "Operator of the states, by uid, name or operator id.", positional=True
    )
    names: Mapping[str, str] = positional("New names by old names. All apply at once, so states can swap their names.")
    state: Iterable[str] = parameter(help="State to rename.", names="state", required=True, default=())
    to: Iterable[str] = parameter(help="New name of the state.", required=True, default=(), flag="--to NAME")
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Verb):
    """Copy a snapshot with all files that it needs."""

    without: ClassVar[frozenset[str]] = frozenset({"checkpoint_id", "uids"})
    described: ClassVar[Mapping[str, str]] = {
        "rebase": "``{old prefix: new prefix}`` for absolute paths of files that were moved.",
        "progress": "Called with the number of bytes of each copied file (not on Spark).",
    }

    source: str = positional("Directory of the snapshot, or its metadata file.", argument="SRC")
    target: str = positional(
        "Directory of the copy, which must not exist yet: a local path or any URI that fsspec can write to.",
        argument="DST",
    )
    threads: int | None = parameter("Threads of this process without a session, by default one per core.", default=None)
    compare: bool = parameter(
        "Read every copied file back and compare it with the original.",
        "Read every copied file again and compare it with the original.",
        default=False,
    )
