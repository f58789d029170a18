"""Kernels and the reference decoder agree on Kryo's values: same rows, same ends, errors for the same values."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statetool.columns.decode import as_data, decode_column
from statetool.columns.values import split_joined
from statetool.errors import EncodeError
from statetool.io.output import Output
from statetool.kernels.graphs.rewrite import rewritten
from statetool.kernels.values.program import Graph, PerRecord
from statetool.serializers.core.base import Serializer
from statetool.serializers.value_ends import find_ends
from statetool.types.declared import ClassDeclaration, class_of_fields, enum_of
from statetool.types.options import ReadOptions
from tests.support.checks.both_ways import READ_OPTIONS, same_both_ways
from tests.support.corpora.kryo_golden import golden, of_type

_I32, _I64 = 1 << 31, 1 << 63
_CHARS = st.characters(codec="utf-8")
_TEXT = st.text(_CHARS, max_size=70) | st.text("ab", min_size=30, max_size=70) | st.text()
Typed = tuple[str, st.SearchStrategy[Any]]
_NANOS = st.integers(-(10**18), 10**18) | st.integers(-(10**9), 10**9).map(lambda n: n * 1000)
PRIMITIVES: tuple[Typed, ...] = (
    ("int", st.integers(-_I32, _I32 - 1)),
    ("long", st.integers(-_I64, _I64 - 1) | st.integers(-100, 100)),
    ("short", st.integers(-(1 << 15), (1 << 15) - 1)),
    ("byte", st.integers(-128, 127)),
    ("boolean", st.booleans()),
    ("char", st.characters(max_codepoint=0xFFFF, codec="utf-8") | st.just("\ud800")),
    ("float", st.floats(width=32)),
    ("double", st.floats()),
)
OBJECTS: tuple[Typed, ...] = (
    ("Integer", st.integers(-_I32, _I32 - 1)),
    ("Long", st.integers(-_I64, _I64 - 1)),
    ("Character", st.characters(max_codepoint=0xFFFF, codec="utf-8")),
    ("Boolean", st.booleans()),
    ("String", _TEXT | st.text(st.characters())),
    ("java.util.Date", st.integers(-(1 << 52), 1 << 52) | st.sampled_from((-_I64, 0, _I64 - 1))),
    ("java.sql.Timestamp", _NANOS),
    ("Instant", _NANOS),
    ("LocalDate", st.integers(-1_000_000, 1_000_000)),
    ("LocalTime", st.integers(0, 86_399_999_999_999) | st.integers(0, 86_399).map(lambda s: s * 10**9)),
    ("LocalDateTime", _NANOS),
    ("BigInteger", st.integers(-(10**40), 10**40) | st.integers(-300, 300)),
    ("BigDecimal", st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.just(Decimal("1E+3"))),
    ("UUID", st.uuids().map(str)),
    ("a.Color", st.sampled_from(("RED", "GREEN"))),
    ("byte[]", st.binary(max_size=20)),
    ("int[]", st.lists(st.integers(-_I32, _I32 - 1), max_size=4)),
    ("String[]", st.lists(st.none() | _TEXT, max_size=4)),
    ("a.Inner", st.tuples(st.integers(-5, 5), st.none() | _TEXT)),
    ("a.Last", st.tuples(st.floats(), st.none() | st.booleans())),
)
INNER = (
    enum_of("a.Color", ("RED", "GREEN")),
    class_of_fields("a.Inner", {"y": "int", "x": "String"}),
    class_of_fields("a.Last", {"d": "double", "b": "Boolean"}, final=True),
)


@st.composite
def _typed(draw: st.DrawFn, depth: int = 2) -> Typed:
    """Draw a type and values of it, including null."""
    form = draw(st.sampled_from(("plain", "plain", "list", "set", "map", "array"))) if depth else "plain"
    if form == "plain":
        name, values = draw(st.sampled_from(OBJECTS))
        return name, st.none() | values
    name, values = draw(_typed(depth - 1))
    if form == "array":
        return f"{name}[]", st.none() | st.lists(values, max_size=3)
    if form == "map":
        key, keys = draw(st.sampled_from((OBJECTS[0], OBJECTS[4], OBJECTS[14], OBJECTS[-1])))
        return f"Map<{key}, {name}>", st.none() | st.lists(st.tuples(keys, values), max_size=3)
    return f"{form.title()}<{name}>", st.none() | st.lists(values, max_size=3)


@st.composite
def _classes(draw: st.DrawFn) -> tuple[ClassDeclaration, st.SearchStrategy[Any]]:
    """Draw a class and its values."""
    parts = draw(st.lists(st.sampled_from(PRIMITIVES) | _typed(), min_size=1, max_size=6))
    names = draw(st.permutations([f"f{i}" for i in range(len(parts))]))
    declared = class_of_fields(
        "a.Outer",
        {n: t for n, (t, _) in zip(names, parts, strict=True)},
        final=draw(st.booleans()),
        record=draw(st.booleans()),
    )
    return declared, st.tuples(*(values for _, values in parts))


@st.composite
def made(draw: st.DrawFn) -> tuple[Serializer, bytes, list[int]]:
    """Draw a serializer, the bytes of some values, and the start of each value and the end of the last."""
    declared, values = draw(_classes())
    gen: Literal[2, 5] = draw(st.sampled_from((2, 5)))
    s = of_type(gen, "a.Outer", (*INNER, declared))
    out, bounds = Output(), [0]
    for value in draw(st.lists(st.none() | values, min_size=1, max_size=5)):
        try:
            s.encode(out, value)
        except EncodeError:  # a timestamp after Java's maximum
            del out[bounds[-1] :]
            continue
        bounds.append(len(out))
    return s, bytes(out), bounds


@settings(max_examples=150)
@given(made(), READ_OPTIONS)
def test_made_up_values(made: tuple[Serializer, bytes, list[int]], options: ReadOptions) -> None:
    s, raw, bounds = made
    assert isinstance(s.program(), Graph)
    if len(bounds) > 1:
        same_both_ways(s, raw, bounds[:-1], bounds[1:], options)


@pytest.mark.full
@settings(max_examples=150)
@given(made(), READ_OPTIONS, st.data())
def test_damaged_values(made: tuple[Serializer, bytes, list[int]], options: ReadOptions, data: st.DataObject) -> None:
    s, raw, bounds = made
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        if damaged:
            at = data.draw(st.integers(0, len(damaged) - 1))
            damaged[at] = data.draw(st.integers(0, 255) | st.sampled_from((0, 1, 2, 0x7F, 0x80, 0xFF)))
    if len(bounds) > 1:
        same_both_ways(s, bytes(damaged), bounds[:-1], bounds[1:], options)


@pytest.mark.parametrize("gen", [2, 5])
def test_only_what_kernels_do_not_foresee_is_left_to_the_reference(gen: Literal[2, 5]) -> None:
    outer = class_of_fields("a.Outer", {"a": "a.Inner", "b": "a.Inner", "s": "Set<UUID>"})
    s = of_type(gen, "a.Outer", (*INNER, outer))
    value = ((2, "x"), (2, "x"), [str(UUID(int=7)), None])
    plain = Output()
    s.encode(plain, value)
    # The same object twice: a reference to the second object of the value, and then to its string.
    shared = bytes(plain).replace(b"\1\0\1\1\x82x\4", b"\1\0\3")
    text = bytes(plain).replace(b"\1\0\1\1\x82x\4", b"\1\0\1\4\4")
    assert (len(shared), len(text)) == (len(plain) - 4, len(plain) - 2)
    # An unusual class for a set.
    other = bytes(plain).replace(b"java.util.HashSe\xf4", b"java.util.Stac\xeb")
    raws = [bytes(plain), shared, other, text]
    raw = b"".join(raws)
    end = np.cumsum([len(r) for r in raws])
    pos = end - [len(r) for r in raws]
    op = s.program()
    assert isinstance(op, Graph)
    _, _, after, served = rewritten(as_data(raw), op, pos, end)
    assert served.tolist() == [True, True, False, True]
    assert after[served].tolist() == end[served].tolist()
    column, after = decode_column(op, s.logical, as_data(raw), pos, end, ReadOptions())
    assert after.tolist() == end.tolist()
    assert [tuple(row.values()) for row in column.to_pylist()] == [
        ({"y": 2, "x": "x"}, {"y": 2, "x": "x"}, value[2])
    ] * 4


@settings(max_examples=50)
@given(made(), st.integers(0, 2))
def test_joined_values_are_found(made: tuple[Serializer, bytes, list[int]], more: int) -> None:
    s, raw, bounds = made
    parts = [raw[a:b] for a, b in pairwise(bounds)] or [b"\0"]
    first, second = b",".join(parts), b",".join([parts[0]] * (more + 1))
    data = as_data(first + second)
    pos = np.array([0, len(first)], dtype=np.int64)
    end = np.array([len(first), len(data)], dtype=np.int64)
    counts, starts, ends = split_joined(s, data, pos, end)
    assert counts.tolist() == [len(parts), more + 1]
    assert [data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)] == [*parts, *[parts[0]] * (more + 1)]
    assert find_ends(s.program(), s.decode, data, starts, ends).tolist() == ends.tolist()


@pytest.mark.parametrize("kind", ["Object", "List<Object>", "KryoValues$Node", "Optional<String>", "Duration"])
def test_types_that_only_the_reference_reads(kind: str) -> None:
    classes = (class_of_fields("a.Outer", {"f": kind}), class_of_fields("KryoValues$Node", {"n": "KryoValues$Node"}))
    assert isinstance(of_type(5, "a.Outer", classes).program(), PerRecord)


@pytest.mark.parametrize(("version", "gen"), [("1.20.3", 2), ("2.3.0", 5)])
def test_a_value_of_flink_is_served_unless_the_class_has_subclasses(version: str, gen: Literal[2, 5]) -> None:
    assert isinstance(of_type(gen, "KryoValues$Item").program(), PerRecord)
    fields = class_of_fields("KryoValues$Item", {"n": "int", "name": "String"})
    op = of_type(gen, "KryoValues$Item", (fields,)).program()
    assert isinstance(op, Graph)
    raw = golden(version).values["item"][0]
    _, _, after, served = rewritten(as_data(raw), op, np.zeros(1, np.int64), np.full(1, len(raw)))
    assert served.all()
    assert after[0] == len(raw)
