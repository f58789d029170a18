"""The changelog state backend: change sets on top of materialized state."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statetool
from statetool import flink
from statetool.errors import FormatError, StatetoolError, UnknownNameError, UnknownSerializerError, UnsupportedError
from statetool.formats.key_groups import key_group_for
from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.metadata import SnapshotMetadata
from statetool.formats.metadata.handles import ByteStreamHandle, ChangelogHandle, ChangesHandle, IncrementalHandle
from statetool.formats.metadata.writer import write_metadata
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer
from tests.support.checks.corpus_check import Case
from tests.support.snapshots.build import INT, LONG, STRING, list_of, map_of, simple
from tests.support.snapshots.canonical import composite_key, encoded, key_group_bytes, keyed, serializer, timers
from tests.support.snapshots.changelog import Change, Log, Model, change, change_set, description, snapshot

GROUPS: Final = 8
STRINGS: Final = serializer(STRING)
LONGS: Final = serializer(LONG)
INTS: Final = serializer(INT)
STATES: Final = (
    keyed("values", "value", LONG),
    keyed("lists", "list", list_of(INT), INT),
    keyed("maps", "map", map_of(STRING, INT)),
    timers("_timer_state/event_t", STRING),
)
IDS: Final = (3, 0, 7, 1)  # of each state in the changelog
KEYS: Final = ["a", "b", "cc", "", "\u00e9"]


def text(value: str) -> bytes:
    return encoded(STRINGS, value)


def number(value: int) -> bytes:
    return encoded(INTS, value)


def long(value: int) -> bytes:
    return encoded(LONGS, value)


def group(key: str) -> int:
    return key_group_for(STRINGS.hash_code(key), GROUPS)


def timer(at: int, key: str) -> bytes:
    return (at + (1 << 63)).to_bytes(8, "big") + text(key) + b"\0"


def count(n: int) -> bytes:
    return n.to_bytes(4, "big")


keys = st.sampled_from(KEYS)
small = st.integers(0, 3)
numbers = st.lists(small, max_size=3)
operations = st.one_of(
    st.tuples(st.just("set"), keys, st.integers(-5, 5)),
    st.tuples(st.just("unset"), keys),
    st.tuples(st.just("append"), keys, small, small),
    st.tuples(st.just("extend"), keys, small, numbers),
    st.tuples(st.just("replace"), keys, small, numbers),
    st.tuples(st.just("empty"), keys, small),
    st.tuples(st.just("merge"), keys, small, st.lists(small, unique=True, min_size=1, max_size=2)),
    st.tuples(st.just("put"), keys, keys, small),
    st.tuples(st.just("put all"), keys, st.dictionaries(keys, small, max_size=3)),
    st.tuples(st.just("drop"), keys, keys),
    st.tuples(st.just("clear"), keys),
    st.tuples(st.just("timer"), keys, small),
    st.tuples(st.just("fired"), keys, small),
)
Operation = tuple[Any, ...]


def apply(model: Model, operation: Operation) -> Change:
    """Apply an operation to the model and return its change."""
    match operation:
        case ("set", str(key), int(value)):
            model.values[key] = value
            return change(group(key), 1, IDS[0], text(key) + b"\0" + long(value))
        case ("unset", str(key)):
            model.values.pop(key, None)
            return change(group(key), 0, IDS[0], text(key) + b"\0")
        case ("append", str(key), int(namespace), int(value)):
            model.lists.setdefault((key, namespace), []).append(value)
            return change(group(key), 5, IDS[1], text(key) + number(namespace) + number(value))
        case ("extend" | "replace" as kind, str(key), int(namespace), list(values)):
            if kind == "replace":
                model.lists[key, namespace] = []
            model.lists.setdefault((key, namespace), []).extend(values)
            payload = text(key) + number(namespace) + count(len(values)) + b"".join(map(number, values))
            return change(group(key), 3 if kind == "extend" else 1, IDS[1], payload)
        case ("empty", str(key), int(namespace)):
            model.lists.pop((key, namespace), None)
            return change(group(key), 0, IDS[1], text(key) + number(namespace))
        case ("merge", str(key), int(target), list(sources)):
            moved = [v for s in sources for v in model.lists.pop((key, s), [])]
            model.lists.setdefault((key, target), []).extend(moved)
            payload = text(key) + number(9) + number(target) + count(len(sources)) + b"".join(map(number, sources))
            return change(group(key), 4, IDS[1], payload)
        case ("put", str(key), str(user_key), int(value)):
            model.maps.setdefault(key, {})[user_key] = value
            return change(group(key), 6, IDS[2], text(key) + b"\0" + text(user_key) + number(value))
        case ("put all", str(key), dict(entries)):
            model.maps.setdefault(key, {}).update(entries)
            pairs = b"".join(text(k) + b"\0" + number(v) for k, v in entries.items())
            return change(group(key), 3, IDS[2], text(key) + b"\0" + count(len(entries)) + pairs)
        case ("drop", str(key), str(user_key)):
            model.maps.get(key, {}).pop(user_key, None)
            return change(group(key), 7, IDS[2], text(key) + b"\0" + text(user_key))
        case ("clear", str(key)):
            model.maps.pop(key, None)
            return change(group(key), 0, IDS[2], text(key) + b"\0")
        case ("timer", str(key), int(at)):
            model.timers.add((at, key))
            return change(group(key), 5, IDS[3], count(1) + timer(at, key))
        case ("fired", str(key), int(at)):
            model.timers.discard((at, key))
            return change(group(key), 7, IDS[3], timer(at, key))
    raise AssertionError(operation)


def materialized(model: Model, states: Sequence[StateMetaInfo]) -> tuple[bytes, list[int]]:
    """Return a canonical stream with the model's current state, with its states in another order than in the log."""
    order = [m.name for m in states]
    by_group: dict[int, dict[int, list[tuple[bytes, bytes]]]] = {}

    def add(name: str, key: str, entry: tuple[bytes, bytes]) -> None:
        by_group.setdefault(group(key), {}).setdefault(order.index(name), []).append(entry)

    for key, value in model.values.items():
        add("values", key, (composite_key(text(key)), long(value)))
    for (key, namespace), values in model.lists.items():
        if values:
            add("lists", key, (composite_key(text(key), number(namespace)), b",".join(map(number, values))))
    for key, entries in model.maps.items():
        for user_key, value in entries.items():
            add("maps", key, (composite_key(text(key), b"\0", text(user_key)), b"\0" + number(value)))
    for at, key in model.timers:
        add("_timer_state/event_t", key, (timer(at, key), b""))
    header = KeyedHeader(version=6, compressed=False, key=STRINGS, states=tuple(states), size_bytes=0)
    raw, offsets = bytearray(write_keyed_header(header)), []
    for key_group in range(GROUPS):
        offsets.append(len(raw) if key_group in by_group else 0)
        raw += key_group_bytes(key_group, 1, by_group.get(key_group, {}).items())
    return bytes(raw), offsets


