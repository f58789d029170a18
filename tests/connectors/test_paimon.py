"""Savepoints of real jobs that write to Paimon, compared with the table's own record of the commits."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import statetool
from statetool.connectors.layouts.paimon import PaimonCommittable, PaimonSink, read_committable
from statetool.connectors.model import as_plain
from statetool.connectors.sinks import Sink, sinks_of
from statetool.connectors.wire import read_version, whole_versioned
from statetool.errors import FormatError, OptionError, StatetoolError
from tests.support.connectors.commands import run
from tests.support.connectors.lake_cases import CASES, PACKED
from tests.support.connectors.written import written_states
from tests.support.corpora.archives import unpack

#: Versions of committables and messages by release.
VERSIONS = {
    "paimon-0.8.2": (2, 2),
    "paimon-0.9.0": (3, 3),
    "paimon-1.0.1": (3, 6),
    "paimon-1.2.0": (4, 7),
    "paimon-1.3.1": (4, 10),
}
#: Commits of later releases, written by the serializers.
COMMITS = [s for s in written_states() if s["role"] == "commit"]
PAIMON = [name for name in CASES if name.startswith("paimon")]
APPENDED = "paimon-1.3.1"


@pytest.fixture(scope="module")
def lake_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("paimon"))


def committer_of(case: Path) -> Sink:
    savepoint = statetool.load(str(case / "snapshot"))
    (committer,) = (
        s for s in sinks_of(o.inventory for o in savepoint.operators.values()) if s.state.role == "committer"
    )
    assert isinstance(committer.connector, PaimonSink)
    return committer


def snapshots_of(case: Path, user: str) -> dict[int, Any]:
    found = [json.loads(p.read_text()) for p in (case / "table" / "snapshot").glob("snapshot-*")]
    return {s["commitIdentifier"]: s for s in found if s["commitUser"] == user and s["commitKind"] == "APPEND"}


@pytest.mark.parametrize("name", PAIMON)
def test_commits_are_those_of_the_table(name: str, lake_cases: Path) -> None:
    case = lake_cases / name
    written = json.loads((case / "case.json").read_text())
    committer = committer_of(case)
    users = [w["commit_user"] for _, w in committer.state.writers if "commit_user" in w]
    snapshots = snapshots_of(case, users[0])
    in_table = {Path(file).name: file for file in written["files"]}
    assert committer.state.pending
    for pending in committer.state.pending:
        committable = pending.fields
        assert isinstance(committable, PaimonCommittable)
        assert (pending.version, committable.message_version) == VERSIONS[written["jars"]]
        if committable.message_version == 2:
            # Releases 0.7 and 0.8 write different messages of version 2: they stay bytes.
            assert committable.messages is None
            assert committable.identifier in snapshots
            continue
        assert committable.messages
        snapshot = snapshots[committable.identifier]
        new = [(m, file) for m in committable.messages for file in m.files.get("new_files", ())]
        assert sum(file.rows or 0 for _, file in new) == snapshot["deltaRecordCount"]
        for message, file in new:
            day = message.partition[12:17].decode()
            assert in_table[file.name] == f"d={day}/bucket-{message.bucket}/{file.name}"
        for message in committable.messages:
            for files in message.files.values():
                assert all(file.size_bytes > 0 for file in files)
        kinds = {kind for m in committable.messages for kind in m.files}
        if name.endswith("-keyed"):
            assert "new_index_files" in kinds
        else:
            assert kinds == {"new_files"}
            assert [w["tag_of_identifier"] for _, w in committer.state.writers if "tag_of_identifier" in w] != []


@pytest.mark.parametrize("name", ["paimon-0.9.0-compacted", "paimon-1.3.1-compacted"])
def test_writers_keep_the_buckets_that_wait_for_a_full_compaction(name: str, lake_cases: Path) -> None:
    case = lake_cases / name
    written = {str(Path(file).parent) for file in json.loads((case / "case.json").read_text())["files"]}
    savepoint = statetool.load(str(case / "snapshot"))
    writers = [r for r in savepoint.connector_rows("sinks") if r.connector == "paimon-sink" and r.role == "writer"]
    kept = [w for r in writers for w in json.loads(r.writers) if "table" in w]
    assert {(w["table"], w["key"], w["value_bytes"]) for w in kept} == {("numbers", "paimon_written_buckets", 8)}
    buckets = {f"d={bytes.fromhex(w['partition'])[12:17].decode()}/bucket-{w['bucket']}" for w in kept}
    assert buckets
    assert buckets == {folder for folder in written if "bucket-" in folder}


@pytest.mark.parametrize("name", PAIMON)
def test_the_table_has_all_commits(name: str, lake_cases: Path) -> None:
    case = lake_cases / name
    found = run("sinks", "check", case / "snapshot", "--paimon", case / "table")
    assert {r["outcome"] for r in found} == {"is_committed"}


def changed_table(case: Path, folder: Path, keep: Any) -> Path:
    """Copy a table with only some of its snapshots."""
    shutil.copytree(case / "table", folder)
    for file in (folder / "snapshot").glob("snapshot-*"):
        if not keep(json.loads(file.read_text())):
            file.unlink()
    return folder


def test_commits_that_the_table_lacks(lake_cases: Path, tmp_path: Path) -> None:
    case = lake_cases / APPENDED
    ids = [p.checkpoint_id for p in committer_of(case).state.pending if p.checkpoint_id is not None]
    first, last = min(ids), max(ids)
    assert first > 1

    def outcomes(table: Path, code: int = 0) -> dict[int, str]:
        found = run("sinks", "check", case / "snapshot", "--paimon", table, code=code)
        return {r["checkpoint_id"]: r["outcome"] for r in found}

    before = changed_table(case, tmp_path / "before", lambda s: s["commitIdentifier"] < first)
    assert outcomes(before) == dict.fromkeys(ids, "will_commit")
    later = changed_table(case, tmp_path / "later", lambda s: s["commitIdentifier"] not in ids)
    assert outcomes(later, code=1) == dict.fromkeys(ids, "will_drop")
    expired = changed_table(case, tmp_path / "expired", lambda s: s["commitIdentifier"] > last)
    assert outcomes(expired, code=1) == dict.fromkeys(ids, "unknown")
    others = changed_table(case, tmp_path / "others", lambda s: True)
    for file in (others / "snapshot").glob("snapshot-*"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "commitUser": "another"}))
    fresh = statetool.load(str(case / "snapshot")).table_commits(paimon=str(others)).to_pylist()
    assert {(r["outcome"], r["message"]) for r in fresh} == {("will_commit", "the table has no commit of this sink")}


def test_a_commit_of_another_job_under_the_same_id_is_seen(lake_cases: Path, tmp_path: Path) -> None:
    """A job that was restored from an earlier snapshot has committed other records under the id: Paimon drops those of this snapshot."""
    case = lake_cases / APPENDED
    ids = [p.checkpoint_id for p in committer_of(case).state.pending if p.checkpoint_id is not None]
    table = changed_table(case, tmp_path / "table", lambda s: True)
    for file in (table / "snapshot").glob("snapshot-*"):
        snapshot = json.loads(file.read_text())
        if snapshot["commitIdentifier"] == max(ids):
            file.write_text(json.dumps({**snapshot, "deltaRecordCount": snapshot["deltaRecordCount"] + 1}))
    found = {r["checkpoint_id"]: r for r in run("sinks", "check", case / "snapshot", "--paimon", table, code=1)}
    assert {i: r["outcome"] for i, r in found.items()} == {
        i: "will_drop" if i == max(ids) else "is_committed" for i in ids
    }
    assert "another job has committed" in found[max(ids)]["message"]


def test_other_folders_and_damaged_tables_are_refused(lake_cases: Path, tmp_path: Path) -> None:
    case = lake_cases / APPENDED
    savepoint = statetool.load(str(case / "snapshot"))
    with pytest.raises(OptionError, match="is not a table of Paimon with snapshots"):
        savepoint.table_commits(paimon=str(tmp_path))
    with pytest.raises(OptionError, match="no committer of iceberg"):
        savepoint.table_commits(iceberg=str(tmp_path))
    with pytest.raises(OptionError, match="compared with one table"):
        savepoint.table_commits()
    user = committer_of(case).state.writers[0][1]["commit_user"]
    for text in ("{", "[]", json.dumps({"commitUser": user, "commitIdentifier": "x"})):
        table = changed_table(case, tmp_path / str(len(text)), lambda s: False)
        (table / "snapshot" / "snapshot-1").write_text(text)
        with pytest.raises(FormatError, match="the table's metadata"):
            savepoint.table_commits(paimon=str(table))


@pytest.fixture(scope="module")
def committables(lake_cases: Path) -> list[tuple[int, bytes]]:
    found = []
    for name in PAIMON:
        committer = committer_of(lake_cases / name)
        found += [whole_versioned(v, "it") for _, v in committer.data.values("streaming_committer_raw_states")]
    assert Counter(version for version, _ in found).keys() == {2, 3, 4}
    return found + [(s["version"], s["data"]) for s in COMMITS]


@pytest.mark.parametrize("state", COMMITS, ids=lambda s: f"{s['release']}-{s['expected']['message_version']}")
def test_commits_of_later_releases(state: dict[str, Any]) -> None:
    found = as_plain(read_version(state["data"], state["version"], read_committable, "it"))
    for message in found["messages"]:
        assert bytes.fromhex(message.pop("partition"))[-8:].startswith("Größe".encode())
    assert {name: found[name] for name in state["expected"]} == state["expected"]
    assert found["size_bytes"] == len(state["data"])


def test_commits_of_all_versions_are_compared() -> None:
    assert {(s["version"], s["expected"]["message_version"]) for s in COMMITS} == {(5, 11), (5, 12), (5, 13)}


def test_every_truncation_is_refused(committables: list[tuple[int, bytes]]) -> None:
    # Messages of version 2 stay bytes, whatever their length.
    for version, raw in ((v, r) for v, r in committables if v > 2):
        for end in range(0, len(raw), 7):
            with pytest.raises(StatetoolError):
                read_version(raw[:end], version, read_committable, "it")
        with pytest.raises(FormatError):
            read_version(raw + b"\0", version, read_committable, "it")


@given(st.data())
def test_nothing_else_escapes_from_changed_bytes(committables: list[tuple[int, bytes]], data: st.DataObject) -> None:
    version, raw = data.draw(st.sampled_from(committables))
    changed = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_version(bytes(changed), version, read_committable, "it")
    except StatetoolError:
        pass
