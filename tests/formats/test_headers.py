from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from statetool.errors import UnknownSerializerError
from statetool.formats.key_groups import key_group_for, owner_of, range_for
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header, write_keyed_header
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.operator_state import read_operator_header, write_operator_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.types.declared import NOTHING_DECLARED
from tests.support.snapshots import beam, build, canonical
from tests.support.snapshots.headers import header_with, proxied
from tests.support.snapshots.stored import streams


def test_operator_ids_are_hashed_as_flink_does() -> None:
    assert operator_id_for_uid("kp") == "79905d1bb8afd98f33ca8b3501e11266"
    assert operator_id_for_uid("src") == "f362c87ffabe89c8a91fa7d0a523ba6c"
    assert operator_id_for_uid("map") == "23ab3a59b17e9c45f95cff4c728611fc"
    assert operator_id_for_uid("scalars-by-long") == "94d6967430f10bb6983154c0cc5fef4c"


@pytest.mark.parametrize(("parallelism", "maximum"), [(1, 1), (3, 7), (2, 128), (3, 200), (7, 32768)])
def test_key_group_ranges_cover_each_key_group_once(parallelism: int, maximum: int) -> None:
    ranges = [range_for(i, parallelism, maximum) for i in range(parallelism)]
    assert [g for r in ranges for g in r] == list(range(maximum))
    assert all(owner_of(g, parallelism, maximum) == i for i, r in enumerate(ranges) for g in r)


def test_every_key_of_the_corpus_lies_in_the_key_group_of_its_hash(corpus: Path) -> None:
    checked = 0
    for case in ("v1_13_6-rocksdb-canonical", "v2_3_0-hashmap-canonical"):
        savepoint = statetool.load(str(corpus / case / "snapshot"))
        for operator in savepoint.operators.values():
            for header, _ in operator._operator.keyed_states.values():
                key = header.key
                break
            else:
                continue
            if key.type_name.startswith("POJO") or "keyed_state" not in operator.tables:
                continue
            table = operator.to_arrow(key_group=True, nanos="companion", decimals="string", on_error="keep_raw")
            for row in table.select(["key", "key_group"]).to_pylist():
                value = tuple(row["key"].values()) if isinstance(row["key"], dict) else row["key"]
                assert key_group_for(key.hash_code(value), operator.max_parallelism) == row["key_group"]
                checked += 1
    assert checked > 500


def test_headers_of_current_snapshots_are_written_back_identical(corpus: Path) -> None:
    n = 0
    for path in sorted(corpus.glob("*canonical*")):
        savepoint = statetool.load(str(path / "snapshot"))
        for operator in savepoint.operators.values():
            inventory = operator._operator
            for part in streams(inventory):
                header = part.header()
                with part.stream.open() as f:
                    assert write_keyed_header(header) == bytes(f.read_at(0, header.size_bytes))
                n += 1
            for operator_part in inventory.elements.streams:
                with operator_part.stream.open() as f:
                    raw = bytes(f.read_at(0, operator_part.stream.size_bytes))
                operator_header = read_operator_header(Cursor(raw), NOTHING_DECLARED)
                size = operator_header.size_bytes
                assert write_operator_header(operator_header, version=operator_header.version) == raw[:size]
                n += 1
    assert n > 300


def test_migration_savepoints_parse_to_the_last_header_byte(migration_savepoints: Path) -> None:
    n = 0
    for path in sorted(migration_savepoints.rglob("_metadata")):
        savepoint = statetool.load(str(path))
        for operator in savepoint.operators.values():
            try:
                n += len(operator._operator.keyed_states) + len(operator._operator.operator_states)
            except UnknownSerializerError as error:  # pragma: no cover - says which file
                pytest.fail(f"{path}: {error}")
    assert n > 500


@pytest.mark.parametrize("as_key", [True, False])
@pytest.mark.parametrize("payload", [b"", b"\0\x05hello\0\0\0\x07", bytes(100)])
def test_one_unknown_serializer_hides_no_other_state(payload: bytes, as_key: bool) -> None:
    unknown = proxied("com.acme.MySerializer$Snapshot", payload, version=1)
    raw = header_with(unknown, as_key=as_key)
    header = read_keyed_header(Cursor(raw), NOTHING_DECLARED, end=len(raw))
    assert [s.name for s in header.states] == ["first", "second"]
    assert header.states[1].value.type_name == "Long"
    opaque = header.key if as_key else header.states[0].value
    assert "com.acme.MySerializer" in opaque.type_name
    assert write_keyed_header(header) == raw


