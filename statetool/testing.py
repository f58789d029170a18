"""Fixture for tests of jobs with a sample of a real snapshot. Import it into ``conftest.py``: ``from statetool.testing import sample``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import statetool

__all__ = ["sample"]


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., statetool.Savepoint]:
    """Return a function that writes a sample of a snapshot and opens it.

    The function takes the path of the snapshot and the keyword arguments of :func:`statetool.sample`. The default is ``keys=100``. Equal calls
    of a test run share one sample, which is removed with the temporary directories of pytest.
    """
    samples: dict[str, statetool.Savepoint] = {}

    def write(path: str, **options: Any) -> statetool.Savepoint:
        if not {"keys", "key_groups"} & options.keys():
            options["keys"] = 100
        call = repr((str(path), sorted(options.items())))
        if call not in samples:
            target = str(tmp_path_factory.mktemp("sample") / "savepoint")
            statetool.sample(str(path), target, **options)
            samples[call] = statetool.load(target, uids=options.get("uids", ()))
        return samples[call]

    return write
