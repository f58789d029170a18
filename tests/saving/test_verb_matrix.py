"""What real Flink restored of each verb's native output (``tests/support/flink/verb_matrix.tsv``)."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Final, get_args

import pytest

import statetool
from statetool.api.write.verbs.table import VERBS
from tests.support.corpora.archives import HERE, unpack
from tests.support.flink import next_releases
from tests.support.flink.forms import Api
from tests.support.flink.verb_cases import CARRYING, CASES, LONG, STRING, Expected, Request, write_case
from tests.support.flink.verb_matrix import RELEASES, STEPS, jobs_of, rows

#: A writer writes new state, and no verb has its format.
_BOOTSTRAP: Final = "bootstrap"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The savepoint of a job like those of the matrix, without states that have a time to live."""
    return str(unpack(HERE / "corpus" / "backends.tar.xz", tmp_path_factory.mktemp("backends")) / "2.3.0" / "sync")


def content(snapshot: str) -> Expected:
    """Return the rows and timers of the operators in the form of the matrix."""
    found: Expected = {}
    savepoint = statetool.load(snapshot)
    for name in (LONG, STRING):
        if name not in savepoint.operators:
            continue
        table = savepoint[name].to_arrow("keyed_state")
        states = {
            state: {
                "rows": [
                    {"key": row["key"], "value": row[state]} for row in table.to_pylist() if row[state] is not None
                ]
            }
            for state in table.column_names[1:]
        }
        timers = savepoint[name].to_arrow("timers").to_pylist()
        found[name] = {"keyed_state": {"states": states} | {
            f"{domain}_time_timers": [
                {"key": t["key"], "namespace": None, "timestamp": t["timestamp"]} for t in timers if t["domain"] == domain
            ]
            for domain in ("event", "processing")
        }}  # fmt: skip
    return found


def ordered(found: Expected) -> dict[str, Any]:
    """Return the rows of each state, and the timers, in an order of their own."""
    rows: dict[str, Any] = {}
    for name, operator in found.items():
        keyed = operator["keyed_state"]
        rows |= {
            f"{name} {state}": sorted(map(repr, described["rows"])) for state, described in keyed["states"].items()
        }
        rows |= {f"{name} {d}": sorted(map(repr, keyed[f"{d}_time_timers"])) for d in ("event", "processing")}
    return rows


@pytest.mark.full
@pytest.mark.parametrize("verb", CASES)
def test_each_case_of_the_matrix_writes_what_it_expects(verb: str, base: str, tmp_path: Path) -> None:
    """The commands as the matrix runs them, without Flink."""
    before = content(base)
    for name, number in ((LONG, 128), (STRING, 1000)):
        before[name]["max_parallelism"] = number
    request = Request(
        base=base, target=str(tmp_path / "target"), work=tmp_path, style={"format": "native", "backend": "rocksdb"},
        release="2.3.0", backend="rocksdb",
    )  # fmt: skip
    expected = write_case(verb, request, before)
    assert ordered(content(request.target)) == ordered(expected)
    assert ordered(expected) != ordered(before) or verb not in (
        "erase",
        "drop",
        "keep",
        "sample",
        "purge",
        "set_values",
    )


def test_flink_restored_what_each_verb_with_a_format_writes() -> None:
    declared = {name for name, verb in VERBS.items() if "format" in {field.name for field in fields(verb)}}
    assert {*CASES} == declared | CARRYING | {_BOOTSTRAP}
    found = [(r.release, r.state, r.backend, r.verb, r.step) for r in rows()]
    assert len(set(found)) == len(found)
    wanted = {
        (release, *job, verb, step.name)
        for release in RELEASES
        for job in jobs_of(release)
        for verb in CASES
        for step in STEPS
    }
    assert set(found) == wanted
    assert [row for row in rows() if not row.is_restored] == []


def test_the_next_release_restored_what_upgrade_and_migrate_write_for_forst() -> None:
    found = [(r.base, r.release, r.state, r.verb, r.step) for r in next_releases.rows()]
    wanted = {
        (*pair, state, verb, step.name)
        for pair in next_releases.PAIRS
        for state in get_args(Api)
        for verb in next_releases.VERBS
        for step in next_releases.CHAIN
    }
    assert set(found) == wanted
    assert len(found) == len(wanted)
    assert [row for row in next_releases.rows() if not row.is_restored] == []
