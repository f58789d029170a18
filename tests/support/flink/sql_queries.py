"""Pairs of SQL queries, an old one and a new one, and the rows that they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.flink.sql import Input

#: A pair's match: operators of the same kind of node, in their order, as users give them.
BY_KIND: Final = "by kind"
_ORDERS: Final = (
    ("shop", "STRING", "STRING"),
    ("city", "STRING", "STRING NOT NULL"),
    ("qty", "INT", "INT"),
    ("price", "LONG", "BIGINT"),
    ("amount", "BIGDEC", "DECIMAL(10, 2)"),
    ("rate", "DOUBLE", "DOUBLE"),
    ("late", "BOOLEAN", "BOOLEAN"),
    ("day", "LOCALDATE", "DATE"),
    ("at", "LOCALDATETIME", "TIMESTAMP(3)"),
)
INPUTS: Final = (
    Input(name="orders", columns=_ORDERS),
    Input(name="shops", columns=(("name", "STRING", "STRING"), ("town", "STRING", "STRING"), ("size", "INT", "INT"))),
)


def _order(number: int) -> list[Any]:
    """Return a row of orders: few groups, some nulls, and equal values in several rows."""
    shop = f"a shop with the number {number % 3}" if number % 3 else "s0"
    null = number % 7 == 3
    return [
        "INSERT",
        shop,
        ("Oslo", "Rome", "Bonn, a city with a long name")[(number // 2) % 3],
        None if null else number % 5 + 1,
        None if number % 11 == 5 else number * 10**10 % 97 - 40,
        None if null else f"{number % 13}.{number % 4}5",
        None if number % 9 == 8 else (number % 8) / 4,
        None if number % 10 == 9 else number % 2 == 0,
        None if null else f"2026-0{number % 9 + 1}-11",
        f"2026-11-{number % 28 + 1:02}T10:00:0{number % 10}.{number % 5}00",
    ]


_SHOPS: Final = (
    ["INSERT", "s0", "Oslo", 1],
    ["INSERT", "a shop with the number 1", "Rome", 2],
    ["INSERT", "a shop with the number 1", "Paris", 2],
    ["INSERT", "nobody", "Bonn", None],
    ["INSERT", "a shop with the number 2", "Bonn", 3],
    ["INSERT", "s0", "Bergen", 1],
)
#: The first and the second half of the rows, by table.
HALVES: Final[Mapping[str, Mapping[str, list[list[Any]]]]] = {
    "1": {"orders": [_order(i) for i in range(24)], "shops": [*_SHOPS[:4]]},
    "2": {"orders": [_order(i) for i in range(24, 40)], "shops": [*_SHOPS[4:]]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An old query and a new one.

    Attributes
    ----------
    fills, accept
        The user's choices, if the change asks for them.
    match
        Which operators have other ids, or :data:`BY_KIND`.
    """

    name: str
    old: str
    new: str
    old_config: Mapping[str, str] = field(default_factory=dict)
    new_config: Mapping[str, str] = field(default_factory=dict)
    fills: Mapping[str, Any] = field(default_factory=dict)
    accept: tuple[str, ...] = ()
    match: str | Mapping[str, str] | None = None


def _by(aggregates: str, key: str = "shop", where: str = "") -> str:
    group = f" GROUP BY {key}" if key else ""
    return f"SELECT {key}{', ' if key else ''}{aggregates} FROM orders {where}{group}"


def _group(name: str, old: str, new: str, **more: Any) -> Pair:
    """Return a pair of aggregates in one group."""
    return Pair(name=f"group: {name}", old=_by(old), new=_by(new), **more)


_A, _STATE = "COUNT(*) AS n, SUM(price) AS total", "4_group-aggregate.accState.value"


def _drop(*names: str) -> tuple[str, ...]:
    return tuple(f"{_STATE}.{name}" for name in names)


