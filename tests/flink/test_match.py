"""Real Flink continues from savepoints whose operators got the ids that ``match`` found in the new job."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.pairs import short
from tests.support.flink.sql import TOTALS, Query, run_query

pytestmark = pytest.mark.full

#: Jobs whose operators have other ids in the new version, or the ids of each other.
PAIRS: Final = (
    "GeneratedInserted", "GeneratedChain", "GeneratedParallelism", "GeneratedToUid", "UidToOtherHash", "UidRenamed", "GeneratedSwapped",
)  # fmt: skip


def renamed_by_match(old: Path, new: Path, work: Path, *options: str, by: str = "uid", unmatched: bool = False) -> Path:
    """Match a snapshot with that of a new job, or with its plan, and write the copy with the ids of the new job.

    Parameters
    ----------
    by
        The command that writes it: ``uid``, or ``migrate``, which needs a snapshot of the new job.
    unmatched
        Whether an operator of the snapshot has no partner.
    """
    pairs, copy = work / "pairs.json", work / "renamed"
    work.mkdir(exist_ok=True)
    for words, code in (
        (("match", str(old), str(new), "--write", str(pairs), *options), int(unmatched)),
        ((by, str(old), str(copy), "--match", str(pairs), *(("--to", str(new)) if by == "migrate" else ())), 0),
    ):
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == code, done.output
    return copy


@pytest.mark.parametrize("version", ["2.3.0", "1.20.5"])
def test_jobs_with_other_ids_go_on(version: str, tmp_path: Path) -> None:
    release = short(version)
    snapshots = unpack(job_pairs.SNAPSHOTS, tmp_path / "snapshots")
    # Only names, which snapshots have since Flink 2.0, tell the operators that changed places.
    pairs = [p for p in job_pairs.PAIRS if p.name in PAIRS and (release != "1.20" or p.name != "GeneratedSwapped")]
    flink = job_pairs.machine_of_jobs(version, tmp_path, "old")
    expected = {
        p.name: sorted(job_pairs.run(flink, p, "old", "hashmap", p.after, snapshot=snapshots / "old" / p.name / release)["records"])
        for p in pairs
    }  # fmt: skip
    flink.close()
    flink = job_pairs.machine_of_jobs(version, tmp_path, "new")
    found = {}
    for pair, by in zip(pairs, cycle(["uid", "migrate"])):
        old, new = (snapshots / side / pair.name / release for side in job_pairs.SIDES)
        assert job_pairs.result(flink, pair, "hashmap", old, expected[pair.name]) != "same"
        renamed = renamed_by_match(old, new, tmp_path / pair.name, by=by)
        found[pair.name] = job_pairs.result(flink, pair, "hashmap", renamed, expected[pair.name])
    flink.close()
    assert found == dict.fromkeys(expected, "same")


def test_a_query_whose_nodes_have_other_numbers_goes_on(flink: FlinkMachine, tmp_path: Path) -> None:
    """The new job has not run: its compiled plan tells the new uids."""
    filtered = Query(inputs=TOTALS.inputs, sql=TOTALS.sql.replace("GROUP BY", "WHERE amount > 0 GROUP BY"))
    old = planned(flink, TOTALS, ("a", 1), ("b", 2), ("a", 10), results=4, savepoint=tmp_path / "old")
    fresh = planned(flink, filtered, ("z", 1), results=1, savepoint=tmp_path / "new")
    plans = {name: tmp_path / f"{name}.json" for name in ("a", "b")}
    for file, answer in zip(plans.values(), (old, fresh), strict=True):
        file.write_text(answer["plan"])
    # The sources, which are streams that became tables, are in no plan.
    renamed = renamed_by_match(
        Path(old["savepoint"]), plans["b"], tmp_path / "match", "--columns-from-plan-a", str(plans["a"]), unmatched=True
    )
    ids = [
        {o.operator_id for o in statetool.load(str(path)).operators.values() if "accState" in o.states}
        for path in (old["savepoint"], renamed, fresh["savepoint"])
    ]
    assert ids[0] != ids[1] == ids[2]
    answer = planned(flink, filtered, ("a", 5), ("c", 3), results=3, snapshot=renamed)
    assert [(r["kind"], *r["$row"]) for r in answer["results"]] == [
        ("UPDATE_BEFORE", "a", 2, 11),
        ("UPDATE_AFTER", "a", 3, 16),
        ("INSERT", "c", 1, 3),
    ]


def planned(flink: FlinkMachine, query: Query, *rows: tuple[str, int], **more: Any) -> dict[str, Any]:
    return run_query(flink, query, {"orders": [["INSERT", *row] for row in rows]}, planned=True, **more)
