"""Changes of a SQL query that concern operators as a whole: moved views of aggregates, other rows, and groups that are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader, write_keyed_header
from statetool.migration.choices import Change
from statetool.migration.keys import KeyMigration
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.sql_plans.aggregates import changed_settings, moved_views
from statetool.sql_plans.groups import coarser_columns, column_rule

if TYPE_CHECKING:
    from statetool.saving.rekeying.rows import ColumnRule
    from statetool.types.operators import OperatorLabel

_ACCUMULATOR: Final = "accState"
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStep:
    """A change of an operator that no conversion of one state is.

    Attributes
    ----------
    name
        The state, or what changes.
    new_state
        The new name of the state, if it gets one.
    drops
        Whether the state is left out.
    """

    uid: OperatorLabel
    name: str
    change: Change
    text: str
    loses: bool = False
    accepted: bool = False
    new_state: str | None = None
    drops: bool = False

    @property
    def step(self) -> str:
        """The name under which the step is accepted."""
        return f"{self.uid}.{self.name}"

    @property
    def is_open(self) -> bool:
        """Whether the step was not accepted."""
        return self.loses and not self.accepted


def operator_steps(old: OperatorInventory, new: OperatorInventory) -> Iterator[OperatorStep]:
    """Yield the steps of moved views, and of settings that decide which rows an operator keeps."""
    before, after = old.plan_aggregates, new.plan_aggregates
    for change in changed_settings(before, after):
        text = f"{change}: the state has rows of the old query and lacks others"
        yield OperatorStep(uid=old.label, name="rows", change="rows", text=text, loses=True)
    for state, moved in moved_views(before, after, tuple(old.keyed_states)).items():
        if moved is None:
            text = "the new query has no such aggregate: its values are dropped"
            yield OperatorStep(uid=old.label, name=state, change="drop", text=text, loses=True, drops=True)
        else:
            yield OperatorStep(uid=old.label, name=state, change="rename", text=f"becomes {moved}", new_state=moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumnsChange:
    """Change of the columns by which an aggregation groups: how it is done, or why not."""

    keys: KeyMigration | None = None
    is_one_group: bool = False
    steps: tuple[OperatorStep, ...] = ()
    refusal: str = ""


def change_key_columns(old: OperatorInventory, new: OperatorInventory) -> KeyColumnsChange | None:
    """Return the change of an operator's keys, ``None`` if plans do not tell of one."""
    columns = coarser_columns(old.plan_aggregates, new.plan_aggregates)
    if columns is None:
        return None
    if isinstance(columns, str):
        return KeyColumnsChange(refusal=columns)
    before, after = old.keyed.key, new.keyed.key
    if not isinstance(before, RowDataSerializer) or not isinstance(after, RowDataSerializer):
        return KeyColumnsChange(refusal="the keys are not those of SQL")
    kinds = [[replace(t, nullable=True) for t in key.sql] for key in (before, after)]
    if [kinds[0][i] for i in columns] != kinds[1]:
        return KeyColumnsChange(refusal="the columns of the key have other types")
    merges = len(columns) < len(before.sql)
    rules, steps, why = _rules(old, new) if merges else ((), (), "")
    if why:
        return KeyColumnsChange(refusal=why)
    keys = _key_migration(old, new, columns, rules, merges=merges)
    return KeyColumnsChange(keys=keys, is_one_group=not columns, steps=steps)


def _key_migration(
    old: OperatorInventory,
    new: OperatorInventory,
    columns: tuple[int, ...],
    rules: tuple[ColumnRule, ...],
    *,
    merges: bool,
) -> KeyMigration:
    from statetool.saving.rekeying.change import KeyChange
    from statetool.saving.rekeying.rows import KeyColumns, RowMerge

    before, after = old.keyed.key, new.keyed.key
    assert before is not None
    assert after is not None
    change = KeyChange(
        before=_header_of(before),
        before_types=old.types,
        after=_header_of(after),
        types=new.types,
        maker=KeyColumns(columns, after),
        policies={_ACCUMULATOR: "merge"} if merges else {},
        merges={_ACCUMULATOR: RowMerge(rules)} if merges else {},
    )
    assert old.plan_aggregates is not None
    assert new.plan_aggregates is not None
    names = [", ".join(p.columns["key"]) for p in (old.plan_aggregates, new.plan_aggregates)]
    text = f"({names[0]}) becomes ({names[1]})"
    if merges:
        text += ": accumulators of groups that become one are merged"
    return KeyMigration(uid=old.label, before=before.type_name, after=after.type_name, text=text, change=change)


def _header_of(key: Serializer) -> bytes:
    return write_keyed_header(KeyedHeader(version=CURRENT_VERSION, compressed=False, key=key, states=(), size_bytes=0))


def _rules(
    old: OperatorInventory, new: OperatorInventory
) -> tuple[tuple[ColumnRule, ...], tuple[OperatorStep, ...], str]:
    """Return the rule of each column of the new accumulator, what is not exact, and why groups cannot be merged."""
    states = [(name, meta) for side in (old, new) for name, (_, meta) in side.keyed_states.items()]
    others = {name for name, meta in states if meta.kind != "timers"} - {_ACCUMULATOR}
    if others:
        return (
            (),
            (),
            f"groups cannot be merged: {', '.join(sorted(others))} holds values of an aggregate beside the accumulator",
        )
    meta = new.keyed_states[_ACCUMULATOR][1]
    row = next((part for part in all_parts(meta.value) if isinstance(part, RowDataSerializer)), None)
    assert new.plan_aggregates is not None
    names = new.plan_aggregates.columns.get(_ACCUMULATOR)
    if row is None or names is None or len(names) != len(row.sql):
        return (), (), "groups cannot be merged: the plan does not name the columns of the accumulator"
    rules: list[ColumnRule] = []
    steps = []
    for name, sql in zip(names, row.sql, strict=True):
        rule = column_rule(name, sql)
        if rule is None:
            return (), (), f"groups cannot be merged: nothing tells {name} of two groups together from those of each"
        rules.append(rule)
        if sql.root in _FLOATS:
            why = (
                "its last digits depend on the order of rows"
                if rule == "sum"
                else "which of NaN and numbers it is depends on the order of rows"
            )
            text = f"{name} is {sql.root}: {why}"
            steps.append(OperatorStep(uid=old.label, name=f"key.{name}", change="merge", text=text, loses=True))
    return tuple(rules), tuple(steps), ""
