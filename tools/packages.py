"""Packages of statetool for Spark: a wheel, a zip for ``--py-files``, and a packed environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Final

import pyspark

import statetool

SPARK: Final = Path(pyspark.__file__).parent


ROOT: Final = Path(statetool.__file__).parents[1]


def build_wheel(folder: Path) -> Path:
    """Build the wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    (built,) = folder.glob("statetool-*.whl")
    return built


def build_zip(folder: Path) -> Path:
    """Build the wheel as a zip for ``--py-files``, because Spark does not put ``.whl`` files on the path."""
    built = build_wheel(folder)
    return built.rename(built.with_suffix(".zip"))


def pack_environment(folder: Path) -> Path:
    """Pack a virtual environment with statetool and its dependencies except PySpark, and a copy of this Python.

    In a tar, Spark 4.3 refuses links that lead outside, and does not keep files executable; in a zip it does.
    """
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--copies", "--without-pip", str(venv)], check=True)
    place = Path(sysconfig.get_path("purelib", "venv", {"base": str(venv)})).relative_to(venv)
    packed = folder / "environment.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name in sorted(_needed("statetool") - {"pyspark", "py4j"}):
            for file in metadata.files(name) or []:
                if ".." not in file.parts and not {"tests", "include", "__pycache__"} & set(file.parts):
                    archive.write(file.locate(), place / file)
        for module in (ROOT / "statetool").rglob("*"):
            if module.is_file() and "__pycache__" not in module.parts:
                archive.write(module, place / module.relative_to(ROOT))
        for part in venv.rglob("*"):
            if part.is_file() and "lib64" not in part.parts:  # a link to lib
                archive.write(part, part.relative_to(venv))
    return packed


def _needed(name: str) -> set[str]:
    """Return the names of an installed distribution and its dependencies; statetool's come from its own list."""
    if name == "statetool":
        text = (ROOT / "pyproject.toml").read_text().partition("dependencies = [")[2].partition("\n]")[0]
        requirements = re.findall(r'^ +"([\w-]+)', text, re.MULTILINE)
        return {distribution for requirement in requirements for distribution in _needed(requirement)}
    try:
        requirements = [r for r in metadata.requires(name) or [] if "extra ==" not in r]
    except metadata.PackageNotFoundError:
        return set()  # for another Python or system
    return {name}.union(*(_needed(re.split(r"[^\w.-]", r)[0]) for r in requirements))


def environment(**more: str) -> dict[str, str]:
    """Return the environment variables without those that put statetool on a path."""
    left_out = ("PYTHONPATH", "SPARK_HOME", "MASTER", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "STATETOOL_JIT")
    inherited = {k: v for k, v in os.environ.items() if k not in left_out}
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return inherited | python | {"SPARK_LOCAL_IP": "127.0.0.1"} | more
