"""Joins of compiled plans: what the state of each side holds, and whether the state of another join has it.

Each side keeps its rows by the join key. The row of a side that the result has without a partner also has the number of its partners.

Follows ``StreamExecJoin``, ``JoinUtil.analyzeJoinInput``, ``StreamingJoinOperator`` and ``StreamingSemiAntiJoinOperator``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from statetool.sql_plans.conditions import unknown_part
from statetool.sql_plans.expressions import condition_text, is_identified

#: How a side stores its rows: one per join key, by their unique key, or each with the number of times that it occurs.
Layout: TypeAlias = Literal["single", "unique", "counted"]
STATES: Final = ("left-records", "right-records")
#: Kinds of joins by the sides whose rows have the number of their partners.
_OUTER: Final[Mapping[str, tuple[bool, bool]]] = {
    "INNER": (False, False),
    "LEFT": (True, False),
    "RIGHT": (False, True),
    "FULL": (True, True),
    "SEMI": (True, False),
    "ANTI": (True, False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSide:
    """One side of a join.

    Attributes
    ----------
    columns
        Texts of the columns of its rows.
    keys
        Positions of the columns of the join key.
    unique
        Positions of the columns by which rows are stored, if they have a unique key beside the join key.
    counts_partners
        Whether each row has the number of its partners.
    rows
        What decides which rows come.
    """

    columns: tuple[str, ...]
    keys: tuple[int, ...]
    layout: Layout
    unique: tuple[int, ...]
    counts_partners: bool
    rows: str

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The texts of the columns of the join key."""
        return tuple(self.columns[i] for i in self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanJoin:
    """A join.

    Attributes
    ----------
    filters_nulls
        For each column of the join key, whether rows in which it is null have no partner.
    condition
        The condition beside the equality of the keys as text, ``None`` if there is none.
    evaluated
        The same as the plan has it.
    swapped
        The same as text for the join whose sides are swapped.
    """

    sides: tuple[JoinSide, JoinSide]
    kind: str
    filters_nulls: tuple[bool, ...]
    condition: str | None
    evaluated: Mapping[str, Any] | None = field(default=None, compare=False)
    swapped: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSource:
    """Where the rows of a side come from.

    Attributes
    ----------
    side
        The side of the old join.
    columns
        Positions of the new row's columns in the old row.
    """

    side: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinChange:
    """Change of a join: how its state is computed, or why not.

    Attributes
    ----------
    sources
        The source of each side, empty if the change is refused.
    carries_partners
        For each side, whether the numbers of partners are those of the old rows.
    text
        What changes, empty if the state stays as it is.
    """

    sources: tuple[SideSource, ...] = ()
    carries_partners: tuple[bool, bool] = (False, False)
    text: str = ""
    refusal: str = ""


def join_of(spec: Mapping[str, Any], inputs: Sequence[Sequence[str]], rows: Sequence[str]) -> PlanJoin | None:
    """Return the join of a plan's node, ``None`` if it is not of a known kind.

    Parameters
    ----------
    inputs
        Texts of the columns of each input.
    rows
        What decides which rows each input has.
    """
    join = spec["joinSpec"]
    kind = str(join["joinType"])
    if kind not in _OUTER or len(inputs) != 2:
        return None
    condition = join.get("nonEquiCondition")
    sides = []
    for number, name in enumerate(("left", "right")):
        keys = tuple(join[f"{name}Keys"])
        found = spec.get(f"{name}UpsertKeys") or spec.get(f"{name}UniqueKeys") or ()
        layout, unique = _layout([tuple(k) for k in found], keys)
        side = JoinSide(
            columns=tuple(inputs[number]),
            keys=keys,
            layout=layout,
            unique=unique,
            counts_partners=_OUTER[kind][number],
            rows=rows[number],
        )
        sides.append(side)
    names, swapped = (
        [f"{text} of input {n ^ flip}" for n, columns in enumerate(inputs) for text in columns] for flip in (0, 1)
    )
    return PlanJoin(
        sides=(sides[0], sides[1]),
        kind=kind,
        filters_nulls=tuple(map(bool, join["filterNulls"])),
        condition=None if condition is None else condition_text(condition, names),
        evaluated=condition,
        swapped=None if condition is None else condition_text(condition, swapped),
    )


def _layout(unique_keys: Sequence[tuple[int, ...]], keys: tuple[int, ...]) -> tuple[Layout, tuple[int, ...]]:
    if not unique_keys:
        return "counted", ()
    if any({*key} <= {*keys} for key in unique_keys):
        return "single", ()
    return "unique", min(unique_keys, key=len)  # the first of the smallest


def join_change(old: PlanJoin | None, new: PlanJoin | None) -> JoinChange | None:
    """Return what becomes of the state of a join, ``None`` if the plans do not tell."""
    if old is None or new is None:
        return None
    rows = [tuple(side.rows for side in join.sides) for join in (old, new)]
    if sorted(rows[0]) != sorted(rows[1]):
        left, right = (replace(side, rows=r) for side, r in zip(old.sides, rows[1], strict=True))
        same = replace(old, sides=(left, right))
        is_same = all(map(is_identified, rows[1])) and join_change(same, new) == JoinChange()
        return None if is_same else JoinChange(refusal="the rows of its inputs change too: change them first")
    sources = []
    for number in (0, 1):
        found = _source(old, new, number)
        if isinstance(found, str):
            return JoinChange(refusal=found)
        sources.append(found)
    texts = list(_differences(old, new, sources))
    if not texts:
        return JoinChange()
    for number, source in enumerate(sources):
        before, after = old.sides[source.side], new.sides[number]
        if before.key_columns != after.key_columns and (gone := set(before.key_columns) - {*after.columns}):
            lost = ", ".join(sorted(gone))
            return JoinChange(
                refusal=f"the key of the {_name(number)} rows changes, and they lose {lost}: change the key first"
            )
    carries = tuple(_carries(old, new, sources, n) for n in (0, 1))
    computes = [n for n in (0, 1) if new.sides[n].counts_partners and not carries[n]]
    if computes and (why := _uncounted(old, new, sources)):
        return JoinChange(refusal=f"the numbers of partners of the {_name(computes[0])} rows are new, and {why}")
    if computes:
        texts.append(f"the partners of the {' and '.join(map(_name, computes))} rows are counted")
    return JoinChange(sources=tuple(sources), carries_partners=(carries[0], carries[1]), text="; ".join(texts))


def _name(number: int) -> str:
    return ("left", "right")[number]


def _source(old: PlanJoin, new: PlanJoin, number: int) -> SideSource | str:
    """Return the old side that has the rows of a new one, or why there is none. The side of the same name comes first."""
    side = new.sides[number]
    candidates = [n for n in (number, 1 - number) if old.sides[n].rows == side.rows]
    if not candidates:
        return f"no side of the old join has the rows of the {_name(number)} side ({side.rows})"
    if not is_identified(side.rows):
        return f"the plans do not tell which rows the {_name(number)} side has"
    if unknown := [name for name in side.columns if not is_identified(name)]:
        return f"the plans do not tell which column {unknown[0]} of the {_name(number)} side is"
    missing: list[str] = []
    for n in candidates:
        before = old.sides[n]
        lacking = [name for name in side.columns if name not in before.columns or not is_identified(name)]
        if lacking:
            missing = missing or lacking
        elif side.layout != "counted" and before.layout == "counted":
            return f"the {_name(number)} side has a unique key, and the old rows had none"
        else:
            return SideSource(side=n, columns=tuple(before.columns.index(name) for name in side.columns))
    return f"the {_name(number)} side needs {', '.join(missing)}, which its old rows do not have"


def _differences(old: PlanJoin, new: PlanJoin, sources: Sequence[SideSource]) -> Iterator[str]:
    for number, source in enumerate(sources):
        before, after, name = old.sides[source.side], new.sides[number], _name(number)
        if source.side != number:
            yield f"the {name} rows were those of the {_name(source.side)} side"
        if before.columns != after.columns:
            gone = [c for c in before.columns if c not in after.columns]
            yield f"the {name} rows lose {', '.join(gone)}" if gone else f"the columns of the {name} rows move"
        if before.key_columns != after.key_columns:
            yield f"the key of the {name} rows was ({', '.join(before.key_columns)}) and is ({', '.join(after.key_columns)})"
        keys = [tuple(side.columns[i] for i in side.unique) for side in (before, after)]
        if before.layout != after.layout or keys[0] != keys[1]:
            yield f"the {name} rows are stored by another unique key"
        if before.counts_partners and not after.counts_partners:
            yield f"the {name} rows lose the numbers of their partners"
        elif after.counts_partners and (not before.counts_partners or not _same_partners(old, new, sources, number)):
            yield f"the {name} rows get the numbers of their partners"


def _same_partners(old: PlanJoin, new: PlanJoin, sources: Sequence[SideSource], number: int) -> bool:
    """Return True if each row of a side has the partners that it had."""
    own, other = sources[number].side, sources[1 - number].side
    if not all(is_identified(join.condition or "") for join in (old, new)):
        return False
    return own != other and _matching(old, own) == _matching(new, number)


def _matching(join: PlanJoin, number: int) -> tuple[object, ...]:
    """Return what decides which rows are partners of the rows of a side: pairs of key columns, and the condition by side."""
    own, other = join.sides[number].key_columns, join.sides[1 - number].key_columns
    condition = join.swapped if number else join.condition
    return (*sorted(zip(own, other, join.filters_nulls, strict=True)), condition)


def _carries(old: PlanJoin, new: PlanJoin, sources: Sequence[SideSource], number: int) -> bool:
    return (
        new.sides[number].counts_partners
        and old.sides[sources[number].side].counts_partners
        and _same_partners(old, new, sources, number)
    )


def _uncounted(old: PlanJoin, new: PlanJoin, sources: Sequence[SideSource]) -> str:
    """Return why partners cannot be counted, empty if they can: key by key, if the key is the same."""
    if new.condition is not None and (part := unknown_part(new.evaluated or {})):
        return f"{part} in the condition {new.condition} is not evaluated"
    for number, source in enumerate(sources):
        if old.sides[source.side].key_columns != new.sides[number].key_columns:
            return "the join key changes too: change it in an inner join first, and then the kind of the join"
    return ""
