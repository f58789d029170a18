"""The images of the package's ``Dockerfile``, built without a daemon or registry.

The base images are built here too. Building needs root.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from tools.packages import ROOT, SPARK, build_wheel, environment

#: Stages of the ``Dockerfile`` that are images.
Target: TypeAlias = Literal["cli", "spark"]
#: Bases are like those of the ``Dockerfile``: a system with Python and pip, and for Spark with Java, Spark in its usual place and a user
#: without a home.
SUITE: Final = ("bookworm", "http://deb.debian.org/debian")
PACKAGES: Final = {"cli": "python3-pip", "spark": "python3-pip,openjdk-17-jre-headless,procps"}
PYTHON: Final = "3.11"
HOME: Final = "/opt/spark"
#: A file that exists only in the base.
MARK: Final = "/etc/base-of-the-tests"


class Buildah:
    """Buildah with its images and containers in a folder."""

    def __init__(self, command: str, folder: Path) -> None:
        self.command = (command, "--root", str(folder / "images"), "--runroot", str(folder / "run"))
        self._environment = environment(BUILDAH_ISOLATION="chroot", TMPDIR=str(folder))

    def __call__(self, *arguments: str) -> str:
        """Run a buildah command and return its output."""
        process = subprocess.run(
            [*self.command, *arguments], env=self._environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, f"{arguments}: {process.stdout[-3000:]}{process.stderr[-3000:]}"
        return process.stdout.strip()


class Image(NamedTuple):
    """A container of the image, and the marker of its base."""

    buildah: Buildah
    container: str
    mark: str

    def launcher(self, shared: Path) -> tuple[str, ...]:
        """Return the prefix of commands that run in it, on this machine's network, with a folder at the same path inside."""
        how = ("--isolation", "chroot", "--network", "host", "--env", "SPARK_LOCAL_IP=127.0.0.1")
        return (*self.buildah.command, "run", *how, "--volume", f"{shared}:{shared}", self.container, "--")

    @property
    def root(self) -> Path:
        """The folder with its files."""
        return Path(self.buildah("mount", self.container))

    def compressed_bytes(self) -> int:
        """Return the size of the image as a registry stores it."""
        with tempfile.TemporaryDirectory() as folder:
            self.buildah("push", "image", f"dir:{folder}")
            return sum(file.stat().st_size for file in Path(folder).iterdir())


@contextmanager
def built_image(command: str, target: Target) -> Iterator[Image]:
    """Build the base, and the image on top of it; both are removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="statetool-image-") as name:
        buildah, wheels = Buildah(command, Path(name)), Path(name) / "wheels"
        try:
            _build_base(buildah, target, mark=name)
            _gather_wheels(wheels)
            dockerfile = ROOT / "statetool" / "jobs" / "Dockerfile"
            bases = [f"--build-arg={argument}=base" for argument in ("BASE", "CLI_BASE")]
            buildah("build", *bases, "--target", target, "--tag", "image", "--file", str(dockerfile), str(wheels))
            yield Image(buildah, buildah("from", "--pull-never", "image"), name)
        finally:
            buildah("rm", "--all")
            buildah("rmi", "--all", "--force")


def _build_base(buildah: Buildah, target: Target, *, mark: str) -> None:
    container = buildah("from", "scratch")
    root = Path(buildah("mount", container))
    suite, mirror = SUITE
    install = ["debootstrap", "--variant=minbase", f"--include={PACKAGES[target]}", suite, str(root), mirror]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    for downloaded in ("var/cache/apt", "var/lib/apt/lists"):  # published images have none
        shutil.rmtree(root / downloaded)
    (root / MARK[1:]).write_text(mark)
    # Images built on it get packages only from their own folder: access to an index is not part of the test.
    (root / "etc" / "pip.conf").write_text("[global]\nno-index = true\n")
    if target == "spark":
        _add_spark(buildah, container, root / HOME[1:])
    buildah("commit", "--rm", container, "base")


def _add_spark(buildah: Buildah, container: str, spark: Path) -> None:
    for name in ("bin", "jars", "python/lib"):
        shutil.copytree(SPARK / name, spark / name)
    shutil.copytree(SPARK, spark / "python" / "pyspark", ignore=shutil.ignore_patterns("jars", "__pycache__"))
    buildah("run", container, "useradd", "--system", "--uid", "185", "--home-dir", "/nonexistent", "spark")
    buildah("config", "--env", f"SPARK_HOME={HOME}", "--user", "spark", container)


def _gather_wheels(folder: Path) -> None:
    """Create a folder with the wheels of statetool and its dependencies for the base's Python, without PySpark."""
    folder.mkdir()
    build_wheel(folder)
    needed = [r for r in metadata.requires("statetool") or [] if not re.search("extra ==|^pyspark", r)]
    fetch = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", "--python-version", PYTHON]
    subprocess.run([*fetch, "-d", str(folder), *needed], check=True)
