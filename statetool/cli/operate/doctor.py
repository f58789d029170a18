"""The checks of ``statetool doctor``, and its ``--warm``: kernels and Java classes of Spark, prepared once per machine."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import statetool
from statetool.cli.output import echo_err
from statetool.demo import SAVEPOINT
from statetool.errors import MissingDependencyError, StatetoolError, several

_PACKAGES = ("pyarrow", "numpy", "numba", "fsspec", "cramjam")
#: Optional packages and the extras that install them.
_EXTRAS = {"pyspark": "spark", "rocksdict": "rocksdb", "fastavro": "avro"}
_OLDEST_JAVA = 17


def check_machine() -> list[dict[str, Any]]:
    """Return findings about Python, packages and Java."""
    version = ".".join(map(str, sys.version_info[:3]))
    findings = [_finding("python", sys.version_info >= (3, 11), version)]
    for package in (*_PACKAGES, *_EXTRAS):
        try:
            findings.append(_finding(package, True, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            extra = _EXTRAS.get(package)
            words = f"pip install 'statetool[{extra}]'" if extra else f"pip install {package}"
            findings.append(_finding(package, extra is not None, f"not installed; run: {words}"))
    return [*findings, _java()] if has_pyspark() else findings


def has_pyspark() -> bool:
    """Return True if PySpark is installed."""
    return find_spec("pyspark") is not None


def _java() -> dict[str, Any]:
    from statetool.spark.java_classes import java_program
    from statetool.spark.session import check_java

    try:
        check_java()
    except MissingDependencyError as error:
        return _finding("java", False, str(error))
    output = subprocess.run([str(java_program()), "-version"], capture_output=True, text=True, check=False).stderr
    release = output.split('"')[1] if '"' in output else output.strip()
    major = release.split(".")[0]
    fine = major.isdigit() and int(major) >= _OLDEST_JAVA
    return _finding("java", fine, release if fine else f"{release}: Spark 4 needs Java {_OLDEST_JAVA} or later")


def check_kernels() -> dict[str, Any]:
    """Return a finding about compiled kernels, which only speed up the first large read."""
    from statetool.kernels.core import kept

    kept.names.cache_clear()
    folder = kept.target()
    place = f"cached in {folder}" if folder else "not cached: every process compiles them again"
    return _finding(
        "kernels", True, f"{len(kept.names())} compiled, {place}; to compile all, run: statetool doctor --warm"
    )


def check_java_classes() -> dict[str, Any]:
    """Return a finding about the archive of Spark's Java classes, which only speeds up the start of sessions."""
    from statetool.spark.java_classes import archive, is_whole

    file = archive()
    if file is None:
        return _finding("java classes", True, "not cached: no Java, no cache folder, or a custom Spark folder")
    cached = is_whole(file)
    return _finding("java classes", True, f"cached in {file}" if cached else "not cached; run: statetool doctor --warm")


def check_snapshot(path: str) -> list[dict[str, Any]]:
    """Return findings about a snapshot: files that are missing or short, states that cannot be decoded."""
    from statetool.io.files import InputFile

    try:
        savepoint = statetool.load(path)
        pieces = savepoint.metadata_rows("files")
        states = savepoint.metadata_rows("states")
    except StatetoolError as error:
        return [_finding("snapshot", False, str(error))]
    findings = [
        _finding("snapshot", True, f"{several(len(savepoint.operators), 'operator')}, {several(len(states), 'state')}")
    ]
    for piece in pieces:
        if piece.inline:
            continue
        try:
            with InputFile(piece.path) as f:
                if f.size < piece.start + piece.size_bytes:
                    short = f"{f.size} bytes, but the metadata refers to {piece.start + piece.size_bytes}"
                    findings.append(_finding(piece.path, False, short))
        except StatetoolError as error:
            findings.append(_finding(piece.path, False, str(error)))
    for state in states:
        if not state.readable:
            words = state.reason if state.kind == "unread" else f"not decoded: {state.reason}"
            findings.append(_finding(f"{state.operator}.{state.name}", False, words))
    return findings


def _finding(what: str, fine: bool, detail: str) -> dict[str, Any]:
    return {"what": what, "fine": fine, "found": detail}


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
    operator = statetool.load(SAVEPOINT, spark=session, driver_read_limit=0)["reminders"]
    operator.keyed_state().write.parquet(str(folder / "rows"))
    rows = session.read.parquet(str(folder / "rows"))
    rows.createOrReplaceTempView("statetool_rows")
    session.sql("SELECT sent, count(DISTINCT key) FROM statetool_rows GROUP BY sent ORDER BY 1").collect()
    change = statetool.bootstrap_keyed_state(rows, like=operator)
    statetool.SavepointWriter.new().with_operator("reminders", change).write(str(folder / "savepoint"), inline_bytes=0)
