"""A real client of the protocol, over stdio, talking to the command."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from statetool import StatetoolError, load
from statetool.cli.assistants import tools
from statetool.cli.assistants.bounds import OutsideError, Root
from statetool.cli.assistants.tools import Tools
from tests.support.servers.flink_rest import RELEASES, flink_rest
from tests.support.zoo import ZOO

ROOT = str(Path(ZOO).parent)


def ask(root: str, steps: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "statetool", "mcp", root], env=dict(os.environ)
        )
        async with Client(command) as client:
            await steps(client)

    with pytest.MonkeyPatch.context() as patch:
        # The client gives a server ten seconds to start, and then tries older versions of the protocol. A busy machine may need more.
        patch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 600.0, raising=False)
        asyncio.run(run())


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return str(answer.content[0].text)  # type: ignore[union-attr]


def test_a_client_asks_everything_and_gets_nothing_from_outside() -> None:
    async def steps(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {t.name for t in tools} == {"list_snapshots", "describe", "read_rows", "stats", "check"}
        assert all(t.annotations is not None and t.annotations.read_only_hint for t in tools)
        snapshots = (await call(client, "list_snapshots"))["snapshots"]
        assert [s["path"] for s in snapshots] == ["kafka-sink", "kafka-source", "savepoint"]
        assert snapshots[2]["state_bytes"] == 103705
        described = await call(client, "describe", path="savepoint")
        timers = next(o for o in described["operators"] if o["operator"] == "timers")
        assert "keyed_state" in timers["tables"]
        read = await call(client, "read_rows", path="savepoint", operator="timers", limit=3)
        assert (len(read["rows"]), read["more"]) == (3, True)
        one = await call(client, "read_rows", path="savepoint", operator="timers", keys=["timer-3"])
        assert [r["key"] for r in one["rows"]] == ["timer-3"]
        stats = await call(client, "stats", path="savepoint", operators=["timers"])
        assert stats["operators"][0]["operator"] == "timers"
        checked = await call(client, "check", path="savepoint", flink="1.20")
        assert (checked["verdict"], checked["ok"]) == ("not", False)
        for outside in (ZOO, "../zoo/savepoint", "file:///etc", "~/x", "savepoint/../../zoo"):
            assert "not a path below the root" in await refusal(client, "describe", path=outside)
        assert "1 to 1000 rows" in await refusal(client, "read_rows", path="savepoint", operator="timers", limit=1001)
        assert "did you mean timers" in await refusal(client, "read_rows", path="savepoint", operator="timer")

    ask(ROOT, steps)


def test_the_url_of_a_job_is_the_directory_of_its_checkpoints(tmp_path: Path) -> None:
    with flink_rest(RELEASES[-1], tmp_path) as rest:
        newest = rest.checkpoint_path("orders", rest.history("orders")["latest"]["completed"]["id"])
        shutil.copytree(ZOO, newest)
        served = Tools(f"flink://{rest.host}/orders")
    assert [snapshot["path"] for snapshot in served.list_snapshots()["snapshots"]] == [newest.name]
    assert served.describe(newest.name)["operators"]
    with pytest.raises(OutsideError):
        served.describe(f"flink://{rest.host}/orders")


def test_links_that_lead_outside_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "linked").mkdir(parents=True)
    (root / "away").symlink_to(ZOO)
    (root / "linked" / "_metadata").symlink_to(Path(ZOO) / "_metadata")
    shutil.copytree(ZOO, root / "own")
    (root / "inside").symlink_to(root / "own")
    for name in ("away", "linked"):
        with pytest.raises(OutsideError):
            Root(str(root)).open(name)
    assert Root(str(root)).open("inside").checkpoint_id == 2
    snapshots = Tools(str(root)).list_snapshots()["snapshots"]
    assert [(s["path"], "problem" in s) for s in snapshots] == [("linked", True), ("own", False)]


def test_files_outside_that_metadata_names_are_refused(corpus: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(corpus / "v2_3_0-rocksdb-incremental" / "snapshot", root / "whole", symlinks=True)
    shutil.copytree(root / "whole", root / "hostile")
    metadata = next((root / "hostile").rglob("_metadata"))
    folder = metadata.parent.relative_to(root)
    named = [r for r in load(str(metadata)).metadata_rows("files") if not r.inline]
    victim = Path(named[0].path)
    outside = tmp_path / victim.name
    shutil.move(victim, outside)
    victim.symlink_to(outside)
    with pytest.raises(OutsideError, match="outside"):
        Root(str(root)).open(str(folder))
    assert json.dumps(Tools(str(root)).list_snapshots()).count("problem") == 1


@pytest.mark.parametrize("place", ["../other/file", "x/../../other/file", "%2e%2e/other/file", "..\\other\\file"])
def test_no_way_leads_up_from_a_root_far_away(place: str) -> None:
    import fsspec

    fsspec.filesystem("memory").mkdirs("/far/snapshots", exist_ok=True)
    root = Root("memory://far/snapshots")
    root._check("memory://far/snapshots/chk-1/_metadata")
    with pytest.raises(OutsideError):
        root._check(f"memory://far/snapshots/{place}")


def test_there_is_more_only_where_there_is() -> None:
    asked = Tools(ROOT).read_rows
    whole = asked("savepoint", "timers", limit=100)
    n = len(whole["rows"])
    assert [asked("savepoint", "timers", limit=k)["more"] for k in (n - 1, n, n + 1)] == [True, False, False]
    assert asked("savepoint", "timers", limit=n) == whole


def test_what_json_has_no_number_for_is_text() -> None:
    odd = {"a": [float("nan"), {"b": float("-inf")}], "c": 1.5, "d": b"\x01"}
    assert tools._plain(odd) == {"a": ["NaN", {"b": "-Infinity"}], "c": 1.5, "d": "01"}


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StatetoolError):
        Root(str(tmp_path / "nothing"))
