"""Scala classes in Flink 1.x with flink-scala on the class path: chill's serializers, which Kryo 2.24 calls.

A traversable is varint n and n values (maps: tuples); a sorted one has its ordering after the count. A tuple is its values one after
another; a tuple specialized for primitives is their fixed-width numbers. ``None`` and other objects (class names that end with ``$``) have
no body. Ids 10 to 72, in the order of ``AllScalaRegistrar``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.serializers.kryo import wire
from statetool.serializers.kryo.codecs.scalars import need_string, put_string
from statetool.serializers.kryo.model import Headed, Obj
from statetool.serializers.kryo.values import Args, ValueReader, ValueWriter

FIRST_ID: Final = 10
_IMMUTABLE: Final = "scala.collection.immutable."
_MUTABLE: Final = "scala.collection.mutable."
_WRAPPERS: Final = "scala.collection.convert.Wrappers$"
#: Fields of specialized tuples by the letters of their class names.
_FIXED: Final = {"J": "q", "I": "i", "D": "d"}
_SPECIALISED: Final = ("1$mcJ", "1$mcI", "1$mcD", *(f"2$mc{a}{b}" for a in "JID" for b in "JID"))
_RANGES: Final = ("Range$Inclusive", "NumericRange$Inclusive", "NumericRange$Exclusive")
IDS: Final = (
    *(_WRAPPERS + n for n in ("SeqWrapper", "IteratorWrapper", "MapWrapper", "JListWrapper", "JMapWrapper")),
    "scala.Some",
    "scala.util.Left",
    "scala.util.Right",
    _IMMUTABLE + "Vector",
    *(f"{_IMMUTABLE}Set$Set{i}" for i in range(1, 5)),
    _IMMUTABLE + "HashSet$HashTrieSet",
    *(f"{_IMMUTABLE}Map$Map{i}" for i in range(1, 5)),
    _IMMUTABLE + "HashMap$HashTrieMap",
    *(_IMMUTABLE + n for n in _RANGES),
    _MUTABLE + "BitSet",
    _MUTABLE + "HashMap",
    _MUTABLE + "HashSet",
    _WRAPPERS + "IterableWrapper",
    *(f"scala.Tuple{n}" for n in range(1, 23)),
    *(f"scala.Tuple{n}$sp" for n in _SPECIALISED),
    "scala.Symbol",
    "scala.reflect.ClassTag",
    "scala.runtime.BoxedUnit",
)
#: Pairs of primitives for which ``Tuple2`` is specialized but nothing is registered: Kryo writes their fields.
_BY_FIELDS: Final = {"J": "long", "I": "int", "D": "double", "C": "char", "Z": "boolean"}
_TRAVERSABLES: Final = frozenset(
    (
        *(n for n in IDS if n.startswith((_IMMUTABLE, _MUTABLE)) and not n.endswith(_RANGES)),
        *(
            _IMMUTABLE + n
            for n in ("Nil$", "$colon$colon", "Queue", "ListSet", "ListSet$Node", "ListSet$EmptyListSet$")
        ),
        *(
            _IMMUTABLE + n
            for n in ("ListMap", "ListMap$Node", "ListMap$EmptyListMap$", "Map$EmptyMap$", "HashMap$HashMap1")
        ),
        *(_IMMUTABLE + n for n in ("HashMap$EmptyHashMap$", "HashMap")),
        *(_IMMUTABLE + n for n in ("HashMap$HashMapCollision1", "Map$WithDefault")),
        *(f"{_IMMUTABLE}{kind}Map${n}" for kind in ("Int", "Long") for n in ("Tip", "Bin", "Nil$")),
        *(_MUTABLE + n for n in ("ArrayBuffer", "ListBuffer", "Queue", "LinkedHashMap", "LinkedHashSet", "ListMap")),
        *(_MUTABLE + n for n in ("TreeMap", "TreeSet", "OpenHashMap", "LongMap", "AnyRefMap", "WeakHashMap")),
        *(_WRAPPERS + n for n in ("JSetWrapper", "JConcurrentMapWrapper")),
        "scala.collection.concurrent.TrieMap",
    )
)
_SORTED: Final = frozenset(_IMMUTABLE + n for n in ("TreeMap", "TreeSet"))
_BIT_SETS: Final = frozenset(f"{_IMMUTABLE}BitSet$BitSet{n}" for n in ("1", "2", "N"))
_HOLDERS: Final = frozenset(("scala.Some", "scala.util.Left", "scala.util.Right"))
_TUPLES: Final = {f"scala.Tuple{n}": n for n in range(1, 23)}
_SPECIALISED_TUPLES: Final = {f"scala.Tuple{n}$sp": n.partition("$mc")[2] for n in _SPECIALISED}
_ARRAYS: Final = frozenset(
    f"{_MUTABLE}WrappedArray$of{n}"
    for n in ("Ref", "Int", "Long", "Double", "Float", "Short", "Byte", "Char", "Boolean", "Unit")
)
_REGEX: Final = "scala.util.matching.Regex"
#: A value of an enumeration: the enumeration (without a body if it is an ``object``) and the value's id.
_ENUMERATION: Final = "scala.Enumeration$Val"
_UNIT: Final = "scala.runtime.BoxedUnit"
_SYMBOL: Final = "scala.Symbol"
#: Both the class and its superclass have a field ``num``.
_NUMERIC_RANGE: Final = {
    "bitmap$0": "byte", "end": "Object", "hashCode": "int", "isInclusive": "boolean", "last": "Object", "num": "Object",
    "num$": "Object", "numRangeElements": "int", "start": "Object", "step": "Object",
}  # fmt: skip
#: Classes that Kryo writes field by field: name and fields with their Java types, in the order of the mangled names.
RECORDS: Final[dict[str, dict[str, str]]] = {
    "scala.util.Success": {"value": "Object"},
    "scala.util.Failure": {"exception": "java.lang.Throwable"},
    "scala.math.BigInt": {"bigInteger": "BigInteger"},
    "scala.math.BigDecimal": {"bigDecimal": "BigDecimal", "computedHashCode": "int", "mc": "java.math.MathContext"},
    **{
        _WRAPPERS + n: {"$outer": "Object", "underlying": "Object"}
        for n in ("SeqWrapper", "IteratorWrapper", "MapWrapper", "JListWrapper", "JMapWrapper", "JIterableWrapper")
    },
    **{
        f"{_IMMUTABLE}Range{n}": {
            "end": "int", "isEmpty": "boolean", "lastElement": "int", "numRangeElements": "int", "start": "int", "step": "int"
        }
        for n in ("", "$Inclusive")
    },
    **{f"{_IMMUTABLE}NumericRange${n}": _NUMERIC_RANGE for n in ("Inclusive", "Exclusive")},
    f"{_IMMUTABLE}WrappedString": {"self": "String"},
    f"{_IMMUTABLE}Stack": {"elems": "Object"},
    f"{_MUTABLE}StringBuilder": {"underlying": "java.lang.StringBuilder"},
    f"{_MUTABLE}ArraySeq": {"array": "Object[]", "length": "int"},
    "scala.reflect.ClassTag$GenericClassTag": {"runtimeClass": "Class"},
    "scala.math.Ordering$$anon$4": {"$outer": "Object"},
    "scala.concurrent.duration.FiniteDuration": {"length": "long", "unit": "java.util.concurrent.TimeUnit"},
    **{f"scala.concurrent.duration.Duration$$anon${i}": {} for i in (1, 2, 3)},
    **{
        f"scala.Tuple2$mc{a}{b}$sp": {"_1": "Object", f"_1$mc{a}$sp": _BY_FIELDS[a], "_2": "Object", f"_2$mc{b}$sp": _BY_FIELDS[b]}
        for a in _BY_FIELDS
        for b in _BY_FIELDS
        if f"2$mc{a}{b}" not in _SPECIALISED
    },
}  # fmt: skip

#: Classes whose body is one object.
HOLDERS: Final = _HOLDERS | {_SYMBOL, _REGEX, _WRAPPERS + "IterableWrapper"}

ReadBody = Callable[[ValueReader, str, Args], Any]
WriteBody = Callable[[ValueWriter, Obj, Args], None]


def find(name: str) -> tuple[ReadBody, WriteBody] | None:
    """Return the reader and writer of a class's values."""
    if name in _TRAVERSABLES:
        return _read_traversable, _write_traversable
    if name in _TUPLES:
        n = _TUPLES[name]
        return lambda g, name, args: [g.value() for _ in range(n)], _write_tuple
    if name in _SPECIALISED_TUPLES:
        return _read_specialised, _write_specialised
    if name in _HOLDERS or name == _WRAPPERS + "IterableWrapper":
        return lambda g, name, args: g.value(), lambda g, obj, args: g.value(obj.value)
    if name in _SORTED:
        return _read_sorted, _write_sorted
    if name in _BIT_SETS:
        return _read_bits, _write_bits
    if name in _ARRAYS:
        return _read_array, _write_array
    if name == _ENUMERATION:
        return _read_enumeration, _write_enumeration
    if name in (_SYMBOL, _REGEX):
        return lambda g, name, args: Obj("java.lang.String", need_string(g)), _write_symbol
    if is_empty(name):
        return lambda g, name, args: None, lambda g, obj, args: None
    return None


