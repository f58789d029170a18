"""One small value state per family of types: its declarations for statetool and for Flink, and its values."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from statetool import flink
from statetool.serializers.core.base import Serializer

KEYS: Final = (1, -7, 1 << 40)
UTC: Final = dt.timezone.utc


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A value state.

    Attributes
    ----------
    type
        Its declaration for writing.
    java
        The job's declaration (see ``Types.java``).
    column
        A value for each of ``KEYS``; null means no state.
    expected
        Values that Flink must find, in the encoding of ``expected.json``; ``None`` for no state.
    since
        First release (major, minor) that has the type.
    """

    name: str
    type: str | Serializer
    java: str
    column: pa.Array
    expected: tuple[Any, ...]
    since: tuple[int, int] = (1, 13)


def _struct(fields: dict[str, pa.DataType], *rows: Any) -> pa.Array:
    return pa.array(list(rows), type=pa.struct(fields))


_ADDRESS: Final = flink.pojo(
    "corpus.PublicTypes$Address", {"city": flink.STRING, "number": flink.INT, "street": flink.STRING}
)
_PET_FIELDS: Final = {"legs": flink.INT, "name": flink.STRING}
_PETS: Final = dict.fromkeys(_PET_FIELDS, "corpus.PublicTypes$Pet")
_PET: Final = flink.pojo(
    "corpus.PublicTypes$Pet",
    _PET_FIELDS,
    subclasses={
        "corpus.PublicTypes$Dog": flink.pojo(
            "corpus.PublicTypes$Dog", {**_PET_FIELDS, "barks": flink.BOOLEAN}, declared_in=_PETS
        )
    },
)
_COLOR: Final = flink.enum("corpus.PublicTypes$Color", ["RED", "GREEN", "BLUE", "AMBER"])
_MOMENT: Final = dt.datetime(2024, 2, 29, 12, 34, 56, 789012)
_PAIR: Final = {"f0": pa.string(), "f1": pa.int64()}

