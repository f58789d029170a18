"""State of Beam's Flink runner: layouts composed by hand, and savepoints of a real pipeline (``tests/support/flink/beam``)."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import Level
from statetool.errors import EncodeError, FormatError, StatetoolError
from statetool.formats.keyed.header import read_keyed_header, write_keyed_header
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaObject, JavaText
from statetool.serializers.core.base import Serializer
from statetool.types.declared import NOTHING_DECLARED
from tests.support.corpora.archives import unpack
from tests.support.flink.beam_job import BACKENDS, GROUP, KEEPER, KEYS, PACKED, SOURCE
from tests.support.snapshots import beam, build, canonical
from tests.support.snapshots.beam import coder
from tests.support.snapshots.headers import header_with

TEXT: Final = coder("StringUtf8")
VAR_LONG: Final = coder("VarLong")
NOW: Final = 1_645_714_187_300
INSTANT: Final = (NOW + (1 << 63)).to_bytes(8, "big")
AVRO: Final = json.dumps(
    {
        "type": "record",
        "name": "Mark",
        "fields": [
            {
                "name": "partitions",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Part",
                        "fields": [
                            {"name": "topic", "type": "string"},
                            {"name": "partition", "type": "int"},
                            {"name": "nextOffset", "type": "long"},
                            {"name": "ratio", "type": ["null", "double"]},
                        ],
                    },
                },
            }
        ],
    }
)
TIMER_RAW: Final = b"\1t" + b"\0" + b"\2//" + INSTANT + INSTANT + b"\x0aEVENT_TIME"
MARK_RAW: Final = b"\3\x3c" + b"\x0ainput\0\x8e\xda\x96\1\0" + b"\x0aother\6\x09\2" + b"\0\0\0\0\0\0\xd0\x3f" + b"\0"
ROW: Final = coder(
    "Row",
    schema=beam.schema(
        id=beam.field_type("INT64"),
        tags=beam.field_type("ARRAY", collectionElementType=beam.field_type("STRING", nullable=True)),
        at=beam.field_type("DATETIME", nullable=True),
    ),
)
PLAIN: Final = [
    (coder("VarInt"), 300, b"\xac\x02"),
    (coder("VarInt"), -1, b"\xff\xff\xff\xff\x0f"),
    (VAR_LONG, -1, b"\xff" * 9 + b"\x01"),
    (coder("BigEndianInteger"), 7, b"\0\0\0\x07"),
    (coder("BigEndianLong"), -2, b"\xff" * 7 + b"\xfe"),
    (coder("Boolean"), True, b"\1"),
    (coder("Double"), 0.5, b"\x3f\xe0" + bytes(6)),
    (TEXT, "déjà", b"\x06d\xc3\xa9j\xc3\xa0"),
    (coder("ByteArray"), b"\0\1", b"\2\0\1"),
    (coder("Instant"), NOW, INSTANT),
    (coder("Duration"), 1000, b"\xe8\x07"),
    (coder("Void"), None, b""),
    (coder("Kv", keyCoder=TEXT, valueCoder=VAR_LONG), ("a", 5), b"\1a\5"),
    (coder("Nullable", valueCoder=TEXT), None, b"\0"),
    (coder("Nullable", valueCoder=TEXT), "b", b"\1\1b"),
    (coder("List", elementCoder=VAR_LONG), [1, 2], b"\0\0\0\2\1\2"),
    (coder("Map", keyCoder=TEXT, valueCoder=VAR_LONG), [("a", 1)], b"\0\0\0\1\1a\1"),
    (coder("LengthPrefix", valueCoder=TEXT), "ab", b"\2ab"),
    (beam.KEY, b"\1k", b"\2\1k"),
    (ROW, (5, ["x", None], None), b"\3" + b"\1\4" + b"\5" + b"\0\0\0\2\1\1x\0"),
    (ROW, (5, [], NOW), b"\3" + b"\0" + b"\5" + b"\0\0\0\0" + INSTANT),
]
#: Coders that are read, but not written.
READ: Final = [
    (coder("BigDecimal"), Decimal("1.50"), b"\2\2\0\x96"),
    (coder("Iterable", elementCoder=VAR_LONG), [1, 2, 3], b"\xff\xff\xff\xff\2\1\2\1\3\0"),
    (coder("LengthPrefix", valueCoder=VAR_LONG), 300, b"\2\xac\x02"),
    (
        beam.windowed(TEXT, beam.GLOBAL),
        (NOW, ["GlobalWindow"], (True, False, "ON_TIME", 0, 0), "v"),
        INSTANT + b"\0\0\0\1" + b"\x05" + b"\1v",
    ),
    (
        beam.windowed(VAR_LONG, beam.INTERVAL),
        (NOW, [(NOW - 1000, NOW)], (False, True, "LATE", 300, 299), 4),
        INSTANT + b"\0\0\0\1" + INSTANT + b"\xe8\x07" + b"\x2a\xac\2\xab\2" + b"\4",
    ),
    (
        beam.windowed(VAR_LONG, beam.INTERVAL),
        (NOW, [], (False, False, "EARLY", 3, -1), 4),
        INSTANT + bytes(4) + b"\x10\3" + b"\4",
    ),
    (beam.tagged(TEXT, VAR_LONG), (2, None, 9), b"\2\x09"),
    (
        beam.TIMER,
        ("t", "", "//", NOW, NOW, "EVENT_TIME"),
        TIMER_RAW,
    ),
    (
        beam.avro(AVRO),
        ([("input", 0, 1234567, None), ("other", 3, -5, 0.25)],),
        MARK_RAW,
    ),
    (ROW, (5, None, None), b"\1\0\5"),  # written before the schema had more fields
]


@pytest.fixture(scope="module")
def savepoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("beam"))


def keyed_rows(operator: statetool.Operator, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows of a state with their keys, without the size that Beam's coder writes first."""
    return [(row["key"][1:].decode(), row) for row in operator.to_arrow(name).to_pylist()]


