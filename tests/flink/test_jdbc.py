"""JDBC's exactly-once sink compared with real databases, and jobs that write to PostgreSQL, restored from rewritten savepoints."""

from __future__ import annotations

import os
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.connectors.outside.xa_databases import prepared_transactions
from tests.support.connectors.commands import run
from tests.support.connectors.xa_states import UIDS, write_jdbc_sink, xid_in_database
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.servers.databases import PASSWORD, Postgres, XaDatabase, mariadb_server, pgjdbc_name, postgres_server
from tools.flink_jars import SHORT_LIVED, compiled, flink_jars, java_tool
from tools.maven import maven_jars

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]
SERVERS: dict[str, Callable[[], AbstractContextManager[XaDatabase]]] = {
    "postgres": postgres_server,
    "mariadb": mariadb_server,
}
RELEASES = ["1.20.5", "2.3.0"]


@pytest.fixture(scope="module", params=SERVERS)
def database(request: pytest.FixtureRequest) -> Iterator[XaDatabase]:
    with SERVERS[request.param]() as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module", params=RELEASES)
def jdbc_flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    job, jars = HERE / "support" / "flink" / "jdbc_jobs", maven_jars(f"jdbc-xa-{request.param}")
    machine = FlinkMachine(request.param, tmp_path_factory.mktemp("jdbc"), (job,), jars=jars)
    yield machine
    machine.close()


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


def test_each_transaction_is_told_right(database: XaDatabase, tmp_path: Path) -> None:
    prepared = [(0, 5), (1, 5), (0, 6), (1, 6)]
    path = tmp_path / "savepoint"
    write_jdbc_sink(path, hanging=[(0, 8), (1, 8)], prepared=prepared, committables=[*prepared, (0, 4), (1, 4)])
    foreign = xid_in_database(0, 6, job=bytes(range(1, 17)))
    later = xid_in_database(0, 9)
    held = [*(xid_in_database(*t) for t in (*prepared, (0, 4), (0, 8))), later, foreign]
    for number, xid in enumerate(held):
        database.prepare(xid, number)
    database.end(xid_in_database(0, 5), "COMMIT")
    database.end(xid_in_database(1, 5), "ROLLBACK")

    def rows() -> dict[str, Any]:
        uids = [argument for uid in UIDS for argument in ("--name-uid", uid)]
        found = run("sinks", "check", path, "--jdbc", database.url, *uids, code=1)
        assert all(r["is_problem"] == (r["outcome"] not in ("is_committed", "will_commit")) for r in found)
        return {r["name"]: r for r in found}

    found = rows()
    assert {name: (r["operator"], r["checkpoint_id"], r["outcome"]) for name, r in found.items()} == {
        **{str(xid_in_database(*t)): ("out", 8, "unknown") for t in prepared[:2]},
        **{str(xid_in_database(*t)): ("out", 8, "will_commit") for t in prepared[2:]},
        str(xid_in_database(0, 8)): ("out", None, "will_linger"),
        str(later): ("out", None, "will_linger"),
        str(xid_in_database(0, 4)): ("Sink Committer: out", 8, "will_drop"),
        str(xid_in_database(1, 4)): ("Sink Committer: out", 8, "is_committed"),
    }
    # The statement in the message ends one.
    sql = found[str(later)]["message"].partition("end it: ")[2]
    assert database.kind in ("postgresql", "mysql")
    if database.kind == "postgresql":
        database.execute(sql)
        assert found[str(xid_in_database(0, 6))]["message"].startswith("prepared at 20")
    else:
        database.end(later, "ROLLBACK")
        data = later.global_transaction_id.hex(), later.branch_qualifier.hex()
        assert sql == f"XA ROLLBACK X'{data[0]}',X'{data[1]}',202"
    assert str(later) not in rows()
    # The comparison itself ended none of them.
    assert {p.xid for p in prepared_transactions(database.url)} == {*held[2:]} - {later}
    for xid in {*held[2:]} - {later}:
        database.end(xid, "ROLLBACK")
    assert [n for (n,) in database.execute("SELECT n FROM shop.out" if database.kind == "mysql" else "TABLE out")] == [
        0
    ]


