"""Flink's jars on this machine: those of an installation, or of the Python package apache-flink-libraries."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statetool.compatibility.releases import shown_releases
from statetool.errors import MissingDependencyError, OptionError

_DIST: Final = re.compile(r"flink-dist(?:_\d+\.\d+)?-(\d+\.\d+)[-.\w]*\.jar")


@dataclass(frozen=True, slots=True)
class FlinkJars:
    """The jars of a release, such as ``2.3``."""

    release: str
    paths: tuple[str, ...]


def find_flink_jars(home: str | None, releases: Sequence[str]) -> FlinkJars:
    """Return Flink's jars: those of a folder, else of ``FLINK_HOME``, else of the package apache-flink-libraries.

    Parameters
    ----------
    releases
        The releases that the new job may have; none if they are not known.

    Raises
    ------
    OptionError
        The folder has no jars of Flink, or those of another release than the new job.
    MissingDependencyError
        There are none.
    """
    wanted = releases[-1] if releases else "2.3"
    hint = f"pass --flink-home DIR (flink_home=), the folder of Flink {wanted}, or run: pip install 'apache-flink-libraries=={wanted}.*'"
    for folder in [Path(home)] if home is not None else _folders():
        found = _jars_in(folder)
        if found is None and home is not None:
            raise OptionError(f"{home} has no jar flink-dist-*.jar in its folder lib", hint=hint)
        if found is None:
            continue
        if releases and found.release not in releases:
            raise OptionError(
                f"the jars in {folder} are those of Flink {found.release}, and the new job has Flink {shown_releases(tuple(releases))}",
                hint=hint,
            )
        return found
    raise MissingDependencyError(
        "to run the classes of the new job, Flink's jars are needed, and none were found", hint=hint
    )


def _folders() -> Iterator[Path]:
    if home := os.environ.get("FLINK_HOME"):
        yield Path(home)
    spec = importlib.util.find_spec("pyflink")
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(location)


def _jars_in(folder: Path) -> FlinkJars | None:
    for lib in (folder / "lib", folder):
        jars = sorted(lib.glob("*.jar"))
        for jar in jars:
            if match := _DIST.fullmatch(jar.name):
                return FlinkJars(match[1], tuple(map(str, jars)))
    return None
