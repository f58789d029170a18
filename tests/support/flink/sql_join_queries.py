"""Pairs of SQL queries with joins: columns, kinds, keys, sides, unique keys, names and options."""

from __future__ import annotations

from typing import Any, Final

from tests.support.flink.sql_queries import BY_KIND, MINI_BATCH, TTL, Pair

_ON: Final = "ON o.shop = s.name"
_BASE: Final = "o.shop, o.city, o.price, s.name, s.town"
_THREE: Final = "o.shop, o.price, s.town"
#: Maxima of shops: one row per shop, and per shop and city.
_BY_SHOP: Final = "(SELECT shop, MAX(price) AS m FROM orders GROUP BY shop) AS o"
_BY_CITY: Final = "(SELECT shop, city, MAX(price) AS m FROM orders GROUP BY shop, city) AS o"


def _join(
    name: str,
    old: tuple[str, str],
    new: tuple[str, str],
    on: tuple[str, str] = (_ON, _ON),
    left: str = "orders AS o",
    right: str = "shops AS s",
    **more: Any,
) -> Pair:
    """Return a pair of joins; each side has columns, and the kind of the join."""
    queries = [f"SELECT {c} FROM {left} {k} {right} {o}" for (c, k), o in zip((old, new), on, strict=True)]
    return Pair(name=f"joins: {name}", old=queries[0], new=queries[1], match=BY_KIND, **more)


def _kinds(name: str, old: str, new: str, columns: str = _THREE, **more: Any) -> Pair:
    return _join(name, (columns, f"{old}JOIN"), (columns, f"{new}JOIN"), **more)


_COLUMNS: Final = (
    _join("columns removed on both sides", (f"{_BASE}, o.qty, s.size", "JOIN"), (_THREE, "JOIN")),
    _join("only the key remains", (_THREE, "JOIN"), ("o.shop, s.town", "JOIN")),
    _join("rows become equal", ("o.shop, o.city, o.price, s.town", "JOIN"), ("o.shop, o.city, s.town", "JOIN")),
    _join("rows of both sides become equal", (_BASE, "JOIN"), ("o.shop, o.city, s.name", "JOIN")),
    _join("another expression after it", (_THREE, "JOIN"), ("o.shop, o.price + 1 AS x, s.town", "JOIN")),
    _join("column added on the right", (_THREE, "JOIN"), (f"{_THREE}, s.size", "JOIN")),
    _join("another column", (_THREE, "JOIN"), ("o.shop, o.qty, s.town", "JOIN")),
    _join("column removed on the right of LEFT", (f"{_THREE}, s.size", "LEFT JOIN"), (_THREE, "LEFT JOIN")),
    _join("column removed of FULL", (f"{_BASE}, o.qty", "FULL JOIN"), (_THREE, "FULL JOIN")),
    _join(
        "column removed, with a condition",
        (f"{_THREE}, o.qty, s.size, o.city", "LEFT JOIN"),
        (f"{_THREE}, o.qty, s.size", "LEFT JOIN"),
        on=(f"{_ON} AND o.qty > s.size", f"{_ON} AND o.qty > s.size"),
    ),
    _join("all types", ("o.*, s.town", "JOIN"), ("o.shop, o.amount, o.rate, o.late, o.`day`, o.`at`, s.town", "JOIN")),
    _join("dropped all but a DOUBLE", ("o.shop, o.rate, o.city, s.town", "JOIN"), ("o.shop, o.rate, s.town", "JOIN")),
)

