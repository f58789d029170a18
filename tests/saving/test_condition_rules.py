"""Conditions are evaluated for each key alone, the same way on every machine: everything else is refused before a file is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool import flink
from statetool.cli.main import cli
from statetool.errors import OptionError
from statetool.saving.streams.condition_rules import check_condition, names_in
from tests.support.quick import quick
from tests.support.zoo import ZOO

#: Conditions that depend on other keys, on the machine, on the moment or on the session, with a word of the refusal.
REFUSED = (
    ("registered = (SELECT max(registered) FROM keys)", "subquery"),
    ("registered IN (SELECT 1)", "subquery"),
    ("EXISTS (FROM keys)", "subquery"),
    ("registered = ANY([1, 2])", "subquery"),
    ("list_contains(list_transform([1], lambda x: (SELECT 1)), 1)", "subquery"),
    ("max(registered) > 1", "aggregate max"),
    ("count(*) > 1", "aggregate count_star"),
    ("geomean(registered) > 1", "aggregate avg"),
    ("row_number() OVER () = 1", "window function row_number"),
    ("sum(registered) OVER (ORDER BY key) > 5", "window function"),
    ("keys::VARCHAR LIKE '%timer%'", "no column 'keys'"),
    ("hash(keys) > 0", "no column 'keys'"),
    ("keys.registered > 1", "no column 'keys'"),
    ("__statetool_keys::VARCHAR <> ''", "no column '__statetool_keys'"),
    ("__statetool_keys.registered > 1", "no column '__statetool_keys'"),
    ("__statetool_row < 3", "no column '__statetool_row'"),
    ("rowid < 3", "no column 'rowid'"),
    ("#1 > 3", "column by its position"),
    ("$1 > 3", "not one expression"),
    ("COLUMNS(*) IS NOT NULL", "all columns"),
    ("* = 1", "all columns"),
    ("hash(*) > 0", "hash()"),
    ("keys.hash() > 0", "no column 'keys'"),
    ("__statetool_keys.hash() > 0", "no column '__statetool_keys'"),
    ("(__statetool_keys -> '$.registered')::INT > 3", "no column '__statetool_keys'"),
    ("upper(key -> keys) = ''", "no column 'keys'"),
    ("key.max() > 'a'", "aggregate max"),
    ("main.now() IS NULL", "calls now"),
    ("system.main.random() > 0.5", "calls random"),
    ("registered.make_timestamp().age() > INTERVAL 1 DAY", "calls age"),
    ("key = 'a') LIMIT (1", "cannot be parsed"),
    ("key = 'a') GROUP BY (key", "not one expression"),
    ("key = 'a') OR (true", "not one expression"),
    ("true)\n OR (key = 'a' -- )", "not one expression"),
    ("key = 'a') UNION SELECT (1", "not one expression"),
    ("key = 'a') QUALIFY (true", "not one expression"),
    ("true); SELECT (1", "not one expression"),
    ("registered > random()", "calls random"),
    ("now() > TIMESTAMP '2020-01-01'", "calls now"),
    ("today() > DATE '2020-01-01'", "calls today"),
    ("current_date > DATE '2020-01-01'", "calls current_date"),
    ("CURRENT_TIMESTAMP > TIMESTAMP '2020-01-01'", "calls current_timestamp"),
    ("localtimestamp > TIMESTAMP '2020-01-01'", "calls localtimestamp"),
    ("age(TIMESTAMP '2020-01-01') > INTERVAL 1 DAY", "calls age"),
    ("current_setting('TimeZone') = 'UTC'", "calls current_setting"),
    ("getvariable('x') IS NULL", "calls getvariable"),
    ("getenv('HOME') = ''", "calls getenv"),
    ("nextval('s') > 1", "calls nextval"),
    ("uuid()::VARCHAR > key", "calls uuid"),
    ("version() = key", "calls version"),
    ("current_database() = key", "calls current_database"),
    ("current_user = key", "calls current_user"),
    ("stats(key) = ''", "calls stats"),
    ("vector_type(key) = 'FLAT_VECTOR'", "calls vector_type"),
    ("format_type(registered, 1) = ''", "subquery"),
    ("pg_conf_load_time() IS NULL", "calls current_timestamp"),
)  # fmt: skip


@pytest.mark.parametrize(("where", "words"), REFUSED)
@pytest.mark.parametrize("write", [statetool.erase, statetool.keep])
def test_what_is_not_of_one_key_is_refused(tmp_path: Path, write: Any, where: str, words: str) -> None:
    with pytest.raises(OptionError) as error:
        write(ZOO, str(tmp_path / "new"), where=where, operators=["timers"])
    assert words in str(error.value)
    assert "bug" not in str(error.value)
    assert not (tmp_path / "new").exists()
    with pytest.raises(OptionError):
        getattr(statetool.load(ZOO)["timers"], write.__name__)(where=where).write(str(tmp_path / "new"))


def test_the_command_refuses_with_one_line(tmp_path: Path) -> None:
    words = ["erase", ZOO, str(tmp_path / "new"), "--uid", "timers", "--where", "registered = (SELECT 1)"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert "has a subquery" in done.stderr


@pytest.mark.parametrize(
    "where",
    [
        "list_contains([k + 1 for k in [registered] if k > 3], 8)",
        "list_filter([registered], lambda x, i: x > i + 5) = []",
        "len(list_transform([key], lambda k: upper(k))) = 1 AND registered > 6",
        "CASE WHEN key LIKE 'timer-1%' THEN registered BETWEEN 3 AND 9 ELSE registered IN (1, 2) END",
        "'current_date' <> key AND key <> '(SELECT 1)' AND key < 'timer-3' -- now()",
        "TRY_CAST(right(key, 1) AS INT) >= 5 /* random() */",
        "key COLLATE NOCASE = 'TIMER-3'",
        "hash(key) % 2 = 0",
        "list_aggregate([registered, 1], 'sum') > 7",
        "coalesce(nullif(registered, 7), 0) = 0",
        'len("key") = 8',
    ],
)
def test_expressions_of_one_key_remain(tmp_path: Path, where: str) -> None:
    rows = statetool.load(ZOO)["timers"].to_arrow()
    connection = duckdb.connect()
    connection.register("t", rows)
    expected = {key for (key,) in connection.execute(f"SELECT key FROM t WHERE ({where}\n)").fetchall()}
    statetool.keep(ZOO, str(tmp_path / "kept"), where=where, operators=["timers"])
    kept = statetool.load(str(tmp_path / "kept"))["timers"].to_arrow()["key"].to_pylist()
    assert set(kept) == expected
    assert 0 < len(expected) < rows.num_rows


def test_names_are_those_of_columns_only() -> None:
    assert names_in("a.b > 1 AND list_filter(L, lambda x: x > y.z) = [w for w in v] -- u") == {"a", "L", "y", "v"}
    assert names_in("(j -> '$.x') IS NULL AND s.t.upper() = n.lower() AND (k ->> m) = 'a'") == {"j", "s", "n", "k", "m"}
    assert names_in("list_filter(l, x -> x.upper() > y) = []") == {"l", "y"}
    assert names_in("[k.lower() for k in l if k > 3] = []") == {"l"}


def test_every_function_of_this_duckdb_without_arguments_is_known() -> None:
    """A new release may have new functions whose result depends on the moment or on the session."""
    connection = duckdb.connect(":memory:", config={"enable_external_access": "false"})
    query = """SELECT DISTINCT function_name FROM duckdb_functions()
    WHERE function_type IN ('scalar', 'macro') AND len(parameters) = 0 AND function_name SIMILAR TO '[a-z_0-9]+'"""
    allowed = set()
    for (name,) in connection.execute(query).fetchall():
        try:
            check_condition(f"{name}() IS NULL")
        except OptionError:
            continue
        allowed.add(name)
    assert allowed <= {
        "add", "array_cat", "array_concat", "array_to_json", "array_value", "array_zip", "inet_client_addr", "inet_client_port",
        "inet_server_addr", "inet_server_port", "json_array", "json_object", "json_quote", "list_cat", "list_concat", "list_pack",
        "list_value", "list_zip", "map", "map_concat", "pg_my_temp_schema", "pi", "row", "row_to_json", "struct_concat", "struct_insert",
        "struct_pack", "struct_update", "to_json", "union_value", "unpivot_list",
    }  # fmt: skip


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A savepoint of 1,000 keys with a time, whose states differ only in the case of their letters."""
    n = pa.array(range(1000), pa.int64())
    times = pa.array([1767225600_000_000 + i * 60_000_000 for i in range(1000)], pa.timestamp("us", tz="UTC"))
    pairs = pa.array([{"A": i, "a": -i} for i in range(1000)])
    reverse = pa.array(range(1000, 0, -1), pa.int64())
    table = pa.table({"key": n, "Total": n, "total": reverse, "ts": times, "pair": pairs})
    types = {
        **{name: statetool.value("BIGINT") for name in ("Total", "total")},
        "ts": statetool.value("TIMESTAMP"),
        "pair": statetool.value(flink.pojo("com.acme.Pair", {"A": flink.LONG, "a": flink.LONG})),
    }
    state = statetool.bootstrap_keyed_state(table, states=types)
    path = str(tmp_path_factory.mktemp("letters") / "sp")
    statetool.SavepointWriter.new().with_operator("op", state, parallelism=2).write(path, flink_version="2.3")
    return path


