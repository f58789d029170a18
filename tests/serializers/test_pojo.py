"""POJOs composed by hand: hierarchies, removed fields, lost serializers."""

import numpy as np
import pytest

from statetool.columns.decode import as_data
from statetool.columns.values import decode_framed
from statetool.errors import DecodeError, EncodeError, FormatError, UndescribedClassError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import PerRecord, Pojo
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.types import Scalar, StructType
from statetool.types.options import ReadOptions
from tests.support.snapshots import build

_TEXT = Scalar("string")
DOG = build.pojo("Dog", {"age": build.LONG, "name": build.STRING})
CAT = build.pojo("Cat", {"lives": build.INT, "name": build.STRING})


def _bind(snapshot: bytes) -> Serializer:
    s = snapshot_reader().snapshot(Cursor(snapshot))
    out = Output()
    s.write_snapshot(out)
    assert bytes(out) == snapshot
    return s


def _round_trip(s: Serializer, value: object) -> bytes:
    out = Output()
    s.encode(out, value)
    c = Cursor(out)
    assert s.decode(c) == value
    assert c.left == 0
    return bytes(out)


def test_closed_class_is_a_struct_of_its_fields_and_has_a_kernel() -> None:
    s = _bind(DOG)
    assert s.logical == StructType.of(age=Scalar("int64"), name=_TEXT)
    assert isinstance(s.program(), Pojo)
    assert _round_trip(s, (3, "Rex")) == bytes.fromhex("02000000000000000003000452 6578".replace(" ", ""))
    assert _round_trip(s, None) == b"\x01"
    assert _round_trip(s, (None, None)) == b"\x02\x01\x01"


def test_open_class_shows_the_union_of_fields_and_the_class() -> None:
    s = _bind(build.pojo("Animal", {"name": build.STRING}, registered={"Dog": DOG}, others={"Cat": CAT}))
    assert s.logical == StructType.of(name=_TEXT, age=Scalar("int64"), lives=Scalar("int32"), _class=_TEXT)
    assert isinstance(s.program(), PerRecord)
    assert _round_trip(s, ("a", None, None, "Animal")).startswith(b"\x02")
    assert _round_trip(s, ("Rex", 3, None, "Dog")).startswith(b"\x08\x00\x02")
    assert _round_trip(s, ("Tom", None, 9, "Cat")).startswith(b"\x04\x00\x03Cat\x02")


def test_fields_of_one_name_and_two_types_are_told_apart_by_class() -> None:
    parts = {"A": build.pojo("A", {"v": build.INT}), "B": build.pojo("B", {"v": build.STRING, "w": build.INT})}
    s = _bind(build.pojo("Base", {"v": build.LONG}, registered=parts))
    names = [f.name for f in s.logical.fields]  # type: ignore[attr-defined]
    assert names == ["v", "A.v", "B.v", "w", "_class"]
    _round_trip(s, (1, None, None, None, "Base"))
    _round_trip(s, (None, 2, None, None, "A"))
    _round_trip(s, (None, None, "three", 4, "B"))


def test_field_called_like_the_class_column_keeps_its_name() -> None:
    s = _bind(build.pojo("Base", {"_class": build.INT}, registered={"A": build.pojo("A", {"v": build.INT})}))
    assert [f.name for f in s.logical.fields] == ["_class", "v", "__class"]  # type: ignore[attr-defined]
    _round_trip(s, (1, None, "Base"))
    _round_trip(s, (None, 2, "A"))


def test_subclass_that_is_no_pojo_is_one_column() -> None:
    s = _bind(build.pojo("Base", {"v": build.INT}, others={"Odd": build.kryo("Odd")}))
    _round_trip(s, (5, None, "Base"))
    _round_trip(s, (None, b"\x01\x02", "Odd"))


def test_subclass_that_the_snapshot_does_not_describe_is_an_error() -> None:
    s = _bind(build.pojo("Base", {"v": build.INT}, others={"A": build.pojo("A", {"v": build.INT})}))
    out = Output(b"\x04")
    out.utf("Other")
    with pytest.raises(FormatError, match="Other, a subclass of Base that the snapshot does not describe"):
        s.decode(Cursor(out))
    with pytest.raises(EncodeError, match="'Other'"):
        s.encode(Output(), (1, "Other"))


def test_all_classes_that_are_to_be_declared_are_named_at_once() -> None:
    s = _bind(build.pojo("Base", {"v": build.INT}))
    values = []
    for name in (None, "Boat", "Car", "Boat", "Car"):
        out = Output()
        if name is None:
            s.encode(out, (1,))
        else:
            out.u1(4)
            out.utf(name)
        values.append(bytes(out))
    end = np.cumsum([len(v) for v in values])
    pos = end - [len(v) for v in values]
    with pytest.raises(UndescribedClassError) as caught:
        decode_framed(s, as_data(b"".join(values)), pos, end, ReadOptions())
    assert [str(caught.value).count(text) for text in ("of Boat,", "of Car,", 'declare("Boat"', 'declare("Car"')] == [
        1
    ] * 4
    assert caught.value.where.offset == int(pos[1]) + 1


@pytest.mark.parametrize("raw", [b"\x00", b"\x03", b"\x10", b"\x08\x07"])
def test_flags_and_tags_that_flink_never_writes_are_errors(raw: bytes) -> None:
    with pytest.raises(FormatError):
        _bind(build.pojo("Base", {"v": build.INT}, registered={"Dog": DOG})).decode(Cursor(raw))


def test_removed_field_is_still_in_the_values() -> None:
    s = _bind(build.pojo("P", {"gone": build.INT, "kept": build.STRING}, removed=("gone",)))
    _round_trip(s, (7, "k"))


def test_lost_serializer_spoils_only_the_values_that_need_it() -> None:
    s = _bind(build.pojo("P", {"lost": None, "kept": build.INT}))
    assert s.decode(Cursor(b"\x02\x01\x00\x00\x00\x00\x05")) == (None, 5)
    with pytest.raises(UnknownSerializerError, match="no serializer of 'lost'") as caught:
        s.decode(Cursor(b"\x02\x00\x63\x00\x00\x00\x00\x05"))
    assert caught.value.where.type_path == "lost"


def test_unknown_serializer_of_the_last_field_keeps_its_bytes() -> None:
    s = _bind(build.pojo("P", {"a": build.INT, "b": build.simple("Strange", "com.acme.")}))
    assert s.needs_frame
    assert s.decode(Cursor(b"\x02\x00\x00\x00\x00\x05\x00xyz")) == (5, b"xyz")


def test_error_names_the_path_to_the_field() -> None:
    outer = _bind(build.pojo("Outer", {"inner": build.list_of(build.pojo("Inner", {"n": build.INT}))}))
    with pytest.raises((FormatError, DecodeError)) as caught:
        outer.decode(Cursor(bytes.fromhex("02 00 00000001 02 00 0000"), base=100))
    assert caught.value.where.type_path == "inner.element.n"
    assert caught.value.where.offset == 108