def rows(op: statetool.Operator, **options: Any) -> dict[str, Any]:
    """Return the rows of the tables, in the form of the model."""
    shown: dict[str, Any] = {
        "values": {r["key"]: r["value"] for r in op.to_arrow("values", **options).to_pylist()},
        "lists": {},
        "maps": {},
    }
    for r in op.to_arrow("lists", **options).to_pylist():
        items = shown["lists"].setdefault((r["key"], r["namespace"]), [])
        assert r["list_index"] == len(items)
        items.append(r["value"])
    for r in op.to_arrow("maps", **options).to_pylist():
        shown["maps"].setdefault(r["key"], {})[r["map_key"]] = r["value"]
    timer_rows = op.to_arrow("timers", **options).to_pylist()
    shown["timers"] = {(r["timestamp"], r["key"]) for r in timer_rows}
    assert len(timer_rows) == len(shown["timers"])
    by_key = op.to_arrow("keyed_state", **options).to_pylist()
    assert {r["key"]: r["values"] for r in by_key if r["values"] is not None} == shown["values"]
    assert {r["key"]: dict(r["maps"]) for r in by_key if r["maps"] is not None} == shown["maps"]
    assert len(by_key) == len({r["key"] for r in by_key})
    return shown


@settings(max_examples=60)
@given(
    st.lists(operations, max_size=12),
    st.lists(st.lists(operations, max_size=12), min_size=1, max_size=3),
    st.sampled_from(["plain", "compressed", "in_metadata", "old"]),
    st.booleans(),
)
def test_replay_agrees_with_a_plain_model(
    before: list[Operation], after: list[list[Operation]], form: str, small_memory: bool
) -> None:
    model = Model()
    for operation in before:
        apply(model, operation)
    below = materialized(model, STATES[::-1])
    sets = [[apply(model, operation) for operation in changes] for changes in after]
    sets[0] = [description(i, m) for i, m in zip(IDS, STATES, strict=True)] + sets[0]
    with tempfile.TemporaryDirectory() as folder:
        log = Log(sets, compressed=form == "compressed", in_metadata=form == "in_metadata", old=form == "old")
        op = snapshot(Path(folder), log, [below])
        options = {"memory_bytes": 50, "split_bytes": 100} if small_memory else {}
        assert rows(op, **options) == model.rows()


