"""State of jobs with flink-scala-api, written by Flink 1.20.5 and 2.3.0 (``tests/support/flink/flinkx`` has the job).

``tests/corpus/flinkx.tar.xz`` has a folder per job: the savepoint, and ``values.json`` with the values of each key as the job saw them.
The folders name the releases of Flink, Scala and flink-scala-api.
"""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import Level
from statetool.errors import EncodeError, FormatError, StatetoolError, UnknownSerializerError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.libraries.flinkx.parts import PACKAGE, ArityChoice
from statetool.serializers.table import snapshot_reader
from tests.support.corpora.archives import HERE, unpack
from tests.support.snapshots import build
from tests.support.snapshots.entries import entries_of

#: Savepoints by their folders.
SAVEPOINTS: Final = (
    "flink-2.3-scala-2.13-release-2.2.4",
    "flink-2.3-scala-2.13-release-2.2.4-rocksdb",
    "flink-1.20-scala-3-release-2.2.4",
    "flink-1.20-scala-3-release-2.2.4-rocksdb",
    "flink-1.20-scala-2.13-release-1.1.7",
    "flink-1.20-scala-2.13-release-1.1.7-no-arity",
)
ARITY: Final = "flink-1.20-scala-2.13-release-1.1.7"
BYTES: Final = build.simple("BytePrimitiveArray", "org.apache.flink.api.common.typeutils.base.array.")
#: Rows that hash to ``item.id``: the key is ``Item(7919 n, "item n")``.
_STEP: Final = 7919


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(HERE / "corpus" / "flinkx.tar.xz", tmp_path_factory.mktemp("flinkx"))


def opened(path: Path) -> statetool.Operator:
    return statetool.load(str(path), uids=["keeper"])["keeper"]


def serializers(path: Path) -> dict[str, Serializer]:
    """Return the serializers of the states and of the key of a savepoint."""
    ((header, _), *_) = opened(path).inventory.keyed_states.values()
    states = {m.name: m.serializers["VALUE_SERIALIZER"] for m in header.states if m.backend_type == 0}
    return {**states, "key": header.key}


def same(found: Any, expected: Any) -> bool:
    """Compare a value of a column with that of the job, which has no type for times, numbers and bytes."""
    match found:
        case dict() if isinstance(expected, dict):
            found = {k: v for k, v in found.items() if not k.endswith("_nanos") and (k, v) != ("kind", "finite")}
            return found.keys() == expected.keys() and all(same(v, expected[k]) for k, v in found.items())
        case list() | tuple() if isinstance(expected, list):
            return len(found) == len(expected) and all(map(same, found, expected))
        case bytes():
            return bool(found.hex() == expected)
        case Decimal() | int() if isinstance(expected, str):
            return Decimal(found) == Decimal(expected)
        case datetime():
            return bool(found == datetime.fromisoformat(expected))
        case "+02:00":
            return bool(expected == 7200)
    return bool(found == expected)


@pytest.mark.parametrize("name", SAVEPOINTS)
def test_all_values_are_those_of_the_job(folder: Path, name: str) -> None:
    operator = opened(folder / name)
    expected = json.loads((folder / name / "values.json").read_text("utf-8"))
    states = sorted(next(iter(expected.values())))
    assert len(states) >= 20
    compared = 0
    for state in states:
        table = operator.to_arrow(state, decimals="string" if state.startswith("big") else "decimal")
        for row in table.to_pylist():
            number = row["key"]["_1"] // _STEP
            assert row["key"] == {"_1": number * _STEP, "_2": f"item {number}"}
            value, wanted = row["value"], expected[str(number)][state]
            value = Decimal(value) if state.startswith("big") else value
            assert same(value, wanted), (state, number, value, wanted)
            compared += 1
        # A null clears a state.
        nulls = sum(values[state] is None and state in ("duration",) for values in expected.values())
        assert table.num_rows == len(expected) - nulls, state
    assert compared > 20 * len(states) - 10


@pytest.mark.parametrize("name", [name for name in SAVEPOINTS if name != ARITY])
def test_keys_are_in_their_key_groups(folder: Path, tmp_path: Path, name: str) -> None:
    """``rescale`` compares the hash code of each key with the key group that Flink chose, and computes the new one from it."""
    statetool.rescale(str(folder / name), str(tmp_path / "new"), 300, parallelism=3, uids=["keeper"])
    assert statetool.verify(str(tmp_path / "new"), deep=True).ok
    new = opened(tmp_path / "new")
    assert new.max_parallelism == 300
    before, after = (o.to_arrow("case_class").to_pylist() for o in (opened(folder / name), new))
    assert sorted(map(str, after)) == sorted(map(str, before))


def test_keys_that_fit_both_layouts_keep_their_key_groups(folder: Path, tmp_path: Path) -> None:
    """A key has no frame: the namespace follows. An id and a name fit without the arity, too."""
    with pytest.raises(UnsupportedError, match="fits both layouts") as caught:
        statetool.rescale(str(folder / ARITY), str(tmp_path / "new"), 300, uids=["keeper"])
    assert "flink-scala-api 2.0 or later" in (caught.value.hint or "")


