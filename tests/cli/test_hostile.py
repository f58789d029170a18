"""Text from a snapshot or a path never reaches a terminal unescaped: no escape sequence, no line break, no change of text direction."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from textual.widgets import DataTable, Static, Tree

import statetool as st
from statetool import flink
from statetool.cli.completion import complete_operator, complete_state
from statetool.cli.main import cli
from statetool.cli.read.browser import Browser
from statetool.cli.read.tables import head
from statetool.connectors.layouts.kafka_sink import kafka_tools
from statetool.connectors.model import PendingCommit
from statetool.errors import StatetoolError
from tests.support.snapshots import build, canonical

#: Colours, a window title, other line ends, a bell, C1 control sequences, a changed text direction.
_CONTROLS: Final = "\x1b[31m\x1b]0;owned\x07\r\b\x7f\x85\x9b2J\u2028\u202e"
#: With an additional line that imitates statetool's output; file names have no slash.
HOSTILE: Final = f"a{_CONTROLS}\nSPOOFED 1"


def harmful(text: str) -> list[str]:
    """Return the text that a terminal would interpret, and lines that statetool did not print."""
    found = [repr(c) for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")]
    return [*found, *(line for line in text.split("\n") if line.startswith("SPOOFED"))]


def run(*arguments: str | Path, codes: tuple[int, ...] = (0, 1)) -> Result:
    """Run a command in this process and check its output."""
    done = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert done.exit_code in codes, (arguments, done.stdout, done.stderr, done.exception)
    assert harmful(done.stdout) == [], arguments
    assert harmful(done.stderr) == [], arguments
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / HOSTILE


@pytest.fixture(scope="module")
def path(folder: Path) -> str:
    """A snapshot with hostile text in every name and value."""
    fields = pa.array([{HOSTILE: 1}, {HOSTILE: 2}])
    maps = pa.array([[(HOSTILE, HOSTILE)], []], pa.map_(pa.string(), pa.string()))
    table = pa.table({"key": [HOSTILE, "b"], "a": [HOSTILE, "x"], "b": fields, "c": maps, "d": [[HOSTILE], []]})
    names = ["key", HOSTILE, f"{HOSTILE}pojo", f"{HOSTILE}map", f"{HOSTILE}list"]
    types = {
        names[1]: st.value("STRING"),
        names[2]: st.value(flink.pojo(HOSTILE, {HOSTILE: "BIGINT"})),
        names[3]: st.map_of("STRING", "STRING"),
        names[4]: st.list_of("STRING"),
    }
    keyed = st.bootstrap_keyed_state(
        table.rename_columns(names),
        key="key",
        states=types,
        timers=pa.table({"key": [HOSTILE], "timestamp": [5]}),
    )
    elements = [
        st.bootstrap_list_state(f"{HOSTILE}elements", pa.table({"value": [HOSTILE]})),
        st.bootstrap_broadcast_state(f"{HOSTILE}rules", pa.table({"key": [HOSTILE], "value": [HOSTILE]})),
    ]
    writer = st.SavepointWriter.new().with_operator(HOSTILE, keyed, *elements, parallelism=1)
    return writer.write(str(folder / "sp"), flink_version="2.3").path


@pytest.fixture(scope="module")
def other(path: str, folder: Path) -> str:
    """The same snapshot with other values, and without one of the states."""
    changed = st.bootstrap_keyed_state(pa.table({"key": [HOSTILE], HOSTILE: [f"{HOSTILE}!"]}), key="key")
    writer = st.SavepointWriter.new().with_operator(HOSTILE, changed, parallelism=1)
    return writer.write(str(folder / "other"), flink_version="2.3").path


@pytest.fixture(scope="module")
def unknown(folder: Path) -> str:
    """A savepoint whose serializers have unknown classes."""
    target = folder / "unknown"
    target.mkdir(parents=True)
    states = [canonical.keyed(HOSTILE, "value", build.pojo(HOSTILE, {HOSTILE: build.kryo(HOSTILE)}))]
    canonical.savepoint(target, [canonical.Subtask(key=build.STRING, states=states)])
    damaged = (target / "keyed-0").read_bytes().replace(b"IntSerializer", b"\x1b[31serial")
    (target / "keyed-0").write_bytes(
        damaged.replace(b"StringSerializer$StringSerializerSnapshot", b"\x1b[31m\n" * 6 + b"SPOOF")
    )
    return str(target)


#: Every command that reads a snapshot, as typed. PATH, OTHER and UNKNOWN are the snapshots above.
COMMANDS: Final = (
    ("info", "PATH"),
    ("info", "UNKNOWN"),
    ("info", "PATH/.."),
    ("info", "PATH/../nothing"),
    ("info", "PATH", "--name-uid", HOSTILE + "x"),
    ("info", "PATH", "--rebase", HOSTILE),
    ("ls", "PATH"),
    ("ls", "PATH/.."),
    ("ls", "UNKNOWN"),
    ("states", "PATH"),
    ("states", "UNKNOWN"),
    ("files", "PATH"),
    ("files", "UNKNOWN"),
    *(("schema", "PATH", HOSTILE, *more) for more in ((), ("--format", "avro"))),
    *(("schema", "PATH", HOSTILE, f"{HOSTILE}{name}") for name in ("", "pojo", "map", "rules")),
    *(("head", "PATH", HOSTILE, *more) for more in ((), ("timers",), (HOSTILE,))),
    *(("head", "PATH", HOSTILE, f"{HOSTILE}{name}") for name in ("pojo", "map", "list", "elements", "rules", "nothing")),
    ("count", "PATH"),
    ("sql", "PATH", "FROM states"),
    ("sql", "PATH", "FROM states", "-o", "csv"),
    ("sql", "PATH", "FROM states", "--json"),
    ("sql", "PATH", "SHOW TABLES"),
    ("sql", "PATH", HOSTILE),
    ("head", "PATH", HOSTILE + "x"),
    ("head", "PATH", HOSTILE, "--keys", json.dumps([HOSTILE])),
    ("head", "PATH", HOSTILE, "--keys", json.dumps([5, HOSTILE])),
    ("head", "PATH", HOSTILE, "--states", HOSTILE),
    ("head", "UNKNOWN", "op"),
    *(("get", "PATH", HOSTILE, key) for key in ("5", "1", HOSTILE, json.dumps({HOSTILE: 1}))),
    ("get", "PATH", HOSTILE, "5", HOSTILE + "x"),
    ("get", "UNKNOWN", "op", "5"),
    ("stats", "PATH"),
    ("stats", "UNKNOWN"),
    ("stats", "PATH", "--table", "largest"),
    ("stats", "PATH", "--estimate"),
    ("stats", "PATH/.."),
    ("diff", "PATH", "OTHER"),
    ("match", "PATH", "OTHER"),
    ("match", "PATH", "OTHER", "--match", f"{HOSTILE}={HOSTILE}"),
    ("diff", "PATH", "UNKNOWN"),
    ("diff", "PATH", "PATH"),
    ("diff", "PATH", "OTHER", "--uid", HOSTILE, "--keys", json.dumps([HOSTILE])),
    ("check", "PATH", "OTHER"),
    ("check", "PATH", "--flink", "2.3"),
    ("check", "PATH", "--flink", HOSTILE),
    ("check", "UNKNOWN", "--flink", "2.3"),
    ("verify", "PATH", "--deep"),
    ("verify", "UNKNOWN"),
    ("doctor", "PATH"),
    ("doctor", "UNKNOWN"),
    ("chain", "PATH/..", "--files"),
    ("orphans", "PATH/..", "--min-age", "0s"),
    ("advise", "PATH/.."),
    ("lint", "CONFIG"),
    *(("metrics", path, "--read", "keyed", "--read", "connectors") for path in ("PATH", "UNKNOWN", "PATH/..")),
    ("copy", "PATH", "NEW", "--dry-run"),
    ("copy", "PATH", "PATH"),
    ("rescale", "PATH", "NEW", "--max-parallelism", "64", "--dry-run"),
    ("convert", "PATH", "NEW", "--dry-run"),
    ("uid", "PATH", "NEW", f"{HOSTILE}=b", "--dry-run"),
    ("uid", "PATH", "NEW", f"x={HOSTILE}", "--dry-run"),
    ("drop", "PATH", "NEW", "--uid", HOSTILE, "--state", HOSTILE, "--dry-run"),
    ("state", "rename", "PATH", "NEW", "--uid", HOSTILE, "--state", HOSTILE, "--to", HOSTILE, "--dry-run"),
    ("graft", "PATH", "OTHER", "NEW", "--uid", f"{HOSTILE}={HOSTILE}2", "--dry-run"),
    ("graft", "PATH", "OTHER", "NEW", "--uid", HOSTILE, "--dry-run"),
    ("merge", "PATH", "OTHER", "NEW", "--dry-run"),
    ("split", "PATH", "NEW", "NEW2", "--uid", HOSTILE, "--dry-run"),
    ("move-state", "PATH", "NEW", "--from", HOSTILE, "--to", HOSTILE, "--state", HOSTILE, "--dry-run"),
    ("erase", "PATH", "NEW", "--keys", HOSTILE, "--dry-run"),
    ("erase", "PATH", "NEW", "--where", HOSTILE, "--uid", HOSTILE, "--dry-run"),
    ("keep", "PATH", "NEW", "--keys-from", HOSTILE, "--dry-run"),
    ("sample", "PATH", "NEW", "--keys", "50%", "--dry-run"),
    ("sample", "PATH", "NEW", "--key-groups", HOSTILE, "--dry-run"),
    ("set", "PATH", "NEW", "--uid", HOSTILE, "--key", HOSTILE, "--set", f"{HOSTILE}=1", "--dry-run"),
    ("purge", "PATH", "NEW", "--ttl", f"{HOSTILE}=1d", "--dry-run"),
    ("migrate", "PATH", "NEW", "--to", "OTHER", "--dry-run"),
    ("catch-up", "OTHER", "PATH", "OTHER", "NEW", "--to", "OTHER", "--dry-run"),
    ("upgrade", "PATH", "NEW", "--jar-b", "PATH", "--dry-run"),
    ("transform", "PATH", "NEW", "--uid", HOSTILE, "--set", HOSTILE),
    ("declare", "--jar", "PATH"),
    ("sources", "list", "PATH"),
    ("sources", "show", "PATH"),
    ("sources", "schemas", "PATH"),
    ("sources", "check", "PATH", "--uid", HOSTILE),
    ("sources", "lag", "PATH", "--uid", HOSTILE, "--ends", "CONFIG"),
    ("set-elements", "PATH", "NEW", "--uid", HOSTILE, "--state", HOSTILE, "--where", HOSTILE, "--remove", "--dry-run"),
    ("sources", "set", "PATH", "NEW", "--uid", HOSTILE, f"{HOSTILE}=1", "--dry-run"),
    ("sinks", "list", "PATH"),
    ("sinks", "pending", "PATH", "--commands"),
    ("sinks", "check", "PATH", "--paimon", HOSTILE),
    ("sinks", "forget", "PATH", "NEW", "--uid", HOSTILE, "--lose", HOSTILE, "--dry-run"),
    ("report", "PATH", "OTHER", "--target", "PAGE"),
    (HOSTILE,),
    (f"--{HOSTILE}", "ls"),
    ("ls", f"--{HOSTILE}"),
    ("head", "PATH", HOSTILE, "--ttl", HOSTILE),
    ("head", "PATH", HOSTILE, "-n", HOSTILE),
)  # fmt: skip
#: Commands that show no snapshot, or do not print it; they have separate tests.
ELSEWHERE: Final = {
    "browse",
    "shell",
    "completion",
    "demo",
    "kernels",
    "mcp",
    "serve",
    "export",
    "jobs",
    "savepoint",
    "checkpoint",
}


def test_every_command_is_driven() -> None:
    assert {c[0] for c in COMMANDS if HOSTILE not in c[0]} == set(cli.list_commands(click.Context(cli))) - ELSEWHERE


@pytest.fixture
def places(path: str, other: str, unknown: str, tmp_path: Path) -> dict[str, str]:
    config = tmp_path / "flink-conf.yaml"
    config.write_text(f"execution.checkpointing.interval: so{_CONTROLS.replace(chr(0x85), '').splitlines()[0]}on\n")
    new = str(tmp_path / HOSTILE / "new")
    page = str(tmp_path / f"{HOSTILE}.html")
    return {"PATH": path, "OTHER": other, "UNKNOWN": unknown, "NEW": new, "CONFIG": str(config), "PAGE": page}


def placed(arguments: tuple[str, ...], places: dict[str, str]) -> list[str]:
    return [places.get(head := a.partition("/")[0], head) + a[len(head) :] for a in arguments]


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the addresses that this process connects to, or whose names it looks up, from now on. All fail."""
    found: list[object] = []

    def refuse(*arguments: object, **more: object) -> None:
        found.append(arguments)
        raise OSError("no network in this test")

    for owner, name in ((socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo")):
        monkeypatch.setattr(owner, name, refuse)
    return found


def test_connections_are_noticed(addresses: list[object]) -> None:
    run("jobs", "http://localhost:1", codes=(3,))
    assert addresses


@pytest.mark.parametrize("command", COMMANDS, ids=[f"{i}-{c[0][:9].strip()}" for i, c in enumerate(COMMANDS)])
def test_no_command_prints_what_a_terminal_obeys(
    command: tuple[str, ...], places: dict[str, str], addresses: list[object]
) -> None:
    run(*placed(command, places), codes=(0, 1, 2, 3))
    assert addresses == []  # with local paths, statetool sends nothing
    page = Path(places["PAGE"])
    if page.exists():
        assert harmful(page.read_text()) == []


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c[0] in ("info", "ls", "states", "files", "head", "stats", "diff", "check")]
)
def test_json_has_the_same_values_by_escapes_of_its_own(command: tuple[str, ...], places: dict[str, str]) -> None:
    done = run(*placed(command, places), "--json", codes=(0, 1, 2, 3))
    if done.exit_code < 2:
        shown = str_of(json.loads(done.stdout))
        assert HOSTILE in shown or "UNKNOWN" in command or command == ("diff", "PATH", "PATH")


