from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.checks.corpus_check import Case
from tests.support.checks.damage_check import check_damage

pytestmark = pytest.mark.full


@pytest.mark.parametrize(
    "name", ["v1_13_6-rocksdb-canonical", "v2_3_0-hashmap-canonical", "v2_3_0-rocksdb-canonical-compressed"]
)
def test_damaged_savepoints_give_rows_or_our_error(corpus: Path, name: str) -> None:
    """A part of ``python -m tests.damage_check``, which runs all cases with 200 truncations and 2,000 changes."""
    check_damage([Case(corpus / name)], truncations=60, changes=400, seed=3)
