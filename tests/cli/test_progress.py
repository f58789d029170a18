"""Progress at a terminal: a bar on stderr while a command runs, and no trace of it in the output."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from statetool.cli import progress
from statetool.demo import SAVEPOINT
from statetool.io.files import BYTES_READ, BYTES_WRITTEN

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
    data, terminal = run(
        tmp_path / "stdout", "rescale", SAVEPOINT, str(tmp_path / "target"), "--max-parallelism", "512"
    )
    bar, _, words = terminal.rpartition("━")
    assert "rescale \x1b" in bar  # the name, then the colors of the bar
    assert "%" in bar
    assert _CLEAR_LINE in words.partition("written to")[0]
    assert "━" not in data


def test_json_is_quiet(tmp_path: Path) -> None:
    data, terminal = run(tmp_path / "stdout", "stats", SAVEPOINT, "--json")
    assert data.startswith("{")
    assert terminal == ""


def test_nothing_is_shown_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.progress("work"):
        assert progress._running is None
    assert capfd.readouterr().err == ""


def test_the_estimate_is_of_what_is_read_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(
        progress, "_REFRESH", 3600.0
    )  # the thread does nothing: this test may be stopped for two seconds
    with progress.progress("work"):
        assert progress._running is not None
        progress.expect(lambda: 100)
        with progress.progress("inner"):  # of a command called by another command
            progress.expect(lambda: 20)
        watcher = progress._running
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
    assert progress._running is None
