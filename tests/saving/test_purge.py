"""Expired values, overdue timers and empty lists are removed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import OptionError, UnknownNameError
from statetool.saving.verbs import tally
from statetool.snapshot.inventory import Inventory
from tests.support.checks.corpus_check import Case
from tests.support.quick import quick
from tests.support.snapshots import canonical
from tests.support.snapshots.build import LONG
from tests.support.snapshots.entries import damage, entries_of
from tests.support.zoo import ZOO

KINDS = (
    "v1_20_5-rocksdb-native",
    "v2_3_0-changelog-hashmap",
    "v2_3_0-forst",
    "v2_3_0-rocksdb-canonical",
    "v2_3_0-rocksdb-canonical-compressed",
)
STATES = ("ttl-value", "ttl-map", "ttl-list", "ttl-sum")


def access_times(path: str, uid: str) -> list[int]:
    rows = statetool.load(path)[uid].to_arrow("ttl-list", ttl="raw").to_pylist()
    return sorted(int(r["value"]["last_access"].timestamp() * 1000) for r in rows)


@pytest.mark.parametrize("name", quick(KINDS, "v2_3_0-rocksdb-canonical"))
def test_values_are_those_that_a_read_shows_as_not_expired(corpus: Path, tmp_path: Path, name: str) -> None:
    source = str(Case(corpus / name).metadata)
    uid = next(o.label for o in Inventory(source).operators.values() if "ttl-list" in o.keyed_states)
    times = access_times(source, uid)
    ttl, now = 1_000, times[len(times) // 2] + 1_000
    plan = statetool.purge(source, str(tmp_path / "new"), dict.fromkeys(STATES, ttl), now_ms=now)
    assert [r.state for r in plan.states if r.removed_bytes]
    for state in STATES:
        shown = statetool.load(source)[uid].to_arrow(state, ttl="hide_expired", ttl_ms=ttl, now_ms=now)
        left = statetool.load(str(tmp_path / "new"))[uid].to_arrow(state)
        if "list_index" in shown.column_names:
            shown, left = shown.drop(["list_index"]), left.drop(["list_index"])
        shown = shown.filter(shown["value"].is_valid())
        assert sorted(map(str, left.to_pylist())) == sorted(map(str, shown.to_pylist()))
    new = Inventory(str(tmp_path / "new")).operators[uid]
    others = [{e for e in entries_of(o) if e[1] not in STATES} for o in (Inventory(source).operators[uid], new)]
    assert others[0] == others[1]
    assert not damage(tmp_path / "new")


def test_all_values_expire_at_the_end(tmp_path: Path) -> None:
    plan = statetool.purge(ZOO, str(tmp_path / "new"), dict.fromkeys(STATES, 1), now_ms=1 << 60)
    assert all(r.removed_entries == r.entries and r.removed_bytes == r.size_bytes for r in plan.states)
    rows = statetool.load(str(tmp_path / "new"))["with-ttl"].to_arrow().to_pylist()
    assert all(row[state] is None for row in rows for state in STATES)
    assert all(row["plain"] is not None for row in rows)


def test_nothing_expires_at_the_start(tmp_path: Path) -> None:
    plan = statetool.purge(ZOO, str(tmp_path / "new"), dict.fromkeys(STATES, 1), now_ms=0)
    assert {r.form for r in plan.states} == {"unchanged"}
    assert statetool.load(ZOO).diff(statetool.load(str(tmp_path / "new"))).equal


def test_overdue_timers_of_a_domain(tmp_path: Path) -> None:
    old = statetool.load(ZOO)["timers"].to_arrow("timers").to_pylist()
    limit = sorted(r["timestamp"] for r in old if r["domain"] == "event")[30]
    statetool.purge(ZOO, str(tmp_path / "new"), event_timers_before_ms=limit, operators=["timers"])
    new = statetool.load(str(tmp_path / "new"))["timers"].to_arrow("timers").to_pylist()
    wanted = [r for r in old if r["domain"] != "event" or r["timestamp"] >= limit]
    assert sorted(map(str, new)) == sorted(map(str, wanted))
    assert len(new) < len(old)


def test_what_cannot_be_purged_is_refused(tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    with pytest.raises(OptionError, match="nothing to purge"):
        statetool.purge(ZOO, target)
    with pytest.raises(UnknownNameError, match="ttl-value"):
        statetool.purge(ZOO, target, {"ttl-valu": 1})
    with pytest.raises(OptionError, match="no time to live"):
        statetool.purge(ZOO, target, {"plain": 1})
    assert not (tmp_path / "new").exists()


def test_timers_of_windows_stay(tmp_path: Path) -> None:
    """Their windows may never fire."""
    plan = statetool.purge(ZOO, str(tmp_path / "new"), event_timers_before_ms=1 << 60)
    rows = {(r.operator, r.state.removeprefix("_timer_state/")): r for r in plan.states}
    for uid in ("win-tumble-reduce", "win-session-list"):
        row = rows[uid, "event_window-timers"]
        assert (row.removed_entries, row.left_timers, row.form) == (0, row.entries, "unchanged")
        old, new = (statetool.load(path)[uid].to_arrow("timers") for path in (ZOO, str(tmp_path / "new")))
        assert old.equals(new)
    assert rows["timers", "event_user-timers"].removed_entries == rows["timers", "event_user-timers"].entries > 0
    assert plan.left_timers == sum(r.entries for r in plan.states if r.state.endswith("window-timers")) >= 10
    uid = "win-tumble-reduce"
    times = sorted(statetool.load(ZOO)[uid].to_arrow("timers")["timestamp"].to_pylist())
    some = statetool.purge(ZOO, "unused", event_timers_before_ms=times[-1], operators=[uid], dry_run=True)
    assert some.left_timers == sum(time < times[-1] for time in times)


def test_timers_of_other_namespaces_stay(tmp_path: Path) -> None:
    """An operator of the user's own may keep state by number, and remove it by a timer, as a window does."""
    own, plain = "_timer_state/event_own", "_timer_state/event_plain"
    states = [
        canonical.timers(own, LONG, LONG),
        canonical.timers(plain, LONG),
        canonical.keyed("sums", "value", LONG, LONG),
    ]
    number = (5).to_bytes(8, "big")
    time = (1 << 63 | 1).to_bytes(8, "big")
    entries = [(own, 0, time + number + number, b""), (plain, 0, time + number + b"\0", b"")]
    entries.append(("sums", 0, canonical.composite_key(number, number), number))
    subtask = canonical.Subtask(key=LONG, states=states, entries=entries)
    (tmp_path / "old").mkdir()
    canonical.savepoint(tmp_path / "old", [subtask], max_parallelism=1)
    plan = statetool.purge(str(tmp_path / "old"), str(tmp_path / "new"), event_timers_before_ms=1 << 60)
    assert {r.state: (r.removed_entries, r.left_timers) for r in plan.states} == {own: (0, 1), plain: (1, 0)}


def test_the_command_counts_the_timers_of_windows_that_stay(tmp_path: Path) -> None:
    words = [
        "purge",
        ZOO,
        str(tmp_path / "new"),
        "--event-timers-before",
        str(1 << 60),
        "--uid",
        "win-tumble-reduce",
    ]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0
    assert "0 entries with 0 bytes removed" in done.stderr
    assert (
        "timers of windows left: without its timer, a window may never fire, or its state may never be removed"
        in done.stderr
    )


def test_state_is_counted_while_it_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    batches = tally._batches

    def count(reader: Any, *arguments: Any) -> Any:
        read.append((reader.file, *reader.group_sizes()))
        return batches(reader, *arguments)

    monkeypatch.setattr(tally, "_batches", count)
    uids = ["timers", "win-session-list"]
    plan = statetool.purge(ZOO, "unused", event_timers_before_ms=1 << 60, empty=True, operators=uids, dry_run=True)
    assert plan.left_timers
    assert read
    assert len(read) == len(set(read))