def seen_by_key(operator: statetool.Operator) -> dict[str, Any]:
    """Return the states of the stateful step as the pipeline describes them."""
    seen: dict[str, Any] = {key: {"bag": [], "amounts": {}, "names": []} for key in KEYS}
    for key, row in keyed_rows(operator, "order"):
        seen[key]["order"] = f"{row['value']['name']} {row['value']['amount']}"
    for key, row in keyed_rows(operator, "bag"):
        seen[key]["bag"].append(row["value"])
    for key, row in keyed_rows(operator, "amounts"):
        seen[key]["amounts"][row["map_key"]] = row["value"]
    for key, row in keyed_rows(operator, "names"):
        seen[key]["names"].append(row["map_key"])
    for key, row in keyed_rows(operator, "sum"):
        # An accumulator of Java: long[1].
        seen[key]["sum"] = statetool.read_java(row["value"])[0]
    return seen


def sorted_rows(operator: statetool.Operator, name: str) -> list[str]:
    return sorted(map(repr, operator.to_arrow(name).to_pylist()))


def serializer(snapshot: bytes) -> Serializer:
    return canonical.serializer(snapshot)


@pytest.mark.parametrize(("of", "value", "raw"), [*PLAIN, *READ], ids=lambda v: v.hex() if isinstance(v, bytes) else "")
@pytest.mark.parametrize("wrap", [beam.legacy, beam.unversioned])
def test_values_of_coders(wrap: Any, of: Any, value: Any, raw: bytes) -> None:
    s = serializer(wrap(of))
    c = Cursor(raw + b"next", base=100)
    assert s.decode(c) == value
    assert c.pos == len(raw)
    assert not s.needs_frame
    assert s.type_name.startswith("Beam ")
    for cut in range(len(raw)):
        with pytest.raises(FormatError):
            s.decode(Cursor(raw[:cut]))


@pytest.mark.parametrize(("of", "value", "raw"), PLAIN)
def test_what_is_written_is_what_was_read(of: Any, value: Any, raw: bytes) -> None:
    s = serializer(beam.legacy(of))
    assert canonical.encoded(s, value) == raw
    with pytest.raises(EncodeError):
        canonical.encoded(s, object())


def test_values_with_windows_are_not_written() -> None:
    with pytest.raises(EncodeError, match="read, not written"):
        canonical.encoded(serializer(beam.legacy(beam.windowed(TEXT, beam.GLOBAL))), (NOW, [], None, "v"))


def test_a_field_that_cannot_be_null_is_not_written_as_null() -> None:
    with pytest.raises(EncodeError, match="the schema does not allow") as refused:
        canonical.encoded(serializer(beam.legacy(ROW)), (5, None, None))
    assert "tags" in str(refused.value)


def test_a_key_in_words_gets_the_form_of_bytes_in_commands() -> None:
    with pytest.raises(EncodeError) as refused:
        canonical.encoded(serializer(beam.legacy(beam.KEY)), "key-3")
    assert refused.value.hint == 'a key of a command is JSON: {"bytes": "056b65792d33"}'


