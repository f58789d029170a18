"""States of old jobs, the declarations of new jobs, and the values that the new jobs must find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any, Final

from statetool import flink as types
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.migration.plan import MigrationPlan
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import COMPOSITE_MAGIC, write_nested
from statetool.serializers.table import snapshot_reader
from tests.support.flink.pair_states import State, Type

_CLASS: Final = "corpus.PublicTypes$Address"
_ADDRESS: Final = types.pojo(_CLASS, {"city": types.STRING, "number": types.INT, "street": types.STRING})
_COLORS: Final = ("RED", "GREEN", "BLUE", "AMBER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A state of an old job and the corresponding state of the new job, with the values that it must find.

    Attributes
    ----------
    renames, fills, constants, accept, last_access_ms
        Choices for the migration, by paths inside the state.
    """

    name: str
    old: State
    new: State
    renames: Mapping[str, str] = field(default_factory=dict)
    fills: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    accept: frozenset[str] = frozenset()
    last_access_ms: int | None = None


def _addresses(*rows: tuple[Any, ...]) -> Type:
    found = tuple(dict(zip(("city", "number", "street"), row, strict=True)) for row in rows)
    return Type(_ADDRESS, _CLASS, found)


def _pojo(fields: dict[str, Any], *rows: tuple[Any, ...]) -> Type:
    """Return the old version of the class, with other fields."""
    return Type(types.pojo(_CLASS, fields), _CLASS, tuple(dict(zip(fields, row, strict=True)) for row in rows))


def _tuple(names: str, parts: tuple[Any, ...], *rows: tuple[Any, ...]) -> Type:
    found = tuple({f"f{i}": v for i, v in enumerate(row)} for row in rows)
    return Type(types.tuple_of(*parts), f"TUPLE<{names}>", found)


def _row(names: str, parts: tuple[Any, ...], *rows: tuple[Any, ...]) -> Type:
    found = tuple({f"f{i}": v for i, v in enumerate(row)} | {"_kind": "+I"} for row in rows)
    return Type(types.row(*parts), f"ROW<{names}>", found)


def _data(names: str, sql: str, *rows: tuple[Any, ...]) -> Type:
    found = tuple({f"f{i}": v for i, v in enumerate(row)} | {"_kind": "+I"} for row in rows)
    return Type(sql, f"ROWDATA<{names}>", found)


def _scala(name: str, outer: str, *parts: Serializer) -> Serializer:
    """Return a serializer of Flink's Scala API, which 2.x does not have."""
    out = Output()
    out.utf(f"org.apache.flink.api.scala.typeutils.{name}")
    out.i4(3)
    out.i4(COMPOSITE_MAGIC)
    out.i4(2)
    out.utf(outer)
    write_nested(out, parts)
    return snapshot_reader().snapshot(Cursor(bytes(out)))


_OLD_FIELDS: Final = {"street": types.STRING, "town": types.STRING, "zip": types.INT}
_OLD_ROWS: Final = (("s", "a", 1), ("", "b", 2), (None, None, 3))
_NEW_ROWS: Final = (("a", 7, "s"), ("b", 7, ""), (None, 7, None))


