"""Pairs of Avro states: generic records, and classes of ``avro/avros``. Flink needs flink-avro for them (``pairs.py``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from statetool import flink as types
from tests.support.flink.pair_states import LONG, Pair, State, Type

A: Final = {"name": "a", "type": "int"}
B: Final = {"name": "b", "type": "string"}
C: Final = {"name": "c", "type": "long", "default": 7}
_ROWS: Final = ({"a": 1, "b": "x"}, {"a": -2, "b": ""}, {"a": 3, "b": "zz"})


def record(*fields: dict[str, Any], name: str = "shop.R", **more: Any) -> dict[str, Any]:
    """Return the schema of a record."""
    return {"type": "record", "name": name, **more, "fields": list(fields)}


def generic(schema: dict[str, Any], *rows: dict[str, Any]) -> Type:
    """Return generic records of a schema."""
    hashes = (("org.apache.avro.generic.GenericRecord", "avro[1, 10]()"),)
    return Type(types.avro(schema), f"AVRO:{json.dumps(schema)}", rows or _ROWS, hashes)


_PAIR: Final = generic(record(A, B))
_NEW: Final = {
    "documented": record(A, B, doc="a pair"),
    "ordered": record({**A, "order": "ignore"}, B),
    "defaulted": record({**A, "default": 4}, B),
    "alias-only": record(A, {**B, "aliases": ["z"]}),
    "added": record(A, B, C),
    "added-in-front": record(C, A, B),
    "added-without-default": record(A, B, {"name": "c", "type": "long"}),
    "removed": record(A),
    "removed-in-front": record(B),
    "renamed": record(A, {"name": "z", "type": "string", "aliases": ["b"]}),
    "promoted": record({**A, "type": "long"}, B),
    "retyped": record({**A, "type": "string"}, B),
    "swapped": record(B, A),
    "nullable": record(A, {**B, "type": ["null", "string"]}),
    "bytes": record(A, {**B, "type": "bytes"}),
    "other-name": record(A, B, name="shop.S"),
    "other-name-with-alias": record(A, B, name="shop.S", aliases=["shop.R"]),
    "other-namespace": record(A, B, name="store.R"),
}
#: Writer schemas of classes, if they differ from the common one.
_OLD: Final = {"Narrowed": record({**A, "type": "long"}, B, name="avros.Narrowed")}
_CLASSES: Final = (
    "Same", "Documented", "Grown", "Front", "Undefaulted", "Shrunk", "Renamed", "Promoted", "Narrowed", "Retyped", "Swapped",
    "Nullable",
)  # fmt: skip


def _class(name: str) -> tuple[Type, Type]:
    """Return the old and the new version of a class."""
    java = f"avros.{name}"
    schema = _OLD.get(name, record(A, B, name=java))
    return Type(types.avro(schema, runtime_class=java), java, _ROWS), Type("", java, ())


def _records() -> Iterator[Pair]:
    old = State(element=_PAIR)
    yield Pair("avro-same", old, old)
    for name, schema in _NEW.items():
        found = "avro-with-z-same" if name == "renamed" else "avro-same"
        yield Pair(f"avro-{name}", old, State(element=generic(schema)), like=found)
    for name, some in _HELD.items():
        yield Pair(f"avro-{name}-same", State(element=some), State(element=some))
    numbers = generic(record(A, {"name": "m", "type": "int"}, {"name": "n", "type": "int"}))
    yield Pair(
        "avro-numbers-swapped", State(element=_HELD["numbers"]), State(element=numbers), like="avro-numbers-same"
    )
    for name, new in (
        ("more", _enum("RED", "BLUE", "PINK")), ("other-order", _enum("BLUE", "RED")), ("fewer", _enum("RED")),
    ):  # fmt: skip
        yield Pair(f"avro-enum-{name}", State(element=_HELD["enum"]), State(element=new), like="avro-enum-same")
    added = State(element=_nested(A, C))
    yield Pair("avro-nested-added", State(element=_HELD["nested"]), added, like="avro-nested-same")


def _enum(*symbols: str) -> Type:
    field = {"name": "color", "type": {"type": "enum", "name": "shop.Color", "symbols": symbols}}
    return generic(record(field), {"color": "RED"}, {"color": "BLUE"}, {"color": "RED"})


def _nested(*fields: dict[str, Any]) -> Type:
    field = {"name": "r", "type": record(*fields, name="shop.Inner")}
    return generic(record(B, field), *({"b": "x", "r": {"a": i}} for i in range(3)))


def _numbers() -> Type:
    schema = record(A, {"name": "n", "type": "int"}, {"name": "m", "type": "int"})
    return generic(schema, *({"a": i, "n": 1, "m": 2} for i in range(3)))


_Z: Final = {"name": "z", "type": "string"}
#: Values held in other records; with ``z`` and with ``c``, the expected values of classes whose fields changed.
_HELD: Final = {
    "numbers": _numbers(),
    "enum": _enum("RED", "BLUE"),
    "nested": _nested(A),
    "with-z": generic(record(A, _Z), *({"a": r["a"], "z": r["b"]} for r in _ROWS)),
    "with-c": generic(record(A, B, C), *({**r, "c": 7} for r in _ROWS)),
}
_FOUND: Final = {
    "Grown": "avro-with-c-same",
    "Front": "avro-with-c-same",
    "Renamed": "avro-with-z-same",
}


def _places() -> Iterator[Pair]:
    """Yield the same changes elsewhere: in lists and maps, with TTL, in keys, in operator state."""
    changed = [(n, generic(_NEW[n])) for n in ("documented", "added", "removed")]
    states = {
        "in-list": State(element=_PAIR, kind="list"),
        "in-map": State(element=_PAIR, kind="map", map_key=_TEXT),
        "with-ttl": State(element=_PAIR, ttl=True),
        "in-operator-list": State(element=_PAIR, kind="operator-list"),
    }
    for where, old in states.items():
        yield Pair(f"avro-same-{where}", old, old)
        for name, new in changed:
            yield Pair(f"avro-{name}-{where}", old, replace(old, element=new), like=f"avro-same-{where}")
    keyed, mapped = State(element=LONG, key=_PAIR), State(element=LONG, kind="map", map_key=_PAIR)
    yield Pair("avro-key-same", keyed, keyed)
    yield Pair("avro-map-key-same", mapped, mapped)
    for name, new in (("documented", changed[0][1]), ("renamed", generic(_NEW["renamed"]))):
        yield Pair(f"avro-key-{name}", keyed, replace(keyed, key=new), like="avro-key-same")
        yield Pair(f"avro-map-key-{name}", mapped, replace(mapped, map_key=new), like="avro-map-key-same")


_TEXT: Final = Type("STRING", "STRING", ("x", "y", "z"))


def _classes() -> Iterator[Pair]:
    for name in _CLASSES:
        old, new = _class(name)
        yield Pair(f"avro-class-{name}", State(element=old), State(element=new), like=_FOUND.get(name, "avro-same"))
    same, _ = _class("Same")
    records = generic(record(A, B, name="avros.Same"))
    yield Pair("avro-class-to-generic", State(element=same), State(element=records), like="avro-same")
    yield Pair("avro-generic-to-class", State(element=records), State(element=same), like="avro-same")
    for name in ("Grown", "Promoted"):
        old, new = _class(name)
        listed = State(element=old, kind="list")
        yield Pair(f"avro-class-{name}-in-list", listed, replace(listed, element=new), like="avro-same-in-list")
        keyed = State(element=LONG, kind="map", map_key=old)
        yield Pair(f"avro-class-{name}-as-map-key", keyed, replace(keyed, map_key=new), like="avro-map-key-same")


AVRO_PAIRS: Final = (*_records(), *_places(), *_classes())
