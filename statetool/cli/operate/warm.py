"""``statetool doctor --warm``: compile kernels and archive Java classes once per machine, so that first queries do not wait."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import statetool
from statetool.cli.output import echo_err
from statetool.demo import SAVEPOINT


def compile_kernels() -> None:
    """Compile all kernels, or load them from the cache."""
    from statetool.kernels.ahead import SIGNATURES, compile_all

    echo_err(f"compiling {len(SIGNATURES)} kernels, which takes a minute or two the first time")
    compile_all()


def keep_java_classes() -> None:
    """Start Spark once, run a query and a write, and make the JVM archive its loaded classes. Do nothing without Java or PySpark 4."""
    from statetool.spark import java_classes
    from statetool.spark.private import jvm_process
    from statetool.spark.session import has_data_sources, local_session

    if not has_data_sources() or (file := java_classes.archive()) is None:
        return
    echo_err("caching the Java classes of Spark, which takes half a minute")
    file.unlink(missing_ok=True)
    session = local_session(cores="2", name="statetool doctor", keep_classes=True)
    session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        _use(session, Path(folder))
    process = jvm_process(session)
    session.stop()
    # The JVM writes the archive when it exits.
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def _use(session: Any, folder: Path) -> None:
    """Run queries by SQL and in tasks, and write a savepoint in tasks."""
    operator = statetool.load(SAVEPOINT, spark=session, local_bytes=0)["reminders"]
    operator.keyed_state().write.parquet(str(folder / "rows"))
    rows = session.read.parquet(str(folder / "rows"))
    rows.createOrReplaceTempView("statetool_rows")
    session.sql("SELECT sent, count(DISTINCT key) FROM statetool_rows GROUP BY sent ORDER BY 1").collect()
    change = statetool.bootstrap_keyed_state(rows, like=operator)
    statetool.SavepointWriter.new().with_operator("reminders", change).write(str(folder / "savepoint"), inline_bytes=0)
