"""Avro's own resolution: whether a reader's schema reads what a writer's schema wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

Schema: TypeAlias = Any
_PROMOTIONS: Final = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
#: What of a schema, or of a field, is in the bytes or names them.
_MEANING: Final = ("type", "name", "fields", "items", "values", "symbols", "size")
_NAMED: Final = ("record", "error", "enum", "fixed")


def unreadable(writer: Schema, reader: Schema) -> str:
    """Return why a reader cannot read, empty where it can.

    Examples
    --------
    >>> unreadable("int", "long")
    ''
    >>> unreadable("long", "int")
    'long is not read as int'
    """
    return next(_Resolver(writer, reader).problems(writer, reader), "")


def bare(schema: Schema) -> Schema:
    """Return a schema without what does not change bytes: documentation, defaults, aliases, orders.

    Examples
    --------
    >>> bare({"type": "record", "name": "R", "doc": "a row", "fields": [{"name": "a", "type": {"type": "int"}, "default": 1}]})
    {'type': 'record', 'name': 'R', 'fields': [{'name': 'a', 'type': 'int'}]}
    """
    if isinstance(schema, list):
        return [bare(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in _PRIMITIVES and "name" not in schema:
        return schema["type"]
    kept = {n: v for n, v in schema.items() if n in _MEANING}
    return {n: bare(v) if n in ("type", "items", "values", "fields") else v for n, v in kept.items()}


class _Resolver:
    """Compares schemas; names are defined by the first use in each schema, pairs that were met are taken for readable."""

    def __init__(self, writer: Schema, reader: Schema) -> None:
        self.names = (named_schemas(writer), named_schemas(reader))
        self.met: set[tuple[int, int]] = set()

    def problems(self, writer: Schema, reader: Schema) -> Iterator[str]:
        writer, reader = self.names[0].get(_key(writer), writer), self.names[1].get(_key(reader), reader)
        if (id(writer), id(reader)) in self.met:
            return
        if isinstance(writer, dict):
            self.met.add((id(writer), id(reader)))
        if isinstance(writer, list):
            for branch in writer:
                yield from self.problems(branch, reader)
            return
        if isinstance(reader, list):
            if all(any(True for _ in self.problems(writer, branch)) for branch in reader):
                yield f"{_type(writer)} is none of the reader's choices"
            return
        old, new = _type(writer), _type(reader)
        if old != new:
            if new not in _PROMOTIONS.get(old, ()):
                yield f"{old} is not read as {new}"
        elif old in _NAMED and not _same_name(writer, reader):
            yield f"{writer['name']} is not {reader['name']}"
        elif old in ("record", "error"):
            yield from self.fields(writer, reader)
        elif old == "enum":
            missing = [s for s in writer["symbols"] if s not in reader["symbols"]]
            if missing and "default" not in reader:
                yield f"the reader does not have the symbols {', '.join(missing)}"
        elif old == "fixed" and writer["size"] != reader["size"]:
            yield f"{writer['size']} bytes are not read as {reader['size']}"
        elif old in ("array", "map"):
            part = "items" if old == "array" else "values"
            yield from self.problems(writer[part], reader[part])

    def fields(self, writer: Schema, reader: Schema) -> Iterator[str]:
        old = {f["name"]: f for f in writer["fields"]}
        for field in reader["fields"]:
            name = next((n for n in (field["name"], *field.get("aliases", ())) if n in old), None)
            if name is not None:
                for problem in self.problems(old[name]["type"], field["type"]):
                    yield f"{field['name']}: {problem}"
            elif "default" not in field:
                yield f"the new field {field['name']} has no default"


def _key(schema: Schema) -> str:
    return schema if isinstance(schema, str) else ""


def _type(schema: Schema) -> str:
    kind = schema["type"] if isinstance(schema, dict) else schema
    return _type(kind) if isinstance(kind, dict) else str(kind)


def _same_name(writer: Schema, reader: Schema) -> bool:
    names = [reader["name"], *reader.get("aliases", ())]
    return writer["name"].rpartition(".")[2] in [n.rpartition(".")[2] for n in names]


def named_schemas(schema: Schema) -> dict[str, Schema]:
    """Return the schemas with a name inside of a schema, by name with and without their namespace."""
    known: dict[str, Schema] = {}
    _collect(schema, "", known)
    return known


def _collect(schema: Schema, space: str, known: dict[str, Schema]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, space, known)
    elif isinstance(schema, dict):
        if schema.get("type") in _NAMED:
            space = schema.get("namespace", space)
            known.setdefault(schema["name"], schema)
            known.setdefault(f"{space}.{schema['name']}", schema)
        for part in ("items", "values", "type"):
            if isinstance(schema.get(part), dict | list):
                _collect(schema[part], space, known)
        for field in schema.get("fields", ()):
            _collect(field["type"], space, known)
