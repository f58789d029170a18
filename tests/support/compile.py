"""Compilation of Java sources, and jars of the classes."""

from __future__ import annotations

import io
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.flink_jars import JAVAC_OPTIONS, java_tool


def compile_java(sources: Iterable[Path], target: Path, *options: str) -> Path:
    """Compile sources into a folder and return it."""
    command = [java_tool("javac"), *JAVAC_OPTIONS, *options, "-d", str(target)]
    subprocess.run([*command, *map(str, sources)], check=True)
    return target


def make_jar(jar: Path, files: Mapping[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write a jar and return its path."""
    jar.write_bytes(jar_bytes(files, method=method))
    return jar


def jar_bytes(files: Mapping[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a jar as bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by their names in a jar."""
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in sorted(folder.rglob("*.class"))}
