"""Elements of operator state are changed, removed and added; all others stay in their subtask with their bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import EncodeError, MissingKeyError, OptionError, UnknownNameError
from tests.support.snapshots.entries import damage
from tests.support.zoo import ZOO

LISTS, BROADCAST = "op-lists", "keyed-broadcast"


def rows(path: str, uid: str, state: str) -> list[Any]:
    found: list[Any] = statetool.load(path)[uid].to_arrow(state, subtask=True).to_pylist()
    return found


def edited(tmp_path: Path, uid: str, state: str, **edits: Any) -> tuple[list[Any], list[Any]]:
    """Return the rows of a state before and after an edit that leaves everything else."""
    target = str(tmp_path / "new")
    statetool.set_elements(ZOO, target, uid, state, **edits)
    assert not damage(tmp_path / "new")
    for other in ((LISTS, "buffered"), (LISTS, "offsets"), (BROADCAST, "limits")):
        assert other == (uid, state) or rows(target, *other) == rows(ZOO, *other)
    return rows(ZOO, uid, state), rows(target, uid, state)


def test_chosen_elements_change(tmp_path: Path) -> None:
    before, after = edited(
        tmp_path, LISTS, "buffered", where="value.f0 < 5 AND subtask <> 1", change={"value.f1": "new"}
    )
    for row in before:
        if row["value"]["f0"] < 5 and row["subtask"] != 1:
            row["value"]["f1"] = "new"
    assert after == before


def test_chosen_elements_are_removed(tmp_path: Path) -> None:
    before, after = edited(tmp_path, LISTS, "offsets", where="value.f0 LIKE 'part-_'", remove=True)
    assert after == [row for row in before if len(row["value"]["f0"]) != 6] != before


def test_an_element_is_added_to_the_subtask_with_the_fewest(tmp_path: Path) -> None:
    before, after = edited(tmp_path, LISTS, "offsets", add=[{"f0": "part-99", "f1": 7}])
    assert [row for row in after if row not in before] == [{"value": {"f0": "part-99", "f1": 7}, "subtask": 1}]
    assert [row for row in after if row in before] == before


def test_copies_of_a_union_list_are_removed(tmp_path: Path) -> None:
    """Each subtask has the same list, as if the job had restored it and stored it again in each."""
    tripled, target = str(tmp_path / "tripled"), str(tmp_path / "single")
    added = [{"f0": "a", "f1": 1}, {"f0": "b", "f1": 2}]
    statetool.set_elements(
        ZOO, str(tmp_path / "none"), LISTS, "offsets", where="TRUE", remove=True, add=added, subtask="all"
    )
    statetool.set_elements(str(tmp_path / "none"), tripled, LISTS, "offsets", add=[{"f0": "a", "f1": 3}], subtask=2)
    assert len(rows(tripled, LISTS, "offsets")) == 7
    plan = statetool.set_elements(tripled, target, LISTS, "offsets", remove_copies=True)
    assert [(row.subtask, row.change) for row in plan.changes] == [(n, "copy removed") for n in (1, 1, 2, 2)]
    left = [(row["subtask"], row["value"]["f0"], row["value"]["f1"]) for row in rows(target, LISTS, "offsets")]
    assert left == [(0, "a", 1), (0, "b", 2), (2, "a", 3)]
    with pytest.raises(OptionError, match="each subtask has the same"):
        statetool.set_elements(
            str(tmp_path / "none"), str(tmp_path / "x"), LISTS, "offsets", add=[{"f0": "c", "f1": 1}]
        )


def test_all_copies_of_a_broadcast_state_change(tmp_path: Path) -> None:
    before, after = edited(
        tmp_path,
        BROADCAST,
        "limits",
        where="key > 4",
        remove=True,
        add=[{"key": 99, "value": {"f0": 1, "f1": "x"}}],
    )
    new = [{"key": 99, "value": {"f0": 1, "f1": "x"}, "subtask": n} for n in (0, 1)]
    wanted = [row for row in before if row["key"] <= 4] + new
    assert sorted(map(str, after)) == sorted(map(str, wanted))


def test_edits_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def edit(state: str, uid: str = LISTS, **edits: Any) -> None:
        statetool.set_elements(ZOO, str(tmp_path / "new"), uid, state, **edits)

    with pytest.raises(OptionError, match="nothing to change"):
        edit("offsets")
    with pytest.raises(OptionError, match="chosen by a condition"):
        edit("offsets", remove=True)
    with pytest.raises(UnknownNameError, match="did you mean offsets"):
        edit("offset", where="TRUE", remove=True)
    with pytest.raises(MissingKeyError, match="none of 22 elements"):
        edit("offsets", where="value.f1 = 5", remove=True)
    with pytest.raises(MissingKeyError, match="no two elements are equal"):
        edit("offsets", remove_copies=True)
    with pytest.raises(OptionError, match="a list state has no copies"):
        edit("buffered", remove_copies=True)
    with pytest.raises(OptionError, match="no subtask 3"):
        edit("offsets", add=[{"f0": "a", "f1": 1}], subtask=3)
    with pytest.raises(EncodeError, match="'a' is not a value of type int64"):
        edit("offsets", add=[{"f0": "a", "f1": "a"}])
    with pytest.raises(OptionError, match="the key 0 already exists"):
        edit("limits", BROADCAST, add=[{"key": 0, "value": {"f0": 1, "f1": "x"}}])
    assert not (tmp_path / "new").exists()


def test_the_command_lists_changes(tmp_path: Path) -> None:
    options = ["--uid", LISTS, "--state", "offsets", "--where", "value.f0 = 'part-4'", "--set", "value.f1=5"]
    result = CliRunner().invoke(cli, ["set-elements", ZOO, str(tmp_path / "new"), *options, "--dry-run"])
    assert (result.exit_code, "nothing was written" in result.stderr) == (0, True)
    assert "{f0: 'part-4', f1: 1700000004000}" in result.stdout
    assert "{f0: 'part-4', f1: 5}" in result.stdout
