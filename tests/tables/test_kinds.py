"""Kinds of tables: which kind a table of the demo's operators is of, and that splits carry kinds to tasks."""

from __future__ import annotations

import pickle

import pytest

import statetool
from statetool.errors import UnknownNameError
from statetool.tables.kinds import registry as kinds
from statetool.tables.kinds.registry import KINDS, find_kind
from tests.support.zoo import ZOO


@pytest.mark.parametrize(
    ("uid", "table", "kind"),
    [
        ("with-ttl", "keyed_state", kinds.KeyedStateKind()),
        ("timers", "timers", kinds.TimersKind()),
        ("with-ttl", "ttl-map", kinds.StateKind()),
        ("win-count", "windows", kinds.WindowsKind()),
        ("op-lists", "offsets", kinds.ELEMENTS),
    ],
)
def test_each_table_has_one_kind(uid: str, table: str, kind: object) -> None:
    assert find_kind(statetool.load(ZOO).inventory.operator(uid), table) == kind


def test_an_unknown_table_is_of_no_kind() -> None:
    with pytest.raises(UnknownNameError):
        find_kind(statetool.load(ZOO).inventory.operator("timers"), "tmers")


def test_kinds_are_the_same_in_a_task() -> None:
    copies = pickle.loads(pickle.dumps(KINDS))
    assert copies == KINDS
    assert len(set(copies)) == len(KINDS)
