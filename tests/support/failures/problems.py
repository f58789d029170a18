"""Problems that ``verify`` finds in a damaged snapshot, and a damage used by several tests."""

from __future__ import annotations

from pathlib import Path

import statetool
from statetool.analysis.verification.problems import Problem
from statetool.snapshot.inventory import Inventory
from tests.support.failures.damage import Patient


def errors(path: Path, *, deep: bool = False, **options: object) -> list[Problem]:
    verification = statetool.verify(str(path), deep=deep, allow_unread=True, **options)  # type: ignore[arg-type]
    wrong = [p for p in verification.problems if p.severity == "error"]
    assert verification.ok == (not wrong)
    return wrong


def only(problems: list[Problem]) -> Problem:
    (problem,) = problems
    return problem


def move_key(patient: Patient, uid: str) -> None:
    """Change the last byte of a key, which then is in the wrong key group."""
    batch, base = patient.entries(uid, 0, next(iter(Inventory(str(patient.folder)).operator(uid).keyed_states)))
    at = int(batch.key_end[0]) - 2  # before the namespace
    patient.change_bytes(uid, 0, base + at, bytes([int(batch.data[at]) ^ 1]))
