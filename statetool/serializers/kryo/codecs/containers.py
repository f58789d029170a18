"""Bodies of collections, maps, arrays and holders.

==================  =======================================  ==================================================
class               Kryo 2.24                                Kryo 5
==================  =======================================  ==================================================
collection          varint n, elements                       flag and varint n + 1, elements (see below)
``TreeSet``         comparator, varint n, elements           flag and n + 1, comparator, elements
map                 varint n, pairs                          varint n + 1, [comparator,] pairs
``TreeMap``         comparator, varint n, pairs              varint n + 1, comparator, pairs
array               varint n + 1, elements                   same
``Arrays.asList``   varint n, component class, elements      as a collection
==================  =======================================  ==================================================

Elements are values with their class, or objects without it if the declared element type is final. In Kryo 5 the flag then means that
elements may be null; otherwise it means that all have the same class, which is written once, with a bool for nulls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from statetool.errors import EncodeError, FormatError
from statetool.serializers.kryo import model, wire
from statetool.serializers.kryo.codecs import scala
from statetool.serializers.kryo.model import Headed, Obj
from statetool.serializers.kryo.values import Args, ValueReader, ValueWriter
from statetool.types.java import OBJECT, PRIMITIVES, JavaType, from_binary_name

_MOST_NULLS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Container:
    """Reader and writer of a class with elements."""

    read: Callable[[ValueReader, str, Args], Any]
    write: Callable[[ValueWriter, Obj, Args], None]


def _checked_count(g: ValueReader, n: int, start: int) -> int:
    if n < 0 or n > g.c.left:
        raise g.c.fail(f"{n} elements do not fit the {g.c.left} bytes left", pos=start)
    return n


def _items(value: Any) -> list[Any]:
    items = value.items if isinstance(value, Headed) else value
    if not isinstance(items, list):
        raise EncodeError(f"{value!r} has no elements")
    return items


def _header(value: Any) -> Obj | None:
    header = value.header if isinstance(value, Headed) else None
    return header if isinstance(header, Obj) else None


class NullContainerError(FormatError):
    """A collection or map of length 0 in Kryo 5, which reads it as null. Kryo 2 writes empty ones so."""


# ---- collections ------------------------------------------------------------------------------------------------


def _read_collection(g: ValueReader, name: str, args: Args) -> Any:
    return _elements(g, args, headed=name in model.SORTED, nullable=name not in model.IMMUTABLE)


def _elements(g: ValueReader, args: Args, *, headed: bool, nullable: bool) -> Any:
    element = args[0] if args else None
    if g.gen == 2:
        header = g.value() if headed else None
        start = g.c.pos
        n = _checked_count(g, g.c.varint(), start)
        if element is not None and g.classes.is_final(element):
            items = [g.object(element.binary_name, nullable=True) for _ in range(n)]
        else:
            items = [g.value() for _ in range(n)]
        return Headed(header, items) if headed else items
    items, header = _elements_5(g, element, headed=headed, nullable=nullable)
    return Headed(header, items) if headed else items


def _elements_5(
    g: ValueReader, element: JavaType | None, *, headed: bool, nullable: bool
) -> tuple[list[Obj | None], Obj | None]:
    start = g.c.pos
    final = element is not None and g.classes.is_final(element)
    flag, n = (False, g.c.varint()) if final and not nullable else wire.read_flagged(g.c)
    if n == 0:
        raise NullContainerError("a null collection after its class").at(offset=g.c.base + start)
    n -= 1
    header = g.value() if headed else None
    args = element.args if element is not None else ()
    if n == 0:
        return [], header
    if final:
        assert element is not None
        _checked_count(g, n, start)
        return [g.object(element.binary_name, args, nullable=flag) for _ in range(n)], header
    if not flag:
        _checked_count(g, n, start)
        return [g.value(args) for _ in range(n)], header
    name = g.class_name()
    if name is None:
        # All elements are null and take no bytes.
        if n > _MOST_NULLS:
            raise g.c.fail(f"a collection of {n} nulls", pos=start)
        return [None] * n, header
    nulls = g.c.bool() if nullable else False
    _checked_count(g, n, start)
    return [g.object(name, args, nullable=nulls) for _ in range(n)], header


def _write_collection(g: ValueWriter, obj: Obj, args: Args) -> None:
    headed = obj.cls in model.SORTED
    items, header = _items(obj.value), _header(obj.value)
    if g.gen == 2:
        if headed:
            g.value(header)
        g.out.varint(len(items))
        _write_elements(g, items, args, final_only=True)
        return
    _write_elements_5(g, items, args, (header,) if headed else (), nullable=obj.cls not in model.IMMUTABLE)


def _write_elements(g: ValueWriter, items: list[Any], args: Args, *, final_only: bool) -> None:
    final = bool(args) and g.classes.is_final(args[0])
    for item in items:
        if final and final_only:
            g.object(item, nullable=True)
        else:
            g.value(item)


def _write_elements_5(
    g: ValueWriter, items: list[Any], args: Args, header: tuple[Obj | None, ...], *, nullable: bool
) -> None:
    element = args[0] if args else None
    if not items:
        g.out.append(1)
        for h in header:
            g.value(h)
        return
    inner = element.args if element is not None else ()
    nulls = any(i is None for i in items)
    if nulls and not nullable:
        raise EncodeError("a null in an immutable collection")
    if element is not None and g.classes.is_final(element):
        if nullable:
            wire.write_flagged(g.out, nulls, len(items) + 1)
        else:
            g.out.varint(len(items) + 1)
        for h in header:
            g.value(h)
        for item in items:
            g.object(item, inner, nullable=nulls)
        return
    classes = {i.cls for i in items if i is not None}
    wire.write_flagged(g.out, len(classes) < 2, len(items) + 1)
    for h in header:
        g.value(h)
    if len(classes) > 1:
        for item in items:
            g.value(item, inner)
        return
    g.class_name(next(iter(classes), None))
    if not classes:
        return
    if nullable:
        g.out.bool(nulls)
    for item in items:
        g.object(item, inner, nullable=nulls)


# ---- maps -------------------------------------------------------------------------------------------------------


def _map_has_comparator(name: str, gen: int) -> bool:
    return name == model.SORTED_MAP or (name == model.SKIP_LIST_MAP and gen == 5)


def _read_map(g: ValueReader, name: str, args: Args) -> Any:
    headed = _map_has_comparator(name, g.gen)
    start = g.c.pos
    header = g.value() if headed and g.gen == 2 else None
    n = g.c.varint()
    if g.gen == 5:
        if n == 0:
            raise NullContainerError("a null map after its class").at(offset=g.c.base + start)
        n -= 1
        header = g.value() if headed else None
    _checked_count(g, n, start)
    kinds: tuple[JavaType | None, ...] = args if len(args) == 2 else (None, None)
    items = [tuple(_read_part(g, kind) for kind in kinds) for _ in range(n)]
    return Headed(header, items) if headed else items


def _read_part(g: ValueReader, kind: JavaType | None) -> Obj | None:
    if kind is None:
        return g.value()
    args = kind.args if g.gen == 5 else ()
    if g.classes.is_final(kind):
        return g.object(kind.binary_name, args, nullable=True)
    return g.value(args)


def _write_map(g: ValueWriter, obj: Obj, args: Args) -> None:
    headed = _map_has_comparator(obj.cls, g.gen)
    items, header = _items(obj.value), _header(obj.value)
    if g.gen == 5:
        g.out.varint(len(items) + 1)
        if headed:
            g.value(header)
    else:
        if headed:
            g.value(header)
        g.out.varint(len(items))
    kinds: tuple[JavaType | None, ...] = args if len(args) == 2 else (None, None)
    for pair in items:
        for part, kind in zip(pair, kinds, strict=True):
            inner = kind.args if kind is not None and g.gen == 5 else ()
            if kind is not None and g.classes.is_final(kind):
                g.object(part, inner, nullable=True)
            else:
                g.value(part, inner)


# ---- arrays -----------------------------------------------------------------------------------------------------


def _read_array(g: ValueReader, name: str, args: Args) -> Any:
    element = from_binary_name(name).args[0]
    start = g.c.pos
    n = g.c.varint()
    if n == 0:
        raise g.c.fail("a null array after its class", pos=start)
    _checked_count(g, n - 1, start)
    if element.name == "byte":
        return g.c.take(n - 1, "byte array")
    if _bare_elements(g, element):
        if element.name in PRIMITIVES:
            return [g.field(element) for _ in range(n - 1)]
        return [g.object(element.binary_name, nullable=True) for _ in range(n - 1)]
    return [g.value() for _ in range(n - 1)]


def _bare_elements(g: ValueReader | ValueWriter, element: JavaType) -> bool:
    """Return True if elements have no class: every array class is final, whatever its elements are."""
    return element.is_array or g.classes.is_final(element)


def _write_array(g: ValueWriter, obj: Obj, args: Args) -> None:
    element = from_binary_name(obj.cls).args[0]
    g.out.varint(len(obj.value) + 1)
    if element.name == "byte":
        g.out += obj.value
        return
    for item in obj.value:
        if element.name in PRIMITIVES:
            g.field(element, item)
        elif _bare_elements(g, element):
            g.object(item, nullable=True)
        else:
            g.value(item)


# ---- others -----------------------------------------------------------------------------------------------------


def _read_as_list(g: ValueReader, name: str, args: Args) -> Any:
    if g.gen == 5:
        return _elements(g, args, headed=False, nullable=True)
    start = g.c.pos
    n = _checked_count(g, g.c.varint(), start)
    component = g.class_name() or "java.lang.Object"
    return Headed(component, [g.value() for _ in range(n)])


def _write_as_list(g: ValueWriter, obj: Obj, args: Args) -> None:
    items = _items(obj.value)
    if g.gen == 5:
        _write_elements_5(g, items, args, (), nullable=True)
        return
    g.out.varint(len(items))
    component = obj.value.header if isinstance(obj.value, Headed) else None
    g.class_name(component if isinstance(component, str) else "java.lang.Object")
    for item in items:
        g.value(item)


def _read_enum_set(g: ValueReader, name: str, args: Args) -> Any:
    start = g.c.pos
    enum = g.class_name()
    declared = g.classes.declared(enum or "")
    if enum is None or declared is None or declared.kind != "enum":
        raise g.unknown(enum or "null").at(offset=g.c.base + start)
    n = _checked_count(g, g.c.varint(), start)
    return Headed(enum, [Obj(enum, _constant(g, declared.constants)) for _ in range(n)])


def _constant(g: ValueReader, constants: tuple[str, ...]) -> str:
    ordinal = g.c.varint() - 1
    if not 0 <= ordinal < len(constants):
        raise g.c.fail(f"constant {ordinal} of an enum declared with {len(constants)}", pos=g.c.pos - 1)
    return constants[ordinal]


def _write_enum_set(g: ValueWriter, obj: Obj, args: Args) -> None:
    enum = obj.value.header if isinstance(obj.value, Headed) else None
    declared = g.classes.declared(enum) if isinstance(enum, str) else None
    if declared is None:
        raise EncodeError(f"{obj.value!r} does not say which enum it is a set of")
    g.class_name(declared.name)
    g.out.varint(len(obj.value.items))
    for item in obj.value.items:
        g.out.varint(declared.constants.index(item.value) + 1)


def _fixed_size(n: int) -> Container:
    """``Collections.emptyList`` and ``singletonList``: only their elements."""

    def write(g: ValueWriter, obj: Obj, args: Args) -> None:
        if len(obj.value) != n:
            raise EncodeError(f"{len(obj.value)} elements of a {obj.cls}")
        for item in obj.value:
            g.value(item)

    return Container(lambda g, name, args: [g.value() for _ in range(n)], write)


def _write_pair(g: ValueWriter, obj: Obj, args: Args) -> None:
    ((key, value),) = obj.value
    g.value(key)
    g.value(value)


def _held_type(g: ValueReader | ValueWriter, name: str, args: Args) -> JavaType:
    """Return the type of a holder's field; only Kryo 5's serializer of ``Optional`` does not know type arguments."""
    return args[0] if args and not (g.gen == 5 and name == "java.util.Optional") else OBJECT


def _read_held(g: ValueReader, name: str, args: Args) -> Any:
    kind = _held_type(g, name, args)
    return g.field(JavaType(kind.name, () if not kind.is_array else kind.args))


def _write_held(g: ValueWriter, obj: Obj, args: Args) -> None:
    kind = _held_type(g, obj.cls, args)
    g.field(JavaType(kind.name, () if not kind.is_array else kind.args), obj.value)


COLLECTION: Final = Container(_read_collection, _write_collection)
MAP: Final = Container(_read_map, _write_map)
_ARRAY: Final = Container(_read_array, _write_array)
_TABLE: Final[dict[str, Container]] = {
    **dict.fromkeys(model.COLLECTIONS | model.IMMUTABLE | model.SORTED, COLLECTION),
    **dict.fromkeys(model.MAPS | {model.SORTED_MAP, model.SKIP_LIST_MAP}, MAP),
    **dict.fromkeys(model.EMPTY | {model.EMPTY_MAP}, _fixed_size(0)),
    **dict.fromkeys(model.SINGLETONS, _fixed_size(1)),
    model.SINGLETON_MAP: Container(lambda g, name, args: [(g.value(), g.value())], _write_pair),
    model.AS_LIST: Container(_read_as_list, _write_as_list),
    **dict.fromkeys(model.ENUM_SETS, Container(_read_enum_set, _write_enum_set)),
    **dict.fromkeys(model.HOLDERS, Container(_read_held, _write_held)),
}


def find(name: str, gen: wire.Generation) -> Container | None:
    """Return the reader and writer of a class with elements."""
    if name.startswith("["):
        return _ARRAY
    container = _TABLE.get(name)
    if container is None and gen == 2 and name.startswith("scala."):
        scala_body = scala.find(name)
        return None if scala_body is None else Container(*scala_body)
    return container
