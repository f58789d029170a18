"""``statetool sql`` and ``statetool count``: names of tables, forms of results, several snapshots, the prompt."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from prompt_toolkit.document import Document

import statetool
from statetool.api.query import engine
from statetool.cli.main import cli
from statetool.cli.read.sql import _typed_statements
from statetool.cli.read.sql_completion import TableCompleter
from statetool.errors import MissingDependencyError, OptionError, StatetoolError, UnknownNameError
from tests.support.zoo import ZOO

COUNTED = "SELECT domain, count(*) AS n FROM timers_timers GROUP BY domain ORDER BY domain"


def run(*arguments: str | Path, given: str | None = None, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, ["sql", *map(str, arguments)], input=given)
    assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
    return done


def test_results_are_text_json_and_csv() -> None:
    assert run(ZOO, COUNTED).stdout.split() == ["domain", "n", "event", "62", "processing", "88"]
    rows = json.loads(run(ZOO, COUNTED, "--json").stdout)
    assert rows == [{"domain": "event", "n": 62}, {"domain": "processing", "n": 88}]
    assert list(csv.DictReader(io.StringIO(run(ZOO, COUNTED, "-o", "csv").stdout))) == [
        {"domain": "event", "n": "62"},
        {"domain": "processing", "n": "88"},
    ]
    assert json.loads(run(ZOO, "SELECT sum(timestamp) AS s FROM timers_timers", "--json").stdout)[0]["s"] > 1 << 40
    assert json.loads(run(ZOO, "FROM timers_timers WHERE false", "--json").stdout) == []


def test_columns_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    """As rows by name, the first would have the value of the last."""
    query = "SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS a"
    expected = {"a": 1, "a_2": 2, "a_1": 3, "a_3": 4}
    assert run(ZOO, query).stdout.split() == [*expected, "1", "2", "3", "4"]
    assert json.loads(run(ZOO, query, "--json").stdout) == [expected]
    assert run(ZOO, query, "-o", "csv").stdout.splitlines() == ["a,a_2,a_1,a_3", "1,2,3,4"]
    for suffix, rows in (
        ("jsonl", lambda f: [json.loads(f.read_text())]),
        ("parquet", lambda f: pq.ParquetFile(f).read().to_pylist()),
    ):
        file = tmp_path / f"rows.{suffix}"
        run(ZOO, query, "--to", file)
        assert rows(file) == [expected]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_results_are_files(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"rows.{suffix}"
    assert "2 rows written" in run(ZOO, COUNTED, "--to", file).stderr
    rows: list[dict[str, Any]]
    if suffix == "parquet":
        rows = pq.ParquetFile(file).read().to_pylist()
    elif suffix == "csv":
        rows = [{**row, "n": int(row["n"])} for row in csv.DictReader(file.open())]
    else:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows == [{"domain": "event", "n": 62}, {"domain": "processing", "n": 88}]
    assert "already exists" in run(ZOO, COUNTED, "--to", file, code=2).stderr
    remote = f"memory://results-{suffix}/rows.{suffix}"
    assert "2 rows written" in run(ZOO, COUNTED, "--to", remote).stderr
    assert "already exists" in run(ZOO, COUNTED, "--to", remote, code=2).stderr
    failed = tmp_path / f"failed.{suffix}"
    run(ZOO, "SELECT error('no') FROM timers_timers", "--to", failed, code=2)
    assert [f.name for f in tmp_path.iterdir()] == [file.name]
    assert "no known suffix" in run(ZOO, COUNTED, "--to", tmp_path / "rows.txt", code=2).stderr


def test_text_stops_at_a_number_of_rows() -> None:
    done = run(ZOO, "FROM timers_timers", "-n", "3")
    assert len(done.stdout.splitlines()) == 4
    assert "only the first 3 rows" in done.stderr


def test_every_table_is_listed_and_can_be_described() -> None:
    listed = {row["name"] for row in json.loads(run(ZOO, "SHOW TABLES", "--json").stdout)}
    catalog = statetool.catalog(None, ZOO)
    (database,) = [catalog[name] for name in catalog]
    assert listed == {*database.tables, "operators", "states", "files", "key_groups", "in_flight"}
    described = json.loads(run(ZOO, "DESCRIBE timers_keyed_state", "--json").stdout)
    assert [row["column_name"] for row in described] == ["key", "registered"]
    states = json.loads(run(ZOO, "SELECT count(*) AS n FROM states", "--json").stdout)
    assert states == [{"n": len(statetool.load(ZOO).metadata_rows("states"))}]


def test_errors_are_one_line() -> None:
    unknown = run(ZOO, "FROM timers_timer", code=2).stderr
    assert (
        unknown == "error: no table 'timers_timer'. did you mean timers_timers or orders_timers or timers_registered?\n"
    )
    for query in ("SELECT nix FROM timers_timers", "SELEC", "SELECT 1 +"):
        assert run(ZOO, query, code=2).stderr.count("\n") == 1
    assert "pass the query" in run(ZOO, "--to", "x.csv", code=2).stderr
    assert "memory limit 'much'" in run(ZOO, "SELECT 1", "--memory", "much", code=2).stderr
    # A variable of Python is not a table.
    assert "no table 'query'" in run(ZOO, "FROM query", code=2).stderr


def test_an_error_of_a_table_has_its_location(corpus: Path) -> None:
    path = str(corpus / "v2_3_0-rocksdb-canonical" / "snapshot")
    with pytest.raises(StatetoolError, match="decimals='string'") as caught:
        statetool.query(path, "FROM scalars_by_long_keyed_state").read_all()
    assert caught.value.where.state == "bigint"
    rows = statetool.query(path, "FROM scalars_by_long_keyed_state", decimals="string").read_all()
    assert rows.num_rows == statetool.load(path)["scalars-by-long"].count()


def test_snapshots_of_a_directory_are_schemas(tmp_path: Path) -> None:
    for name in ("chk-1", "chk-2"):
        shutil.copytree(ZOO, tmp_path / name)
    statetool.erase(
        str(tmp_path / "chk-2"), str(tmp_path / "chk-3"), ["timer-3"], operators=["timers"], checkpoint_id=999
    )
    query = "SELECT count(*) AS n FROM chk_1.timers_keyed_state ANTI JOIN timers_keyed_state USING (key)"
    assert json.loads(run(tmp_path, query, "--json").stdout) == [{"n": 1}]
    query = "SELECT count(*) AS n FROM before.timers_keyed_state ANTI JOIN timers_keyed_state USING (key)"
    attach = f"before={tmp_path / 'chk-1'}"
    assert json.loads(run(tmp_path / "chk-3", query, "--attach", attach, "--json").stdout) == [{"n": 1}]
    assert "directory of snapshots" in run(tmp_path, "SELECT 1", "--attach", attach, code=2).stderr
    with pytest.raises(UnknownNameError, match="no table"):
        statetool.query({"a": ZOO}, "FROM b.timers_timers")
    with pytest.raises(OptionError, match="two snapshots have the schema name 'chk_1'"):
        statetool.query({"chk-1": ZOO, "chk_1": ZOO}, "SELECT 1")


def test_statements_of_stdin_run_in_turn() -> None:
    done = run(ZOO, "--json", given="SELECT 1 AS a; SELECT ';' AS b;\n")
    assert '"a": 1' in done.stdout
    assert '"b": ";"' in done.stdout
    run(ZOO, given="SELECT 1; SELEC", code=2)


def test_the_prompt_joins_lines_and_has_commands(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    typed = iter([".tables", "SELECT 1", "FROM timers_timers;", "", ".help", ".quit"])
    monkeypatch.setattr("statetool.cli.read.sql._asker", lambda _: lambda _: next(typed))
    assert list(_typed_statements(engine(ZOO))) == ["SELECT 1\nFROM timers_timers;"]
    shown = capsys.readouterr().out
    assert "orders_keyed_state" in shown
    assert "DESCRIBE" in shown


def test_names_are_completed() -> None:
    completer = TableCompleter(engine(ZOO))

    def completed(text: str) -> list[str]:
        return [c.text for c in completer.get_completions(Document(text), None)]

    assert completed("SELECT * FROM timers_t") == ["timers_timers"]
    assert completed("SELECT dom FROM timers_timers WHERE dom") == ["domain"]
    assert completed("SEL") == ["SELECT"]


def test_a_missing_engine_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    operator = statetool.load(ZOO)["timers"]
    for call, extra in ((lambda: operator.to_duckdb(), "sql"), (lambda: operator.to_polars(), "polars")):
        with pytest.raises(MissingDependencyError) as caught:
            call()
        assert caught.value.hint == f"run: pip install 'statetool[{extra}]'"
    assert "statetool[sql]" in run(ZOO, "SELECT 1", code=3).stderr


def test_rows_are_counted() -> None:
    def count(*arguments: str) -> Any:
        done = CliRunner().invoke(cli, ["count", ZOO, *arguments, "--json"])
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    assert count("timers", "timers") == [{"operator": "timers", "table": "timers", "rows": 150}]
    assert [row["rows"] for row in count("timers")] == [14, 150, 14]
    assert count("timers", "keyed_state", "--keys", '["timer-3"]')[0]["rows"] == 1
    savepoint = statetool.load(ZOO)
    assert len(count()) == sum(len(o.tables) for o in savepoint.operators.values())


def test_a_query_needs_a_snapshot() -> None:
    with pytest.raises(OptionError, match="no snapshot"):
        statetool.query({}, "SELECT 1")