def is_empty(name: str) -> bool:
    """Return True for a class whose values have no body."""
    return name == _UNIT or (name.endswith("$") and name not in _TRAVERSABLES)


def _count(g: ValueReader) -> int:
    start = g.c.pos
    n = g.c.varint()
    if n > g.c.left:
        raise g.c.fail(f"{n} elements do not fit the {g.c.left} bytes left", pos=start)
    return n


def _items(obj: Obj) -> list[Any]:
    value = obj.value.items if isinstance(obj.value, Headed) else obj.value
    if not isinstance(value, list):
        raise EncodeError(f"{value!r} are not the elements of a {obj.cls}")
    return value


def _read_traversable(g: ValueReader, name: str, args: Args) -> Any:
    return [g.value() for _ in range(_count(g))]


def _write_traversable(g: ValueWriter, obj: Obj, args: Args) -> None:
    items = _items(obj)
    g.out.varint(len(items))
    for item in items:
        g.value(item)


def _write_tuple(g: ValueWriter, obj: Obj, args: Args) -> None:
    items = _items(obj)
    if len(items) != _TUPLES[obj.cls]:
        raise EncodeError(f"{len(items)} values of a {obj.cls}")
    for item in items:
        g.value(item)


_BOXES: Final = {"J": "java.lang.Long", "I": "java.lang.Integer", "D": "java.lang.Double"}


