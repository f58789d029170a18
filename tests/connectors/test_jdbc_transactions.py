"""Transactions compared with what a database says of them; ``tests/flink/test_jdbc.py`` asks real ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.connectors.layouts.jdbc import Xid
from statetool.connectors.outside import jdbc_transactions
from statetool.connectors.outside.jdbc_transactions import jdbc_commit_rows
from statetool.connectors.outside.xa_databases import Prepared, prepared_transactions, read_url
from statetool.errors import ConnectionFailedError, MissingDependencyError, OptionError
from tests.support.connectors.xa_states import UIDS, write_jdbc_sink, xid_in_database

SECRET = "s3cret"
#: A URL; host, port, database, user, password and encryption.
URLS = [
    ("postgresql://flink@db/shop", ("db", 5432, "shop", "flink", "from-environment", "preferred")),
    ("postgres://flink:s%2Fcret@db:5433/shop", ("db", 5433, "shop", "flink", "s/cret", "preferred")),
    (
        "jdbc:postgresql://db/shop?user=u&password=p%40&sslmode=verify-full",
        ("db", 5432, "shop", "u", "p@", "verified-host"),
    ),
    ("jdbc:postgresql://db/?ssl=true", ("db", 5432, "somebody", "somebody", "from-environment", "verified-host")),
    ("postgresql://[::1]:7/a%20b?ssl=false", ("::1", 7, "a b", "somebody", "from-environment", "preferred")),
    ("jdbc:mysql://u:7pw@db/shop?useSSL=false", ("db", 3306, "shop", "u", "7pw", "off")),
    ("mysql://u@db/?sslMode=VERIFY_CA", ("db", 3306, "", "u", "mysql-environment", "verified")),
    ("mariadb://db:1/x?useSSL=true", ("db", 1, "x", "someone", "mysql-environment", "required")),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "PGUSER": "somebody", "PGPASSWORD": "from-environment", "USER": "someone", "MYSQL_PWD": "mysql-environment"
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("url", "expected"), URLS)
def test_urls_of_drivers_and_of_libpq(url: str, expected: tuple[object, ...]) -> None:
    found = read_url(url)
    assert (found.host, found.port, found.name, found.user, found.password, found.encryption) == expected
    assert found.password not in f"{found} {found!r}"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"oracle://u:{SECRET}@db/x", "of 'oracle' cannot be listed"),
        (f"jdbc:sqlserver://db;password={SECRET}", "of 'sqlserver' cannot be listed"),
        (f"u:{SECRET}@db/x", "of 'u' cannot be listed"),
        (f"{SECRET}@db/x", "has no scheme"),
        (f"postgresql://u:{SECRET}/1@db/x", "is not valid"),
        (f"postgresql://u:12/{SECRET}@db/x", "is not valid"),
        (f"postgresql://u:#{SECRET}@db/x", "is not valid"),
        (f"postgresql://u:12?{SECRET}@db/x", "is not valid"),
        (f"postgresql://u:{SECRET}@db:port/x", "is not valid"),
        (f"postgresql://u:{SECRET}@[db/x", "is not valid"),
        (f"postgresql://u:{SECRET}@db1,db2/x", "is not valid"),
        (f"mysql://u:{SECRET}@db/x?sslMode={SECRET}", "sslmode of the URL is not known"),
    ],
)
def test_urls_that_are_refused_are_not_shown(url: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as refused:
        read_url(url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_a_database_that_does_not_answer(kind: str) -> None:
    with pytest.raises(ConnectionFailedError, match=f"{kind}://127.0.0.1:1/x did not list its prepared") as refused:
        prepared_transactions(f"{kind}://u:{SECRET}@127.0.0.1:1/x", timeout_s=1)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "module", "package"),
    [("postgresql://db/x", "pg8000.native", "pg8000"), ("jdbc:mysql://db/x", "pymysql", "PyMySQL")],
)
def test_a_missing_driver_names_its_extra(
    url: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=f"needs the package {package}"):
        prepared_transactions(url)
    path = write_jdbc_sink(tmp_path / "s", hanging=[], prepared=[], committables=[]).path
    done = CliRunner().invoke(cli, ["sinks", "check", path, "--jdbc", url])
    assert done.exit_code == 3
    assert done.stderr.rstrip().endswith("pip install 'statetool[jdbc]'")
    assert len(done.stderr.splitlines()) == 1


def asked(monkeypatch: pytest.MonkeyPatch, *found: Xid) -> None:
    """Let the database have these transactions."""
    prepared = [Prepared(xid=xid, time="2026-01-02 03:04:05", rollback=f"ROLLBACK {xid}") for xid in found]
    monkeypatch.setattr(jdbc_transactions, "prepared_transactions", lambda url: prepared)


def outcomes(savepoint: statetool.Savepoint) -> dict[str, tuple[str, str]]:
    rows = savepoint.table_commits(jdbc="postgresql://db/x").to_pylist()
    assert {r["outcome"] for r in rows if not r["is_problem"]} <= {"is_committed", "will_commit"}
    return {r["name"]: (r["operator"], r["outcome"]) for r in rows}


def test_a_restore_commits_what_writers_have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    writer, committer = UIDS
    savepoint = write_jdbc_sink(
        tmp_path / "s", hanging=[(0, 8)], prepared=[(0, 6), (0, 7)], committables=[(0, 7), (0, 5), (0, 4)]
    )
    xids = {checkpoint: xid_in_database(0, checkpoint) for checkpoint in range(4, 10)}
    foreign = [xid_in_database(0, 7, job=bytes(16)), Xid(format_id=7, global_transaction_id=b"a", branch_qualifier=b"")]
    asked(monkeypatch, xids[7], xids[5], xids[9], *foreign)
    assert outcomes(savepoint) == {
        str(xids[6]): (writer, "unknown"),
        str(xids[7]): (writer, "will_commit"),
        str(xids[9]): (writer, "will_linger"),
        str(xids[5]): (committer, "will_drop"),
        str(xids[4]): (committer, "is_committed"),
    }
    asked(monkeypatch, xids[8])
    assert outcomes(savepoint)[str(xids[8])] == (writer, "will_linger")


def test_only_a_writer_that_went_on_has_committed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    committer = UIDS[1]
    savepoint = write_jdbc_sink(
        tmp_path / "s", hanging=[(0, 8)], prepared=[], committables=[(0, 7), (0, 8), (0, 9), (1, 7)]
    )
    asked(monkeypatch)
    assert outcomes(savepoint) == {
        str(xid_in_database(0, 7)): (committer, "is_committed"),
        # The open transaction itself and a later one contradict the writer, and the state of the other subtask is missing.
        **{str(xid_in_database(*begun)): (committer, "unknown") for begun in ((0, 8), (0, 9), (1, 7))},
    }


def test_without_its_writer_a_sink_commits_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    writer, committer = UIDS
    savepoint = write_jdbc_sink(tmp_path / "s", hanging=[(0, 8)], prepared=[(0, 7)], committables=[(0, 6), (0, 7)])
    statetool.drop(savepoint, str(tmp_path / "dropped"), operators=[writer])
    dropped = statetool.load(str(tmp_path / "dropped")).with_uids([committer])
    asked(monkeypatch, xid_in_database(0, 7), xid_in_database(0, 8))
    assert outcomes(dropped) == {
        str(xid_in_database(0, 6)): (committer, "unknown"),
        str(xid_in_database(0, 7)): (committer, "will_drop"),
        str(xid_in_database(0, 8)): (committer, "will_linger"),
    }


def test_other_snapshots_and_options_are_refused(connector_cases: Path) -> None:
    savepoint = statetool.load(str(connector_cases / "v2_3_0-kafka-sink" / "snapshot"))
    with pytest.raises(OptionError, match="no JDBC sink with XA transactions"):
        jdbc_commit_rows(savepoint.inventory.operators.values(), "postgresql://db/x")
    with pytest.raises(OptionError, match="one table, with Kafka or with a database"):
        savepoint.table_commits(jdbc="postgresql://db/x", kafka="broker:9092")
