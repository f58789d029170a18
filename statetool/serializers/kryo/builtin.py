"""Declarations of the JDK's, Flink's and libraries' classes that Kryo writes field by field."""

from __future__ import annotations

from typing import Final

from statetool.serializers.kryo.codecs import jackson, libraries, scala
from statetool.types.declared import ClassDeclaration, class_of_fields, enum_of

#: Classes for which Kryo 2.24 has no serializer, so that it writes them field by field.
BY_FIELDS_IN_2: Final = {
    "java.net.URL": {
        **dict.fromkeys(("authority", "file", "host", "protocol", "ref"), "String"),
        "hashCode": "int",
        "port": "int",
    }
}
#: Flink's mutable boxes, and the primitive in each.
_VALUES: Final = {
    "Boolean": "boolean", "Byte": "byte", "Short": "short", "Int": "int", "Long": "long", "Float": "float", "Double": "double",
    "Char": "char",
}  # fmt: skip
#: Enums and their constants.
_ENUMS: Final = {
    "org.apache.flink.types.RowKind": "INSERT UPDATE_BEFORE UPDATE_AFTER DELETE",
    "java.util.concurrent.TimeUnit": "NANOSECONDS MICROSECONDS MILLISECONDS SECONDS MINUTES HOURS DAYS",
    "java.math.RoundingMode": "UP DOWN CEILING FLOOR HALF_UP HALF_DOWN HALF_EVEN UNNECESSARY",
    "java.time.DayOfWeek": "MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY",
    "java.time.Month": "JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER",
}
_FINAL_CLASSES: Final = {
    "java.math.MathContext": {"precision": "int", "roundingMode": "java.math.RoundingMode"},
    "org.apache.flink.types.Row": {
        "fieldByName": "Map<String, Object>",
        "fieldByPosition": "Object[]",
        "kind": "org.apache.flink.types.RowKind",
        "positionByName": "LinkedHashMap<String, Integer>",
    },
}
_ENTRIES: Final = {
    "java.util.AbstractMap$SimpleEntry": {"key": "K", "value": "V"},
    "java.util.AbstractMap$SimpleImmutableEntry": {"key": "K", "value": "V"},
}
_COMPARATORS: Final[dict[str, dict[str, str]]] = {
    "java.lang.String$CaseInsensitiveComparator": {},
    "java.util.Collections$ReverseComparator": {},
    "java.util.Collections$ReverseComparator2": {"cmp": "java.util.Comparator"},
}


def _builtin() -> dict[str, ClassDeclaration]:
    """Return the classes of the JDK and of Flink that Kryo writes field by field."""
    tuples = "org.apache.flink.api.java.tuple.Tuple"
    classes = [
        class_of_fields(f"{tuples}{n}", {f"f{i}": f"T{i}" for i in range(n)}, parameters=[f"T{i}" for i in range(n)])
        for n in range(26)
    ]
    classes += [
        class_of_fields(f"org.apache.flink.types.{name}Value", {"value": primitive})
        for name, primitive in _VALUES.items()
    ]
    classes += [enum_of(name, constants.split()) for name, constants in {**_ENUMS, **libraries.ENUMS}.items()]
    classes += [class_of_fields(name, fields, final=True) for name, fields in _FINAL_CLASSES.items()]
    classes += [class_of_fields(name, fields, parameters=("K", "V")) for name, fields in _ENTRIES.items()]
    classes += [class_of_fields(name, fields) for name, fields in _COMPARATORS.items()]
    classes += [class_of_fields(name, fields, final=final) for name, fields, final in libraries.RECORDS]
    classes += [class_of_fields(name, fields, final=final) for name, (fields, final) in jackson.RECORDS.items()]
    records = {**scala.RECORDS, **BY_FIELDS_IN_2}
    classes += [class_of_fields(name, fields, final=not name.startswith("scala.")) for name, fields in records.items()]
    return {c.name: c for c in classes}


BUILTIN: Final = _builtin()