def _read_specialised(g: ValueReader, name: str, args: Args) -> Any:
    return [Obj(_BOXES[code], wire.read_fixed(g.c, g.gen, _FIXED[code])) for code in _SPECIALISED_TUPLES[name]]


def _write_specialised(g: ValueWriter, obj: Obj, args: Args) -> None:
    codes = _SPECIALISED_TUPLES[obj.cls]
    items = _items(obj)
    if [i.cls for i in items if i is not None] != [_BOXES[c] for c in codes]:
        raise EncodeError(f"{items!r} are not the values of a {obj.cls}")
    for code, item in zip(codes, items, strict=True):
        wire.write_fixed(g.out, g.gen, _FIXED[code], item.value)


def _read_sorted(g: ValueReader, name: str, args: Args) -> Any:
    n = _count(g)
    ordering = g.value()
    return Headed(ordering, [g.value() for _ in range(n)])


def _write_sorted(g: ValueWriter, obj: Obj, args: Args) -> None:
    items = _items(obj)
    g.out.varint(len(items))
    g.value(obj.value.header if isinstance(obj.value, Headed) and isinstance(obj.value.header, Obj) else None)
    for item in items:
        g.value(item)


def _read_bits(g: ValueReader, name: str, args: Args) -> Any:
    n = _count(g)
    if n:
        g.c.varint()  # the largest value, which also follows from the differences
    bits, bit = [], 0
    for _ in range(n):
        bit += g.c.varint()
        bits.append(Obj("java.lang.Integer", bit))
    return bits


def _write_bits(g: ValueWriter, obj: Obj, args: Args) -> None:
    bits = [item.value for item in _items(obj)]
    g.out.varint(len(bits))
    if bits:
        g.out.varint(max(bits))
    for before, bit in zip([0, *bits], bits, strict=False):
        g.out.varint(bit - before)


def _write_symbol(g: ValueWriter, obj: Obj, args: Args) -> None:
    put_string(g, obj.value.value if isinstance(obj.value, Obj) else obj.value)


def _read_array(g: ValueReader, name: str, args: Args) -> Any:
    """Read the element class and an array of such elements."""
    return Headed(str(g.final("java.lang.Class")), [g.value()])


def _write_array(g: ValueWriter, obj: Obj, args: Args) -> None:
    items = _items(obj)
    if len(items) != 1 or not isinstance(obj.value, Headed) or not isinstance(obj.value.header, str):
        raise EncodeError(f"{obj.value!r} is not the class of the elements and the array of a {obj.cls}")
    g.object(Obj("java.lang.Class", obj.value.header))
    g.value(items[0])


def _read_enumeration(g: ValueReader, name: str, args: Args) -> Any:
    outer = g.value()
    return [outer, Obj("java.lang.Integer", wire.read_fixed(g.c, g.gen, "i"))]


def _write_enumeration(g: ValueWriter, obj: Obj, args: Args) -> None:
    items = _items(obj)
    if len(items) != 2 or items[1] is None:
        raise EncodeError(f"{obj.value!r} is not the enumeration and the id of a {obj.cls}")
    g.value(items[0])
    wire.write_fixed(g.out, g.gen, "i", items[1].value)
