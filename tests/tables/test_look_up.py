"""Look-ups of one key, compared with the rows of whole tables, and with the entries that a savepoint was made of."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.columns.python_values import rows_to_python
from statetool.entries import stream_reader
from statetool.entries.selection import key_starts
from statetool.errors import EncodeError, OptionError, StatetoolError, UnknownNameError
from statetool.java.hashing.keys import KeyHasher, decode_key
from statetool.tables.keys.text import parse_whole_key
from statetool.tables.look_up import KeyContent
from tests.support.given_keys import given_key
from tests.support.snapshots.build import INT, LONG, STRING, list_of, map_of, simple, tuple_of
from tests.support.snapshots.canonical import (
    VOID,
    Subtask,
    composite_key,
    encoded,
    group_of,
    keyed,
    savepoint,
    serializer,
    timers,
)
from tests.support.snapshots.native import Entry, native_savepoint
from tests.support.zoo import ZOO

KEY: Final = serializer(STRING)
TIMERS: Final = "_timer_state/event_user-timers"
STATES: Final = (
    keyed("value", "value", INT),
    keyed("list", "list", list_of(INT)),
    keyed("map", "map", map_of(STRING, LONG)),
    keyed("spaces", "value", INT, namespace=STRING),
    timers(TIMERS, STRING, VOID),
)


def stored_keys(operator: statetool.Operator, most: int) -> list[Any]:
    """Return some keys of an operator as users give them, read from all entries."""
    keys: dict[bytes, Any] = {}
    for source in operator.inventory.keyed.sources(raw=True):
        header = source.header()
        hasher = KeyHasher(header.key)
        for batch in source.batches():
            start = key_starts(batch, header)
            end = hasher.ends(batch.data, start, batch.key_end)
            for i in range(len(batch)):
                plain = decode_key(header.key, batch.data, int(start[i]), int(end[i]))
                keys[bytes(batch.data[start[i] : end[i]])] = given_key(plain, header.key.logical)
    chosen = list(keys.values())
    random.Random(7).shuffle(chosen)
    return chosen[:most]


class Scan:
    """All rows of the keyed tables of an operator, read without a filter."""

    def __init__(self, operator: statetool.Operator) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        for table, (scope, name) in operator.inventory.state_tables.items():
            if scope == "keyed":
                self.rows[name] = list(_rows(operator, table))
        self.timers = list(_rows(operator, "timers")) if "timers" in operator.tables else []

    def states_of(self, key: str) -> dict[tuple[str, str], str]:
        """Return the value of each state and namespace of a key as text, in the form of a look-up."""
        found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for name, rows in self.rows.items():
            for row in rows:
                if repr(row["key"]) == key:
                    found[name, repr(row.get("namespace"))].append(row)
        return {place: _value(rows) for place, rows in found.items()}

    def timers_of(self, key: str) -> list[str]:
        """Return the timers of a key as texts."""
        return sorted(
            repr((t["domain"], t["service"], t.get("namespace"), t["timestamp"], t["time"]))
            for t in self.timers
            if repr(t["key"]) == key
        )


def _rows(operator: statetool.Operator, table: str) -> Iterator[dict[str, Any]]:
    for batch in operator.batches(table):
        yield from rows_to_python(batch)


def _value(rows: list[dict[str, Any]]) -> str:
    if "map_key" in rows[0]:
        return repr(sorted(((row["map_key"], row["value"]) for row in rows), key=repr))
    if "list_index" in rows[0]:
        return repr([row["value"] for row in sorted(rows, key=lambda row: row["list_index"])])
    (row,) = rows
    return repr(row["value"])


def _shown(content: KeyContent) -> dict[tuple[str, str], str]:
    """Return the value of each state and namespace as text. Maps have no order."""
    shown = {
        (s.state, repr(s.namespace)): repr(sorted(s.value, key=repr) if s.kind == "map" else s.value)
        for s in content.states
    }
    assert len(shown) == len(content.states)
    return shown


def assert_equal_to_scan(operator: statetool.Operator, most: int) -> int:
    scan = Scan(operator)
    for given in (keys := stored_keys(operator, most)):
        content = operator.get(given)
        key = repr(content.key)
        assert content
        assert _shown(content) == scan.states_of(key), given
        timers = [(t.domain, t.service, t.namespace, t.timestamp, t.time) for t in content.timers]
        assert sorted(map(repr, timers)) == scan.timers_of(key), given
    return len(keys)


@pytest.mark.parametrize("searched", [False, True])
def test_a_look_up_has_what_scans_of_all_tables_have(searched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if searched:
        monkeypatch.setattr(stream_reader, "_LEAST_SEARCHED", 0)
    operators = [o for o in statetool.load(ZOO).operators.values() if o.inventory.listed_keyed]
    assert sum(assert_equal_to_scan(operator, 3) for operator in operators) > 25


@pytest.mark.full
@pytest.mark.parametrize("searched", [False, True])
def test_look_ups_in_snapshots_of_all_backends(corpus: Path, searched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """States that cannot be decoded are the same in both, so that only operators without them are compared."""
    if searched:
        monkeypatch.setattr(stream_reader, "_LEAST_SEARCHED", 0)
    compared = 0
    for metadata in sorted(corpus.rglob("_metadata")):
        for operator in statetool.load(str(metadata.parent)).operators.values():
            try:
                if operator.inventory.listed_keyed and operator.name != "scalars-by-big-decimal":
                    compared += assert_equal_to_scan(operator, 4)
            except StatetoolError as error:
                assert error.where.state or "type of its keys" in str(error)
    assert compared > 300


def entries_of(number: int) -> list[Entry]:
    """Return entries of one key, some of which lack states."""
    name = f"key {number}"
    key, group = encoded(KEY, name), group_of(KEY, name, 128)
    as_int = encoded(serializer(INT), number)
    entries = [("list", group, composite_key(key), b",".join([as_int] * (number % 4 + 1)))]
    if number % 5:
        entries.append(("value", group, composite_key(key), as_int))
    for i in range(number % 3):
        of_map = composite_key(key, user_key=encoded(KEY, f"m{i}"))
        entries.append(("map", group, of_map, b"\0" + encoded(serializer(LONG), i) if i else b"\1"))
        spaces = composite_key(key, encoded(KEY, f"space {i}"), ambiguous=True)
        entries.append(("spaces", group, spaces, encoded(serializer(INT), i)))
    if number % 7 == 0:
        stamp = (number ^ -(1 << 63)).to_bytes(8, "big", signed=True)
        entries.append((TIMERS, group, stamp + key + b"\0", b""))
    return entries


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, statetool.Operator]:
    """Make a canonical and a native savepoint with the same entries in two subtasks."""
    entries = [entry for number in range(90) for entry in entries_of(number)]
    halves = [[e for e in entries if (e[1] >= 64) is upper] for upper in (False, True)]
    subtasks = [Subtask(key=STRING, states=STATES, entries=half) for half in halves]
    folders = [tmp_path_factory.mktemp(name) for name in ("canonical", "native")]
    # Older values of keys of the other subtask, as rescaling leaves them, are no state of a key.
    outside = [(name, group, key, bytes(4)) for name, group, key, _ in entries if name == "value"]
    return {
        "canonical": savepoint(folders[0], subtasks),
        "native": native_savepoint(folders[1], subtasks, outside=outside),
    }


@pytest.mark.parametrize("form", ["canonical", "native"])
def test_all_states_namespaces_and_timers_of_a_key(both: dict[str, statetool.Operator], form: str) -> None:
    operator = both[form]
    for number in (0, 2, 14, 35, 89):
        content = operator.get(f"key {number}")
        assert content.key == f"key {number}"
        assert content.key_group == group_of(KEY, content.key, 128)
        expected: dict[tuple[str, str], str] = {("list", "None"): repr([number] * (number % 4 + 1))}
        if number % 5:
            expected["value", "None"] = repr(number)
        if number % 3:
            expected["map", "None"] = repr([("m0", None), ("m1", 1)][: number % 3])
        expected |= {("spaces", repr(f"space {i}")): repr(i) for i in range(number % 3)}
        assert _shown(content) == expected
        assert [t.timestamp for t in content.timers] == ([number] if number % 7 == 0 else [])


@pytest.mark.parametrize("form", ["canonical", "native"])
def test_some_states(both: dict[str, statetool.Operator], form: str) -> None:
    operator = both[form]
    assert operator.get("key 14", ["value"])["value"] == 14
    assert operator.get("key 14", ["value"]).timers == ()
    content = operator.get("key 14", ["timers"])
    assert (content.states, [t.timestamp for t in content.timers]) == ((), [14])
    with pytest.raises(UnknownNameError, match="did you mean value"):
        operator.get("key 14", ["valeu"])
    with pytest.raises(UnknownNameError, match="no state 'spaces' without a namespace"):
        operator.get("key 14")["spaces"]


@pytest.mark.parametrize("form", ["canonical", "native"])
def test_a_key_that_is_not_there(both: dict[str, statetool.Operator], form: str) -> None:
    content = both[form].get("key 90")
    assert not content
    assert (content.key, content.key_group) == ("key 90", group_of(KEY, "key 90", 128))
    assert both[form].get("key 0", ["value"]).found is False
    with pytest.raises(EncodeError, match="is a number, but the keys are of type String"):
        both[form].get(7)


def test_keys_of_several_fields(tmp_path: Path) -> None:
    key = tuple_of(STRING, LONG)
    plain = ("a", -3)
    group = group_of(serializer(key), plain, 128)
    entry = ("value", group, composite_key(encoded(serializer(key), plain)), encoded(serializer(INT), 5))
    operator = savepoint(tmp_path, [Subtask(key=key, states=[keyed("value", "value", INT)], entries=[entry])])
    for text in ('["a", -3]', '{"f0": "a", "f1": -3}', '{"f1": -3, "f0": "a"}', '{"tuple": ["a", -3]}'):
        assert operator.get(parse_whole_key("KEY", text))["value"] == 5
    assert operator.get({"f0": "a", "f1": -3})["value"] == 5
    assert operator.to_arrow(keys=[{"f1": -3, "f0": "a"}]).num_rows == 1
    assert not operator.get(["a", 3])
    with pytest.raises(EncodeError, match="an object with a field 'f2', not one of f0, f1"):
        operator.get({"f0": "a", "f2": 1})
    with pytest.raises(EncodeError, match="an object without the field 'f1'"):
        operator.get({"f0": "a"})
    with pytest.raises(EncodeError, match="of which f1 is a string"):
        operator.get({"f0": "a", "f1": "3"})


def test_numbers_of_equal_value_are_different_keys(tmp_path: Path) -> None:
    key, value = serializer(simple("BigDec")), serializer(INT)
    entries = [
        ("v", group_of(key, Decimal(text), 128), composite_key(encoded(key, Decimal(text))), encoded(value, number))
        for number, text in enumerate(("1.5", "1.50"), start=1)
    ]
    operator = savepoint(tmp_path, [Subtask(key=key, states=[keyed("v", "value", INT)], entries=entries)])
    assert [operator.get(Decimal(text))["v"] for text in ("1.5", "1.50")] == [1, 2]
    with pytest.raises(OptionError, match="2 keys of the operator equal"):
        operator.get(Decimal("1.500"))


def test_options_apply_to_look_ups() -> None:
    operator = statetool.load(ZOO)["with-ttl"]
    (key,) = stored_keys(operator, 1)
    shown, raw = operator.get(key), operator.get(key, ttl="raw")
    assert shown["ttl-value"] == raw["ttl-value"]["value"]
    expired = operator.get(key, ttl="hide_expired", ttl_ms=1)
    assert "ttl-value" not in {s.state for s in expired.states}
    assert expired["plain"] == shown["plain"]
    with pytest.raises(OptionError, match="no option"):
        operator.get(key, keys=[1])  # type: ignore[call-arg]
