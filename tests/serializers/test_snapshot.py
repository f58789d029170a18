"""Framing of snapshots: proxies, forms of Flink 1.7 and older, unknown classes."""

import pytest

from statetool.errors import FormatError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.packages import full_name
from statetool.serializers.core.snapshot import MAX_DEPTH, write_proxied
from statetool.serializers.table import FAMILIES, SNAPSHOT_CLASSES, snapshot_classes, snapshot_reader
from statetool.types import Field, ListType, MapType, Scalar, StructType
from tests.support.snapshots import build

_BASE = "org.apache.flink.api.common.typeutils."
_RUNTIME = "org.apache.flink.api.java.typeutils.runtime."
#: A Java stream with a string; real ones contain a serializer object, which is skipped by its length.
_JAVA = b"\xac\xed\x00\x05t\x00\x01x"


def _serializer_stream() -> bytes:
    out = Output()
    out.i4(1)
    out.bytes4(_JAVA)
    return bytes(out)


def _parameterless(serializer_class: str) -> bytes:
    """Return a snapshot of Flink 1.6 and older after its proxy."""
    out = Output()
    out.i4(1)
    out.utf(_BASE + "ParameterlessTypeSerializerConfig")
    out.i4(1)
    out.utf(serializer_class)
    return bytes(out)


INT = _parameterless(_BASE + "base.IntSerializer")
STRING = _parameterless(_BASE + "base.StringSerializer")


def _resilient(*snapshots: bytes) -> bytes:
    head, body = Output(), Output()
    head.i4(len(snapshots))
    for snapshot in snapshots:
        head.i4(len(body))
        body += _serializer_stream()
        head.i4(len(body))
        body += snapshot
    head.bytes4(body)
    return bytes(head)


def _behind_proxy(name: str, payload: bytes, version: int = 1) -> bytes:
    out = Output()
    out.i4(1)
    out.utf(name)
    out.i4(version)
    return bytes(out) + payload


def _adapter(name: str, payload: bytes, version: int = 1) -> bytes:
    out = Output()
    out.utf(name)
    out.i4(0x7A53C4F0)
    out += _serializer_stream()
    out.i4(version)
    return bytes(out) + payload


def _read_both(name: str, payload: bytes, version: int = 1) -> Serializer:
    """Read the form of Flink 1.6 and that of 1.7, check that both are written back, return the first."""
    proxied, adapted = _behind_proxy(name, payload, version), _adapter(name, payload, version)
    serializers = []
    for raw, proxy in ((proxied, True), (adapted, False)):
        c = Cursor(raw)
        s = snapshot_reader().proxied(c) if proxy else snapshot_reader().snapshot(c)
        assert c.left == 0
        out = Output()
        if proxy:
            write_proxied(out, s)
        else:
            s.write_snapshot(out)
        assert bytes(out) == raw
        serializers.append(s)
    assert serializers[0].logical == serializers[1].logical
    return serializers[0]


def test_current_snapshot_behind_its_proxy_is_written_back() -> None:
    raw = b"\0\0\0\2" + build.map_of(build.STRING, build.LONG)
    s = snapshot_reader().proxied(Cursor(raw))
    out = Output()
    write_proxied(out, s)
    assert bytes(out) == raw


def test_snapshot_of_flink_1_7_names_the_serializer_class() -> None:
    out = Output()
    out.utf(_BASE + "base.IntSerializer$IntSerializerSnapshot")
    out.i4(2)
    out.utf(_BASE + "base.IntSerializer")
    s = snapshot_reader().snapshot(Cursor(out))
    again = Output()
    s.write_snapshot(again)
    assert again == out
    assert s.decode(Cursor(b"\0\0\0\7")) == 7


def test_old_list_and_map_are_resilient_lists() -> None:
    s = _read_both(_BASE + "base.CollectionSerializerConfigSnapshot", _resilient(STRING))
    assert s.logical == ListType(Scalar("string"))
    s = _read_both(_BASE + "base.MapSerializerConfigSnapshot", _resilient(STRING, INT))
    assert s.logical == MapType(Scalar("string"), Scalar("int32"))
    assert s.decode(Cursor(bytes.fromhex("00000001 0261 00 00000005"))) == [("a", 5)]


