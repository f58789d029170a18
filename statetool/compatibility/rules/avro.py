"""Avro's rules: equality of schemas, compatibility of reader and writer schemas, and rewriting of generic records with another schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

Schema: TypeAlias = Any
_PROMOTIONS: Final = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAMED: Final = ("record", "error", "enum", "fixed")
_NUMBERS: Final = {"int", "long", "float", "double"}
Effect: TypeAlias = tuple[Literal["fails", "depends", "moves", "renames", "drops"], str]


def unreadable(writer: Schema, reader: Schema) -> str:
    """Return the reason why a reader cannot read, empty if it can.

    Examples
    --------
    >>> unreadable("int", "long")
    ''
    >>> unreadable("long", "int")
    'long is not read as int'
    """
    return next(_Resolver(writer, reader).problems(writer, reader), "")


def canonical(schema: Schema, namespace: str = "") -> Schema:
    """Return a schema in canonical form: types by their full names, primitives as words, no documentation.

    Examples
    --------
    >>> canonical({"type": "fixed", "name": "F", "namespace": "shop", "size": 4, "doc": "four bytes"})
    {'type': 'fixed', 'name': 'shop.F', 'size': 4}
    """
    if isinstance(schema, list):
        return [canonical(branch, namespace) for branch in schema]
    if isinstance(schema, str):
        return schema if schema in _PRIMITIVES else _full_name(schema, namespace)
    if isinstance(schema["type"], dict | list) or set(schema) == {"type"}:
        return canonical(schema["type"], namespace)
    reduced = {n: v for n, v in schema.items() if n not in ("doc", "namespace")}
    if schema["type"] in _NAMED:
        reduced["name"] = _full_name(schema["name"], schema.get("namespace", namespace))
        namespace = reduced["name"].rpartition(".")[0]
    for key in ("items", "values"):
        if key in reduced:
            reduced[key] = canonical(reduced[key], namespace)
    if "fields" in reduced:
        reduced["fields"] = [_canonical_field(f, namespace) for f in reduced["fields"]]
    return reduced


def _canonical_field(field: dict[str, Any], namespace: str) -> dict[str, Any]:
    reduced = {n: v for n, v in field.items() if n != "doc" and (n, v) != ("order", "ascending")}
    return {**reduced, "type": canonical(field["type"], namespace)}


def _full_name(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


def equal(schema: Schema, other: Schema) -> bool:
    """Return True if canonical schemas are equal for Avro: aliases do not count, defaults of fields and properties do.

    Examples
    --------
    >>> equal("int", {"type": "int", "logicalType": "date"})
    False
    """
    return bool(_comparable_schema(schema) == _comparable_schema(other))


def _comparable_schema(schema: Schema) -> Schema:
    if isinstance(schema, list):
        return [_comparable_schema(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = ("aliases", "default") if schema["type"] == "enum" else ("aliases",)
    nested = ("type", "items", "values", "fields")
    return {n: _comparable_schema(v) if n in nested else v for n, v in schema.items() if n not in left_out}


def by_position(writer: Schema, reader: Schema) -> Iterator[Effect]:
    """Yield the changes to a generic record of one schema that is written with another: fields are matched by position.

    Schemas are canonical. ``depends`` marks the behaviour of some releases of Avro only.

    Examples
    --------
    >>> old, new = ({"type": "record", "name": "R", "fields": [{"name": n, "type": "int"} for n in names]} for names in ("ab", "b"))
    >>> list(by_position(old, new))
    [('moves', 'b takes the values of a'), ('drops', 'b')]
    """
    return _ByPosition(writer, reader).effects(writer, reader)


class _Pairs:
    """Walks two schemas in step. A pair is walked only once, so schemas may refer to themselves."""

    def __init__(self, writer: Schema, reader: Schema) -> None:
        self.names = (named_schemas(writer), named_schemas(reader))
        self.met: set[tuple[int, int]] = set()

    def defined(self, writer: Schema, reader: Schema) -> tuple[Schema, Schema] | None:
        """Return the two schemas with names replaced by their definitions, ``None`` if the pair was already walked."""
        writer, reader = self.names[0].get(_name_of(writer), writer), self.names[1].get(_name_of(reader), reader)
        if (id(writer), id(reader)) in self.met:
            return None
        if isinstance(writer, dict):
            self.met.add((id(writer), id(reader)))
        return writer, reader


class _ByPosition(_Pairs):
    """Effects of ``GenericDatumWriter`` on values of another schema."""

    def effects(self, old: Schema, new: Schema) -> Iterator[Effect]:
        pair = self.defined(old, new)
        if pair is None:
            return
        old, new = pair
        if isinstance(old, list):
            for branch in old:
                yield from self.effects(branch, new)
            return
        if isinstance(new, list):
            # The value selects the branch: by its class, and by its name if its type has one.
            branches = [b for b in new if self._choice(1, b) == self._choice(0, old)]
            if not branches:
                yield "fails", f"{_type(old)} is none of the choices"
            for branch in branches:
                yield from self.effects(old, branch)
            return
        before, after = _type(old), _type(new)
        if before != after:
            yield "depends" if {before, after} <= _NUMBERS else "fails", f"{before} is written as {after}"
        elif before in ("record", "error"):
            yield from self._fields(old["fields"], new["fields"])
        elif before in ("array", "map"):
            key = "items" if before == "array" else "values"
            yield from self.effects(old[key], new[key])

    def _choice(self, side: int, schema: Schema) -> tuple[str, str]:
        schema = self.names[side].get(_name_of(schema), schema)
        named = isinstance(schema, dict) and schema["type"] in _NAMED
        return _type(schema), schema["name"] if named else ""

    def _fields(self, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Iterator[Effect]:
        for field in new[len(old) :]:
            yield "fails", f"nothing is at the position of {field['name']}"
        for before, after in zip(old, new, strict=False):
            yield from self.effects(before["type"], after["type"])
            if before["name"] != after["name"]:
                renamed = before["name"] in after.get("aliases", ())
                yield "renames" if renamed else "moves", f"{after['name']} takes the values of {before['name']}"
        for field in old[len(new) :]:
            yield "drops", field["name"]


def other_values(writer: Schema, reader: Schema) -> list[str]:
    """Return what a reader takes for other values: symbols that it lacks for the default of their enum, numbers for those of another logical type.

    Examples
    --------
    >>> old, new = ({"type": "enum", "name": "E", "symbols": [s, "B"], "default": "B"} for s in "AC")
    >>> other_values(old, new)
    ['the symbol A is read as B']
    """
    resolver = _Resolver(writer, reader)
    for _ in resolver.problems(writer, reader):
        pass
    return resolver.others


class _Resolver(_Pairs):
    """Reason why a reader's schema does not read a writer's. Pairs already walked count as readable."""

    def __init__(self, writer: Schema, reader: Schema) -> None:
        super().__init__(writer, reader)
        #: What is read as other values.
        self.others: list[str] = []

    def problems(self, writer: Schema, reader: Schema) -> Iterator[str]:
        pair = self.defined(writer, reader)
        if pair is None:
            return
        writer, reader = pair
        if isinstance(writer, list):
            for branch in writer:
                yield from self.problems(branch, reader)
            return
        if isinstance(reader, list):
            if all(any(True for _ in self.problems(writer, branch)) for branch in reader):
                yield f"{_type(writer)} is none of the reader's choices"
            return
        old, new = _type(writer), _type(reader)
        units = _logical(writer), _logical(reader)
        if all(units) and units[0] != units[1]:
            self.others.append(f"{units[0]} is read as {units[1]}")
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
            elif missing:
                self.others += [f"the symbol {symbol} is read as {reader['default']}" for symbol in missing]
        elif old == "fixed" and writer["size"] != reader["size"]:
            yield f"{writer['size']} bytes are not read as {reader['size']}"
        elif old in ("array", "map"):
            key = "items" if old == "array" else "values"
            yield from self.problems(writer[key], reader[key])

    def fields(self, writer: Schema, reader: Schema) -> Iterator[str]:
        old = {f["name"]: f for f in writer["fields"]}
        for field in reader["fields"]:
            name = next((n for n in (field["name"], *field.get("aliases", ())) if n in old), None)
            if taken := [n for n in field.get("aliases", ()) if n in old and field["name"] in old]:
                yield f"{taken[0]} has the alias {field['name']}, and so has another field"
            elif name is not None:
                for problem in self.problems(old[name]["type"], field["type"]):
                    yield f"{field['name']}: {problem}"
            elif "default" not in field:
                yield f"the new field {field['name']} has no default"


def _logical(schema: Schema) -> str:
    """Return the logical type of a schema, with the scale of a decimal: Avro compares neither, and reads the same number."""
    kind = schema.get("logicalType", "") if isinstance(schema, dict) else ""
    return f"{kind} of scale {schema.get('scale', 0)}" if kind == "decimal" else str(kind)


def _name_of(schema: Schema) -> str:
    return schema if isinstance(schema, str) else ""


def _type(schema: Schema) -> str:
    kind = schema["type"] if isinstance(schema, dict) else schema
    return _type(kind) if isinstance(kind, dict) else str(kind)


def _same_name(writer: Schema, reader: Schema) -> bool:
    names = [reader["name"], *reader.get("aliases", ())]
    return writer["name"].rpartition(".")[2] in [n.rpartition(".")[2] for n in names]


def named_schemas(schema: Schema) -> dict[str, Schema]:
    """Return the named schemas inside a schema, by name with and without namespace."""
    named: dict[str, Schema] = {}
    _collect(schema, "", named)
    return named


def _collect(schema: Schema, namespace: str, named: dict[str, Schema]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, namespace, named)
    elif isinstance(schema, dict):
        if schema.get("type") in _NAMED:
            namespace = schema.get("namespace", namespace)
            named.setdefault(schema["name"], schema)
            named.setdefault(f"{namespace}.{schema['name']}", schema)
        for key in ("items", "values", "type"):
            if isinstance(schema.get(key), dict | list):
                _collect(schema[key], namespace, named)
        for field in schema.get("fields", ()):
            _collect(field["type"], namespace, named)
