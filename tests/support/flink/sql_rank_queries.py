"""Pairs of SQL queries with Top-N, deduplication and other operators: number of rows, order, columns, strategies and names."""

from __future__ import annotations

from typing import Any, Final

from tests.support.flink.sql_queries import BY_KIND, TTL, Pair

_ORDERS: Final = "orders"
_SUMS: Final = "(SELECT shop, city, SUM(price) AS t FROM orders GROUP BY shop, city)"
_BY_QTY: Final = "(SELECT shop, qty, COUNT(*) AS n FROM orders GROUP BY shop, qty)"
_TIMES: Final = "(SELECT shop, city, qty, price, PROCTIME() AS pt FROM orders)"


def _ranked(order: str, ranks: str, columns: str, table: str = _ORDERS, key: str = "PARTITION BY shop ") -> str:
    inner = f"SELECT *, ROW_NUMBER() OVER ({key}ORDER BY {order}) AS r FROM {table}"
    return f"SELECT {columns} FROM ({inner}) WHERE r {ranks}"


def _pair(
    name: str,
    old: tuple[str, str],
    new: tuple[str, str],
    columns: tuple[str, str] = ("shop, city, price",) * 2,
    table: str = _ORDERS,
    **more: Any,
) -> Pair:
    """Return a pair of Top-N; each has an order, and a condition of the rank."""
    queries = [_ranked(*side, one, table) for side, one in zip((old, new), columns, strict=True)]
    return Pair(name=f"tops: {name}", old=queries[0], new=queries[1], match=BY_KIND, **more)


def _fewer(name: str, order: str, columns: str) -> Pair:
    return _pair(f"fewer rows by {name}", (order, "<= 3"), (order, "<= 2"), (columns,) * 2)


_P: Final = "price DESC"
_APPENDED: Final = (
    _pair("3 to 1", (_P, "<= 3"), (_P, "<= 1")),
    _pair("1 to 2", (_P, "<= 1"), (_P, "<= 2")),
    _pair("1, another order", (_P, "<= 1"), ("price ASC", "<= 1")),
    _pair("1, column removed", (_P, "<= 1"), (_P, "<= 1"), ("shop, city, price", "shop, price")),
    _pair("4 to 1, column removed", (_P, "<= 4"), (_P, "<= 1"), ("shop, city, price", "shop, price")),
    _pair("the first rank left out", (_P, "<= 3"), (_P, "BETWEEN 2 AND 3")),
    _pair("from the second, fewer rows", (_P, "BETWEEN 2 AND 4"), (_P, "BETWEEN 2 AND 3")),
    _pair("fewer rows with ranks", (_P, "<= 3"), (_P, "<= 2"), ("shop, city, price, r",) * 2),
    _pair("fewer rows, ranks added", (_P, "<= 3"), (_P, "<= 2"), ("shop, city, price", "shop, city, price, r")),
    _pair("fewer rows, ranks removed", (_P, "<= 3"), (_P, "<= 2"), ("shop, city, price, r", "shop, city, price")),
    _pair("ranks removed", (_P, "<= 2"), (_P, "<= 2"), ("shop, city, price, r", "shop, city, price")),
    _fewer("two columns", "city ASC, price DESC", "shop, city, price"),
    _fewer("text", "city DESC", "shop, city, price"),
    _fewer("DATE", "`day` ASC", "shop, `day`, city"),
    _fewer("DECIMAL", "amount DESC", "shop, amount, city"),
    _fewer("TIMESTAMP", "`at` DESC", "shop, `at`, city"),
    _fewer("BOOLEAN", "late ASC", "shop, late, city"),
    _fewer("DOUBLE", "rate DESC", "shop, rate, city"),
    _fewer("INT with nulls first", "qty ASC NULLS FIRST", "shop, qty, city"),
    _fewer("INT with nulls last", "qty ASC NULLS LAST", "shop, qty, city"),
    _fewer("INT descending, nulls first", "qty DESC NULLS FIRST", "shop, qty, city"),
    _pair("nulls last", ("qty ASC NULLS FIRST", "<= 2"), ("qty ASC NULLS LAST", "<= 2"), ("shop, qty, city",) * 2),
    _pair("a second order", (_P, "<= 2"), ("price DESC, city ASC", "<= 2")),
    _pair("fewer rows and columns", (_P, "<= 3"), (_P, "<= 2"), ("shop, city, price", "shop, price")),
    _pair("fewer rows, another order", (_P, "<= 3"), ("qty DESC", "<= 2"), ("shop, city, qty, price",) * 2),
    _pair("names exchanged", (_P, "<= 2"), (_P, "<= 2"), ("shop, city, price", "shop AS city, city AS shop, price")),
    Pair(
        name="tops: another key",
        old=_ranked(_P, "<= 2", "shop, city, price"),
        new=_ranked(_P, "<= 2", "shop, city, price", key="PARTITION BY city "),
        match=BY_KIND,
    ),
    Pair(
        name="tops: fewer rows without a key",
        old=_ranked(_P, "<= 4", "shop, city, price", key=""),
        new=_ranked(_P, "<= 2", "shop, city, price", key=""),
        match=BY_KIND,
    ),
    Pair(
        name="tops: fewer rows, WHERE added",
        old=_ranked(_P, "<= 3", "shop, city, price"),
        new=_ranked(_P, "<= 2", "shop, city, price", "(SELECT * FROM orders WHERE late)"),
        match=BY_KIND,
    ),
    Pair(
        name="tops: fewer rows with TTL",
        old=_ranked(_P, "<= 3", "shop, city, price"),
        new=_ranked(_P, "<= 2", "shop, city, price"),
        old_config=TTL,
        new_config=TTL,
        match=BY_KIND,
    ),
)