def test_old_tuple_ends_with_a_java_class() -> None:
    cls = Output(b"\xac\xed\x00\x05\x76\x72")
    cls.utf("org.apache.flink.api.java.tuple.Tuple2")
    cls += bytes(8) + b"\x02\0\0" + b"\x78\x70"
    s = _read_both(_RUNTIME + "TupleSerializerConfigSnapshot", _resilient(STRING, INT) + bytes(cls))
    assert s.logical == StructType((Field("f0", Scalar("string")), Field("f1", Scalar("int32"))))


def test_old_row_has_no_row_kind_and_old_nullable_no_padding() -> None:
    s = _read_both(_RUNTIME + "RowSerializer$RowSerializerConfigSnapshot", _resilient(INT, STRING))
    assert s.decode(Cursor(bytes.fromhex("80 0261"))) == (None, "a")
    s = _read_both(_RUNTIME + "NullableSerializer$NullableSerializerConfigSnapshot", _resilient(INT))
    assert s.decode(Cursor(b"\1")) is None


def test_old_pojo_has_three_maps_by_offset_in_one_buffer() -> None:
    payload = Output()
    payload.utf("com.acme.P")
    body = Output()
    for names in (("a", "b"), (), ()):
        payload.i4(len(names))
        for name, snapshot in zip(names, (INT, STRING), strict=False):
            body.utf(name)
            payload.i4(len(body))
            body += _serializer_stream()
            payload.i4(len(body))
            body += snapshot
    payload.bytes4(body)
    s = _read_both(_RUNTIME + "PojoSerializer$PojoSerializerConfigSnapshot", bytes(payload))
    assert s.logical == StructType.of(a=Scalar("int32"), b=Scalar("string"))


def test_old_enum_lists_its_names() -> None:
    payload = Output()
    payload.utf("com.acme.Color")
    payload.i4(2)
    payload.utf("RED")
    payload.utf("BLUE")
    s = _read_both(_BASE + "base.EnumSerializer$EnumSerializerConfigSnapshot", bytes(payload), version=2)
    assert s.decode(Cursor(b"\0\0\0\1")) == "BLUE"


def test_a_class_is_known_in_every_package_that_it_had() -> None:
    for package in ("org.apache.flink.runtime.state", "org.apache.flink.queryablestate.client"):
        s = snapshot_reader().snapshot(Cursor(build.simple("VoidNamespace", package + ".")))
        assert s.type_name == "VoidNamespace"


def test_unknown_class_is_named_with_its_offset() -> None:
    raw = build.list_of(build.simple("Strange", "com.acme."))
    with pytest.raises(UnknownSerializerError, match=r"com\.acme\.StrangeSerializer") as caught:
        snapshot_reader().snapshot(Cursor(raw, base=1000))
    assert caught.value.where.offset == 1000 + raw.index(b"com.acme.") - 2


def test_unknown_class_in_an_old_list_is_framed_by_its_offsets() -> None:
    odd = _behind_proxy("com.acme.StrangeConfigSnapshot", b"whatever")
    s = _read_both(_BASE + "base.MapSerializerConfigSnapshot", _resilient(STRING, odd))
    assert s.needs_frame
    assert s.decode(Cursor(bytes.fromhex("00000001 0261 00 0102"))) == [("a", b"\1\2")]


def test_nesting_without_end_is_refused() -> None:
    head = build.list_of(b"")
    assert snapshot_reader().snapshot(Cursor(head * (MAX_DEPTH - 1) + build.INT)).depth == MAX_DEPTH
    for levels in (MAX_DEPTH, 100 * MAX_DEPTH):
        with pytest.raises(FormatError, match=f"deeper than {MAX_DEPTH}"):
            snapshot_reader().snapshot(Cursor(head * levels + build.INT))


@pytest.mark.parametrize("proxy", [0, 3, -1])
def test_unknown_proxy_version_is_refused(proxy: int) -> None:
    out = Output()
    out.i4(proxy)
    with pytest.raises(UnknownSerializerError if proxy == 3 else FormatError, match="proxy version"):
        snapshot_reader().proxied(Cursor(bytes(out) + build.INT))


def test_wrong_number_of_parts_is_refused() -> None:
    raw = build.composite(_BASE + "base.MapSerializerSnapshot", 1, b"", build.INT)
    with pytest.raises(FormatError, match="1 nested serializers, expected 2"):
        snapshot_reader().snapshot(Cursor(raw))


def test_no_name_belongs_to_two_families() -> None:
    assert len(set(SNAPSHOT_CLASSES)) == len(SNAPSHOT_CLASSES)
    assert all(
        SNAPSHOT_CLASSES[full_name(name)] is read for f in FAMILIES for name, read in snapshot_classes(f).items()
    )