def test_a_coder_of_the_job_is_bytes_with_its_name() -> None:
    mine = beam.obj("com.acme.OrderCoder", secret=7)
    s = serializer(beam.legacy(coder("Kv", keyCoder=TEXT, valueCoder=mine)))
    assert s.needs_frame
    assert s.type_name == "Beam KV<StringUtf8, com.acme.OrderCoder>"
    assert s.decode(Cursor(b"\1a\xff\xfe")) == ("a", b"\xff\xfe")
    # If something follows it, everything is bytes.
    for of in (coder("Kv", keyCoder=mine, valueCoder=TEXT), coder("List", elementCoder=mine)):
        s = serializer(beam.legacy(of))
        assert "com.acme.OrderCoder" in s.type_name
        assert s.decode(Cursor(b"\1a\xff\xfe")) == b"\1a\xff\xfe"


@pytest.mark.parametrize("wrap", [beam.legacy, beam.unversioned])
@pytest.mark.parametrize("as_key", [True, False])
def test_snapshots_are_written_back_as_they_were(wrap: Any, as_key: bool) -> None:
    raw = header_with(b"\0\0\0\2" + wrap(beam.KEY), as_key=as_key)
    # It does not affect other states, whether or not the end of the header is known.
    for end in (len(raw), None):
        header = read_keyed_header(Cursor(raw), NOTHING_DECLARED, end=end)
        assert (header.key if as_key else header.states[0].value).type_name == "Beam ByteBuffer"
        assert write_keyed_header(header) == raw


def test_a_stream_with_a_cycle_is_damage() -> None:
    loop = coder("Nullable", valueCoder=None)
    loop.fields["valueCoder"] = loop
    with pytest.raises(FormatError, match="coder of a serializer of Beam"):
        serializer(beam.legacy(loop))


def _row_of(kind: str, uuid: str = "", **options: Any) -> JavaObject:
    return coder("Row", schema=beam.schema(uuid=uuid, a=beam.field_type(kind, **options)))


@pytest.mark.parametrize("wrap", [beam.legacy, beam.unversioned])
@pytest.mark.parametrize(
    ("old", "new", "level"),
    [
        (TEXT, VAR_LONG, Level.INCOMPATIBLE),
        (_row_of("INT64", "1"), _row_of("INT64", "2"), Level.AS_IS),
        (_row_of("INT64"), _row_of("STRING"), Level.INCOMPATIBLE),
        (_row_of("INT64"), _row_of("INT64", nullable=True), Level.UNKNOWN),
        (beam.avro(AVRO), beam.avro(AVRO.replace("topic", "subject")), Level.UNKNOWN),
        (beam.avro(AVRO), beam.avro(AVRO), Level.AS_IS),
        (beam.obj("com.acme.OrderCoder", version=1), beam.obj("com.acme.OrderCoder", version=2), Level.UNKNOWN),
        (beam.tagged(TEXT), beam.tagged(TEXT), Level.AS_IS),
        (coder("Serializable", type=None), coder("Serializable", type=JavaText("b")), Level.UNKNOWN),
    ],
)
def test_beam_accepts_every_coder_but_check_does_not(wrap: Any, old: Any, new: Any, level: Level) -> None:
    assert resolve(serializer(wrap(old)), serializer(wrap(new))).level is level


def test_another_kind_of_snapshot_is_unknown() -> None:
    assert resolve(serializer(beam.legacy(TEXT)), serializer(beam.unversioned(TEXT))).level is Level.UNKNOWN


def test_coders_with_cycles_are_compared() -> None:
    def of(version: int) -> Serializer:
        mine = beam.obj("com.acme.OrderCoder", outer=None, version=version)
        mine.fields["outer"] = mine
        return serializer(beam.legacy(mine))

    assert resolve(of(1), of(1)).level is Level.AS_IS
    assert resolve(of(1), of(2)).level is Level.UNKNOWN


def test_a_pipeline_restores_from_its_own_savepoints(savepoints: Path) -> None:
    check = statetool.check(*(str(savepoints / backend) for backend in BACKENDS), flink_version="1.16")
    assert check.verdict == "fully"
    assert check.ok


def test_flink_1_17_does_not_read_the_snapshots_of_older_runners(savepoints: Path) -> None:
    check = statetool.check(str(savepoints / "rocksdb"), flink_version="1.17")
    assert check.verdict == "not"
    assert "cannot read CoderTypeSerializer$LegacySnapshot" in str(check.operators)


def test_damage_of_snapshots_is_our_error() -> None:
    for raw in (beam.legacy(beam.avro(AVRO)), beam.unversioned(beam.tagged(TEXT))):
        for at in range(0, len(raw), 3):
            for changed in (raw[:at], raw[:at] + bytes([raw[at] ^ 0x41]) + raw[at + 1 :]):
                try:
                    canonical.serializer(changed)
                except StatetoolError:
                    continue


