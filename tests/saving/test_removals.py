"""Random commands that remove state leave exactly what was asked; more of them by ``python -m tests.removal_check``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from statetool.saving.streams.expired import ExpiredFilter
from statetool.saving.streams.filters import KeyFilter
from statetool.types import Scalar
from tests.support.checks.removal_check import RemovalCheck, main
from tests.support.corpora.archives import HERE, unpack
from tests.support.removal import edits
from tests.support.removal.derived import derive
from tests.support.removal.key_lists import fit, fit_json

QUICK = "v2_3_0-hashmap-checkpoint"


def checked(root: Path, seed: int, count: int, spark: Any = None, only: str = "") -> RemovalCheck:
    """Run trials of each kind on the snapshots of a folder."""
    check = RemovalCheck(root, seed, spark, lambda path: only in path.as_posix())
    check.conditions(count)
    check.key_lists(count)
    check.others(count)
    assert check.figures.compared_rows > 0
    return check


def faults(check: RemovalCheck) -> list[str]:
    return [fault for found in check.figures.faults.values() for fault in found]


def test_random_removals_leave_what_was_asked(corpus: Path) -> None:
    check = checked(corpus, 1, 3, only=f"{QUICK}/")
    assert faults(check) == []
    assert check.figures.removed_rows > 0


def test_the_oracle_knows_that_json_of_objects_is_the_same_with_other_spaces() -> None:
    text = Scalar("string")
    assert fit_json('{"a":1} ', '{"a":1}', text) == "may"
    assert fit_json('{"a":2} ', '{"a":1}', text) == fit('{"a":1} ', '{"a":1}', text) == "no"


@pytest.mark.full
def test_random_removals_with_keys_of_all_types(tmp_path: Path) -> None:
    jobs = unpack(HERE / "corpus" / "jobs.tar.xz", tmp_path)
    check = checked(jobs, 2, 40, only="keys")
    assert faults(check) == []
    assert len(check.by_key) > 20


@pytest.mark.full
def test_random_removals_on_spark(corpus: Path, tmp_path: Path, spark: Any) -> None:
    derive(corpus, tmp_path / "derived", 0, 3)
    check = RemovalCheck(tmp_path / "derived", 3, spark)
    check.conditions(6)
    check.key_lists(4)
    assert faults(check) == []


@pytest.mark.full
def test_random_removals_in_another_time_zone(corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of derived snapshots: thousands of keys, databases with keys of other subtasks, rescaled copies."""
    few = ["--conditions", "30", "--key-lists", "15", "--others", "15", "--derive", "4", "--time-zones", "Asia/Tokyo"]
    code = main([str(corpus), *few])
    assert code == 0, capfd.readouterr().out


def test_a_key_too_many_is_noticed(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = KeyFilter.mask

    def mask(self: KeyFilter, header: Any, batch: Any) -> Any:
        found = exact(self, header, batch)
        found[np.flatnonzero(found)[:1]] = False
        return found

    monkeypatch.setattr(KeyFilter, "mask", mask)
    check = RemovalCheck(corpus, 1, only=lambda path: f"{QUICK}/" in path.as_posix())
    check.key_lists(5)
    assert faults(check)


def test_expired_values_that_stay_are_noticed(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExpiredFilter, "_find_expired", lambda *arguments: None)
    check = RemovalCheck(corpus, 1, only=lambda path: f"{QUICK}/" in path.as_posix())
    for _ in range(4):
        if (trial := edits.purge(check.r, check.draw_snapshot())) is not None:
            check.run(trial)
    assert any("rows left" in fault for fault in faults(check))