_SIZES: Final = ("ON o.qty = s.size", "ON o.qty = s.size")
_SEMI: Final = (
    "SELECT o.shop, o.price{} FROM orders AS o WHERE {}EXISTS (SELECT * FROM shops AS s WHERE s.name = o.shop)"
)
_KINDS: Final = (
    _kinds("INNER to RIGHT", "", "RIGHT "),
    _kinds("INNER to FULL", "", "FULL "),
    _kinds("LEFT to FULL", "LEFT ", "FULL "),
    _kinds("FULL to LEFT", "FULL ", "LEFT "),
    _kinds("FULL to INNER", "FULL ", ""),
    _kinds("RIGHT to INNER", "RIGHT ", ""),
    _kinds("LEFT to RIGHT", "LEFT ", "RIGHT "),
    _kinds("INNER to LEFT by a key with nulls", "", "LEFT ", f"{_THREE}, o.qty, s.size", on=_SIZES),
    _kinds("INNER to FULL by a key with nulls", "", "FULL ", f"{_THREE}, o.qty, s.size", on=_SIZES),
    _kinds(
        "INNER to LEFT, nulls are equal",
        "",
        "LEFT ",
        f"{_THREE}, o.qty, s.size",
        on=("ON o.qty IS NOT DISTINCT FROM s.size", "ON o.qty IS NOT DISTINCT FROM s.size"),
    ),
    _kinds(
        "nulls become equal",
        "LEFT ",
        "LEFT ",
        f"{_THREE}, o.qty, s.size",
        on=("ON o.qty = s.size", "ON o.qty IS NOT DISTINCT FROM s.size"),
    ),
    _kinds(
        "nulls become equal, INNER",
        "",
        "",
        f"{_THREE}, o.qty, s.size",
        on=("ON o.qty = s.size", "ON o.qty IS NOT DISTINCT FROM s.size"),
    ),
    _kinds(
        "INNER to LEFT with a condition",
        "",
        "LEFT ",
        f"{_THREE}, o.qty, s.size",
        on=(f"{_ON} AND o.qty > s.size", f"{_ON} AND o.qty > s.size"),
    ),
    _kinds(
        "LEFT to INNER with a condition",
        "LEFT ",
        "",
        f"{_THREE}, o.qty, s.size",
        on=(f"{_ON} AND o.qty > s.size", f"{_ON} AND o.qty > s.size"),
    ),
    _kinds(
        "INNER to LEFT with a function as condition",
        "",
        "LEFT ",
        f"{_THREE}, o.city",
        on=(f"{_ON} AND CHAR_LENGTH(o.city) > CHAR_LENGTH(s.town)",) * 2,
    ),
    _join("INNER to LEFT, column removed", (_BASE, "JOIN"), (_THREE, "LEFT JOIN")),
    _join("INNER to FULL, rows become equal", (_BASE, "JOIN"), ("o.shop, o.city, s.name", "FULL JOIN")),
    _join("LEFT to INNER, column removed", (_BASE, "LEFT JOIN"), (_THREE, "JOIN")),
    Pair(name="joins: semi, column removed", old=_SEMI.format(", o.qty", ""), new=_SEMI.format("", ""), match=BY_KIND),
    Pair(name="joins: semi to anti", old=_SEMI.format("", ""), new=_SEMI.format("", "NOT "), match=BY_KIND),
    Pair(
        name="joins: anti, column removed",
        old=_SEMI.format(", o.qty", "NOT "),
        new=_SEMI.format("", "NOT "),
        match=BY_KIND,
    ),
    Pair(
        name="joins: INNER to semi",
        old=f"SELECT o.shop, o.price FROM orders AS o JOIN shops AS s {_ON}",
        new=_SEMI.format("", ""),
        match=BY_KIND,
    ),
    Pair(
        name="joins: semi to INNER",
        old=_SEMI.format("", ""),
        new=f"SELECT o.shop, o.price FROM orders AS o JOIN shops AS s {_ON}",
        match=BY_KIND,
    ),
    Pair(
        name="joins: LEFT to semi",
        old=f"SELECT o.shop, o.price FROM orders AS o LEFT JOIN shops AS s {_ON} AND o.price > 0",
        new=_SEMI.format("", ""),
        match=BY_KIND,
    ),
)


def _keys(name: str, old: str, new: str, kind: str = "JOIN", columns: str = _BASE, **more: Any) -> Pair:
    return _join(f"key: {name}", (columns, kind), (columns, kind), on=(f"ON {old}", f"ON {new}"), **more)


