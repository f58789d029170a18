"""State with types of Stateful Functions 3.3 and Hudi 1.0, written by Flink 1.20.5 (``tests/support/flink/libraries`` has the job)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import Level
from statetool.errors import EncodeError, FormatError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.libraries.statefun import ENVELOPES, MESSAGES, REMOTE_VALUES
from statetool.serializers.table import snapshot_reader
from tests.support.corpora.archives import unpack
from tests.support.flink.library_job import KINDS, PACKED
from tests.support.snapshots.entries import entries_of

NAMES: Final = {name.rpartition(".")[2]: name for name in (*MESSAGES, *REMOTE_VALUES, *ENVELOPES)}
BUFFER: Final = "delayed-message-buffer"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("libraries"))


def opened(path: Path) -> statetool.Operator:
    return statetool.load(str(path), uids=["keeper"])["keeper"]


def serializers(path: Path) -> dict[str, Serializer]:
    ((header, _), *_) = opened(path).inventory.keyed_states.values()
    return {m.name: m.serializers["VALUE_SERIALIZER"] for m in header.states}


def found_values(operator: statetool.Operator, key: str) -> dict[str, Any]:
    """Return the values of a key, in the form of the job."""

    def values(state: str) -> list[Any]:
        return [row["value"] for row in operator.to_arrow(state, keys=[key]).to_pylist()]

    places = [
        " ".join(str(v[n]) for n in ("partitionPath", "instantTime", "fileId", "position"))
        for v in values("indexState")
    ]
    return {
        "struct": json.loads(values("struct")[0]),
        "times": values("times"),
        "remote": values("remote")[0].decode(),
        "indexState": places[0],
    }


@pytest.mark.parametrize("backend", KINDS)
def test_all_values_are_those_of_the_job(folder: Path, backend: str) -> None:
    operator = opened(folder / backend)
    expected = json.loads((folder / backend / "values.json").read_text("utf-8"))
    assert len(expected) == 12
    for key, values in expected.items():
        found = found_values(operator, key)
        assert found == {**{name: values[name] for name in found}, "struct": json.loads(values["struct"])}
        (envelope,) = operator.to_arrow(BUFFER, keys=[key]).to_pylist()
        assert key.encode() in envelope["value"]
        assert values[BUFFER][0].split(" token-")[1].split()[0].encode() in envelope["value"]


@pytest.mark.parametrize("backend", KINDS)
def test_snapshots_and_values_are_written_as_they_were_read(folder: Path, backend: str) -> None:
    known = serializers(folder / backend)
    for serializer in known.values():
        out = Output()
        serializer.write_snapshot(out)
        again = snapshot_reader().snapshot(Cursor(bytes(out)))
        rewritten = Output()
        again.write_snapshot(rewritten)
        assert (again.type_name, again.logical, bytes(rewritten)) == (
            serializer.type_name,
            serializer.logical,
            bytes(out),
        )
        if any(part.snapshot_class in NAMES.values() for part in all_parts(serializer)):
            assert resolve(serializer, again).level is Level.AS_IS
    written = 0
    for _, state, _, raw in entries_of(opened(folder / backend).inventory):
        if state not in ("struct", "remote", "indexState", "times", BUFFER):
            continue
        is_list = state in ("times", BUFFER)
        serializer = known[state].children()[0][1] if is_list else known[state]
        c, skipped, out = Cursor(raw), Cursor(raw), Output()
        while c.left:
            # A comma separates the elements of a list.
            if out:
                assert (c.u1(), skipped.u1()) == (0x2C, 0x2C)
                out.append(0x2C)
            serializer.encode(out, serializer.decode(c))
            serializer.skip(skipped)
        # Protobuf does not determine the order of the entries of a map.
        assert sorted(out) == sorted(raw) if state == "struct" else bytes(out) == raw
        assert not skipped.left
        written += 1
    assert written == 5 * 12


def snapshot(name: str, version: int, payload: bytes) -> bytes:
    out = Output()
    out.utf(NAMES[name])
    out.i4(version)
    return bytes(out) + payload


def utf(text: str) -> bytes:
    out = Output()
    out.utf(text)
    return bytes(out)


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def test_another_kind_of_payload_or_version_is_refused_by_name() -> None:
    envelope = "MessageTypeSerializer$Snapshot"
    old = snapshot_reader().snapshot(Cursor(snapshot(envelope, 1, utf("WITH_RAW_PAYLOADS"))))
    assert old.decode(Cursor(framed(b"abc"))) == b"abc"
    custom = utf("WITH_CUSTOM_PAYLOADS") + b"\1" + utf("com.acme.Payloads")
    out = Output()
    snapshot_reader().snapshot(Cursor(snapshot(envelope, 2, custom))).write_snapshot(out)
    assert bytes(out) == snapshot(envelope, 2, custom)
    with pytest.raises(FormatError, match="'WITH_NO_PAYLOADS' is not a kind of payload of Stateful Functions"):
        snapshot_reader().snapshot(Cursor(snapshot(envelope, 2, utf("WITH_NO_PAYLOADS") + b"\0")))
    for name in NAMES:
        with pytest.raises(StatetoolError, match="version 9"):
            snapshot_reader().snapshot(Cursor(snapshot(name, 9, b"\0\0\0\0")))


@pytest.mark.parametrize("raw", [b"", b"\x0a\1a", b"\x0a\1a\x12\1\xff\x1a\0", b"\x0f", b"\x0a\x05a"])
def test_damaged_descriptions_of_messages_are_refused(raw: bytes) -> None:
    with pytest.raises(FormatError, match="not a description of a message"):
        snapshot_reader().snapshot(Cursor(snapshot("ProtobufTypeSerializerSnapshot", 1, framed(raw))))


def test_bytes_that_are_no_message_are_refused_with_their_offset(folder: Path) -> None:
    known = serializers(folder / "hashmap")
    with pytest.raises(StatetoolError, match=r"not a google\.protobuf\.Struct") as caught:
        known["struct"].decode(Cursor(framed(b"\xff\xff\xff")))
    assert caught.value.where.offset == 0
    with pytest.raises(FormatError):
        known["struct"].decode(Cursor(b"\0\0\0\x09ab"))
    with pytest.raises(EncodeError, match="is bytes, not str"):
        known["remote"].encode(Output(), "text")
    with pytest.raises(EncodeError):
        known["struct"].encode(Output(), "[")
