"""An operator whose state cannot even be listed does not affect others: it is named with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError, UnknownNameError
from statetool.formats.metadata import SnapshotMetadata, parse_metadata, write_metadata
from statetool.formats.metadata.handles import KeyGroupsHandle, RelativeFileHandle
from statetool.formats.operator_id import operator_id_for_uid
from tests.support.snapshots import build, canonical

REASON = "keyed state proxy version 0 is not 3 to 6"


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """Return a savepoint of two operators: the keyed header of ``op`` is damaged; its operator state and ``other`` are not."""
    subtask = canonical.Subtask(key=build.STRING, states=[canonical.keyed("count", "VALUE", build.LONG)])
    element = canonical.encoded(canonical.serializer(build.LONG), 7)
    states = {"offsets": canonical.ListState(value=build.LONG, elements=[[element]])}
    (tmp_path / "good").mkdir()
    canonical.savepoint(tmp_path / "good", [subtask], operator_states=states)
    canonical.savepoint(tmp_path, [subtask], operator_states=states, damage=lambda _, raw: raw[:3] + b"\0" + raw[4:])
    (op,) = parse_metadata((tmp_path / "_metadata").read_bytes()).operators
    keyed, operator = (RelativeFileHandle(path=f"good/{n}-0", size_bytes=0) for n in ("keyed", "operator"))
    (good,) = op.subtasks
    assert isinstance(good.managed_keyed, KeyGroupsHandle)
    assert good.managed_operator is not None
    size = (tmp_path / "good" / "keyed-0").stat().st_size
    handle = replace(good.managed_keyed, stream=replace(keyed, size_bytes=size))
    elements = replace(
        good.managed_operator, stream=replace(operator, size_bytes=(tmp_path / "good" / "operator-0").stat().st_size)
    )
    other = replace(
        op,
        operator_id=operator_id_for_uid("other"),
        subtasks=(replace(good, managed_keyed=handle, managed_operator=elements),),
    )
    metadata = SnapshotMetadata(version=3, checkpoint_id=0, operators=(op, other))
    (tmp_path / "_metadata").write_bytes(write_metadata(metadata))
    return str(tmp_path)


def test_what_can_be_listed_is_and_the_rest_says_why(damaged: str) -> None:
    rows = statetool.load(damaged, uids=["op", "other"]).to_arrow("states").to_pylist()
    assert [(r["operator"], r["name"], r["kind"], r["readable"]) for r in rows] == [
        ("op", "offsets", "list", True),
        ("op", "(keyed state)", "unread", False),
        ("other", "count", "value", True),
        ("other", "offsets", "list", True),
    ]
    assert REASON in rows[1]["reason"]


def test_tables_of_the_other_state_are_read(damaged: str) -> None:
    op = statetool.load(damaged, uids=["op"])["op"]
    assert op.tables == ["offsets"]
    assert op.to_arrow("offsets").to_pylist() == [{"value": 7}]
    for table in ("keyed_state", "timers", "count"):
        with pytest.raises(FormatError, match=REASON):
            op.to_arrow(table)


def test_commands_list_it_with_its_reason(damaged: str) -> None:
    for command in ("ls", "states"):
        done = CliRunner().invoke(
            cli, [command, damaged, "--name-uid", "op", "--name-uid", "other", "--output", "json"]
        )
        assert done.exit_code == 0
        assert '"count"' in done.stdout
        assert REASON in done.stderr
    listed = json.loads(done.stdout)
    assert [r["reason"] != "" for r in listed] == [False, True, False, False]
    result = statetool.verify(damaged)
    assert [p.problem for p in result.problems if p.severity == "error"] == [REASON]
    assert not result.ok


def test_a_name_that_is_none_is_told_with_the_near_ones(tmp_path: Path) -> None:
    subtask = canonical.Subtask(key=build.STRING, states=[canonical.keyed("count", "VALUE", build.LONG)])
    op = canonical.savepoint(tmp_path, [subtask])
    with pytest.raises(UnknownNameError, match="did you mean count"):
        op.to_arrow("cuont")


def test_elements_of_a_state_that_their_stream_does_not_describe_are_damage(tmp_path: Path) -> None:
    element = canonical.encoded(canonical.serializer(build.LONG), 7)
    states = {"offsets": canonical.ListState(value=build.LONG, elements=[[element]])}
    canonical.savepoint(tmp_path, [canonical.Subtask(key=build.STRING, states=[])], operator_states=states)
    file = tmp_path / "_metadata"
    file.write_bytes(file.read_bytes().replace(b"\0\7offsets", b"\0\7offsetz"))
    sp = statetool.load(str(tmp_path), uids=["op"])
    assert "'offsetz', which their stream does not describe" in str(sp.to_arrow("states").to_pylist()[-1]["reason"])
    with pytest.raises(FormatError, match="offsetz"):
        sp.stats()
