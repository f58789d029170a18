"""Jobs designed to be hard (``tests/support/flink/zoo``), run in Flink 1.13 to 2.3: every value of these jobs is read.

Keys of every type, unusual names, class hierarchies with several levels, states of Flink 2's async API, changelogs without materialized
state, windows of all kinds. The expected values are the jobs' own data, except for windows, whose contents are derived from their elements.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool import flink
from statetool.errors import UndescribedClassError, UnknownSerializerError
from tests.support.checks.corpus_check import Case, Checker
from tests.support.corpora.archives import HERE, unpack

START_MS = 1_700_000_000_000
ELEMENTS = 60
WATERMARK_MS = START_MS + 20_000


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(HERE / "corpus" / "jobs.tar.xz", tmp_path_factory.mktemp("jobs"))


def without_classes(value: Any) -> Any:
    """Drop ``$class``: the jobs always write it, a table only if subclasses may occur."""
    if isinstance(value, list):
        return [without_classes(v) for v in value]
    if isinstance(value, dict):
        return {k: without_classes(v) for k, v in value.items() if k != "$class"}
    return value


class JobChecker(Checker):
    may_be_undeclared = True

    def compare(self, what: str, actual: list[Any], expected: list[Any]) -> None:
        super().compare(what, *([without_classes(v) for v in rows] for rows in (actual, expected)))


def load(folder: Path, **arguments: Any) -> statetool.Savepoint:
    return statetool.load(str(Case(folder).metadata), **arguments)


@pytest.mark.parametrize(
    ("name", "rows", "raw"),
    [
        ("v1_13_6-names-rocks", 328, 0),
        ("v2_0_2-names-changelog", 328, 0),
        ("v1_15_4-keys-heap", 1059, 0),
        ("v1_17_2-keys-changelog", 1059, 0),
        ("v2_3_0-keys-async-forst", 1059, 0),
        ("v1_13_6-beasts-rocks", 144, 0),
        # Snapshots of a heap backend that was never restored do not describe subclasses; 6 of 72 values are of none.
        ("v2_3_0-beasts-heap", 72, 66),
        # A class written by Kryo.
        ("v2_0_2-types-heap", 1210, 24),
    ],
)
def test_every_value_is_what_the_job_put_in(jobs: Path, name: str, rows: int, raw: int) -> None:
    checker = JobChecker(Case(jobs / name), None)
    checker.run()
    assert checker.problems == []
    assert (checker.rows, checker.raw) == (rows, raw)


def test_a_value_without_an_end_names_what_to_declare(jobs: Path) -> None:
    """In the heap layout, data after a value of unknown length is lost; other operators are not affected."""
    checker = JobChecker(Case(jobs / "v2_1_3-types-heap-checkpoint"), None)
    checker.run()
    (problem,) = checker.problems
    assert "t-generic: the end of a value of POJO zoo.Zoo$Deep cannot be found" in problem
    assert 'statetool.declare("zoo.Zoo$Pair"' in problem
    assert checker.rows == 1170


def test_keys_of_a_change_log_are_found_or_asked_for(jobs: Path) -> None:
    types = {"l-double": "DOUBLE", "l-float": "FLOAT", "l-char": flink.basic("Char")}
    bare, told = (load(jobs / "v2_3_0-logged-changelog", key_types=k) for k in ({}, types))
    expected = json.loads((jobs / "v2_3_0-logged-changelog" / "expected.json").read_text())["operators"]
    for uid, described in expected.items():
        rows = {r["key"]: r["value"] for r in described["keyed_state"]["states"]["v"]["rows"]}
        values = {r["key"]: r["value"] for r in told[uid].to_arrow("v").to_pylist()}
        assert values == rows
        if uid in types:
            with pytest.raises(UnknownSerializerError, match=r"they may be .*, which have the same bytes.*key_types"):
                bare[uid].to_arrow("v")
        else:
            assert bare[uid].to_arrow("v").equals(told[uid].to_arrow("v"))


def time_of(n: int) -> int:
    return START_MS + n * 1000


def inside(window: dict[str, int], key: dict[str, Any]) -> list[int]:
    """Return the elements of a key in a window."""
    return [n for n in range(ELEMENTS) if n % 7 == key["number"] and window["start"] <= time_of(n) < window["end"]]


@pytest.mark.parametrize("name", ["v1_20_5-all-merged", "v2_3_0-all-rocks"])
def test_windows_hold_what_was_sent(jobs: Path, name: str) -> None:
    uids = "w-list w-slide w-reduce w-late w-purging w-count-slide w-session w-session-evict w-odd-trigger ruled both interval op-states"
    sp = load(jobs / name).with_uids(uids.split()) if name.startswith("v1") else load(jobs / name)

    def contents(uid: str, table: str = "window-contents") -> list[dict[str, Any]]:
        return list(sp[uid].to_arrow(table).to_pylist())

    # Windows that ended before the watermark have fired and are gone.
    open_windows = [n for n in range(ELEMENTS) if time_of(n) // 20_000 * 20_000 + 20_000 - 1 > WATERMARK_MS]
    assert sorted(r["value"]["f1"] for r in contents("w-list")) == open_windows
    assert all(r["value"]["f1"] in inside(r["namespace"], r["key"]) for r in contents("w-list"))
    for row in contents("w-slide"):
        assert row["value"]["first"] == "".join(f"{n};" for n in inside(row["namespace"], row["key"]))
    for row in contents("w-reduce"):
        assert row["value"]["f1"] == max(inside(row["namespace"], row["key"]))
    assert sorted(r["value"]["f1"] for r in contents("w-late")) == list(range(ELEMENTS))
    assert sorted(r["value"]["f1"] for r in contents("w-purging")) == list(range(35, ELEMENTS))
    assert sorted(r["value"]["value"]["f1"] for r in contents("w-count-slide")) == sorted(
        n for key in range(7) for n in [n for n in range(ELEMENTS) if n % 7 == key][-5 if key < 4 else -4 :]
    )
    # The contents of a session stay with its first window.
    merged = {r["key"]["number"]: r["value"] for r in contents("w-session", "merging-window-set")}
    for row in contents("w-session"):
        both = merged[row["key"]["number"]]
        assert row["namespace"] == both["f1"]
        assert row["value"]["f1"] in inside(both["f0"], row["key"])
    assert {r["value"] for r in contents("w-odd-trigger", "moods")} == {"WILD"}
    assert sorted(r["value"]["f1"] for r in contents("both", "right")) == list(range(ELEMENTS))
    assert {r["key"]["number"]: r["value"] for r in contents("ruled", "keyed:seen")} == {
        n % 7: n for n in range(53, 60)
    }
    assert {r["key"]: r["value"]["number"] for r in contents("ruled", "operator:seen")} == {
        f"r{n % 5}": n for n in range(55, 60)
    }
    # It contains a class that only Kryo can read: exact bytes.
    union = [r["value"] for r in contents("op-states", "deep union")]
    assert sorted(v[1 : v[0]].decode() for v in union) == sorted(f"u{n}" for n in range(ELEMENTS))


def test_subclasses_of_operator_state_are_joined_where_snapshots_describe_them(jobs: Path) -> None:
    """Subtasks of the second checkpoint list the classes seen up to the first one, each in its own order."""
    op = load(jobs / "v1_20_5-all-merged").with_uids(["op-states"])["op-states"]
    classes = [r["value"]["_class"].rpartition("$")[2] for r in op.to_arrow("beasts/of all").to_pylist()]
    kinds = ["Beast", "Bird", "Parrot", "Fish", "Parrot"]
    assert sorted(classes) == sorted(kinds[n % 5] for n in range(ELEMENTS))
    first = load(jobs / "v2_3_0-all-rocks")["op-states"]
    with pytest.raises(
        UndescribedClassError, match=r"a subclass of zoo\.Zoo\$Beast that the snapshot does not describe"
    ):
        first.to_arrow("beasts/of all")