def test_the_key_is_told_by_timers_where_nothing_lies_below(tmp_path: Path) -> None:
    model = Model()
    changes = [apply(model, ("set", "a", 1)), apply(model, ("timer", "a", 5))]
    op = snapshot(tmp_path, Log([[description(i, m) for i, m in zip(IDS, STATES, strict=True)] + changes]))
    assert rows(op) == model.rows()
    assert op.states["values"].key_type == "String"


def values_only(tmp_path: Path, names: Sequence[str]) -> statetool.Operator:
    changes = [apply(Model(), ("set", name, i)) for i, name in enumerate(names)]
    return snapshot(tmp_path, Log([[description(IDS[0], STATES[0]), *changes]]))


def test_the_key_is_found_by_its_key_groups(tmp_path: Path) -> None:
    op = values_only(tmp_path, [f"key {i}" for i in range(12)])
    assert op.states["values"].key_type == "String (found by key groups)"
    assert {r["key"]: r["value"] for r in op.to_arrow("values").to_pylist()} == {f"key {i}": i for i in range(12)}


def keyed_by(tmp_path: Path, key: Serializer, keys: Sequence[Any]) -> Path:
    """Write a changelog without materialized state: one value per key."""
    changes = []
    for i, k in enumerate(keys):
        number = key_group_for(key.hash_code(k), GROUPS)
        changes.append(change(number, 1, IDS[0], encoded(key, k) + b"\0" + long(i)))
    snapshot(tmp_path, Log([[description(IDS[0], STATES[0]), *changes]]))
    return tmp_path


@pytest.mark.parametrize(
    ("key", "keys", "taken_for"),
    [
        ("Double", [0.0, 0.5, -1.25, 1e300, float("inf"), 5e-324, *map(float, range(9, 16))], "Long or Double"),
        ("Double", [1.0, 2.0, float("nan"), -0.0, *(i + 0.5 for i in range(9))], "Long or Double"),
        ("Float", [0.5, 1.5, -2.5, 1.401298464324817e-45, *map(float, range(9))], "Int or Float"),
        ("Date", [1_700_000_000_000 + 86_400_000 * i for i in range(12)], "Long or Date"),
        ("Char", list("abcdefghijklm"), "Short or Char"),
    ],
)
def test_keys_that_may_be_of_two_types_are_refused(tmp_path: Path, key: str, keys: list[Any], taken_for: str) -> None:
    declared = flink.basic(key)
    path = keyed_by(tmp_path, declared, list(dict.fromkeys(keys)))
    with pytest.raises(UnknownSerializerError, match=f"{taken_for}.*key_types"):
        statetool.load(str(path), uids=["op"])["op"].to_arrow("values")
    op = statetool.load(str(path), uids=["op"], key_types={"op": declared})["op"]
    table = op.to_arrow("values")
    assert sorted(table["value"].to_pylist()) == list(range(len(dict.fromkeys(keys))))
    assert op.states["values"].key_type == key


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("Long", [*range(8), 500, 2**40, 2**62, -(2**63)]),
        ("Long", [-7, *(2**60 + i for i in range(12))]),
        ("Int", [3, -5, 2**31 - 1, *(10_000_000 * i for i in range(1, 12))]),
        ("Short", [-1, *range(66, 78)]),
        ("Short", [*range(20, 33)]),
    ],
)
def test_integers_that_can_be_nothing_else_are_found(tmp_path: Path, key: str, keys: list[int]) -> None:
    op = statetool.load(str(keyed_by(tmp_path, flink.basic(key), keys)), uids=["op"])["op"]
    assert op.states["values"].key_type == f"{key} (found by key groups)"
    assert sorted(r["key"] for r in op.to_arrow("values").to_pylist()) == sorted(keys)


