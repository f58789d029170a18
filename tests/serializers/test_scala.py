"""Scala values written by Flink 1.20.5, with its Scala serializers and with Kryo and chill (``kryo/ScalaTypes.java``)."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest

from statetool.columns.decode import as_data
from statetool.columns.encode import encode_column
from statetool.columns.from_plain import plain_to_arrow
from statetool.errors import EncodeError, FormatError, StatetoolError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext
from statetool.types.options import ReadOptions
from tests.support.values.arrow_columns import by_kernels, rows_of

LONG: Final = 1 << 40
#: Values of the job by section, one per line.
VALUES: Final[dict[str, list[Any]]] = {
    "option": [5, None],
    "option-option": [("x",), (None,), None],
    "either": [("l", None), (None, -7)],
    "either-tuple": [((LONG,), None), (None, ("a", 1))],
    "enumeration": ["Mon", "Tue"],
    "option-enumeration": ["Tue", None],
    "unit": [None],
    "option-unit": [(None,), None],
    "option-nothing": [None],
    "either-nothing": [(None, "only")],
    "tuple1": [("a",)],
    "tuple2": [("a", 1), ("", -1), ("Zoë €", 1 << 30)],
    "tuple2-special": [(5, 6)],
    "tuple3": [(1, (2, True), 0.5), (None, (-2, False), -0.0)],
    "tuple22": [tuple(range(1, 23))],
    "seq": [[1, 2, 3], []],
    "map": [[("k", 1)], []],
    "seq-option": [["a", None]],
    "seq-seq": [[[1], [], [2, 3]]],
    "bit-set": [[3, 9]],
}
#: Repeated objects: encoded again, they become two.
SHARED: Final = ("shared", "enumerations", "numeric-range", "numeric-range-inclusive")


@lru_cache
def lines() -> dict[tuple[str, str], tuple[bytes, str, str]]:
    path = Path(__file__).parent / "kryo" / "scala-1.20.5.tsv"
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    return {(section, name): (bytes.fromhex(raw), *rest) for section, name, raw, *rest in rows}  # type: ignore[misc]


def serializer(section: str) -> Serializer:
    raw = lines()[section, "snapshot"][0]
    s = snapshot_reader(TypeContext(kryo=2)).snapshot(Cursor(raw))
    out = Output()
    s.write_snapshot(out)
    assert bytes(out) == raw
    return s


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


def of_section(section: str) -> list[tuple[bytes, str, str]]:
    return [line for (other, name), line in lines().items() if other == section and name != "snapshot"]


@pytest.mark.parametrize("section", VALUES)
def test_values_are_those_of_the_job_both_ways(section: str) -> None:
    s = serializer(section)
    section_lines = of_section(section)
    assert [decoded(s, raw) for raw, _, _ in section_lines] == VALUES[section]
    assert [encoded(s, value) for value in VALUES[section]] == [raw for raw, _, _ in section_lines]


@pytest.mark.parametrize("section", [s for s in VALUES if s != "option-nothing"])
def test_columns_are_the_same_both_ways(section: str) -> None:
    s = serializer(section)
    raws = [raw for raw, _, _ in of_section(section)]
    ends = [sum(map(len, raws[: i + 1])) for i in range(len(raws))]
    starts = [0, *ends[:-1]]
    array, after = by_kernels(s, b"".join(raws), starts, ends, ReadOptions())
    assert after == ends
    assert rows_of(array) == rows_of(plain_to_arrow(VALUES[section], s.logical, ReadOptions()))
    again = encode_column(s, array)
    assert as_data(again.data).tobytes() == b"".join(raws)


@pytest.mark.parametrize("section", [s for s in VALUES if s not in ("seq", "map", "seq-option", "seq-seq", "bit-set")])
def test_hash_codes_are_those_of_scala(section: str) -> None:
    s = serializer(section)
    for value, (_, _, hash_code) in zip(VALUES[section], of_section(section), strict=True):
        assert s.hash_code(value) == int(hash_code)


def test_hash_codes_of_collections_are_not_known() -> None:
    with pytest.raises(UnsupportedError, match="hashCode"):
        serializer("seq").hash_code([1])


@pytest.mark.parametrize("section", ["try", "try-option"])
def test_a_failure_is_its_exception(section: str) -> None:
    s = serializer(section)
    success, failure = of_section(section)
    value = decoded(s, success[0])
    assert value == ((5, None) if section == "try" else (("x",), None))
    assert encoded(s, value) == success[0]
    assert s.hash_code(value) == int(success[2])
    value = decoded(s, failure[0])
    ((cls, body),) = json.loads(value[1]).items()
    assert cls == ("java.lang.IllegalStateException" if section == "try" else "java.lang.RuntimeException")
    assert body.get("message") == ("no" if section == "try" else None)
    assert encoded(s, value) == failure[0]
    with pytest.raises(UnsupportedError, match="hashCode"):
        s.hash_code(value)


def test_nothing_has_no_values() -> None:
    s = serializer("nothing")
    with pytest.raises(FormatError, match="Nothing"):
        s.decode(Cursor(b"\0"))
    with pytest.raises(EncodeError):
        encoded(s, None)


def test_a_null_in_the_place_of_an_option_is_refused() -> None:
    s = serializer("seq-option")
    null = b"\0\0\0\1\0"
    with pytest.raises(FormatError, match="None is an object"):
        s.decode(Cursor(null))
    with pytest.raises(StatetoolError):
        by_kernels(s, null, [0], [len(null)], ReadOptions())


@pytest.mark.parametrize("name", [n for s, n in lines() if s == "kryo" and n not in ("snapshot", "class-tag-int")])
def test_kryo_values_are_decoded_and_encoded(name: str) -> None:
    s = serializer("kryo")
    raw, cls, _ = lines()["kryo", name]
    text = decoded(s, raw)
    assert list(json.loads(text)) == [cls]
    again = encoded(s, text)
    if name in SHARED:
        assert decoded(s, again) == text
    else:
        assert again == raw


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "big-decimal",
            {
                "bigDecimal": {"java.math.BigDecimal": "12.340"}, "computedHashCode": 1565550863,
                "mc": {"precision": 34, "roundingMode": "HALF_EVEN"},
            },
        ),
        ("range", {"end": 10, "isEmpty": False, "lastElement": 7, "numRangeElements": 3, "start": 1, "step": 3}),
        ("wrapped-ints", {"class": "int", "elements": [{"[I": [1, -2]}]}),
        ("wrapped-refs", {"class": "java.lang.String", "elements": [{"[Ljava.lang.String;": ["a", None]}]}),
        ("regex", "a(b+)"),
        ("class-tag", {"runtimeClass": "java.lang.String"}),
        ("enumeration", [{"ScalaTypes$Day$": None}, 7]),
        ("as-java-set", ["a"]),
        ("as-java-iterable", {"scala.collection.immutable.$colon$colon": ["a"]}),
        ("as-java-mutable-map", [["k", 1]]),
        ("int-map", [{"scala.Tuple2": [3, "x"]}]),
        ("tuple2-char", {"_1": None, "_1$mcC$sp": "a", "_2": None, "_2$mcC$sp": "b"}),
        ("string-builder", {"underlying": "abc"}),
        ("duration", {"length": 5, "unit": "SECONDS"}),
        (
            "tree-set-reverse",
            {
                "comparator": {"scala.math.Ordering$$anon$4": {"$outer": {"scala.math.Ordering$Int$": None}}},
                "elements": [2, 1],
            },
        ),
    ],
)  # fmt: skip
def test_kryo_values_are_those_of_the_job(name: str, body: Any) -> None:
    raw, cls, _ = lines()["kryo", name]
    assert json.loads(decoded(serializer("kryo"), raw)) == {cls: body}


@pytest.mark.xfail(reason="chill numbers the manifests of primitives in another order", strict=True)
def test_manifests_of_primitives() -> None:
    decoded(serializer("kryo"), lines()["kryo", "class-tag-int"][0])
