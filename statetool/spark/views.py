"""Tables as temporary views, each read only when queried.

A snapshot may have sixty tables. To create a view, Spark analyzes its plan several times and runs a command with its events: some twenty
milliseconds in a warm JVM, and three times that in a cold one. Nothing is left to analyze in these plans. So if the session belongs to this
process, the nodes of each plan are built in the same way as Spark would, and put into its catalog. This interface of Spark is not public:
if a release lacks a part of it, views are created with Spark's public API. Tests check that both ways produce the same plans.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from py4j.protocol import Py4JError

from statetool.io.threads import in_threads
from statetool.spark.frames import is_small, local_limit, plan_for_tasks, reader, row_limit, split_ids_frame
from statetool.spark.schema import spark_schema
from statetool.spark.workers import check_workers
from statetool.tables.request import ScanRequest
from statetool.tables.scan import TableScan

_THREADS: Final = 8
_NAME: Final = re.compile(r"\W", re.ASCII)
#: Errors of a session without these classes and methods: Spark Connect has no ``sparkContext``, other releases have other arguments.
_NOT_THERE: Final = (AttributeError, ImportError, NotImplementedError, TypeError, Py4JError)


def register_views(
    spark: Any, prefix: str, tables: Sequence[tuple[str, str, Any]], *, local_bytes: int | None = None
) -> list[str]:
    """Create a temporary view per ``(operator, table, Operator)`` and return their names; each is read only when queried."""
    names = _view_names(prefix, [(operator, table) for operator, table, _ in tables])
    limit = local_limit(spark, local_bytes)
    views = [
        (name, plan_for_tasks(spark, operator.plan, ScanRequest.of(table)))
        for name, (_, table, operator) in zip(names, tables, strict=True)
    ]
    check_workers(spark)
    try:
        put = _catalog_of(spark)
        for name, scan in views:
            put(name, scan, one_task=is_small(scan, limit))
    except _NOT_THERE:
        for _ in in_threads(lambda view: _create(spark, *view, one_task=is_small(view[1], limit)), views, _THREADS):
            pass
    return names


def _create(spark: Any, name: str, scan: TableScan, *, one_task: bool) -> None:
    """Create a view with Spark's public API.

    A small table is read in one task followed by a shuffle, so that it is read completely before a LIMIT begins. A LIMIT that is satisfied
    early would stop the worker while it reads, and the next query would start another one.
    """
    frame = split_ids_frame(spark, len(scan.splits), one_task=one_task).mapInArrow(
        reader(scan.splits, row_limit(spark)), spark_schema(scan.schema)
    )
    (frame.repartition(1) if one_task else frame).createOrReplaceTempView(name)


def _catalog_of(spark: Any) -> Callable[..., None]:
    """Return a function equivalent to :func:`_create` that builds the nodes of the plan itself."""
    from pyspark.util import PythonEvalType

    context, session = spark.sparkContext, spark._jsparkSession
    jvm = context._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    # Each name of a package is a call to the JVM, so they are looked up once.
    python_udf, new_id = catalyst.expressions.PythonUDF, catalyst.expressions.NamedExpression.newExprId
    map_in_arrow, repartition = catalyst.plans.logical.MapInArrow, catalyst.plans.logical.Repartition
    attributes, identifier = catalyst.types.DataTypeUtils.toAttributes, catalyst.TableIdentifier
    helper = _scala_object(jvm, "org.apache.spark.sql.execution.command.ViewHelper")
    none, nil = _scala_object(jvm, "scala.None"), _scala_object(jvm, "scala.collection.immutable.Nil")
    no_view = _scala_object(jvm, "scala.collection.immutable.Map").empty().withDefaultValue(none)
    numbers_of = _scala_object(jvm, "org.apache.spark.sql.catalyst.plans.logical.Range")
    catalog = session.sessionState().catalog()
    has_cached = not session.sharedState().cacheManager().isEmpty()
    function_of = _functions_of(context)
    row_bytes = row_limit(spark)

    @cache
    def source(count: int, one_task: bool) -> tuple[Any, Any]:
        """Return the plan of :func:`~statetool.spark.frames.split_ids_frame`: the first one takes a session a third of a second to analyze."""
        plan = numbers_of.apply(0, count, 1, 1 if one_task else max(1, count))
        return plan, plan.output()

    def put(name: str, scan: TableScan, *, one_task: bool) -> None:
        schema = spark_schema(scan.schema)
        function = function_of(reader(scan.splits, row_bytes), schema)
        kind = session.parseDataType(schema.json())
        child, columns = source(len(scan.splits), one_task)
        call = python_udf("read", function, kind, columns, PythonEvalType.SQL_MAP_ARROW_ITER_UDF, True, new_id())
        plan = map_in_arrow(call, attributes(kind), child, False, none)
        if one_task:
            plan = repartition(1, True, plan)
        relation = helper.createTemporaryViewRelation(
            identifier(name), session, True, no_view, none, plan, plan, nil, none
        )
        if has_cached:
            spark.catalog.dropTempView(name)  # also clears the cached data of the view
        catalog.createTempView(name, relation, True)

    return put


def _functions_of(context: Any) -> Callable[[Any, Any], Any]:
    """Return an equivalent of ``_wrap_function`` that queries shared settings once; large functions (broadcasts) still use the original."""
    from pyspark.serializers import CloudPickleSerializer
    from pyspark.sql.udf import _wrap_function

    python_function, pickler = context._jvm.SimplePythonFunction, CloudPickleSerializer()
    most = context._jvm.PythonUtils.getBroadcastThreshold(context._jsc)
    plain = _wrap_function(context, len)
    shared = (plain.envVars(), plain.pythonIncludes(), context.pythonExec, context.pythonVer, plain.broadcastVars())

    def function_of(function: Any, schema: Any) -> Any:
        pickled = pickler.dumps((function, schema))
        if len(pickled) > most:
            return _wrap_function(context, function, schema)
        return python_function(bytearray(pickled), *shared, context._javaAccumulator)

    return function_of


def _scala_object(jvm: Any, name: str) -> Any:
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")


def _view_names(prefix: str, tables: Sequence[tuple[str, str]]) -> list[str]:
    wanted = [_NAME.sub("_", f"{prefix}_{operator}_{table}").lower() for operator, table in tables]
    taken = set(wanted)
    names: list[str] = []
    for plain in wanted:
        name, n = plain, 1
        while name in names or (name != plain and name in taken):
            n += 1
            name = f"{plain}_{n}"
        names.append(name)
    return names
