"""Class declarations as Avro schemas: the Java type of each Avro type.

A record's full name is the class. Names that Avro does not allow (inner classes) are given in ``"java-class"``. Types of fields:

====================================  =================================================================
Avro                                  Java
====================================  =================================================================
int, long, float, double, boolean     the primitive
a union of null and one of these      its box: they differ on the wire, a box may be null
string, bytes                         ``String``, ``byte[]`` (a union with null changes nothing)
array, map                            ``java.util.List``, ``java.util.Map`` with ``String`` keys
record, enum                          the class
decimal, uuid, date, time-*           ``BigDecimal``, ``UUID``, ``LocalDate``, ``LocalTime``
timestamp-*, local-timestamp-*        ``Instant``, ``LocalDateTime``
any type with ``"java-type"``         that type, in Java syntax: ``"java.util.Set<java.lang.Long>"``
====================================  =================================================================

``"java-bodies"`` lists the constants of an enum that have a body. ``"java-final"``, ``"java-record"``, ``"java-generic"``,
``"java-extends"`` (a list) and ``"java-parameters"`` (a list) set the other properties of a class
(:class:`~statetool.types.declared.ClassDeclaration`). A record or enum inside another one is declared with it. Fields may be in any order:
Kryo's ``FieldSerializer`` sorts them by name, together with those of superclasses.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import OptionError
from statetool.types.declared import ClassDeclaration, enum_of
from statetool.types.java import ARRAY, PRIMITIVES, JavaType, parse_java_type

_PLAIN: Final = {"int": "int", "long": "long", "float": "float", "double": "double", "boolean": "boolean"}
_LOGICAL: Final = {
    "decimal": "java.math.BigDecimal",
    "uuid": "java.util.UUID",
    "date": "java.time.LocalDate",
    "time-millis": "java.time.LocalTime",
    "time-micros": "java.time.LocalTime",
    **{f"timestamp-{unit}": "java.time.Instant" for unit in ("millis", "micros", "nanos")},
    **{f"local-timestamp-{unit}": "java.time.LocalDateTime" for unit in ("millis", "micros", "nanos")},
}
_BYTES: Final = JavaType(ARRAY, (JavaType("byte"),))


def classes_of_schema(schema: Any, *, name: str | None = None) -> tuple[ClassDeclaration, ...]:
    """Return the declarations in an Avro schema (parsed JSON): of a record or enum and everything nested in it, or of a list of them.

    Parameters
    ----------
    name
        Class of the outermost record or enum, if the schema does not give it.

    Raises
    ------
    OptionError
        Not such a schema.
    """
    declarations: dict[str, ClassDeclaration] = {}
    for top in schema if isinstance(schema, list) else [schema]:
        if not isinstance(top, dict) or top.get("type") not in ("record", "error", "enum"):
            raise OptionError(f"a class is declared by an Avro record or enum, not by {top!r}")
        _Reader(declarations).named(top, "", name)
    return tuple(declarations.values())


class _Reader:
    def __init__(self, declarations: dict[str, ClassDeclaration]) -> None:
        self.declarations = declarations
        self.classes: dict[str, str] = {}

    def named(self, schema: dict[str, Any], namespace: str, name: str | None = None) -> JavaType:
        """Read a record or enum."""
        short = schema.get("name")
        if not isinstance(short, str):
            raise OptionError(f"an Avro {schema.get('type')} without a name")
        namespace = str(schema.get("namespace", namespace))
        full = short if "." in short or not namespace else f"{namespace}.{short}"
        cls = name or str(schema.get("java-class", full))
        self.classes[full] = self.classes[short] = cls
        extends = tuple(_words(schema, "java-extends"))
        if schema["type"] == "enum":
            bodies = set(_words(schema, "java-bodies"))
            constants = [f"{c}{{}}" if c in bodies else c for c in _words(schema, "symbols")]
            self.declarations[cls] = enum_of(cls, constants, extends=extends)
            return JavaType(cls)
        fields = []
        for field in schema.get("fields", ()):
            if not isinstance(field, dict) or "name" not in field or "type" not in field:
                raise OptionError(f"{field!r} is not a field of an Avro record", hint=f"record {full}")
            kind = parse_java_type(field["java-type"]) if "java-type" in field else self.type(field["type"], full)
            fields.append((str(field["name"]), kind))
        record = bool(schema.get("java-record", False))
        self.declarations[cls] = ClassDeclaration(
            name=cls,
            fields=tuple(fields),
            extends=extends,
            final=record or bool(schema.get("java-final", False)),
            record=record,
            generic=bool(schema.get("java-generic", False)),
            parameters=tuple(_words(schema, "java-parameters")),
        )
        return JavaType(cls)

    def type(self, schema: Any, enclosing: str) -> JavaType:
        """Return the Java type of an Avro type."""
        namespace = enclosing.rpartition(".")[0]
        if isinstance(schema, list):
            others = [s for s in schema if s != "null"]
            if len(others) != 1:
                raise OptionError(
                    f"a union of {len(others)} types in {enclosing}", hint='"java-type" names the type of the field'
                )
            kind = self.type(others[0], enclosing)
            return JavaType(PRIMITIVES[kind.name]) if kind.name in PRIMITIVES and len(others) < len(schema) else kind
        if isinstance(schema, str):
            return self._simple(schema, enclosing, namespace)
        if not isinstance(schema, dict) or "type" not in schema:
            raise OptionError(f"{schema!r} is not an Avro type", hint=f"in {enclosing}")
        if "java-type" in schema:
            return parse_java_type(str(schema["java-type"]))
        if schema.get("logicalType") in _LOGICAL:
            return JavaType(_LOGICAL[schema["logicalType"]])
        match schema["type"]:
            case "record" | "error" | "enum":
                return self.named(schema, namespace)
            case "array":
                return JavaType("java.util.List", (self._argument(schema.get("items"), enclosing),))
            case "map":
                value = self._argument(schema.get("values"), enclosing)
                return JavaType("java.util.Map", (JavaType("java.lang.String"), value))
            case "fixed":
                return _BYTES
        return self.type(schema["type"], enclosing)

    def _argument(self, schema: Any, enclosing: str) -> JavaType:
        kind = self.type(schema, enclosing)
        return JavaType(PRIMITIVES.get(kind.name, kind.name), kind.args)

    def _simple(self, schema: str, enclosing: str, namespace: str) -> JavaType:
        if schema in _PLAIN:
            return JavaType(_PLAIN[schema])
        if schema == "string":
            return JavaType("java.lang.String")
        if schema == "bytes":
            return _BYTES
        full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        if full not in self.classes and "." not in schema:
            raise OptionError(f"{schema!r} is not an Avro type nor a record before it", hint=f"in {enclosing}")
        return JavaType(self.classes.get(full, full))


def _words(schema: dict[str, Any], key: str) -> list[str]:
    words = schema.get(key, [])
    if not isinstance(words, list) or not all(isinstance(w, str) for w in words):
        raise OptionError(f"{key!r} of an Avro {schema.get('type')} is a list of names, not {words!r}")
    return words
