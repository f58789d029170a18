"""Classes of ``java/acme/Shop.java``, compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from statetool.io import cache
from tests.support.compile import compile_java

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the classes."""
    return compile_java((HERE / "java").rglob("*.java"), tmp_path_factory.mktemp("shop"))


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache folder."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    assert cache.cache_folders("classes")[0].is_relative_to(folder)
    return folder / "statetool" / "classes"
