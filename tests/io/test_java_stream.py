"""Java serialization streams, mostly from Flink's serializer snapshots."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statetool.errors import EncodeError, FormatError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaEnum, JavaObject, read_java_stream
from statetool.io.java_streams.writer import write_java_stream
from statetool.io.output import Output
from tests.support.corpora.golden import generated

_MAGIC = b"\xac\xed\x00\x05"


def _streams() -> list[bytes]:
    """Return the distinct streams in the golden snapshots and values."""
    streams = set()
    for cases in generated().values():
        for case in cases:
            for raw in (case.snapshot or b"", case.data or b""):
                at = raw.find(_MAGIC)
                while at >= 0:
                    c = Cursor(raw, at)
                    read_java_stream(c)
                    streams.add(raw[at : c.pos])
                    at = raw.find(_MAGIC, c.pos)
    return sorted(streams)


STREAMS = _streams()


def _utf(text: str) -> bytes:
    out = Output()
    out.utf(text)
    return bytes(out)


def _class(name: str, flags: int, fields: bytes = b"\0\0", parent: bytes = b"\x70") -> bytes:
    return b"\x72" + _utf(name) + bytes(8) + bytes([flags]) + fields + b"\x78" + parent


def test_there_are_streams_to_test_with() -> None:
    assert len(STREAMS) > 20


@pytest.mark.parametrize("raw", STREAMS, ids=lambda raw: f"{len(raw)}-bytes")
def test_stream_ends_exactly_whatever_follows(raw: bytes) -> None:
    for tail in (b"", _MAGIC, b"\x78\x70", bytes(20)):
        c = Cursor(raw + tail)
        read_java_stream(c)
        assert c.pos == len(raw)


@pytest.mark.parametrize("raw", STREAMS, ids=lambda raw: f"{len(raw)}-bytes")
def test_what_was_read_is_written_as_it_was(raw: bytes) -> None:
    out = Output()
    write_java_stream(out, read_java_stream(Cursor(raw)))
    assert bytes(out) == raw


def test_what_a_class_writes_by_itself_is_refused() -> None:
    block = _MAGIC + b"\x73" + _class("Ext", 12) + b"\x77\1a\x78"
    with pytest.raises(EncodeError, match="Ext writes itself"):
        write_java_stream(Output(), read_java_stream(Cursor(block)))
    twice = _MAGIC + b"\x73" + _class("Child", 3, parent=_class("Base", 3)) + b"\x78\x78"
    with pytest.raises(EncodeError, match="several classes of Child"):
        write_java_stream(Output(), read_java_stream(Cursor(twice)))
    with pytest.raises(EncodeError, match=r"1\.5 is nothing"):
        write_java_stream(Output(), 1.5)


@pytest.mark.parametrize("raw", STREAMS, ids=lambda raw: f"{len(raw)}-bytes")
def test_every_truncation_is_an_error(raw: bytes) -> None:
    for cut in range(0, len(raw), max(1, len(raw) // 100)):
        with pytest.raises(FormatError) as caught:
            read_java_stream(Cursor(raw[:cut], base=50))
        assert 50 <= (caught.value.where.offset or 0) <= 50 + cut


def test_object_shows_fields_of_its_parents() -> None:
    parent = _class("Base", 2, b"\0\1I" + _utf("id"))
    child = _class("Child", 2, b"\0\1L" + _utf("name") + b"\x74" + _utf("Ljava/lang/String;"), parent)
    value = read_java_stream(Cursor(_MAGIC + b"\x73" + child + b"\0\0\0\7" + b"\x74" + _utf("x")))
    assert isinstance(value, JavaObject)
    assert value.cls.name == "Child"
    assert value.fields == {"id": 7, "name": "x"}


def test_references_arrays_enums_classes_and_blocks() -> None:
    item = b"\x75" + _class("[Ljava.lang.Object;", 2)
    enum = b"\x7e" + _class("Color", 18) + b"\x74" + _utf("RED")
    # Handles: 0 array class, 1 array, 2 enum class, 3 enum, 4 its name, 5 class.
    raw = _MAGIC + item + b"\0\0\0\4" + enum + b"\x76" + _class("K", 2) + b"\x71\0\x7e\0\4" + b"\x77\2ab"
    value: Any = read_java_stream(Cursor(raw))
    assert isinstance(value, JavaArray)
    red, cls, name, block = value.items
    assert isinstance(red, JavaEnum)
    assert (red.cls.name, red.name, name, block) == ("Color", "RED", "RED", b"ab")
    assert isinstance(cls, JavaClass)
    assert cls.name == "K"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\xac\xed\x00\x04\x70", "expected a Java serialization stream"),
        (_MAGIC + b"\x60", "unexpected tag 0x60"),
        (_MAGIC + b"\x71\0\x7e\0\0", "reference to nothing"),
        (_MAGIC + b"\x75" + _class("[I", 2) + b"\x7f\xff\xff\xff", "count 2147483647"),
        (_MAGIC + b"\x75" + _class("Thing", 2) + b"\0\0\0\0", "not the class of an array"),
        (_MAGIC + b"\x73" + _class("Ext", 4), "whose end cannot be found"),
        (_MAGIC + (b"\x75" + _class("[Lx;", 2) + b"\0\0\0\1") * 500, "nested deeper"),
    ],
)
def test_damage_is_named(raw: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_java_stream(Cursor(raw))


@settings(max_examples=300)
@given(st.sampled_from(STREAMS), st.integers(0, 4000), st.binary(min_size=1, max_size=5))
def test_damage_raises_only_our_errors(raw: bytes, at: int, patch: bytes) -> None:
    at %= len(raw)
    try:
        read_java_stream(Cursor(raw[:at] + patch + raw[at + len(patch) :]))
    except FormatError:
        pass