def test_fields_of_tuples_that_may_be_of_two_types_are_refused(tmp_path: Path) -> None:
    key = flink.tuple_of("STRING", "DOUBLE")
    path = keyed_by(tmp_path, key, [(f"k{i}", i / 2) for i in range(12)])
    with pytest.raises(UnknownSerializerError, match="Long or Double \\(f1 of a tuple\\)"):
        statetool.load(str(path), uids=["op"])["op"].to_arrow("values")


def test_few_keys_do_not_tell_their_type(tmp_path: Path) -> None:
    with pytest.raises(UnknownSerializerError, match=r"too few keys tell \(String would fit\)"):
        values_only(tmp_path, ["one", "two"]).to_arrow("values")


def test_another_operator_tells_the_type_of_keys(tmp_path: Path) -> None:
    op = values_only(tmp_path, ["one", "two"])
    info = op.states["values"]
    assert not info.readable
    assert "does not say the type of its keys" in info.reason
    (tmp_path / "other").mkdir()
    model = Model(values={"x": 1})
    other = snapshot(tmp_path / "other", Log(), [materialized(model, STATES)])
    op = statetool.load(str(tmp_path), uids=["op"], key_types={"op": other})["op"]
    assert op.to_arrow("values").to_pylist() == [{"key": "one", "value": 0}, {"key": "two", "value": 1}]
    with pytest.raises(UnknownNameError, match="key_types: no operator"):
        statetool.load(str(tmp_path), key_types={"sums": other})


def test_keys_of_no_known_type_are_refused(tmp_path: Path) -> None:
    changes = [
        change((group(name) + 1) % GROUPS, 1, IDS[0], text(name) + b"\0" + long(1)) for name in map(str, range(12))
    ]
    op = snapshot(tmp_path, Log([[description(IDS[0], STATES[0]), *changes]]))
    with pytest.raises(UnknownSerializerError, match="none of the common types fits"):
        op.to_arrow("values")


def test_merged_values_of_reducing_state_take_the_function_of_the_job(tmp_path: Path) -> None:
    meta = keyed("sums", "reducing", LONG, INT)
    one = [change(group("a"), 2, 0, text("a") + number(n) + long(5)) for n in (1, 2)]
    merge = change(group("a"), 4, 0, text("a") + number(0) + number(1) + count(1) + number(2))
    (tmp_path / "moved").mkdir()
    moved = snapshot(tmp_path / "moved", Log([[description(0, meta), one[1], merge]]), [materialized(Model(), STATES)])
    assert moved.to_arrow("sums").to_pylist() == [{"key": "a", "namespace": 1, "value": 5}]
    op = snapshot(tmp_path, Log([[description(0, meta), *one, merge]]), [materialized(Model(), STATES)])
    with pytest.raises(UnsupportedError, match="takes the job's function"):
        op.to_arrow("sums")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([change(1, 1, 5, b"")], "state id 5, which the change log does not describe"),
        ([description(-12798, STATES[0])], "id -12798 of state 'values'"),
        ([change(group("a"), 6, IDS[0], text("a") + b"\0")], "operation 6 on value state"),
        ([change(group("a"), 1, IDS[3], b"")], "operation 1 on timers state"),
        ([change(group("a"), 1, IDS[1], text("a") + number(1) + count(7))], "expected 4 more bytes"),
    ],
)
def test_damage_is_refused(tmp_path: Path, changes: list[Change], message: str) -> None:
    op = snapshot(
        tmp_path,
        Log([[description(i, m) for i, m in zip(IDS, STATES, strict=True)] + changes]),
        [materialized(Model(), STATES)],
    )
    with pytest.raises(FormatError, match=message):
        rows(op)


def test_a_state_of_another_type_than_below_is_refused(tmp_path: Path) -> None:
    other = keyed("values", "value", simple("Short"))
    op = snapshot(tmp_path, Log([[description(0, other)]]), [materialized(Model(), STATES)])
    with pytest.raises(FormatError, match="describes state 'values'"):
        op.to_arrow("values")


def test_cut_off_files_are_refused(tmp_path: Path) -> None:
    op = values_only(tmp_path, [f"key {i}" for i in range(12)])
    file = tmp_path / "changes-0"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(FormatError, match="change set"):
        op.to_arrow("values")


