"""Progress at a terminal: a bar on stderr while a command runs, and no trace of it in the output."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from statetool.cli import progress
from statetool.io.files import BYTES_READ, BYTES_WRITTEN
from tests.support.zoo import ZOO

_AT_ONCE = """
import sys, statetool.cli.progress as p
p.SILENT, p._REFRESH = 0.0, 0.05
from statetool.cli.main import cli
cli(sys.argv[1:])
"""
_CLEAR_LINE = "\x1b[2K"


def run(output: Path, *arguments: str) -> tuple[str, str]:
    """Run a command that shows progress immediately, with a terminal as stderr; return stdout and the terminal's content."""
    ours, its = pty.openpty()
    with output.open("w") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-c", _AT_ONCE, *arguments],
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100"}, stdout=stdout, stderr=its,
        )  # fmt: skip
    os.close(its)
    shown = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            shown += chunk
    except OSError:  # on Linux, the error when the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0, shown.decode()
    return output.read_text(), shown.decode()


def test_a_bar_is_shown_and_taken_away(tmp_path: Path) -> None:
    data, terminal = run(tmp_path / "stdout", "rescale", ZOO, str(tmp_path / "target"), "--max-parallelism", "512")
    bar, _, words = terminal.rpartition("━")
    assert "rescale \x1b" in bar  # the name, then the colors of the bar
    assert "%" in bar
    assert _CLEAR_LINE in words.partition("written to")[0]
    assert "━" not in data


class Terminal:
    """A terminal whose three streams are those of a command that shows progress after a short time."""

    def __init__(self, *arguments: str) -> None:
        self.ours, its = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _AT_ONCE.replace("0.0, 0.05", "0.2, 0.05"), *arguments],
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40", "PROMPT_TOOLKIT_NO_CPR": "1"},
            stdin=its, stdout=its, stderr=its, start_new_session=True,
        )  # fmt: skip
        os.close(its)
        self.shown = ""

    def read(self, seconds: float, until: str | None = None) -> str:
        """Read for some seconds, or until a text is shown, and return what was read."""
        read, end = "", time.monotonic() + seconds
        while time.monotonic() < end and (until is None or until not in read):
            if select.select([self.ours], [], [], 0.05)[0]:
                try:
                    read += os.read(self.ours, 1 << 16).decode(errors="replace")
                except OSError:
                    break
        self.shown += read
        return read

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.mark.parametrize(
    ("command", "prompt", "typed", "answer"),
    [("sql", "sql>", "SELECT 40 + 2 AS x;", "42"), ("shell", "In [", "print(40 + 2)", "42")],
)
def test_nothing_overwrites_a_prompt_that_waits(command: str, prompt: str, typed: str, answer: str) -> None:
    with Terminal(command, ZOO) as terminal:
        found = prompt in terminal.read(120, prompt)
        assert found
        waiting = terminal.read(1.5)
        os.write(terminal.ours, typed.encode())
        waiting += terminal.read(1.5)
        bars = waiting.count("━")
        assert bars == 0
        os.write(terminal.ours, b"\r")
        answered = answer in terminal.read(60, answer)
        assert answered


@pytest.mark.parametrize(
    ("arguments", "ready"), [(("metrics", "--serve", "0"), "stop with Ctrl-C"), (("browse",), "operators")]
)
def test_commands_that_wait_for_users_show_no_progress(arguments: tuple[str, ...], ready: str) -> None:
    command, *more = arguments
    with Terminal(command, ZOO, *more) as terminal:
        found = ready in terminal.read(120, ready)
        assert found
        terminal.read(0.5)
        bars = terminal.read(1.5).count("━")
        assert bars == 0


def test_json_is_quiet(tmp_path: Path) -> None:
    data, terminal = run(tmp_path / "stdout", "stats", ZOO, "--json")
    assert data.startswith("{")
    assert terminal == ""


def test_nothing_is_shown_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.progress("work"):
        assert progress._COMMAND.watcher is None
    assert capfd.readouterr().err == ""


def test_the_estimate_is_of_what_is_read_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(
        progress, "_REFRESH", 3600.0
    )  # the thread does nothing: this test may be stopped for two seconds
    with progress.progress("work"):
        assert progress._COMMAND.watcher is not None
        progress.expect(lambda: 100)
        with progress.progress("inner"):  # of a command called by another command
            progress.expect(lambda: 20)
        watcher = progress._COMMAND.watcher
        assert watcher.expected == 120
        BYTES_READ.total += 50
        BYTES_WRITTEN.total += 10
        watcher._show()
        assert watcher._bar is not None
        (task,) = watcher._bar.tasks
        assert (task.completed, task.total) == (60, 120)
        BYTES_READ.total += 500
        watcher._show()
        assert task.completed == 120
        progress.hide_progress()
        assert watcher._bar is None
    assert progress._COMMAND.watcher is None


@pytest.mark.parametrize("connection", [{}, {"_jsc": None}])
def test_a_session_that_starts_or_stops_has_no_tasks(
    connection: dict[str, None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark names its context before it has a JVM, and the error of the thread was shown in the terminal."""
    from pyspark import SparkContext

    context = object.__new__(SparkContext)
    vars(context).update(connection)
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    assert progress._tasks_of_spark() is None