def test_a_subquery_would_have_been_evaluated_for_each_batch(letters: str) -> None:
    with pytest.raises(OptionError, match="subquery"):
        statetool.erase(letters, "unused", where="ts = (SELECT max(ts) FROM keys)", operators=["op"], dry_run=True)


def test_states_that_differ_only_in_case_are_not_guessed(letters: str) -> None:
    for name in ("total", "TOTAL", '"total"'):
        with pytest.raises(OptionError, match=r"any of the states 'Total', 'total'.*their columns are Total, total_"):
            statetool.erase(letters, "unused", where=f"{name} > 990", operators=["op"], dry_run=True)
    for name, keys in (("Total", 9), ("total_", 10), ("TOTAL_", 10)):
        done = statetool.erase(letters, "unused", where=f"{name} > 990", operators=["op"], dry_run=True)
        assert [o.keys for o in done.plan.operators] == [keys]


def test_fields_that_differ_only_in_case_are_not_guessed(letters: str) -> None:
    for field in ("A", "a"):
        with pytest.raises(OptionError, match="'pair' has the fields 'A' and 'a', which SQL does not distinguish"):
            statetool.erase(letters, "unused", where=f"pair.{field} > 990", operators=["op"], dry_run=True)


ZONES = ("UTC", "Asia/Tokyo", "America/New_York")
_COUNT = """
import json, sys, statetool
done = [statetool.erase(sys.argv[1], "unused", where=w, operators=["op"], dry_run=True).plan.operators[0].keys for w in sys.argv[3:]]
rows = statetool.query(sys.argv[1], sys.argv[2]).read_all().to_pylist()
print(json.dumps([done, [{k: str(v) for k, v in row.items()} for row in rows]]))
"""


