"""``KryoSerializer`` and its snapshots.

Version 2: utf type class and three optional maps: registrations (utf class, i32 kind: 0 none, 1 utf serializer class, 2 a Java
stream), default serializers, default serializer classes. The form of Flink 1.6 and older has only the registrations.

The decoded type depends on the type class:

- A JDK class becomes the corresponding value.
- A declared class becomes a struct.
- A type that does not determine its values becomes JSON text.
- An undeclared class becomes the exact bytes of a value that fills its frame.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from statetool.errors import EncodeError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaClass, JavaObject, read_java_stream
from statetool.io.output import Output
from statetool.kernels.values.program import Op, PerRecord, Rest
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.kryo import model
from statetool.serializers.kryo.graph import GraphReader, GraphWriter
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.kryo.layout import graph_of
from statetool.serializers.kryo.typed import (
    EnumView,
    HierarchyView,
    RecordView,
    View,
    holds_text,
    object_or_null,
    plain_or_null,
    view_of,
)
from statetool.serializers.typeutils.basic import TYPES as BASIC
from statetool.serializers.typeutils.java_types import AVRO_ARRAY, avro_placeholder
from statetool.serializers.typeutils.optional_map import (
    FLINK_1_OBJECT,
    OptionalEntry,
    read_optional_map,
    write_optional_map,
)
from statetool.serializers.typeutils.renewal import renewed_serializer
from statetool.serializers.typeutils.temporal import TYPES as TEMPORAL
from statetool.types import LogicalType, Scalar
from statetool.types.declared import ClassDeclaration, TypeContext, leaves_kryo, skeleton, skeleton_of_steps
from statetool.types.java import PRIMITIVES, JavaType, from_binary_name
from statetool.types.java_hash import hash_chain, to_int32

_LISTS: Final = ("java.util.List", "java.util.ArrayList", "java.util.LinkedList")
_SETS: Final = (
    "java.util.Set",
    "java.util.HashSet",
    "java.util.LinkedHashSet",
    "java.util.TreeSet",
    "java.util.SortedSet",
)
_MAPS: Final = (
    "java.util.Map",
    "java.util.HashMap",
    "java.util.LinkedHashMap",
    "java.util.TreeMap",
    "java.util.SortedMap",
)
_TOO_DEEP: Final = "objects nested too deep to be followed"
_SPECS: Final = {t.name: t for t in (*BASIC, *TEMPORAL)}
_BOX_SPECS: Final = tuple(
    zip(PRIMITIVES.values(), ("Boolean", "Byte", "Short", "Char", "Int", "Long", "Float", "Double"), strict=True)
)
Registrations = tuple[tuple[str, str | None], ...]


class KryoSerializer(Serializer):
    """Values of one type, written by Kryo."""

    nullable = True

    def __init__(
        self,
        name: str,
        version: int,
        type_class: str,
        registrations: Registrations,
        maps: tuple[tuple[OptionalEntry, ...], ...],
        context: TypeContext,
    ) -> None:
        super().__init__(name, version)
        self.type_class = type_class
        self.registrations = registrations
        self.maps = maps
        self.context = context
        self._kryo: KryoInstance | None = None
        self._view: View | None = None
        self._kind = from_binary_name(type_class)
        self._program: Op | None = None
        self._missing = ""
        if context.kryo is not None:
            kryo = KryoInstance(context.kryo, context, registrations, _defaults(maps))
            custom = kryo.custom(type_class)
            if custom is not None:
                self._missing = skeleton_of_steps(type_class, custom)
            if _readable(type_class, kryo):
                self._kryo = kryo
                self._view = view_of(self._kind, kryo)

    def with_java_type(self, kind: JavaType) -> Serializer:
        """Decode values as those of a declared type. The bytes stay the same; type arguments give the types inside collections."""
        if self._kryo is None or not (kind.args or kind.as_json):
            return self
        shown = copy.copy(self)
        shown._kind = kind
        shown._view = view_of(kind, self._kryo)
        shown._program = None
        return shown

    def watch(self, met: Callable[[str, Any], None]) -> None:
        """Call a function with the class and the value of each object that is read, which may raise an error."""
        if self._kryo is not None:
            self._kryo.watch = met

    @property
    def instance(self) -> KryoInstance | None:
        """The Kryo of the job, ``None`` if values stay bytes."""
        return self._kryo

    @property
    def holds_objects(self) -> bool:
        """Whether values have objects whose classes only the values tell, or that Java serialization writes."""
        return self.is_java_serialized or (self._view is not None and holds_text(self._view))

    @property
    def java_classes(self) -> Mapping[str, JavaClass]:
        """Classes of the Java streams inside the values that were read so far, by name."""
        return {} if self._kryo is None else self._kryo.java_classes

    @property
    def java_constants(self) -> frozenset[tuple[str, str]]:
        """Enum constants in these streams, as class and name."""
        return frozenset() if self._kryo is None else frozenset(self._kryo.java_constants)

    @property
    def is_java_serialized(self) -> bool:
        """Whether the job leaves values of the class to Java serialization."""
        return self._kryo is not None and self._kryo.by_java(self.type_class)

    @property
    def java_type(self) -> JavaType:
        """The type of the values, with the type arguments of its declaration."""
        return self._kind

    @property
    def type_name(self) -> str:
        return f"Kryo {self.type_class}"

    @property
    def logical(self) -> LogicalType:
        return Scalar("binary") if self._view is None else self._view.logical

    @property
    def needs_frame(self) -> bool:
        return self._view is None

    @property
    def missing_declaration_hint(self) -> str:
        """Hint for the user on how to get values decoded, empty if they already are."""
        if self._view is not None:
            return ""
        if self.context.kryo is None:
            return "say which Kryo wrote it: kryo=2 (Flink 1.x) or kryo=5 (Flink 2.x)"
        return self._missing or skeleton(self.type_class)

    def declarations(self) -> tuple[ClassDeclaration, ...]:
        if self._kryo is None or self.is_java_serialized:
            return ()
        found: dict[str, ClassDeclaration] = {}
        kinds = [JavaType(self.type_class, self._kind.args)]
        while kinds:
            kind = kinds.pop()
            found |= {c.name: c for c in self.context.within(kind.name)}
            kinds += kind.args
        return tuple(found.values())

    def decode(self, c: Cursor) -> Any:
        if self._view is None or self._kryo is None:
            return c.take(c.left)
        start = c.pos
        try:
            return plain_or_null(self._view, GraphReader(c, self._kryo).value())
        except StatetoolError as error:
            raise error.at(offset=c.base + start) from error.__cause__
        except RecursionError as e:
            raise c.fail(_TOO_DEEP, pos=start) from e

    def skip(self, c: Cursor) -> None:
        if self._kryo is None:
            c.skip(c.left)
            return
        start = c.pos
        try:
            GraphReader(c, self._kryo, skipping=True).value()
        except RecursionError as e:
            raise c.fail(_TOO_DEEP, pos=start) from e

    def encode(self, out: Output, value: Any) -> None:
        if self._view is None or self._kryo is None:
            if not isinstance(value, bytes):
                raise EncodeError(f"values of {self.type_class} are written as bytes, not {type(value).__name__}")
            out += value
            return
        try:
            GraphWriter(out, self._kryo).value(object_or_null(self._view, value))
        except RecursionError as e:
            raise EncodeError(_TOO_DEEP) from e

    def null_form(self) -> bytes:
        """Return the null that Kryo writes in place of a class, also if values stay bytes."""
        return b"\x00"

    @property
    def fields(self) -> dict[str, Serializer]:
        """Serializers by field, for the hash codes of a declared class whose fields are known; otherwise empty."""
        view = self._view.views.get(self.type_class) if isinstance(self._view, HierarchyView) else self._view
        if not isinstance(view, RecordView) or self.context.find(self.type_class) is None:
            return {}
        return {name: self._part(kind, view.views[name]) for name, kind in view.kinds.items()}

    @property
    def is_open(self) -> bool:
        """Whether values may be of subclasses: their last part is the class then."""
        return isinstance(self._view, HierarchyView)

    @property
    def constants(self) -> tuple[str, ...]:
        """Constants of an enum; empty for other types."""
        return self._view.constants if isinstance(self._view, EnumView) else ()

    def _part(self, kind: JavaType, view: View) -> KryoSerializer:
        part = copy.copy(self)
        part.type_class, part._kind, part._view, part._program = model.box_class(kind.binary_name), kind, view, None
        return part

    def hash_code(self, value: Any) -> int:
        hash_of = _HASHES.get(self.type_class)
        if self._view is None or self._kryo is None:
            return super().hash_code(value)
        if value is None:
            return 0
        if hash_of is not None:
            return hash_of(value)
        args = self._kind.args
        parts = [self._part(a, view_of(a, self._kryo)) for a in args]
        if self._kind.name in _LISTS and len(args) == 1:
            return hash_chain((parts[0].hash_code(v) for v in value), start=1)
        if self._kind.name in _SETS and len(args) == 1:
            return to_int32(sum(parts[0].hash_code(v) for v in value))
        if self._kind.name in _MAPS and len(args) == 2:
            return to_int32(sum(parts[0].hash_code(k) ^ parts[1].hash_code(v) for k, v in value))
        return super().hash_code(value)

    def hash_of_elements(self, value: Any) -> int:
        """Return ``Arrays.hashCode`` of an array, and the hash code of other values."""
        if not self._kind.is_array or self._kryo is None:
            return self.hash_code(value)
        if isinstance(value, bytes):
            return hash_chain((b - 256 if b > 127 else b for b in value), start=1)
        (element,) = self._kind.args
        part = self._part(element, view_of(element, self._kryo))
        return hash_chain((part.hash_code(v) for v in value), start=1)

    def program(self) -> Op:
        if self._program is None:
            if self._kryo is None:
                self._program = Rest()
            else:
                self._program = graph_of(self._kind, self._kryo, self.decode) or PerRecord(self.decode)
        return self._program

    def write_payload(self, out: Output) -> None:
        out.utf(self.type_class)
        for entries in self.maps:
            write_optional_map(out, entries)


def _hash_uuid(value: str) -> int:
    try:
        number = uuid.UUID(value).int
    except (ValueError, AttributeError, TypeError) as e:
        raise EncodeError(f"{value!r} is not a UUID") from e
    halves = (number >> 64) ^ (number & (1 << 64) - 1)
    return to_int32((halves >> 32) ^ halves)


#: Hash codes of JDK classes, which determine the key groups of such keys.
_HASHES: Final[dict[str, Callable[[Any], int]]] = {
    **{
        cls: spec.hash_code
        for cls, spec in (
            *((box, _SPECS[name]) for box, name in _BOX_SPECS),
            ("java.lang.String", _SPECS["String"]),
            *((f"java.math.{n}", _SPECS[s]) for n, s in (("BigInteger", "BigInt"), ("BigDecimal", "BigDec"))),
            *((f"java.time.{n}", _SPECS[n]) for n in ("Instant", "LocalDate", "LocalTime", "LocalDateTime")),
            ("java.util.Date", _SPECS["Date"]),
        )
        if spec.hash_code is not None
    },
    "java.util.UUID": _hash_uuid,
}


def _readable(type_class: str, kryo: KryoInstance) -> bool:
    """Return True if values of a type can be decoded at all (some of their parts may still turn out to be undecodable)."""
    if kryo.custom(type_class) is not None:
        return False
    kind = from_binary_name(type_class)
    while kind.is_array:
        kind = kind.args[0]
    open_type = kind.name in model.OPEN_TYPES or kind.name in model.IMPLEMENTATIONS or kind.name in model.HOLDERS
    return (
        open_type
        or kryo.known(kind.name)
        or kryo.by_java(kind.name)
        or kryo.is_message(kind.name)
        or bool(kryo.context.subclasses(kind.name))
        or (kind != from_binary_name(type_class) and kryo.classes.is_final(kind))
    )


def _read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    type_class = c.utf()
    maps = tuple(read_optional_map(c) for _ in range(3))
    if reader.types.renewed and reader.types.kryo == 5:
        maps = tuple(tuple(map(_of_flink_2, entries)) for entries in maps)
    registrations = tuple((e.name, _registered_serializer(e)) for e in maps[0])
    if leaves_kryo(reader.types, type_class) and (renewed := renewed_serializer(reader, type_class, None)) is not None:
        return renewed
    return KryoSerializer(name, version, type_class, registrations, maps, reader.types)


def _of_flink_2(entry: OptionalEntry) -> OptionalEntry:
    """Return a registration as a job of Flink 2.x without Avro has it, if Flink 1.x wrote the serializer object of flink-avro."""
    return avro_placeholder() if entry.name == AVRO_ARRAY and FLINK_1_OBJECT in (entry.value or b"") else entry


def _defaults(maps: tuple[tuple[OptionalEntry, ...], ...]) -> tuple[tuple[str, str], ...]:
    """Return the classes with default serializers, in the order in which Kryo checks them."""
    defaults = []
    for entries, is_stream in zip(maps[1:], (True, False), strict=False):
        for entry in entries:
            if entry.value is None:
                continue
            c = Cursor(entry.value, base=entry.value_at)
            defaults.append((entry.name, _class_in_stream(c) if is_stream else c.utf()))
    return tuple(defaults)


def _class_in_stream(c: Cursor) -> str:
    """Return the class of a serializer object. Flink wraps it into a ``SerializableSerializer``."""
    serializer = read_java_stream(c)
    if isinstance(serializer, JavaObject) and serializer.cls.name.endswith("SerializableSerializer"):
        serializer = serializer.fields.get("serializer")
    return serializer.cls.name if isinstance(serializer, JavaObject) else "a serializer object"


def _registered_serializer(entry: OptionalEntry) -> str | None:
    if entry.value is None:
        return None
    c = Cursor(entry.value, base=entry.value_at)
    c.utf()
    serializer = _read_definition(c)
    c.expect_end(f"the registration of {entry.name!r}")
    return serializer


def _read_definition(c: Cursor) -> str | None:
    kind = c.i4()
    if kind == 1:
        return c.utf()
    if kind == 2:
        return _class_in_stream(c)
    if kind != 0:
        raise c.fail(f"kind {kind} of a Kryo registration is not 0, 1 or 2", pos=c.pos - 4)
    return None


def _read_legacy(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    type_class = c.utf()
    registrations = []
    for _ in range(c.count("registrations", at_least=8)):
        cls = c.utf()
        c.utf()
        registrations.append((cls, _read_definition(c)))
    return KryoSerializer(name, version, type_class, tuple(registrations), (), reader.types)


SNAPSHOTS: Final = {
    "KryoSerializerSnapshot": SnapshotClass(_read, (2,)),
    "KryoSerializer$KryoSerializerConfigSnapshot": SnapshotClass(_read, (2,), _read_legacy, (1,)),
}
