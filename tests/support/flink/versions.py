"""Releases of Flink with which tests run (``--flink-versions``)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


def flink_versions(metafunc: pytest.Metafunc, default: Sequence[str]) -> list[str]:
    """Return the releases with which a test runs: the requested ones or the default, from that of its marker ``since`` on."""
    given = metafunc.config.getoption("--flink-versions")
    versions = [v.strip() for v in given.split(",")] if given else list(default)
    since = metafunc.definition.get_closest_marker("since")
    return [v for v in versions if since is None or release_of(v) >= since.args]


def release_of(version: str) -> tuple[int, ...]:
    """Return major and minor number of a version."""
    return tuple(map(int, version.split(".")[:2]))