def test_an_unknown_serializer_in_a_header_of_unknown_length_is_an_error() -> None:
    raw = header_with(proxied("com.acme.MySerializer$Snapshot", b"xyz", version=1), as_key=False)
    with pytest.raises(UnknownSerializerError, match=r"com\.acme\.MySerializer"):
        read_keyed_header(Cursor(raw), NOTHING_DECLARED, end=None)


@pytest.mark.parametrize("payload", [b"", b"\0\x05hello\0\0\0\x07"])
def test_a_frame_around_an_unknown_class_is_stepped_over(payload: bytes) -> None:
    """The contents of the serializer's Java stream cannot be mistaken for the following fields."""
    inside = b"\0\x10VALUE_SERIALIZER" + b"\0\5fifth" + bytes(16)
    unknown = b"\0\0\0\2" + beam.adapted("com.acme.Mine$LegacySnapshot", inside, payload)
    raw = header_with(unknown, as_key=False)
    header = read_keyed_header(Cursor(raw), NOTHING_DECLARED, end=len(raw))
    assert [s.name for s in header.states] == ["first", "second"]
    assert write_keyed_header(header) == raw


def test_any_number_of_unknown_serializers_keep_their_bytes() -> None:
    """Namespaces, values and the key of many states, and their timers."""
    unknown = proxied("com.acme.MySerializer$Snapshot", b"\0\7payload", version=1)
    opaque = OpaqueSerializer(unknown[4:], "unknown")
    opaque.proxy_bytes = unknown
    states = [
        StateMetaInfo(
            name=f"state-{i}",
            backend_type=3 if i > 20 else 0,
            options={"KEYED_STATE_TYPE": "VALUE"},
            serializers={"VALUE_SERIALIZER": opaque, **({} if i > 20 else {"NAMESPACE_SERIALIZER": opaque})},
        )
        for i in range(24)
    ]
    raw = write_keyed_header(KeyedHeader(version=6, compressed=False, key=opaque, states=tuple(states), size_bytes=0))
    header = read_keyed_header(Cursor(raw), NOTHING_DECLARED, end=len(raw))
    assert [s.name for s in header.states] == [s.name for s in states]
    assert all(isinstance(s.value, OpaqueSerializer) for s in header.states)
    assert write_keyed_header(header) == raw


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("elements", [[[b"one", b"two"]], [[]]])
def test_elements_of_an_unknown_class_are_exact_bytes(
    tmp_path: Path, compressed: bool, elements: list[list[bytes]]
) -> None:
    unknown = OpaqueSerializer(b"", "unknown")
    unknown.proxy_bytes = proxied("com.acme.MySerializer$Snapshot", b"\0\7payload", version=1)
    states = {name: canonical.ListState(value=unknown, elements=elements) for name in ("a", "b")}
    op = canonical.savepoint(tmp_path, operator_states=states, compressed=compressed)
    for name in states:
        assert [r["value"] for r in op.to_arrow(name).to_pylist()] == elements[0]
        assert "com.acme.MySerializer" in op.states[name].reason
    # The checksums of these chunks are invalid.
    result = statetool.verify(str(tmp_path), deep=not compressed)
    assert {p.severity for p in result.problems} == {"warning"} | ({"note"} if not compressed else set())
    assert result.unread == 2
    assert not result.ok
    assert statetool.verify(str(tmp_path), allow_unread=True).ok


def test_tables_of_unknown_timers_say_so(tmp_path: Path) -> None:
    unknown = OpaqueSerializer(b"", "unknown")
    unknown.proxy_bytes = proxied("com.acme.MySerializer$Snapshot", b"\0\7payload", version=1)
    queue = StateMetaInfo(
        name="_timer_state/event_t", backend_type=3, options={}, serializers={"VALUE_SERIALIZER": unknown}
    )
    states = [canonical.keyed("count", "VALUE", build.LONG), queue]
    value = (7).to_bytes(8, "big")
    key = canonical.encoded(canonical.serializer(build.STRING), "k")
    group = canonical.group_of(canonical.serializer(build.STRING), "k", 128)
    entries = [("count", group, canonical.composite_key(key), value), (queue.name, group, bytes(8) + key, b"")]
    op = canonical.savepoint(tmp_path, [canonical.Subtask(key=build.STRING, states=states, entries=entries)])
    assert op.to_arrow("count").to_pylist() == [{"key": "k", "value": 7}]
    with pytest.raises(UnknownSerializerError, match=r"timers whose parts are not known.*com\.acme\.MySerializer"):
        op.to_arrow("timers")
    result = statetool.verify(str(tmp_path), deep=True)
    assert result.unread
    assert not [p for p in result.problems if p.severity == "error"]
