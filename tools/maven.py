"""Jars that Maven fetches by their coordinates, pinned by version and checksum in ``maven.tsv``.

``mvn`` fetches each jar once, without its dependencies, into the cache folder that also holds Flink's jars. To pin a new version, edit the
coordinates and run ``python -m tools.maven``, which writes the checksums.
"""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from tools.flink_jars import SHORT_LIVED, FlinkUnavailableError, cache_folder, locked, run_download

PINS: Final = Path(__file__).with_name("maven.tsv")
_REPOSITORY: Final = Path.home() / ".m2" / "repository"
#: Maven would look up the dependencies of a jar, which may not be available, before it leaves them out.
_ALONE: Final = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


@dataclass(frozen=True, slots=True)
class Pin:
    """A jar: the set that it belongs to, its coordinates and the checksum of its bytes."""

    jar_set: str
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> Path:
        """Return the place where Maven keeps it."""
        return _REPOSITORY.joinpath(*self.group.split("."), self.artifact, self.version, self.file_name)


def pins() -> list[Pin]:
    """Read all pins."""
    with PINS.open(newline="") as f:
        return [Pin(**row) for row in csv.DictReader(f, delimiter="\t")]


def maven_jars(jar_set: str) -> list[Path]:
    """Return the jars of a set, fetched first if the cache lacks one.

    Raises
    ------
    FlinkUnavailableError
        Maven is missing or cannot fetch a jar, or a jar has another checksum.
    """
    wanted = [pin for pin in pins() if pin.jar_set == jar_set]
    assert wanted, f"{PINS} has no set {jar_set}"
    folder = cache_folder() / "maven"
    with locked("maven"):
        if missing := [pin for pin in wanted if not (folder / pin.file_name).exists()]:
            _fetch(missing, folder)
    return [folder / pin.file_name for pin in wanted]


def _fetch(missing: list[Pin], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        for pin in missing:
            # Each run of Maven takes three CPU seconds.
            if pin.path.exists() and checksum(pin.path) == pin.sha256:
                shutil.copy(pin.path, work)
        if unknown := [pin for pin in missing if not Path(work, pin.file_name).exists()]:
            copy_jars(unknown, Path(work))
        for pin in missing:
            jar = Path(work) / pin.file_name
            if (found := checksum(jar)) != pin.sha256:
                raise FlinkUnavailableError(f"{pin.file_name} has the checksum {found}, {PINS.name} says {pin.sha256}")
            jar.rename(folder / pin.file_name)


def copy_jars(wanted: list[Pin], folder: Path) -> None:
    """Let Maven copy jars into a folder, without their dependencies."""
    mvn = shutil.which("mvn")
    if mvn is None:
        raise FlinkUnavailableError("no mvn: install Maven, for example apt-get install maven")
    project = folder / "pom.xml"
    dependencies = "".join(
        f"<dependency><groupId>{escape(p.group)}</groupId><artifactId>{escape(p.artifact)}</artifactId>"
        f"<version>{escape(p.version)}</version>{_ALONE}</dependency>"
        for p in wanted
    )
    project.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>statetool</groupId><artifactId>test-jars</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
    command = [mvn, "--batch-mode", "--quiet", "--file", str(project), _PLUGIN]
    command += ["-DexcludeTransitive=true", f"-DoutputDirectory={folder}"]
    options = " ".join([*SHORT_LIVED, os.environ.get("MAVEN_OPTS", "")])
    environment = os.environ | {"MAVEN_OPTS": options}
    done = run_download(command, env=environment)
    if done.returncode != 0:
        names = ", ".join(p.file_name for p in wanted)
        raise FlinkUnavailableError(f"Maven cannot fetch {names}:\n{(done.stdout + done.stderr)[-2000:]}")


def checksum(jar: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with jar.open("rb") as f:
        digest = hashlib.sha256()
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def main() -> None:
    """Fetch all jars and write their checksums."""
    found = pins()
    with PINS.open("w", newline="") as f, tempfile.TemporaryDirectory() as work:
        writer = csv.writer(f, delimiter="\t", lineterminator="\n")
        writer.writerow(["jar_set", "group", "artifact", "version", "sha256"])
        for jar_set in dict.fromkeys(pin.jar_set for pin in found):
            folder = Path(work) / jar_set
            folder.mkdir()
            of_set = [pin for pin in found if pin.jar_set == jar_set]
            copy_jars(of_set, folder)
            for pin in of_set:
                writer.writerow([pin.jar_set, pin.group, pin.artifact, pin.version, checksum(folder / pin.file_name)])


if __name__ == "__main__":
    main()
