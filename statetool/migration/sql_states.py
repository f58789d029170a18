"""Whole states of SQL operators that are computed from old ones: other joins, another number of rows of a Top-N, another deduplication."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from statetool.columns.values import StateLayout
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader, write_keyed_header
from statetool.formats.state_meta import KEY_VALUE, StateMetaInfo
from statetool.migration.sql_changes import OperatorStep
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.sql_plans.aggregates import PlanAggregates, changed_state
from statetool.sql_plans.joins import STATES, JoinChange, JoinSide, PlanJoin
from statetool.sql_plans.ranks import COUNTS, STATE_OF, PlanRank, RankChange
from statetool.types import MapType, Scalar, TtlType

if TYPE_CHECKING:
    from statetool.saving.recomputing.entries import Recomputation, StateRule

_SINGLE: Final = "deduplicate-state"
_KIND: Final = {"counted": "map", "unique": "map", "single": "value"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatesChange:
    """Change of an operator's whole state: how it is done, or why not. Without both, Flink reads the state as it is."""

    recomputation: Recomputation | None = None
    steps: tuple[OperatorStep, ...] = ()
    refusal: str = ""


class _RefusedError(Exception):
    """The state cannot be computed; the message says why."""


def change_states(old: OperatorInventory, new: OperatorInventory) -> StatesChange | None:
    """Return the change of an operator's whole state, ``None`` if its states are converted one by one, or stay."""
    before, after = old.plan_aggregates, new.plan_aggregates
    change = changed_state(before, after)
    if change is None or before is None or after is None:
        return None
    if change.refusal:
        return StatesChange(refusal=change.refusal)
    if not change.text:
        return None
    try:
        rule = _rule(old, new, before, after, change)
    except _RefusedError as error:
        return StatesChange(refusal=f"{change.text}, but {error}")
    key, metas = new.keyed.key, [meta for _, meta in new.keyed_states.values()]
    assert key is not None
    header = KeyedHeader(version=CURRENT_VERSION, compressed=False, key=key, states=tuple(metas), size_bytes=0)
    from statetool.saving.recomputing.entries import Recomputation

    recomputation = Recomputation(after=write_keyed_header(header), types=new.types, rule=rule)
    step = OperatorStep(uid=old.label, name="states", change="rewrite", text=change.text)
    return StatesChange(recomputation=recomputation, steps=(step, *_warnings(old, after, change)))


def _warnings(old: OperatorInventory, after: PlanAggregates, change: JoinChange | RankChange) -> Iterator[OperatorStep]:
    counts = False
    if isinstance(change, JoinChange) and after.join is not None:
        sides = zip(after.join.sides, change.carries_partners, strict=True)
        counts = any(side.counts_partners and not carries for side, carries in sides)
    if counts and any(map(_has_ttl, _metas(old))):
        text = "partners are counted among the rows that the state has: rows of the other side that expired are no partners"
        yield OperatorStep(uid=old.label, name="partners", change="rewrite", text=text, loses=True)

    if isinstance(change, RankChange) and change.sorts:
        text = (
            "rows that are equal in the new order come in the old order, and not in the order in which the job saw them"
        )
        yield OperatorStep(uid=old.label, name="order", change="rewrite", text=text, loses=True)


def _metas(operator: OperatorInventory) -> list[StateMetaInfo]:
    """Return the states of an operator. Its queues of timers are empty, which the computation checks."""
    return [meta for _, meta in operator.keyed_states.values() if meta.kind != "timers"]


def _rule(
    old: OperatorInventory,
    new: OperatorInventory,
    before: PlanAggregates,
    after: PlanAggregates,
    change: JoinChange | RankChange,
) -> StateRule:
    from statetool.saving.recomputing.joins import JoinRule
    from statetool.saving.recomputing.ranks import RankRule, SeenRule

    if isinstance(change, JoinChange):
        assert before.join is not None
        assert after.join is not None
        _check_states(old, new, STATES, STATES)
        _check_join(old, new, before.join, after.join, change)
        return JoinRule(old=before.join, new=after.join, change=change)
    if before.rank is not None and after.rank is not None:
        states = [(STATE_OF[rank.strategy], *([COUNTS] if change.sorts else [])) for rank in (before.rank, after.rank)]
        _check_states(old, new, *states)
        _check_rank(old, new, before.rank, after.rank, change)
        return RankRule(old=before.rank, new=after.rank, change=change)
    _check_states(old, new, (_SINGLE,), (_SINGLE,))
    _check_key(old, new)
    if StateLayout(_meta(new, _SINGLE)).element.logical not in (Scalar("bool"), TtlType(Scalar("bool"))):
        raise _RefusedError("the new state is not one of booleans")
    return SeenRule(state=_SINGLE)


def _meta(operator: OperatorInventory, state: str) -> StateMetaInfo:
    return operator.keyed_states[state][1]


def _has_ttl(meta: StateMetaInfo) -> bool:
    return isinstance(StateLayout(meta).element.logical, TtlType)