_KEYS: Final = (
    _keys("another", "o.shop = s.name", "o.city = s.town"),
    _keys("longer", "o.shop = s.name", "o.shop = s.name AND o.city = s.town"),
    _keys("shorter", "o.shop = s.name AND o.city = s.town", "o.shop = s.name"),
    _keys("reordered", "o.shop = s.name AND o.city = s.town", "o.city = s.town AND o.shop = s.name"),
    _keys("another on the right", "o.shop = s.name", "o.shop = s.town"),
    _keys("another on the left", "o.shop = s.name", "o.city = s.name"),
    _keys("another type", "o.shop = s.name", "o.qty = s.size", columns=f"{_BASE}, o.qty, s.size"),
    _keys("another of LEFT", "o.shop = s.name", "o.city = s.town", "LEFT JOIN"),
    _keys("longer, the column is missing", "o.shop = s.name", "o.shop = s.name AND o.qty = s.size"),
    _keys("an expression", "o.shop = s.name", "o.shop = UPPER(s.name)"),
    _join(
        "key: another and other columns removed",
        (f"{_BASE}, o.qty", "JOIN"),
        ("o.shop, o.city, s.town, s.name", "JOIN"),
        on=("ON o.shop = s.name", "ON o.city = s.town"),
    ),
    _join(
        "key: another and the old one removed",
        (_BASE, "JOIN"),
        ("o.city, o.price, s.town", "JOIN"),
        on=("ON o.shop = s.name", "ON o.city = s.town"),
    ),
)


def _sides(name: str, old: str, new: str, **more: Any) -> Pair:
    return Pair(name=f"joins: sides: {name}", old=old, new=new, match=BY_KIND, **more)


_A, _B = "(SELECT shop AS k, qty AS v FROM orders) AS {}", "(SELECT name AS k, size AS v FROM shops) AS {}"
_SELF: Final = "SELECT a.shop, a.{}, b.{} FROM orders AS a JOIN orders AS b ON a.shop = b.shop AND a.city <> b.city"
_SIDES: Final = (
    _sides(
        "swapped",
        f"SELECT {_THREE} FROM orders AS o JOIN shops AS s {_ON}",
        f"SELECT {_THREE} FROM shops AS s JOIN orders AS o {_ON}",
    ),
    _sides(
        "swapped, LEFT to RIGHT",
        f"SELECT {_THREE} FROM orders AS o LEFT JOIN shops AS s {_ON}",
        f"SELECT {_THREE} FROM shops AS s RIGHT JOIN orders AS o {_ON}",
    ),
    _sides(
        "swapped and LEFT",
        f"SELECT {_BASE} FROM orders AS o JOIN shops AS s {_ON}",
        f"SELECT {_THREE} FROM shops AS s LEFT JOIN orders AS o {_ON}",
    ),
    _sides(
        "swapped with the same names",
        f"SELECT a.k, a.v, b.v AS w FROM {_A.format('a')} JOIN {_B.format('b')} ON a.k = b.k",
        f"SELECT a.k, a.v, b.v AS w FROM {_B.format('a')} JOIN {_A.format('b')} ON a.k = b.k",
    ),
    _sides(
        "swapped with the same names and types, LEFT",
        f"SELECT a.k, a.v, b.v AS w FROM {_A.format('a')} LEFT JOIN {_B.format('b')} ON a.k = b.k",
        f"SELECT a.k, a.v, b.v AS w FROM {_B.format('a')} LEFT JOIN {_A.format('b')} ON a.k = b.k",
    ),
    _sides("self join, columns exchanged", _SELF.format("qty", "price"), _SELF.format("price", "qty")),
    _sides("self join, the same column", _SELF.format("qty", "price"), _SELF.format("qty", "qty")),
    _sides("self join, column removed", _SELF.format("qty, a.late", "price"), _SELF.format("qty", "price")),
    _sides("self join, column of neither", _SELF.format("qty", "price"), _SELF.format("qty", "amount")),
    _sides(
        "self join, LEFT", _SELF.format("qty", "price"), _SELF.format("qty", "price").replace(" JOIN", " LEFT JOIN")
    ),
    _sides(
        "self join, other rows of one side",
        _SELF.format("qty", "price"),
        _SELF.format("qty", "price").replace("JOIN orders", "JOIN (SELECT * FROM orders WHERE late)"),
    ),
)

