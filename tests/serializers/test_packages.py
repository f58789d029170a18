"""Classes in other packages than Flink's: never read with the layout of the Flink class with the same simple name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from statetool.errors import UnknownSerializerError, UnsupportedError
from statetool.formats.keyed.header import read_keyed_header, write_keyed_header
from statetool.formats.timers.raw_timers import _from_object
from statetool.io.cursor import Cursor
from statetool.io.java_streams.writer import write_java_stream
from statetool.io.output import Output
from statetool.serializers.core.packages import binary_name, full_name, known_name
from statetool.serializers.core.snapshot import ADAPTER_VERSION
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.simple_types import _BY_CLASS, serializer_of_class
from statetool.serializers.sql import java_classes
from statetool.serializers.sql.logical_types import SqlType, parse_logical_type
from statetool.serializers.sql.streams import type_object
from statetool.serializers.table import FAMILIES, snapshot_classes, snapshot_reader
from statetool.types.declared import NOTHING_DECLARED
from tests.support.snapshots import beam, build
from tests.support.snapshots.headers import header_with

#: Real ones first: the pipelines of Flink CDC (current and former name), packages of PyFlink and Beam for other classes.
PACKAGES: Final = (
    "org.flinkx.api.serializer.",
    "org.apache.flink.cdc.runtime.serializer.",
    "org.apache.flink.cdc.runtime.serializer.data.",
    "com.ververica.cdc.runtime.serializer.",
    "com.acme.",
    "com.acme.org.apache.flink.api.common.typeutils.base.",
    "shaded.org.apache.flink.api.common.typeutils.base.",
    "org.apache.flink.",
    "org.apache.flink.api.common.typeutils.bases.",
    "xorg.apache.flink.api.common.typeutils.base.",
    "org.apache.beam.runners.flink.",
    "",
)


def others(known: str) -> Iterator[str]:
    """Yield names similar to a class name, but different."""
    package, _, name = known.rpartition(".")
    yield from (f"{other}{name}" for other in PACKAGES)
    yield from (f"{package}.My{name}", f"{known}2", f"{known}$", f"{package}.Outer${name}", f"{package}.inner.{name}")
    yield f"{package}x.{name}"
    yield known.replace(".", "/")
    yield known.lower()


@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_full_name_of_a_snapshot_class_is_known(family: str) -> None:
    for name in snapshot_classes(family):
        known = full_name(name)
        assert known_name(known) == name
        for other in others(known):
            out = Output()
            out.utf(other)
            head = bytes(out)
            # As written by Flink 1.7 and later for an old-style class, and by Flink 1.6 and older.
            for raw in (
                b"\0\0\0\2" + head + b"\0\0\0\3" + bytes(200),
                b"\0\0\0\2" + head + ADAPTER_VERSION.to_bytes(4, "big") + b"\0\0\0\1\0\0\0\0" + bytes(200),
                b"\0\0\0\1" + head + bytes(200),
            ):
                with pytest.raises(UnknownSerializerError) as caught:
                    snapshot_reader().proxied(Cursor(raw))
                assert f"{other!r} is not known" in caught.value.message
                assert "canonical savepoint" in (caught.value.hint or "")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_values_of_such_a_class_are_exact_bytes(family: str) -> None:
    for name in snapshot_classes(family):
        snapshot = Output(b"\0\0\0\2")
        snapshot.utf(f"com.ververica.cdc.runtime.serializer.{name}")
        snapshot += b"\0\0\0\2" + build.nested(build.LONG)
        raw = header_with(bytes(snapshot), as_key=False)
        header = read_keyed_header(Cursor(raw), NOTHING_DECLARED, end=len(raw))
        state = header.states[0].value
        assert "com.ververica.cdc" in state.type_name
        assert state.needs_frame
        assert state.decode(Cursor(b"\1\2\3")) == b"\1\2\3"
        assert write_keyed_header(header) == raw


def test_a_case_class_of_flink_scala_api_with_its_arity_is_not_read_as_flinks() -> None:
    """``("id1", 7)`` was read as ``(None, 516)`` with seven bytes left over."""
    outer = Output()
    outer.utf("scala.Tuple2")
    raw = build.composite(
        "org.apache.flinkx.api.serializer.ScalaCaseClassSerializerSnapshot", 2, bytes(outer), build.STRING, build.INT
    )
    assert snapshot_reader().snapshot(Cursor(raw)).decode(Cursor(b"\0\0\0\2\4id1\0\0\0\7")) == ("id1", 7)
    own = build.composite(full_name("ScalaCaseClassSerializerSnapshot"), 2, bytes(outer), build.STRING, build.INT)
    assert snapshot_reader().snapshot(Cursor(own)).decode(Cursor(b"\4id1\0\0\0\7")) == ("id1", 7)


def test_the_sql_timestamp_of_the_blink_planner_is_another_class() -> None:
    """Only Flink 1.10 has it: milliseconds and nanoseconds by precision, like the ``TimestampDataSerializer`` of 1.11."""
    raw = Output()
    raw.utf("org.apache.flink.table.runtime.typeutils.SqlTimestampSerializer$SqlTimestampSerializerSnapshot")
    with pytest.raises(UnknownSerializerError, match="is not known"):
        snapshot_reader().snapshot(Cursor(bytes(raw) + b"\0\0\0\3"))


def test_serializers_in_java_streams_are_known_by_their_full_names() -> None:
    for name, spec in _BY_CLASS.items():
        known = full_name(name)
        serializer = serializer_of_class(known)
        assert serializer is not None
        assert serializer.type_name == spec.name
        # If its snapshot is written, Flink loads the class of this name.
        assert serializer.snapshot_class.startswith(f"{known}$")
        assert all(serializer_of_class(other) is None for other in others(known))
        assert binary_name(known.replace("$", ".")) == known


def test_a_parameterless_snapshot_of_another_package_is_refused() -> None:
    for name in ("IntSerializer", "TimeWindow.Serializer", "TimeWindow$Serializer", "NodeId.NodeIdSerializer"):
        out = Output(b"\0\0\0\1")
        out.utf("org.apache.flink.api.common.typeutils.ParameterlessTypeSerializerConfig")
        out.i4(1)
        out.utf(f"com.acme.{name}")
        with pytest.raises(UnknownSerializerError, match=rf"com\.acme\.{name[:4]}"):
            snapshot_reader().proxied(Cursor(bytes(out)))


def test_java_serialized_serializers_of_timers_are_known_by_their_full_names() -> None:
    key = snapshot_reader().snapshot(Cursor(build.list_of(build.INT)))
    for name, read in ((full_name("ListSerializer"), True), ("com.acme.ListSerializer", False)):
        out = Output()
        write_java_stream(out, beam.obj(name))
        if read:
            assert _from_object(Cursor(bytes(out)), key) is key
        else:
            with pytest.raises(UnknownSerializerError, match=r"com\.acme\.ListSerializer"):
                _from_object(Cursor(bytes(out)), key)


def test_logical_types_and_raw_serializers_are_known_by_their_full_names() -> None:
    fields = {"isNullable": True}
    assert parse_logical_type(beam.obj(f"{java_classes.LOGICAL}IntType", **fields)).root == "INT"
    for name in ("org.apache.flink.cdc.common.types.IntType", "IntType", "com.acme.IntType"):
        with pytest.raises(UnsupportedError, match="has no values in state"):
            parse_logical_type(beam.obj(name, **fields))
    for name in ("com.acme.StringSerializer", "StringSerializer"):
        raw = SqlType(root="RAW", nullable=True, class_name="java.lang.String", serializer=name)
        with pytest.raises(UnsupportedError, match=f"the serializer {name}"):
            type_object(raw, java_classes.NEWEST)


def test_kryos_serializers_are_known_by_their_full_names() -> None:
    for known in (
        "com.esotericsoftware.kryo.serializers.FieldSerializer",
        "com.twitter.chill.protobuf.ProtobufSerializer",
    ):
        for name in (known, f"com.acme.{known}", f"x{known}", f"{known}2"):
            kryo = KryoInstance(5, NOTHING_DECLARED, (("com.acme.Money", name),))
            assert kryo.custom("com.acme.Money") == (None if name == known else name)