_AGGREGATES: Final = (
    _group("unchanged", _A, _A),
    _group("renamed results", _A, "COUNT(*) AS n2, SUM(price) AS t2"),
    _group("reordered", _A, "SUM(price) AS total, COUNT(*) AS n"),
    _group(
        "reordered, other types",
        "COUNT(*) AS n, SUM(amount) AS s, MAX(`day`) AS d",
        "MAX(`day`) AS d, COUNT(*) AS n, SUM(amount) AS s",
    ),
    _group("removed", _A, "COUNT(*) AS n", accept=_drop("sum(price)")),
    _group("removed the first", _A, "SUM(price) AS total", accept=_drop("count(*)")),
    _group("added SUM", "COUNT(*) AS n", _A),
    _group("added SUM, filled", "COUNT(*) AS n", _A, fills={f"{_STATE}.sum(price)": None}),
    _group("added MAX", _A, f"{_A}, MAX(qty) AS m"),
    _group("added COUNT of a column", _A, f"{_A}, COUNT(price) AS m"),
    _group("added COUNT of a NOT NULL column", _A, f"{_A}, COUNT(city) AS m"),
    _group("another column", "SUM(price) AS total", "SUM(qty) AS total"),
    _group("another expression", "SUM(price * 2) AS total", "SUM(price * 3) AS total"),
    _group(
        "same expression, another place",
        "COUNT(*) AS n, SUM(price * 2) AS total",
        "SUM(price * 2) AS total, SUM(qty) AS q",
        accept=_drop("count(*)"),
        fills={f"{_STATE}.sum(qty)": None},
    ),
    _group("SUM widened by a cast", "SUM(qty) AS total", "SUM(CAST(qty AS BIGINT)) AS total"),
    _group("MAX becomes MIN", "MAX(price) AS m", "MIN(price) AS m"),
    _group("AVG from SUM and COUNT", "SUM(price) AS s, COUNT(price) AS c", "AVG(price) AS a"),
    _group(
        "AVG beside SUM and COUNT",
        "SUM(price) AS s, COUNT(price) AS c",
        "SUM(price) AS s, COUNT(price) AS c, AVG(price) AS a",
    ),
    _group("AVG of INT from SUM and COUNT", "SUM(qty) AS s, COUNT(qty) AS c", "AVG(qty) AS a"),
    _group("AVG of DECIMAL from SUM and COUNT", "SUM(amount) AS s, COUNT(amount) AS c", "AVG(amount) AS a"),
    _group("AVG of DOUBLE from SUM and COUNT", "SUM(rate) AS s, COUNT(rate) AS c", "AVG(rate) AS a"),
    _group("AVG from SUM alone", "SUM(price) AS s", "AVG(price) AS a"),
    _group("AVG from COUNT(*)", "SUM(price) AS s, COUNT(*) AS c", "AVG(price) AS a"),
    _group("SUM from AVG", "AVG(price) AS a", "SUM(price) AS s"),
    _group("SUM and COUNT from AVG", "AVG(price) AS a", "SUM(price) AS s, COUNT(price) AS c"),
    _group("SUM of INT from AVG", "AVG(qty) AS a", "SUM(qty) AS s, COUNT(qty) AS c"),
    _group("SUM of DECIMAL from AVG", "AVG(amount) AS a", "SUM(amount) AS s"),
    _group("filter added", "COUNT(*) AS n", "COUNT(*) FILTER (WHERE late) AS n"),
    _group("filter removed", "SUM(price) FILTER (WHERE late) AS n", "SUM(price) AS n"),
    _group("filter changed", "SUM(price) FILTER (WHERE qty > 2) AS n", "SUM(price) FILTER (WHERE qty > 3) AS n"),
    _group(
        "filters change places",
        "SUM(price) FILTER (WHERE qty > 2) AS n, SUM(price) FILTER (WHERE late) AS m",
        "SUM(price) FILTER (WHERE late) AS m, SUM(price) FILTER (WHERE qty > 2) AS n",
    ),
    _group(
        "AVG with a filter from SUM and COUNT",
        "SUM(price) FILTER (WHERE late) AS s, COUNT(price) FILTER (WHERE late) AS c",
        "AVG(price) FILTER (WHERE late) AS a",
    ),
    _group(
        "AVG with a filter from those without",
        "SUM(price) AS s, COUNT(price) AS c",
        "AVG(price) FILTER (WHERE late) AS a",
    ),
    _group(
        "DISTINCT kept, COUNT added before",
        "COUNT(DISTINCT qty) AS d, COUNT(*) AS n, SUM(price) AS p",
        "SUM(price) AS p, COUNT(*) AS n, COUNT(DISTINCT qty) AS d",
    ),
    _group(
        "DISTINCT changes places",
        "COUNT(DISTINCT qty) AS d, COUNT(DISTINCT price) AS e",
        "COUNT(DISTINCT price) AS e, COUNT(DISTINCT qty) AS d",
    ),
    _group(
        "DISTINCT of equal types changes places",
        "COUNT(DISTINCT shop) AS d, COUNT(DISTINCT city) AS e",
        "COUNT(DISTINCT city) AS e, COUNT(DISTINCT shop) AS d",
    ),
    _group("DISTINCT removed", "COUNT(DISTINCT qty) AS d, COUNT(DISTINCT price) AS e", "COUNT(DISTINCT price) AS e"),
    _group("the last DISTINCT removed", "COUNT(*) AS n, COUNT(DISTINCT price) AS e", "COUNT(*) AS n"),
    _group("DISTINCT added", "COUNT(DISTINCT qty) AS d", "COUNT(DISTINCT qty) AS d, COUNT(DISTINCT price) AS e"),
    _group(
        "SUM DISTINCT added on the same column",
        "COUNT(DISTINCT qty) AS d",
        "COUNT(DISTINCT qty) AS d, SUM(DISTINCT qty) AS s",
    ),
    _group(
        "filters of DISTINCT change places",
        "COUNT(DISTINCT qty) FILTER (WHERE late) AS d, COUNT(DISTINCT qty) AS e",
        "COUNT(DISTINCT qty) AS e, COUNT(DISTINCT qty) FILTER (WHERE late) AS d",
    ),
    _group("filter of DISTINCT added", "COUNT(DISTINCT qty) AS e", "COUNT(DISTINCT qty) FILTER (WHERE late) AS e"),
    _group(
        "FIRST_VALUE and LAST_VALUE change places",
        "FIRST_VALUE(qty) AS f, LAST_VALUE(qty) AS l",
        "LAST_VALUE(qty) AS l, FIRST_VALUE(qty) AS f",
    ),
    _group("LISTAGG moved", "LISTAGG(city) AS l, COUNT(*) AS n", "COUNT(*) AS n, LISTAGG(city) AS l"),
    Pair(name="group: WHERE added", old=_by(_A), new=_by(_A, where="WHERE qty > 2")),
    Pair(name="group: WHERE removed", old=_by(_A, where="WHERE qty > 2"), new=_by(_A)),
    Pair(name="group: WHERE changed", old=_by(_A, where="WHERE qty > 2"), new=_by(_A, where="WHERE qty > 3")),
)