def test_other_names_and_databases_of_a_postgresql(postgres: Postgres, tmp_path: Path) -> None:
    path = tmp_path / "savepoint"
    write_jdbc_sink(path, hanging=[], prepared=[(0, 7)], committables=[(0, 7)])
    names = ["of-a-person", "202_%_=", "202_AAA_AA", "x_AA==_AA==", "202_AA==_AA==_AA=="]
    for number, name in enumerate(names):
        postgres.prepare_named(name, number)
    name = pgjdbc_name(xid_in_database(0, 7))
    postgres.prepare_named(name, 9, database="other")
    (row,) = run("sinks", "check", path, "--jdbc", postgres.url, code=1)
    assert (row["outcome"], row["message"]) == (
        "unknown",
        "the database other of the same server has it prepared: compare with that one",
    )
    (row,) = run("sinks", "check", path, "--jdbc", f"jdbc:{postgres.url.replace('shop', 'other')}")
    assert row["outcome"] == "will_commit"
    with postgres.connect("other") as connection:
        connection.run(f"ROLLBACK PREPARED '{name}'")
    for name in names:
        postgres.execute(f"ROLLBACK PREPARED '{name}'")


@pytest.mark.parametrize("place", ["user", "query"])
def test_a_password_is_used_and_never_shown(
    place: str, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "savepoint"
    write_jdbc_sink(path, hanging=[], prepared=[], committables=[])
    monkeypatch.delenv("PGPASSWORD")
    address = postgres.url.partition("@")[2]

    def check(password: str) -> tuple[int, str]:
        quoted = password.replace("/", "%2F")
        urls = {
            "user": f"postgresql://flink:{quoted}@{address}",
            "query": f"jdbc:postgresql://{address}?user=flink&password={quoted}&currentSchema=public",
        }
        done = CliRunner().invoke(cli, ["sinks", "check", str(path), "--jdbc", urls[place]])
        shown = done.output
        if done.exit_code != 0:
            debugged = CliRunner().invoke(cli, ["sinks", "check", str(path), "--jdbc", urls[place], "--debug"])
            assert debugged.exception is not None
            shown += debugged.output + "".join(traceback.format_exception(debugged.exception))
        assert password not in shown
        assert quoted not in shown
        return done.exit_code, done.stderr

    assert check(PASSWORD)[0] == 0
    code, words = check("wr0ng/word")
    assert code == 3
    assert "password authentication failed" in words


@pytest.mark.parametrize("is_pooled", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_the_connector_commits_and_leaves_what_is_told(
    release: str, is_pooled: bool, postgres: Postgres, tmp_path: Path
) -> None:
    """The connector's own classes open the state of a writer, as a restore does, and may roll back all other transactions of the job."""
    path = tmp_path / "savepoint"
    write_jdbc_sink(path, hanging=[(0, 8)], prepared=[(0, 6), (0, 7)], committables=[(0, 6), (0, 7)])
    checkpoints = {str(xid_in_database(0, n)): n for n in range(6, 10)}
    for n in (7, 8, 9):
        postgres.prepare(xid_in_database(0, n), n)

    def rows() -> dict[int, dict[str, Any]]:
        found = run("sinks", "check", path, "--jdbc", postgres.url, code=1)
        return {checkpoints[r["name"]]: r for r in found}

    before = {6: "unknown", 7: "will_commit", 8: "will_linger", 9: "will_linger"}
    assert {n: r["outcome"] for n, r in rows().items()} == before
    jars = maven_jars(f"jdbc-xa-{release}")
    classes = compiled(release, HERE / "support" / "flink" / "jdbc_restores", jars=jars)
    class_path = os.pathsep.join(map(str, [classes, *flink_jars(release), *jars]))
    url = f"jdbc:postgresql://{postgres.url.partition('@')[2]}?user=flink"
    java = [java_tool("java"), *SHORT_LIVED, "-cp", class_path, "harness.JdbcRestore"]
    subprocess.run([*java, url, PASSWORD, str(is_pooled).lower()], check=True, capture_output=True)
    left = rows()
    assert {n: r["outcome"] for n, r in left.items()} == {**before, 7: "unknown"}
    for n in (8, 9):
        postgres.execute(left[n]["message"].partition("end it: ")[2])
    assert {n: r["outcome"] for n, r in rows().items()} == {6: "unknown", 7: "unknown"}
    assert postgres.execute("TABLE out") == [[7]]
    postgres.execute("TRUNCATE out")


class NumbersJob:
    """A job that writes the numbers from 0 to the table ``out``."""

    def __init__(self, flink: FlinkMachine, postgres: Postgres, work: Path) -> None:
        self.flink = flink
        self.postgres = postgres
        self.work = work
        self.url = f"jdbc:postgresql://{postgres.url.partition('@')[2]}?user=flink"
        # Transactions that a failed test has left hold locks.
        for (name,) in postgres.execute("SELECT gid FROM pg_prepared_xacts"):
            postgres.execute(f"ROLLBACK PREPARED '{name}'")
        postgres.execute("TRUNCATE out")

    def run(self, uid: str, *savepoints: str, **more: Any) -> list[str]:
        """Run it, cancel it after its savepoints, and return their paths."""
        folders = [str(self.work / name) for name in savepoints]
        request = {"url": self.url, "password": PASSWORD, "uid": uid, "savepoints": folders, **more}
        paths: list[str] = self.flink.call("class", **{"class": "JdbcJob"}, **request)["savepoints"]
        return paths

    def rewrite(self, snapshot: str, before: str, after: str) -> str:
        """Give all operators another max parallelism, and the sink another uid."""
        uids = [before, f"Sink Committer: {before}"]
        rescaled, renamed = str(self.work / f"{after}-rescaled"), str(self.work / f"{after}-renamed")
        statetool.rescale(statetool.load(snapshot).with_uids(uids), rescaled, 64)
        statetool.change_uids(
            rescaled, renamed, dict(zip(uids, [after, f"Sink Committer: {after}"], strict=True)), uids=uids
        )
        return renamed

    def check(self, snapshot: str, code: int) -> list[tuple[str, str]]:
        """Compare a snapshot with the database, and return outcomes and messages."""
        found = run("sinks", "check", snapshot, "--jdbc", self.url, code=code)
        return sorted((r["outcome"], r["message"]) for r in found)

    def outcomes(self, snapshot: str, code: int = 0) -> list[str]:
        return [outcome for outcome, _ in self.check(snapshot, code)]

    def numbers(self) -> list[int]:
        return sorted(n for (n,) in self.postgres.execute("TABLE out"))


def test_a_job_goes_on_after_its_writers_have_committed(
    jdbc_flink: FlinkMachine, postgres: Postgres, tmp_path: Path
) -> None:
    job = NumbersJob(jdbc_flink, postgres, tmp_path)
    (taken,) = job.run("out", "taken", checkpoints=1)
    # Flink tells no task that a savepoint is complete, and yet its rows are in the table.
    before = job.numbers()
    assert before == [*range(len(before))]
    assert len(before) > 100
    # The committer's state may also have transactions of the checkpoint before, if Flink has not told it yet.
    assert {*job.outcomes(taken)} == {"is_committed"}
    renamed = job.rewrite(taken, "out", "to")
    assert job.outcomes(renamed) == job.outcomes(taken)
    (last,) = job.run("to", "last", snapshot=renamed, parallelism=3, checkpoints=1)
    uids = ["to", "Sink Committer: to"]
    assert [statetool.load(last).with_uids(uids)[uid].max_parallelism for uid in uids] == [64, 64]
    assert {*job.outcomes(last)} == {"is_committed"}
    after = job.numbers()
    assert after == [*range(len(after))]
    assert len(after) > len(before) + 100


def test_a_restored_job_commits_what_the_database_refused(
    jdbc_flink: FlinkMachine, postgres: Postgres, tmp_path: Path
) -> None:
    job = NumbersJob(jdbc_flink, postgres, tmp_path)
    first, second = job.run("out", "first", "second", refuses=True)
    assert job.numbers() == []
    # Flink 2.3 takes a checkpoint when a job starts.
    prepared = len(job.outcomes(second))
    assert prepared in (4, 6)
    assert job.outcomes(second) == ["will_commit"] * prepared
    expected = ["will_commit"] * (prepared - 2) + ["will_linger"] * 2
    assert job.outcomes(first, 1) == expected
    renamed = job.rewrite(first, "out", "to")
    assert job.outcomes(renamed, 1) == expected
    for uid, snapshot in (("out", first), ("to", renamed)):
        with pytest.raises(FlinkRefusedError, match="more than one state to recover"):
            job.run(uid, snapshot=snapshot, parallelism=1)
    assert job.outcomes(renamed, 1) == expected
    (last,) = job.run("to", "last", snapshot=renamed, parallelism=3, checkpoints=1)
    assert {*job.outcomes(last)} == {"is_committed"}
    # The restored sink has committed those of its state, and has left the others, whose rows it has written again.
    left = job.check(first, 1)
    assert [outcome for outcome, _ in left] == ["unknown"] * (prepared - 2) + ["will_linger"] * 2
    for _, message in left[-2:]:
        postgres.execute(message.partition("end it: ")[2])
    assert job.outcomes(first, 1) == ["unknown"] * (prepared - 2)
    numbers = job.numbers()
    assert numbers == [*range(len(numbers))]
    assert len(numbers) > 150
    assert postgres.execute("TABLE pg_prepared_xacts") == []
