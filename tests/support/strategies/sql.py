"""SQL types with rows, arrays and maps, for hypothesis."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from hypothesis import strategies as st

from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.logical_types import SqlType
from statetool.serializers.sql.rowdata import ArrayDataSerializer, MapDataSerializer, RowDataSerializer

_STRINGS: Final = st.text(st.characters(codec="utf-8"), max_size=12)
_MILLI: Final = 1_000_000
_YEARS: Final = 4_000 * 366 * 86_400_000


def _ints(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def _decimal(precision: int, scale: int) -> tuple[SqlType, st.SearchStrategy[Any]]:
    most = 10**precision - 1
    values = st.integers(-most, most).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))
    return SqlType(root="DECIMAL", precision=precision, scale=scale), values


def _timestamp(root: str, precision: int) -> tuple[SqlType, st.SearchStrategy[Any]]:
    compact = precision <= 3
    values = st.integers(-_YEARS, _YEARS) if compact else st.integers(-_YEARS * _MILLI, _YEARS * _MILLI)
    return SqlType(root=root, precision=precision), values


_LEAVES: Final = (
    (SqlType(root="BOOLEAN"), st.booleans()),
    (SqlType(root="TINYINT"), _ints(8)),
    (SqlType(root="SMALLINT"), _ints(16)),
    (SqlType(root="INT"), _ints(32)),
    (SqlType(root="BIGINT"), _ints(64)),
    (SqlType(root="FLOAT"), st.floats(width=32, allow_nan=False)),
    (SqlType(root="DOUBLE"), st.floats(allow_nan=False)),
    (SqlType(root="DATE"), st.integers(-1_500_000, 1_500_000)),
    (SqlType(root="TIME", precision=3), st.integers(0, 86_399_999).map(lambda v: v * _MILLI)),
    (SqlType(root="VARCHAR", length=20), _STRINGS),
    (SqlType(root="VARBINARY", length=20), st.binary(max_size=20)),
    (SqlType(root="INTERVAL YEAR TO MONTH"), _ints(32)),
    (SqlType(root="INTERVAL DAY TO SECOND"), _ints(50)),
    (SqlType(root="VARIANT"), st.tuples(st.binary(max_size=9), st.binary(max_size=9))),
    (SqlType(root="NULL"), st.none()),
    _decimal(10, 2),
    _decimal(18, 0),
    _decimal(19, 3),
    _decimal(38, 38),
    _timestamp("TIMESTAMP", 3),
    _timestamp("TIMESTAMP", 9),
    _timestamp("TIMESTAMP_LTZ", 0),
    _timestamp("TIMESTAMP_LTZ", 6),
)


def _wrap(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    rows = st.lists(inner, min_size=1, max_size=4).map(
        lambda parts: (
            SqlType(root="ROW", parts=tuple((f"a{i}", t) for i, (t, _) in enumerate(parts))),
            st.tuples(*(st.none() | v for _, v in parts)),
        )
    )
    arrays = inner.filter(lambda t: t[0].root != "NULL").map(
        lambda t: (SqlType(root="ARRAY", parts=(("element", t[0]),)), st.lists(st.none() | t[1], max_size=40))
    )
    maps = (
        st.tuples(inner, inner)
        .filter(lambda p: "NULL" not in (p[0][0].root, p[1][0].root))
        .map(
            lambda p: (
                SqlType(root="MAP", parts=(("key", p[0][0]), ("value", p[1][0]))),
                st.lists(st.tuples(p[0][1], st.none() | p[1][1]), max_size=5),
            )
        )
    )
    return rows | arrays | maps


_TYPED: Final = st.recursive(st.sampled_from(_LEAVES), _wrap, max_leaves=6)
_PREFIX: Final = "org.apache.flink.table.runtime.typeutils."


@st.composite
def sql_values(draw: st.DrawFn) -> tuple[Serializer, list[Any]]:
    """Return a serializer of rows, arrays or maps, and some values of it."""
    kind = draw(st.sampled_from(("row", "row", "array", "map")))
    if kind == "row":
        fields = draw(st.lists(_TYPED, min_size=0, max_size=12))
        types = tuple(t for t, _ in fields)
        row = RowDataSerializer(_PREFIX + "RowDataSerializer$RowDataSerializerSnapshot", 3, b"", types, ())
        kinds = st.sampled_from(("+I", "-U", "+U", "-D"))
        values = st.tuples(*(st.none() | v for _, v in fields), kinds)
        return row, draw(st.lists(values, min_size=1, max_size=5))
    typed = _TYPED.filter(lambda t: t[0].root != "NULL")
    element, items = draw(typed)
    if kind == "array":
        array = ArrayDataSerializer(_PREFIX + "ArrayDataSerializer$ArrayDataSerializerSnapshot", 3, b"", (element,))
        return array, draw(st.lists(st.lists(st.none() | items, max_size=40), min_size=1, max_size=5))
    value, others = draw(typed)
    both = MapDataSerializer(_PREFIX + "MapDataSerializer$MapDataSerializerSnapshot", 3, b"", (element, value))
    entries = st.lists(st.tuples(items, st.none() | others), max_size=5)
    return both, draw(st.lists(entries, min_size=1, max_size=5))
