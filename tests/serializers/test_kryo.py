"""Kryo values written by Flink 1.20.3 and 2.3.0 (``kryo/KryoValues.java``): decoded, skipped, encoded again, damaged."""

from __future__ import annotations

import json
import re
from typing import Literal

import pytest

from statetool.errors import DecodeError, EncodeError, FormatError, StatetoolError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import class_of_fields
from tests.support.corpora.kryo_golden import bound, encoded, golden, of_type

VERSIONS = ("1.20.3", "2.3.0")
#: With flink-scala on the class path (``kryo/KryoScala.java``), which prints the class.
SCALA = "scala-1.20.3"
#: Values that contain an object twice: encoded again, it becomes two objects.
SHARED = ("shared", "order", "enums", "zoned-offset")
#: Two objects in one Java stream: read, but not written.
ONE_STREAM = ("exceptions", "locales")
#: Java prints these differently.
PRINTED_OTHERWISE = (
    "float", "nan", "true", "bits-empty", "pattern", "address", "class-own", "optional-empty", "optional-int", "optional-int-empty",
    "optional-long", "optional-double", "period", "year-month", "month-day", "exception", "row", "row-named", "entry", "tuple0",
    "tuple3", "tuple12", "int-value", "timestamp-before", "date-before", "sql-time", "calendar", "time-zone", "class-array",
    "atomic-reference", "enum-body", "class-int", "class-box", "order", "item", "order-empty", "locale-variant", "tags", "record", "url",
)  # fmt: skip


CASES = [(v, n) for v in (*VERSIONS, SCALA) for n in golden(v).values]


@pytest.mark.parametrize(("version", "name"), CASES)
def test_every_value_is_decoded_skipped_and_encoded(version: str, name: str) -> None:
    recorded = golden(version)
    s = bound(recorded.gen, recorded.snapshot)
    raw, printed = recorded.values[name]
    c = Cursor(raw)
    s.skip(c)
    assert c.left == 0
    c = Cursor(raw)
    if name == "loop":
        with pytest.raises(FormatError, match="contains itself"):
            s.decode(c)
        return
    value = s.decode(c)
    assert c.left == 0
    if name in ONE_STREAM and (name, recorded.gen) != ("locales", 5):
        with pytest.raises(EncodeError):
            encoded(s, value)
        return
    again = encoded(s, value)
    if name in SHARED:
        assert s.decode(Cursor(again)) == value
    else:
        assert again == raw
    if version == SCALA:
        assert value.startswith(f'{{"{printed}":')
    elif printed and name not in PRINTED_OTHERWISE:
        tree = json.loads(value)
        body = next(iter(tree.values())) if isinstance(tree, dict) else tree
        assert str(body).lower() == printed.lower()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_declared_class_is_a_struct(version: str) -> None:
    recorded = golden(version)
    s = of_type(recorded.gen, "KryoValues$Order")
    raw = recorded.values["order"][0]
    # The type itself is registered, so its values start with its id; writing by name is equivalent.
    row = dict(zip([f.name for f in s.logical.fields], s.decode(Cursor(raw)), strict=True))  # type: ignore[attr-defined]
    assert (row["id"], row["boxed"], row["small"], row["letter"], row["maybe"]) == (-7, 12, -300, "é", False)
    assert row["tags"] == ["a", "bb", "é€"]
    assert row["numbers"] == [1, None, 3]
    assert row["items"][0] == (1, "one", None, None, "KryoValues$Item")
    assert row["items"][1] == (5, "five", 55, ['{"KryoValues$Item":{"n":6,"name":"six"}}'], "KryoValues$BigItem")
    assert row["counts"] == [("k", 9)]
    assert row["nested"] == [("n", ["p", "q"])]
    assert row["byId"][1] == (4, None)
    assert row["ids"] == ["00000000-0000-0001-0000-000000000002"]
    assert (row["fixed"], row["color"], row["op"]) == ((0.5, None), "BLUE", "MINUS")
    assert row["any"] == '[{"java.lang.Long":1},"s",null,{"KryoValues$Color":"RED"}]'
    assert row["matrix"] == [[1], None, []]
    assert row["raw"] == b"\0\xff"
    assert row["maybeText"] == ("text",)
    assert row["pair"] == ("l", 1)
    assert row["pairs"] == ([("m", 2), ("n", None)] if recorded.gen == 5 else None)
    assert row["lists"] == [["deep"], []]
    assert (row["day"], row["at"], str(row["amount"])) == (19782, -4_999_999_993, "-12.3400")
    assert row["box"] == ("boxed", ["m1", "m2"])
    assert json.loads(row["sorted"]) == {
        "java.util.TreeMap": {"comparator": {"java.util.Collections$ReverseComparator": {}}, "elements": [["a", 1]]}
    }
    assert row["colors"] == ["GREEN", "RED"]
    value = tuple(row.values())
    assert s.decode(Cursor(encoded(s, value))) == value


def test_a_java_record_is_a_struct() -> None:
    s = of_type(5, "KryoValues$Rec")
    assert s.decode(Cursor(golden("2.3.0").values["record"][0])) == (
        1,
        None,
        "c",
        ["d"],
        (2, "e", None, None, "KryoValues$Item"),
        "RED",
        [3],
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("some", '{"scala.Some":"x"}'),
        ("none", '{"scala.None$":null}'),
        ("list", '{"scala.collection.immutable.$colon$colon":["a",1]}'),
        ("tuple2-long-double", '{"scala.Tuple2$mcJD$sp":[{"java.lang.Long":1099511627776},1.5]}'),
        ("map", '{"scala.collection.immutable.Map$Map1":[{"scala.Tuple2":["k",1]}]}'),
        ("symbol", '{"scala.Symbol":"sy"}'),
        ("bitset", '{"scala.collection.immutable.BitSet$BitSet1":[3]}'),
    ],
)
def test_scala_values(name: str, text: str) -> None:
    recorded = golden(SCALA)
    assert bound(2, recorded.snapshot).decode(Cursor(recorded.values[name][0])) == text


