"""States of the same layout are read, measured and checked together, with the results of one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.analysis.statistics.records import LargestRow
from statetool.analysis.statistics.statistics import Statistics
from statetool.analysis.verification import entry_check
from statetool.entries import keys, selection
from statetool.errors import DecodeError
from statetool.formats.keyed.entries import EntryBatch
from tests.support.snapshots.build import INT, LONG
from tests.support.snapshots.canonical import (
    Subtask,
    composite_key,
    encoded,
    group_of,
    keyed,
    savepoint,
    serializer,
    timers,
)

KEYS = range(5)
STATES = tuple(f"s{i}" for i in range(24))
Entries = list[tuple[str, int, bytes, bytes]]


def unchanged(entries: Entries) -> Entries:
    return entries


def wide(folder: Path, change: Callable[[Entries], Entries] = unchanged) -> statetool.Savepoint:
    """Write states of longs, of ints and timers; every third state is of ints."""
    long, kinds = serializer(LONG), [INT if i % 3 == 2 else LONG for i in range(len(STATES))]
    metas = [keyed(name, "value", kind) for name, kind in zip(STATES, kinds, strict=True)]
    entries = [
        (name, group_of(long, key, 128), composite_key(encoded(long, key)), encoded(serializer(kind), key * 3))
        for name, kind in zip(STATES, kinds, strict=True)
        for key in KEYS
    ]
    time = (1 << 63).to_bytes(8, "big")
    entries += [
        ("_timer_state/event_t", group_of(long, key, 128), time + encoded(long, key) + b"\0", b"") for key in KEYS
    ]
    folder.mkdir()
    subtask = Subtask(key=LONG, states=[*metas, timers("_timer_state/event_t", LONG)], entries=change(entries))
    savepoint(folder, [subtask])
    return statetool.load(str(folder), uids=["op"])


def of_key(entries: Entries, state: str, number: int) -> tuple[str, int, bytes, bytes]:
    return [entry for entry in entries if entry[0] == state][number]


def test_keys_of_all_states_of_a_layout_are_split_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(split: Callable[..., keys.SplitKeys]) -> Callable[..., keys.SplitKeys]:
        def call(batch: EntryBatch, *arguments: Any) -> keys.SplitKeys:
            calls.append(len(batch))
            return split(batch, *arguments)

        return call

    monkeypatch.setattr(selection, "find_parts", counted(keys.find_parts))
    monkeypatch.setattr(entry_check, "split_keys", counted(keys.split_keys))
    opened = wide(tmp_path / "wide")
    rows = opened["op"].to_arrow().to_pylist()
    assert sorted(row["key"] for row in rows) == list(KEYS)
    assert all(row[name] == row["key"] * 3 for row in rows for name in STATES)
    assert calls == [len(STATES) * len(KEYS)]
    calls.clear()
    found = opened.stats()
    assert calls == [len(STATES) * len(KEYS)]
    by_state = {row.state: (row.entries, row.keys, row.largest_value) for row in found.rows("states")}
    assert by_state == {
        **{name: (5, 5, 4 if i % 3 == 2 else 8) for i, name in enumerate(STATES)},
        "_timer_state/event_t": (5, None, 0),
    }
    assert len(found.rows("sizes")) > (len(STATES) + 1) * len(KEYS)
    # Of values of equal size, those of the first key of the first key group count as the largest.
    first = min((row.key_group, row.key) for row in rows_of_keys(found))
    assert {(row.key_group, row.key) for row in found.rows("largest") if row.what == "value"} == {first}
    calls.clear()
    verified = statetool.verify(opened, deep=True)
    assert (verified.problems, verified.entries, verified.keys) == ((), (len(STATES) + 1) * len(KEYS), len(KEYS))
    assert sorted(calls) == [len(STATES) // 3 * len(KEYS), len(STATES) // 3 * 2 * len(KEYS)]


def rows_of_keys(found: Statistics) -> Sequence[LargestRow]:
    return [row for row in found.rows("largest") if row.what == "key"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda e: (e[0], e[1], e[2], e[3][:-1]), "goes beyond the end of its frame"),
        (lambda e: (e[0], e[1], e[2], e[3] + b"\0"), "1 bytes follow a value"),
        (lambda e: (e[0], (e[1] + 1) % 128, e[2], e[3]), "its hash code belongs to"),
        (lambda e: (e[0], e[1], e[2] + b"\7", e[3]), "1 bytes follow key and namespace"),
        (lambda e: (e[0], e[1], e[2][:-2], e[3]), "goes beyond the end of its frame"),
    ],
    ids=["short", "long", "key group", "long key", "short key"],
)
def test_a_damaged_entry_of_one_state_is_named(
    tmp_path: Path, damage: Callable[[tuple[str, int, bytes, bytes]], tuple[str, int, bytes, bytes]], words: str
) -> None:
    def change(entries: Entries) -> Entries:
        bad = of_key(entries, "s9", 2)
        return [damage(entry) if entry is bad else entry for entry in entries]

    (problem,) = statetool.verify(wide(tmp_path / "wide", change), deep=True).problems
    assert (problem.state, problem.severity) == ("s9", "error")
    assert words in problem.problem


def test_a_second_entry_of_one_state_is_named(tmp_path: Path) -> None:
    opened = wide(tmp_path / "wide", lambda entries: [*entries, of_key(entries, "s4", 3)])
    (problem,) = statetool.verify(opened).problems
    assert (problem.state, problem.problem.partition(" [")[0]) == ("s4", "a second entry with the same key")


def test_reading_names_the_first_state_with_a_damaged_key(tmp_path: Path) -> None:
    def change(entries: Entries) -> Entries:
        bad = [of_key(entries, name, 1) for name in ("s7", "s3")]
        return [(e[0], e[1], e[2] + b"\7", e[3]) if any(e is b for b in bad) else e for e in entries]

    with pytest.raises(DecodeError, match="1 bytes follow key and namespace") as error:
        wide(tmp_path / "wide", change)["op"].to_arrow()
    assert error.value.where.state == "s3"