def str_of(value: Any) -> str:
    """Return all text of a value, unescaped."""
    if isinstance(value, dict):
        return "".join(f"{k}{str_of(v)}" for k, v in value.items())
    return "".join(map(str_of, value)) if isinstance(value, list) else str(value)


def test_text_shows_the_names_as_escapes(places: dict[str, str]) -> None:
    shown = run("head", places["PATH"], HOSTILE, HOSTILE).stdout
    assert r"a\x1b[31m\x1b]0;owned\x07\r\x08\x7f\x85\x9b2J\u2028\u202e\nSPOOFED 1" in shown
    columns = run("schema", places["PATH"], HOSTILE).stdout
    assert len(columns.splitlines()) == 5
    assert r"`a\x1b[31m" in columns


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_tracebacks_of_errors_that_nobody_expects_are_escaped(places: dict[str, str], debug: tuple[str, ...]) -> None:
    code = (
        "import statetool, sys\nfrom statetool.cli.main import main\n"
        f"def fail(*a, **k): raise (RuntimeError if not sys.argv[1:2] == ['--debug'] else statetool.StatetoolError)({HOSTILE!r})\n"
        "statetool.load = fail\nmain()"
    )
    command = [sys.executable, "-c", code, *debug, "info", places["PATH"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert r"a\x1b[31m" in done.stderr
    assert harmful(done.stderr) == []


def test_errors_and_warnings_of_the_library_are_escaped(path: str, recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(StatetoolError) as caught:
        st.load(path)[HOSTILE + "x"]
    assert harmful(str(caught.value)) == []
    assert HOSTILE in caught.value.message or HOSTILE in caught.value.hint  # programs get them unescaped
    st.errors.warn(HOSTILE)
    # A ResourceWarning of what another test left open may come at any time.
    (given,) = [warning for warning in recwarn.list if issubclass(warning.category, UserWarning)]
    assert harmful(str(given.message)) == []
    assert given.filename == __file__


def test_the_prompt_says_names_as_escapes(path: str) -> None:
    command = [sys.executable, "-m", "statetool", "shell", path]
    done = subprocess.run(command, input="print(sp, list(sp.operators))\n", capture_output=True, text=True, check=True)
    assert "checkpoint 0, 1 operator" in done.stderr
    assert harmful(done.stdout) == harmful(done.stderr) == []


def test_a_shell_completes_no_names_that_it_would_obey(path: str) -> None:
    context = click.Context(head)
    context.params["path"] = path
    assert complete_operator(context, cli.params[0], "") == []
    (timers,) = complete_state(context, cli.params[0], "")
    assert timers.value == "_timer_state/event_user-timers"


def test_the_browser_shows_escapes(path: str) -> None:
    def texts(app: Browser) -> Iterator[str]:
        yield from (app.title, app.sub_title)
        tree = app.query_one(Tree)
        for node in (*tree.root.children, *(leaf for n in tree.root.children for leaf in n.children)):
            yield str(node.label)
        yield from (line for s in app.screen.query(Static) for line in str(s.content).split("\n"))
        table = app.query_one(DataTable)
        yield from (str(c.label) for c in table.ordered_columns)
        yield from (str(v) for i in range(table.row_count) for v in table.get_row_at(i))

    async def steps() -> None:
        app = Browser(st.load(path))
        async with app.run_test(size=(120, 30)) as pilot:
            tree = app.query_one(Tree)
            (node,) = tree.root.children
            node.expand()
            await pilot.pause()
            for leaf in list(node.children):
                tree.focus()
                tree.move_cursor(leaf)
                await pilot.press("enter")
                await pilot.pause()
                await app.workers.wait_for_complete()
                await pilot.pause()
                app.query_one(DataTable).focus()
                await pilot.press("enter")
                await pilot.pause()
                assert [h for t in texts(app) for h in harmful(t)] == []
                await pilot.press("escape")
            assert r"a\x1b" in str(node.label)

    asyncio.run(steps())


def test_a_command_line_for_kafka_names_the_same_transaction() -> None:
    """It is one line, and the shell passes on the stored text."""
    for name in (HOSTILE, "it's \\ $HOME `x`", f"'{HOSTILE}\\"):
        pending = PendingCommit(
            name=name, status="", subtask=0, transactional_id=name, producer_id=1, epoch=2, fields=None
        )
        for line in kafka_tools(pending):
            assert harmful(line) == []
            assert "\n" not in line
        (described,) = [t for t in kafka_tools(pending) if " describe " in t]
        word = described.partition("--transactional-id ")[2]
        environment = os.environ | {"LC_ALL": "C.UTF-8"}
        done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, env=environment)
        assert done.stdout.decode() == name


@pytest.mark.full
def test_commands_on_spark_print_escapes(path: str, tmp_path: Path) -> None:
    for command in (
        ["export", path, HOSTILE, "timers", str(tmp_path / "x"), "--format", "jsonl"],
        ["transform", path, str(tmp_path / "y"), "--uid", HOSTILE, "--set", f"`{HOSTILE}`=1/0", "--dry-run"],
        ["stats", path, "--spark"],
        ["stats", path, "--estimate", "--spark"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "statetool", *command], capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 1, 2, 3)
        assert harmful(done.stdout) == []
        assert [h for h in harmful(done.stderr) if "WARN" not in h] == []
