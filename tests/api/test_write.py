"""``statetool.write`` writes what ``SavepointWriter`` writes of the same table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.errors import OptionError, TargetExistsError, UnknownNameError

ACCOUNTS = pa.table({"id": [7, 8], "count": [3, 1], "tags": [["a"], []]})


#: Streams have random names, which ``_metadata`` has for inline ones too.
_NAME = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def files(folder: Path) -> list[bytes]:
    return sorted(_NAME.sub(b"name", file.read_bytes()) for file in folder.iterdir())


@pytest.mark.parametrize(
    "form", [{}, {"format": "native", "backend": "rocksdb", "flink_version": "2.3"}], ids=["canonical", "native"]
)
def test_keyed_state_has_the_bytes_of_the_writer(tmp_path: Path, form: dict[str, Any]) -> None:
    states = {"count": statetool.value("BIGINT"), "tags": statetool.list_of("STRING")}
    timers = pa.table({"id": [7], "timestamp": [1000]})
    written = statetool.write(
        ACCOUNTS, str(tmp_path / "a"), uid="accounts", key="id", states=states, timers=timers, parallelism=2, **form
    )
    state = statetool.bootstrap_keyed_state(ACCOUNTS, key="id", states=states, timers=timers)
    writer = statetool.SavepointWriter.new().with_operator("accounts", state, parallelism=2)
    writer.write(str(tmp_path / "b"), **form)
    assert written["accounts"].to_arrow().num_rows == 2
    assert not any(
        d.added or d.removed or d.changed for d in written.diff(statetool.load(str(tmp_path / "b"))).summary()
    )


def test_small_states_have_the_bytes_of_the_writer(tmp_path: Path) -> None:
    statetool.write(ACCOUNTS, str(tmp_path / "a"), uid="accounts", key="id", parallelism=2)
    state = statetool.bootstrap_keyed_state(ACCOUNTS, key="id")
    statetool.SavepointWriter.new().with_operator("accounts", state, parallelism=2).write(str(tmp_path / "b"))
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.parametrize("as_path", [True, False])
def test_like_gives_types_and_max_parallelism(tmp_path: Path, as_path: bool) -> None:
    base = statetool.write(
        ACCOUNTS, str(tmp_path / "base"), uid="accounts", key="id", max_parallelism=256,
        states={"count": statetool.value("INT"), "tags": statetool.list_of("STRING")},
    )  # fmt: skip
    table = base["accounts"].to_arrow(ttl="raw")
    copy = statetool.write(table, str(tmp_path / "copy"), uid="accounts", like=str(base.path) if as_path else base)
    assert copy["accounts"].max_parallelism == 256
    assert copy["accounts"].to_arrow().schema == base["accounts"].to_arrow().schema
    with pytest.raises(UnknownNameError, match="acounts"):
        statetool.write(table, str(tmp_path / "other"), uid="acounts", like=base)


@pytest.mark.parametrize(
    ("kind", "states", "table", "expected"),
    [
        ("list", ["offsets"], {"value": [1, 2]}, [1, 2]),
        ("union", {"offsets": statetool.list_of("BIGINT")}, {"value": [1, 2]}, [1, 2]),
        ("broadcast", {"rules": statetool.map_of("STRING", "BIGINT")}, {"key": ["a"], "value": [1]}, [1]),
    ],
)
def test_operator_state(tmp_path: Path, kind: Any, states: Any, table: dict[str, Any], expected: list[int]) -> None:
    given = pa.table(table)
    written = statetool.write(given, str(tmp_path / "a"), uid="source", kind=kind, states=states, parallelism=1)
    (name,) = states
    assert written["source"].to_arrow(name)["value"].to_pylist() == expected
    assert written["source"].states[name].kind == kind


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "keyd"}, "kind 'keyd'"),
        ({"key": "id", "max_parallelism": 0}, "max parallelism"),
        ({"kind": "union"}, "needs one name"),
        ({"kind": "union", "states": "offsets"}, "needs one name"),
        ({"kind": "list", "states": ["a", "b"]}, "needs one name"),
        ({"kind": "union", "states": {"a": statetool.value("BIGINT")}}, "no type of union state 'a'"),
        ({"kind": "list", "states": {"a": statetool.list_of("BIGINT", ttl=True)}}, "no type of list state 'a'"),
        ({"kind": "list", "states": {"a": statetool.list_of(statetool.pyflink.Types.LONG())}}, "no type of list state"),
        ({"kind": "list", "states": ["a"], "timers": ACCOUNTS}, "timers with list state"),
    ],
)
def test_wrong_options_write_nothing(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        statetool.write(ACCOUNTS, str(tmp_path / "a"), uid="x", **given)
    assert not [*tmp_path.iterdir()]


def test_an_existing_target_is_refused(tmp_path: Path) -> None:
    statetool.write(ACCOUNTS, str(tmp_path / "a"), uid="accounts", key="id")
    before = files(tmp_path / "a")
    with pytest.raises(TargetExistsError):
        statetool.write(ACCOUNTS, str(tmp_path / "a"), uid="accounts", key="id")
    assert files(tmp_path / "a") == before