def _pojos() -> Iterator[Migration]:
    yield Migration(
        name="pojo-add",
        old=State(element=_pojo({"city": types.STRING, "street": types.STRING}, ("a", "s"), ("", "t"), (None, "u"))),
        new=State(element=_addresses(("a", 0, "s"), ("", 0, "t"), (None, 0, "u"))),
    )
    yield Migration(
        name="pojo-drop",
        old=State(
            element=_pojo(
                {"city": types.STRING, "number": types.INT, "street": types.STRING, "zip": types.INT},
                ("a", 1, "s", 8),
                ("", None, "t", 9),
                (None, 3, "u", 10),
            )
        ),
        new=State(element=_addresses(("a", 1, "s"), ("", None, "t"), (None, 3, "u"))),
        accept=frozenset({"value.zip"}),
    )
    mixed = Migration(
        name="pojo-rename-drop-fill",
        old=State(element=_pojo(_OLD_FIELDS, *_OLD_ROWS)),
        new=State(element=_addresses(*_NEW_ROWS)),
        renames={"value.city": "town"},
        fills={"value.number": 7},
        accept=frozenset({"value.zip"}),
    )
    yield mixed
    for kind, path in (("list", "element"), ("map", "map_value"), ("operator-list", "element"), ("union", "element")):
        key = Type("BIGINT", "LONG", (1, 2, 3)) if kind == "map" else None
        yield replace(
            mixed,
            name=f"pojo-in-{kind}",
            old=replace(mixed.old, kind=kind, map_key=key),
            new=replace(mixed.new, kind=kind, map_key=key),
            renames={f"{path}.city": "town"},
            fills={f"{path}.number": 7},
            accept=frozenset({f"{path}.zip"}),
        )
    yield replace(
        mixed,
        name="pojo-in-broadcast",
        old=replace(mixed.old, kind="broadcast"),
        new=replace(mixed.new, kind="broadcast"),
        renames={"map_value.city": "town"},
        fills={"map_value.number": 7},
        accept=frozenset({"map_value.zip"}),
    )
    yield Migration(
        name="pojo-widen-in-map-key",
        old=State(element=_pojo({"city": types.STRING, "number": types.SHORT, "street": types.STRING}, *_SHORT), kind="map",
                  map_key=Type("INT", "INT", (1, -2, 3))),
        new=State(element=_addresses(*_SHORT), kind="map", map_key=Type("BIGINT", "LONG", (1, -2, 3))),
    )  # fmt: skip
    yield Migration(
        name="tuple-to-pojo",
        old=State(element=_tuple("", (types.STRING, types.SHORT), ("a", 1), ("", -2), ("c", 3))),
        new=State(element=_addresses(("a", 1, None), ("", -2, None), ("c", 3, None))),
        renames={"value.city": "f0", "value.number": "f1"},
    )


_SHORT: Final = (("a", 1, "s"), ("", -2, "t"), (None, 3, "u"))


def _others() -> Iterator[Migration]:
    yield Migration(
        name="tuple-add-widen",
        old=State(element=_tuple("", (types.INT, types.STRING), (1, "a"), (-2, ""), (3, "c"))),
        new=State(
            element=_tuple(
                "LONG,STRING,INT", (types.LONG, types.STRING, types.INT), (1, "a", 5), (-2, "", 5), (3, "c", 5)
            )
        ),
        fills={"value.f2": 5},
        accept=frozenset({"value"}),
    )
    yield Migration(
        name="row-reorder",
        old=State(element=_row("", (types.INT, types.STRING), (1, "a"), (None, ""), (3, None))),
        new=State(
            element=_row("STRING,LONG", (types.STRING, types.LONG), ("a", 1), ("", None), (None, 3)),
        ),
        renames={"value.f0": "f1", "value.f1": "f0"},
    )
    yield Migration(
        name="rowdata-add-widen-drop",
        old=State(element=_data("", "ROW<a INT, b STRING, c DOUBLE>", (1, "a", 0.5), (None, "", 1.5), (3, None, 2.5))),
        new=State(
            element=_data(
                "LONG,STRING,STRING,DOUBLE",
                "ROW<a BIGINT, x STRING, b STRING, d DOUBLE>",
                (1, "new", "a", None),
                (None, "new", "", None),
                (3, "new", None, None),
            )
        ),
        renames={"value.f0": "f0", "value.f2": "f1"},
        fills={"value.f1": "new", "value.f3": None},
        accept=frozenset({"value.f2"}),
    )
    color = "corpus.PublicTypes$Color"
    yield Migration(
        name="enum-constants",
        old=State(element=Type(types.enum(color, ("PINK", "BLUE", "RED")), color, ("PINK", "BLUE", "RED"))),
        new=State(element=Type(types.enum(color, _COLORS), color, ("AMBER", "BLUE", "RED"))),
        constants={"value": {"PINK": "AMBER"}},
    )
    yield Migration(
        name="string-to-enum",
        old=State(element=Type("STRING", "STRING", ("RED", "BLUE", "AMBER"))),
        new=State(element=Type(types.enum(color, _COLORS), color, ("RED", "BLUE", "AMBER"))),
        accept=frozenset({"value"}),
    )
    scala = _scala("TraversableSerializerSnapshot", "scala.collection.immutable.List.newBuilder", types.INT)
    yield Migration(
        name="scala-list",
        old=State(element=Type(scala, "", ([1, 2], [], [3]))),
        new=State(element=Type(types.list_of(types.LONG), "LIST<LONG>", ([1, 2], [], [3]))),
    )
    case_class = _scala("ScalaCaseClassSerializerSnapshot", "com.acme.Place", types.STRING, types.INT)
    yield Migration(
        name="scala-case-class",
        old=State(element=Type(case_class, "", ({"_1": "a", "_2": 1}, {"_1": "", "_2": 2}, {"_1": "c", "_2": 3}))),
        new=State(element=_addresses(("a", 1, None), ("", 2, None), ("c", 3, None))),
        renames={"value.city": "_1", "value.number": "_2"},
    )
    yield Migration(
        name="narrow",
        old=State(element=Type("BIGINT", "", (5, -7, 1 << 30))),
        new=State(element=Type("INT", "INT", (5, -7, 1 << 30))),
        accept=frozenset({"value"}),
    )
    yield Migration(
        name="ttl-on",
        old=State(element=Type("INT", "", (5, -7, 9))),
        new=State(element=Type("BIGINT", "LONG", (5, -7, 9)), ttl=True),
        last_access_ms=1_790_000_000_000,
    )
    yield Migration(
        name="reducing-to-big-integer",
        old=State(element=Type("BIGINT", "", (5, -7, 9)), kind="reducing"),
        new=State(element=Type(types.BIG_INTEGER, "BIGINT", (5, -7, 9)), kind="reducing"),
    )