_ALL = "COUNT(*) AS n, COUNT(qty) AS c, SUM(qty) AS q, SUM(price) AS total, SUM(amount) AS s, AVG(price) AS a, AVG(amount) AS b"
_ENDS = "MIN(price) AS p, MAX(amount) AS m, MIN(`day`) AS d, MAX(`at`) AS t, MIN(city) AS c, MAX(late) AS l"


def _keys(name: str, old: str, new: str, aggregates: str = _A, **more: Any) -> Pair:
    """Return a pair of keys of one aggregation."""
    return Pair(name=f"keys: {name}", old=_by(aggregates, old), new=_by(aggregates, new), **more)


_KEYS: Final = (
    _keys("coarser", "shop, city", "shop"),
    _keys("coarser, the other column", "shop, city", "city"),
    _keys("coarser, three to one", "shop, city, late", "city"),
    _keys("coarser, all sums", "shop, city", "shop", _ALL),
    _keys("coarser, MIN and MAX", "shop, city", "shop", _ENDS),
    _keys(
        "coarser, MAX of DOUBLE", "shop, city", "shop", "MAX(rate) AS m", accept=("4_group-aggregate.key.max(rate)",)
    ),
    _keys("coarser, one group", "shop, city", ""),
    _keys(
        "coarser, SUM of DOUBLE", "shop, city", "shop", "SUM(rate) AS s", accept=("4_group-aggregate.key.sum(rate)",)
    ),
    _keys("coarser, DISTINCT", "shop, city", "shop", "COUNT(DISTINCT qty) AS s"),
    _keys("coarser, FIRST_VALUE", "shop, city", "shop", "FIRST_VALUE(qty) AS s"),
    _keys("coarser, LISTAGG", "shop, city", "shop", "LISTAGG(city) AS s"),
    _keys(
        "coarser, filters",
        "shop, city",
        "shop",
        "SUM(price) FILTER (WHERE late) AS s, MAX(qty) FILTER (WHERE qty < 4) AS m",
    ),
    Pair(
        name="keys: coarser and aggregates changed",
        old=_by(_ALL, "shop, city"),
        new=_by("AVG(price) AS a, SUM(qty) AS q, COUNT(*) AS n", "shop"),
        accept=_drop("count(qty)", "sum(price)", "sum(amount)", "avg_sum(amount)", "avg_count(amount)"),
    ),
    _keys("reordered", "shop, city", "city, shop"),
    _keys("finer", "shop", "shop, city"),
    _keys("another column", "shop", "city"),
    _keys("one of an expression", "shop, city", "UPPER(shop)"),
)

