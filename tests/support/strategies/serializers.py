"""Serializers with values that they can write, for hypothesis."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from tests.support.snapshots import build

#: A snapshot and a strategy of its plain values.
Typed: TypeAlias = tuple[bytes, st.SearchStrategy[Any]]

_NS_OF_YEARS: Final = 4_000 * 366 * 86_400_000_000_000


def _ints(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


# Single code units, including halves of surrogate pairs; adjacent halves are joined as Python does.
_TEXT: Final = st.text(st.characters(exclude_categories=())).map(
    lambda s: s.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
)
_DECIMALS: Final = st.builds(
    lambda unscaled, scale: Decimal(unscaled).scaleb(-scale), st.integers(-(10**24), 10**24), st.integers(-5, 30)
)

_LEAVES: Final[tuple[Typed, ...]] = (
    (build.simple("Boolean"), st.booleans()),
    (build.simple("Byte"), _ints(8)),
    (build.simple("Short"), _ints(16)),
    (build.INT, _ints(32)),
    (build.LONG, _ints(64)),
    (build.simple("Float"), st.floats(width=32, allow_nan=False)),
    (build.simple("Double"), st.floats(allow_nan=False)),
    (build.simple("Char"), st.characters(max_codepoint=0xFFFF, exclude_categories=())),
    (build.STRING, st.none() | _TEXT),
    (build.simple("StringValue"), _TEXT),
    (build.simple("Void"), st.none()),
    (build.simple("BigInt"), st.none() | st.integers(-(1 << 200), 1 << 200)),
    (build.simple("BigDec"), st.none() | _DECIMALS),
    (build.simple("Date"), st.none() | st.integers(1 - (1 << 63), (1 << 63) - 1)),
    (build.simple("SqlTimestamp"), st.none() | st.integers(-_NS_OF_YEARS, _NS_OF_YEARS)),
    (build.simple("Instant"), st.none() | st.integers(-_NS_OF_YEARS, _NS_OF_YEARS)),
    (build.simple("LocalDate"), st.none() | st.integers(-1_500_000, 1_500_000)),
    (build.simple("LocalTime"), st.none() | st.integers(0, 86_399_999_999_999)),
    (build.simple("LocalDateTime"), st.none() | st.integers(-_NS_OF_YEARS, _NS_OF_YEARS)),
    (build.simple("BytePrimitiveArray", "org.apache.flink.api.common.typeutils.base.array."), st.binary(max_size=20)),
    (
        build.simple("IntPrimitiveArray", "org.apache.flink.api.common.typeutils.base.array."),
        st.lists(_ints(32), max_size=5),
    ),
    (
        build.simple("StringArray", "org.apache.flink.api.common.typeutils.base.array."),
        st.lists(st.none() | _TEXT, max_size=5),
    ),
)


def _wrap(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(lambda t: (build.list_of(t[0]), st.lists(t[1], max_size=4))),
        st.tuples(inner, inner).map(
            lambda p: (
                build.map_of(p[0][0], p[1][0]),
                st.lists(st.tuples(p[0][1], st.none() | p[1][1].filter(_there)), max_size=4, unique_by=_key),
            )
        ),
        inner.map(lambda t: (build.nullable(t[0]), st.none() | t[1])),
        st.lists(inner, min_size=1, max_size=4).map(
            lambda parts: (build.tuple_of(*(p for p, _ in parts)), st.tuples(*(v for _, v in parts)))
        ),
        st.lists(inner, min_size=1, max_size=9).map(
            lambda parts: (
                build.row_of(*(p for p, _ in parts)),
                st.tuples(*(st.none() | v for _, v in parts), st.sampled_from(("+I", "-U", "+U", "-D"))),
            )
        ),
        st.lists(inner, min_size=1, max_size=4).map(
            lambda parts: (
                build.pojo("P", {f"f{i}": p for i, (p, _) in enumerate(parts)}),
                st.none() | st.tuples(*(st.none() | v for _, v in parts)),
            )
        ),
        st.tuples(inner, inner)
        .map(
            lambda p: (
                build.either(p[0][0], p[1][0]),
                st.tuples(p[0][1].filter(_there), st.none()) | st.tuples(st.none(), p[1][1].filter(_there)),
            )
        )
        .filter(lambda t: t[0].count(b"Void") == 0),
    )


def _key(entry: tuple[Any, Any]) -> str:
    """Return a form that distinguishes the keys of a map; keys that differ only in the order of their parts count as equal."""
    return "".join(sorted(repr(entry[0])))


def _there(value: Any) -> bool:
    return value is not None


#: Serializers of up to about ten parts.
TYPED: Final[st.SearchStrategy[Typed]] = st.recursive(st.sampled_from(_LEAVES), _wrap, max_leaves=10)


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """Return a snapshot and some values."""
    snapshot, values = draw(TYPED)
    return snapshot, draw(st.lists(values, min_size=1, max_size=4))
