"""Private parts of Spark and PySpark: sessions reach into the JVM, and into PySpark's modules.

What each saves, on two cores:

- :func:`view_writer` creates the 56 views of the demo's tables in 1 second instead of 10, and again in 0.2 instead of 3.
- :func:`source_writer` registers the data sources in 2 seconds instead of 12, most of which Spark spends on a search for others.
- :func:`without_zip` and the imports of :mod:`statetool.spark.daemon` save a second in the first task of each worker.
- The archive of :mod:`statetool.spark.java_classes` saves a third of the start of a session.
- The folder of :func:`session_folder` lets tasks on one machine pass entries to each other without Spark's shuffle.

The other functions look up what only the JVM knows. All of them return ``None`` where a session or a release lacks a part, and with
``STATETOOL_PLAIN=spark``. Callers then use the public API, or do without.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from importlib.machinery import PathFinder
from pathlib import Path
from subprocess import Popen
from typing import Any, Final, Protocol

from statetool.io.switches import is_plain

_ZIP: Final = Path("python", "lib", "pyspark.zip")
_CONVERT: Final = "convert_exception"


class ViewWriter(Protocol):
    """Function that puts a view into a session's catalog. The first of its ``stages`` reads the numbers from 0 to ``count``.

    A stage is a function, the schema of its rows, and the number of partitions that they are dealt to, ``None`` if they are not. The view
    writer raises errors of :func:`missing_part` in a release with other classes or methods.
    """

    def __call__(
        self, name: str, count: int, stages: Sequence[tuple[Any, Any, int | None]], *, one_task: bool
    ) -> None: ...


def is_remote(spark: Any) -> bool:
    """Return True if a session is a Spark Connect client, whose server has the workers and the files."""
    return "connect" in type(spark).__module__


def running_context() -> Any | None:
    """Return the context of this process, ``None`` if it has none, or one without a JVM yet or any longer. Public accessors create one."""
    from pyspark import SparkContext

    context = None if is_plain("spark") else getattr(SparkContext, "_active_spark_context", None)
    return context if getattr(context, "_jsc", None) is not None else None


def missing_part() -> tuple[type[Exception], ...]:
    """Return the errors of a session without a class or method: other releases have other arguments."""
    from py4j.protocol import Py4JError

    return AttributeError, ImportError, NotImplementedError, TypeError, Py4JError


# ---- views ----------------------------------------------------------------------------------------------------------


def view_writer(spark: Any) -> ViewWriter | None:
    """Return a function that creates temporary views like ``createOrReplaceTempView``.

    A snapshot may have sixty tables. To create a view, Spark analyzes its plan several times and runs a command with its events. Nothing is
    left to analyze in the plans of tables. So the nodes of each plan are built in the same way as Spark would, and put into its catalog.
    Tests check that both ways produce the same plans.
    """
    if is_plain("spark") or is_remote(spark):
        return None
    missing = missing_part()
    try:
        return _view_writer(spark)
    except missing:
        return None


def _view_writer(spark: Any) -> ViewWriter:
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

    @lru_cache(maxsize=256)
    def source(count: int, one_task: bool) -> tuple[Any, Any]:
        """Return the plan of ``spark.range``: the first one takes a session a third of a second to analyze."""
        plan = numbers_of.apply(0, count, 1, 1 if one_task else max(1, count))
        return plan, plan.output()

    def put(name: str, count: int, stages: Sequence[tuple[Any, Any, int | None]], *, one_task: bool) -> None:
        plan, columns = source(count, one_task)
        for function, schema, partitions in stages:
            kind = session.parseDataType(schema.json())
            udf = function_of(function, schema)
            call = python_udf(
                function.__name__, udf, kind, columns, PythonEvalType.SQL_MAP_ARROW_ITER_UDF, True, new_id()
            )
            plan = map_in_arrow(call, attributes(kind), plan, False, none)
            columns = plan.output()
            if partitions is not None:
                plan = repartition(partitions, True, plan)
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


# ---- data sources ---------------------------------------------------------------------------------------------------


def source_writer(spark: Any) -> Callable[[Any], None] | None:
    """Return a function that registers a data source like ``spark.dataSource.register``.

    That first starts a Python process that looks for data sources of other packages. Otherwise Spark does so when a query names an unknown
    data source.
    """
    if is_plain("spark") or is_remote(spark):
        return None
    import pyspark

    missing = missing_part()
    try:
        from pyspark.sql.udf import _wrap_function

        manager = spark._jsparkSession.sessionState().dataSourceManager()
        field = manager.getClass().getDeclaredField("runtimeDataSourceBuilders")
        field.setAccessible(True)
        known, context = field.get(manager), spark.sparkContext
        kind = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"
        java_class = getattr(context._jvm, kind)
    except missing:
        return None

    # PySpark 4.0 cannot copy a session, as it does for each cached frame, if a source has the name of one that Spark found itself.
    keep_found = pyspark.__version__.startswith("4.0.")

    def register(source: Any) -> None:
        if not (keep_found and manager.dataSourceExists(source.name())):
            known[source.name()] = java_class(_wrap_function(context, source))

    return register


# ---- lookups in the JVM ---------------------------------------------------------------------------------------------


def jvm_heap_bytes(spark: Any) -> int | None:
    """Return the largest heap of the driver's JVM."""
    if is_plain("spark") or is_remote(spark):
        return None
    return int(spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory())