def _sums(
    name: str,
    old: tuple[str, str],
    new: tuple[str, str],
    columns: tuple[str, str] = ("shop, city, t",) * 2,
    **more: Any,
) -> Pair:
    return _pair(f"retracted: {name}", old, new, columns, _SUMS, **more)


def _counts(name: str, old: tuple[str, str], new: tuple[str, str], ranks: str = "") -> Pair:
    return _pair(f"updated: {name}", old, new, (f"shop, qty, n{ranks}",) * 2, _BY_QTY)


_T, _N = "t DESC", "n DESC"
_CHANGING: Final = (
    _sums("unchanged", (_T, "<= 2"), (_T, "<= 2")),
    _sums("more rows", (_T, "<= 1"), (_T, "<= 2")),
    _sums("fewer rows", (_T, "<= 2"), (_T, "<= 1")),
    _sums("ranks added", (_T, "<= 2"), (_T, "<= 2"), ("shop, city, t", "shop, city, t, r")),
    _sums("more rows with ranks", (_T, "<= 1"), (_T, "<= 2"), ("shop, city, t, r",) * 2),
    _sums("another order", (_T, "<= 2"), ("t ASC", "<= 2"), accept=("6_rank.order",)),
    _sums("another column", (_T, "<= 2"), ("city ASC", "<= 2"), accept=("6_rank.order",)),
    _sums("more columns in the order", (_T, "<= 2"), ("city DESC, t ASC", "<= 1"), accept=("6_rank.order",)),
    _sums("column removed", (_T, "<= 2"), (_T, "<= 2"), ("shop, city, t", "shop, t")),
    _sums("the first rank left out", (_T, "<= 2"), (_T, "= 2")),
    _counts("unchanged", (_N, "<= 2"), (_N, "<= 2")),
    _counts("fewer rows", (_N, "<= 2"), (_N, "<= 1")),
    _counts("3 to 2", (_N, "<= 3"), (_N, "<= 2")),
    _counts("more rows", (_N, "<= 2"), (_N, "<= 3")),
    _counts("fewer rows with ranks", (_N, "<= 3"), (_N, "<= 2"), ", r"),
    _counts("another order", (_N, "<= 2"), ("n ASC", "<= 2")),
    Pair(
        name="tops: input becomes retracted",
        old=_ranked("price DESC", "<= 2", "shop, city, price"),
        new=_ranked(
            "price DESC",
            "<= 2",
            "shop, city, price",
            "(SELECT shop, city, SUM(price) AS price FROM orders GROUP BY shop, city)",
        ),
        match=BY_KIND,
    ),
    Pair(
        name="tops: input is no longer retracted",
        old=_ranked(
            "price DESC",
            "<= 2",
            "shop, city, price",
            "(SELECT shop, city, SUM(price) AS price FROM orders GROUP BY shop, city)",
        ),
        new=_ranked("price DESC", "<= 2", "shop, city, price"),
        match=BY_KIND,
    ),
)