TTL: Final = {"table.exec.state.ttl": "1 d"}
MINI_BATCH: Final = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "20 ms",
    "table.exec.mini-batch.size": "100",
}
_TWO: Final = {"4_group-aggregate": "6_global-group-aggregate"}
_ONE_PHASE: Final = {**MINI_BATCH, "table.optimizer.agg-phase-strategy": "ONE_PHASE"}


def _option(name: str, old: Mapping[str, str], new: Mapping[str, str], aggregates: str = _A, **more: Any) -> Pair:
    """Return a pair of options of one query."""
    query = _by(aggregates)
    return Pair(name=f"options: {name}", old=query, new=query, old_config=old, new_config=new, **more)


_OPTIONS: Final = (
    _option("TTL added", {}, TTL),
    _option("TTL changed", TTL, {"table.exec.state.ttl": "2 d"}),
    _option("TTL removed", TTL, {}, accept=("4_group-aggregate.accState.value",)),
    _option("mini-batch on, one phase", {}, _ONE_PHASE, match="auto"),
    _option("mini-batch off, one phase", _ONE_PHASE, {}, match="auto"),
    _option("mini-batch on, two phases", {}, MINI_BATCH, match=_TWO),
    _option("mini-batch off, two phases", MINI_BATCH, {}, match={b: a for a, b in _TWO.items()}),
    _option("mini-batch on, AVG", {}, MINI_BATCH, "AVG(price) AS a, COUNT(*) AS n", match=_TWO),
    _option("mini-batch on, DISTINCT", {}, MINI_BATCH, "COUNT(DISTINCT price) AS a", match=_TWO),
)


def _join(name: str, old: str, new: str, **more: Any) -> Pair:
    return Pair(name=f"join: {name}", old=f"SELECT {old}", new=f"SELECT {new}", match=BY_KIND, **more)


_ON: Final = "FROM orders AS o JOIN shops AS s ON o.shop = s.name"
_LEFT: Final = _ON.replace("JOIN", "LEFT JOIN")
_THREE: Final = "o.shop, o.price, s.town"
_JOINS: Final = (
    _join("unchanged", f"{_THREE} {_ON}", f"{_THREE} {_ON}"),
    _join("columns reordered", f"o.shop, o.price, o.qty, s.town {_ON}", f"s.town, o.qty, o.price, o.shop {_ON}"),
    _join("column removed", f"o.shop, o.price, o.qty, s.town {_ON}", f"{_THREE} {_ON}"),
    _join("column removed on the right", f"{_THREE}, s.size {_ON}", f"{_THREE} {_ON}"),
    _join("column removed of an outer join", f"o.shop, o.price, o.qty, s.town {_LEFT}", f"{_THREE} {_LEFT}"),
    _join("column added", f"{_THREE} {_ON}", f"o.shop, o.price, o.qty, s.town {_ON}"),
    _join("inner to left", f"{_THREE} {_ON}", f"{_THREE} {_LEFT}"),
    _join("left to inner", f"{_THREE} {_LEFT}", f"{_THREE} {_ON}"),
    _join(
        "other condition of an outer join",
        f"o.qty, s.size, {_THREE} {_LEFT}",
        f"o.qty, s.size, {_THREE} {_LEFT} AND o.qty > s.size",
    ),
    _join("inputs swapped", f"{_THREE} {_ON}", f"{_THREE} FROM shops AS s JOIN orders AS o ON o.shop = s.name"),
    _join("condition added", f"o.city, {_THREE} {_ON}", f"o.city, {_THREE} {_ON} AND o.city = s.town"),
    _join("other condition", f"o.qty, s.size, {_THREE} {_ON}", f"o.qty, s.size, {_THREE} {_ON} AND o.qty > s.size"),
)


