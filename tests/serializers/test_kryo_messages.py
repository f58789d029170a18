"""Protobuf and Thrift messages written by Flink 1.20.5 and 2.3.0 with chill's serializers (``kryo/KryoMessages.java``).

Each line has the text of the message: Protobuf's text format, which the package ``protobuf`` parses into the message that the JSON must
produce too.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import pytest

import statetool
from statetool.errors import DecodeError, EncodeError, FormatError, MissingDependencyError, OptionError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.kryo.codecs.protobuf import message_class
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import ClassDeclaration, TypeContext, from_json, to_json

pytest.importorskip("google.protobuf.unknown_fields")
FOLDER: Final = Path(__file__).parent / "kryo"
DESCRIPTOR: Final = FOLDER.joinpath("shop.desc").read_bytes()
VERSIONS: Final = ("1.20.5", "2.3.0")
MESSAGES: Final = {"Order": "shop.v3", "Item": "shop.v3", "Event": "shop.v2"}
UNKNOWN: Final = "oB8HoB////////////8Bqh8FbGF0ZXK1HwEAAACxHwIAAAAAAAAAux8IAbwf"
PARCEL: Final = {
    "-1": "odd", "id": -7, "name": "Zoë €😀", "parts": [{"1": "a", "2": 1}, {"2": 0}], "stock": [["k", -1], ["l", 2]],
    "5": [-1, 300], "6": 5, "7": True, "8": -0.5, "9": {"base64": "AP8="}, "10": {"2": 1 << 40}, "11": -3, "13": 0,
    "15": [True, False], "20": [[5, [{"1": "deep", "2": 2}]]],
}  # fmt: skip


def protobuf(message: str, descriptor: bytes = DESCRIPTOR) -> ClassDeclaration:
    package = MESSAGES[message]
    return statetool.declare_protobuf(f"{package}.Orders${message}", descriptor, f"{package}.{message}")


def declared() -> tuple[ClassDeclaration, ...]:
    order, item, event = map(protobuf, MESSAGES)
    parcel = statetool.declare_thrift("shop.thrift.Parcel", ["id", "name", "parts", "stock"])
    part = statetool.declare_thrift("shop.thrift.Part", ["name", "count"])
    fields = {"order": order.name, "parcel": parcel.name, "note": "String", "items": f"List<{item.name}>"}
    holder = statetool.declare("KryoMessages$Holder", {**fields, "any": "com.google.protobuf.Message"})
    return order, item, event, parcel, part, holder


@lru_cache
def lines(version: str) -> dict[tuple[str, str], tuple[bytes, str]]:
    rows = [line.split("\t") for line in (FOLDER / f"messages-{version}.tsv").read_text("utf-8").splitlines()]
    return {(section, name): (bytes.fromhex(raw), text) for section, name, raw, text in rows}


def serializer(version: str, section: str, classes: tuple[ClassDeclaration, ...]) -> Serializer:
    gen: Literal[2, 5] = 5 if version.startswith("2.") else 2
    return snapshot_reader(TypeContext(kryo=gen, classes=classes)).snapshot(
        Cursor(lines(version)[section, "snapshot"][0])
    )


def decoded(s: Serializer, raw: bytes) -> Any:
    c = Cursor(raw)
    s.skip(c)
    assert c.left == 0
    c = Cursor(raw)
    value = s.decode(c)
    assert c.left == 0
    return value


def encoded(s: Serializer, value: Any) -> bytes:
    out = Output()
    s.encode(out, value)
    return bytes(out)


CASES: Final = [(v, *key) for v in VERSIONS for key in lines(v) if key[1] != "snapshot"]


@pytest.mark.parametrize(
    ("version", "section", "name"), [c for c in CASES if not c[2].startswith(("parcel", "part", "holder"))]
)
def test_protobuf_messages_are_decoded_and_encoded(version: str, section: str, name: str) -> None:
    text_format = pytest.importorskip("google.protobuf.text_format")
    s = serializer(version, section, declared())
    raw, printed = lines(version)[section, name]
    text = decoded(s, raw)
    assert encoded(s, text) == raw
    tree = json.loads(text)
    message = next(iter(tree)).rpartition("$")[2] if section == "by-default" else section.title()
    if section == "by-default":
        (tree,) = tree.values()
    if name == "unknown":
        assert tree == {"id": "3", "items": [{"sku": "u", "$unknown": UNKNOWN}], "$unknown": UNKNOWN}
        return
    for number in ("99", "-3"):
        printed = printed.replace(f"UNKNOWN_ENUM_VALUE_State_{number}", number)
    pool, kind = message_class(DESCRIPTOR, f"{MESSAGES[message]}.{message}")
    parsed = text_format.Parse(printed, kind(), descriptor_pool=pool)
    bare = raw[-parsed.ByteSize() :] if parsed.ByteSize() else b""
    assert kind.FromString(bare).SerializeToString(deterministic=True) == parsed.SerializeToString(deterministic=True)


def test_protobuf_values_are_those_of_the_job() -> None:
    text = decoded(serializer("2.3.0", "order", declared()), lines("2.3.0")["order", "full"][0])
    assert json.loads(text) == {
        "id": "-5", "name": "Zoë €😀", "items": [{"sku": "a", "count": 1, "labels": ["x", ""], "inside": {"sku": "b", "count": 2}}, {}],
        "stock": {"k": -1}, "by_id": {"7": {"sku": "m", "count": 3}}, "state": "SENT", "cash": "-9", "maybe": 0,
        "deltas": [0, -1, 1 << 30], "raw": "AP8=", "price": -0.5, "ratio": 0.1, "stamp": str((1 << 64) - 1), "offset": -2,
        "paid": True, "states": ["NEW", "PAID"], "at": "2023-11-14T22:13:20.000000005Z", "big": str((1 << 64) - 1),
        "any": {"@type": "type.googleapis.com/shop.v3.Item", "sku": "packed", "count": 4},
    }  # fmt: skip
    event = decoded(serializer("1.20.5", "event", declared()), lines("1.20.5")["event", "event-full"][0])
    assert json.loads(event) == {
        "id": "2", "text": "t", "count": 42, "packed": [1, -1, 300], "loose": [1, -1], "level": "LOW", "place": {"x": 1.5},
        "[shop.v2.origin]": "web",
    }  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_thrift_structs_are_decoded(version: str) -> None:
    s = serializer(version, "parcel", declared())
    assert json.loads(decoded(s, lines(version)["parcel", "parcel"][0])) == PARCEL
    assert json.loads(decoded(s, lines(version)["parcel", "parcel-min"][0])) == {"id": 0, "7": False, "8": 0.0, "11": 0}
    nan = {"id": 1, "7": False, "8": "nan", "10": {"1": ""}, "11": 0}
    assert json.loads(decoded(s, lines(version)["parcel", "parcel-nan"][0])) == nan
    loose = serializer(version, "by-default", declared())
    part = {"shop.thrift.Part": {"name": "alone", "count": -1}}
    assert json.loads(decoded(loose, lines(version)["by-default", "part"][0])) == part


def test_names_inside_nested_thrift_structs_come_from_their_declarations() -> None:
    part = statetool.declare_thrift("shop.thrift.Part", ["name", "count"])
    choice = statetool.declare_thrift("shop.thrift.Choice", ["text", "number"])
    kind = statetool.declare("shop.thrift.Kind", ["SMALL", "LARGE"], numbers=[1, 5])
    types = {
        "id": "long", "name": "String", "parts": f"List<{part.name}>", "stock": "Map<String, Integer>", "kind": kind.name,
        "choice": choice.name, "nested": f"Map<Long, List<{part.name}>>", "odd": "String",
    }  # fmt: skip
    parcel = statetool.declare_thrift("shop.thrift.Parcel", types, numbers=[1, 2, 3, 4, 6, 10, 20, -1])
    assert from_json(to_json(parcel)) == parcel
    assert from_json(to_json(kind)) == kind
    s = serializer("2.3.0", "parcel", (part, choice, kind, parcel))
    unnamed = {k: v for k, v in PARCEL.items() if k not in ("-1", "parts", "6", "10", "20")}
    assert json.loads(decoded(s, lines("2.3.0")["parcel", "parcel"][0])) == unnamed | {
        "parts": [{"name": "a", "count": 1}, {"count": 0}], "kind": "LARGE", "choice": {"number": 1 << 40},
        "nested": [[5, [{"name": "deep", "count": 2}]]], "odd": "odd",
    }  # fmt: skip
    # A constant that the declaration does not have stays a number, and a struct whose class is not declared keeps the ids.
    older = statetool.declare("shop.thrift.Kind", ["SMALL"], numbers=[1])
    found = json.loads(
        decoded(serializer("2.3.0", "parcel", (part, older, parcel)), lines("2.3.0")["parcel", "parcel"][0])
    )
    assert (found["kind"], found["choice"]) == (5, {"2": 1 << 40})
    with pytest.raises(OptionError, match="1 number for 2 names"):
        statetool.declare_thrift("shop.thrift.Part", ["name", "count"], numbers=[1])


_TYPES: Final = {"id": "long", "name": "String", "parts": "List<shop.thrift.Part>", "stock": "Map<String, Integer>"}


def parcel(required: tuple[str, ...] = (), numbers: tuple[int, ...] = (1, 2, 3, 4), **types: str) -> dict[str, Any]:
    """Return a struct that is read with changed types."""
    struct = statetool.declare_thrift("shop.thrift.Parcel", _TYPES | types, numbers=numbers, required=required)
    assert from_json(to_json(struct)) == struct
    part = statetool.declare_thrift("shop.thrift.Part", {"name": "String", "count": "int"}, numbers=[1, 2])
    kind = statetool.declare("shop.thrift.Kind", ["SMALL"], numbers=[1])
    s = serializer("2.3.0", "parcel", (part, kind, struct))
    found: dict[str, Any] = json.loads(decoded(s, lines("2.3.0")["parcel", "parcel"][0]))
    return found


def test_a_thrift_field_of_another_type_is_skipped_by_its_class() -> None:
    assert parcel() == PARCEL | {"parts": [{"name": "a", "count": 1}, {"count": 0}]}
    found = parcel(id="int", name="java.nio.ByteBuffer", stock="List<String>")
    assert (found["1"], found["4"]) == (PARCEL["id"], PARCEL["stock"])
    assert found["name"] == {"base64": "Wm/DqyDigqzwn5iA"}
    with pytest.raises(FormatError, match="elements of type 12, which the class reads as"):
        parcel(parts="List<String>")
    with pytest.raises(FormatError, match="elements of type 8, which the class reads as"):
        parcel(stock="Map<String, Long>")


def test_a_thrift_struct_without_a_required_field_is_refused() -> None:
    assert parcel(("id", "name"))["name"] == PARCEL["name"]
    with pytest.raises(FormatError, match=r"a shop\.thrift\.Parcel without its required more"):
        parcel(("id", "more"), (1, 2, 3, 4, 99), more="long")
    # A field of another type, and a constant that the class does not have, are not set.
    with pytest.raises(FormatError, match="without its required id"):
        parcel(("id",), id="int")
    with pytest.raises(FormatError, match="without its required kind"):
        parcel(("kind",), (1, 2, 3, 4, 6), kind="shop.thrift.Kind")


def test_a_protobuf_message_without_a_required_field_is_refused() -> None:
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    files = descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTOR)
    (event,) = (m for f in files.file for m in f.message_type if f.package == "shop.v2" and m.name == "Event")
    event.field.add(name="more", number=99, type="TYPE_STRING", label="LABEL_REQUIRED")
    s = serializer("1.20.5", "event", (protobuf("Event", files.SerializeToString()),))
    with pytest.raises(DecodeError, match=r"a shop\.v2\.Event without its required more"):
        decoded(s, lines("1.20.5")["event", "event-full"][0])


@pytest.mark.parametrize("version", VERSIONS)
def test_messages_in_a_declared_class(version: str) -> None:
    s = serializer(version, "holder", declared())
    order, parcel, note, items, anything = decoded(s, lines(version)["holder", "holder"][0])
    assert json.loads(order)["name"] == "Zoë €😀"
    assert json.loads(parcel) == PARCEL
    assert note == "n"
    assert items == ['{"sku":"i","count":1}', None, '{"sku":"j","count":2}']
    assert anything == '{"shop.v3.Orders$Item":{"sku":"any","count":5}}'
    empty = lines(version)["holder", "holder-empty"][0]
    assert decoded(s, empty) == (None,) * 5
    assert encoded(s, (None,) * 5) == empty


def test_messages_that_nobody_declared_are_bytes() -> None:
    s = serializer("2.3.0", "order", ())
    assert decoded(s, lines("2.3.0")["order", "card"][0]) == b"\x3a\0"


def test_a_descriptor_of_another_message_is_refused() -> None:
    other = statetool.declare_protobuf("shop.v3.Orders$Order", b"\1\2", "shop.v3.Order")
    with pytest.raises(DecodeError, match="descriptor"):
        decoded(serializer("2.3.0", "order", (other,)), lines("2.3.0")["order", "card"][0])
    s = serializer("2.3.0", "order", declared())
    for text in ('{"id":"x"}', '{"nothing":1}', '{"items":[{"$unknown":"?"}]}', "[1]"):
        with pytest.raises(EncodeError):
            encoded(s, text)


def test_a_packed_message_outside_of_the_descriptor_is_named() -> None:
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    files = descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTOR)
    packed = files.file[-2]
    assert packed.package == "shop.v3"
    old = serializer("2.3.0", "order", (protobuf("Order"),))
    raw = lines("2.3.0")["order", "full"][0]
    for at in range(len(raw) - 20):
        if raw[at : at + 12] == b"shop.v3.Item":
            raw = raw[:at] + b"shop.v3.Itex" + raw[at + 12 :]
    with pytest.raises(DecodeError, match=r"shop\.v3\.Itex"):
        decoded(old, raw)


def test_protobuf_that_would_crash_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    google = pytest.importorskip("google.protobuf")
    monkeypatch.setattr(google, "__version__", "4.24.4")
    message_class.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"from 4\.25, this is 4\.24\.4"):
        message_class(b"", "acme.Order")
