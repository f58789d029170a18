"""The whole output of commands at a terminal of 80 columns, and the files that hold the expected output.

Run ``python -m tests.support.cli_output`` to write the files again after a change of the output, and look at the difference.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from unittest import mock

import click
from click.testing import CliRunner

from statetool.cli.main import cli
from statetool.cli.output import Output
from tests.support.corpora.archives import HERE, unpack
from tests.support.zoo import ZOO

EXPECTED: Final = HERE / "cli" / "expected"
_WIDTH: Final = 80
#: The folder of all paths. Its names have one length, so tables do too, and a table may cut them.
_PREFIX: Final = "statetool-"
_FOLDER: Final = re.compile(rf"(?<=/{_PREFIX})[a-z0-9_]{{1,8}}")
#: The time at which snapshots were written, and the time of the runs.
_WRITTEN, _NOW = 1_700_000_000, 1_700_000_600

#: Runs of commands, by name of the expected file. Words in capitals are paths. The output of check, verify, diff, lint and advise is
#: tested where their findings are.
RUNS: Final[dict[str, Sequence[str]]] = {
    "info": ("info", "SAVEPOINT"),
    "info-json": ("info", "KAFKA", "--json"),
    "ls": ("ls", "SAVEPOINT"),
    "ls-directory": ("ls", "CHECKPOINTS"),
    "states": ("states", "SAVEPOINT"),
    "files": ("files", "SAVEPOINT"),
    "schema": ("schema", "SAVEPOINT", "with-ttl"),
    "schema-avro": ("schema", "SAVEPOINT", "timers", "timers", "--format", "avro"),
    "head": ("head", "SAVEPOINT", "timers"),
    "head-json": ("head", "SAVEPOINT", "timers", "timers", "-n", "2", "--json"),
    "head-undecoded": ("head", "SAVEPOINT", "orders", "--on-error", "keep_raw", "-n", "2", "--key-group"),
    "stats": ("stats", "SAVEPOINT", "--uid", "timers"),
    "stats-growth": ("stats", "CHECKPOINTS"),
    "chain": ("chain", "CHECKPOINTS"),
    "orphans": ("orphans", "CHECKPOINTS", "--min-age", "0s"),
    "rescale": ("rescale", "SAVEPOINT", "TARGET", "--max-parallelism", "256"),
    "rescale-dry-run": ("rescale", "SAVEPOINT", "TARGET", "--uid", "timers=256", "--dry-run"),
    "convert": ("convert", "SAVEPOINT", "TARGET"),
    "uid": ("uid", "SAVEPOINT", "TARGET", "timers=alarms"),
    "drop": ("drop", "SAVEPOINT", "TARGET", "--uid", "timers", "--state", "registered"),
    "copy": ("copy", "SAVEPOINT", "TARGET"),
    "copy-dry-run": ("copy", "SAVEPOINT", "TARGET", "--dry-run"),
    "migrate": ("migrate", "SAVEPOINT", "TARGET", "--to", "SAVEPOINT", "--dry-run"),
    "report": ("report", "SAVEPOINT", "--target", "REPORT"),
    "erase": ("erase", "SAVEPOINT", "TARGET", "--keys", "timer-3"),
    "sample": ("sample", "SAVEPOINT", "TARGET", "--keys", "2", "--uid", "timers"),
    "set": ("set", "SAVEPOINT", "TARGET", "--uid", "with-ttl", "--key", "4", "--set", "ttl-list[0]=9"),
    "purge": ("purge", "SAVEPOINT", "TARGET", "--ttl", "ttl-list=1s", "--now", "1900000000000"),
    "sources-list": ("sources", "list", "KAFKA"),
    "sources-show": ("sources", "show", "KAFKA"),
    "sources-lag": ("sources", "lag", "KAFKA", "--ends", "ENDS"),
    "sources-set": ("sources", "set", "KAFKA", "TARGET", "--uid", "orders", "orders:0=7"),
    "sinks-list": ("sinks", "list", "KAFKA_SINK"),
    "sinks-committed": ("sinks", "committed", "KAFKA_SINK"),
    "sinks-pending": ("sinks", "pending", "KAFKA_SINK", "--commands"),
    "error-directory": ("info", "CHECKPOINTS"),
    "error-no-snapshot": ("info", "TARGET"),
    "error-operator": ("head", "SAVEPOINT", "timer"),
    "error-table": ("head", "SAVEPOINT", "timers", "registred"),
    "error-command": ("inf", "SAVEPOINT"),
    "error-nothing-to-do": ("rescale", "SAVEPOINT", "TARGET"),
    "error-growth": ("stats", "CHECKPOINTS", "--largest", "5"),
    "error-lag": ("sources", "lag", "KAFKA"),
}


def command_of(names: tuple[str, ...]) -> click.Command:
    """Return the command that is typed with these names."""
    command: click.Command = cli
    for name in names:
        assert isinstance(command, click.Group)
        child = command.get_command(click.Context(command), name)
        assert child is not None
        command = child
    return command


def commands(names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the names of every command and group, as typed after ``statetool``."""
    yield names
    command = command_of(names)
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from commands((*names, name))


