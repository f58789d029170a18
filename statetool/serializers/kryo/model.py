"""Objects of a Kryo graph as data, and the body of each JDK class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from statetool.types.java import BOXES, PRIMITIVES


@dataclass(slots=True)
class Obj:
    """A Java object: ``cls`` is ``Class.getName()`` (or a primitive), ``value`` depends on its kind.

    Scalars have their plain value (:mod:`statetool.types.logical`); collections and arrays a list of ``Obj | None``; maps a list
    of pairs; sorted ones and ``Arrays.asList`` a :class:`Headed`; records a dict by field name; enums their constant.
    """

    cls: str
    value: Any


@dataclass(slots=True)
class Headed:
    """Elements after a header: the comparator (null: natural order), or the component class of ``Arrays.asList``."""

    header: Obj | str | None
    items: list[Any]


def _classes(*names: str, package: str = "java.util.") -> frozenset[str]:
    return frozenset(package + n for n in names)


_CONCURRENT: Final = "java.util.concurrent."
#: Classes written by ``CollectionSerializer``.
COLLECTIONS: Final = (
    _classes("ArrayList", "LinkedList", "Vector", "Stack", "HashSet", "LinkedHashSet", "ArrayDeque")
    | _classes("CopyOnWriteArrayList", "CopyOnWriteArraySet", "ConcurrentLinkedQueue", package=_CONCURRENT)
    | _classes("ConcurrentLinkedDeque", "LinkedBlockingQueue", "LinkedBlockingDeque", package=_CONCURRENT)
    | _classes("ConcurrentSkipListSet", "PriorityBlockingQueue", package=_CONCURRENT)
    | _classes(
        "UnmodifiableCollection", "UnmodifiableList", "UnmodifiableRandomAccessList", package="java.util.Collections$"
    )
    | _classes("UnmodifiableSet", "UnmodifiableSortedSet", "CopiesList", "SetFromMap", package="java.util.Collections$")
    | _classes("SynchronizedCollection", "SynchronizedList", package="java.util.Collections$")
    | _classes(
        "SynchronizedRandomAccessList", "SynchronizedSet", "SynchronizedSortedSet", package="java.util.Collections$"
    )
    | _classes(
        "CheckedCollection", "CheckedList", "CheckedRandomAccessList", "CheckedSet", package="java.util.Collections$"
    )
    | _classes("ArrayList$SubList", "AbstractList$SubList", "SubList", "RandomAccessSubList", "HashMap$KeySet")
    | _classes(
        "HashMap$Values", "LinkedHashMap$LinkedKeySet", "LinkedHashMap$LinkedValues", "TreeMap$KeySet", "TreeMap$Values"
    )
    | _classes("ConcurrentHashMap$KeySetView", "ConcurrentHashMap$ValuesView", package=_CONCURRENT)
    | _classes("SetWrapper", "MutableSetWrapper", "MutableBufferWrapper", package="scala.collection.convert.Wrappers$")
    | frozenset(("org.apache.avro.generic.GenericData$Array",))
)
#: ``List.of``, ``Set.of``: the same layout, but Kryo 5 stores no null flag.
IMMUTABLE: Final = _classes("ListN", "List12", "SubList", "SetN", "Set12", package="java.util.ImmutableCollections$")
#: Collections that write their comparator.
SORTED: Final = _classes("TreeSet", "PriorityQueue")
#: Classes written by ``MapSerializer``.
MAPS: Final = (
    _classes("HashMap", "LinkedHashMap", "Hashtable", "Properties", "WeakHashMap", "IdentityHashMap", "EnumMap")
    | _classes("ConcurrentHashMap", package=_CONCURRENT)
    | _classes("UnmodifiableMap", "SynchronizedMap", "CheckedMap", package="java.util.Collections$")
    | _classes(
        "UnmodifiableSortedMap", "UnmodifiableNavigableMap", "SynchronizedSortedMap", package="java.util.Collections$"
    )
    | _classes("MapN", "Map1", package="java.util.ImmutableCollections$")
    | _classes("MutableMapWrapper", "ConcurrentMapWrapper", package="scala.collection.convert.Wrappers$")
)
#: Maps that write their comparator; the second one only in Kryo 5.
SORTED_MAP: Final = "java.util.TreeMap"
SKIP_LIST_MAP: Final = "java.util.concurrent.ConcurrentSkipListMap"
EMPTY: Final = _classes("EmptyList", "EmptySet", package="java.util.Collections$")
EMPTY_MAP: Final = "java.util.Collections$EmptyMap"
SINGLETONS: Final = _classes("SingletonList", "SingletonSet", package="java.util.Collections$")
SINGLETON_MAP: Final = "java.util.Collections$SingletonMap"
AS_LIST: Final = "java.util.Arrays$ArrayList"
#: Kryo writes the class ``EnumSet`` if that is registered, as the type of a state or field is.
ENUM_SETS: Final = _classes("RegularEnumSet", "JumboEnumSet", "EnumSet")
#: One value with its class, or null.
HOLDERS: Final = frozenset(("java.util.Optional", "java.util.concurrent.atomic.AtomicReference"))

#: All collections (lists in JSON), and all maps.
LIST_LIKE: Final = COLLECTIONS | IMMUTABLE | SORTED | EMPTY | SINGLETONS | ENUM_SETS | {AS_LIST}
MAP_LIKE: Final = MAPS | {SORTED_MAP, SKIP_LIST_MAP, EMPTY_MAP, SINGLETON_MAP}
#: The class to write if only an interface is declared.
IMPLEMENTATIONS: Final = {
    **dict.fromkeys(
        ("java.util.List", "java.util.Collection", "java.lang.Iterable", "java.util.AbstractList"),
        "java.util.ArrayList",
    ),
    **dict.fromkeys(("java.util.Set", "java.util.AbstractSet"), "java.util.HashSet"),
    **dict.fromkeys(("java.util.SortedSet", "java.util.NavigableSet"), "java.util.TreeSet"),
    **dict.fromkeys(("java.util.Queue", "java.util.Deque"), "java.util.ArrayDeque"),
    **dict.fromkeys(("java.util.Map", "java.util.AbstractMap"), "java.util.HashMap"),
    **dict.fromkeys(("java.util.SortedMap", "java.util.NavigableMap"), "java.util.TreeMap"),
}
#: Types that do not determine the class of their values.
OPEN_TYPES: Final = frozenset(
    f"java.{n}"
    for n in ("lang.Object", "io.Serializable", "lang.Comparable", "lang.Number", "lang.CharSequence", "lang.Throwable")
) | frozenset(("java.util.Map$Entry", "java.lang.Cloneable", "java.util.Comparator"))


#: Collections and maps of the JDK that other ones extend.
_EXTENDED: Final = {
    "java.util.LinkedHashSet": "java.util.HashSet", "java.util.Stack": "java.util.Vector", "java.util.LinkedHashMap": "java.util.HashMap",
    "java.util.Properties": "java.util.Hashtable", "java.util.RegularEnumSet": "java.util.EnumSet", "java.util.JumboEnumSet": "java.util.EnumSet",
}  # fmt: skip
_LISTS: Final = ("java.util.List", "java.util.AbstractList")
#: Interfaces of collections, and parts of the names of the classes that implement them.
_FAMILIES: Final = {
    **dict.fromkeys(_LISTS, ("List", "Vector", "Stack", "GenericData$Array")),
    **dict.fromkeys(("java.util.Set", "java.util.AbstractSet"), ("Set",)),
    **dict.fromkeys(("java.util.SortedSet", "java.util.NavigableSet"), ("TreeSet", "SkipListSet", "SortedSet")),
    "java.util.Queue": ("Queue", "Deque", "LinkedList"),
    "java.util.Deque": ("Deque", "LinkedList"),
    **dict.fromkeys(("java.util.SortedMap", "java.util.NavigableMap"), ("TreeMap", "SkipListMap", "SortedMap", "NavigableMap")),
}  # fmt: skip


def is_other_collection(declared: str, stored: str) -> bool:
    """Return True if an object of a collection or map of the JDK is none of another type of these."""
    if stored not in LIST_LIKE | MAP_LIKE or declared in (stored, _EXTENDED.get(stored)):
        return False
    if declared in LIST_LIKE | MAP_LIKE or (
        declared in IMPLEMENTATIONS and (stored in MAP_LIKE) != (IMPLEMENTATIONS[declared] in MAP_LIKE)
    ):
        return True
    parts, name = _FAMILIES.get(declared), stored.rpartition(".")[2]
    if declared in _LISTS and name.endswith("Set"):
        return True  # ConcurrentSkipListSet
    return parts is not None and not any(part in name for part in parts)


def box_class(name: str) -> str:
    """Return the box of a primitive, or the name itself."""
    return PRIMITIVES.get(name, name)


def is_box(name: str) -> bool:
    """Return True for a box: boxes are not counted among the references of a graph."""
    return name in BOXES
