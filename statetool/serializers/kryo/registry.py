"""Class ids and properties of classes: Flink's registrations, the snapshot's, and the user's declarations.

Ids 0 to 8 are the primitives (9 ``void`` in Kryo 2.24), 10 to 72 Scala's classes if flink-scala is present (1.x), 73 to 84 Flink's JDK
classes, and from 85 on the snapshot's registrations in order. A class that already has an id gets no second one, unless it is registered
with a serializer. Follows ``FlinkChillPackageRegistrar``, ``KryoUtils``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from statetool.errors import UnknownSerializerError
from statetool.serializers.kryo import libraries, messages, scala
from statetool.serializers.kryo.model import COLLECTIONS, LIST_LIKE, MAP_LIKE
from statetool.serializers.kryo.scalars import SCALARS, TEXT, Body
from statetool.serializers.kryo.times import TIMES
from statetool.serializers.kryo.wire import Generation
from statetool.types.declared import (
    ClassDeclaration,
    TypeContext,
    class_of_fields,
    enum_of,
    skeleton,
    skeleton_of_steps,
)
from statetool.types.java import PRIMITIVES, JavaType

_PRIMITIVE_IDS: Final = (
    "java.lang.Integer",
    "java.lang.String",
    "java.lang.Float",
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Short",
    "java.lang.Long",
    "java.lang.Double",
)
_FIRST_FLINK_ID: Final = 73
_FLINK_IDS: Final = (
    "java.util.Arrays$ArrayList",
    "java.util.BitSet",
    "java.util.PriorityQueue",
    "java.util.regex.Pattern",
    "java.sql.Date",
    "java.sql.Time",
    "java.sql.Timestamp",
    "java.net.URI",
    "java.net.InetSocketAddress",
    "java.util.UUID",
    "java.util.Locale",
    "java.text.SimpleDateFormat",
)
_JAVA_SERIALIZERS: Final = (
    "org.apache.flink.api.java.typeutils.runtime.kryo.JavaSerializer",
    "com.esotericsoftware.kryo.serializers.JavaSerializer",
)
_PLAIN_SERIALIZERS: Final = (
    "com.esotericsoftware.kryo.serializers.FieldSerializer",
    "com.esotericsoftware.kryo.serializers.CollectionSerializer",
    "com.esotericsoftware.kryo.serializers.MapSerializer",
    "org.apache.flink.formats.avro.utils.AvroKryoSerializerUtils",
    "org.apache.flink.api.java.typeutils.runtime.kryo.Serializers$SpecificInstanceCollectionSerializerForArrayList",
)
#: Classes for which Kryo 2.24 has no serializer, so that it writes them field by field.
_BY_FIELDS_IN_2: Final = {
    "java.net.URL": {
        **dict.fromkeys(("authority", "file", "host", "protocol", "ref"), "String"),
        "hashCode": "int",
        "port": "int",
    }
}
#: Charsets. Each has a separate class; Kryo 5 writes their names.
_CHARSETS: Final = "sun.nio.cs."
_ALL_BODIES: Final = {**SCALARS, **TIMES}
_FINAL: Final = frozenset(
    n
    for n in _ALL_BODIES
    if n
    not in (
        "java.math.BigInteger", "java.math.BigDecimal", "java.util.BitSet", "java.net.InetSocketAddress", "java.util.TimeZone",
        "java.util.SimpleTimeZone", "sun.util.calendar.ZoneInfo", "java.util.Date", "java.sql.Date", "java.sql.Time",
        "java.sql.Timestamp", "java.util.GregorianCalendar", "java.util.concurrent.atomic.AtomicInteger",
        "java.util.concurrent.atomic.AtomicLong", "java.util.concurrent.atomic.AtomicBoolean",
    )
) | {"java.util.Optional"}  # fmt: skip


#: Anonymous classes: those of enum constants with bodies.
_BODY_CLASS: Final = re.compile(r"(.+)\$\d+")


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
    classes += [enum_of(name, constants.split()) for name, constants in _ENUMS.items()]
    classes += [class_of_fields(name, fields, final=True) for name, fields in _FINAL_CLASSES.items()]
    classes += [class_of_fields(name, fields, parameters=("K", "V")) for name, fields in _ENTRIES.items()]
    classes += [class_of_fields(name, fields) for name, fields in _COMPARATORS.items()]
    classes += [class_of_fields(name, fields, final=final) for name, fields, final in libraries.RECORDS]
    records = {**scala.RECORDS, **_BY_FIELDS_IN_2}
    classes += [class_of_fields(name, fields, final=not name.startswith("scala.")) for name, fields in records.items()]
    return {c.name: c for c in classes}


_BUILTIN: Final = _builtin()


class Registry:
    """Classes known to a Kryo serializer.

    Parameters
    ----------
    registrations
        Names of the snapshot's registrations in order, with the serializer class if one was given.
    defaults
        Classes and interfaces for which the job set a default serializer, in order, with its class.
    """

    def __init__(
        self,
        gen: Generation,
        context: TypeContext,
        registrations: tuple[tuple[str, str | None], ...],
        defaults: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.gen = gen
        self.context = context
        self._by_id: dict[int, str] = dict(enumerate(_PRIMITIVE_IDS))
        if gen == 2:
            self._by_id[9] = "java.lang.Void"
        if context.chill:
            if gen == 2:
                self._by_id.update(enumerate(scala.IDS, scala.FIRST_ID))
            self._by_id.update(enumerate(_FLINK_IDS, _FIRST_FLINK_ID))
        self._ids = {name: i for i, name in self._by_id.items()}
        self._serializers: dict[str, str] = {}
        self._defaults = defaults
        self._serializer_cache: dict[str, str | None] = {}
        next_id = _FIRST_FLINK_ID + len(_FLINK_IDS) if context.chill else len(self._by_id)
        for name, serializer in registrations:
            name = PRIMITIVES.get(name, name)
            if name in self._ids and serializer is None:
                continue
            self._by_id[next_id] = name
            self._ids[name] = next_id
            next_id += 1
            if serializer is not None:
                self._serializers[name] = serializer
        #: Results cached per class when reading: reader of the body, fields in wire order, whether it has references.
        self.readers: dict[str, Callable[[Any, tuple[JavaType, ...]], Any]] = {}
        self.fields: dict[tuple[str, tuple[JavaType, ...]], list[tuple[str, JavaType]]] = {}
        self.references: dict[str, bool] = {}
        self._final: dict[JavaType, bool] = {}
        self._declared: dict[str, ClassDeclaration] = {**_BUILTIN, **{c.name: c for c in context.classes}}

    def name_of(self, class_id: int) -> str | None:
        """Return the class of an id."""
        return self._by_id.get(class_id)

    def id_of(self, name: str) -> int | None:
        """Return the id of a class, ``None`` if it is written by name."""
        return self._ids.get(name)

    def serializer_of(self, name: str) -> str | None:
        """Return the serializer class that the job set for a class or a supertype of it."""
        if name not in self._serializer_cache:
            self._serializer_cache[name] = self._serializers.get(name) or self._default_of(name)
        return self._serializer_cache[name]

    def _default_of(self, name: str) -> str | None:
        if not self._defaults:
            return None
        supertypes = {name, "java.lang.Object", *libraries.superclasses(name)}
        supertypes |= {"java.util.Collection"} if name in LIST_LIKE else set()
        supertypes |= {"java.util.Map"} if name in MAP_LIKE else set()
        unvisited = [name]
        while unvisited:
            declaration = self._declared.get(unvisited.pop())
            added = set(declaration.extends) - supertypes if declaration is not None else set()
            supertypes |= added
            unvisited += added
        return next((serializer for cls, serializer in self._defaults if cls in supertypes), None)

    def container(self, name: str) -> tuple[libraries.ReadBody, libraries.WriteBody] | None:
        """Return the reader and writer of a class with elements that a library's serializer writes."""
        return libraries.CONTAINERS.get(self.serializer_of(name) or "")

    def body(self, name: str) -> Body | None:
        """Return the body of a class that consists of one value."""
        serializer = self.serializer_of(name)
        if serializer is not None:
            return libraries.BODIES.get(serializer)
        if self.gen == 2 and name in _BY_FIELDS_IN_2:
            return None
        if self.gen == 5 and name.startswith(_CHARSETS):
            return TEXT
        return _ALL_BODIES.get(name)

    def declared(self, name: str) -> ClassDeclaration | None:
        """Return the declaration of a class; a constant with a body has a separate class, ``Color$1``."""
        declaration = self._declared.get(name)
        if declaration is None and (inner := _BODY_CLASS.fullmatch(name)) is not None:
            outer = self._declared.get(inner[1])
            return outer if outer is not None and outer.kind == "enum" and not outer.final else None
        return declaration

    def known(self, name: str) -> bool:
        """Return True if values of a class can be read."""
        if name.startswith("["):
            return True
        if self.container(name) is not None:
            return True
        if self.body(name) is not None or name in LIST_LIKE or name in MAP_LIKE or name in self._declared:
            return True
        # Scala's are known by chill's serializers; abstract ones say as little as Object.
        return self.gen == 2 and name.startswith("scala.")

    def custom(self, name: str) -> str | None:
        """Return the serializer class that the job registered for a class, if statetool does not know its format."""
        serializer = self.serializer_of(name)
        if (
            serializer is None
            or serializer in libraries.BODIES
            or serializer in libraries.CONTAINERS
            or serializer in _PLAIN_SERIALIZERS
            or serializer in messages.SERIALIZERS
            or serializer in _JAVA_SERIALIZERS
        ):
            return None
        if name in COLLECTIONS or self._declares_format(name, serializer):
            return None
        return serializer

    def _declares_format(self, name: str, serializer: str) -> bool:
        declaration = self._declared.get(name)
        if declaration is not None and declaration.kind == "written":
            return declaration.serializer == serializer
        return declaration is not None and declaration.kind in ("java", "protobuf", "thrift")

    def is_message(self, name: str) -> bool:
        """Return True if a class is a Protobuf or Thrift message, according to its declaration or its registration."""
        declaration = self._declared.get(name)
        if declaration is not None:
            return declaration.kind in ("protobuf", "thrift")
        return name not in messages.ABSTRACT and self.serializer_of(name) in messages.SERIALIZERS

    def is_scala_object(self, name: str) -> bool:
        """Return True if an undeclared class is that of a Scala ``object``, which chill writes without a body."""
        return self.gen == 2 and scala.is_empty(name) and name not in self._declared

    def by_java(self, name: str) -> bool:
        """Return True if a class is written by Java serialization."""
        declaration = self._declared.get(name)
        if declaration is not None and declaration.kind == "java":
            return True
        return self.serializer_of(name) in _JAVA_SERIALIZERS or name == "java.text.SimpleDateFormat"

    def is_final(self, declared: JavaType) -> bool:
        """Return True if Kryo omits the class of values of a declared type."""
        final = self._final.get(declared)
        if final is None:
            final = self._final[declared] = self._find_final(declared)
        return final

    def _find_final(self, declared: JavaType) -> bool:
        while declared.is_array:
            declared = declared.args[0]
        if declared.name in PRIMITIVES or declared.name in _FINAL:
            return True
        declaration = self._declared.get(declared.name)
        return declaration is not None and declaration.final

    def unknown(self, name: str) -> UnknownSerializerError:
        """Make the error for an undeclared class."""
        custom = self.serializer_of(name)
        if custom is not None and self.custom(name) is not None:
            return UnknownSerializerError(
                f"values of {name} are written by {custom}, whose format is defined by user code",
                hint=f"{skeleton_of_steps(name, custom)}, or keep the bytes of framed values with on_error='keep_raw'",
            )
        return UnknownSerializerError(f"the fields of Kryo class {name} are not known", hint=skeleton(name))
