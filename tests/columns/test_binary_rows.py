"""Rows of ``BinaryRowDataSerializer``, whose snapshot has no types: bytes, or values if their types are declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.errors import EncodeError, OptionError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.naming import name_fields
from statetool.serializers.sql.rowdata import BinaryRowSerializer
from statetool.serializers.table import snapshot_reader
from tests.support.checks.serializer_check import Case
from tests.support.corpora.golden import generated
from tests.support.snapshots.build import INT, list_of
from tests.support.snapshots.canonical import ListState, Subtask, composite_key, encoded, keyed, savepoint, timers
from tests.support.snapshots.native import native_savepoint
from tests.support.snapshots.stored import groups_of

CASES: Final = generated()["binary-rowdata"]
TYPES: Final = "ROW<id BIGINT, name STRING>"
TIMERS: Final = "_timer_state/event_user-timers"
KEY: Final = {"id": 5, "name": "hello world!"}
ROW: Final = {**KEY, "_kind": "+I"}


def bare(case: Case) -> BinaryRowSerializer:
    """Return the serializer of Flink's snapshot."""
    assert case.snapshot is not None
    s = snapshot_reader().snapshot(Cursor(case.snapshot))
    assert isinstance(s, BinaryRowSerializer)
    return s


def of_fields(n: int) -> BinaryRowSerializer:
    s = bare(CASES[0])
    return BinaryRowSerializer(s.snapshot_class, s.snapshot_version, n.to_bytes(4, "big"))


def typed(s: Serializer, text: str) -> Serializer:
    return name_fields(s, (), text, "state")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_declared_types_read_what_flink_wrote(case: Case) -> None:
    """Value, bytes, snapshot, hash code and key are those of Flink."""
    s = typed(bare(case), TYPES)
    assert case.data is not None
    assert case.hashes is not None
    assert case.snapshot is not None
    value = s.decode(Cursor(case.data))
    assert value == (5, "hello world!", "+I")
    assert encoded(s, value) == case.data
    assert s.hash_code(value) == case.hashes[0]
    assert typed(bare(case).as_key(), TYPES).key_forms(value[:2]) == ((case.data, case.hashes[0]),)
    out = Output()
    s.write_snapshot(out)
    assert bytes(out) == case.snapshot


@pytest.mark.parametrize("make", [savepoint, native_savepoint])
def test_states_keys_namespaces_and_timers(tmp_path: Path, make: Any) -> None:
    """Check a row written by Flink in every possible place, and in the key group that Flink computes for it as a key."""
    case = CASES[-1]
    raw, group = case.data, (case.key_groups or [None])[0]
    assert raw is not None
    assert group is not None
    row = bare(case)
    states = [
        keyed("whole", "value", row),
        keyed("rows", "list", list_of(row)),
        keyed("spaces", "value", INT, namespace=row),
        timers(TIMERS, row, row),
    ]
    entries = [
        ("whole", group, composite_key(raw), raw),
        ("rows", group, composite_key(raw), raw + b"," + raw),
        ("spaces", group, composite_key(raw, raw, ambiguous=True), b"\0\0\0\7"),
        (TIMERS, group, (9 ^ -(1 << 63)).to_bytes(8, "big", signed=True) + raw + raw, b""),
    ]
    op = make(tmp_path, [Subtask(key=row, states=states, entries=entries)])
    plain = op.to_arrow(key_group=True).to_pylist()
    assert plain == [{"key": raw[4:], "whole": raw[4:], "rows": [raw[4:]] * 2, "key_group": group}]
    declared: dict[str, Any] = {"key": TYPES, "whole": TYPES, "rows": TYPES}
    assert op.to_arrow(columns=declared).to_pylist() == [{"key": KEY, "whole": ROW, "rows": [ROW, ROW]}]
    spaces = op.to_arrow("spaces", columns={"key": TYPES, "spaces.namespace": TYPES}).to_pylist()
    assert spaces == [{"key": KEY, "namespace": ROW, "value": 7}]
    (timer,) = op.to_arrow("timers", columns={"key": TYPES, f"{TIMERS}.namespace": TYPES}).to_pylist()
    assert (timer["key"], timer["namespace"]) == (KEY, ROW)
    # Only the key group of the requested key is read.
    scan = op.scan("keyed_state", columns=declared, keys=[(5, "hello world!")])
    assert groups_of(scan.splits) == [group]
    assert [r["key"] for b in scan.batches() for r in b.to_pylist()] == [KEY]
    assert op.to_arrow(columns=declared, keys=[(6, "hello world!")]).num_rows == 0
    with pytest.raises(EncodeError, match="types are declared"):
        op.to_arrow(keys=[(5, "hello world!")])