def _nanos(time: datetime) -> dict[str, Any]:
    """Return a time as columns have it that keep nanoseconds."""
    return {"timestamp": time, "nanos": 0}


def _kinds() -> Iterator[Migration]:
    """Yield states that become another kind, and values that become another type."""
    long = Type("BIGINT", "LONG", (5, -7, 9))
    for before, after in (
        ("value", "list"),
        ("reducing", "value"),
        ("operator-list", "union"),
        ("union", "operator-list"),
    ):
        yield Migration(
            name=f"{before}-to-{after}",
            old=State(element=Type("INT", "INT", (5, -7, 9)), kind=before),
            new=State(element=long, kind=after, repeats=1),
        )
    yield Migration(
        name="reducing-to-aggregating",
        old=State(element=long, kind="reducing"),
        new=State(element=long, kind="aggregating"),
    )
    # The job declares the state of each form with one entry per key, or with maps of one entry.
    text = Type("STRING", "STRING", ("a", "", "c"))
    one = Type(types.map_of("STRING", "INT"), "", tuple([(k, v)] for k, v in zip(text.values, (5, -7, 9), strict=True)))
    maps = Type(types.map_of("STRING", "BIGINT"), "MAP<STRING,LONG>", one.values)
    yield Migration(
        name="map-value-to-map-state",
        old=State(element=one),
        new=State(element=long, kind="map", map_key=text),
    )
    yield Migration(
        name="map-state-to-map-value",
        old=State(element=Type("INT", "", long.values), kind="map", map_key=text),
        new=State(element=maps),
    )
    days = (date(1969, 12, 31), date(2024, 2, 29), date(1, 1, 1))
    yield Migration(
        name="date-to-date-time",
        old=State(element=Type(types.LOCAL_DATE, "LOCALDATE", days)),
        new=State(
            element=Type(
                types.LOCAL_DATE_TIME, "LOCALDATETIME", tuple(_nanos(datetime(d.year, d.month, d.day)) for d in days)
            )
        ),
    )
    times = tuple(_nanos(datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=n)) for n in long.values)
    yield Migration(
        name="instant-to-long",
        old=State(element=Type(types.INSTANT, "INSTANT", times)),
        new=State(element=long),
        accept=frozenset({"value"}),
    )


def later(state: State) -> State:
    """Return a state of a later savepoint: of three keys, the first is unchanged, the second is another one, the third has another value."""
    key, element = state.key, state.element
    keys, (first, second, _) = (key.values[0], 11, key.values[2]), element.values
    return replace(state, key=replace(key, values=keys), element=replace(element, values=(first, first, second)))


def with_choices(plan: MigrationPlan, one: Migration) -> MigrationPlan:
    """Return a plan with the choices for a migration."""
    name = f"{one.name}.s"
    plan = plan.with_choices(name, fills=one.fills, constants=one.constants, last_access_ms=one.last_access_ms)
    plan = plan.renaming({f"{name}.{path}": old for path, old in one.renames.items()})
    return plan.accepting([f"{name}.{path}" for path in one.accept])


MIGRATIONS: Final = (*_pojos(), *_others(), *_kinds())
