"""Elements of operator state that ``set-elements`` changed, removed and added are those that Flink restores."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from tests.support.flink.corpus_cases import expected_of, own_case
from tests.support.flink.edited import opened, restored_differences
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full


@pytest.mark.case("{written}")
@pytest.mark.in_turn(1)
@pytest.mark.parametrize(
    ("written", "backend"), [("rocksdb-canonical", "hashmap"), ("rocksdb-native", "rocksdb"), ("forst-native", "forst")]
)
def test_elements_of_lists_union_lists_and_broadcast_states_restore(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    buffered, offsets = (expected["op-lists"]["operator_state"][name] for name in ("buffered", "offsets"))
    limits = expected["keyed-broadcast"]["operator_state"]["limits"]

    statetool.set_elements(
        opened(case, expected, tmp_path), str(tmp_path / "lists"), "op-lists", "buffered", where="value.f0 < 5",
        change={"value.f1": "new"}, add=[{"f0": 99, "f1": "added"}],
    )  # fmt: skip
    buffered["rows"] = [[n, "new" if n < 5 else text] for n, text in buffered["rows"]] + [[99, "added"]]
    statetool.set_elements(
        str(tmp_path / "lists"), str(tmp_path / "unions"), "op-lists", "offsets", where="value.f0 LIKE 'part-_'", remove=True,
        add=[{"f0": "part-99", "f1": 7}],
    )  # fmt: skip
    offsets["rows"] = [[name, n] for name, n in offsets["rows"] if len(name) > 6] + [["part-99", 7]]
    statetool.set_elements(
        str(tmp_path / "unions"), str(tmp_path / "sp"), "keyed-broadcast", "limits", where="key > 4", remove=True,
        add=[{"key": 99, "value": {"f0": 1, "f1": "x"}}],
    )  # fmt: skip
    limits["rows"] = [[key, value] for key, value in limits["rows"] if key <= 4] + [[99, [1, "x"]]]
    assert restored_differences(flink, tmp_path, expected, backend, tmp_path / "sp") == []