def _top(name: str, old: str, new: str, **more: Any) -> Pair:
    return Pair(name=f"top: {name}", old=old, new=new, **more)


def _ranked(order: str, ranks: str, columns: str = "shop, city, price") -> str:
    inner = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY shop ORDER BY {order}) AS r FROM orders"
    return f"SELECT {columns} FROM ({inner}) WHERE r <= {ranks}"


_TOPS: Final = (
    _top("unchanged", _ranked("price DESC", "2"), _ranked("price DESC", "2")),
    _top("more rows", _ranked("price DESC", "2"), _ranked("price DESC", "3")),
    _top("fewer rows", _ranked("price DESC", "3"), _ranked("price DESC", "2")),
    _top("another order", _ranked("price DESC", "2"), _ranked("price ASC", "2")),
    _top("another column", _ranked("price DESC", "2"), _ranked("qty DESC", "2")),
    _top("rank column added", _ranked("price DESC", "2"), _ranked("price DESC", "2", "shop, city, price, r")),
    _top(
        "column removed",
        _ranked("price DESC", "2"),
        _ranked("price DESC", "2", "shop, price"),
        accept=("4_rank.data-state-with-append.map_value.element.city",),
    ),
    _top("column added", _ranked("price DESC", "2", "shop, price"), _ranked("price DESC", "2")),
)

_COUNTS: Final = "SELECT n, COUNT(*) AS c, SUM(total) AS t{} FROM (SELECT shop, {} AS n, SUM(price) AS total FROM orders GROUP BY shop) GROUP BY n"
_CHANGES: Final = (
    Pair(
        name="retracted: removed",
        old=_COUNTS.format("", "COUNT(*)"),
        new=_COUNTS.format("", "COUNT(*)").replace("COUNT(*) AS c, ", ""),
    ),
    Pair(
        name="retracted: MAX added",
        old=_COUNTS.format("", "COUNT(*)"),
        new=_COUNTS.format(", MAX(total) AS m", "COUNT(*)"),
    ),
    Pair(
        name="retracted: MAX moved",
        old=_COUNTS.format(", MAX(total) AS m", "COUNT(*)"),
        new=_COUNTS.format(", MAX(total) AS m", "COUNT(*)").replace("COUNT(*) AS c, ", ""),
    ),
    Pair(
        name="retracted: AVG from SUM",
        old=_COUNTS.format(", COUNT(total) AS m", "COUNT(*)"),
        new=_COUNTS.format("", "COUNT(*)").replace("SUM(total)", "AVG(total)"),
    ),
    Pair(
        name="retracted: the inner groups changed",
        old=_COUNTS.format("", "COUNT(*)"),
        new=_COUNTS.format("", "COUNT(*)").replace("GROUP BY shop", "GROUP BY shop, city"),
    ),
    Pair(
        name="retracted: coarser",
        old=_COUNTS.format("", "COUNT(*)").replace("GROUP BY n", "GROUP BY n, MOD(total, 2)"),
        new=_COUNTS.format("", "COUNT(*)"),
    ),
)


def _named(name: str, old: str, new: str, query: str, **more: Any) -> Pair:
    """Return a pair of inner queries that give the same names to other values, or other names to the same ones."""
    return Pair(name=f"named: {name}", old=query.format(old), new=query.format(new), **more)


