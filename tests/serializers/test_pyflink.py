"""Values written by the coders of PyFlink 2.3.0 (``coder_impl_slow``), in states registered like those of its jobs."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from statetool.errors import EncodeError, FormatError, OptionError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.java.declaring.classes import python_types
from statetool.pyflink import ListState, MapState, PythonState, PythonType, Types, parse_python_state, parse_python_type
from statetool.serializers.core.base import Serializer
from statetool.serializers.pyflink.serializer import declared_in_python
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext
from tests.support.corpora.kryo_golden import encoded
from tests.support.snapshots import build

BYTES = build.simple("BytePrimitiveArray", "org.apache.flink.api.common.typeutils.base.array.")
WRAPPED = build.simple("ByteArrayWrapper", "org.apache.flink.streaming.api.utils.")
Declared = str | PythonType | PythonState | tuple[str, ...]
GOLDEN: list[tuple[str, str, Any]] = [
    ("LONG", "fffffffffffffffe", -2),
    ("INT", "00000007", 7),
    ("SHORT", "fed4", -300),
    ("BYTE", "ff", -1),
    ("BOOLEAN", "01", True),
    ("FLOAT", "3fc00000", 1.5),
    ("DOUBLE", "bfd0000000000000", -0.25),
    ("STRING", "00000009c3a9e282acf09f9880", "é€😀"),
    ("BIG_DEC", "000000062d31322e3530", Decimal("-12.50")),
    ("SQL_DATE", "00004d46", 19782),
    ("SQL_TIME", "0038cefc", 3_723_004_000_000),
    ("SQL_TIMESTAMP", "0000018df261f6fc", 1_709_168_523_004),
    ("INSTANT", "000000000000000500000006", 5_000_000_006),
    ("PRIMITIVE_ARRAY(BYTE)", "000000020102", b"\1\2"),
    ("LIST(STRING)", "0000000201000000016100", ["a", None]),
    ("PRIMITIVE_ARRAY(INT)", "000000020000000100000002", [1, 2]),
    ("MAP(STRING, LONG)", "00000002000000016b000000000000000001000000016e01", [("k", 1), ("n", None)]),
    ("TUPLE(LONG, STRING)", "00000000000000010000000178", (1, "x")),
    ("ROW(id: LONG, name: STRING)", "d00000000000000005", (5, None, "-D")),
    ("TIME_WINDOW", "0000000000000001000000000000000a", (1, 10)),
]
PICKLED = "0000001d80049512000000000000007d948c0161945d94284b018c01629465732e"


def bound(snapshot: bytes, declared: Declared, *, name: str = "python-state-s", unsafe: bool = False) -> Serializer:
    context = TypeContext(python=python_types({"s": declared}), unsafe_pickle=unsafe)
    value = snapshot_reader().snapshot(Cursor(snapshot))
    return declared_in_python(name, {"VALUE_SERIALIZER": value}, context)["VALUE_SERIALIZER"]


def element(declared: Declared, *, unsafe: bool = False) -> Serializer:
    """Return the serializer of an array of a value or list state."""
    return bound(build.list_of(BYTES), declared, unsafe=unsafe).children()[0][1]


@pytest.mark.parametrize(("kind", "raw", "value"), GOLDEN)
def test_coders(kind: str, raw: str, value: Any) -> None:
    assert str(parse_python_type(kind)) == kind
    s = element(kind)
    framed = len(bytes.fromhex(raw)).to_bytes(4, "big") + bytes.fromhex(raw)
    c = Cursor(framed)
    assert s.decode(c) == value
    assert c.left == 0
    assert encoded(s, value) == framed
    skipped = Cursor(framed)
    s.skip(skipped)
    assert skipped.left == 0
    for n in range(len(framed)):
        with pytest.raises(FormatError):
            s.decode(Cursor(framed[:n]))
    with pytest.raises(FormatError):
        s.decode(Cursor((len(framed) - 3).to_bytes(4, "big") + framed[4:] + b"\0"))


def test_the_snapshot_stays_that_of_the_byte_arrays() -> None:
    for snapshot, declared in (
        (build.list_of(BYTES), "LONG"),
        (build.list_of(BYTES), "ListState(LONG)"),
        (build.map_of(WRAPPED, BYTES), "MapState(LONG, LONG)"),
    ):
        assert encoded_snapshot(bound(snapshot, declared)) == snapshot


def encoded_snapshot(s: Serializer) -> bytes:
    out = Output()
    s.write_snapshot(out)
    return bytes(out)


def test_an_array_of_a_list_state_holds_what_was_added_together() -> None:
    s = bound(build.list_of(BYTES), ListState(Types.INT()))
    raw = bytes.fromhex("00000002" + "00000008" + "0000000100000002" + "00000004" + "00000003")
    assert s.decode(Cursor(raw)) == [[1, 2], [3]]
    assert encoded(s, [[1, 2], [3]]) == raw


def test_map_state_takes_the_types_of_key_and_value() -> None:
    raw = bytes.fromhex("00000001" + "00000005" + "000000016b" + "00" + "00000008" + "0000000000000007")
    for declared in (MapState(Types.STRING(), Types.LONG()), ("STRING", "LONG"), "MapState(STRING, LONG)"):
        s = bound(build.map_of(WRAPPED, BYTES), declared)
        assert s.decode(Cursor(raw)) == [("k", 7)]
        assert encoded(s, [("k", 7)]) == raw


def test_broadcast_state_has_its_key_beside_its_value() -> None:
    serializers = {
        "KEY_SERIALIZER": snapshot_reader().snapshot(Cursor(WRAPPED)),
        "VALUE_SERIALIZER": snapshot_reader().snapshot(Cursor(BYTES)),
    }
    context = TypeContext(python=python_types({"s": "MapState(LONG, STRING)"}))
    declared = declared_in_python("python-state-s", serializers, context)
    assert [declared[k].type_name for k in sorted(declared)] == ["Python LONG", "Python STRING"]


@pytest.mark.parametrize(
    ("snapshot", "declared", "say"),
    [
        (build.map_of(WRAPPED, BYTES), "LONG", r"MapState\(KEY, VALUE\)"),
        (build.map_of(WRAPPED, BYTES), "ListState(LONG)", r"MapState\(KEY, VALUE\)"),
        (build.list_of(BYTES), ("LONG", "LONG"), r"TYPE or ListState\(TYPE\)"),
        (build.LONG, "LONG", r"TYPE or ListState\(TYPE\)"),
    ],
)
def test_a_declaration_of_another_kind_says_what_to_declare(snapshot: bytes, declared: Declared, say: str) -> None:
    with pytest.raises(OptionError, match="'python-state-s'") as failed:
        bound(snapshot, declared)
    assert re.search(say, str(failed.value))


def test_pickles_are_loaded_only_when_the_user_says_so() -> None:
    raw = bytes.fromhex("00000021" + PICKLED)
    assert element("PICKLED_BYTE_ARRAY").decode(Cursor(raw)) == bytes.fromhex(PICKLED)[4:]
    s = element("PICKLED_BYTE_ARRAY", unsafe=True)
    assert json.loads(s.decode(Cursor(raw))) == {"a": [1, "b"]}
    with pytest.raises(EncodeError):
        encoded(s, "{}")


def test_in_thread_mode_a_pickle_is_the_whole_byte_array() -> None:
    raw = bytes.fromhex("0000001d" + PICKLED[8:])
    pair = ("STRING", "TUPLE(LONG, LONG)")
    for declared, snapshot in (("PICKLED_BYTE_ARRAY", BYTES), (pair, build.map_of(build.STRING, BYTES))):
        loaded = list(leaves(bound(snapshot, declared, name="s", unsafe=True)))[-1]
        assert json.loads(loaded.decode(Cursor(raw))) == {"a": [1, "b"]}
        raw_pickle = list(leaves(bound(snapshot, declared, name="s")))[-1]
        assert raw_pickle.decode(Cursor(raw)) == raw[4:]
        assert encoded(raw_pickle, raw[4:]) == raw
    assert bound(build.LONG, "LONG", name="s").type_name == "Long"


def leaves(s: Serializer) -> Iterator[Serializer]:
    if not s.children():
        yield s
    for _, part in s.children():
        yield from leaves(part)


def test_the_operator_in_front_of_a_name_tells_operators_apart() -> None:
    types = TypeContext(python=python_types({"s": "LONG", "b.s": "STRING"}))
    for operator, kind in (("a", "LONG"), ("b", "STRING")):
        declared = declared_in_python(
            "python-state-s",
            {"VALUE_SERIALIZER": snapshot_reader().snapshot(Cursor(build.list_of(BYTES)))},
            types.of_operator(operator),
        )
        assert declared["VALUE_SERIALIZER"].type_name == f"List<Python {kind}>"


class Boom:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("the pickle was run",)


def test_a_hostile_pickle_is_not_run() -> None:
    hostile = pickle.dumps(Boom())
    raw = (len(hostile) + 4).to_bytes(4, "big") + len(hostile).to_bytes(4, "big") + hostile
    assert element("PICKLED_BYTE_ARRAY").decode(Cursor(raw)) == hostile


@pytest.mark.parametrize("text", ["", "long", "LIST", "LIST(INT", "MAP(INT)", "ROW(a: INT, LONG)", "INT)"])
def test_types_that_are_none(text: str) -> None:
    with pytest.raises(OptionError):
        parse_python_type(text)


@pytest.mark.parametrize("text", ["ListState", "ListState(INT, INT)", "MapState(INT)", "List(INT)", "ListState(int)"])
def test_states_that_are_none(text: str) -> None:
    with pytest.raises(OptionError):
        parse_python_state(text)


@pytest.mark.parametrize(
    "state",
    [
        ListState(Types.ROW_NAMED(["id", "a b", "ü:(,)"], [Types.LONG(), Types.STRING(), Types.LIST(Types.INT())])),
        MapState(Types.TUPLE([Types.INT(), Types.BIG_DEC()]), Types.PICKLED_BYTE_ARRAY()),
        python_types({"s": "ValueState(MAP(STRING, LONG))"})[0][1],
    ],
)
def test_a_declaration_passes_through_text(state: PythonState) -> None:
    assert parse_python_state(str(state)) == state
