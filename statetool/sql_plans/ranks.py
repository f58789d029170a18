"""Top-N and deduplication of compiled plans: which rows of a key the state holds, and whether the state of another one has them.

Follows ``StreamExecRank``, ``AppendOnlyTopNFunction``, ``UpdatableTopNFunction``, ``RetractableTopNFunction``, ``FastTop1Function`` and
``StreamExecDeduplicate``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from statetool.sql_plans.expressions import is_identified

#: How rows are kept: by their order, by their unique key, all of them, or only the first.
Strategy: TypeAlias = Literal["append", "update", "retract", "top1"]
_STRATEGIES: Final[Mapping[str, Strategy]] = {"AppendFast": "append", "UpdateFast": "update", "Retract": "retract"}
#: The state in which strategy ``retract`` counts the rows of each place in the order.
COUNTS: Final = "sorted-map"
#: The state with the rows of each strategy.
STATE_OF: Final[Mapping[Strategy, str]] = {
    "append": "data-state-with-append",
    "update": "data-state-with-update",
    "retract": "data-state",
    "top1": "Top1-Rank-State",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedColumn:
    """A column of an order."""

    column: str
    ascending: bool
    nulls_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRank:
    """A Top-N.

    Attributes
    ----------
    columns
        Texts of the columns of its rows.
    last
        The last rank of the result. Rows up to it are kept, even if the result begins later.
    numbered
        Whether Flink counts the ranks, for the result or because it begins later. Some rows after the last rank are then kept.
    sort, keys
        Positions of the columns of the order, and of the unique key (strategy ``update``).
    """

    strategy: Strategy
    columns: tuple[str, ...]
    partition: tuple[str, ...]
    order: tuple[SortedColumn, ...]
    last: int
    numbered: bool
    sort: tuple[int, ...]
    keys: tuple[int, ...]
    rows: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSingle:
    """A deduplication.

    Attributes
    ----------
    kept
        Which row of a key is kept: ``last row by processing time``.
    """

    kept: str
    key: tuple[str, ...]
    rows: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankChange:
    """Change of a Top-N: how its state is computed, or why not.

    Attributes
    ----------
    columns
        Positions of the new row's columns in the old row.
    text
        What changes, empty if the state stays as it is.
    sorts
        Whether all rows are kept in another order.
    """

    columns: tuple[int, ...] = ()
    text: str = ""
    refusal: str = ""
    sorts: bool = False


def rank_of(spec: Mapping[str, Any], inputs: Sequence[Sequence[str]], rows: str, *, is_time: bool) -> PlanRank | None:
    """Return the Top-N of a plan's node, ``None`` if it is not of a known kind.

    Parameters
    ----------
    is_time
        Whether the order is that of processing time: such rows are not stored.
    """
    columns, ranks = tuple(inputs[0]), spec["rankRange"]
    strategy = _STRATEGIES.get(str(spec["rankStrategy"]["type"]))
    if strategy is None or str(spec["rankType"]) != "ROW_NUMBER" or ranks.get("type") != "Constant" or is_time:
        return None
    last = int(ranks["end"])
    if strategy != "retract" and last == 1:
        strategy = "top1"
    fields = spec["orderBy"]["fields"]
    order = (
        SortedColumn(column=columns[f["index"]], ascending=bool(f["isAscending"]), nulls_last=bool(f["nullIsLast"]))
        for f in fields
    )
    return PlanRank(
        strategy=strategy,
        columns=columns,
        partition=tuple(columns[i] for i in spec["partition"]["fields"]),
        order=tuple(order),
        last=last,
        numbered=bool(spec["outputRowNumber"]) or int(ranks.get("start", 1)) > 1,
        sort=tuple(f["index"] for f in fields),
        keys=tuple(spec["rankStrategy"].get("primaryKeys") or ()),
        rows=rows,
    )


def rank_change(old: PlanRank | None, new: PlanRank | None) -> RankChange | None:
    """Return what becomes of the state of a Top-N, ``None`` if the plans do not tell, or only the columns change."""
    if old is None or new is None or old.rows != new.rows or old.partition != new.partition:
        return None
    named = (old.rows, *old.partition, *(s.column for s in (*old.order, *new.order)))
    if not all(map(is_identified, named)):
        return None
    if old.order != new.order:
        texts = [", ".join(map(_sorted_text, rank.order)) for rank in (old, new)]
        text = f"the order was {texts[0]} and is {texts[1]}"
        if old.strategy == new.strategy == "retract":
            missing = [c for c in new.columns if c not in old.columns or not is_identified(c)]
            if missing:
                return RankChange(refusal=f"{text}, and the old rows have no {', '.join(missing)}")
            columns = tuple(old.columns.index(c) for c in new.columns)
            return RankChange(columns=columns, text=f"{text}: all rows are kept, and sorted again", sorts=True)
        return RankChange(refusal=f"{text}: the old query did not keep the first rows of the new order")
    if old.strategy == new.strategy == "retract":
        return RankChange()
    if new.last > old.last:
        text = f"the ranks were up to {old.last} and are up to {new.last}: the state has no rows after rank {old.last}"
        return RankChange(refusal=text)
    kinds = (old.strategy, new.strategy)
    if kinds[0] != kinds[1] and kinds not in (("append", "top1"), ("update", "top1")):
        return RankChange(refusal="rows are kept in another way, because the input is updated in another way")
    is_cut = old.numbered and not new.numbered and new.strategy != "top1"
    if new.last == old.last and not is_cut:
        return RankChange()
    if missing := [c for c in new.columns if c not in old.columns or not is_identified(c)]:
        return RankChange(refusal=f"the old rows have no {', '.join(missing)}")
    if old.strategy == "update" and [old.columns[i] for i in old.keys] != [new.columns[i] for i in new.keys]:
        return RankChange(refusal="the unique key of the rows changes")
    text = f"of {old.last} rows per key, the first {new.last} remain"
    if new.last == old.last:
        text = f"rows after rank {new.last}, which Flink keeps if the result has the ranks, are removed"
    return RankChange(columns=tuple(old.columns.index(c) for c in new.columns), text=text)


def single_of(spec: Mapping[str, Any], inputs: Sequence[Sequence[str]], rows: str) -> PlanSingle:
    """Return the deduplication of a plan's node; parameters as for :func:`rank_of`."""
    key = tuple(inputs[0][i] for i in spec["uniqueKeys"])
    return PlanSingle(kept=kept_row(spec), key=key, rows=rows)


def kept_row(spec: Mapping[str, Any]) -> str:
    """Return which row of a key a deduplication keeps."""
    return f"{'last' if spec['keepLastRow'] else 'first'} row by {'row' if spec['isRowtime'] else 'processing'} time"


def single_change(old: PlanSingle | None, new: PlanSingle | None) -> RankChange | None:
    """Return what becomes of the state of a deduplication, ``None`` if the plans do not tell, or the same row is kept."""
    if old is None or new is None or old.rows != new.rows or old.key != new.key or old.kept == new.kept:
        return None
    if not all(map(is_identified, (*old.key, old.rows))):
        return None
    if (old.kept, new.kept) == (_LAST, _FIRST):
        return RankChange(
            text="of the last row of each key, only remains that the key had one: the next rows of the key are left out"
        )
    return RankChange(refusal=f"the state has the {old.kept}, and the new query needs the {new.kept}")


_LAST: Final = "last row by processing time"
_FIRST: Final = "first row by processing time"


def _sorted_text(one: SortedColumn) -> str:
    return f"{one.column} {'ASC' if one.ascending else 'DESC'} NULLS {'LAST' if one.nulls_last else 'FIRST'}"