_TOTAL: Final = "SELECT shop, SUM(x) AS t, COUNT(*) AS n FROM (SELECT {} FROM orders) GROUP BY shop"
_BOTH: Final = "SELECT shop, SUM(a) AS s, MAX(b) AS m FROM (SELECT shop, {} FROM orders) GROUP BY shop"
_KEYED: Final = "SELECT k, COUNT(*) AS n FROM (SELECT {} AS k FROM orders) GROUP BY k"
_UNION: Final = "SELECT shop, SUM(x) AS t FROM (SELECT shop, qty AS x FROM orders UNION ALL SELECT name, {} AS x FROM shops) GROUP BY shop"
_INNER: Final = (
    "SELECT n, SUM(t) AS s FROM (SELECT shop, COUNT(*) AS n, SUM(price) AS p, COUNT(price) AS c, {} FROM orders GROUP BY shop)"
    " GROUP BY n"
)
_OVER: Final = (
    "SELECT shop, MAX(x) AS m FROM (SELECT shop, {} AS x FROM (SELECT shop, qty, price, PROCTIME() AS pt FROM orders)"
    " WINDOW w AS (PARTITION BY shop ORDER BY pt)) GROUP BY shop"
)
_TOP_X: Final = (
    "SELECT shop, x FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY shop ORDER BY x DESC) AS r FROM (SELECT shop, {} AS x FROM orders))"
    " WHERE r <= 2"
)
_SELF: Final = "SELECT a.shop, SUM({}) AS s, MAX({}) AS m FROM orders AS a JOIN orders AS b ON a.shop = b.shop AND a.city <> b.city GROUP BY a.shop"
_NAMED: Final = (
    _named("another expression", "shop, price * 2 AS x", "shop, price * 3 AS x", _TOTAL),
    Pair(
        name="named: another name",
        old=_TOTAL.format("shop, price AS x"),
        new=_TOTAL.format("shop, price AS y").replace("SUM(x)", "SUM(y)"),
    ),
    _named("swapped", "qty AS a, CHAR_LENGTH(city) AS b", "CHAR_LENGTH(city) AS a, qty AS b", _BOTH),
    _named("another key", "UPPER(shop)", "LOWER(shop)", _KEYED),
    _named(
        "another key, mini-batch", "UPPER(shop)", "LOWER(shop)", _KEYED, old_config=MINI_BATCH, new_config=MINI_BATCH
    ),
    _named("another branch of a union", "size", "size * 10", _UNION),
    _named("an inner aggregate", "AVG(price) AS t", "MAX(price) AS t", _INNER),
    _named("a result of OVER", "SUM(qty) OVER w", "SUM(price) OVER w", _OVER),
    _named("the order of Top-N", "qty", "0 - qty", _TOP_X),
    Pair(name="named: sides of a self join", old=_SELF.format("a.qty", "b.qty"), new=_SELF.format("b.qty", "a.qty")),
)

_SETS: Final = "SELECT shop, city, COUNT(*) AS n FROM orders GROUP BY {}"
_GROUPING_SETS: Final = (
    Pair(name="sets: more", old=_SETS.format("ROLLUP(shop, city)"), new=_SETS.format("CUBE(shop, city)")),
    Pair(
        name="sets: fewer columns",
        old=_SETS.format("ROLLUP(shop, city)"),
        new=_SETS.format("ROLLUP(shop)").replace("shop, city,", "shop,", 1),
    ),
    Pair(
        name="sets: aggregates reordered",
        old=_SETS.format("ROLLUP(shop, city)").replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(price) AS t"),
        new=_SETS.format("ROLLUP(shop, city)").replace("COUNT(*) AS n", "SUM(price) AS t, COUNT(*) AS n"),
    ),
    Pair(
        name="sets: removed",
        old=_SETS.format("ROLLUP(shop, city)"),
        new=_SETS.format("shop, city"),
        match={"5_group-aggregate": "4_group-aggregate"},
    ),
)

FIRST_PAIRS: Final[tuple[Pair, ...]] = (
    *_AGGREGATES,
    *_KEYS,
    *_OPTIONS,
    *_JOINS,
    *_TOPS,
    *_CHANGES,
    *_NAMED,
    *_GROUPING_SETS,
)