@pytest.mark.parametrize("name", SAVEPOINTS)
def test_snapshots_and_values_are_written_as_they_were_read(folder: Path, name: str) -> None:
    operator = opened(folder / name).inventory
    known = serializers(folder / name)
    for s in known.values():
        out = Output()
        s.write_snapshot(out)
        again = read(bytes(out))
        rewritten = Output()
        again.write_snapshot(rewritten)
        assert (again.type_name, again.logical, bytes(rewritten)) == (s.type_name, s.logical, bytes(out))
    written = 0
    for _, state, _, raw in entries_of(operator):
        if state in known and not isinstance(known[state], ArityChoice):
            out = Output()
            known[state].encode(out, known[state].decode(Cursor(raw)))
            # A canonical or native value is the bytes of its serializer.
            assert bytes(out) == raw, state
            written += 1
    assert written > 100


def case_class(outer_version: int, *parts: bytes, name: str = "com.acme.Order") -> bytes:
    outer = Output()
    outer.utf(name)
    if outer_version > 2:
        outer.bool(True)
    return build.composite(f"{PACKAGE}.ScalaCaseClassSerializerSnapshot", outer_version, bytes(outer), *parts)


def read(snapshot: bytes) -> Serializer:
    return snapshot_reader().snapshot(Cursor(snapshot))


def round_trip(s: Serializer, value: Any) -> bytes:
    out = Output()
    s.encode(out, value)
    assert s.decode(Cursor(bytes(out))) == value
    for cut in range(len(out)):
        with pytest.raises(StatetoolError):
            s.decode(Cursor(bytes(out[:cut])))
    return bytes(out)


def test_a_case_class_with_its_arity() -> None:
    s = read(case_class(3, build.STRING, build.INT))
    assert round_trip(s, ("id1", 7)) == b"\0\0\0\2\4id1\0\0\0\7"
    assert round_trip(s, None) == b"\x80\0\0\0"
    with pytest.raises(FormatError, match=r"1 fields of com\.acme\.Order, whose snapshot has 2"):
        s.decode(Cursor(b"\0\0\0\1\4id1\0\0\0\7"))
    fixed = read(case_class(3, build.INT, build.LONG))
    assert (fixed.length, round_trip(fixed, None)) == (16, b"\x80\0\0\0" + bytes(12))
    with pytest.raises(FormatError, match="padding after a null"):
        fixed.decode(Cursor(b"\x80\0\0\0" + bytes(11) + b"\1"))


def test_the_layout_of_outer_version_2_is_found_in_each_value() -> None:
    s = read(case_class(2, build.STRING, build.INT))
    for raw in (b"\0\0\0\2\4id1\0\0\0\7", b"\4id1\0\0\0\7"):
        assert s.decode(Cursor(raw)) == ("id1", 7)
        with pytest.raises(FormatError):
            s.decode(Cursor(raw + b"\0"))
    with pytest.raises(EncodeError, match="with or without the arity"):
        s.encode(Output(), ("id1", 7))
    listed = read(build.list_of(case_class(2, build.STRING, build.INT)))
    assert listed.needs_frame
    with pytest.raises(UnknownSerializerError, match="the end of a value"):
        listed.decode(Cursor(b"\0\0\0\2" + b"\4id1\0\0\0\7" * 2))


def test_a_value_that_fits_both_layouts_is_refused() -> None:
    """``(2, four zeros)`` without the arity, ``(4, no bytes)`` with it."""
    s = read(case_class(2, build.INT, BYTES))
    assert isinstance(s, ArityChoice)
    with pytest.raises(UnsupportedError, match="fits both layouts") as caught:
        s.decode(Cursor(b"\0\0\0\2" + b"\0\0\0\4" + b"\0\0\0\0"))
    assert "take a new savepoint" in (caught.value.hint or "")
    assert s.decode(Cursor(b"\0\0\0\3" + b"\0\0\0\4" + b"\0\0\0\0")) == (3, bytes(4))


@pytest.mark.parametrize("version", [1, 4, 5])
def test_other_outer_versions_are_refused_by_name(version: int) -> None:
    with pytest.raises(StatetoolError, match=rf"ScalaCaseClassSerializerSnapshot outer version {version}"):
        read(case_class(version, build.INT))


def test_check_knows_what_flink_scala_api_accepts(folder: Path) -> None:
    item = case_class(3, build.STRING, build.INT)
    assert resolve(read(item), read(item)).level == Level.AS_IS
    assert resolve(read(item), read(case_class(3, build.STRING, build.INT, build.INT))).level == Level.INCOMPATIBLE
    assert resolve(read(item), read(case_class(3, build.STRING, build.INT, name="B"))).level == Level.INCOMPATIBLE
    assert resolve(read(case_class(2, build.INT)), read(case_class(3, build.INT))).level == Level.UNKNOWN

    def listed(part: bytes) -> Serializer:
        out = Output()
        out.utf(f"{PACKAGE}.CollectionSerializerSnapshot")
        out.i4(2)
        out.utf(f"{PACKAGE}.ListSerializer")
        out.utf("com.acme.Order")
        return read(bytes(out) + part)

    assert resolve(listed(item), listed(item)).level == Level.AS_IS
    changed = resolve(listed(item), listed(case_class(3, build.INT)))
    assert changed.level == Level.UNKNOWN
    assert "without migration" in changed.reason
    for s in serializers(folder / SAVEPOINTS[0]).values():
        assert resolve(s, s).level == Level.AS_IS
