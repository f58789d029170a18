"""Spark's Java classes, checked once and kept: half of what a new session waits for is its JVM reading some 15,000 of them.

The JVM can write the classes that it has loaded into an archive when it ends, and map that archive when it starts the next time (class data
sharing, Java 13 and later). It takes no archive of another Java or of other jars, and goes on without one. Sessions that statetool starts take the
one that is there; ``statetool doctor --warm`` makes one. Other sessions are left alone.
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

#: What ``spark-submit`` starts its JVM with, beside the options of the session and of the user, which stay as they are.
_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
#: Silences the JVM about archives that do not fit and classes that cannot be archived.
_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"


def java_program() -> str | None:
    """Return the Java that Spark starts; ``None`` where there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin") if home else None)


def archive() -> Path | None:
    """Return the file for the classes of this Spark and this Java, which need not be there.

    ``None`` without Java or a folder that can be written, and where ``SPARK_HOME`` or ``SPARK_CONF_DIR`` is set: settings on the class path rule it out.
    """
    import pyspark

    java = java_program()
    if java is None or {"SPARK_HOME", "SPARK_CONF_DIR"} & os.environ.keys():
        return None
    origin = "\0".join((pyspark.__version__, os.path.realpath(pyspark.__file__), os.path.realpath(java)))
    name = f"spark-{pyspark.__version__}-{hashlib.sha256(origin.encode()).hexdigest()[:16]}.jsa"
    return next((folder / name for folder in cache_folders("java") if writable(folder)), None)


def is_whole(file: Path) -> bool:
    """Tell whether an archive was written to its end: its header comes last."""
    try:
        with file.open("rb") as f:
            return any(f.read(4))
    except OSError:
        return False


@contextmanager
def java_options(options: str, *, keep_classes: bool) -> Iterator[None]:
    """Give a JVM that is started inside the archive and these options; with ``keep_classes`` it writes the archive at its end if there is none."""
    file = archive()
    if file is None:
        classes = ""
    elif is_whole(file):
        classes = f'"-XX:SharedArchiveFile={file}" {_QUIET}'
    else:
        classes = f'"-XX:ArchiveClassesAtExit={file}" {_QUIET}' if keep_classes else ""
    previous = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = " ".join(filter(None, (previous, options, classes)))
    try:
        yield
    finally:
        if previous is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = previous