_NAMES: Final = (
    _join("names exchanged after it", (_THREE, "JOIN"), ("o.shop AS town, o.price, s.town AS shop", "JOIN")),
    _join(
        "names exchanged before it",
        ("o.shop, o.v, o.w, s.town", "JOIN"),
        ("o.shop, o.v, o.w, s.town", "JOIN"),
        left="(SELECT shop, qty AS v, CHAR_LENGTH(city) AS w FROM orders) AS o",
    ),
    Pair(
        name="joins: values exchanged under the same names",
        old=f"SELECT o.shop, o.v, o.w, s.town FROM (SELECT shop, qty AS v, CHAR_LENGTH(city) AS w FROM orders) AS o JOIN shops AS s {_ON}",
        new=f"SELECT o.shop, o.v, o.w, s.town FROM (SELECT shop, CHAR_LENGTH(city) AS v, qty AS w FROM orders) AS o JOIN shops AS s {_ON}",
        match=BY_KIND,
    ),
    Pair(
        name="joins: another expression under the same name",
        old=f"SELECT o.shop, o.v, s.town FROM (SELECT shop, MAX(price * 2) AS v FROM orders GROUP BY shop) AS o JOIN shops AS s {_ON}",
        new=f"SELECT o.shop, o.v, s.town FROM (SELECT shop, MAX(price * 3) AS v FROM orders GROUP BY shop) AS o JOIN shops AS s {_ON}",
        match=BY_KIND,
    ),
    Pair(
        name="joins: another key under the same name",
        old=f"SELECT o.shop, o.price, s.town FROM (SELECT UPPER(shop) AS shop, price FROM orders) AS o JOIN shops AS s {_ON}",
        new=f"SELECT o.shop, o.price, s.town FROM (SELECT LOWER(shop) AS shop, price FROM orders) AS o JOIN shops AS s {_ON}",
        match=BY_KIND,
    ),
    Pair(
        name="joins: another branch of a union",
        old=f"SELECT {_THREE} FROM (SELECT shop, price FROM orders UNION ALL SELECT name, 1 FROM shops) AS o JOIN shops AS s {_ON}",
        new=f"SELECT {_THREE} FROM (SELECT shop, price FROM orders UNION ALL SELECT town, 1 FROM shops) AS o JOIN shops AS s {_ON}",
        match=BY_KIND,
    ),
    Pair(
        name="joins: WHERE added before it",
        old=f"SELECT {_THREE} FROM orders AS o JOIN shops AS s {_ON}",
        new=f"SELECT {_THREE} FROM orders AS o JOIN shops AS s {_ON} WHERE s.town <> 'Rome'",
        match=BY_KIND,
    ),
    Pair(
        name="joins: WHERE removed before it, column removed",
        old=f"SELECT {_BASE} FROM orders AS o JOIN shops AS s {_ON} WHERE s.town <> 'Rome'",
        new=f"SELECT {_THREE} FROM orders AS o JOIN shops AS s {_ON}",
        match=BY_KIND,
    ),
)


def _unique(name: str, left: str, old: tuple[str, str, str], new: tuple[str, str, str]) -> Pair:
    """Return a pair of joins whose left side has a unique key; each has columns, the kind, and the key."""
    return _join(f"unique: {name}", old[:2], new[:2], on=(f"ON {old[2]}", f"ON {new[2]}"), left=left)