def test_operator_states(tmp_path: Path) -> None:
    case = CASES[-1]
    assert case.data is not None
    row = bare(case)
    states = {
        "rows": ListState(value=row, elements=[[case.data]]),
        "rules": ListState(value=row, key=row, elements=[[b"\0\0\0\1" + case.data * 2]], mode=2),
    }
    op = savepoint(tmp_path, operator_states=states)
    assert op.to_arrow("rows").to_pylist() == [{"value": case.data[4:]}]
    assert op.to_arrow("rows", columns={"rows": TYPES}).to_pylist() == [{"value": ROW}]
    rules = op.to_arrow("rules", columns={"rules.key": TYPES, "rules": TYPES}).to_pylist()
    assert rules == [{"key": ROW, "value": ROW}]
    assert '"rules": 2 fields, "rules.key": 2 fields' in op.states["rules"].reason


def test_nulls_and_rows_inside(tmp_path: Path) -> None:
    """Kernels and the plain decoder agree; bytes are encoded back unchanged."""
    text = "ROW<a INT, b ROW<c STRING, d DECIMAL(30, 2)>, e ARRAY<STRING>, f MAP<STRING, BIGINT>, g TIMESTAMP(9)>"
    s = typed(of_fields(5), text)
    values: list[Any] = [
        (None, None, None, None, None, "-D"),
        (1, (None, None), [None, "a text outside"], [("k", None)], None, "+U"),
    ]
    elements = [encoded(s, v) for v in values]
    assert [s.decode(Cursor(raw)) for raw in elements] == values
    op = savepoint(tmp_path, operator_states={"rows": ListState(value=of_fields(5), elements=[elements])})
    rows = op.to_arrow("rows", columns={"rows": text}).to_pylist()
    assert rows == [
        {"value": {"a": None, "b": None, "e": None, "f": None, "g": None, "g_nanos": None, "_kind": "-D"}},
        {
            "value": {
                "a": 1, "b": {"c": None, "d": None}, "e": [None, "a text outside"], "f": [("k", None)], "g": None, "g_nanos": None,
                "_kind": "+U",
            }
        },
    ]  # fmt: skip


def test_keys_are_written_as_projections_write_them() -> None:
    s = typed(of_fields(1).as_key(), "ROW<d DECIMAL(38, 2)>")
    assert [len(raw) for raw, _ in s.key_forms((None,))] == [4 + 16 + 16, 4 + 16]


def test_what_to_declare_is_said(tmp_path: Path) -> None:
    row = of_fields(3)
    states = [keyed("whole", "value", row), keyed("spaces", "value", INT, namespace=row), timers(TIMERS, row, row)]
    op = savepoint(tmp_path, [Subtask(key=row, states=states)])
    said = {name: info.reason.partition(": ")[2].partition(": ")[2] for name, info in op.states.items()}
    assert said["whole"] == '"key": 3 fields, "whole": 3 fields'
    assert said["spaces"] == '"key": 3 fields, "spaces.namespace": 3 fields'
    assert said[TIMERS] == f'"key": 3 fields, "{TIMERS}.namespace": 3 fields'
    assert all(info.readable for info in op.states.values())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("ROW<id BIGINT>", "has 1 fields, and 'state' has 2"),
        ("ROW<id BIGINT, name STRING, more INT>", "has 3 fields"),
        ("ROW<id BIGINT, name TEXT>", "expected a type"),
        ("ROW<id BIGINT, ID STRING>", "at most in case"),
        ("ROW<id BIGINT, _kind STRING>", "_kind"),
        (("id", "name"), "has no types"),
    ],
)
def test_declarations_that_do_not_fit(given: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        name_fields(bare(CASES[0]), (), given, "state")


def test_rows_with_types_of_their_own(sql_corpus: Path) -> None:
    """A declaration may name the fields, and must have the types of the snapshot."""
    savepoint = statetool.load(str(sql_corpus / "sql_join_types" / "snapshot"))
    op = next(op for op in savepoint.operators.values() if op.name.endswith("join"))
    header, _ = op.inventory.keyed_states["left-records"]
    (own,) = header.key.sql  # type: ignore[attr-defined]
    named = op.to_arrow("left-records", columns={"key": f"ROW<k {own}>"})
    assert [f.name for f in named.schema.field("key").type] == ["k"]
    other = "DATE NOT NULL" if own.root != "DATE" else "INT NOT NULL"
    with pytest.raises(OptionError, match="whose snapshot says"):
        op.to_arrow("left-records", columns={"key": f"ROW<k {other}>"})
