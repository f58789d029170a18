"""Archive of Spark's Java classes: reading some 15,000 of them takes half of the start-up time of a new session.

The JVM can write its loaded classes to an archive when it exits, and map that archive at the next start (class data sharing, Java 13 and
later). It rejects an archive of another Java or of other jars, and continues without one. Sessions that statetool starts use the existing
archive; ``statetool doctor --warm`` creates it. Other sessions are not affected.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from statetool.io.cache import cache_folders, writable
from statetool.io.switches import is_plain

#: Variable with options with which ``spark-submit`` starts its JVM, besides those of the session and of the user, which stay unchanged.
_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
#: Suppresses JVM messages about archives that do not match and classes that cannot be archived.
QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"


def java_program() -> str | None:
    """Return the Java program that Spark starts; ``None`` if there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin") if home else None)


def archive() -> Path | None:
    """Return the archive file for the classes of this Spark and this Java, whether or not it exists.

    ``None`` without Java or a writable folder, with ``STATETOOL_PLAIN=spark``, and if ``SPARK_HOME`` or ``SPARK_CONF_DIR`` is set: settings on the class path rule it out.
    """
    import pyspark

    java = java_program()
    if is_plain("spark") or java is None or {"SPARK_HOME", "SPARK_CONF_DIR"} & os.environ.keys():
        return None
    origin = "\0".join((pyspark.__version__, os.path.realpath(pyspark.__file__), os.path.realpath(java)))
    name = f"spark-{pyspark.__version__}-{hashlib.sha256(origin.encode()).hexdigest()[:16]}.jsa"
    return next((folder / name for folder in cache_folders("java") if writable(folder)), None)


def is_whole(file: Path) -> bool:
    """Return True if an archive was written completely: its header is written last."""
    try:
        with file.open("rb") as f:
            return any(f.read(4))
    except OSError:
        return False


@contextmanager
def java_options(options: str, *, keep_classes: bool) -> Iterator[None]:
    """Start JVMs inside the block with the archive and these options; with ``keep_classes`` they write a missing archive at exit."""
    file = archive()
    if file is None:
        classes = ""
    elif is_whole(file):
        classes = f'"-XX:SharedArchiveFile={file}" {QUIET}'
    else:
        classes = f'"-XX:ArchiveClassesAtExit={file}" {QUIET}' if keep_classes else ""
    previous = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = " ".join(filter(None, (previous, options, classes)))
    try:
        yield
    finally:
        if previous is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = previous