def test_a_log_stands_on_a_database(corpus: Path, tmp_path: Path) -> None:
    """RocksDB's entries are present, except for the key changed by the log and the one that it cleared."""
    case = Case(corpus / "v2_3_0-rocksdb-incremental-inline")
    metadata = statetool.load(str(case.metadata)).inventory.metadata
    (operator,) = [o for o in metadata.operators if o.uid == "with-ttl"]
    before = {
        r["key"]: r["value"] for r in statetool.load(str(case.metadata))["with-ttl"].to_arrow("plain").to_pylist()
    }
    changed, cleared = sorted(before)[:2]
    meta = statetool.load(str(case.metadata))["with-ttl"].inventory.keyed_states["plain"][1]

    def of(key: int, operation: int, payload: bytes) -> Change:
        return change(key_group_for(LONGS.hash_code(key), 128), operation, 4, long(key) + b"\0" + payload)

    log = change_set([description(4, meta), of(changed, 1, long(-7)), of(cleared, 0, b""), of(1 << 40, 1, long(8))])
    subtasks = []
    for subtask in operator.subtasks:
        below = subtask.managed_keyed
        assert isinstance(below, IncrementalHandle)
        file = ByteStreamHandle(name="log", data=b"\0" + log)
        changes = ChangesHandle(
            tag=13, start=below.start, count=below.count, streams=((0, file),), state_size=len(log),
            checkpointed_size=0, handle_id="log", storage_id="filesystem",
        )  # fmt: skip
        handle = ChangelogHandle(
            tag=14, start=below.start, count=below.count, materialized=(below,), changes=(changes,),
            checkpointed_size=0, materialization_id=1, checkpoint_id=1, handle_id="handle",
        )  # fmt: skip
        subtasks.append(replace(subtask, managed_keyed=handle))
    made = replace(metadata, operators=(replace(operator, subtasks=tuple(subtasks)),))
    (tmp_path / "_metadata").write_bytes(write_metadata(made))
    moved = {f"file:{case.info['root_path_at_write']}": str(case.folder / "snapshot")}
    op = statetool.load(str(tmp_path), rebase=moved)["with-ttl"]
    expected = {**before, changed: -7, 1 << 40: 8}
    del expected[cleared]
    assert {r["key"]: r["value"] for r in op.to_arrow("plain").to_pylist()} == expected
    for table in ("ttl-map", "ttl-list"):
        old = statetool.load(str(case.metadata))["with-ttl"].to_arrow(table).to_pylist()
        assert sorted(map(repr, op.to_arrow(table).to_pylist())) == sorted(map(repr, old))


def test_two_subtasks_whose_keys_are_not_told_say_so_everywhere(tmp_path: Path) -> None:
    """Their states are listed. Everything that needs a key raises the same reason as verification."""
    key = flink.tuple_of("STRING", "DOUBLE")
    handles = []
    for n, metas in enumerate((STATES[:1], STATES[:2])):
        changes = [description(i, m) for i, m in zip(IDS, metas, strict=False)]
        for i in range(12):
            k = (f"k{i}", i / 2)
            changes.append(
                change(key_group_for(key.hash_code(k), GROUPS), 1, IDS[0], encoded(key, k) + b"\0" + long(i))
            )
        (tmp_path / str(n)).mkdir()
        handles.append(snapshot(tmp_path / str(n), Log([changes])).inventory.state.subtasks[0])
    state = snapshot(tmp_path, Log()).inventory.state
    both = replace(state, parallelism=2, subtasks=(handles[0], replace(handles[1], index=1)))
    metadata = SnapshotMetadata(version=3, checkpoint_id=1, operators=(both,))
    (tmp_path / "_metadata").write_bytes(write_metadata(metadata))
    reason = r"does not say the type of its keys.*Long or Double \(f1 of a tuple\)"
    sp = statetool.load(str(tmp_path), uids=["op"])
    op = sp["op"]
    assert len(op.states) == 2
    assert all(re.search(reason, s.reason) and "key_types" in s.reason for s in op.states.values())
    assert "values" in op.tables
    for table in ("values", "keyed_state"):
        with pytest.raises(UnknownSerializerError, match=f"{reason}.*key_types"):
            op.to_arrow(table)
    assert any(re.search(reason, p.problem) for p in statetool.verify(sp).problems)
    with pytest.raises(StatetoolError, match=f"{reason}.*key_types"):
        statetool.convert(str(tmp_path), str(tmp_path.with_name(f"{tmp_path.name}-converted")))
    (row,) = statetool.rescale(
        str(tmp_path), str(tmp_path.with_name(f"{tmp_path.name}-rescaled")), 16, dry_run=True
    ).operators
    assert re.search(reason, row.problem)
