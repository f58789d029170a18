"""Scala's classes in Flink 1.x, where flink-scala is on the class path: chill's serializers, which Kryo 2.24 calls.

A traversable is varint n and n values (maps: tuples); a sorted one has its ordering behind the count. A tuple is its values one
after another, one specialised to primitives their fixed-width numbers. ``None`` and other objects (class names that end in
``$``) have no body. Ids 10 to 72, in the order of ``AllScalaRegistrar``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import EncodeError
from statetool.serializers.kryo import wire
from statetool.serializers.kryo.model import Headed, Obj
from statetool.serializers.kryo.scalars import need_string, put_string

if TYPE_CHECKING:
    from statetool.serializers.kryo.graph import Args, GraphReader, GraphWriter

FIRST_ID: Final = 10
_IMMUTABLE: Final = "scala.collection.immutable."
_MUTABLE: Final = "scala.collection.mutable."
_WRAPPERS: Final = "scala.collection.convert.Wrappers$"
#: Fields of specialised tuples by the letters of their class names.
_FIXED: Final = {"J": "q", "I": "i", "D": "d"}
_SPECIAL: Final = ("1$mcJ", "1$mcI", "1$mcD", *(f"2$mc{a}{b}" for a in "JID" for b in "JID"))
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
    *(f"scala.Tuple{n}$sp" for n in _SPECIAL),
    "scala.Symbol",
    "scala.reflect.ClassTag",
    "scala.runtime.BoxedUnit",
)
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
        *(_MUTABLE + n for n in ("ArrayBuffer", "ListBuffer", "Queue", "LinkedHashMap", "LinkedHashSet", "ListMap")),
    )
)
_SORTED: Final = frozenset(_IMMUTABLE + n for n in ("TreeMap", "TreeSet"))
_BIT_SETS: Final = frozenset(f"{_IMMUTABLE}BitSet$BitSet{n}" for n in ("1", "2", "N"))
_HOLDERS: Final = frozenset(("scala.Some", "scala.util.Left", "scala.util.Right"))
_TUPLES: Final = {f"scala.Tuple{n}": n for n in range(1, 23)}
_SPECIAL_TUPLES: Final = {f"scala.Tuple{n}$sp": n.partition("$mc")[2] for n in _SPECIAL}
_UNIT: Final = "scala.runtime.BoxedUnit"
_SYMBOL: Final = "scala.Symbol"
#: Classes that Kryo writes by their fields: name and fields with their Java types.
RECORDS: Final[dict[str, dict[str, str]]] = {
    "scala.util.Success": {"value": "Object"},
    "scala.util.Failure": {"exception": "java.lang.Throwable"},
    "scala.math.BigInt": {"bigInteger": "BigInteger"},
    **{
        _WRAPPERS + n: {"$outer": "Object", "underlying": "Object"}
        for n in ("SeqWrapper", "JListWrapper", "JMapWrapper")
    },
}

#: Classes whose body is one object.
HOLDERS: Final = _HOLDERS | {_SYMBOL}

ReadBody = Callable[["GraphReader", str, "Args"], Any]
WriteBody = Callable[["GraphWriter", Obj, "Args"], None]


def find(name: str) -> tuple[ReadBody, WriteBody] | None:
    """Return how values of a class are read and written."""
    if name in _TRAVERSABLES:
        return _read_traversable, _write_traversable
    if name in _TUPLES:
        n = _TUPLES[name]
        return lambda g, name, args: [g.value() for _ in range(n)], _write_tuple
    if name in _SPECIAL_TUPLES:
        return _read_special, _write_special
    if name in _HOLDERS:
        return lambda g, name, args: g.value(), lambda g, obj, args: g.value(obj.value)
    if name in _SORTED:
        return _read_sorted, _write_sorted
    if name in _BIT_SETS:
        return _read_bits, _write_bits
    if name == _SYMBOL:
        return lambda g, name, args: Obj("java.lang.String", need_string(g)), _write_symbol
    if is_empty(name):
        return lambda g, name, args: None, lambda g, obj, args: None
    return None


def is_empty(name: str) -> bool:
    """Tell a class whose values have no body."""
    return name == _UNIT or (name.endswith("$") and name not in _TRAVERSABLES)


def _count(g: GraphReader) -> int:
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


def _read_traversable(g: GraphReader, name: str, args: Args) -> Any:
    return [g.value() for _ in range(_count(g))]


def _write_traversable(g: GraphWriter, obj: Obj, args: Args) -> None:
    items = _items(obj)
    g.out.varint(len(items))
    for item in items:
        g.value(item)


def _write_tuple(g: GraphWriter, obj: Obj, args: Args) -> None:
    items = _items(obj)
    if len(items) != _TUPLES[obj.cls]:
        raise EncodeError(f"{len(items)} values of a {obj.cls}")
    for item in items:
        g.value(item)


_BOXES: Final = {"J": "java.lang.Long", "I": "java.lang.Integer", "D": "java.lang.Double"}


def _read_special(g: GraphReader, name: str, args: Args) -> Any:
    return [Obj(_BOXES[code], wire.read_fixed(g.c, g.gen, _FIXED[code])) for code in _SPECIAL_TUPLES[name]]


def _write_special(g: GraphWriter, obj: Obj, args: Args) -> None:
    codes = _SPECIAL_TUPLES[obj.cls]
    items = _items(obj)
    if [i.cls for i in items if i is not None] != [_BOXES[c] for c in codes]:
        raise EncodeError(f"{items!r} are not the values of a {obj.cls}")
    for code, item in zip(codes, items, strict=True):
        wire.write_fixed(g.out, g.gen, _FIXED[code], item.value)


def _read_sorted(g: GraphReader, name: str, args: Args) -> Any:
    n = _count(g)
    ordering = g.value()
    return Headed(ordering, [g.value() for _ in range(n)])


def _write_sorted(g: GraphWriter, obj: Obj, args: Args) -> None:
    items = _items(obj)
    g.out.varint(len(items))
    g.value(obj.value.header if isinstance(obj.value, Headed) and isinstance(obj.value.header, Obj) else None)
    for item in items:
        g.value(item)


def _read_bits(g: GraphReader, name: str, args: Args) -> Any:
    n = _count(g)
    if n:
        g.c.varint()  # the largest, which the differences tell too
    found, at = [], 0
    for _ in range(n):
        at += g.c.varint()
        found.append(Obj("java.lang.Integer", at))
    return found


def _write_bits(g: GraphWriter, obj: Obj, args: Args) -> None:
    bits = [item.value for item in _items(obj)]
    g.out.varint(len(bits))
    if bits:
        g.out.varint(max(bits))
    for before, bit in zip([0, *bits], bits, strict=False):
        g.out.varint(bit - before)


def _write_symbol(g: GraphWriter, obj: Obj, args: Args) -> None:
    put_string(g, obj.value.value if isinstance(obj.value, Obj) else obj.value)
