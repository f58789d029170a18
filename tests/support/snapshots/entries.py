"""Entries of snapshots of any kind, and damage that a deep check finds."""

from __future__ import annotations

from pathlib import Path

import statetool
from statetool.analysis.verification.problems import Problem
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from tests.support.checks.corpus_check import Case


def damage(path: Path) -> list[Problem]:
    """Return the problems that a deep check finds, without notes."""
    return [p for p in statetool.verify(str(path), deep=True).problems if p.severity == "error"]


def entries_of(operator: OperatorInventory) -> list[tuple[int, str, bytes, bytes]]:
    """Return key group, state, key and value of each entry, in snapshots of any kind."""
    found = []
    for source in operator.keyed.sources(raw=True):
        states = source.header().states
        for b in source.batches():
            ends = zip(b.state, b.group, b.key, b.key_end, b.value, b.value_end, strict=True)
            found += [
                (int(group), states[state].name, bytes(b.data[key:key_end]), bytes(b.data[value:value_end]))
                for state, group, key, key_end, value, value_end in ends
            ]
    return found


def readable(case: Case, folder: Path) -> Path:
    """Return the case's snapshot, without operators in heap layout with values whose end only user code can find."""
    if "hashmap" not in case.folder.name:
        return case.metadata.parent
    unreadable = [
        name
        for name, operator in Inventory(str(case.metadata)).operators.items()
        if any(meta.value.needs_frame for _, meta in operator.keyed_states.values())
    ]
    statetool.drop(str(case.metadata.parent), str(folder), unreadable)
    case.expected["operators"] = {
        name: wanted
        for name, wanted in case.expected["operators"].items()
        if not {name, wanted["operator_id"]} & set(unreadable)
    }
    return folder
