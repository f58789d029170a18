"""One JVM with a mini cluster of one Flink release, which serves requests line by line."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tools.flink_jars import SHORT_LIVED, compiled, flink_jars, java_tool

#: Sources of the programs that run in Flink.
JAVA: Final = Path(__file__).parent / "java"
#: Sources of classes that tests read from their class files.
JARRED: Final = Path(__file__).parent / "jarred"
MESSAGES: Final = Path(__file__).parent / "messages"
AVRO_RECORDS: Final = Path(__file__).parent / "avro_records"
_PACKAGES: Final = (
    "java.lang java.util java.lang.invoke java.lang.reflect java.time java.nio java.net java.io java.text java.math"
    " java.util.concurrent java.util.concurrent.atomic sun.nio.ch sun.net.util"
)
# Options of Flink's scripts for Java 17 that Kryo 2 needs; releases before 1.18 do not run without them.
OPENS: Final = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _PACKAGES.split()),
    "--add-opens=java.sql/java.sql=ALL-UNNAMED",
)
_LOGGING: Final = """
rootLogger.level = WARN
rootLogger.appenderRef.err.ref = err
appender.err.name = err
appender.err.type = CONSOLE
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d{HH:mm:ss} %-5p %c{1} %m%n%throwable
"""


class FlinkRefusedError(AssertionError):
    """Flink could not run a request; the message contains its exception."""


class FlinkMachine:
    """A running Flink of one release.

    Parameters
    ----------
    version
        Release, such as ``2.3.0``.
    work
        Folder for its files.
    sources
        Folders with more jobs, compiled against the harness.
    jars
        More jars of user code.
    before
        A folder with classes that replace those of the same names: their older versions, for an older job.
    scala
        Whether Flink's own Scala 2.12 is on the class path. A job with another Scala needs it away.

    Raises
    ------
    FlinkUnavailableError
        There is no JDK, or the release cannot be downloaded.
    """

    def __init__(
        self,
        version: str,
        work: Path,
        sources: tuple[Path, ...] = (),
        before: Path | None = None,
        jars: Sequence[Path] = (),
        *,
        scala: bool = True,
    ) -> None:
        self.version = version
        self.work = Path(tempfile.mkdtemp(dir=work))
        harness = compiled(version, JAVA)
        classes = [*([compiled(version, before)] if before else []), harness]
        classes += [compiled(version, *sources, jars=jars, classes=[harness])] if sources else []
        logging = self.work / "log4j2.properties"
        logging.write_text(_LOGGING)
        self._log = (self.work / "log.txt").open("w+b")
        command = [java_tool("java"), *OPENS, "-Xmx1g", *SHORT_LIVED]
        # By default, Flink's actors look a hundred times per second what is due, also while no job runs.
        command += [f"-D{actors}.scheduler.tick-duration=50ms" for actors in ("akka", "pekko")]
        command += ["-Duser.timezone=UTC", f"-Dlog4j.configurationFile={logging}", f"-Djava.io.tmpdir={self.work}"]
        flink = [jar for jar in flink_jars(version) if scala or not jar.name.startswith("flink-scala_")]
        command += [
            "-cp",
            os.pathsep.join(map(str, [*classes, *flink, *jars])),
            "harness.Main",
            str(self.work),
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
        hello = self._answer()
        assert hello["version"] == version, hello

    def __repr__(self) -> str:
        return f"FlinkMachine({self.version!r})"

    def call(self, command: str, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer.

        Raises
        ------
        FlinkRefusedError
            Flink failed; the message is its exception.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"command": command, **request}).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise FlinkRefusedError(f"Flink {self.version} ended: {self._log.read()[-4000:].decode(errors='replace')}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise FlinkRefusedError(f"Flink {self.version}: {_causes(answer['error'])}")
        return answer

    def close(self) -> None:
        """End the JVM."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()


def _causes(text: str) -> str:
    """Shorten a Java stack trace: for each cause, the message and where it was thrown."""
    lines, kept = text.splitlines(), 0
    out = []
    for line in lines:
        if not line.startswith("\t"):
            kept = 0
        if kept < 4:
            out.append(line)
        kept += 1
    return "\n".join(out)
