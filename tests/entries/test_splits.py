from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.entries.form import EntryRequest
from statetool.entries.sizes import STATE_BYTES
from statetool.errors import FormatError
from statetool.formats.metadata import parse_metadata, write_metadata
from statetool.tables.kinds.elements import ElementSplit
from statetool.tables.read import read_split
from statetool.tables.splits import KeyedSplit
from tests.support.snapshots.build import INT, STRING
from tests.support.snapshots.canonical import (
    ListState,
    Subtask,
    composite_key,
    encoded,
    group_of,
    keyed,
    savepoint,
    serializer,
)

KEY = serializer(STRING)


def operator(folder: Path, keys: int = 60) -> statetool.Operator:
    """Write two subtasks with a value state."""
    entries: list[list[tuple[str, int, bytes, bytes]]] = [[], []]
    for i in range(keys):
        group = group_of(KEY, f"k{i}", 128)
        entries[group >= 64].append(("v", group, composite_key(encoded(KEY, f"k{i}")), encoded(serializer(INT), i)))
    state = keyed("v", "value", INT)
    return savepoint(folder, [Subtask(key=STRING, states=[state], entries=e) for e in entries])


def keyed_splits(op: statetool.Operator, **arguments: Any) -> list[KeyedSplit]:
    return [s for s in op.scan("keyed_state", **arguments).splits if isinstance(s, KeyedSplit)]


def groups_of(splits: list[KeyedSplit]) -> list[int]:
    return [number for s in splits for number in s.source.group_sizes()]


def test_splits_are_cut_at_key_groups_whatever_the_parallelism(tmp_path: Path) -> None:
    op = operator(tmp_path)
    groups = groups_of(keyed_splits(op))
    assert len(keyed_splits(op)) == op.parallelism == 2
    for target in (1, 70, 200):
        splits = keyed_splits(op, split_bytes=target)
        assert groups_of(splits) == groups
        assert all(s.size_bytes <= target or len(groups_of([s])) == 1 for s in splits)
    assert len(keyed_splits(op, split_bytes=1)) == len(groups) == len(set(groups))


def test_a_split_stands_alone(tmp_path: Path) -> None:
    op = operator(tmp_path)
    whole = op.to_arrow().to_pylist()
    (tmp_path / "_metadata").unlink()
    splits = pickle.loads(pickle.dumps(keyed_splits(op, split_bytes=100)))
    assert [r for s in splits for b in read_split(s) for r in b.to_pylist()] == whole


def test_keys_select_their_key_groups(tmp_path: Path) -> None:
    op = operator(tmp_path)
    splits = keyed_splits(op, keys=["k3", "k4", "not there"])
    assert set(groups_of(splits)) <= {group_of(KEY, k, 128) for k in ("k3", "k4", "not there")}
    assert op.to_arrow(keys=["k3", "k4", "not there"]).num_rows == 2
    assert keyed_splits(op, keys=[]) == []


@pytest.mark.parametrize("compressed", [False, True])
def test_operator_state_is_cut_at_elements(tmp_path: Path, compressed: bool) -> None:
    elements = [[encoded(KEY, "x" * (i % 40)) for i in range(50)], [], [encoded(KEY, "last")]]
    others = [[b"\0\0\0\1"], [b"\0\0\0\2"], [b"\0\0\0\3"]]
    states = {"a": ListState(value=STRING, elements=elements), "b": ListState(value=INT, elements=others)}
    op = savepoint(tmp_path, operator_states=states, compressed=compressed)
    wanted = ["x" * (i % 40) for i in range(50)] + ["last"]
    for target in (1, 100, 1 << 20):
        scan = op.scan("a", split_bytes=target)
        splits = [s for s in scan.splits if isinstance(s, ElementSplit)]
        assert [v for b in scan.batches() for v in b["value"].to_pylist()] == wanted
        assert sum(len(s.starts) for s in splits) == 51
        assert len(splits) == {1: 51, 1 << 20: 2}.get(target, len(splits))
    assert op.to_arrow("b")["value"].to_pylist() == [1, 2, 3]


def test_an_offset_beyond_the_stream_is_damage(tmp_path: Path) -> None:
    savepoint(tmp_path, operator_states={"a": ListState(value=INT, elements=[[b"\0\0\0\1"]])})
    metadata = parse_metadata((tmp_path / "_metadata").read_bytes())
    (op,) = metadata.operators
    (subtask,) = op.subtasks
    handle = subtask.managed_operator
    assert handle is not None
    far = replace(handle, states=tuple(replace(s, offsets=(1 << 20,)) for s in handle.states))
    bad = replace(metadata, operators=(replace(op, subtasks=(replace(subtask, managed_operator=far),)),))
    (tmp_path / "_metadata").write_bytes(write_metadata(bad))
    with pytest.raises(FormatError, match="offset"):
        next(iter(statetool.load(str(tmp_path)).operators.values())).to_arrow("a")


def test_batches_grow_with_the_number_of_states(tmp_path: Path) -> None:
    """Each state of each batch costs the same work, however few entries it has."""
    key, value = serializer(STRING), encoded(serializer(INT), 1)
    names = [f"s{i}" for i in range(40)]
    keys = [(group_of(key, f"k{i}", 128), composite_key(encoded(key, f"k{i}"))) for i in range(300)]
    entries = [(name, group, raw, value) for name in names for group, raw in keys]
    states = [keyed(name, "value", INT) for name in names]
    (split,) = keyed_splits(savepoint(tmp_path, [Subtask(key=STRING, states=states, entries=entries)]))

    def count(**request: Any) -> int:
        return len(list(split.source.batches(EntryRequest(batch_bytes=1, **request))))

    assert count() == -(-split.size_bytes // (40 * STATE_BYTES)) == 1
    assert count(memory_bytes=4000) > 100, "the memory of a read bounds its batches"