def _check_states(old: OperatorInventory, new: OperatorInventory, before: Sequence[str], after: Sequence[str]) -> None:
    """Refuse operators with other states than those that are computed."""
    for operator, names, which in ((old, before, "old"), (new, after, "new")):
        found = {meta.name for meta in _metas(operator)}
        if found != set(names):
            raise _RefusedError(f"the {which} operator has the states {', '.join(sorted(found)) or 'none'}")
        for meta in _metas(operator):
            if meta.backend_type != KEY_VALUE:
                raise _RefusedError(f"{meta.name} of the {which} operator is asynchronous state")
            if meta.namespace is None or meta.namespace.logical != Scalar("null"):
                raise _RefusedError(f"{meta.name} of the {which} operator has namespaces")
    if {_has_ttl(meta) for meta in _metas(old)} != {_has_ttl(meta) for meta in _metas(new)} or len(
        {_has_ttl(meta) for meta in (*_metas(old), *_metas(new))}
    ) > 1:
        raise _RefusedError("the time to live of the state is added or removed too: change it first")


def _row(serializer: Serializer, what: str) -> RowDataSerializer:
    if not isinstance(serializer, RowDataSerializer):
        raise _RefusedError(f"{what} has no rows")
    return serializer


def _key(operator: OperatorInventory) -> RowDataSerializer:
    key = operator.keyed.key
    if not isinstance(key, RowDataSerializer):
        raise _RefusedError("the keys are not those of SQL")
    return key


def _check_key(old: OperatorInventory, new: OperatorInventory) -> None:
    kinds = [[replace(t, nullable=True) for t in _key(operator).sql] for operator in (old, new)]
    if kinds[0] != kinds[1]:
        raise _RefusedError("the columns of the key have other types")


def _check_join(
    old: OperatorInventory, new: OperatorInventory, before: PlanJoin, after: PlanJoin, change: JoinChange
) -> None:
    key = _key(new)
    for number, source in enumerate(change.sources):
        rows = [
            _record(_meta(operator, STATES[n]), join.sides[n])
            for operator, join, n in ((old, before, source.side), (new, after, number))
        ]
        _check_columns(rows[0], rows[1], source.columns, after.sides[number].columns)
        own = [replace(rows[1].sql[i], nullable=True) for i in after.sides[number].keys]
        if own != [replace(t, nullable=True) for t in key.sql]:
            raise _RefusedError("the columns of the key of both sides have other types")


def _record(meta: StateMetaInfo, side: JoinSide) -> RowDataSerializer:
    """Return the serializer of the rows of a side, after a check that its state has the form that the plan tells."""
    from statetool.saving.recomputing.joins import record_serializer

    layout = StateLayout(meta)
    try:
        if layout.kind != _KIND[side.layout]:
            raise _RefusedError(f"{meta.name} is a {layout.kind} state")
        row = _row(record_serializer(meta, side), meta.name)
    except KeyError:
        raise _RefusedError(f"{meta.name} does not have the number of partners of its rows") from None
    if len(row.sql) != len(side.columns):
        raise _RefusedError(f"{meta.name} has {len(row.sql)} columns, and the plan {len(side.columns)}")
    logical = layout.element.logical
    value = logical.value if isinstance(logical, TtlType) else logical
    if side.layout == "counted" and not side.counts_partners and value != Scalar("int32"):
        raise _RefusedError(f"{meta.name} has other values than the number of times that a row occurs")
    return row


def _check_columns(
    before: RowDataSerializer, after: RowDataSerializer, columns: Sequence[int], names: Sequence[str]
) -> None:
    from statetool.saving.recomputing.rows import other_type

    if len(columns) != len(after.sql):
        raise _RefusedError("the plan does not fit the rows of the state")
    for name, i, kind in zip(names, columns, after.sql, strict=True):
        if why := other_type(before.sql[i], kind):
            raise _RefusedError(f"{name} cannot be kept: {why}")


def _check_rank(
    old: OperatorInventory, new: OperatorInventory, before: PlanRank, after: PlanRank, change: RankChange
) -> None:
    from statetool.saving.recomputing.joins import value_serializer
    from statetool.saving.recomputing.rows import is_ordered

    _check_key(old, new)
    rows = []
    for operator, rank in ((old, before), (new, after)):
        meta = _meta(operator, STATE_OF[rank.strategy])
        layout = StateLayout(meta)
        if layout.kind != ("value" if rank.strategy == "top1" else "map"):
            raise _RefusedError(f"{meta.name} is a {layout.kind} state")
        element = value_serializer(layout)
        rows.append(_row(element if rank.strategy == "top1" else element.children()[0][1], meta.name))
    if len(rows[0].sql) != len(before.columns):
        raise _RefusedError("the plan does not fit the rows of the state")
    _check_columns(rows[0], rows[1], change.columns, after.columns)
    for row, rank in zip(rows, (before, after), strict=True):
        for column, i in zip(rank.order, rank.sort, strict=True):
            if not is_ordered(row.sql[i]):
                raise _RefusedError(f"the order of {column.column} ({row.sql[i].root}) is not known")
    if change.sorts:
        _check_sorted(new, after, rows[1])


def _check_sorted(new: OperatorInventory, rank: PlanRank, row: RowDataSerializer) -> None:
    """Refuse states of another form than that of a Top-N that keeps all rows."""
    place = StateLayout(_meta(new, STATE_OF[rank.strategy])).user_key
    kinds = [] if not isinstance(place, RowDataSerializer) else [replace(t, nullable=True) for t in place.sql]
    if kinds != [replace(row.sql[i], nullable=True) for i in rank.sort]:
        raise _RefusedError("the places in the order have other types")
    from statetool.saving.recomputing.joins import value_serializer

    counts = value_serializer(StateLayout(_meta(new, COUNTS))).logical
    if not isinstance(counts, MapType) or counts.value != Scalar("int64"):
        raise _RefusedError(f"{COUNTS} does not count rows")
