"""The JVM that runs Flink and the classes of the new job: one process, which answers a request per state.

Requests and answers are texts and bytes after their length (i4), as ``StateRun.java`` reads and writes them. Java compiles the program when it
starts, so that the package has no class files.
"""

from __future__ import annotations

import io
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, Final

from statetool.compatibility.running.flink_jars import FlinkJars
from statetool.errors import MissingDependencyError, StatetoolError, UnsupportedError
from statetool.io import files

_PROGRAM: Final = "StateRun.java"
#: Options of Flink's scripts for Java 17, which Kryo needs.
_OPENED: Final = (
    "java.lang java.util java.lang.invoke java.lang.reflect java.time java.nio java.net java.io java.text java.math"
    " java.util.concurrent java.util.concurrent.atomic sun.nio.ch sun.net.util"
)
#: The second compiler would take as long as the work.
_OPTIONS: Final = ("-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.timezone=UTC")
#: Seconds that the JVM has to start, and to answer about one state.
_LIMIT_S: Final = 300
_INT: Final = struct.Struct(">i")
_HINT: Final = "install a JDK 11 or later (such as openjdk-17-jdk-headless), or set JAVA_HOME to one"


@dataclass(frozen=True, slots=True)
class Part:
    """Serializer snapshots of one part of a state, before and after.

    ``after`` is the name of a class if only its type extraction tells. ``compares``: the classes of the old job read its values too.
    ``is_assumed``: only the old job tells the serializer, so type extraction is asked for that of the first value's class in both jobs.
    """

    role: str
    before: bytes
    after: bytes
    is_class: bool = False
    compares: bool = True
    is_assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request: the parts of one state, and its entries (key group, key, value).

    ``form`` is 0 for keyed state, 1 for elements, 2 for broadcast state, 3 for timers. ``as_objects`` and ``as_bytes``: the values are read
    as the heap backend reads them, or as RocksDB does.
    """

    form: int
    max_parallelism: int
    as_objects: bool
    as_bytes: bool
    parts: Sequence[Part]
    entries: Iterable[tuple[int, bytes, bytes]]


@dataclass(frozen=True, slots=True)
class RunFinding:
    """What is said about a part. ``missing`` is a class that was not found, ``?`` if the run itself has a limit."""

    role: str
    kind: str
    text: str
    missing: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What Flink and the classes did with a state. ``rewritten`` are bytes of values, and those of the new job: role, old, new."""

    entries: int
    findings: tuple[RunFinding, ...]
    rewritten: tuple[tuple[str, bytes, bytes], ...]


class RunEndedError(StatetoolError):
    """The JVM ended or hung while it answered."""


