"""Pairs of states with Protobuf messages and Thrift structs, whose classes change.

``python -m tests.support.flink.pairs --libraries --suite messages`` needs the compilers of both (``apt-get install protobuf-compiler
thrift-compiler``: protoc 3.21 and Thrift 0.17). The classes that they generate are stored with the savepoints.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.support.compile import compile_java
from tests.support.flink.pair_states import Pair, State, Type
from tools.maven import maven_jars

#: Sources of values of these classes.
MESSAGE_VALUES: Final = Path(__file__).with_name("message_pairs")
#: The jar set of chill's serializers, Protobuf and Thrift.
MESSAGES: Final = "message-pairs"
#: Settings of a job with chill's serializers for all messages.
SETTINGS: Final = {
    "pipeline.serialization-config": "["
    "com.google.protobuf.Message: {type: kryo, kryo-type: default, class: com.twitter.chill.protobuf.ProtobufSerializer}, "
    "org.apache.thrift.TBase: {type: kryo, kryo-type: default, class: com.twitter.chill.thrift.TBaseSerializer}]"
}
Fields = Mapping[str, str]

_INNER: Final = {"a": "int32 = 1", "b": "string = 2"}
_PROTO: Final = {
    "id": "int64 = 1", "name": "string = 2", "color": "Color = 3", "inner": "Inner = 4", "numbers": "repeated int32 = 5",
    "stock": "map<string, int32> = 6", "text": "string = 7", "raw": "bytes = 8",
}  # fmt: skip
_COLORS: Final = "RED = 0; BLUE = 1;"
#: Members of the new messages: fields that replace those of the same name, ``None`` if removed, and declarations of types.
_PROTO_NEW: Final[Mapping[str, Mapping[str, str | None]]] = {
    "Same": {},
    "Added": {"more": "string = 9", "extra": "Inner = 10"},
    "Removed": {"name": None, "inner": None},
    "Renumbered": {"name": "string = 12"},
    "Swapped": {"name": "string = 7", "text": "string = 2"},
    "Renamed": {"name": None, "title": "string = 2"},
    "Widened": {"numbers": "repeated int64 = 5", "stock": "map<string, int64> = 6"},
    "Narrowed": {"id": "int32 = 1"},
    "ZigZag": {"id": "sint64 = 1"},
    "Retyped": {"name": "int32 = 2"},
    "ToBytes": {"name": "bytes = 2"},
    "ToText": {"raw": "string = 8"},
    "Single": {"numbers": "int32 = 5"},
    "Repeated": {"name": "repeated string = 2"},
    "Optional": {"name": "optional string = 2"},
    "Choice": {"text": None, "name": None, "oneof": "choice { string text = 7; string name = 2; }"},
    "EnumMore": {"enum": "Color { RED = 0; BLUE = 1; PINK = 2; }"},
    "EnumFewer": {"enum": "Color { RED = 0; }"},
    "EnumRenamed": {"enum": "Color { RED = 0; NAVY = 1; }"},
    "EnumSwapped": {"enum": "Color { BLUE = 0; RED = 1; }"},
    "InnerAdded": {"message": "Inner { int32 a = 1; string b = 2; bool c = 3; }"},
    "InnerRetyped": {"message": "Inner { string a = 1; string b = 2; }"},
    "InnerRenamed": {"message": "Inner { int32 number = 1; string b = 2; }"},
}
#: The same with the syntax ``proto2``.
_PROTO2_NEW: Final[Mapping[str, Mapping[str, str | None]]] = {
    "Same2": {},
    "Required": {"name": "required string = 2"},
    "RequiredUnset": {"text": "required string = 7"},
    "Default": {"text": 'optional string = 7 [default = "other"]'},
    "EnumFewer2": {"enum": "Color { RED = 0; }"},
}
_THRIFT: Final = {
    "id": "1: i64", "name": "2: string", "kind": "3: Kind", "inner": "4: Inner", "numbers": "5: list<i32>", "stock": "6: map<string, i32>",
    "kinds": "7: list<Kind>", "text": "8: optional string", "longs": "9: list<i64>",
}  # fmt: skip
_THRIFT_INNER: Final = {"a": "1: i32", "b": "2: string"}
_KINDS: Final = "SMALL = 1, LARGE = 5"
_THRIFT_NEW: Final[Mapping[str, Mapping[str, str | None]]] = {
    "Same": {},
    "Added": {"more": "10: string", "extra": "11: Inner"},
    "AddedDefault": {"more": '10: string = "d"'},
    "AddedRequired": {"more": "10: required string"},
    "Removed": {"name": None, "inner": None},
    "Renumbered": {"name": "12: string"},
    "Swapped": {"name": "8: string", "text": "2: optional string"},
    "Renamed": {"name": None, "title": "2: string"},
    "Retyped": {"name": "2: i32"},
    "Narrowed": {"id": "1: i32"},
    "ToBytes": {"name": "2: binary"},
    "ToSet": {"numbers": "5: set<i32>"},
    "NowRequired": {"name": "2: required string"},
    "UnsetRequired": {"text": "8: required string"},
    "ListWidened": {"numbers": "5: list<i64>"},
    "ListNarrowed": {"longs": "9: list<i32>"},
    "KindToInt": {"kind": "3: i32"},
    "EnumMore": {"enum": "SMALL = 1, LARGE = 5, HUGE = 6"},
    "EnumFewer": {"enum": "SMALL = 1"},
    "EnumRenamed": {"enum": "SMALL = 1, BIG = 5"},
    "EnumRequired": {"enum": "SMALL = 1", "kind": "3: required Kind"},
    "InnerAdded": {"struct": "1: i32 a, 2: string b, 3: bool c"},
    "InnerRetyped": {"struct": "1: string a, 2: string b"},
    "InnerRenamed": {"struct": "1: i32 number, 2: string b"},
    "InnerRequired": {"struct": "1: i32 a, 2: string b, 3: required i32 c"},
}
#: Changes that other kinds of states have too.
_IN_ALL: Final = ("proto3.Removed", "proto3.ToText", "proto3.Retyped", "thrift.Retyped", "thrift.AddedRequired")


def _state(name: str) -> State:
    java = f"messagepairs.{name}"
    return State(element=Type("", f"KRYO<{java}>", ()), fill=f"messagepairs.Filled${java}")


def _pairs() -> Iterator[Pair]:
    names = [
        f"{p}.{n}" for p, new in (("proto3", _PROTO_NEW), ("proto2", _PROTO2_NEW), ("thrift", _THRIFT_NEW)) for n in new
    ]
    for name in names:
        yield Pair(f"message-{name}", _state(name), _state(name))
    for name in _IN_ALL:
        for kind in ("list", "union"):
            some = replace(_state(name), kind=kind)
            yield Pair(f"message-{name}-in-{kind}", some, some)
    # Classes that the new job lacks: of the state, and of a value.
    for package in ("proto3", "thrift"):
        gone = _state(f"{package}.Gone")
        yield Pair(f"message-{package}.Gone", gone, _state(f"{package}.Same"))
    anything = replace(_state("proto3.Gone"), element=Type("", "KRYO<java.lang.Object>", ()))
    yield Pair("message-proto3.Gone-in-Object", anything, anything)


MESSAGE_PAIRS: Final = tuple(_pairs())


def generate_classes(target: Path, work: Path, *, new: bool) -> None:
    """Generate the classes of the old job or of the new one, and compile them into a folder."""
    sources = work / "sources"
    sources.mkdir(parents=True)
    files = {
        "proto3.proto": _proto("proto3", _PROTO_NEW, new=new),
        "proto2.proto": _proto("proto2", _PROTO2_NEW, new=new),
    }
    files["all.thrift"] = _thrift(new=new)
    for name, text in files.items():
        (work / name).write_text(text)
    for name in ("proto3.proto", "proto2.proto"):
        subprocess.run(["protoc", f"--proto_path={work}", f"--java_out={sources}", name], check=True)
    options = ["--gen", "java:generated_annotations=suppress", "-out", str(sources)]
    subprocess.run(["thrift", *options, str(work / "all.thrift")], check=True)
    shutil.rmtree(target / "messagepairs", ignore_errors=True)
    libraries = ":".join(map(str, maven_jars(MESSAGES)))
    compile_java(sources.rglob("*.java"), target, "-g:none", "--release", "11", "-cp", libraries)


def _proto(syntax: str, changed: Mapping[str, Mapping[str, str | None]], *, new: bool) -> str:
    label = "optional " if syntax == "proto2" else ""
    lines = [f'syntax = "{syntax}";', f'package {syntax}; option java_package = "messagepairs.{syntax}";']
    lines.append('option java_multiple_files = true; option java_outer_classname = "Outer";')
    lines.append(f"enum Color {{ {_COLORS} }} message Inner {{ {_members(_INNER, label)} }}")
    for name, members in {**changed, **({} if new else {"Gone": {}})}.items():
        types = {"enum": f"Color {{ {_COLORS} }}", "message": f"Inner {{ {_members(_INNER, label)} }}"}
        own = {**{n: t for n, t in types.items() if n in members}, **_PROTO, **(members if new else {})}
        lines.append(f"message {name} {{ {_members(own, label)} }}")
    return "\n".join(lines)


def _members(fields: Mapping[str, str | None], label: str) -> str:
    out = []
    for name, text in fields.items():
        if text is None:
            continue
        if name in ("enum", "message", "oneof"):
            out.append(f"{name} {text}")
            continue
        kind, _, number = text.partition(" = ")
        is_labeled = kind.startswith(("repeated ", "map<", "optional ", "required "))
        out.append(f"{'' if is_labeled else label}{kind} {name} = {number};")
    return " ".join(out)


def _thrift(*, new: bool) -> str:
    lines = ["namespace java messagepairs.thrift", f"enum Kind {{ {_KINDS} }}"]
    lines.append(f"struct Inner {{ {_struct(_THRIFT_INNER)} }}")
    for name, members in {**_THRIFT_NEW, **({} if new else {"Gone": {}})}.items():
        own = {**_THRIFT, **(members if new else {})}
        if "enum" in members:
            lines.append(f"enum {name}Kind {{ {members['enum'] if new else _KINDS} }}")
        if "struct" in members:
            lines.append(f"struct {name}Inner {{ {members['struct'] if new else _struct(_THRIFT_INNER)} }}")
        body = _struct({n: t for n, t in own.items() if n not in ("enum", "struct")})
        body = body.replace("Kind", f"{name}Kind") if "enum" in members else body
        body = body.replace("Inner", f"{name}Inner") if "struct" in members else body
        lines.append(f"struct {name} {{ {body} }}")
    return "\n".join(lines)


def _struct(fields: Mapping[str, str | None]) -> str:
    out = []
    for name, text in fields.items():
        if text is not None:
            kind, _, default = text.partition(" = ")
            out.append(f"{kind} {name}{f' = {default}' if default else ''}")
    return ", ".join(out)
