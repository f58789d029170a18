"""Layout to which kernels rewrite values of a declared type; ``None`` if only the plain decoder can read them.

Kernels support classes with fields that are numbers, strings, enums, dates, big numbers, UUIDs, arrays, other such classes, and lists and
maps of these in their usual classes. The type arguments that Kryo knows (:func:`statetool.serializers.kryo.graph.fields_of`) determine the
wire format. The declaration alone determines the decoded type, as in :mod:`statetool.serializers.kryo.typed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.io.output import Output
from statetool.kernels.values.program import (
    BigDec,
    BigInt,
    Counted,
    EnumIndex,
    Fixed,
    Flagged,
    Graph,
    GraphClass,
    GraphKind,
    GraphMode,
    GraphPart,
    Op,
    Pairs,
    Repeated,
    Struct,
    Temporal,
)
from statetool.serializers.kryo import wire
from statetool.serializers.kryo.codecs.scalars import SCALARS, TEXT
from statetool.serializers.kryo.graph import fields_of, resolve_type
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.kryo.model import box_class, is_box
from statetool.serializers.kryo.typed import LISTS, MAPS
from statetool.serializers.kryo.values import Args
from statetool.types.declared import ClassDeclaration
from statetool.types.java import PRIMITIVES, JavaType

_STRING: Final = Counted(text=True)
_SCALARS: Final[dict[str, tuple[GraphKind, Op]]] = {
    "java.lang.Boolean": ("bool", Fixed("bool")),
    "java.lang.Byte": ("i8", Fixed("i8")),
    "java.lang.Short": ("i16", Fixed("i16")),
    "java.lang.Character": ("char", Fixed("char")),
    "java.lang.Integer": ("int", Fixed("i32")),
    "java.lang.Long": ("long", Fixed("i64")),
    "java.lang.Float": ("f32", Fixed("f32")),
    "java.lang.Double": ("f64", Fixed("f64")),
    "java.util.concurrent.atomic.AtomicInteger": ("int", Fixed("i32")),
    "java.util.concurrent.atomic.AtomicLong": ("long", Fixed("i64")),
    "java.math.BigInteger": ("big_int", BigInt()),
    "java.math.BigDecimal": ("big_dec", BigDec()),
    "java.util.UUID": ("uuid", _STRING),
    **{name: ("text", _STRING) for name, body in SCALARS.items() if body is TEXT},
    **{f"java.{n}": ("millis", Temporal("millis")) for n in ("util.Date", "sql.Date", "sql.Time")},
    "java.sql.Timestamp": ("timestamp", Temporal("seconds_nanos")),
    "java.time.Instant": ("instant", Temporal("seconds_nanos")),
    "java.time.LocalDate": ("date", Temporal("date")),
    "java.time.LocalTime": ("time", Temporal("time")),
    "java.time.LocalDateTime": ("date_time", Temporal("date_time")),
}
#: The usual classes of lists and maps. Those of the second group write a comparator first, which must be null here.
_LIST_CLASSES: Final = ("ArrayList", "LinkedList", "HashSet", "LinkedHashSet", "ArrayDeque", "Vector"), ("TreeSet",)
_MAP_CLASSES: Final = ("HashMap", "LinkedHashMap", "concurrent.ConcurrentHashMap", "Hashtable"), ("TreeMap",)


class _UnsupportedLayoutError(Exception):
    """A type that kernels do not support."""


def graph_of(kind: JavaType, kryo: KryoInstance, decode: Callable[[Any], Any]) -> Graph | None:
    """Return the operation that decodes values of a type; ``decode`` is used for values that kernels cannot read."""
    try:
        return Graph(_Layouts(kryo).part(kind, (), ()), kryo.gen == 5, decode)
    except _UnsupportedLayoutError:
        return None


class _Layouts:
    def __init__(self, kryo: KryoInstance) -> None:
        self._kryo = kryo

    def part(self, kind: JavaType, args: Args, enclosing: tuple[str, ...]) -> GraphPart:
        """Return the rewriting of a type's objects; ``args`` are the type arguments that Kryo knows."""
        kryo = self._kryo
        if kind.as_json or kind.name in enclosing or kryo.is_tree(kind.name):
            raise _UnsupportedLayoutError
        if kind.name in PRIMITIVES or kryo.registry.body(box_class(kind.name)) is not None:
            return self._scalar(box_class(kind.name))
        if kind.is_array:
            return self._array(kind, enclosing)
        if kind.name in LISTS and len(kind.args) == 1:
            return self._list(kind, args, enclosing)
        if kind.name in MAPS and len(kind.args) == 2:
            return self._map(kind, args, enclosing)
        declared = kryo.classes.declared(kind.name)
        if declared is None or kryo.context.subclasses(kind.name) or not self._is_plain(kind.name):
            raise _UnsupportedLayoutError
        if declared.kind == "record":
            return self._record(declared, kind, args, (*enclosing, kind.name))
        if declared.kind == "enum" and not declared.bodies:
            shape = EnumIndex(declared.constants)
            classes = (self._class(kind.name),)
            return GraphPart("enum", shape, kryo.gen == 2, len(declared.constants), classes)
        raise _UnsupportedLayoutError

    def _is_plain(self, name: str) -> bool:
        kryo = self._kryo
        if kryo.registry.container(name) is not None:
            return False
        return kryo.custom(name) is None and not kryo.by_java(name) and not kryo.is_message(name)

    def _class(self, name: str, *, is_sorted: bool = False) -> GraphClass:
        out = Output()
        wire.write_class_name(out, name, self._kryo.gen)
        return GraphClass(self._kryo.registry.id_of(box_class(name)), bytes(out), is_sorted)

    def _usual_classes(self, names: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[GraphClass, ...]:
        """Return the usual classes, except those for which the job has serializers or the user has declarations."""
        candidates = [(f"java.util.{n}", is_sorted) for is_sorted, group in enumerate(names) for n in group]
        return tuple(
            self._class(n, is_sorted=bool(is_sorted))
            for n, is_sorted in candidates
            if self._is_plain(n) and self._kryo.classes.declared(n) is None
        )

    def _scalar(self, name: str) -> GraphPart:
        if name not in _SCALARS:
            raise _UnsupportedLayoutError
        kind, shape = _SCALARS[name]
        return GraphPart(kind, shape, not is_box(name), classes=(self._class(name),))

    def _position(
        self, kind: JavaType, kryo_type: JavaType | None, enclosing: tuple[str, ...]
    ) -> tuple[GraphMode, GraphPart]:
        """Return the layout of a field or element whose type Kryo knows as ``kryo_type``."""
        kryo = self._kryo
        if kryo_type is None:
            return "value", self.part(kind, (), enclosing)
        if kryo_type.name in PRIMITIVES:
            return "body", self.part(kind, (), enclosing)
        if kryo.classes.is_final(kryo_type):
            if kryo_type.binary_name != kind.binary_name:
                raise _UnsupportedLayoutError
            return "nullable", self.part(kind, kryo_type.args, enclosing)
        return "value", self.part(kind, kryo_type.args, enclosing)

    def _record(self, declared: ClassDeclaration, kind: JavaType, args: Args, enclosing: tuple[str, ...]) -> GraphPart:
        arguments = dict(zip(declared.parameters, kind.args, strict=False))
        types = {name: resolve_type(t, arguments) for name, t in declared.fields}
        declared_positions = {name: i for i, (name, _) in enumerate(declared.fields)}
        on_wire = fields_of(declared, args, self._kryo.gen)
        if not on_wire:
            raise _UnsupportedLayoutError
        parts = tuple(self._position(types[name], kryo_type, enclosing) for name, kryo_type in on_wire)
        names = tuple(name for name, _ in on_wire)
        shape = Struct(names, tuple(_slot(p) for p in parts), tuple(declared_positions[n] for n in names))
        return GraphPart("record", shape, size=len(parts), classes=(self._class(declared.name),), parts=parts)

    def _list(self, kind: JavaType, args: Args, enclosing: tuple[str, ...]) -> GraphPart:
        kryo_type = self._element_type(args[0]) if args else None
        element = self._position(kind.args[0], kryo_type, enclosing)
        return GraphPart("list", Repeated(_slot(element)), classes=self._usual_classes(_LIST_CLASSES), parts=(element,))

    def _map(self, kind: JavaType, args: Args, enclosing: tuple[str, ...]) -> GraphPart:
        kryo_types = [self._element_type(a) for a in args] if len(args) == 2 else [None, None]
        key, value = (self._position(a, k, enclosing) for a, k in zip(kind.args, kryo_types, strict=True))
        shape = Pairs(_slot(key), _slot(value))
        return GraphPart("map", shape, classes=self._usual_classes(_MAP_CLASSES), parts=(key, value))

    def _element_type(self, kind: JavaType) -> JavaType:
        """Return the type of an element known to Kryo: 2.24 does not know its type arguments."""
        return kind if self._kryo.gen == 5 or kind.is_array else JavaType(kind.name)

    def _array(self, kind: JavaType, enclosing: tuple[str, ...]) -> GraphPart:
        classes = (self._class(kind.binary_name),)
        element = kind.args[0]
        if element.name == "byte":
            return GraphPart("bytes", Counted(), classes=classes)
        kryo_type = JavaType(element.name, element.args if element.is_array else ())
        part: tuple[GraphMode, GraphPart]
        if element.is_array:
            part = "nullable", self.part(element, (), enclosing)
        elif element.name in PRIMITIVES or self._kryo.classes.is_final(kryo_type):
            part = self._position(element, kryo_type, enclosing)
        else:
            part = "value", self.part(element, (), enclosing)
        return GraphPart("array", Repeated(_slot(part)), classes=classes, parts=(part,))


def _slot(part: tuple[GraphMode, GraphPart]) -> Op:
    mode, inner = part
    return inner.shown if mode == "body" else Flagged(inner.shown, null_flag=0)
