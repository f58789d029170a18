"""Pairs of a state in a savepoint and the state of a new job (``pairs.py`` restores them)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

import statetool as st
from statetool import flink as types
from statetool.columns.types import arrow_type
from statetool.java.declaring.states import StateType
from statetool.serializers.core.base import Serializer
from statetool.types.options import ReadOptions


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its declarations for writing and for a job, and three values; as a key, also the hash formula of classes."""

    type: str | Serializer
    java: str
    values: tuple[Any, ...]
    hashes: tuple[tuple[str, str], ...] = ()

    @property
    def arrow(self) -> pa.DataType:
        """The type of its column."""
        return arrow_type(types.parse_type(self.type).logical, ReadOptions())


_INT: Final = Type("INT", "INT", (5, -7, 1 << 20))
LONG: Final = Type("BIGINT", "LONG", (5, -7, 1 << 40))
_STRING: Final = Type("STRING", "STRING", ("a", "", "xyz"))
_SCALARS: Final = {
    "boolean": Type("BOOLEAN", "BOOLEAN", (True, False, True)),
    "byte": Type(types.BYTE, "BYTE", (1, -2, 3)),
    "short": Type(types.SHORT, "SHORT", (1, -2, 300)),
    "int": _INT,
    "long": LONG,
    "float": Type("FLOAT", "FLOAT", (0.5, -1.0, 2.0)),
    "double": Type("DOUBLE", "DOUBLE", (0.5, -1.0, 2.0)),
    "string": _STRING,
    "char": Type(types.CHAR, "CHAR", ("a", "b", "c")),
    "big-integer": Type(types.BIG_INTEGER, "BIGINT", (5, -7, 9)),
}
_ADDRESS: Final = {"city": types.STRING, "number": types.INT, "street": types.STRING}
_ADDRESS_VALUE: Final = {"city": "c", "number": 3, "street": "s"}


def _address(fields: dict[str, Any], **values: Any) -> Type:
    """Return the class with other fields, as an older version of it."""
    whole = {**_ADDRESS_VALUE, **values}
    row = {n: whole[n] for n in fields}
    return Type(types.pojo("corpus.PublicTypes$Address", fields), "corpus.PublicTypes$Address", (row, row, row))


_POJO: Final = _address(_ADDRESS)
_POJO_OLD: Final = {
    "more-fields": _address({**_ADDRESS, "zip": types.INT}, zip=8),
    "fewer-fields": _address({"city": types.STRING, "street": types.STRING}),
    "renamed-field": _address({"town": types.STRING, "number": types.INT, "street": types.STRING}, town="t"),
    "retyped-field": _address({**_ADDRESS, "number": types.LONG}),
}
_COLORS: Final = ["RED", "GREEN", "BLUE", "AMBER"]


def _distinct(some: Type) -> Type:
    """Return distinct values, for keys."""
    return replace(some, values=tuple({**v, "street": f"s{i}"} for i, v in enumerate(some.values)))


def _color(*names: str) -> Type:
    return Type(types.enum("corpus.PublicTypes$Color", names), "corpus.PublicTypes$Color", ("RED", "BLUE", "RED"))


def _tuple(*parts: Type) -> Type:
    rows = tuple({f"f{i}": p.values[k] for i, p in enumerate(parts)} for k in range(3))
    return Type(types.tuple_of(*(p.type for p in parts)), f"TUPLE<{','.join(p.java for p in parts)}>", rows)


def _row(*parts: Type) -> Type:
    rows = tuple({f"f{i}": p.values[k] for i, p in enumerate(parts)} | {"_kind": "+I"} for k in range(3))
    return Type(types.row(*(p.type for p in parts)), f"ROW<{','.join(p.java for p in parts)}>", rows)


def _list(part: Type) -> Type:
    return Type(types.list_of(part.type), f"LIST<{part.java}>", ([part.values[0]], [], [part.values[1]] * 2))


def _map(key: Type, value: Type) -> Type:
    rows = tuple([(key.values[k], value.values[k])] for k in range(3))
    return Type(types.map_of(key.type, value.type), f"MAP<{key.java},{value.java}>", rows)


