"""Options of JVMs that tests start by Spark."""

from __future__ import annotations

from typing import Final

from statetool.spark import java_classes
from tools.flink_jars import SHORT_LIVED as _OPTIONS

SHORT_LIVED: Final = " ".join(_OPTIONS)


def with_archive(options: str) -> str:
    """Return JVM options that also map the archive of Spark's classes (``statetool doctor --warm``), if there is one."""
    file = java_classes.archive()
    if file is None or not java_classes.is_whole(file):
        return options
    return f"{options} -XX:SharedArchiveFile={file} {java_classes.QUIET}"