FAMILIES: Final = (
    Family(
        name="boolean",
        type="BOOLEAN",
        java="BOOLEAN",
        column=pa.array([True, False, None]),
        expected=(True, False, None),
    ),
    Family(
        name="byte",
        type=flink.BYTE,
        java="BYTE",
        column=pa.array([-128, 0, 127], pa.int8()),
        expected=(-128, 0, 127),
    ),
    Family(
        name="short",
        type=flink.SHORT,
        java="SHORT",
        column=pa.array([-32768, 0, 32767], pa.int16()),
        expected=(-32768, 0, 32767),
    ),
    Family(
        name="int",
        type="INT",
        java="INT",
        column=pa.array([-(1 << 31), None, 5], pa.int32()),
        expected=(-(1 << 31), None, 5),
    ),
    Family(
        name="long",
        type="BIGINT",
        java="LONG",
        column=pa.array([-(1 << 63), 0, (1 << 63) - 1], pa.int64()),
        expected=(-(1 << 63), 0, (1 << 63) - 1),
    ),
    Family(
        name="float",
        type="FLOAT",
        java="FLOAT",
        column=pa.array([0.5, -0.0, float("inf")], pa.float32()),
        expected=(0.5, -0.0, {"$double": "Infinity"}),
    ),
    Family(
        name="double",
        type="DOUBLE",
        java="DOUBLE",
        column=pa.array([0.1, float("nan"), -1e300]),
        expected=(0.1, {"$double": "NaN"}, -1e300),
    ),
    Family(name="char", type=flink.CHAR, java="CHAR", column=pa.array(["a", "ß", "日"]), expected=("a", "ß", "日")),
    Family(
        name="string",
        type="STRING",
        java="STRING",
        column=pa.array(["", "nul\0 Größe 😀", "x" * 200]),
        expected=("", "nul\0 Größe 😀", "x" * 200),
    ),
    Family(
        name="big-decimal",
        type=flink.BIG_DECIMAL,
        java="BIGDEC",
        column=pa.array([Decimal("-1.50"), Decimal("12345678901234567890.00"), Decimal("0.00")], pa.decimal128(38, 2)),
        expected=tuple({"$decimal": t} for t in ("-1.50", "12345678901234567890.00", "0.00")),
    ),
    Family(
        name="big-integer",
        type=flink.BIG_INTEGER,
        java="BIGINT",
        column=pa.array([Decimal(-5), Decimal(10) ** 30, Decimal(0)], pa.decimal128(38, 0)),
        expected=tuple({"$decimal": t} for t in ("-5", "1" + "0" * 30, "0")),
    ),
    Family(
        name="date-time",
        type=flink.DATE,
        java="DATE",
        column=pa.array(
            [_MOMENT.replace(microsecond=789000), None, dt.datetime(1969, 1, 1)], pa.timestamp("us", "UTC")
        ),
        expected=("2024-02-29T12:34:56.789Z", None, "1969-01-01T00:00:00Z"),
    ),
    Family(
        name="instant",
        type=flink.INSTANT,
        java="INSTANT",
        column=pa.array([_MOMENT, None, dt.datetime(1969, 1, 1)], pa.timestamp("us", "UTC")),
        expected=("2024-02-29T12:34:56.789012Z", None, "1969-01-01T00:00:00Z"),
    ),
    Family(
        name="local-date",
        type="DATE",
        java="LOCALDATE",
        column=pa.array([_MOMENT.date(), dt.date(1600, 1, 1), None]),
        expected=("2024-02-29", "1600-01-01", None),
    ),
    Family(
        name="local-time",
        type=flink.LOCAL_TIME,
        java="LOCALTIME",
        column=pa.array([0, 45_296_789_012_345, 86_399_999_999_999], pa.int64()),
        expected=("00:00", "12:34:56.789012345", "23:59:59.999999999"),
    ),
    Family(
        name="local-date-time",
        type=flink.LOCAL_DATE_TIME,
        java="LOCALDATETIME",
        column=pa.array([_MOMENT, None, dt.datetime(1700, 1, 1)], pa.timestamp("us")),
        expected=("2024-02-29T12:34:56.789012", None, "1700-01-01T00:00"),
    ),
    Family(
        name="sql-timestamp",
        type=flink.SQL_TIMESTAMP,
        java="SQLTIMESTAMP",
        column=pa.array([_MOMENT, None, dt.datetime(2000, 1, 1)], pa.timestamp("us", "UTC")),
        expected=("2024-02-29T12:34:56.789012Z", None, "2000-01-01T00:00:00Z"),
    ),
    Family(
        name="bytes",
        type="BINARY",
        java="PRIMITIVES<BYTE>",
        column=pa.array([b"", b"\x00\xff", None]),
        expected=({"$hex": ""}, {"$hex": "00ff"}, None),
    ),
    Family(
        name="longs",
        type=flink.primitive_array("long"),
        java="PRIMITIVES<LONG>",
        column=pa.array([[], [1, -1], None], pa.list_(pa.int64())),
        expected=([], [1, -1], None),
    ),
    Family(
        name="strings",
        type=flink.string_array(),
        java="ARRAY<STRING>",
        column=pa.array([["a", None, ""], [], None], pa.list_(pa.string())),
        expected=(["a", None, ""], [], None),
    ),
    Family(
        name="boxed",
        type=flink.array_of("BIGINT", "java.lang.Long"),
        java="ARRAY<LONG>",
        column=pa.array([[1, None], [], None], pa.list_(pa.int64())),
        expected=([1, None], [], None),
    ),
    Family(
        name="list",
        type=flink.list_of("STRING"),
        java="LIST<STRING>",
        column=pa.array([["a", ""], [], None], pa.list_(pa.string())),
        expected=(["a", ""], [], None),
    ),
    Family(
        name="map",
        type=flink.map_of("STRING", "BIGINT"),
        java="MAP<STRING,LONG>",
        column=pa.array([[("b", 1), ("a", None)], [], None], pa.map_(pa.string(), pa.int64())),
        expected=([["a", None], ["b", 1]], [], None),
    ),
    Family(
        name="set",
        type=flink.set_of("INT"),
        java="SET<INT>",
        column=pa.array([[3, 1], [], None], pa.list_(pa.int32())),
        expected=({"$set": [1, 3]}, {"$set": []}, None),
        since=(2, 0),
    ),
    Family(
        name="tuple",
        type=flink.tuple_of("STRING", "BIGINT"),
        java="TUPLE<STRING,LONG>",
        column=_struct(_PAIR, {"f0": "a", "f1": 1}, {"f0": "", "f1": -1}, None),
        expected=(["a", 1], ["", -1], None),
    ),
    Family(
        name="row",
        type=flink.row("STRING", "BIGINT"),
        java="ROW<STRING,LONG>",
        column=_struct(_PAIR, {"f0": "a", "f1": 1}, {"f0": None, "f1": None}, None),
        expected=({"$row": ["a", 1], "kind": "INSERT"}, {"$row": [None, None], "kind": "INSERT"}, None),
    ),
    Family(
        name="either",
        type=flink.either("STRING", "BIGINT"),
        java="EITHER<STRING,LONG>",
        column=_struct({"left": pa.string(), "right": pa.int64()}, {"left": "l", "right": None}, {"right": 5}, None),
        expected=({"$left": "l"}, {"$right": 5}, None),
    ),
    Family(
        name="enum",
        type=_COLOR,
        java="corpus.PublicTypes$Color",
        column=pa.array(["AMBER", "RED", None]),
        expected=("AMBER", "RED", None),
    ),
    Family(
        name="pojo",
        type=_ADDRESS,
        java="corpus.PublicTypes$Address",
        column=_struct(
            {"city": pa.string(), "number": pa.int32(), "street": pa.string()},
            {"city": "Rome", "number": 1, "street": "Via"},
            {"city": None, "number": None, "street": None},
            None,
        ),
        expected=(
            {"city": "Rome", "number": 1, "street": "Via"},
            {"city": None, "number": None, "street": None},
            None,
        ),
    ),
    Family(
        name="pet",
        type=_PET,
        java="corpus.PublicTypes$Pet",
        column=_struct(
            {"legs": pa.int32(), "name": pa.string(), "barks": pa.bool_(), "_class": pa.string()},
            {"legs": 4, "name": "Rex", "barks": True, "_class": "corpus.PublicTypes$Dog"},
            {"legs": 2, "name": None, "barks": None, "_class": "corpus.PublicTypes$Pet"},
            None,
        ),
        expected=(
            {"$class": "corpus.PublicTypes$Dog", "barks": True, "legs": 4, "name": "Rex"},
            {"$class": "corpus.PublicTypes$Pet", "legs": 2, "name": None},
            None,
        ),
    ),
    Family(
        name="int-value",
        type=flink.basic("IntValue"),
        java="org.apache.flink.types.IntValue",
        column=pa.array([1, -1, None], pa.int32()),
        expected=(1, -1, None),
    ),
    Family(
        name="nested",
        type=flink.list_of(flink.tuple_of("INT", flink.map_of("STRING", _ADDRESS))),
        java="LIST<TUPLE<INT,MAP<STRING,corpus.PublicTypes$Address>>>",
        column=pa.array(
            [[{"f0": 1, "f1": [("x", {"city": "Oslo", "number": None, "street": None})]}], [], None],
            pa.list_(
                pa.struct(
                    {
                        "f0": pa.int32(),
                        "f1": pa.map_(
                            pa.string(), pa.struct({"city": pa.string(), "number": pa.int32(), "street": pa.string()})
                        ),
                    }
                )
            ),
        ),
        expected=([[1, [["x", {"city": "Oslo", "number": None, "street": None}]]]], [], None),
    ),
)
