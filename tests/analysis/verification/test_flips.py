"""Flipped bytes of native savepoints; a part of ``python -m tests.flip_check``, which flips all (``flips.tsv``)."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.formats.metadata.reader import parse_metadata
from statetool.formats.operator_id import operator_id_for_uid
from tests.support.checks.flip_check import CHECKED, SAVEPOINTS, Flipper, Small, rows
from tools.packages import ROOT

#: Kinds of files without checksums, in which Flink itself does not find a changed value or operator id.
_UNCHECKED = {"_metadata", "keyed", "timers"}


@pytest.mark.parametrize("savepoint", SAVEPOINTS, ids=str)
def test_a_flipped_byte_is_found_or_harmless(savepoint: Small, tmp_path: Path) -> None:
    draw = random.Random(11)
    flipper = Flipper(savepoint, tmp_path)
    places = list(flipper.places())
    chosen = draw.sample([p for p in places if any(f"-{kind}-" in p[0].name for kind in CHECKED)] or places, 5)
    chosen += draw.sample(places, 3)
    outcomes = [flipper.flip(file, offset, draw.randrange(1, 256)) for file, offset in chosen]
    assert not [o for o in outcomes if o[1] == "refused" or (o[1] == "silent" and o[0] not in _UNCHECKED)]
    assert "found" in {outcome for _, outcome in outcomes}


def test_flipped_offsets_of_raw_timers_are_found(tmp_path: Path) -> None:
    """No checksum covers ``_metadata``: what the groups hold must tell that an offset moved."""
    flipper = Flipper(Small("forst", timers=True), tmp_path)
    metadata = tmp_path / "savepoint" / "_metadata"
    (operator,) = parse_metadata(metadata.read_bytes()).operators
    (handle,) = (s.raw_keyed for s in operator.subtasks)
    assert isinstance(handle, KeyGroupsHandle)
    at = metadata.read_bytes().index(struct.pack(f">{len(handle.offsets)}q", *handle.offsets))
    draw = random.Random(5)
    places = range(at, at + 8 * len(handle.offsets))
    outcomes = {flipper.flip(metadata, offset, draw.randrange(1, 256))[1] for offset in places}
    assert "found" in outcomes
    assert outcomes <= {"found", "harmless"}


def test_a_flipped_operator_id_is_found(tmp_path: Path) -> None:
    """Its uid, which the metadata of Flink 2.1 and later holds, tells."""
    flipper = Flipper(Small("heap"), tmp_path)
    metadata = tmp_path / "savepoint" / "_metadata"
    at = metadata.read_bytes().index(bytes.fromhex(operator_id_for_uid("op")))
    assert {flipper.flip(metadata, at + i, 1 << i % 8)[1] for i in range(16)} == {"found"}


def test_each_flip_was_found_or_harmless_except_in_values_without_checksums() -> None:
    """Flink itself reads another value there: see "Bytes without a checksum" in ``docs/internals/flink-snapshot-format.md``."""
    assert {row.savepoint for row in rows()} <= set(range(len(SAVEPOINTS)))
    for row in rows():
        assert row.backend == SAVEPOINTS[row.savepoint].backend
        assert row.found > 0, row
        assert row.refused == 0, row
        assert row.silent == 0 or row.kind in _UNCHECKED, row
        assert row.harmless == 0 or row.kind not in CHECKED or row.harmless < row.found, row


def test_the_limits_say_how_many_changed_bytes_of_the_heap_backend_are_not_found() -> None:
    found = [row for row in rows() if row.kind == "keyed"]
    silent, total = sum(row.silent for row in found), sum(row.found + row.harmless + row.silent for row in found)
    assert f"{silent} of {total:,} changed bytes" in (ROOT / "docs/operations/limits.md").read_text("utf-8")
