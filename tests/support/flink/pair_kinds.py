"""Pairs of many kinds of changed classes (``evolved/Records.java`` and its neighbours): one pair for each class whose values the old job has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.support.flink.pair_states import Pair, State, Type

_BEFORE: Final = Path(__file__).with_name("before") / "evolved"
#: Files with classes that are the value of a state. Kryo writes those that have this word in their names.
_TOPICS: Final = ("Records", "Nulls", "Builders", "Shapes", "Unreadable", "Generics")
#: Types of values that are not simply the class of that name.
_TYPES: Final = {
    "Nulls$InTuple": "TUPLE<evolved.Nulls$NullInteger,LONG>",
    "Nulls$InMapTuple": "TUPLE<evolved.Nulls$NullLong,LONG>",
    "Nulls$KryoInPojo": "evolved.Nulls$KryoInPojo",
    "Shapes$Sub": "evolved.Shapes$Base",
    "Shapes$SubAbstract": "evolved.Shapes$BaseSame",
}
#: Classes that other kinds of states have too.
_IN_ALL: Final = (
    "Records$RemovedLast", "Records$RemovedFirst", "Records$RejectsNull", "Records$RejectsSmall", "Records$NullToInt",
    "Nulls$NullInteger", "Nulls$BoxInteger", "Builders$Throws", "Builders$KryoThrows", "Shapes$NowAbstract", "Shapes$TransientField",
    "Unreadable$KryoListOf", "Unreadable$KryoSetOfLevelMoved",
)  # fmt: skip


def _state(name: str, **more: Any) -> State:
    java = f"evolved.{name}"
    declared = _TYPES.get(name, f"KRYO<{java}>" if name.partition("$")[2].startswith("Kryo") else java)
    return State(element=Type("", declared, ()), fill=java, **more)


def names_in(topic: str) -> list[str]:
    """Return the classes of a file of the old job that have values."""
    return [f"{topic}${name}" for name in re.findall(r'case "(\w+)": return', (_BEFORE / f"{topic}.java").read_text())]


def _pairs() -> Iterator[Pair]:
    for topic in _TOPICS:
        for name in names_in(topic):
            some = _state(name)
            yield Pair(name, some, some)
    for name in _IN_ALL:
        # The backend of operator state copies values, which Kryo does not do with all collections.
        for kind in ("list", "operator-list", "broadcast") if not name.startswith("Unreadable") else ("list",):
            some = _state(name, kind=kind)
            yield Pair(f"{name}-in-{kind}", some, some)
        mapped = _state(name, kind="map", map_key=Type("STRING", "STRING", ()))
        yield Pair(f"{name}-in-map", mapped, mapped)


KINDS: Final = tuple(_pairs())


def _keys() -> Iterator[Pair]:
    for name in names_in("Keys"):
        plain = name.partition("$")[2]
        java = f"evolved.{name}"
        declared = _KEY_TYPES.get(plain, f"KRYO<{java}>" if plain.startswith("Kryo") else java)
        some = State(element=Type("", "INT", ()), key=Type("", declared, ()), keys=java)
        yield Pair(name, some, some)


#: Types of keys that are not simply the class of that name.
_KEY_TYPES: Final = {
    "InTuple": "TUPLE<evolved.Keys$Changed,LONG>",
    "InTupleSame": "TUPLE<evolved.Keys$Ide,LONG>",
}
KEYS: Final = tuple(_keys())
SERIALIZERS: Final = tuple(Pair(name, _state(name), _state(name)) for name in names_in("Own"))