def _single(name: str, old: str, new: str, columns: tuple[str, str] = ("shop, city, price",) * 2, **more: Any) -> Pair:
    """Return a pair of deduplications by processing time."""
    queries = [_ranked(order, "= 1", one, _TIMES) for order, one in zip((old, new), columns, strict=True)]
    return Pair(name=f"single: {name}", old=queries[0], new=queries[1], match=BY_KIND, **more)


_SINGLE: Final = (
    _single("first row", "pt ASC", "pt ASC"),
    _single("last row", "pt DESC", "pt DESC"),
    _single("first becomes last", "pt ASC", "pt DESC"),
    _single("last becomes first", "pt DESC", "pt ASC"),
    _single("first row, column removed", "pt ASC", "pt ASC", ("shop, city, price", "shop, price")),
    _single(
        "last row, column removed",
        "pt DESC",
        "pt DESC",
        ("shop, city, price", "shop, price"),
        accept=("4_deduplicate.deduplicate-state.value.city",),
    ),
    _single("last row, columns reordered", "pt DESC", "pt DESC", ("shop, city, price", "price, city, shop")),
    _single("last row, column added", "pt DESC", "pt DESC", ("shop, price", "shop, city, price")),
    _single("last becomes first, with TTL", "pt DESC", "pt ASC", old_config=TTL, new_config=TTL),
    Pair(
        name="single: another key",
        old=_ranked("pt DESC", "= 1", "shop, city, price", _TIMES),
        new=_ranked("pt DESC", "= 1", "shop, city, price", _TIMES, key="PARTITION BY city "),
        match=BY_KIND,
    ),
    Pair(
        name="single: first row becomes the first two",
        old=_ranked("pt ASC", "= 1", "shop, city, price", _TIMES),
        new=_ranked("pt ASC", "<= 2", "shop, city, price", _TIMES),
        match={"4_deduplicate": "4_rank"},
    ),
)

_OVER: Final = "SELECT shop, {} FROM (SELECT shop, qty, price, PROCTIME() AS pt FROM orders) WINDOW w AS (PARTITION BY shop ORDER BY pt{})"
_OTHERS: Final = (
    Pair(
        name="over: unchanged",
        old=_OVER.format("SUM(price) OVER w AS t", ""),
        new=_OVER.format("SUM(price) OVER w AS t", ""),
    ),
    Pair(
        name="over: another column",
        old=_OVER.format("SUM(price) OVER w AS t", ""),
        new=_OVER.format("SUM(qty) OVER w AS t", ""),
    ),
    Pair(
        name="over: RANGE becomes ROWS",
        old=_OVER.format("SUM(price) OVER w AS t", " RANGE UNBOUNDED PRECEDING"),
        new=_OVER.format("SUM(price) OVER w AS t", " ROWS UNBOUNDED PRECEDING"),
        match=BY_KIND,
    ),
    Pair(
        name="over: rows multiplied by another array before an aggregation",
        old="SELECT shop, COUNT(*) AS n FROM orders CROSS JOIN UNNEST(ARRAY[1, qty]) AS t (x) GROUP BY shop",
        new="SELECT shop, COUNT(*) AS n FROM orders CROSS JOIN UNNEST(ARRAY[1, 2, qty]) AS t (x) GROUP BY shop",
        match=BY_KIND,
    ),
    Pair(
        name="over: bounds added",
        old=_OVER.format("SUM(price) OVER w AS t", ""),
        new=_OVER.format("SUM(price) OVER w AS t", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        match=BY_KIND,
    ),
    Pair(
        name="over: bounds further apart",
        old=_OVER.format("SUM(price) OVER w AS t", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        new=_OVER.format("SUM(price) OVER w AS t", " ROWS BETWEEN 4 PRECEDING AND CURRENT ROW"),
        match=BY_KIND,
    ),
    Pair(
        name="over: other bounds",
        old=_OVER.format("SUM(price) OVER w AS t", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        new=_OVER.format("SUM(price) OVER w AS t", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        match=BY_KIND,
    ),
)

RANK_PAIRS: Final = (*_APPENDED, *_CHANGING, *_SINGLE, *_OTHERS)
