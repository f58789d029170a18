"""A new stored form, one file and its registration, is read, verified, rescaled and edited by all higher layers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import statetool
from statetool.entries import forms
from statetool.entries.streams import StoredStream
from statetool.formats.keyed.header import write_keyed_header
from statetool.formats.metadata import write_metadata
from statetool.formats.metadata.handles import ByteStreamHandle, KeyGroupsHandle
from statetool.formats.metadata.model import OperatorState, SubtaskState
from statetool.snapshot.operator import OperatorInventory
from tests.support.snapshots.toy_form import StoredToy, ToyForm, toy_stream
from tests.support.zoo import ZOO


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the demo's savepoint with all keyed streams in the new form."""
    statetool.copy(ZOO, str(tmp_path / "toy"))
    savepoint = statetool.load(str(tmp_path / "toy"))
    metadata = savepoint.inventory.metadata
    operators = [_in_toys(savepoint.inventory.operator(o.operator_id), o) for o in metadata.operators]
    (tmp_path / "toy" / "_metadata").write_bytes(write_metadata(replace(metadata, operators=tuple(operators))))
    unread = [s for s in statetool.load(str(tmp_path / "toy")).metadata_rows("states") if s.kind == "unread"]
    assert len(unread) == sum(1 for o in metadata.operators if any(s.managed_keyed for s in o.subtasks))
    monkeypatch.setattr(forms, "FORMS", [ToyForm(), *forms.FORMS])
    return str(tmp_path / "toy")


def _in_toys(operator: OperatorInventory, state: OperatorState) -> OperatorState:
    stored = {s.place.subtask: s for s in operator.keyed.managed if isinstance(s, StoredStream)}
    return replace(state, subtasks=tuple(_in_toy(s, stored.get(s.index), operator) for s in state.subtasks))


def _in_toy(subtask: SubtaskState, stored: StoredStream | None, operator: OperatorInventory) -> SubtaskState:
    handle = subtask.managed_keyed
    if stored is None or not isinstance(handle, KeyGroupsHandle):
        return subtask
    sources = stored.sources(operator.keyed.context, groups=None, target_bytes=1 << 20)
    groups = range(handle.start, handle.start + len(handle.offsets))
    data, offsets = toy_stream(write_keyed_header(stored.header()), sources, groups)
    return replace(
        subtask, managed_keyed=replace(handle, offsets=offsets, stream=ByteStreamHandle(name="toy", data=data))
    )


def _tables(savepoint: statetool.Savepoint) -> dict[tuple[str, str], list[str]]:
    """Return the rows of all tables of keyed state, in order."""
    return {
        (uid, table): _rows(operator.to_arrow(table, ttl="raw", decimals="string"))
        for uid, operator in savepoint.operators.items()
        for table in operator.tables
        if table not in operator.inventory.operator_states
    }


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_it_is_read(toy: str) -> None:
    savepoint = statetool.load(toy)
    assert any(isinstance(s, StoredToy) for o in savepoint.operators.values() for s in o.inventory.keyed.managed)
    assert _tables(savepoint) == _tables(statetool.load(ZOO))
    keys = savepoint["timers"].to_arrow("keyed_state", keys=["timer-3"])
    assert keys.column("key").to_pylist() == ["timer-3"]


def test_it_is_verified(toy: str) -> None:
    mine, theirs = (statetool.verify(path, deep=True) for path in (toy, ZOO))
    assert mine.ok
    assert (mine.entries, mine.keys) == (theirs.entries, theirs.keys) != (0, 0)


def test_damage_is_found_where_it_is(toy: str) -> None:
    metadata = Path(toy) / "_metadata"
    data = metadata.read_bytes()
    at = data.index(b'", "', data.index(b"TOY!"))
    metadata.write_bytes(data[: at - 1] + b"x" + data[at:])
    result = statetool.verify(toy)
    assert not result.ok
    (problem,) = [p for p in result.problems if p.severity == "error"]
    assert "no line of a toy" in problem.problem
    assert problem.offset is not None


def test_it_is_rescaled(toy: str, tmp_path: Path) -> None:
    statetool.rescale(toy, str(tmp_path / "rescaled"), 64, parallelism=3)
    statetool.rescale(ZOO, str(tmp_path / "expected"), 64, parallelism=3)
    rescaled = statetool.load(str(tmp_path / "rescaled"))
    assert {o.inventory.state.max_parallelism for o in rescaled.operators.values()} == {64}
    assert _tables(rescaled) == _tables(statetool.load(str(tmp_path / "expected")))
    assert statetool.verify(str(tmp_path / "rescaled"), deep=True).ok


def test_it_is_edited(toy: str, tmp_path: Path) -> None:
    operator = statetool.load(toy)["with-ttl"]
    rows = operator.to_arrow(states=["plain"])
    changed = rows.set_column(1, "plain", pa.array([7] * len(rows), pa.int64()))
    edit = statetool.bootstrap_keyed_state(changed, states=["plain"], like=operator)
    statetool.SavepointWriter.from_existing(statetool.load(toy)).with_operator("with-ttl", edit).write(
        str(tmp_path / "edited")
    )
    edited, before = _tables(statetool.load(str(tmp_path / "edited"))), _tables(statetool.load(ZOO))
    name = ("with-ttl", "keyed_state")
    assert edited.pop(name) != before.pop(name)
    others = {n: t for n, t in before.items() if n != ("with-ttl", "plain")}
    assert {n: t for n, t in edited.items() if n in others} == others
    again = statetool.load(str(tmp_path / "edited"))["with-ttl"].to_arrow(states=["plain"])
    assert again.column("plain").to_pylist() == [7] * len(rows)


def test_it_becomes_canonical(toy: str, tmp_path: Path) -> None:
    statetool.convert(toy, str(tmp_path / "canonical"))
    converted = statetool.load(str(tmp_path / "canonical"))
    assert not any(isinstance(s, StoredToy) for o in converted.operators.values() for s in o.inventory.keyed.managed)
    assert _tables(converted) == _tables(statetool.load(ZOO))