@contextmanager
def paths() -> Iterator[dict[str, str]]:
    """Yield the path for each word in capitals of :data:`RUNS`, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir="/tmp") as name:
        folder = Path(name)
        corpus = unpack(HERE / "corpus" / "public-datastream.tar.xz", folder / "datastream")
        connectors = unpack(HERE / "corpus" / "connectors.tar.xz", folder / "connectors")
        sources = {
            "savepoint": Path(ZOO),
            "checkpoints": next(corpus.rglob("v2_3_0-rocksdb-incremental")) / "snapshot",
            "kafka_sink": next(connectors.rglob("v2_3_0-kafka-sink")) / "snapshot",
            "kafka": next(connectors.rglob("v2_3_0-kafka-source")) / "snapshot",
        }
        for target, source in sources.items():
            shutil.copytree(source, folder / target)
        (folder / "ends").write_text("topic,partition,offset\norders,0,2000\norders,1,1000\npayments.eu-1,2,50\n")
        (folder / "checkpoints" / "leftover").write_bytes(b"from a failed checkpoint")
        for file in folder.rglob("*"):
            os.utime(file, (_WRITTEN, _WRITTEN))
        yield {name.upper(): str(folder / name) for name in (*sources, "ends", "target", "report")}


def help_of(names: tuple[str, ...]) -> str:
    """Return the help of a command at a terminal of 80 columns."""
    done = CliRunner().invoke(cli, [*names, "--help"], prog_name="statetool", env={"COLUMNS": str(_WIDTH)})
    assert done.exit_code == 0, done.output
    return done.stdout


def output_of(name: str, where: dict[str, str]) -> str:
    """Run a command and return its command line, stdout, exit code and stderr."""
    targets = (Path(where["TARGET"]), Path(where["REPORT"]))
    shutil.rmtree(targets[0], ignore_errors=True)
    targets[1].unlink(missing_ok=True)
    arguments = [where.get(word, word) for word in RUNS[name]]
    with (
        mock.patch("time.time", return_value=float(_NOW)),
        mock.patch.object(Output, "_terminal_width", return_value=_WIDTH),
    ):
        done = CliRunner().invoke(cli, arguments, prog_name="statetool", env={"COLUMNS": str(_WIDTH)})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    words = [Path(where[word]).name if word in where else word for word in RUNS[name]]
    text = f"$ statetool {' '.join(words)}\n{done.stdout}--- exit code {done.exit_code}\n{done.stderr}"
    return _FOLDER.sub(lambda found: "x" * len(found[0]), text)


def help_file(names: tuple[str, ...]) -> Path:
    """Return the file with the expected help of a command."""
    return EXPECTED / f"help{''.join(f'-{name}' for name in names)}.txt"


def output_file(name: str) -> Path:
    """Return the file with the expected output of a run."""
    return EXPECTED / f"{name}.txt"


def write_all() -> None:
    """Write all files with expected output again."""
    EXPECTED.mkdir(exist_ok=True)
    for file in EXPECTED.glob("*.txt"):
        file.unlink()
    for names in commands():
        help_file(names).write_text(help_of(names))
    with paths() as where:
        for name in RUNS:
            output_file(name).write_text(output_of(name, where))


if __name__ == "__main__":
    write_all()
