"""The savepoint of a job with Delta's sink for Flink 1.x: the files in it are those that the job committed later, by the log of its table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.connectors.sinks import COMMITTER_STATE, sinks_in, without_committables
from statetool.errors import FormatError, OptionError
from tests.support.connectors.commands import run
from tests.support.corpora.archives import unpack
from tests.support.flink.commit_jobs import PACKED, delta_adds, pending_files, sink_uids

_, COMMITTER, GLOBAL = sink_uids("a")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("delta"))


def savepoint_of(case: Path) -> statetool.Savepoint:
    return statetool.load(str(case / "snapshot"), uids=sink_uids("a"))


def table_until(case: Path, folder: Path, *versions: int) -> Path:
    """Return a table with some versions of the log."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for version in versions:
        shutil.copy(case / "log" / f"{version:020}.json", log)
    return folder


def outcomes(case: Path, table: Path, code: int = 0) -> dict[str, set[str]]:
    rows = run("sinks", "check", case / "snapshot", "--delta", table, code=code)
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["outcome"], set()).add(row["name"])
    return found


def test_the_state_has_the_files_that_the_job_committed_later(case: Path) -> None:
    savepoint = savepoint_of(case)
    sinks = {s.role: (s.connector, s.pending, s.undecoded) for s in savepoint.connector_rows("sinks")}
    assert sinks == {
        "writer": ("delta-sink", 0, 0),
        "committer": ("delta-sink", 2, 0),
        "global-committer": ("delta-sink", 2, 0),
    }
    of_global, of_committer = pending_files(savepoint, GLOBAL), pending_files(savepoint, COMMITTER)
    versions: dict[int, dict[str, int]] = {}
    for version, path, size in delta_adds(case / "log"):
        versions.setdefault(version, {})[path] = size
    first = next(version for version, files in versions.items() if files == of_global)
    assert versions[first + 1] == of_committer
    details = [json.loads(t.details) for t in savepoint.connector_rows("transactions")]
    assert len({d["app_id"] for d in details}) == 1
    assert {len(d["partition"]) for d in details} == {0}


def test_nothing_changes_if_no_file_is_dropped(case: Path) -> None:
    for uid in (COMMITTER, GLOBAL):
        (part,) = sinks_in(savepoint_of(case)[uid].inventory)
        same = without_committables(part, frozenset())[COMMITTER_STATE][0]
        assert set(same) <= {e.data for e in part.data.elements(COMMITTER_STATE)}


def test_the_table_tells_what_is_committed(case: Path, tmp_path: Path) -> None:
    savepoint = savepoint_of(case)
    of_global, of_committer = set(pending_files(savepoint, GLOBAL)), set(pending_files(savepoint, COMMITTER))
    first = min(v for v, path, _ in delta_adds(case / "log") if path in of_global)
    assert outcomes(case, table_until(case, tmp_path / "before", *range(first))) == {
        "will_commit": of_global | of_committer
    }
    assert outcomes(case, table_until(case, tmp_path / "one", *range(first + 1))) == {
        "is_committed": of_global,
        "will_commit": of_committer,
    }
    table = table_until(case, tmp_path / "both", *range(first + 2))
    assert outcomes(case, table) == {"is_committed": of_global | of_committer}
    rows = savepoint.table_commits(delta=str(table)).to_pylist()
    assert {(r["connector"], r["highest_committed"], r["is_problem"]) for r in rows} == {("delta-sink", None, False)}

    # A compaction removes a file, whose path is URL-encoded.
    gone = min(of_global)
    remove = {"remove": {"path": gone.replace("-", "%2D"), "dataChange": False}}
    (table / "_delta_log" / f"{first + 2:020}.json").write_text(json.dumps(remove) + "\n")
    assert outcomes(case, table, code=1) == {"may_double": {gone}, "is_committed": (of_global | of_committer) - {gone}}


def test_a_log_without_its_oldest_commits(case: Path, tmp_path: Path) -> None:
    savepoint = savepoint_of(case)
    of_global, of_committer = set(pending_files(savepoint, GLOBAL)), set(pending_files(savepoint, COMMITTER))
    first = min(v for v, path, _ in delta_adds(case / "log") if path in of_global)
    # The files of the global committer were complete before the oldest commit that is left, those of the committers after it.
    assert first > 1
    assert outcomes(case, table_until(case, tmp_path / "older", first - 1), code=1) == {
        "will_commit": of_committer,
        "unknown": of_global,
    }
    newer = table_until(case, tmp_path / "newer", first + 2)
    assert set(outcomes(case, newer, code=1)) == {"unknown"}
    file = newer / "_delta_log" / f"{first + 2:020}.json"
    file.write_text("\n".join(line for line in file.read_text().splitlines() if "commitInfo" not in line))
    assert set(outcomes(case, newer, code=1)) == {"unknown"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not lines of JSON"),
        ("3", "not a JSON object"),
        ('{"add":{}}', "does not name its file"),
        ('{"remove":3}', "does not name its file"),
    ],
)
def test_a_damaged_log(case: Path, tmp_path: Path, line: str, message: str) -> None:
    table = table_until(case, tmp_path)
    (table / "_delta_log" / f"{0:020}.json").write_text(line)
    with pytest.raises(FormatError, match=message):
        savepoint_of(case).table_commits(delta=str(table))


def test_other_tables_and_other_snapshots(case: Path, connector_cases: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is not a table of Delta"):
        savepoint_of(case).table_commits(delta=str(tmp_path))
    other: Any = statetool.load(str(connector_cases / "v2_3_0-kafka-sink" / "snapshot"))
    with pytest.raises(OptionError, match="no committer of delta-sink"):
        other.table_commits(delta=str(table_until(case, tmp_path / "t", 0)))
