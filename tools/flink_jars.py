"""Flink's jars, by version: downloaded as a file from PyPI, unpacked once, and cached in a folder.

``apache-flink-libraries`` contains the complete ``lib`` folder of a Flink release. Two releases cannot share an environment, so they are
downloaded as files, never installed. A release takes about 230 MB to download and 210 MB on disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

DEFAULT_VERSIONS: Final = ("2.3.0", "1.20.5")
#: Options of a JVM that ends soon. The second compiler would take as long as the work, and threads of a collector would take cores away from
#: tests. Each time the classes outgrow a limit, the JVM collects everything.
SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:MetaspaceSize=256m", "-Xshare:auto")
#: Options of ``javac`` for few sources.
JAVAC_OPTIONS: Final = (*(f"-J{option}" for option in SHORT_LIVED), "-nowarn", "-encoding", "UTF-8", "-proc:none")
PACKAGE: Final = "apache-flink-libraries"


class FlinkUnavailableError(RuntimeError):
    """Flink cannot run here: there is no JDK, or its jars cannot be downloaded. The message says what to do."""


def cache_folder() -> Path:
    """Return the cache of jars and compiled jobs: ``STATETOOL_FLINK_CACHE``, otherwise a folder below the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("STATETOOL_FLINK_CACHE") or Path(base) / "statetool" / "flink")


def java_tool(name: str) -> str:
    """Return the path of ``java`` or ``javac``.

    Raises
    ------
    FlinkUnavailableError
        There is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin" if home else None) or shutil.which(name)
    if found is None:
        raise FlinkUnavailableError(f"no {name}: install a JDK, for example apt-get install openjdk-17-jdk-headless")
    return found


def flink_jars(version: str) -> list[Path]:
    """Return the jars of a release, downloading them if they are not in the cache.

    Raises
    ------
    FlinkUnavailableError
        They are not in the cache and cannot be downloaded.
    """
    lib = cache_folder() / version / "lib"
    with locked(version):
        if not lib.exists():
            _fetch(version, lib)
    jars = sorted(lib.glob("*.jar"))
    if not any(j.name.startswith("flink-dist") for j in jars):
        raise FlinkUnavailableError(f"{lib} has no flink-dist jar: remove that folder, so that it is fetched again")
    return jars


def compiled(version: str, *folders: Path, jars: Sequence[Path] = (), classes: Sequence[Path] = ()) -> Path:
    """Compile all ``.java`` files below ``folders`` against a release and more ``jars``; cached by the hash of the sources.

    ``classes`` are results of this function that the sources need.

    Returns
    -------
    Path
        The folder of the classes.

    Raises
    ------
    FlinkUnavailableError
        There is no compiler, or the jars cannot be downloaded.
    AssertionError
        The sources do not compile; the message is the compiler's.
    """
    sources = sorted(p for folder in folders for p in folder.rglob("*.java"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    for needed in classes:
        digest.update(needed.name.encode())
    against = [*classes, *flink_jars(version), *jars]
    target = cache_folder() / version / f"classes-{digest.hexdigest()[:16]}"
    with locked(version):
        if target.exists():
            return target
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            new = Path(work) / "classes"
            command = [java_tool("javac"), *JAVAC_OPTIONS, "-d", str(new)]
            command += ["-cp", os.pathsep.join(map(str, against)), *map(str, sources)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"javac against Flink {version}:\n{done.stderr}"
            new.rename(target)
    return target


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process at a time fill a part of the cache: a release, or the jars that Maven fetches."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_download(command: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a program that downloads files, again if it fails: a connection may break after hundreds of megabytes."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    for pause_s in (1, 10):
        if done.returncode == 0:
            break
        time.sleep(pause_s)
        done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    return done


def _fetch(version: str, lib: Path) -> None:
    lib.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=lib.parent) as work:
        # pip verifies the checksum in the index.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
        command += ["--dest", work, f"{PACKAGE}=={version}"]
        done = run_download(command)
        if done.returncode != 0:
            raise FlinkUnavailableError(
                f"{PACKAGE} {version} cannot be fetched (is there a network?); the jars of Flink's lib folder may also be "
                f"put into {lib} by hand:\n{done.stderr[-2000:]}"
            )
        (archive,) = (p for p in Path(work).iterdir() if p.name.endswith((".tar.gz", ".whl")))
        unpacked = Path(work) / "lib"
        unpacked.mkdir()
        for name, data in _members(archive):
            path = PurePosixPath(name)
            if path.suffix == ".jar" and path.parent.name == "lib":
                (unpacked / path.name).write_bytes(data)
        unpacked.rename(lib)


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as z:
            for name in z.namelist():
                yield name, z.read(name)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            stream = tar.extractfile(member)
            if stream is not None and member.name.endswith(".jar"):
                yield member.name, stream.read()
