"""Avro schemas with values, for hypothesis."""

from __future__ import annotations

from decimal import Decimal
from itertools import count
from typing import Any, Final

from hypothesis import strategies as st

_TEXT: Final = st.text(st.characters(codec="utf-8"), max_size=9)
_NAMES: Final = count()


def _ints(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def _logical(base: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": logical, **more}


def _fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": f"F{next(_NAMES)}", "size": size, **more}


_CENTS: Final = st.integers(-(10**9), 10**9).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -2)))

_LEAVES: Final[tuple[tuple[Any, st.SearchStrategy[Any]], ...]] = (
    ("boolean", st.booleans()),
    ("int", _ints(32)),
    ("long", _ints(64)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=9)),
    ("string", _TEXT),
    (_logical("int", "date"), st.integers(-1_500_000, 1_500_000)),
    (_logical("int", "time-millis"), st.integers(0, 86_399_999).map(lambda v: v * 1_000_000)),
    (_logical("long", "time-micros"), st.integers(0, 86_399_999_999).map(lambda v: v * 1_000)),
    (_logical("long", "timestamp-millis"), _ints(50)),
    (_logical("long", "timestamp-micros"), _ints(60)),
    (_logical("long", "timestamp-nanos"), _ints(64)),
    (_logical("long", "local-timestamp-micros"), _ints(60)),
    (_logical("bytes", "decimal", precision=10, scale=2), _CENTS),
    (_logical("long", "date"), _ints(64)),  # meaningless on a long: ignored
)


def _named() -> st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]]:
    def enum(i: int) -> tuple[Any, st.SearchStrategy[Any]]:
        symbols = [f"S{k}" for k in range(i)]
        return {"type": "enum", "name": f"E{next(_NAMES)}", "symbols": symbols}, st.sampled_from(symbols)

    def fixed(size: int) -> tuple[Any, st.SearchStrategy[Any]]:
        return _fixed(size), st.binary(min_size=size, max_size=size)

    decimal = st.just(0).map(lambda _: (_fixed(18, logicalType="decimal", precision=10, scale=2), _CENTS))
    return st.integers(1, 4).map(enum) | st.integers(0, 5).map(fixed) | decimal


def _wrap(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def record(parts: list[Any]) -> Any:
        fields = [{"name": f"f{i}", "type": t} for i, (t, _) in enumerate(parts)]
        return {"type": "record", "name": f"R{next(_NAMES)}", "fields": fields}, st.tuples(*(v for _, v in parts))

    def optional(typed: Any) -> Any:
        return ["null", typed[0]] if next(_NAMES) % 2 else [typed[0], "null"], st.none() | typed[1]

    def choice(parts: list[Any]) -> Any:
        def place(i: int, v: Any) -> tuple[Any, ...]:
            return tuple(v if k == i else None for k in range(len(parts)))

        members = [values.map(lambda v, i=i: place(i, v)) for i, (_, values) in enumerate(parts)]
        return ["null", *(t for t, _ in parts)], st.none() | st.one_of(members)

    plain = inner.filter(lambda t: not isinstance(t[0], list))
    return st.one_of(
        inner.map(lambda t: ({"type": "array", "items": t[0]}, st.lists(t[1], max_size=4))),
        inner.map(lambda t: ({"type": "map", "values": t[0]}, st.lists(st.tuples(_TEXT, t[1]), max_size=4))),
        st.lists(inner, max_size=4).map(record),
        plain.map(optional),
        st.lists(plain, min_size=2, max_size=3).map(choice),
    )


_TYPED: Final = st.recursive(st.sampled_from(_LEAVES) | _named(), _wrap, max_leaves=7)


@st.composite
def avro_values(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    """Return a schema and some values of it."""
    schema, values = draw(_TYPED)
    return schema, draw(st.lists(values, min_size=1, max_size=5))
