"""Subtasks that saw different POJO subclasses than others; state names that collide with each other or with statetool's columns."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from statetool.entries.joined_headers import join_headers
from statetool.errors import OptionError, UndescribedClassError, UnknownNameError
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header, write_keyed_header
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.types.declared import NOTHING_DECLARED, class_of_fields
from tests.support.snapshots.build import INT, STRING, composite, list_of, pojo
from tests.support.snapshots.canonical import ListState, Subtask, group_of, keyed, savepoint, serializer

CAR = pojo("Car", {"wheels": INT, "doors": INT})
BOAT = pojo("Boat", {"wheels": INT, "flag": STRING})
BIKE = pojo("Bike", {"wheels": INT, "gear": INT})


def vehicle(**others: bytes) -> bytes:
    return pojo("Vehicle", {"wheels": INT}, others=others)


def exact(wheels: int) -> bytes:
    return bytes([2, 0]) + wheels.to_bytes(4, "big")


def subclass(cls: str, wheels: int, last: bytes) -> bytes:
    out = Output()
    out.u1(4)
    out.utf(cls)
    out += exact(wheels) + b"\0" + last
    return bytes(out)


CAR_VALUE = subclass("Car", 4, (5).to_bytes(4, "big"))
BOAT_VALUE = subclass("Boat", 0, b"\x03UK")
BIKE_VALUE = subclass("Bike", 2, (7).to_bytes(4, "big"))
KNOWN = (vehicle(Car=CAR), vehicle(Boat=BOAT), vehicle(Boat=BOAT, Bike=BIKE))
ELEMENTS = ([exact(1), BOAT_VALUE, CAR_VALUE], [CAR_VALUE, BIKE_VALUE], [BOAT_VALUE, BIKE_VALUE])
ROWS = {
    "Vehicle": (1, None, None, None),
    "Boat": (0, None, None, "UK"),
    "Car": (4, 5, None, None),
    "Bike": (2, None, 7, None),
}
FOUND = [ROWS[c] for c in ("Vehicle", "Boat", "Car", "Car", "Bike", "Boat", "Bike")]


def rows(operator: statetool.Operator, table: str) -> list[tuple[object, ...]]:
    values = [r["value"] for r in operator.to_arrow(table).to_pylist()]
    for v in values:
        assert (v["wheels"], v["doors"], v["gear"], v["flag"]) == ROWS[v["_class"]]
    return [ROWS[v["_class"]] for v in values]


@pytest.mark.parametrize("compressed", [False, True])
def test_values_of_a_class_that_only_a_neighbour_describes_are_read(tmp_path: Path, *, compressed: bool) -> None:
    state = ListState(value=KNOWN[0], elements=ELEMENTS, values=KNOWN)
    operator = savepoint(tmp_path, operator_states={"fleet": state}, compressed=compressed)
    assert rows(operator, "fleet") == FOUND
    if not compressed:  # the checksums of these chunks are zero
        assert not statetool.verify(str(tmp_path), deep=True).problems


def test_subclasses_inside_of_other_types_are_joined_too(tmp_path: Path) -> None:
    pairs = [
        composite("org.apache.flink.api.java.typeutils.runtime.TupleSerializerSnapshot", 2, _tuple2(), s, INT)
        for s in KNOWN
    ]
    elements = [[e + b"\0\0\0\7" for e in subtask] for subtask in ELEMENTS]
    operator = savepoint(
        tmp_path, operator_states={"fleet": ListState(value=pairs[0], elements=elements, mode=1, values=pairs)}
    )
    classes = [r["value"]["f0"]["_class"] for r in operator.to_arrow("fleet").to_pylist()]
    assert classes == ["Vehicle", "Boat", "Car", "Car", "Bike", "Boat", "Bike"]


def _tuple2() -> bytes:
    out = Output()
    out.utf("org.apache.flink.api.java.tuple.Tuple2")
    return bytes(out)


def test_elements_of_subtasks_that_are_no_more_go_to_streams_that_describe_all_classes(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    savepoint(tmp_path / "old", operator_states={"fleet": ListState(value=KNOWN[0], elements=ELEMENTS, values=KNOWN)})
    statetool.rescale(str(tmp_path / "old"), str(tmp_path / "new"), 128, parallelism=1)
    operator = statetool.load(str(tmp_path / "new"), uids=["op"])["op"]
    assert rows(operator, "fleet") == FOUND
    (part,) = operator._operator.elements.streams
    (meta,) = operator._operator.elements.header(part).states
    assert {n for n, _ in meta.value.children()} == {"wheels", "Car", "Boat", "Bike"}


@pytest.mark.parametrize("nested", ["alone", "list", "field", "key"])
@pytest.mark.parametrize(
    "known", [("Car,Boat", "Boat,Car"), ("Car,Boat", "Bike,Boat,Car"), ("Car", "Boat"), ("", "Boat")]
)
def test_subtasks_that_met_subclasses_in_another_order_describe_the_same(known: tuple[str, str], nested: str) -> None:
    classes = {"Car": CAR, "Boat": BOAT, "Bike": BIKE}

    def header(names: str) -> KeyedHeader:
        value = vehicle(**{n: classes[n] for n in names.split(",") if n})
        value = {"list": list_of(value), "field": pojo("Fleet", {"first": value})}.get(nested, value)
        key, value = (value, INT) if nested == "key" else (STRING, value)
        states = (keyed("v", "value", value),)
        raw = write_keyed_header(
            KeyedHeader(version=6, compressed=False, key=serializer(key), states=states, size_bytes=0)
        )
        return read_keyed_header(Cursor(raw), NOTHING_DECLARED, end=len(raw))

    one, other = (
        write_keyed_header(join_headers([header(n) for n in names], NOTHING_DECLARED)) for names in (known, known[::-1])
    )
    assert one == other
    described = {c for c in classes if c.encode() in one}
    assert described == {n for names in known for n in names.split(",") if n}


#: With its fields by name in Flink's order, the order in which a declared class is read.
SORTED_BIKE = pojo("Bike", {"gear": INT, "wheels": INT})
SORTED_VALUE = b"\4\0\4Bike\2\0\0\0\0\7\0\0\0\0\2"
BIKE_CLASS = class_of_fields("Bike", {"wheels": "int", "gear": "int"}, extends=("Vehicle",))


@pytest.mark.parametrize("known", [("", "Bike"), ("Bike", ""), ("", "")])
@pytest.mark.parametrize("declared", [False, True])
def test_a_declared_subclass_is_described_by_the_subtasks_that_met_it(
    tmp_path: Path, known: tuple[str, str], *, declared: bool
) -> None:
    """A declaration replaced a description that only one subtask had, so that the two differed."""
    values = [vehicle(**dict.fromkeys(names.split(), SORTED_BIKE)) for names in known]
    keys = (
        [k for k in "abcdef" if group_of(serializer(STRING), k, 128) < 64],
        [k for k in "abcdef" if group_of(serializer(STRING), k, 128) >= 64],
    )
    subtasks = [
        Subtask(
            key=STRING,
            states=[keyed("v", "value", value)],
            entries=[("v", group_of(serializer(STRING), k, 128), b"\2" + k.encode() + b"\0", SORTED_VALUE) for k in ks],
        )
        for value, ks in zip(values, keys, strict=True)
    ]
    savepoint(tmp_path, subtasks)
    source = statetool.load(str(tmp_path), uids=["op"], declarations=[BIKE_CLASS] if declared else [])
    statetool.rescale(source, str(tmp_path.with_name(f"{tmp_path.name}-new")), 128, parallelism=1)
    ((_, meta),) = statetool.load(str(tmp_path.with_name(f"{tmp_path.name}-new")), uids=["op"])[
        "op"
    ]._operator.keyed_states.values()
    described = {n for n, _ in meta.value.children()} - {"wheels"}
    assert described == ({"Bike"} if any(known) else set())
    if declared or any(known):
        read = statetool.load(
            str(tmp_path.with_name(f"{tmp_path.name}-new")), uids=["op"], declarations=[BIKE_CLASS] if declared else []
        )
        found = read["op"].to_arrow("v").to_pylist()
        assert sorted(r["key"] for r in found) == list("abcdef")
        assert {(r["value"]["_class"], r["value"]["gear"]) for r in found} == {("Bike", 7)}


def test_what_no_subtask_describes_is_refused_with_its_class(tmp_path: Path) -> None:
    state = ListState(value=KNOWN[0], elements=([CAR_VALUE], [BIKE_VALUE]), values=KNOWN[:2])
    operator = savepoint(tmp_path, operator_states={"fleet": state})
    with pytest.raises(statetool.StatetoolError, match="Bike, a subclass of Vehicle"):
        operator.to_arrow("fleet")


@pytest.mark.parametrize("compound", [False, True])
def test_a_class_that_nothing_is_known_of_is_named(tmp_path: Path, *, compound: bool) -> None:
    """No subtask saw a subclass before its header was written: kernels read such states."""
    value, element = (list_of(vehicle()), b"\0\0\0\1" + BIKE_VALUE) if compound else (vehicle(), BIKE_VALUE)
    group = group_of(serializer(STRING), "a", 128)
    operator = savepoint(
        tmp_path,
        [Subtask(key=STRING, states=[keyed("v", "value", value)], entries=[("v", group, b"\x02a\0", element)])],
        operator_states={"fleet": ListState(value=value, elements=[[element]])},
    )
    for table in ("fleet", "v"):
        with pytest.raises(UndescribedClassError, match=r"Bike, a subclass of Vehicle.*declare\(\"Bike\""):
            operator.to_arrow(table)
    problems = statetool.verify(str(tmp_path), deep=True).problems
    assert {p.severity for p in problems} == {"note"}


def test_columns_do_not_hide_each_other(tmp_path: Path) -> None:
    names = ["key", "Key", "count", "Count", "key_", "_undecoded"]
    group = group_of(serializer(STRING), "a", 128)
    subtask = Subtask(
        key=STRING,
        states=[keyed(n, "value", INT) for n in names],
        entries=[(n, group, b"\x02a\0", i.to_bytes(4, "big")) for i, n in enumerate(names)],
    )
    operator = savepoint(tmp_path, [subtask])
    (row,) = operator.to_arrow("keyed_state").to_pylist()
    assert row == {"key": "a", "key__": 0, "Key___": 1, "count": 2, "Count_": 3, "key_": 4, "_undecoded_": 5}
    (row,) = operator.to_arrow("keyed_state", states=["Count"], on_error="keep_raw").to_pylist()
    assert row == {"key": "a", "Count_": 3, "_undecoded": None}
    # Written back, each column is assigned to its state.
    changed = operator.to_arrow("keyed_state").set_column(4, "Count_", [[33]])
    change = statetool.bootstrap_keyed_state(changed, like=operator)
    written = statetool.SavepointWriter.from_existing(statetool.load(str(tmp_path), uids=["op"]))
    after = written.with_operator("op", change).write(str(tmp_path.with_name(f"{tmp_path.name}-new")))["op"]
    assert after.to_arrow("Count").to_pylist() == [{"key": "a", "value": 33}]
    assert after.to_arrow("key_").to_pylist() == [{"key": "a", "value": 4}]


def test_states_of_one_name_are_all_there(tmp_path: Path) -> None:
    """A function may have keyed and operator state of the same name, and a state may be named like a table."""
    names = ["seen", "timers", "keyed_state", "alone"]
    group = group_of(serializer(STRING), "a", 128)
    subtask = Subtask(
        key=STRING,
        states=[keyed(n, "value", INT) for n in names],
        entries=[(n, group, b"\x02a\0", i.to_bytes(4, "big")) for i, n in enumerate(names)],
    )
    operator_states = {"seen": ListState(value=INT, elements=[[b"\0\0\0\x63"]])}
    operator = savepoint(tmp_path, [subtask], operator_states=operator_states)
    tables = ["keyed_state", "keyed:seen", "keyed:timers", "keyed:keyed_state", "alone", "operator:seen"]
    assert operator.tables == tables
    assert list(operator.states) == tables[1:]
    assert [operator.to_arrow(t)["value"].to_pylist() for t in tables[1:]] == [[0], [1], [2], [3], [99]]
    assert operator.to_arrow("keyed_state").to_pylist() == [
        {"key": "a", "seen": 0, "timers": 1, "keyed_state": 2, "alone": 3}
    ]
    with pytest.raises(OptionError, match="pass keyed:seen or operator:seen"):
        operator.to_arrow("seen")
    with pytest.raises(UnknownNameError, match="did you mean alone"):
        operator.to_arrow("alon")


@pytest.mark.parametrize("scope", ["operator", "keyed"])
def test_subtasks_that_met_classes_in_another_order_have_one_schema(tmp_path: Path, scope: str) -> None:
    """All know the same classes. Two of them have a field with the same name and different types."""
    van = pojo("Van", {"wheels": STRING})
    known = [vehicle(Car=CAR, Van=van), vehicle(Van=van, Car=CAR)]
    if scope == "operator":
        state = ListState(value=known[0], elements=[[CAR_VALUE], [CAR_VALUE]], values=known)
        operator = savepoint(tmp_path, operator_states={"fleet": state})
    else:
        groups = {k: group_of(serializer(INT), k, 128) for k in range(9)}
        subtasks = []
        for i, value in enumerate(known):
            entries = [("fleet", g, k.to_bytes(4, "big") + b"\0", CAR_VALUE) for k, g in groups.items() if g // 64 == i]
            subtasks.append(Subtask(key=INT, states=[keyed("fleet", "value", value)], entries=entries[:1]))
        operator = savepoint(tmp_path, subtasks)
    values = [r["value"] for r in operator.to_arrow("fleet").to_pylist()]
    assert [(v["_class"], v["wheels"], v["doors"], v["Van.wheels"]) for v in values] == [("Car", 4, 5, None)] * 2
