"""Spark's Java classes, checked once and kept: half of what a new session waits for is its JVM reading some 15,000 of them.

The JVM can write the classes that it has loaded into an archive when it ends, and map that archive when it starts the next time (class data
sharing, Java 13 and later). It takes no archive of another Java or of other jars, and goes on without one. Sessions that statetool starts take the
one that is there; ``statetool doctor --warm`` makes one. Sessions of others are theirs.
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
#: The JVM has nothing to say about archives that do not fit, or classes that cannot be kept.
_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"


def java_program() -> str | None:
    """Return the Java that Spark starts; ``None`` where there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin") if home else None)


def archive() -> Path | None:
    """Return the file for the classes of this Spark and this Java, which need not be there.

    ``None`` where nothing can be kept, and for a Spark with a folder of its own: one with settings on its class path has no archive.
    """
    import pyspark

    java = java_program()
    if java is None or {"SPARK_HOME", "SPARK_CONF_DIR"} & os.environ.keys():
        return None
    of = "\0".join((pyspark.__version__, os.path.realpath(pyspark.__file__), os.path.realpath(java)))
    name = f"spark-{pyspark.__version__}-{hashlib.sha256(of.encode()).hexdigest()[:16]}.jsa"
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
    """Let a JVM that is started here have these options and the archive; ``keep_classes``: let it write one when it ends, where there is none."""
    file = archive()
    if file is None:
        classes = ""
    elif is_whole(file):
        classes = f'"-XX:SharedArchiveFile={file}" {_QUIET}'
    else:
        classes = f'"-XX:ArchiveClassesAtExit={file}" {_QUIET}' if keep_classes else ""
    before = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = " ".join(filter(None, (before, options, classes)))
    try:
        yield
    finally:
        if before is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = before
