"""Rules of SQL expressions in Spark: like conditions in DuckDB, they are expressions of one row with a lasting result.

Spark runs the query of a change several times, in parts. So ``now()`` would be another moment for each, and a value from other rows that of
another read. The rules are checked on Spark's own plans of an expression: as parsed, as analyzed, and after the optimizer's rules that put
in the current time, user and database. Only a session with a JVM shows these.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import functions as f

from statetool.errors import OptionError, UnsupportedError
from statetool.spark.private import is_remote

_ZONE: Final = "spark.sql.session.timeZone"
#: Held while a session has another time zone.
_IN_UTC: Final = threading.Lock()
_OPTIMIZER: Final = "org.apache.spark.sql.catalyst.optimizer"
_STAR: Final = "org.apache.spark.sql.catalyst.analysis.Star"
_PROJECT: Final = "org.apache.spark.sql.catalyst.plans.logical.Project"
_HINT: Final = "use columns of the same key, and constants such as TIMESTAMP '2026-01-31 12:00:00'"


@contextmanager
def in_utc(spark: Any) -> Iterator[None]:
    """Analyze expressions in UTC: Spark puts the session's time zone into them when a DataFrame is made.

    One thread at a time: another one would take UTC for the session's time zone, and leave it there.

    Raises
    ------
    UnsupportedError
        A Spark Connect server analyzes them again with each query, in the time zone of that moment.
    """
    if is_remote(spark):
        raise UnsupportedError(
            "SQL expressions in a session of Spark Connect, which does not show how it understands them",
            hint="pass a function of the DataFrame instead, or use a session with a JVM",
        )
    with _IN_UTC:
        zone = spark.conf.get(_ZONE)
        spark.conf.set(_ZONE, "UTC")
        try:
            yield
        finally:
            spark.conf.set(_ZONE, zone)


def check_row_expression(frame: Any, sql: str) -> None:
    """Refuse an expression that is not one of single rows of a DataFrame, or whose result does not last.

    Raises
    ------
    OptionError
        It has a subquery, an aggregate, a window function, a generator or a star, or depends on chance, time or session.
    pyspark.errors.AnalysisException
        It is not valid.
    """
    spark, jvm = frame.sparkSession, frame.sparkSession.sparkContext._jvm
    state = spark._jsparkSession.sessionState()
    if _has_star(spark, state.sqlParser().parseExpression(sql)):
        raise _refusal(sql, "names all columns by *")
    plan = frame.select(f.expr(sql))._jdf.queryExecution().analyzed()
    if plan.getClass().getName() != _PROJECT or not plan.child().equals(frame._jdf.queryExecution().analyzed()):
        raise _refusal(sql, "has an aggregate, a window function or a generator, but is evaluated for each key alone")
    if not plan.subqueries().isEmpty():
        raise _refusal(sql, "has a subquery, but is evaluated for each key alone")
    columns = plan.projectList()
    lasting = all(columns.apply(i).deterministic() for i in range(columns.size()))
    rules = getattr(jvm, _OPTIMIZER)
    plain = _apply(jvm, "ReplaceExpressions", plan)
    lasting = lasting and all(
        _apply(jvm, rule, plain).equals(plain) for rule in ("ComputeCurrentTime", "SpecialDatetimeValues")
    )
    if not lasting or not rules.ReplaceCurrentLike(state.catalogManager()).apply(plain).equals(plain):
        raise _refusal(sql, "has a result that changes with each evaluation or session")


def _apply(jvm: Any, rule: str, plan: Any) -> Any:
    """Apply a rule of the optimizer, which is a Scala object."""
    return getattr(getattr(jvm, f"{_OPTIMIZER}.{rule}$"), "MODULE$").apply(plan)


def _has_star(spark: Any, expression: Any) -> bool:
    from py4j.java_gateway import is_instance_of

    if is_instance_of(spark.sparkContext._gateway, expression, _STAR):
        return True
    children = expression.children()
    return any(_has_star(spark, children.apply(i)) for i in range(children.size()))


def _refusal(sql: str, what: str) -> OptionError:
    return OptionError(f"the expression {sql!r} {what}", hint=_HINT)