_SHOP, _CITY, _BOTH = "o.shop = s.name", "o.city = s.town", "o.shop = s.name AND o.city = s.town"
_MAXIMA: Final = "o.shop, o.city, o.m, s.town"
_UNIQUE: Final = (
    _unique(
        "in the key, column removed",
        _BY_SHOP,
        ("o.shop, o.m, s.town, s.size", "JOIN", _SHOP),
        ("o.shop, o.m, s.town", "JOIN", _SHOP),
    ),
    _unique(
        "in the key, INNER to LEFT",
        _BY_SHOP,
        ("o.shop, o.m, s.town", "JOIN", _SHOP),
        ("o.shop, o.m, s.town", "LEFT JOIN", _SHOP),
    ),
    _unique(
        "in the key, LEFT to INNER",
        _BY_SHOP,
        ("o.shop, o.m, s.town", "LEFT JOIN", _SHOP),
        ("o.shop, o.m, s.town", "JOIN", _SHOP),
    ),
    _unique(
        "in the key, INNER to FULL",
        _BY_SHOP,
        ("o.shop, o.m, s.town", "JOIN", _SHOP),
        ("o.shop, o.m, s.town", "FULL JOIN", _SHOP),
    ),
    _unique("beside the key, INNER to LEFT", _BY_CITY, (_MAXIMA, "JOIN", _SHOP), (_MAXIMA, "LEFT JOIN", _SHOP)),
    _unique("beside the key, LEFT to INNER", _BY_CITY, (_MAXIMA, "LEFT JOIN", _SHOP), (_MAXIMA, "JOIN", _SHOP)),
    _unique("beside the key, another key", _BY_CITY, (_MAXIMA, "JOIN", _SHOP), (_MAXIMA, "JOIN", _CITY)),
    _unique("lost", _BY_CITY, (_MAXIMA, "JOIN", _SHOP), ("o.shop, o.m, s.town", "JOIN", _SHOP)),
    _unique("gained", _BY_CITY, ("o.shop, o.m, s.town", "JOIN", _SHOP), (_MAXIMA, "JOIN", _SHOP)),
    _unique("becomes part of the key", _BY_CITY, (_MAXIMA, "JOIN", _SHOP), (_MAXIMA, "JOIN", _BOTH)),
    _unique("no longer part of the key", _BY_CITY, (_MAXIMA, "JOIN", _BOTH), (_MAXIMA, "JOIN", _SHOP)),
    Pair(
        name="joins: unique: input becomes distinct",
        old=f"SELECT o.shop, s.town FROM (SELECT shop, city FROM orders) AS o JOIN shops AS s {_ON}",
        new=f"SELECT o.shop, s.town FROM (SELECT DISTINCT shop, city FROM orders) AS o JOIN shops AS s {_ON}",
        match=BY_KIND,
    ),
)

_HINT: Final = "/*+ STATE_TTL('o' = '1d', 's' = '2d') */ "
_DAY: Final = {**TTL}
_MORE: Final = (
    Pair(
        name="joins: options: STATE_TTL added",
        old=f"SELECT {_THREE} FROM orders AS o JOIN shops AS s {_ON}",
        new=f"SELECT {_HINT}{_THREE} FROM orders AS o JOIN shops AS s {_ON}",
        match=BY_KIND,
    ),
    _join("options: column removed, with TTL", (_BASE, "JOIN"), (_THREE, "JOIN"), old_config=_DAY, new_config=_DAY),
    _join(
        "options: INNER to LEFT, with TTL",
        (_THREE, "JOIN"),
        (_THREE, "LEFT JOIN"),
        old_config=_DAY,
        new_config=_DAY,
        accept=("7_join.partners",),
    ),
    _join("options: column removed, TTL added", (_BASE, "JOIN"), (_THREE, "JOIN"), new_config=_DAY),
    _join("options: mini-batch on", (_THREE, "JOIN"), (_THREE, "JOIN"), new_config=MINI_BATCH),
    _join("options: mini-batch on, column removed", (_BASE, "JOIN"), (_THREE, "JOIN"), new_config=MINI_BATCH),
    _join(
        "options: mini-batch, INNER to LEFT",
        (_BASE, "JOIN"),
        (_THREE, "LEFT JOIN"),
        old_config=MINI_BATCH,
        new_config=MINI_BATCH,
    ),
    Pair(
        name="joins: an aggregation after it, INNER to LEFT",
        old=f"SELECT s.town, SUM(o.price) AS t FROM orders AS o JOIN shops AS s {_ON} GROUP BY s.town",
        new=f"SELECT s.town, SUM(o.price) AS t FROM orders AS o LEFT JOIN shops AS s {_ON} GROUP BY s.town",
        match=BY_KIND,
    ),
    Pair(
        name="joins: an aggregation after it, column removed",
        old=f"SELECT s.town, SUM(o.price) AS t, MAX(o.qty) AS m FROM orders AS o JOIN shops AS s {_ON} GROUP BY s.town",
        new=f"SELECT s.town, SUM(o.price) AS t FROM orders AS o JOIN shops AS s {_ON} GROUP BY s.town",
        accept=("10_group-aggregate.accState.value.max(qty)",),
        match=BY_KIND,
    ),
    Pair(
        name="joins: an aggregation after it, another key on the right",
        old=f"SELECT o.shop, COUNT(*) AS n FROM orders AS o JOIN shops AS s {_ON} GROUP BY o.shop",
        new="SELECT o.shop, COUNT(*) AS n FROM orders AS o JOIN shops AS s ON o.shop = s.town GROUP BY o.shop",
        match=BY_KIND,
    ),
    Pair(
        name="joins: an aggregation after it, nulls become equal",
        old="SELECT o.shop, COUNT(*) AS n FROM orders AS o JOIN shops AS s ON o.qty = s.size GROUP BY o.shop",
        new="SELECT o.shop, COUNT(*) AS n FROM orders AS o JOIN shops AS s ON o.qty IS NOT DISTINCT FROM s.size GROUP BY o.shop",
        match=BY_KIND,
    ),
    Pair(
        name="joins: two, column removed",
        old=f"SELECT {_BASE}, t.size FROM orders AS o JOIN shops AS s {_ON} JOIN shops AS t ON s.town = t.town",
        new=f"SELECT {_THREE}, t.size FROM orders AS o JOIN shops AS s {_ON} JOIN shops AS t ON s.town = t.town",
        match=BY_KIND,
    ),
    Pair(
        name="joins: two, the first becomes LEFT",
        old=f"SELECT {_BASE}, t.size FROM orders AS o JOIN shops AS s {_ON} JOIN shops AS t ON o.city = t.town",
        new=f"SELECT {_BASE}, t.size FROM orders AS o LEFT JOIN shops AS s {_ON} JOIN shops AS t ON o.city = t.town",
        match=BY_KIND,
    ),
    Pair(
        name="joins: two, the second becomes LEFT",
        old=f"SELECT {_BASE}, t.size FROM orders AS o JOIN shops AS s {_ON} JOIN shops AS t ON o.city = t.town",
        new=f"SELECT {_BASE}, t.size FROM orders AS o JOIN shops AS s {_ON} LEFT JOIN shops AS t ON o.city = t.town",
        match=BY_KIND,
    ),
)