@pytest.mark.parametrize("language", quick(["C", "th_TH.UTF-8"], "th_TH.UTF-8"))
def test_times_mean_the_same_on_all_machines(letters: str, language: str) -> None:
    conditions = [
        "ts >= '2026-01-01 12:00:00'",
        "ts >= TIMESTAMP '2026-01-01 03:00:00'",
        "ts::DATE = DATE '2026-01-01'",
        "hour(ts) = 3",
        "year(ts) = 2026",
        "strftime(ts, '%Y-%m-%d %H') = '2026-01-01 05'",
        "date_trunc('day', ts) = '2026-01-01'",
        "make_timestamptz(2026, 1, 1, 12, 0, 0) <= ts",
        "to_timestamp(epoch(ts)) = '2026-01-01 00:01:00'",
    ]
    query = "SELECT count(*) AS n, min(ts)::VARCHAR AS first, year(max(ts)) AS y FROM op_keyed_state WHERE ts >= '2026-01-01 12:00:00'"
    answers = []
    for zone in ZONES:
        env = {**os.environ, "TZ": zone, "LC_ALL": language, "LANG": language}
        command = [sys.executable, "-c", _COUNT, letters, query, *conditions]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    assert answers[0] == [
        [280, 820, 1000, 60, 1000, 60, 1000, 280, 1],
        [{"n": "280", "first": "2026-01-01 12:00:00+00", "y": "2026"}],
    ]
    assert answers[0] == answers[1] == answers[2]