@pytest.mark.parametrize("version", VERSIONS)
def test_an_undeclared_class_is_named_with_a_way_out(version: str) -> None:
    recorded = golden(version)
    s = bound(recorded.gen, recorded.snapshot, ())
    with pytest.raises(UnknownSerializerError, match=r"statetool.declare\(\"KryoValues\$Item\""):
        s.decode(Cursor(recorded.values["item"][0]))
    opaque = of_type(recorded.gen, "KryoValues$Item", ())
    assert opaque.needs_frame
    assert "KryoValues$Item" in opaque.missing_declaration_hint
    assert opaque.decode(Cursor(b"abc")) == b"abc"


def test_without_a_version_values_stay_bytes() -> None:
    s = snapshot_reader().snapshot(Cursor(golden("2.3.0").snapshot))
    assert s.needs_frame
    assert "kryo=" in s.missing_declaration_hint


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wrong_declaration_is_noticed(version: str) -> None:
    recorded = golden(version)
    wrong = (class_of_fields("KryoValues$Item", {"n": "Integer", "name": "String"}),)
    s = bound(recorded.gen, recorded.snapshot, wrong)
    with pytest.raises(FormatError) as caught:
        s.decode(Cursor(recorded.values["item"][0], base=1000))
    message = str(caught.value)
    assert "KryoValues$Item is declared with n: java.lang.Integer, name: java.lang.String" in message
    shown_bytes = re.search(r"its bytes begin with ((?:[0-9a-f]{2} ?)+)", message)
    assert shown_bytes is not None
    assert bytes.fromhex(shown_bytes[1])[:16] in recorded.values["item"][0]


@pytest.mark.parametrize("gen", [2, 5])
def test_a_final_class_that_is_not_declared_is_named(gen: Literal[2, 5]) -> None:
    holder = class_of_fields("a.Holder", {"in": "a.Inner", "n": "int", "tags": "List<String>"})
    inner = class_of_fields("a.Inner", {"x": "String"}, final=True)
    raw = encoded(of_type(gen, "a.Holder", (holder, inner)), (("text",), 1, ["a"]))
    with pytest.raises(FormatError, match=r"a class is final and not declared \(add the jar of a.Inner\)"):
        of_type(gen, "a.Holder", (holder,)).decode(Cursor(raw))


@pytest.mark.parametrize("version", [*VERSIONS, SCALA])
def test_damage_raises_our_errors_only(version: str) -> None:
    recorded = golden(version)
    s = bound(recorded.gen, recorded.snapshot)
    for name, (raw, _) in recorded.values.items():
        for at in range(0, len(raw), max(1, len(raw) // 12)):
            for damaged in (
                raw[:at],
                raw[:at] + b"\xff" + raw[at + 1 :],
                raw[:at] + bytes((raw[at] ^ 4,)) + raw[at + 1 :],
            ):
                for read in (s.decode, s.skip):
                    c = Cursor(damaged)
                    try:
                        read(c)
                    except StatetoolError:
                        continue
                    assert c.pos <= len(damaged), name


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_nested_without_end_are_refused(version: str) -> None:
    recorded = golden(version)
    s = bound(recorded.gen, recorded.snapshot)
    outer = b"\1\0java.util.ArrayLis\xf4\1" + (b"\x02" if recorded.gen == 5 else b"\1")
    inner = b"\1\0\1" + (b"\x02" if recorded.gen == 5 else b"\1")
    deep = outer + inner * 5000
    for read in (s.decode, s.skip):
        with pytest.raises(FormatError, match="nested"):
            read(Cursor(deep))
    with pytest.raises(EncodeError):
        encoded(s, "[" * 3000 + "]" * 3000)


@pytest.mark.parametrize("version", VERSIONS)
def test_counts_are_compared_with_what_is_left(version: str) -> None:
    recorded = golden(version)
    s = bound(recorded.gen, recorded.snapshot)
    for name in ("java.util.ArrayLis\xf4", "java.util.HashMa\xf0", "java.util.TreeSe\xf4", "[\xc9"):
        raw = b"\1\0" + name.encode("latin-1") + b"\1" + b"\xff\xff\xff\xff\x07" + b"\0" * 20
        for read in (s.decode, s.skip):
            with pytest.raises(FormatError):
                read(Cursor(raw))


@pytest.mark.parametrize("gen", [2, 5])
def test_lists_of_a_declared_type_keep_to_it(gen: Literal[2, 5]) -> None:
    classes = (class_of_fields("a.B", {"tags": "List<String>", "sorted": "SortedMap<String, Integer>"}),)
    s = of_type(gen, "a.B", classes)
    value = (["x", None], [("k", 1)])
    assert s.decode(Cursor(encoded(s, value))) == value
    loose = of_type(gen, "a.B", (class_of_fields("a.B", {"tags": "Object", "sorted": "Object"}),))
    other = encoded(loose, ('[1,"x"]', '{"java.util.TreeMap":[]}'))
    assert loose.decode(Cursor(other)) == ('[1,"x"]', '{"java.util.TreeMap":[]}')
    with pytest.raises((DecodeError, StatetoolError)):
        s.decode(Cursor(other))