def test_a_whole_job(tmp_path: Path) -> None:
    """Keyed state, timers and source state, registered like the runner does."""
    key = beam.legacy(beam.KEY)
    kv = coder("Kv", keyCoder=coder("Serializable"), valueCoder=beam.avro(AVRO))
    states = [
        canonical.keyed("state", "VALUE", beam.legacy(TEXT), build.STRING),
        canonical.keyed("watermark-holds", "MAP", build.map_of(build.STRING, beam.legacy(coder("Instant")))),
        canonical.timers("_timer_state/event_beam-timer", key, beam.legacy(beam.TIMER)),
    ]
    key_serializer = serializer(key)
    entries = []
    for n in range(20):
        raw = b"\2\1" + bytes([n])
        group = canonical.group_of(key_serializer, raw[1:], 128)
        namespace = canonical.encoded(canonical.serializer(build.STRING), "//")
        entries.append(("state", group, canonical.composite_key(raw, namespace, ambiguous=True), b"\1" + b"v"))
        entries.append(("watermark-holds", group, canonical.composite_key(raw, b"\0", b"\2h"), b"\0" + INSTANT))
        fire = (NOW + (1 << 63)).to_bytes(8, "big")
        entries.append(("_timer_state/event_beam-timer", group, fire + raw + TIMER_RAW, b""))
    mark = b"\xac\xed\0\5t\0\6source" + MARK_RAW
    op = canonical.savepoint(
        tmp_path,
        [canonical.Subtask(key=key, states=states, entries=entries)],
        operator_states={"_default_": canonical.ListState(value=beam.legacy(kv), elements=[[mark]])},
    )
    assert op.to_arrow("state").num_rows == 20
    assert op.to_arrow("timers").num_rows == 20
    hold = op.to_arrow("watermark-holds").to_pylist()[0]
    assert hold["map_key"] == "h"
    (source,) = op.to_arrow("_default_").to_pylist()
    assert [p["nextOffset"] for p in source["value"]["value"]["partitions"]] == [1234567, -5]
    verification = statetool.verify(str(tmp_path), deep=True)
    assert [p for p in verification.problems if p.severity != "note"] == []
    assert (verification.entries, verification.elements, verification.keys) == (60, 1, 20)


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_states_of_a_real_pipeline_are_read(savepoints: Path, backend: str) -> None:
    savepoint = statetool.load(str(savepoints / backend), uids=[KEEPER, GROUP, SOURCE])
    keeper, group, source = (savepoint[uid] for uid in (KEEPER, GROUP, SOURCE))
    expected = json.loads((savepoints / backend / "values.json").read_text("utf-8"))
    for values in expected.values():
        assert values.pop("count") is None  # before the first number
    assert seen_by_key(keeper) == expected
    alarms = keyed_rows(keeper, "timers")
    assert sorted(key for key, _ in alarms) == KEYS
    assert {(row["namespace"]["id"], row["timestamp"]) for _, row in alarms} == {("ts-alarm", 3_600_001)}
    # A step that counts, and one that keeps the numbers of its window, have seen the same.
    numbers = Counter(key for key, _ in keyed_rows(group, "buf"))
    assert numbers == {key: row["value"] for key, row in keyed_rows(keeper, "count")}
    assert sorted(key for key, _ in keyed_rows(group, "timers")) == KEYS
    # Beam splits the source by the maximum parallelism.
    marks = [row["value"]["value"]["lastEmitted"] for row in source.to_arrow("_default_").to_pylist()]
    assert sorted(mark % 128 for mark in marks) == list(range(128))


@pytest.mark.parametrize("backend", BACKENDS)
def test_rewritten_savepoints_of_a_real_pipeline_keep_all_rows(savepoints: Path, tmp_path: Path, backend: str) -> None:
    renamed, dropped, rescaled = (str(tmp_path / n) for n in ("renamed", "dropped", "rescaled"))
    statetool.change_uids(str(savepoints / backend), renamed, {KEEPER: "renamed"})
    statetool.drop(renamed, dropped, [GROUP], states={"renamed": ["bag"]}, uids=["renamed", GROUP])
    statetool.rescale(dropped, rescaled, 300, parallelism=3, uids=["renamed", SOURCE])
    before = statetool.load(str(savepoints / backend), uids=[KEEPER, SOURCE])
    after = statetool.load(rescaled, uids=["renamed", SOURCE])
    assert len(after.operators) == len(before.operators) - 1
    kept = ["count", "order", "amounts", "names", "sum", "timers", "pending-timers"]
    assert "bag" not in after["renamed"].states
    for name in kept:
        assert sorted_rows(after["renamed"], name) == sorted_rows(before[KEEPER], name)
    assert sorted_rows(after[SOURCE], "_default_") == sorted_rows(before[SOURCE], "_default_")
    assert [p for p in statetool.verify(rescaled, deep=True).problems if p.severity != "note"] == []