def _ints(name: str, element: str) -> Type:
    return Type(types.primitive_array(element), f"PRIMITIVES<{name}>", ([1, 2], [], [3]))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state ``s`` of an operator. ``element`` is its value, element or map value.

    Attributes
    ----------
    fill
        Class whose values the old job writes itself, if statetool does not write the savepoint.
    keys
        Class whose values are the keys that the old job numbers, instead of ``fill``.
    repeats
        Number of equal elements of each list.
    max_parallelism
        ``None`` if the job leaves it to Flink.
    """

    element: Type
    kind: str = "value"
    map_key: Type | None = None
    key: Type = LONG
    ttl: bool = False
    repeats: int = 2
    name: str = "s"
    max_parallelism: int | None = 128
    fill: str = ""
    keys: str = ""

    def bootstrap(self) -> Any:
        """Return the bootstrap that writes it."""
        column = pa.array(list(self.element.values), type=self.element.arrow)
        if self.kind in ("operator-list", "union"):
            make = st.bootstrap_list_state if self.kind == "operator-list" else st.bootstrap_union_state
            return make(self.name, pa.table({"value": column}), type=self.element.type)
        if self.kind == "broadcast":
            table = pa.table({"key": ["x", "y", "z"], "value": column})
            return st.bootstrap_broadcast_state(self.name, table, key_type="STRING", value_type=self.element.type)
        if self.kind == "list":
            column = pa.array([[v] * self.repeats for v in self.element.values], type=pa.list_(self.element.arrow))
        if self.map_key is not None:
            pairs = [[(self.map_key.values[i], v)] for i, v in enumerate(self.element.values)]
            column = pa.array(pairs, type=pa.map_(self.map_key.arrow, self.element.arrow))
        table = pa.table({"key": pa.array(list(self.key.values), type=self.key.arrow), self.name: column})
        declared = StateType(
            kind=self.kind,  # type: ignore[arg-type]
            element=self.element.type,
            user_key=None if self.map_key is None else self.map_key.type,
            ttl=self.ttl,
            last_access_ms=1_790_000_000_000 if self.ttl else None,
            column=None,
        )
        return st.bootstrap_keyed_state(
            table, states={self.name: declared}, key_type=self.key.type, hashes=dict(self.key.hashes)
        )

    def request(self, uid: str, *, fill: bool = False) -> dict[str, Any]:
        """Return the declaration of a job with this state; with ``fill`` the job writes values of the class ``fill``."""
        found: dict[str, Any] = {"name": uid, "uid": uid, "max_parallelism": self.max_parallelism}
        if self.kind in ("operator-list", "union", "broadcast"):
            mode = "list" if self.kind == "operator-list" else self.kind
            elements = {"name": self.name, "mode": mode, "type": self.element.java, "key": "STRING"}
            return found | {"operator_states": [elements | ({"fill": self.fill} if fill else {})]}
        state = {"name": self.name, "kind": self.kind, "type": self.element.java, "ttl": self.ttl}
        if fill and self.keys:
            state["key_fill"] = self.keys
        elif fill:
            state["fill"] = self.fill
        if self.map_key is not None:
            state["map_key"] = self.map_key.java
        return found | {"key": self.key.java, "states": [state]}


@dataclass(frozen=True, slots=True)
class Pair:
    """A state of a savepoint and that of the new job, in the operator whose uid is ``name``.

    Attributes
    ----------
    old, new
        ``None`` if the job has no such operator.
    known
        Whether a job can read the old state unchanged; otherwise the expected values are unknown.
    like
        A pair whose old state holds the same values, if this pair's class has changed.
    """

    name: str
    old: State | None
    new: State | None
    known: bool = True
    like: str = ""


def _sql(type_: str, *rows: Any) -> Type:
    return Type(types.sql(type_), f"SQL:{type_}", rows)


def _rows_of_sql() -> Iterator[Pair]:
    """Yield states of SQL operators in a separate state: by position and type."""
    pair = _sql("ROW<a BIGINT, b STRING>", *({"f0": i, "f1": f"text {i}", "_kind": "+I"} for i in range(3)))
    for name, new in (
        ("same", "ROW<a BIGINT, b STRING>"),
        ("renamed", "ROW<x BIGINT, y STRING>"),
        ("not-null", "ROW<a BIGINT NOT NULL, b STRING>"),
        ("longer-text", "ROW<a BIGINT, b VARCHAR(10)>"),
        ("added", "ROW<a BIGINT, b STRING, c INT>"),
        ("removed", "ROW<a BIGINT>"),
        ("swapped", "ROW<b STRING, a BIGINT>"),
        ("widened", "ROW<a DECIMAL(20, 0), b STRING>"),
        ("retyped", "ROW<a STRING, b STRING>"),
    ):
        yield Pair(f"sql-row-{name}", State(element=pair), State(element=_sql(new)))
    listed = State(element=pair, kind="list")
    yield Pair("sql-row-in-list-same", listed, listed)
    yield Pair("sql-row-in-list-added", listed, replace(listed, element=_sql("ROW<a BIGINT, b STRING, c INT>")))
    mapped = State(element=pair, kind="map", map_key=_STRING)
    yield Pair("sql-row-in-map-added", mapped, replace(mapped, element=_sql("ROW<a BIGINT, b STRING, c INT>")))
    timed = replace(State(element=pair), ttl=True)
    yield Pair("sql-row-ttl-on", State(element=pair), timed)
    yield Pair("sql-row-to-row", State(element=pair), State(element=_row(LONG, _STRING)))


def _pairs() -> Iterator[Pair]:
    for name, some in _SCALARS.items():
        yield Pair(f"{name}-same", State(element=some), State(element=some))
    changes = (
        "int long", "long int", "int string", "string int", "float double", "double float", "byte short", "int float",
        "long double", "string char", "boolean byte", "short char", "big-integer string",
    )  # fmt: skip
    for change in changes:
        a, b = change.split()
        yield Pair(f"{a}-to-{b}", State(element=_SCALARS[a]), State(element=_SCALARS[b]))
    yield from _collections()
    yield from _classes()
    yield from _kinds()
    yield from _rows_of_sql()


def _collections() -> Iterator[Pair]:
    whole = {
        "list": (_list(_INT), _list(LONG)),
        "map-value": (_map(_STRING, _INT), _map(_STRING, LONG)),
        "map-key": (_map(_INT, _STRING), _map(_STRING, _STRING)),
        "tuple": (_tuple(_INT, _STRING), _tuple(_INT, LONG)),
        "tuple-longer": (_tuple(_INT, _STRING), _tuple(_INT, _STRING, LONG)),
        "tuple-swapped": (_tuple(_INT, _STRING), _tuple(_STRING, _INT)),
        "row": (_row(_INT, _STRING), _row(_INT, LONG)),
        "row-longer": (_row(_INT, _STRING), _row(_INT, _STRING, LONG)),
        "tuple-row": (_tuple(_INT, _STRING), _row(_INT, _STRING)),
        "nested": (_list(_map(_STRING, _tuple(_INT, LONG))), _list(_map(_STRING, _tuple(_INT, _STRING)))),
        "array": (_ints("INT", "int"), _ints("LONG", "long")),
    }
    for name, (a, b) in whole.items():
        yield Pair(f"{name}-same", State(element=a), State(element=a))
        yield Pair(f"{name}-changed", State(element=a), State(element=b))


def _classes() -> Iterator[Pair]:
    yield Pair("pojo-same", State(element=_POJO), State(element=_POJO))
    for name, old in _POJO_OLD.items():
        yield Pair(f"pojo-{name}", State(element=old), State(element=_POJO), known=False)
        yield Pair(
            f"pojo-{name}-in-list", State(element=old, kind="list"), State(element=_POJO, kind="list"), known=False
        )
        map_of = State(element=_POJO, kind="map", map_key=_STRING)
        yield Pair(f"pojo-{name}-in-map", replace(map_of, element=old), map_of, known=False)
        before, after = State(element=_tuple(old, _INT)), State(element=_tuple(_POJO, _INT))
        yield Pair(f"pojo-{name}-in-tuple", before, after, known=False)
        keys = State(element=LONG, kind="map", map_key=_distinct(_POJO))
        yield Pair(f"pojo-{name}-as-map-key", replace(keys, map_key=_distinct(old)), keys, known=False)
        elements = State(element=_POJO, kind="operator-list")
        yield Pair(f"pojo-{name}-in-operator-list", replace(elements, element=old), elements, known=False)
        shared = State(element=_POJO, kind="broadcast")
        yield Pair(f"pojo-{name}-in-broadcast", replace(shared, element=old), shared, known=False)
    yield Pair("enum-same", State(element=_color(*_COLORS)), State(element=_color(*_COLORS)))
    yield Pair(
        "enum-new-constant", State(element=_color(*_COLORS[:3])), State(element=_color(*_COLORS)), like="enum-same"
    )
    yield Pair(
        "enum-other-order",
        State(element=_color("BLUE", "RED", "AMBER", "GREEN")),
        State(element=_color(*_COLORS)),
        like="enum-same",
    )
    yield Pair(
        "enum-lost-constant", State(element=_color(*_COLORS, "PINK")), State(element=_color(*_COLORS)), known=False
    )
    colors = State(element=LONG, kind="map", map_key=_color(*_COLORS))
    shuffled = replace(colors, map_key=_color("BLUE", "RED", "AMBER", "GREEN"))
    yield Pair("enum-as-map-key-same", colors, colors)
    yield Pair("enum-as-map-key-other-order", shuffled, colors, like="enum-as-map-key-same")
    migrated = replace(colors, element=_POJO)
    before = replace(shuffled, element=_POJO_OLD["more-fields"])
    yield Pair("enum-as-map-key-other-order-and-pojo-more-fields", before, migrated, known=False)
    yield Pair("enum-to-string", State(element=_color(*_COLORS)), State(element=_STRING))
    yield Pair("pojo-to-tuple", State(element=_POJO), State(element=_tuple(_STRING, _INT, _STRING)))


def _kinds() -> Iterator[Pair]:
    value, list_, reduced = (
        State(element=LONG),
        State(element=LONG, kind="list"),
        State(element=LONG, kind="reducing"),
    )
    map_ = State(element=LONG, kind="map", map_key=_STRING)
    aggregated = replace(value, kind="aggregating")
    for a, b in ((value, reduced), (value, list_), (list_, map_), (map_, value), (reduced, aggregated), (list_, value)):
        yield Pair(f"{a.kind}-to-{b.kind}-state", a, b)
    for same in (list_, reduced, map_, aggregated):
        yield Pair(f"{same.kind}-state-same", same, same)
        yield Pair(f"{same.kind}-state-retyped", same, replace(same, element=_STRING))
    yield Pair("map-state-rekeyed", map_, replace(map_, map_key=_INT))
    for kept in (value, list_, map_):
        timed = replace(kept, ttl=True)
        yield Pair(f"{kept.kind}-ttl-same", timed, timed)
        yield Pair(f"{kept.kind}-ttl-on", kept, timed)
        yield Pair(f"{kept.kind}-ttl-off", timed, kept)
    yield Pair("key-retyped", value, replace(value, key=_INT))
    yield Pair("key-to-tuple", value, replace(value, key=_tuple(LONG, _INT)))
    yield Pair("max-parallelism-set", value, replace(value, max_parallelism=256))
    yield Pair("state-renamed", value, replace(value, name="t"))
    for kind in ("operator-list", "union", "broadcast"):
        some = State(element=LONG, kind=kind)
        yield Pair(f"{kind}-same", some, some)
        yield Pair(f"{kind}-retyped", some, replace(some, element=_STRING))
    split, union = State(element=LONG, kind="operator-list"), State(element=LONG, kind="union")
    yield Pair("operator-list-to-union", split, union)


PAIRS: Final = tuple(_pairs())


def _modes() -> Iterator[Pair]:
    """Yield operator states that became another mode under the same name."""
    modes = ("operator-list", "union", "broadcast")
    for old in modes:
        for new in modes:
            if old != new:
                yield Pair(f"{old}-to-{new}", State(element=LONG, kind=old), State(element=LONG, kind=new))


def _animals(*fields: str) -> Type:
    """Return a class with an older version of a subclass, which is not registered."""
    kinds = {"legs": types.INT, "lives": types.INT, "mood": types.STRING, "purrs": types.INT}
    cat = types.pojo("evolved.Evolved$Cat", {n: kinds[n] for n in fields})
    values = {"legs": 4, "lives": 9, "mood": "good", "purrs": 3}
    row = {n: values[n] for n in fields} | {"_class": "evolved.Evolved$Cat"}
    pojo = types.pojo("evolved.Evolved$Animal", {"legs": types.INT}, subclasses={"evolved.Evolved$Cat": cat})
    return Type(pojo, "evolved.Evolved$Animal", (row, row, row))


def _described_subclasses() -> Iterator[Pair]:
    """Yield subclasses that the header describes and that are not registered: Flink does not ask whether they changed."""
    new = State(element=_animals("legs", "lives", "mood"))
    for name, fields in (("grown", ("legs", "lives")), ("shrunk", ("legs", "lives", "mood", "purrs"))):
        yield Pair(f"subclass-{name}", State(element=_animals(*fields)), new, known=False)


MODES: Final = tuple(_modes())
SUBCLASSES: Final = tuple(_described_subclasses())
