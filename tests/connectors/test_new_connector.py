"""A connector is one file and one registration: this module is the file, and the entry point below is the registration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import statetool
from statetool.connectors import registry
from statetool.connectors.connector import SplitConnector
from statetool.connectors.layouts.kafka import KafkaSource, KafkaSplit
from statetool.connectors.model import Enumerator, HeldSplit, KnownSplit, SourceBytes, SplitPosition
from statetool.connectors.sources import READER_STATE, coordinator_bytes
from statetool.connectors.wire import write_versioned
from statetool.errors import OptionError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.saving.compose import write_composition
from statetool.saving.composition import Composition, OperatorChange
from statetool.saving.local import LocalRunner
from statetool.saving.versions import parse_release


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """A tape and its position."""

    split_id: str
    seconds: int


class TapeDeck(SplitConnector):
    """A fictitious source."""

    name: ClassVar[str] = "tape-deck"
    split_versions: ClassVar[frozenset[int]] = frozenset({9})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({4})
    markers: ClassVar[tuple[str, ...]] = ("rewound",)

    def place(self, split: Tape) -> SplitPosition:
        if split.seconds < 0:
            return SplitPosition(source=split.split_id, marker="rewound")
        return SplitPosition(source=split.split_id, position=str(split.seconds))

    def at(self, split: Tape, position: str) -> Tape:
        if position != "rewound" and not position.isdigit():
            raise OptionError(f"{position!r} is not a second of a tape")
        return replace(split, seconds=-1 if position == "rewound" else int(position))

    def added(self, split_id: str, position: str, others: Any) -> Tape:
        return self.at(Tape(split_id=split_id, seconds=0), position)

    def read_split(self, version: int, c: Cursor) -> Tape:
        return Tape(split_id=c.utf(), seconds=c.i4())

    def write_split(self, version: int, split: Tape) -> bytes:
        out = Output()
        out.utf(split.split_id)
        out.i4(split.seconds)
        return bytes(out)

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        count = c.count("tapes", at_least=6)
        known = tuple(KnownSplit(split=self.read_split(9, c), status="unassigned") for _ in range(count))
        return Enumerator(splits=known)

    def write_enumerator(self, version: int, enumerator: Enumerator) -> bytes:
        out = Output()
        out.i4(len(enumerator.splits))
        for each in enumerator.splits:
            out += self.write_split(9, each.split)
        return bytes(out)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    point = EntryPoint("tape-deck", f"{__name__}:TapeDeck", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.GROUP else [])
    registry.connectors.cache_clear()
    yield
    registry.connectors.cache_clear()


@pytest.fixture
def played(tmp_path: Path) -> statetool.Savepoint:
    """Return a savepoint of a job with such a source: two tapes are playing, one waits."""
    deck = TapeDeck()
    tapes = [Tape(split_id="A", seconds=61), Tape(split_id="B", seconds=7), Tape(split_id="C", seconds=0)]
    splits = [write_versioned(9, deck.write_split(9, t)) for t in tapes[:2]]
    readers = statetool.bootstrap_list_state(READER_STATE, pa.table({"value": splits}), type="BINARY")
    base = statetool.SavepointWriter.new().with_operator("deck", readers, parallelism=2).write(str(tmp_path / "base"))
    waiting = Enumerator(splits=(KnownSplit(split=tapes[2], status="unassigned"),))
    change = OperatorChange(coordinator=coordinator_bytes(4, deck.write_enumerator(4, waiting)))
    wanted = Composition(base=base.inventory, changes={"deck": change})
    release = parse_release(None, default=base.metadata_version)
    write_composition(wanted, str(tmp_path / "played"), release, LocalRunner())
    return statetool.load(str(tmp_path / "played")).with_uids(["deck"])


def test_without_it_splits_and_enumerator_are_bytes(played: statetool.Savepoint) -> None:
    (source,) = played.connector_rows("sources")
    assert (source.connector, source.held, source.undecoded) == ("unknown", 2, 2)
    assert "no connector reads these bytes" in source.note
    rows = played.connector_rows("source_splits")
    assert sorted(r.undecoded for r in rows) == [b"\0\1A\0\0\0\x3d", b"\0\1B\0\0\0\7"]
    assert {r.version for r in rows} == {9}


@pytest.mark.usefixtures("registered")
def test_it_is_shown_checked_and_edited(played: statetool.Savepoint, tmp_path: Path) -> None:
    (source,) = played.connector_rows("sources")
    assert (source.connector, source.held, source.unassigned, source.problems) == ("tape-deck", 2, 1, 0)
    assert {r.split_id: r.position for r in played.connector_rows("source_splits")} == {"A": "61", "B": "7"}
    statetool.edit_source(
        played, str(tmp_path / "new"), "deck", positions={"A": 90, "C": "rewound"}, remove=["B"], add={"D": 5}
    )
    assert statetool.verify(str(tmp_path / "new"), deep=True).ok
    new = statetool.load(str(tmp_path / "new")).with_uids(["deck"])
    assert {r.split_id: r.position for r in new.connector_rows("source_splits")} == {"A": "90", "D": "5"}
    assert [(r.split_id, r.marker) for r in new.connector_rows("enumerators")] == [("C", "rewound")]
    twice = statetool.edit_source(new, str(tmp_path / "no"), "deck", add={"E": 1}, dry_run=True)
    assert not [c for c in twice.checks if c.is_problem]


def test_unknown_versions_stay_bytes_beside_what_is_known() -> None:
    data = KafkaSource().write_split(0, KafkaSplit(topic="t", partition=0, starting_offset=4))
    held = HeldSplit(subtask=0, version=0, data=data)
    ((connector, state),) = registry.recognise(SourceBytes(held=(held,), enumerator_version=99, enumerator=b"new"))
    assert connector.name == "kafka-source"
    assert state.enumerator is None
    assert state.held[0].split.split_id == "t-0"
    # Bytes that do not fit their version are not recognized.
    assert registry.recognise(SourceBytes(held=(replace(held, data=data[:-1]),))) == []


def test_operators_whose_state_cannot_be_read_are_named(connector_cases: Path, tmp_path: Path) -> None:
    """The type of an operator with an unknown serializer is unknown; the other sources are shown nevertheless."""
    whole = (connector_cases / "v2_3_0-two-phase-commit" / "snapshot" / "_metadata").read_bytes()
    known, unknown = (
        b"TwoPhaseCommitSinkFunction$StateSerializerSnapshot",
        b"TwoPhaseCommitSinkFunction$StateSerializerSnapshoT",
    )
    assert whole.count(known) == 2
    (tmp_path / "_metadata").write_bytes(whole.replace(known, unknown))
    savepoint = statetool.load(str(tmp_path))
    assert {r.operator for r in savepoint.connector_rows("sources")} >= {"rows", "blocker"}
    notes = {r.operator: r.note for r in savepoint.connector_rows("sinks")}
    assert notes.keys() == {"two-phase"}
    assert savepoint.connector_rows("transactions") == []
    assert "its operator state cannot be read: serializer snapshot class" in notes["two-phase"]
    with pytest.raises(UnknownSerializerError, match="StateSerializerSnapshoT"):
        savepoint["two-phase"].transactions()
