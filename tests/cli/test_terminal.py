"""Output of commands at a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.completion import complete_operator, complete_path
from statetool.cli.main import cli
from statetool.cli.output import COLUMNS, Output
from statetool.cli.read.shell import _BANNER
from statetool.cli.read.tables import head
from statetool.cli.terminal_table import cut_text, fit_table, text_width
from tests.support.zoo import ZOO


def at_a_terminal(columns: int, *arguments: str, given: str = "", settings: Mapping[str, str] | None = None) -> str:
    """Run a command whose standard output is a terminal of this width."""
    ours, its = pty.openpty()
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "dumb"} | dict(settings or {})
    process = subprocess.Popen(
        [sys.executable, "-m", "statetool", *arguments],
        env=environment, stdin=subprocess.PIPE, stdout=its, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(its)
    shown = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            shown += chunk
    except OSError:  # on Linux, the error when the other end is closed
        pass
    os.close(ours)
    _, words = process.communicate(given.encode())
    assert process.returncode == 0, words.decode()
    return shown.decode().replace("\r\n", "\n")


def test_rows_fit_the_terminal() -> None:
    shown = at_a_terminal(80, "states", ZOO).splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[0].split()[:4] == ["operator", "name", "kind", "value_type"]
    assert any("…" in line for line in shown)
    wide = at_a_terminal(80, "states", ZOO, "--wide").splitlines()
    assert max(map(len, wide)) > 200
    assert (
        wide == CliRunner().invoke(cli, ["states", ZOO]).stdout.splitlines()
    )  # in full length if there is no terminal
    assert len(at_a_terminal(400, "states", ZOO).splitlines()) == len(wide)


def test_output_in_a_pipe_fits_columns_that_the_user_sets() -> None:
    def piped(columns: str | None, *options: str) -> Result:
        return CliRunner().invoke(cli, ["states", ZOO, *options], env={COLUMNS: columns, "COLUMNS": "60"})

    complete = piped(None)
    assert max(map(len, complete.stdout.splitlines())) > 200
    assert complete.stderr == ""
    for width in (40, 86, 120):
        fitting = piped(str(width))
        assert fitting.stdout == at_a_terminal(width, "states", ZOO)
        assert max(map(len, fitting.stdout.splitlines())) <= width
        assert f"columns hidden because {COLUMNS} is {width}: " in fitting.stderr
        assert piped(str(width), "--wide").stdout == complete.stdout
        assert piped(str(width), "--json").stdout == piped(None, "--json").stdout
    for no_width in ("", "0", "-1", "wide", "²"):
        assert piped(no_width).stdout == complete.stdout


def test_cut_texts_are_aligned_in_a_terminal_without_an_ellipsis() -> None:
    c = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    shown = at_a_terminal(60, "states", ZOO, settings=c)
    assert shown == at_a_terminal(60, "states", ZOO).replace("…", "~")
    assert "~" in shown


def test_help_fits_a_narrow_terminal() -> None:
    shown = at_a_terminal(40, "report", "--help").partition("Examples:")
    assert max(map(len, shown[0].splitlines())) <= 40
    assert max(map(len, shown[2].partition("Options")[2].splitlines())) <= 40


@pytest.mark.parametrize("columns", [30, 40])
def test_the_names_of_states_stay_in_a_very_narrow_terminal(columns: int) -> None:
    shown = at_a_terminal(columns, "states", ZOO).splitlines()
    assert max(map(len, shown)) <= columns
    assert shown[0].split() == ["operator", "name"]


@pytest.mark.parametrize("width", range(1, 12))
def test_a_cell_has_its_width(width: int) -> None:
    for text in ("", "a", "abcdefghijklmnop", "日本語日本語日本語", "Größe", "e\u0301" * 20):
        cell = cut_text(text, width)
        assert text_width(cell) <= width
        assert cell == text or cell.endswith("…")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_what_one_came_for_stays_in_a_narrow_terminal(columns: int, restores: Path) -> None:
    shown = at_a_terminal(columns, "ls", str(restores)).splitlines()
    assert max(map(len, shown)) <= columns
    assert {"path", "complete", "newest"} <= set(shown[0].split())
    assert len({line.split()[0] for line in shown[1:]}) == len(shown) - 1  # no two paths look the same
    states = at_a_terminal(columns, "states", ZOO).splitlines()
    names = [line.split("  ")[0] + (re.split(" {2,}", line)[1]) for line in states[1:]]
    assert len(set(names)) == len(names)


def test_paths_that_differ_in_their_middle_hide_no_column_one_came_for() -> None:
    names = [
        "v1_20_5-kafka-source-enum0",
        "v1_20_5-kafka-source-enum1",
        "v1_17_2-kafka-source-enum1",
        "v2-two-phase-commit-context",
    ]
    rows = [
        {
            "path": f"/home/someone/flink/savepoints/{n}/snapshot",
            "kind": "savepoint",
            "complete": True,
            "newest": n == "v2",
            "own_bytes": 5,
        }
        for n in names
    ]
    table = fit_table(list(rows[0]), rows, 60)
    assert table.lines[0].split() == ["path", "complete", "newest", "own_bytes"]
    assert len({line.split()[0] for line in table.lines[1:]}) == len(rows)
    assert max(map(len, table.lines)) <= 60


def test_paths_lose_the_folder_that_they_share_before_columns_go() -> None:
    rows = [
        {"path": f"/data/checkpoints/of-a-job/chk-{n}", "checkpoint_id": n, "own_bytes": n, "kind": f"kind-{n}"}
        for n in (41, 42)
    ]
    assert fit_table(list(rows[0]), rows, 80).lines[1].split()[0] == rows[0]["path"]
    narrow = fit_table(list(rows[0]), rows, 50)
    assert (narrow.hidden, [line.split()[0] for line in narrow.lines[1:]]) == ((), ["…/chk-41", "…/chk-42"])
    assert fit_table(list(rows[0]), rows[:1], 50).lines[1].startswith("/data/check")  # one path has no shared folder


def test_names_for_other_commands_and_messages_are_complete_in_a_narrow_terminal() -> None:
    name = "remove /data/kind=blue/.part-4f52aad7-a141-401b-a6e8-4d65dcaa486e-1.txt.inprogress.ac87a3e7"
    message = "an upload to an object store is no file before its commit: look for it in the store"
    rows = [
        {"operator": "sink: Writer (sink)", "name": n, "outcome": "unknown", "message": message}
        for n in (name, "orders-0-1")
    ]
    lines = fit_table(list(rows[0]), rows, 80, whole=["name"]).lines
    assert lines[0].split() == ["operator", "outcome"]
    assert f"  name: {name}" in lines
    assert "  name: orders-0-1" in lines
    assert " ".join(line.strip() for line in lines).count(f"message: {message}") == 2
    assert max(len(line) for line in lines if name not in line) <= 80
    short = [{**row, "name": f"orders-0-{n}", "message": "gone"} for n, row in enumerate(rows)]
    assert fit_table(list(short[0]), short, 60, whole=["name"]).lines[1].split()[-3:] == [
        "orders-0-0",
        "unknown",
        "gone",
    ]
    users = [{"key": "a", "note": "n" * 90}]  # a column of the user's data
    assert max(map(len, fit_table(["key", "note"], users, 80, has_units=False).lines)) == 80


def test_long_errors_are_not_broken_inside_of_words() -> None:
    shown = errors_at_a_terminal(80, "head", ZOO, "no-such-operator-in-this-savepoint", "keyed_state")
    assert len(shown) > 1
    assert max(map(len, shown)) <= 80
    whole = CliRunner().invoke(cli, ["head", ZOO, "no-such-operator-in-this-savepoint", "keyed_state"]).stderr
    assert " ".join(shown).split() == whole.split()
    assert all(set(line.split()) <= set(whole.split()) for line in shown)
    assert max(map(len, errors_at_a_terminal(80, "head", ZOO, "timers", "--no-such-option" * 3, "--and-another"))) <= 80


def errors_at_a_terminal(columns: int, *arguments: str) -> list[str]:
    """Run a command that fails, and return its lines on a standard error that is a terminal of this width."""
    ours, its = pty.openpty()
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "dumb"}
    process = subprocess.Popen([sys.executable, "-m", "statetool", *arguments], env=environment, stderr=its)
    os.close(its)
    shown = b""
    with suppress(OSError):  # on Linux, the error when the other end is closed
        while chunk := os.read(ours, 1 << 16):
            shown += chunk
    os.close(ours)
    assert process.wait() == 2
    return shown.decode().replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize("line", _BANNER.splitlines())
def test_the_banner_of_the_shell_fits_a_narrow_terminal(line: str) -> None:
    names = {"path": "savepoint", "operator": "daily-sales", "table": "window-contents"}
    shown = line.format(**names, checkpoint_id=123456, operators="19 operators", view="sp_daily_sales_window_contents")
    assert len(shown) <= 80


def test_counts_of_timers_stay_in_a_narrow_terminal() -> None:
    assert "count" in next(
        line for line in at_a_terminal(80, "stats", ZOO, "--table", "timers").splitlines() if "operator" in line
    )


def test_numbers_are_for_people_at_a_terminal_and_for_programs_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [
        {"name": "a", "state_bytes": 3 << 20, "keys": 1234567, "checkpoint_id": 1234567, "ratio": 0.25},
        {"name": "b", "state_bytes": None, "keys": 5, "checkpoint_id": 2, "ratio": None},
    ]
    assert fit_table(list(rows[0]), rows, 80).lines == (
        "name  state_bytes     keys  checkpoint_id  ratio",
        "a         3.0 MiB  1234567        1234567   0.25",
        "b               -        5              2      -",
    )
    assert (
        fit_table(["state_bytes"], rows, 80, has_units=False).lines[1].strip() == "3145728"
    )  # a column of the user's data
    Output("text").rows(rows)
    assert capsys.readouterr().out.splitlines()[1].split() == ["a", "3145728", "1234567", "1234567", "0.25"]


def test_columns_go_in_the_order_in_which_they_are_missed_least() -> None:
    ids = ["8877237d" + "0" * 24, "00bea66d" + "1" * 24]
    year = datetime.now(tz=timezone.utc).year
    rows: list[dict[str, Any]] = [
        {
            "id": i,
            "name": f"{'n' * 30}{k}",
            "kind": "keyed",
            "none": None,
            "time": f"{year}-11-28T10:0{k}:00Z",
            "path": f"s3://b/{k}",
        }
        for k, i in enumerate(ids)
    ]
    names = list(rows[0])
    whole = fit_table(names, rows, 200)
    assert (whole.hidden, whole.lines[1].split()[:1]) == ((), [ids[0]])
    narrow = fit_table(names, rows, 70)
    assert narrow.hidden == ("kind (always keyed)", "none (no values)")
    assert narrow.lines[1].split() == ["8877237d", narrow.lines[1].split()[1], "11-28", "10:00:00", "…/0"]
    least = fit_table(names, rows, 40)
    assert "time" in least.hidden
    assert all(len(line) <= 40 for line in least.lines)
    assert least.lines[1].split()[1] != least.lines[2].split()[1]  # names that differ at their ends
    assert fit_table(names, rows, 5).lines[1] == "8877…"


def test_columns_without_values_go_first_also_in_a_table_of_one_row() -> None:
    row: dict[str, Any] = {"operator": "o" * 30, "note": "", "backlog": None, "connector": "kinesis-source", "held": 3}
    table = fit_table(list(row), [row], 45)
    assert table.hidden == ("note (no values)", "backlog (no values)")
    assert table.lines[0].split() == ["operator", "connector", "held"]
    assert fit_table(["note"], [{"note": ""}], 80, has_units=False).lines[1] == ""  # a text of the user


def test_columns_with_one_value_go_before_headings_are_cut() -> None:
    rows = [{"path": f"/{'d' * 60}/chk-{i}", "kind": "savepoint", "checkpoint_id": i} for i in (1, 2)]
    table = fit_table(["path", "kind", "checkpoint_id"], rows, 48)
    assert (table.hidden, table.lines[0].split()) == (("kind (always savepoint)",), ["path", "checkpoint_id"])


def test_durations_have_units_at_a_terminal() -> None:
    rows = [{"age_ms": ms} for ms in (None, 0, 850, 12_340, 312_000, 11_160_000, 699_150_295, -90_000)]
    assert [line.strip() for line in fit_table(["age_ms"], rows, 80).lines] == [
        "age_ms", "-", "0 ms", "850 ms", "12.3 s", "5.2 min", "3.1 h", "8.1 d", "-1.5 min",
    ]  # fmt: skip


def test_a_record_has_units_at_a_terminal() -> None:
    shown = at_a_terminal(80, "info", ZOO)
    assert re.search(r"^state_bytes +[\d.]+ KiB$", shown, re.MULTILINE)
    assert re.search(r"^state_bytes +\d+$", at_a_terminal(80, "info", ZOO, "--wide"), re.MULTILINE)


def test_times_of_another_year_keep_it() -> None:
    rows = [{"time": f"2019-01-0{i}T10:00:00Z", "text": f"{i}{'x' * 40}"} for i in (1, 2)]
    assert fit_table(["time", "text"], rows, 35).lines[1].startswith("2019-01-01 10:00:00  1xx")


@pytest.mark.parametrize(
    ("environment", "has_colours"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_verdicts_headings_and_errors_have_colours_at_a_terminal(
    environment: dict[str, str], has_colours: bool
) -> None:
    settings = {"TERM": "xterm", "NO_COLOR": ""} | environment
    assert ("\x1b[1moperator" in at_a_terminal(80, "states", ZOO, settings=settings)) is has_colours
    assert ("\x1b[32m\x1b[1m" in at_a_terminal(80, "verify", ZOO, settings=settings)) is has_colours


def test_pipes_have_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    done = CliRunner().invoke(cli, ["ls", "/nowhere"], color=True)
    assert done.exit_code == 3
    assert "\x1b" not in done.output


def test_values_in_a_row_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "map": [("a", 1), ("b", None)],
        "list": ["x", None, True],
        "struct": {"f0": b"\x01", "f1": [("k", {"g": 2})]},
        "control": "a\tb\n\x1b[31m",
        "nothing": None,
    }
    values = ["{a -> 1, b -> null}", "[x, null, yes]", "{f0: 01, f1: {k -> {g: 2}}}", r"a\tb\n\x1b[31m", "-"]
    Output("text").rows([{"value": v} for v in row.values()])
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()[1:]] == values


@pytest.mark.parametrize("flag", [["-o", "json"], ["--json"], ["--output", "json"]])
def test_json_is_asked_for_in_a_word(flag: list[str]) -> None:
    assert json.loads(CliRunner().invoke(cli, ["info", ZOO, *flag]).stdout)["checkpoint_id"] == 2


def test_the_nearest_command_alone_is_named() -> None:
    done = CliRunner().invoke(cli, ["inf", ZOO])
    assert "did you mean info?" in done.stderr


def test_an_interrupted_command_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **more: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    monkeypatch.setattr("statetool.load", interrupted)
    # A shell that starts this run in the background makes it ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = CliRunner().invoke(cli, ["info", ZOO])
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.exit_code, done.stderr) == (130, "interrupted\n")


def completed(words: str, folder: Path) -> list[str]:
    """Return the completions that bash offers for the last word of a command line."""
    script = CliRunner().invoke(cli, ["completion", "bash", "--show"]).stdout
    program = folder / "statetool"
    program.write_text(f"#!{sys.executable}\nfrom statetool.cli.main import main\nmain()\n")
    program.chmod(0o755)
    asked = (
        f"{script}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        '_statetool_completion statetool 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


def test_bash_completes_operators_and_tables_of_the_path_given(tmp_path: Path) -> None:
    assert completed("statetool inf", tmp_path) == ["info"]
    assert completed(f"statetool head {ZOO} with", tmp_path) == ["with-ttl"]
    assert completed(f"statetool head {ZOO} with-ttl ttl-", tmp_path) == [
        "ttl-value", "ttl-map", "ttl-list", "ttl-sum",
    ]  # fmt: skip
    assert completed(f"statetool drop {ZOO} new --uid tim", tmp_path) == ["timers"]


def test_completion_knows_nothing_of_what_cannot_be_read() -> None:
    context = click.Context(head)
    for path in ("/nowhere", None):
        context.params["path"] = path
        assert complete_operator(context, cli.params[0], "") == []
    assert complete_path(context, cli.params[0], "s3://bucket") == []


@pytest.mark.parametrize(
    ("shell", "files"),
    [
        ("bash", {".local/share/statetool/completion.bash", ".bashrc"}),
        ("zsh", {".local/share/statetool/completion.zsh", ".zshrc"}),
        ("fish", {".config/fish/completions/statetool.fish"}),
    ],
)
def test_completion_is_installed_once(
    shell: str, files: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    if shell != "fish":
        (tmp_path / f".{shell}rc").write_text("alias l=ls")
    for _ in range(2):
        assert CliRunner().invoke(cli, ["completion"]).exit_code == 0
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()} == files
    if shell != "fish":
        lines = (tmp_path / f".{shell}rc").read_text().splitlines()
        assert lines[0] == "alias l=ls"
        assert len(lines) == 2


def test_a_directory_of_snapshots_names_the_choice_or_takes_the_newest(corpus: Path) -> None:
    root = str(Path(ZOO).parent)
    done = CliRunner().invoke(cli, ["info", root])
    assert done.exit_code == 3
    assert f"{ZOO}\n" in done.stderr.replace(" (newest)", "")
    assert "--latest" in done.stderr
    for command in (["info"], ["ls"], ["stats", "--table", "operators"], ["verify"]):
        newest = CliRunner().invoke(cli, [command[0], root, "--latest", *command[1:]])
        assert newest.exit_code == 0, newest.stderr
    shown = CliRunner().invoke(cli, ["info", root, "--latest", "--json"]).stdout
    operator = json.loads(shown)["operators"][0]["operator"]
    dropped = CliRunner().invoke(cli, ["drop", root, "new", "--latest", "--dry-run", "--uid", operator])
    assert "nothing was written" in dropped.stderr


def test_operators_are_named_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("stream.uid('orders')")
    shown = CliRunner().invoke(cli, ["info", ZOO, "--uids", str(tmp_path / "job.py")])
    assert shown.exit_code == 0
    assert "no-uid (8877237d)  n, _timer_state/processing_user-timers" in shown.stdout
    assert "--name-uid" in shown.stderr


def test_a_chain_shows_sums_and_files_when_they_are_asked_for(corpus: Path) -> None:
    root = str(corpus / "v2_3_0-rocksdb-incremental")
    short, long = (CliRunner().invoke(cli, ["chain", root, *more]).stdout for more in ([], ["--files"]))
    assert long.startswith(short)
    assert "needed_bytes" in short
    assert ".sst" not in short
    assert "references" in long


def prompt(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "statetool", "shell", ZOO]
    return subprocess.run(command, input=code, capture_output=True, text=True, check=True)


def test_the_shell_knows_the_snapshot_and_starts_no_spark_unasked() -> None:
    done = prompt("import sys\nprint(sp['timers'].to_arrow().num_rows, 'pyspark' in sys.modules)\n")
    assert "14 False" in done.stdout
    assert "checkpoint 2, 19 operators" in done.stderr


@pytest.mark.full
def test_the_shell_starts_spark_with_views_when_it_is_asked() -> None:
    done = prompt(
        "print(spark.sql('SELECT * FROM sp_timers_keyed_state').count())\n"
        "print(sp['timers'].keyed_state().where('registered = 7').count(), type(spark).__name__)\n"
    )
    assert "14\n" in done.stdout.replace(">>> ", "")
    assert "4 SparkSession" in done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_what_stdout_cannot_show_is_escaped(tmp_path: Path, arguments: tuple[str, ...], encoding: str) -> None:
    """Characters that stdout cannot encode do not raise an error."""
    text = "\u00fc \u4e2d \U0001f600"
    state = statetool.bootstrap_keyed_state(pa.table({"key": [text], "n": [1]}))
    writer = statetool.SavepointWriter.new().with_operator(text, state)
    path = writer.write(str(tmp_path / "sp"), flink_version="2.3").path
    done = CliRunner(charset=encoding).invoke(cli, ["head", path, "\u00fc \u4e2d \U0001f600", *arguments])
    assert done.exit_code == 0, done.exception
    if arguments:
        assert json.loads(done.stdout) == [{"key": text, "n": 1}]
    else:
        shown = text.encode(encoding, "backslashreplace").decode(encoding)
        assert done.stdout.split()[2:-1] == shown.split()


def test_a_word_of_other_bytes_than_utf_8_is_an_unknown_name() -> None:
    done = CliRunner().invoke(cli, ["head", ZOO, os.fsdecode(b"timers\xff")])
    assert done.exit_code == 2
    assert "no operator" in done.stderr


def test_numbers_beyond_64_bits_are_usage(tmp_path: Path) -> None:
    for command in (
        ("head", ZOO, "timers", "-n", "9" * 25),
        ("diff", ZOO, ZOO, "--limit", "9" * 25),
        ("stats", ZOO, "--ttl-ms", "1", "--now-ms", "9" * 25),
    ):
        assert CliRunner().invoke(cli, command).exit_code == 2


def test_files_and_names_that_cannot_be_are_errors_of_ours(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("[" * 100_000)
    done = CliRunner().invoke(cli, ["migrate", ZOO, str(tmp_path / "to"), "--plan", str(given)])
    assert (done.exit_code, "is not valid JSON" in done.stderr) == (3, True)
    given.write_bytes(b"topic,partition,offset\n\xff,0,1\n")
    done = CliRunner().invoke(cli, ["sources", "lag", f"{ZOO}/../kafka-source", "--ends", str(given)])
    assert (done.exit_code, "is not a valid UTF-8 CSV file" in done.stderr) == (3, True)
    done = CliRunner().invoke(cli, ["copy", ZOO, str(tmp_path / "a\0b")])
    assert (done.exit_code, "is not a valid name of a directory" in done.stderr) == (2, True)
    done = CliRunner().invoke(cli, ["diff", ZOO, ZOO, "--uid", "timers", "--keys", ""])
    assert (done.exit_code, "keys is not JSON" in done.stderr) == (2, True)


def test_what_json_has_no_number_for_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    Output("json").rows(
        [{"a": float("nan"), "b": [float("inf"), ("k", float("-inf"))], "c": "ü", "d": b"\x01", "e": 0.1}]
    )
    printed = capsys.readouterr().out
    assert json.loads(printed, parse_constant=pytest.fail) == [
        {"a": "NaN", "b": ["Infinity", ["k", "-Infinity"]], "c": "ü", "d": "01", "e": 0.1}
    ]
    assert "ü" in printed


def test_a_state_is_set_once(tmp_path: Path) -> None:
    """Two expressions for the same state are an error, before Spark is started."""
    for given, said in ((["a=1", "a=2"], "twice"), (["a= "], "STATE=SQL")):
        sets = [word for one in given for word in ("--set", one)]
        command = ["transform", ZOO, str(tmp_path / "new"), "--uid", "timers", *sets]
        done = CliRunner().invoke(cli, command)
        assert done.exit_code != 0
        assert said in done.stderr