@dataclass(slots=True)
class Machine:
    """A running JVM with Flink, the jars of the new job and, if they are given, those of the old job. Close it."""

    flink: FlinkJars
    new_jars: Sequence[str]
    old_jars: Sequence[str]
    java: str = ""
    _process: subprocess.Popen[bytes] | None = None
    _folder: Any = field(default=None, repr=False)

    def ask(self, question: Question) -> Answer:
        """Return the answer about one state.

        Raises
        ------
        MissingDependencyError, UnsupportedError
            There is no Java with a compiler, or it cannot run the program.
        RunEndedError
            The classes ended the JVM, or did not return.
        """
        process = self._started()
        hung = threading.Event()

        def stop() -> None:
            hung.set()
            process.kill()

        watch = threading.Timer(_LIMIT_S, stop)
        watch.start()
        try:
            self._send(question)
            return self._answer()
        except (OSError, EOFError) as error:
            reason = "did not return" if hung.is_set() else f"ended the JVM: {self._last_words()}"
            self._stop()
            raise RunEndedError(f"the classes of the new job {reason}") from error
        except BaseException:
            # An answer that was not read would be taken for that about the next state.
            self._stop()
            raise
        finally:
            watch.cancel()

    def close(self) -> None:
        """End the JVM, and remove its files."""
        self._stop()
        if self._folder is not None:
            self._folder.cleanup()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            return self._process
        java = find_java()
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="statetool-run-")
        folder = Path(self._folder.name)
        program = folder / _PROGRAM
        program.write_bytes(resources(__package__).joinpath(_PROGRAM).read_bytes())
        opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED.split()]
        command = [java, *opens, *_OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", os.pathsep.join(self.flink.paths)]
        with (folder / "errors").open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        watch = threading.Timer(_LIMIT_S, self._process.kill)
        watch.start()
        try:
            self._text()
            self.java = self._text()
            out = io.BytesIO()
            for jars in (self.new_jars, self.old_jars):
                urls = [url for jar in jars for url in _urls(jar, folder)]
                out.write(_INT.pack(len(urls)))
                for url in urls:
                    _write(out, url.encode())
            self._write(out.getvalue())
            self._flush()
        except (OSError, EOFError) as error:
            words = self._last_words()
            self._stop()
            raise UnsupportedError(f"{java} cannot run Flink {self.flink.release}: {words}", hint=_HINT) from error
        finally:
            watch.cancel()
        return self._process

    def _send(self, question: Question) -> None:
        out = io.BytesIO()
        out.write(bytes([question.form]) + _INT.pack(question.max_parallelism))
        out.write(bytes([question.as_objects, question.as_bytes]) + _INT.pack(len(question.parts)))
        for part in question.parts:
            _write(out, part.role.encode())
            _write(out, part.before)
            out.write(bytes([1 if part.is_class else 2 if part.is_assumed else 0]))
            _write(out, part.after)
            out.write(bytes([part.compares]))
        self._write(out.getvalue())
        for group, key, value in question.entries:
            self._write(
                b"".join((b"\1", *(_INT.pack(n) for n in (group, len(key))), key, _INT.pack(len(value)), value))
            )
        self._write(b"\0")
        self._flush()

    def _write(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    def _flush(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.flush()

    def _answer(self) -> Answer:
        entries = self._int()
        findings = tuple(RunFinding(*(self._text() for _ in range(4))) for _ in range(self._int()))
        rewritten = tuple((self._text(), self._bytes(), self._bytes()) for _ in range(self._int()))
        return Answer(entries, findings, rewritten)

    def _int(self) -> int:
        number: int = _INT.unpack(self._take(4))[0]
        return number

    def _bytes(self) -> bytes:
        return self._take(self._int())

    def _text(self) -> str:
        return self._bytes().decode(errors="replace")

    def _take(self, size: int) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def _last_words(self) -> str:
        """Return the end of what the JVM wrote on stderr."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        lines = (Path(self._folder.name) / "errors").read_text(errors="replace").strip().splitlines()
        told = [line for line in lines if not line.startswith(("\tat ", "    at ", "WARNING:", "SLF4J"))]
        return " ".join(told[-3:]) or f"exit code {self._process.returncode}"

    def _stop(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()


def find_java() -> str:
    """Return the Java of ``JAVA_HOME``, else that of the path.

    Raises
    ------
    MissingDependencyError
        There is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f" in JAVA_HOME={home}" if home else ""
        raise MissingDependencyError(
            f"to run the classes of the new job, Java is needed, and there is none{where}", hint=_HINT
        )
    return java


def _write(out: io.BytesIO, data: bytes) -> None:
    out.write(_INT.pack(len(data)))
    out.write(data)


def _urls(jar: str, folder: Path) -> list[str]:
    """Return the URLs of a jar, or of a folder, and of the jars in its folder ``lib`` (``PackagedProgram``). Remote jars are copied."""
    if files.is_local(jar):
        path = Path(files.local_path(jar)).resolve()
    else:
        path = folder / f"{len(list(folder.iterdir()))}-{jar.rpartition('/')[2]}"
        path.write_bytes(files.read_whole(jar))
    if path.is_dir():
        return [f"{path.as_uri()}/"]
    urls = [path.as_uri()]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith("lib/") and name.endswith(".jar"):
                    inner = folder / f"{len(list(folder.iterdir()))}-{name.rpartition('/')[2]}"
                    inner.write_bytes(archive.read(name))
                    urls.append(inner.as_uri())
    return urls
