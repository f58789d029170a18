"""States of old jobs whose values become Avro values, or change their Avro schema: some that Flink refuses, others resolved by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from statetool import flink as types
from tests.support.flink.migrations import Migration
from tests.support.flink.pair_avro import A, B, C, generic, record
from tests.support.flink.pair_states import State, Type

_LONG_A: Final = {**A, "type": "long"}
_OLD: Final = generic(record(A, B))
_ROWS: Final = _OLD.values
_ADDED: Final = generic(record(C, _LONG_A, B), *({**row, "c": 7} for row in _ROWS))


def _class(name: str, schema: dict[str, Any], *rows: dict[str, Any]) -> Type:
    java = f"avros.{name}"
    return Type(types.avro({**schema, "name": java}, runtime_class=java), java, rows or _ROWS)


def _records() -> Iterator[Migration]:
    old = State(element=_OLD)
    yield Migration(name="add-widen", old=old, new=State(element=_ADDED))
    places = {
        "list": replace(old, kind="list"),
        "map": replace(old, kind="map", map_key=Type("STRING", "STRING", ("x", "y", "z"))),
        "operator-list": replace(old, kind="operator-list"),
        "ttl": replace(old, ttl=True),
    }
    for name, state in places.items():
        yield Migration(name=f"add-widen-in-{name}", old=state, new=replace(state, element=_ADDED))
    swapped = generic(record(B, A), *_ROWS)
    yield Migration(name="swap", old=old, new=State(element=swapped))
    dropped = generic(record(B), *({"b": row["b"]} for row in _ROWS))
    yield Migration(name="drop", old=old, new=State(element=dropped), accept=frozenset({"value.a"}))
    renamed = record(A, {"name": "z", "type": ["null", "string"], "aliases": ["b"]})
    rows = ({"a": row["a"], "z": row["b"]} for row in _ROWS)
    yield Migration(name="rename", old=old, new=State(element=generic(renamed, *rows)))
    longs = State(element=generic(record(_LONG_A, B)))
    yield Migration(name="narrow", old=longs, new=old, accept=frozenset({"value.a"}))
    inner = [{"name": "r", "type": ["null", record(*fields, name="shop.Inner")]} for fields in ((A,), (C, A))]
    nested = [generic(record(B, inner[0]), *_nested({})), generic(record(B, inner[1]), *_nested({"c": 7}))]
    yield Migration(name="add-inside", old=State(element=nested[0]), new=State(element=nested[1]))


def _nested(more: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"b": "x", "r": None}
    for i in range(2):
        yield {"b": "", "r": {"a": i, **more}}


def _classes() -> Iterator[Migration]:
    same = _class("Same", record(A, B))
    grown = _class("Grown", record(A, B, C), *({**row, "c": 7} for row in _ROWS))
    yield Migration(name="class-grown", old=State(element=_class("Grown", record(A, B))), new=State(element=grown))
    yield Migration(
        name="class-narrowed",
        old=State(element=_class("Narrowed", record(_LONG_A, B))),
        new=State(element=_class("Narrowed", record(A, B))),
        accept=frozenset({"value.a"}),
    )
    yield Migration(name="generic-to-class", old=State(element=_OLD), new=State(element=same))
    pairs = Type(types.tuple_of(types.INT, types.STRING), "", tuple({"f0": r["a"], "f1": r["b"]} for r in _ROWS))
    yield Migration(
        name="tuple-to-avro",
        old=State(element=pairs),
        new=State(element=_OLD),
        renames={"value.a": "f0", "value.b": "f1"},
    )
    address = types.pojo(
        "corpus.PublicTypes$Address", {"city": types.STRING, "number": types.INT, "street": types.STRING}
    )
    places = tuple({"city": row["b"], "number": row["a"], "street": None} for row in _ROWS)
    yield Migration(
        name="avro-to-pojo",
        old=State(element=_OLD),
        new=State(element=Type(address, "corpus.PublicTypes$Address", places)),
        renames={"value.city": "b", "value.number": "a"},
    )


AVRO_MIGRATIONS: Final = (*_records(), *_classes())
