from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.failures.damage import Patient


@pytest.fixture
def patient(corpus: Path, tmp_path: Path) -> Patient:
    return Patient.of(corpus / "v2_3_0-rocksdb-canonical" / "snapshot", tmp_path / "snapshot")