def default_file_system(spark: Any) -> str | None:
    """Return the URI of the file system of paths without a scheme."""
    if is_plain("spark") or is_remote(spark):
        return None
    return str(spark._jsc.hadoopConfiguration().get("fs.defaultFS") or "file:///")


def has_file_system(spark: Any, scheme: str) -> bool | None:
    """Return True if Hadoop has a file system for a scheme."""
    if is_plain("spark") or is_remote(spark):
        return None
    from py4j.protocol import Py4JJavaError

    try:
        spark._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, spark._jsc.hadoopConfiguration())
    except Py4JJavaError:
        return False
    return True


def hadoop_version(spark: Any) -> str:
    """Return the version of Hadoop, in a session for which :func:`has_file_system` knows."""
    return str(spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion())


def jvm_process(spark: Any) -> Popen[bytes]:
    """Return the process of a session's JVM, which exits when its standard input is closed."""
    process: Popen[bytes] = spark.sparkContext._gateway.proc
    return process


def session_folder(spark: Any) -> str | None:
    """Return a folder that Spark deletes with the session, on the machine that runs all tasks; ``None`` if tasks run on several machines.

    A cluster may have a single machine, too, but its executors need not share files.
    """
    context = None if is_plain("spark") or is_remote(spark) else getattr(spark, "sparkContext", None)
    if context is None or not is_local_master(context.master):
        return None
    folder = getattr(context, "_temp_dir", None)
    return str(folder) if folder is not None and Path(folder).is_dir() else None


def is_local_master(master: str) -> bool:
    """Return True if tasks run in the JVM of the driver."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


# ---- PySpark --------------------------------------------------------------------------------------------------------


def worker_python(spark: Any) -> str | None:
    """Return the Python of workers on this machine, by name or path; ``None`` if they run elsewhere."""
    if is_plain("spark") or is_remote(spark):
        return None
    context = spark.sparkContext
    return str(context.pythonExec) if context.master.startswith("local") else None


def convert_errors(spark: Any, own_error: Callable[[str], Exception | None]) -> None:
    """Make PySpark raise ``own_error`` of the text of an error, if it is not ``None``, from this call on.

    The conversion of errors of the JVM is the only place to intervene, because queries run in methods of Spark's DataFrames.
    """
    if is_plain("spark"):
        return
    name = "pyspark.sql.connect.client.core" if is_remote(spark) else "pyspark.errors.exceptions.captured"
    module = importlib.import_module(name)
    convert: Callable[..., Exception] | None = getattr(module, _CONVERT, None)
    if convert is None or hasattr(convert, "__wrapped__"):
        return

    @wraps(convert)
    def convert_error(*args: Any, **kwargs: Any) -> Exception:
        error = convert(*args, **kwargs)
        return own_error(str(error)) or error

    setattr(module, _CONVERT, convert_error)


def without_zip(path: Sequence[str]) -> list[str]:
    """Return a module path without PySpark's zip; unchanged if the rest of the path has no PySpark, or another one.

    Spark puts the zip first on the path of all its Python processes. It has no bytecode, so that each daemon spends half a second compiling
    PySpark. If PySpark was installed by pip, the same modules exist next to that zip, with bytecode.
    """
    zips = [entry for entry in path if Path(entry).name == _ZIP.name]
    left = [entry for entry in path if entry not in zips]
    installed = PathFinder.find_spec("pyspark", left)
    if is_plain("spark") or installed is None or installed.origin is None:
        return list(path)
    same = Path(installed.origin).parent / _ZIP
    return left if all(Path(entry) == same for entry in zips) else list(path)


def run_daemon() -> None:
    """Run Spark's daemon, which forks workers."""
    from pyspark.daemon import manager

    manager()
