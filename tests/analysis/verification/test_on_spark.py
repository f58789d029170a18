"""Copy and verify in Spark tasks: the same results as in threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import statetool
from tests.support.failures.damage import Patient


def test_verify_and_copy(spark: Any, corpus: Path, tmp_path: Path) -> None:
    patient = Patient.of(corpus / "v2_3_0-hashmap-native" / "snapshot", tmp_path / "snapshot")
    handle = patient.keyed("timers", 0)
    first, second = (i for i, o in enumerate(handle.offsets) if o > 0 and i < 2)
    copied = statetool.copy(str(patient.folder), str(tmp_path / "copy"), spark=spark)
    assert statetool.verify(str(tmp_path / "copy"), spark=spark) == statetool.verify(str(tmp_path / "copy"))
    assert len(copied.files) > 0

    def swap(offsets: list[int]) -> list[int]:
        offsets[first], offsets[second] = offsets[second], offsets[first]
        return offsets

    patient.change_offsets("timers", 0, swap)
    verification = statetool.verify(str(patient.folder), deep=True, spark=spark)
    assert not verification.ok
    assert verification == statetool.verify(str(patient.folder), deep=True)
