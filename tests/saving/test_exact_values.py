"""Values that Java has in only one form, or not at all: written in that form, or refused with column and key."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import statetool as st
from statetool import flink
from statetool.columns.encode import _Plain, encode_column
from statetool.columns.pieces import pack
from statetool.columns.to_plain import arrow_to_plain
from statetool.errors import EncodeError, OptionError, StatetoolError
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.kryo.wire import write_fixed
from tests.support.values.exact_rows import BAD_TEXTS, NAN_BITS, NARROW_NAN_BITS, column

KEYS = pa.array([1, 2])
BAD = column(pa.string(), [b"fine", b"caf\xe9"])
TEXT = pa.string()


def written(tmp_path: Path, *bootstraps: Any) -> st.Operator:
    writer = st.SavepointWriter.new(max_parallelism=8).with_operator("op", *bootstraps, parallelism=2)
    return writer.write(str(tmp_path / "sp"), flink_version="2.3")["op"]


def keyed(columns: dict[str, Any], **options: Any) -> Any:
    return st.bootstrap_keyed_state(pa.table(columns), **{"key": "k", **options})


def value(array: pa.Array, type: Any = None) -> Any:
    return keyed({"k": KEYS, "v": array}, states={"v": st.value(*([type] if type is not None else []))})


def nested(kind: pa.DataType, *values: Any) -> pa.Array:
    return column(kind, list(values))


# ---- strings that are not UTF-8 -------------------------------------------------------------------------------------

_AVRO = flink.avro('{"type": "record", "name": "R", "fields": [{"name": "f0", "type": "string"}]}')
_PAIR = pa.struct({"f0": TEXT})
_TIMERS = pa.table({"k": KEYS, "timestamp": KEYS, "namespace": BAD})
PLACES: dict[str, Any] = {
    "value": value(BAD),
    "large": value(BAD.cast(pa.binary()).cast(pa.large_binary()).view(pa.large_string())),
    "dictionary": value(pa.DictionaryArray.from_arrays(pa.array([0, 1]), BAD), "STRING"),
    "key": keyed({"k": BAD, "v": KEYS}),
    "key of several columns": keyed({"k": KEYS, "l": BAD, "v": KEYS}, key=["k", "l"]),
    "namespace": keyed({"k": KEYS, "n": BAD, "v": KEYS}, namespace="n"),
    "namespace of timers": keyed({"k": KEYS, "v": KEYS}, timers=_TIMERS),
    "list state": keyed({"k": KEYS, "v": nested(pa.list_(TEXT), [], [b"caf\xe9"])}),
    "user key": keyed({"k": KEYS, "v": nested(pa.map_(TEXT, pa.int64()), [], [(b"caf\xe9", 1)])}),
    "user value": keyed({"k": KEYS, "v": nested(pa.map_(pa.int64(), TEXT), [], [(1, b"caf\xe9")])}),
    "long form": st.bootstrap_state("s", pa.table({"k": KEYS, "map_key": BAD, "value": KEYS}), key="k"),
    "list": value(nested(pa.list_(TEXT), [], [b"caf\xe9"])),
    "map key": value(nested(pa.map_(TEXT, TEXT), [], [(b"caf\xe9", b"")])),
    "map value": value(nested(pa.map_(TEXT, TEXT), [], [(b"", b"caf\xe9")])),
    "struct": value(nested(_PAIR, {"f0": b"fine"}, {"f0": b"caf\xe9"})),
    "tuple": value(nested(_PAIR, {"f0": b"fine"}, {"f0": b"caf\xe9"}), flink.tuple_of("STRING")),
    "POJO": value(nested(_PAIR, {"f0": b"fine"}, {"f0": b"caf\xe9"}), flink.pojo("a.B", {"f0": flink.STRING})),
    "SQL": value(nested(_PAIR, {"f0": b"fine"}, {"f0": b"caf\xe9"}), flink.sql("ROW<f0 STRING>")),
    "Avro": value(nested(_PAIR, {"f0": b"fine"}, {"f0": b"caf\xe9"}), _AVRO),
    "number": value(column(TEXT, [b"1", b"caf\xe9"]), flink.BIG_DECIMAL),
    "enum": value(BAD, flink.enum("a.E", ["fine", "other"])),
    "character": value(column(TEXT, [b"f", b"caf\xe9"]), flink.CHAR),
    "row kind": value(
        nested(pa.struct({"f0": TEXT, "_kind": TEXT}), {"f0": b"", "_kind": b"+I"}, {"f0": b"", "_kind": b"\xff"}),
        flink.row("STRING"),
    ),
    "list of an operator": st.bootstrap_list_state("s", pa.table({"value": BAD})),
    "broadcast key": st.bootstrap_broadcast_state("s", pa.table({"key": BAD, "value": KEYS})),
    "broadcast value": st.bootstrap_broadcast_state("s", pa.table({"key": KEYS, "value": BAD})),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_string_that_is_not_utf8_is_refused_everywhere(tmp_path: Path, place: str) -> None:
    with pytest.raises(
        EncodeError, match=r"a string that is not valid UTF-8: b'(caf\\xe9|\\xff)'.* in column '"
    ) as caught:
        written(tmp_path, PLACES[place])
    key = r"b'caf\xe9'" if place.startswith("key") else "2" if "of the row" in str(caught.value) else ""
    assert key in str(caught.value)
    assert not (tmp_path / "sp").exists()


@pytest.mark.parametrize("bad", BAD_TEXTS)
def test_no_sequence_passes(bad: bytes) -> None:
    for values in ([bad], ["ä".encode(), bad, b"x"], [b"ascii " * 9, bad]):
        with pytest.raises(EncodeError, match="not valid UTF-8"):
            encode_column(flink.STRING, column(TEXT, values))


def test_what_is_not_among_the_values_is_not_looked_at() -> None:
    """A slice next to the invalid string, and the bytes below a null."""
    assert encode_column(flink.STRING, column(TEXT, [b"caf\xe9", b"a", b"\xff"]).slice(1, 1)).value(0) == b"\x02a"
    masked = pa.Array.from_buffers(TEXT, 2, [pa.py_buffer(b"\x01"), *BAD.buffers()[1:]])
    assert encode_column(flink.STRING, masked).value(1) == b"\0"


@pytest.mark.parametrize("name", ["domain", "service"])
def test_services_of_timers_are_utf8(tmp_path: Path, name: str) -> None:
    timers = pa.table({"k": KEYS, "timestamp": KEYS, name: BAD})
    with pytest.raises(EncodeError, match=rf"not valid UTF-8 in {name}"):
        written(tmp_path, keyed({"k": KEYS, "v": KEYS}, timers=timers))


# ---- NaN ------------------------------------------------------------------------------------------------------------

DOUBLES = pa.array(np.array(NAN_BITS, dtype=np.uint64).view(np.float64))
FLOATS = pa.array(np.array(NARROW_NAN_BITS, dtype=np.uint32).view(np.float32))
DOUBLE, FLOAT = bytes.fromhex("7ff8000000000000"), bytes.fromhex("7fc00000")


def _lists(array: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array)


def _records(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([array], names=["f0"])


_NUMBER = '{"type": "record", "name": "R", "fields": [{"name": "f0", "type": "%s"}]}'
NUMBERS: dict[str, tuple[Serializer, Callable[[pa.Array], pa.Array]]] = {
    "plain": (flink.DOUBLE, lambda a: a),
    "narrow": (flink.FLOAT, lambda a: a),
    "list": (flink.list_of("DOUBLE"), _lists),
    "primitives": (flink.primitive_array("double"), _lists),
    "narrow primitives": (flink.primitive_array("float"), _lists),
    "tuple": (flink.tuple_of("DOUBLE"), _records),
    "row": (flink.row("FLOAT"), _records),
    "Avro": (flink.avro(_NUMBER % "double"), _records),
    "narrow Avro": (flink.avro(_NUMBER % "float"), _records),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_every_nan_is_written_as_java_writes_it(name: str) -> None:
    serializer, shape = NUMBERS[name]
    narrow = name in ("row", "narrow", "narrow primitives", "narrow Avro")
    array = shape(FLOATS if narrow else DOUBLES)
    nan = FLOAT if narrow else DOUBLE
    for encoded in (
        encode_column(serializer, array),
        pack(_Plain(serializer, arrow_to_plain(array, serializer.logical))),
    ):
        frames = {encoded.value(i) for i in range(len(array))}
        assert len(frames) == 1
        assert frames.pop().endswith(nan)


@pytest.mark.parametrize("generation", [2, 5])
def test_kryo_writes_one_nan(generation: Any) -> None:
    for kind, bits, wanted in (("d", "fff8000000000123", DOUBLE), ("f", "ffc00123", FLOAT)):
        out = Output()
        write_fixed(out, generation, kind, struct.unpack(f">{kind}", bytes.fromhex(bits))[0])
        assert bytes(out) == (wanted if generation == 2 else wanted[::-1])


def test_binary_rows_keep_the_bits_of_a_nan() -> None:
    """``MemorySegment.putDouble`` writes ``doubleToRawLongBits``, and Flink compares these rows by their bytes."""
    row = flink.sql("ROW<f0 DOUBLE>")
    encoded = encode_column(row, _records(DOUBLES))
    bits = [struct.unpack("<Q", encoded.value(i)[-8:])[0] for i in range(len(encoded))]
    assert bits == list(NAN_BITS)


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_nan_is_one_key(tmp_path: Path, kind: str) -> None:
    keys = DOUBLES if kind == "DOUBLE" else FLOATS
    states = {"v": st.value("BIGINT")}
    with pytest.raises(StatetoolError, match=r"(?i)nan"):
        written(tmp_path, keyed({"k": keys, "v": pa.array(range(len(keys)))}, states=states))
    zeros = pa.array([0.0, -0.0], pa.float64() if kind == "DOUBLE" else pa.float32())
    rows = written(tmp_path / "zeros", keyed({"k": zeros, "v": KEYS}, states=states)).to_arrow().to_pylist()
    assert sorted(repr(row["key"]) for row in rows) == ["-0.0", "0.0"]
    single = keyed({"k": keys.slice(1, 1), "v": KEYS.slice(1)}, states=states)
    assert written(tmp_path / "one", single).to_arrow(keys=[float("nan")])["v"].to_pylist() == [2]


# ---- maps with a key twice ------------------------------------------------------------------------------------------

_NANS = [struct.unpack(">d", struct.pack(">Q", bits))[0] for bits in NAN_BITS[:2]]
TWICE: dict[str, tuple[pa.DataType, Any, Any]] = {
    "numbers": (pa.map_(pa.int64(), pa.int64()), [(1, 2), (3, 0), (1, 3)], None),
    "NaN": (pa.map_(pa.float64(), pa.int64()), [(_NANS[0], 2), (_NANS[1], 3)], None),
    "texts": (pa.map_(TEXT, pa.int64()), [(b"a", 1), (b"a", 1)], None),
    "in a list": (pa.list_(pa.map_(TEXT, pa.int64())), [[(b"a", 1)], [(b"a", 1), (b"a", 1)]], None),
    "in a struct": (pa.struct({"f0": pa.map_(TEXT, TEXT)}), {"f0": [(b"a", b""), (b"a", b"")]}, None),
    "in a map": (pa.map_(TEXT, pa.map_(TEXT, TEXT)), [(b"x", [(b"a", b""), (b"a", b"")])], None),
    "maps": (
        pa.map_(pa.map_(TEXT, TEXT), TEXT),
        [([(b"a", b""), (b"b", b"")], b""), ([(b"b", b""), (b"a", b"")], b"")],
        None,
    ),
    "decimals": (pa.map_(TEXT, TEXT), [(b"1", b""), (b"01", b"")], flink.map_of(flink.BIG_INTEGER, "STRING")),
    "SQL": (pa.map_(pa.int64(), pa.int64()), [(1, 2), (1, 3)], flink.sql("MAP<BIGINT, BIGINT>")),
    "Avro": (
        pa.struct({"f0": pa.map_(TEXT, TEXT)}),
        {"f0": [(b"a", b""), (b"a", b"")]},
        flink.avro(
            '{"type": "record", "name": "R", "fields": [{"name": "f0", "type": {"type": "map", "values": "string"}}]}'
        ),
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_map_with_a_key_twice_is_refused(tmp_path: Path, name: str) -> None:
    kind, bad, declared = TWICE[name]
    fine: Any = {"f0": []} if pa.types.is_struct(kind) else []
    with pytest.raises(EncodeError, match=r"a map with the same key twice, in column 'v' of the row with key 2"):
        written(tmp_path, value(nested(kind, fine, bad), declared))


def test_zeros_of_both_signs_are_two_keys(tmp_path: Path) -> None:
    column_ = pa.array([[(0.0, 1), (-0.0, 2)], [(0.0, 3)]], pa.map_(pa.float64(), pa.int64()))
    rows = written(tmp_path, value(column_)).to_arrow().sort_by("key")["v"].to_pylist()
    assert [[repr(k) for k, _ in row] for row in rows] == [["0.0", "-0.0"], ["0.0"]]


# ---- maps inside of keys --------------------------------------------------------------------------------------------

MAP = pa.map_(TEXT, pa.int64())
SMALL = nested(MAP, [], [(b"a", 1)])
LARGE = nested(MAP, [(b"a", 1)], [(b"a", 1), (b"b", 2)])
USER_KEYS = pa.MapArray.from_arrays([0, 1, 2], LARGE, KEYS)
ORDERED: dict[str, Any] = {
    "key": keyed({"k": LARGE, "v": KEYS}),
    "key of several columns": keyed({"k": KEYS, "m": LARGE, "v": KEYS}, key=["k", "m"]),
    "user key": keyed({"k": KEYS, "v": USER_KEYS}),
    "long form": st.bootstrap_state("s", pa.table({"k": KEYS, "map_key": LARGE, "value": KEYS}), key="k"),
    "namespace": keyed({"k": KEYS, "n": LARGE, "v": KEYS}, namespace="n"),
    "struct": keyed({"k": pa.StructArray.from_arrays([KEYS, LARGE], names=["f0", "f1"]), "v": KEYS}),
    "set": keyed({"k": nested(pa.list_(TEXT), [b"a"], [b"b"]), "v": KEYS}, key_type=flink.set_of("STRING")),
}


@pytest.mark.parametrize("place", ORDERED)
def test_keys_in_an_order_that_only_the_job_knows_are_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(EncodeError, match=r"inside of a key, whose order in the job is not known.*of the row with key"):
        written(tmp_path, ORDERED[place])


def test_maps_of_one_entry_are_keys(tmp_path: Path) -> None:
    rows = written(tmp_path, keyed({"k": SMALL, "v": KEYS})).to_arrow().sort_by("v").to_pylist()
    assert [row["key"] for row in rows] == [[], [("a", 1)]]


# ---- types ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [None, flink.row("BIGINT")])
def test_a_struct_of_one_field_is_a_key(tmp_path: Path, declared: Any) -> None:
    structs = pa.StructArray.from_arrays([KEYS], names=["id"])
    rows = written(tmp_path, keyed({"k": structs, "v": KEYS}, key_type=declared)).to_arrow().sort_by("v")
    assert [row["f0"] for row in rows["key"].to_pylist()] == [1, 2]


def test_a_null_key_of_broadcast_state_is_refused(tmp_path: Path) -> None:
    rules = pa.table({"key": ["a", None], "value": KEYS})
    with pytest.raises(EncodeError, match=r"a null key in column 'key', row 1 .*state s"):
        written(tmp_path, st.bootstrap_broadcast_state("s", rules))
    assert not (tmp_path / "sp").exists()


def test_a_variant_is_no_row(tmp_path: Path) -> None:
    fields = [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, {b"variant": b"true"})]
    variants = pa.StructArray.from_arrays([pa.array([b"\x0c\x01"] * 2), pa.array([b"\x01\0\0"] * 2)], fields=fields)
    with pytest.raises(EncodeError, match=r"a VARIANT cannot be written as a struct"):
        written(tmp_path, value(variants, flink.row(flink.BYTES, flink.BYTES)))
    read = written(tmp_path, value(variants)).to_arrow()
    assert read["v"].to_pylist() == variants.to_pylist()


@pytest.mark.parametrize("column_", [pa.array([[], []]), pa.nulls(2)], ids=["array", "null"])
def test_nothing_follows_from_void(tmp_path: Path, column_: pa.Array) -> None:
    with pytest.raises(OptionError, match=r"a column that has only nulls \(VOID\) has no Flink type.*cast the column"):
        written(tmp_path, keyed({"k": KEYS, "v": column_}))


def test_keys_with_maps_are_found_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statetool.columns.encode.refuse_order", lambda *_: None)  # like Flink's keys
    maps = pa.array([[("a", 1), ("b", 2)], [("a", 1), ("b", 3)]], pa.map_(pa.string(), pa.int64()))
    bootstrap = st.bootstrap_keyed_state(pa.table({"key": maps, "v": [1, 2]}))
    operator = st.SavepointWriter.new().with_operator("op", bootstrap).write(str(tmp_path / "sp"))["op"]
    assert operator.to_arrow(keys=[[("b", 2), ("a", 1)]])["v"].to_pylist() == [1]
    assert operator.to_arrow(keys=[[("b", 4), ("a", 1)]]).num_rows == 0
