"""State of Nussknacker 1.18.1, written by Flink 1.20.5 with classes compiled from its sources (:mod:`tests.support.flink.nussknacker_job`)."""

from __future__ import annotations

import base64
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
from statetool.serializers.core.base import Serializer
from statetool.serializers.libraries.nussknacker import FIXED_VALUES, TYPED_MAPS
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext
from tests.support.corpora.archives import unpack
from tests.support.flink.library_job import KINDS
from tests.support.flink.nussknacker_job import PACKED
from tests.support.snapshots.entries import entries_of

JAVA_MAP, SCALA_MAP = TYPED_MAPS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("nussknacker"))


def opened(path: Path) -> statetool.Operator:
    return statetool.load(str(path), uids=["keeper"])["keeper"]


def serializers(path: Path) -> dict[str, Serializer]:
    ((header, _), *_) = opened(path).inventory.keyed_states.values()
    return {m.name: m.value for m in header.states}


def described(context: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a context as the job describes it."""
    if context is None:
        return None
    return {"id": context["_1"], "variables": present(context["_2"]), "parent": described(context["_3"])}


def present(value: Any) -> Any:
    """Return a value without null fields."""
    return {k: present(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def plain(value: Any) -> Any:
    """Return a value that Kryo wrote as the job describes it."""
    if not isinstance(value, dict):
        return value
    ((name, inner),) = value.items()
    match name.rpartition(".")[2]:
        case "TreeMap":
            pairs = (e["scala.Tuple2"] for e in inner["elements"])
            return {str(plain(k)): plain(v) for k, v in pairs}
        case "Collections$UnmodifiableMap":
            return {plain(k): plain(v) for k, v in inner}
        case "Collections$UnmodifiableRandomAccessList":
            return [plain(v) for v in inner]
    return inner


@pytest.mark.parametrize("backend", KINDS)
def test_all_values_are_those_of_the_job(folder: Path, backend: str) -> None:
    operator = opened(folder / backend)
    expected = json.loads((folder / backend / "values.json").read_text("utf-8"))
    assert len(expected) == 10
    found: dict[str, dict[str, Any]] = {key: {"delayed": {}} for key in expected}
    for row in operator.to_arrow("delayed").to_pylist():
        found[row["key"]]["delayed"][str(row["map_key"])] = [described(c) for c in row["value"]]
    for row in operator.to_arrow("memo").to_pylist():
        found[row["key"]]["memo"] = present(row["value"])
    for row in operator.to_arrow("distinct").to_pylist():
        found[row["key"]]["distinct"] = base64.b64encode(row["value"]).decode()
    for row in operator.to_arrow("sums").to_pylist():
        found[row["key"]]["sums"] = plain(json.loads(row["value"]))
    assert found == expected


@pytest.mark.parametrize("backend", KINDS)
def test_snapshots_and_values_are_written_as_they_were_read(folder: Path, backend: str) -> None:
    known = serializers(folder / backend)
    for serializer in known.values():
        out, rewritten = Output(), Output()
        serializer.write_snapshot(out)
        again = snapshot_reader(TypeContext(kryo=2)).snapshot(Cursor(bytes(out)))
        again.write_snapshot(rewritten)
        assert (again.type_name, again.logical, bytes(rewritten)) == (
            serializer.type_name,
            serializer.logical,
            bytes(out),
        )
    written = 0
    for _, state, _, raw in entries_of(opened(folder / backend).inventory):
        if state not in ("memo", "delayed", "sums", "distinct"):
            continue
        out, c, skipped = Output(), Cursor(raw), Cursor(raw)
        serializer = known[state]
        if state == "delayed":
            # A byte before each value of a map is 1 for null.
            assert (c.u1(), skipped.u1()) == (0, 0)
            out.u1(0)
            serializer = serializer.children()[1][1]
        value = serializer.decode(c)
        serializer.encode(out, value)
        serializer.skip(skipped)
        if state == "sums":
            # Kryo writes a reference in the place of an equal string.
            assert serializer.decode(Cursor(bytes(out))) == value
        else:
            assert bytes(out) == raw
        assert c.left == skipped.left == 0
        written += 1
    assert written == 50


def typed_map(snapshot_class: str = JAVA_MAP, **fields: str) -> Serializer:
    """Return the serializer of a map with these fields, given the names of their types."""
    out = Output()
    out.utf(snapshot_class)
    out.i4(1)
    out.i4(len(fields))
    for name, kind in fields.items():
        out.utf(name)
        out += SNAPSHOTS[kind]
    return snapshot_reader().snapshot(Cursor(bytes(out)))


def simple(kind: str) -> bytes:
    out = Output()
    out.utf(f"org.apache.flink.api.common.typeutils.base.{kind}Serializer${kind}SerializerSnapshot")
    out.i4(3)
    return bytes(out)


SNAPSHOTS: Final = {kind: simple(kind) for kind in ("Long", "String", "Double")}


def test_fields_are_found_by_name() -> None:
    """As ``TypedObjectBasedSerializerSnapshot.resolveSchemaCompatibility`` decides."""
    old = typed_map(a="Long", b="String")
    assert resolve(old, typed_map(a="Long", b="String")).level is Level.AS_IS
    added = resolve(old, typed_map(a="Long", b="String", c="Double"))
    assert (added.level, added.reason) == (Level.AFTER_MIGRATION, "The map got the field c.")
    removed = resolve(old, typed_map(a="Long"))
    assert removed.level is Level.AFTER_MIGRATION
    assert [(w.kind, w.message) for w in removed.warnings] == [("loses", "The values of the field b are dropped.")]
    assert resolve(old, typed_map(a="Double", b="String")).level is Level.INCOMPATIBLE
    assert resolve(old, typed_map(SCALA_MAP, a="Long", b="String")).level is Level.INCOMPATIBLE


def test_what_is_damaged_is_refused() -> None:
    serializer = typed_map(a="Long", b="String")
    out = Output()
    serializer.encode(out, (None, "größe"))
    assert serializer.decode(Cursor(bytes(out))) == (None, "größe")
    for end in range(len(out)):
        with pytest.raises(FormatError):
            serializer.decode(Cursor(bytes(out[:end])))
    with pytest.raises(EncodeError, match="1 values for the 2 parts"):
        serializer.encode(Output(), (1,))
    with pytest.raises(FormatError, match="expected a boolean"):
        serializer.decode(Cursor(b"\2"))
    snapshot = Output()
    serializer.write_snapshot(snapshot)
    for end in range(len(snapshot)):
        with pytest.raises(StatetoolError):
            snapshot_reader().snapshot(Cursor(bytes(snapshot[:end])))
    with pytest.raises(FormatError, match="two fields of one name"):
        snapshot_reader().snapshot(Cursor(bytes(snapshot).replace(b"\0\1b", b"\0\1a")))


def test_a_null_has_no_bytes() -> None:
    (name,) = FIXED_VALUES
    out = Output()
    out.utf(name)
    out.i4(3)
    serializer = snapshot_reader().snapshot(Cursor(bytes(out)))
    assert serializer.decode(Cursor(b"")) is None
    with pytest.raises(EncodeError, match="only holds one value"):
        serializer.encode(Output(), 1)
