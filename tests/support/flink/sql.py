"""SQL jobs in real Flink: they read rows, take a savepoint, and continue from one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.flink.machine import FlinkMachine

Row = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input table.

    Attributes
    ----------
    columns
        Name, type of the stream's rows (see ``Types.java``) and SQL type of each column.
    watermark
        SQL expression of the watermark of the first column, if any.
    """

    name: str
    columns: tuple[tuple[str, str, str], ...]
    watermark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query over input tables; the same query always makes the same job, so its savepoint can be restored."""

    inputs: tuple[Input, ...]
    sql: str


def run_query(
    flink: FlinkMachine,
    query: Query,
    rows: Mapping[str, Sequence[Row]],
    *,
    results: int,
    backend: str = "hashmap",
    snapshot: Path | None = None,
    savepoint: Path | None = None,
    parallelism: int = 1,
    max_parallelism: int = 128,
    config: Mapping[str, str] | None = None,
    planned: bool = False,
    quiet_ms: int | None = None,
) -> dict[str, Any]:
    """Run a query, from a snapshot if one is given, until it has produced ``results`` results.

    Parameters
    ----------
    rows
        Rows by table: the row kind (``INSERT``, ...), then the columns.
    savepoint
        Folder for a savepoint, taken after all results.
    planned
        Run the compiled plan of the query, as ``EXECUTE PLAN`` does, with insert-only tables.
    quiet_ms
        Wait until no result came for this time. ``results`` may then be less than all.

    Returns
    -------
    dict
        ``results``: the changes, as ``{"$row": [...], "kind": ...}``; ``savepoint``: its path; ``plan``: the compiled plan, if planned.

    Raises
    ------
    FlinkRefusedError
        Flink failed, or produced another number of results.
    """
    tables = [
        {"name": i.name, "columns": i.columns, "watermark": i.watermark, "rows": rows.get(i.name, ())}
        for i in query.inputs
    ]
    return flink.call(
        "sql",
        query=query.sql,
        tables=tables,
        results=results,
        backend=backend,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        planned=planned,
        snapshot=None if snapshot is None else str(snapshot),
        savepoint=None if savepoint is None else str(savepoint),
        config={"table.local-time-zone": "UTC", **(config or {})},
        **({} if quiet_ms is None else {"quiet_ms": quiet_ms}),
    )


TOTALS = Query(
    inputs=(Input(name="orders", columns=(("shop", "STRING", "STRING"), ("amount", "LONG", "BIGINT"))),),
    sql="SELECT shop, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY shop",
)
JOINED = Query(
    inputs=(
        Input(name="orders", columns=(("shop", "STRING", "STRING"), ("amount", "LONG", "BIGINT"))),
        Input(name="shops", columns=(("name", "STRING", "STRING"), ("city", "STRING", "STRING"))),
    ),
    sql="SELECT o.shop, o.amount, s.city FROM orders AS o JOIN shops AS s ON o.shop = s.name",
)
TYPES = Query(
    inputs=(
        Input(
            name="t",
            columns=(
                ("id", "LONG", "BIGINT"),
                ("name", "STRING", "STRING"),
                ("price", "BIGDEC", "DECIMAL(10,2)"),
                ("wide", "BIGDEC", "DECIMAL(30,4)"),
                ("day", "LOCALDATE", "DATE"),
                ("at", "LOCALDATETIME", "TIMESTAMP(3)"),
                ("fine", "LOCALDATETIME", "TIMESTAMP(9)"),
                ("moment", "INSTANT", "TIMESTAMP_LTZ(3)"),
                ("flag", "BOOLEAN", "BOOLEAN"),
                ("number", "INT", "INT"),
                ("x", "DOUBLE", "DOUBLE"),
            ),
        ),
        Input(name="s", columns=(("id", "LONG", "BIGINT"), ("v", "STRING", "STRING"))),
    ),
    sql="SELECT t.*, s.v FROM t JOIN s ON t.id = s.id",
)
NESTED = Query(
    inputs=(
        Input(
            name="t",
            columns=(("id", "LONG", "BIGINT"), ("name", "STRING", "STRING"), ("wide", "BIGDEC", "DECIMAL(30,4)")),
        ),
        Input(name="s", columns=(("id", "LONG", "BIGINT"), ("v", "STRING", "STRING"))),
    ),
    sql="SELECT a.*, s.v FROM (SELECT id, ARRAY[name, 'x'] AS names, MAP[name, wide] AS prices, ROW(name, id) AS pair, "
    "ARRAY[MAP[name, id]] AS maps FROM t) AS a JOIN s ON a.id = s.id",
)
LATEST = Query(
    inputs=(
        Input(
            name="t",
            columns=(
                ("shop", "STRING", "STRING"),
                ("price", "BIGDEC", "DECIMAL(20,4)"),
                ("moment", "INSTANT", "TIMESTAMP_LTZ(9)"),
                ("day", "LOCALDATE", "DATE"),
            ),
        ),
    ),
    sql="SELECT shop, SUM(price) AS total, MAX(moment) AS latest, MIN(`day`) AS earliest, COUNT(*) AS n FROM t GROUP BY shop",
)
#: Flink 2.1 and later.
VARIANTS = Query(
    inputs=(
        Input(name="t", columns=(("id", "LONG", "BIGINT"), ("text", "STRING", "STRING"))),
        Input(name="s", columns=(("id", "LONG", "BIGINT"), ("v", "STRING", "STRING"))),
    ),
    sql="SELECT a.id, a.j, s.v FROM (SELECT id, PARSE_JSON(`text`) AS j FROM t) AS a JOIN s ON a.id = s.id",
)
