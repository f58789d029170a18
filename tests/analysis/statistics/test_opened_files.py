"""How often measuring opens each file."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pytest

import statetool
from statetool.analysis.statistics.records import TABLES
from statetool.analysis.statistics.statistics import StatisticsRequest, statistics_of
from statetool.io import open_files
from statetool.io.files import InputFile
from tests.support.snapshots.build import INT, LONG, list_of, pojo
from tests.support.snapshots.canonical import (
    Subtask,
    composite_key,
    encoded,
    group_of,
    keyed,
    savepoint,
    serializer,
)

NOW: Final = 1_800_000_000_000
CASES = ("v2_3_0-hashmap-canonical", "v2_3_0-hashmap-native", "v2_3_0-rocksdb-native")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each file of state is opened."""
    counts: Counter[str] = Counter()

    class Counted(InputFile):
        def __init__(self, uri: str) -> None:
            counts[uri] += 1
            super().__init__(uri)

    monkeypatch.setattr("statetool.io.open_files.InputFile", Counted)
    # Files that a read of an earlier test left open, because its error keeps it, would not be opened again.
    monkeypatch.setattr(open_files, "_FILES", open_files._OpenFiles())
    return counts


def keyed_files(savepoint: Any) -> set[str]:
    return {row.path for row in savepoint.metadata_rows("files") if row.slot == "managed keyed" and not row.inline}


def in_processes(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]:
    """Return a function that runs tasks as other processes do: they share no open files, and only bytes travel."""

    def each(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        for item in items:
            with monkeypatch.context() as patch:
                patch.setattr(open_files, "_FILES", open_files._OpenFiles())
                sent = pickle.dumps(function(pickle.loads(pickle.dumps(item))))
            yield pickle.loads(sent)

    return each


@pytest.mark.parametrize("case", CASES)
def test_measuring_opens_each_file_once(
    corpus: Path, case: str, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files._FILES, "most_idle", 1000)  # the snapshot has more than 256 files
    savepoint = statetool.load(str(corpus / case / "snapshot"))
    savepoint.stats()
    assert len(keyed_files(savepoint) & opened.keys()) > 1
    assert set(opened.values()) == {1}


@pytest.mark.parametrize("case", CASES)
def test_tasks_open_each_file_once_and_the_driver_none_of_them(
    corpus: Path, case: str, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    savepoint = statetool.load(str(corpus / case / "snapshot"))
    operators = list(savepoint.inventory.operators.values())
    request = StatisticsRequest.of(now_ms=NOW)
    measured = statistics_of(operators, request, in_processes(monkeypatch))
    keyed = keyed_files(savepoint) & opened.keys()
    assert len(keyed) > 1
    assert {opened[file] for file in keyed} == {1}
    expected = savepoint.stats(now_ms=NOW)  # the headers are known
    for table in TABLES:
        assert measured.rows(table) == expected.rows(table)


def test_more_files_than_may_stay_open(corpus: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files._FILES, "most_idle", 1)
    savepoint = statetool.load(str(corpus / CASES[0] / "snapshot"))
    savepoint.stats(threads=1)
    keyed = keyed_files(savepoint) & opened.keys()
    assert len(keyed) > 1
    assert {opened[file] for file in keyed} == {1}


@pytest.mark.parametrize("case", CASES)
def test_a_check_opens_each_file_once(
    corpus: Path, case: str, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files._FILES, "most_idle", 1000)  # the snapshot has more than 256 files
    snapshot = str(corpus / case / "snapshot")
    assert statetool.verify(snapshot, deep=True, allow_unread=True).ok
    assert len(keyed_files(statetool.load(snapshot)) & opened.keys()) > 1
    assert set(opened.values()) == {1}


@pytest.mark.parametrize("case", CASES)
def test_a_table_opens_each_file_once(corpus: Path, case: str, opened: Counter[str]) -> None:
    savepoint = statetool.load(str(corpus / case / "snapshot"))
    keyed = keyed_files(savepoint)
    read: set[str] = set()
    for uid, operator in savepoint.operators.items():
        if (
            uid != "orders" and operator.inventory.keyed.managed
        ):  # it has values of classes that the snapshot does not describe
            opened.clear()
            operator.to_arrow(decimals="string")
            assert set(opened.values()) <= {1}
            read |= keyed & opened.keys()
    assert read


def test_headers_that_complete_each_other_are_read_before_values(
    tmp_path: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of a POJO's subclass that only the header of another subtask describes."""
    long = serializer(LONG)
    keys = [[k for k in range(20) if group_of(long, k, 128) // 64 == half] for half in range(2)]
    classes = {name: pojo(name, {"wheels": INT, field: INT}) for name, field in (("Car", "doors"), ("Boat", "sails"))}
    vehicles = [pojo("Vehicle", {"wheels": INT}, others={name: cls}) for name, cls in classes.items()]
    states = [keyed("fleet", "list", list_of(vehicle)) for vehicle in vehicles]
    # A flag and the name of the subclass, then the fields: each after a byte for null.
    values = [b"\4\0" + bytes([len(name)]) + name.encode() + b"\2\0\0\0\0\4\0\0\0\0\5" for name in classes]
    subtasks = [
        Subtask(
            key=LONG,
            states=[state],
            # Each subtask has values that only the other one describes.
            entries=[
                ("fleet", group_of(long, key, 128), composite_key(encoded(long, key)), b",".join(values))
                for key in of_subtask
            ],
        )
        for state, of_subtask in zip(states, keys, strict=True)
    ]
    savepoint(tmp_path, subtasks)
    (operator,) = statetool.load(str(tmp_path)).inventory.operators.values()
    assert operator.keyed.descriptions  # read here, and again by the tasks of a snapshot that is opened anew
    expected = statistics_of([operator], StatisticsRequest.of(now_ms=NOW))
    opened.clear()
    (fresh,) = statetool.load(str(tmp_path)).inventory.operators.values()
    measured = statistics_of([fresh], StatisticsRequest.of(now_ms=NOW), in_processes(monkeypatch))
    assert measured.unread == expected.unread == ()
    for table in TABLES:
        assert measured.rows(table) == expected.rows(table)
    assert sum(row.entries for row in measured.rows("states")) == 20
    assert max(opened.values()) == 2


@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
def test_headers_of_any_size_are_read(inline_bytes: int, tmp_path: Path) -> None:
    """Tasks carry small headers; a large one may be followed by state in the same inline stream."""
    names = [f"state-{i:03}" for i in range(100)]
    for states in (names[:2], names):
        table = pa.table({"key": [1, 2], **{name: [3, 4] for name in states}})
        writer = statetool.SavepointWriter.new().with_operator("o", statetool.bootstrap_keyed_state(table))
        new = writer.write(str(tmp_path / f"{len(states)}"), inline_bytes=inline_bytes)
        (operator,) = new.operators.values()
        (source,) = cast(Any, operator._operator.keyed.sources())
        assert (source.header_of is source.stream) == (states is names)
        assert operator.to_arrow().sort_by("key").to_pylist() == table.to_pylist()