JOIN_PAIRS: Final = (*_COLUMNS, *_KINDS, *_KEYS, *_SIDES, *_NAMES, *_UNIQUE, *_MORE)

_SELF_SUM: Final = "SELECT a.shop, SUM({}.price) AS t FROM orders AS a JOIN orders AS b ON a.shop = b.shop AND a.price > b.price GROUP BY a.shop"
_EXCHANGED: Final = "SELECT shop, SUM(z) AS t FROM (SELECT shop, qty AS z FROM orders WHERE {} UNION ALL SELECT shop, CHAR_LENGTH(city) AS z FROM orders WHERE {}) GROUP BY shop"
_UNNESTED: Final = "SELECT shop, SUM(qty) AS t, COUNT(*) AS n FROM (SELECT shop, qty FROM (SELECT shop, qty, {} AS w FROM orders) CROSS JOIN UNNEST(w) AS u(e)) GROUP BY shop"
_MULTI: Final = {"table.optimizer.multi-join.enabled": "true"}
_THREE_WAYS: Final = "SELECT /*+ MULTI_JOIN(o, s, t) */ o.shop, {} AS z FROM orders AS o JOIN shops AS s ON o.qty = s.size JOIN shops AS t ON o.qty = t.size"
#: Pairs whose plans have the same names at the same positions, for other values.
POSITION_PAIRS: Final = (
    Pair(
        name="positions: the other side of a self join before an aggregation",
        old=_SELF_SUM.format("a"),
        new=_SELF_SUM.format("b"),
        match=BY_KIND,
    ),
    Pair(
        name="positions: filters of a union exchanged",
        old=_EXCHANGED.format("price > 2", "qty > 1"),
        new=_EXCHANGED.format("qty > 1", "price > 2"),
        match=BY_KIND,
    ),
    Pair(
        name="positions: another array unnested",
        old=_UNNESTED.format("ARRAY[qty]"),
        new=_UNNESTED.format("ARRAY[qty, qty]"),
        match=BY_KIND,
    ),
    Pair(
        name="positions: another column of a multi-way join",
        old=_THREE_WAYS.format("s.name"),
        new=_THREE_WAYS.format("s.town"),
        old_config=_MULTI,
        new_config=_MULTI,
        match=BY_KIND,
    ),
)
