"""Uids and ids of operators, changed only in the metadata."""

from __future__ import annotations

import pytest

from statetool.errors import OptionError, UnknownNameError
from statetool.formats.metadata import OperatorState, SnapshotMetadata, parse_metadata, write_metadata
from statetool.formats.operator_id import operator_id_for_uid
from statetool.saving.uids import change_uids

HEX = "00112233445566778899aabbccddeeff"


def snapshot(*uids: str, version: int = 6) -> SnapshotMetadata:
    operators = tuple(
        OperatorState(
            operator_id=operator_id_for_uid(uid),
            parallelism=2,
            max_parallelism=128,
            subtasks=(),
            name=f"name of {uid}" if version >= 5 else "",
            uid=uid if version >= 5 else "",
        )
        for uid in uids
    )
    properties = b"\xac\xed\x00\x05p" if version >= 4 else b""
    return SnapshotMetadata(version=version, checkpoint_id=7, operators=operators, properties=properties)


def uids_of(metadata: SnapshotMetadata) -> list[str]:
    assert parse_metadata(write_metadata(metadata)) == metadata
    return [o.uid for o in metadata.operators]


def test_a_new_uid_changes_id_and_clear_text_and_nothing_else() -> None:
    before = snapshot("a", "b")
    after = change_uids(before, {"a": "c"})
    assert uids_of(after) == ["c", "b"]
    assert after.operators[0].operator_id == operator_id_for_uid("c")
    assert after.operators[0].name == "name of a"
    assert after.operators[1] is before.operators[1]


def test_swaps_and_chains_happen_at_once() -> None:
    assert uids_of(change_uids(snapshot("a", "b"), {"a": "b", "b": "a"})) == ["b", "a"]
    assert uids_of(change_uids(snapshot("a", "b", "c"), {"a": "b", "b": "c", "c": "d"})) == ["b", "c", "d"]


def test_ids_are_found_and_set_by_their_hex_digits() -> None:
    old = operator_id_for_uid("a")
    assert uids_of(change_uids(snapshot("a"), {old.upper(): "b"})) == ["b"]
    after = change_uids(snapshot("a"), {"a": HEX.upper()})
    assert (after.operators[0].operator_id, after.operators[0].uid) == (HEX, "")


def test_metadata_that_knows_ids_only_is_searched_by_the_hash_of_the_uid() -> None:
    after = change_uids(snapshot("a", version=3), {"a": "b"})
    assert after.operators[0].operator_id == operator_id_for_uid("b")
    assert uids_of(after) == [""]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"x": "y"}, UnknownNameError, "no operator 'x'"),
        ({"a": "b"}, OptionError, "would both become b"),
        ({"a": "c", "b": "c"}, OptionError, "would both become c"),
        ({"a": ""}, OptionError, "is empty"),
        ({"a": "c", operator_id_for_uid("a"): "d"}, OptionError, "the same operator"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, str], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        change_uids(snapshot("a", "b"), changes)
