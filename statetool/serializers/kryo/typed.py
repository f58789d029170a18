"""Objects as plain values of a declared type: structs, lists and maps if the type determines their parts, otherwise JSON text."""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import DecodeError, EncodeError
from statetool.serializers.kryo import model, text
from statetool.serializers.kryo.codecs import avro, jackson, messages
from statetool.serializers.kryo.graph import resolve_type
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.kryo.model import Headed, Obj, box_class
from statetool.serializers.typeutils.composite import inside, sequence
from statetool.types import Field, ListType, LogicalType, MapType, Scalar, StructType
from statetool.types.declared import ClassDeclaration
from statetool.types.java import PRIMITIVES, JavaType

LISTS: Final = model.LIST_LIKE | {n for n, c in model.IMPLEMENTATIONS.items() if c not in model.MAP_LIKE}
MAPS: Final = model.MAP_LIKE | {n for n, c in model.IMPLEMENTATIONS.items() if c in model.MAP_LIKE}
_CLASS_FIELD: Final = "_class"


class View:
    """Conversion of one declared type's values, created once per type."""

    def __init__(self, logical: LogicalType) -> None:
        self.logical = logical

    def plain(self, obj: Obj) -> Any:
        """Return the plain value of an object."""
        raise NotImplementedError

    def object(self, value: Any) -> Obj:
        """Return the object of a plain value."""
        raise NotImplementedError


def view_of(kind: JavaType, kryo: KryoInstance, enclosing: tuple[str, ...] = ()) -> View:
    """Return the conversion of a type's values; a class nested in itself becomes JSON text."""
    if kind.as_json or kind.name == avro.ANY_SCHEMA or kind.name in model.ENUM_SETS:
        return _TextView(kryo)
    if kind.name in PRIMITIVES or kryo.registry.body(box_class(kind.name)) is not None:
        return _ScalarView(kind.name, kryo)
    if kind.is_array:
        if kind.args[0].name == "byte":
            return _BytesView(kind.binary_name)
        return _ListView(kind.binary_name, view_of(kind.args[0], kryo, enclosing), exact=True)
    if kind.name in LISTS and len(kind.args) == 1:
        return _ListView(kind.name, view_of(kind.args[0], kryo, enclosing))
    if kind.name in MAPS and len(kind.args) == 2:
        return _MapView(kind.name, *(view_of(a, kryo, enclosing) for a in kind.args))
    if kind.name == "java.util.Optional" and len(kind.args) == 1:
        return _OptionalView(view_of(kind.args[0], kryo, enclosing))
    declared = kryo.classes.declared(kind.name)
    if kryo.is_message(kind.name):
        return _BytesView(kind.name) if declared is None else _MessageView(declared, kryo)
    if kryo.by_java(kind.name):
        return _BytesView(kind.name)
    if kryo.registry.container(kind.name) is not None:
        return _TextView(kryo)
    if kryo.is_tree(kind.name):
        return _TreeView(kind.name, kryo)
    subclasses = kryo.context.subclasses(kind.name)
    if kind.name in enclosing or (declared is None and not subclasses):
        return _TextView(kryo)
    if not subclasses and declared is not None:
        return _declared_view(declared, kind, kryo, enclosing)
    classes = ([declared] if declared is not None else []) + list(subclasses)
    if any(c.kind != "record" or kryo.by_java(c.name) for c in classes):
        return _TextView(kryo)
    views = {c.name: RecordView(c, JavaType(c.name), kryo, (*enclosing, kind.name)) for c in classes}
    return HierarchyView(kind.name, views)


def _declared_view(declared: ClassDeclaration, kind: JavaType, kryo: KryoInstance, enclosing: tuple[str, ...]) -> View:
    enclosing = (*enclosing, kind.name)
    match declared.kind:
        case "record" | "written":
            return RecordView(declared, kind, kryo, enclosing)
        case "enum":
            return EnumView(declared)
        case "collection" if len(declared.element_types) == 1:
            return _ListView(kind.name, view_of(declared.element_types[0], kryo, enclosing), exact=True)
        case "map" if len(declared.element_types) == 2:
            return _MapView(kind.name, *(view_of(a, kryo, enclosing) for a in declared.element_types), exact=True)
        case "java":
            return _BytesView(kind.name)
    return _TextView(kryo)


class OtherClassError(DecodeError):
    """An object of another class than its declaration says.

    ``is_element``: it is in a collection or map, whose elements Java does not check.
    """

    found: Obj | None = None
    is_element = False


def _other_class_error(what: str, obj: Obj) -> OtherClassError:
    error = OtherClassError(
        f"a {obj.cls} where {what} is declared",
        hint="correct the declaration: a subclass is declared with extends=[...], and json: before a type shows the stored class",
    )
    error.found = obj
    return error


def _plain_element(view: View, obj: Obj | None) -> Any:
    try:
        return plain_or_null(view, obj)
    except OtherClassError as error:
        error.is_element = error.is_element or error.found is obj
        raise


def plain_or_null(view: View, obj: Obj | None) -> Any:
    """Return the plain value, null as ``None``."""
    return None if obj is None else view.plain(obj)


def object_or_null(view: View, value: Any) -> Obj | None:
    """Return the object, ``None`` as null."""
    return None if value is None else view.object(value)


class _ScalarView(View):
    def __init__(self, name: str, kryo: KryoInstance) -> None:
        body = kryo.registry.body(box_class(name))
        assert body is not None
        super().__init__(body.logical)
        self._name = name

    def plain(self, obj: Obj) -> Any:
        if box_class(obj.cls) != box_class(self._name):
            raise _other_class_error(self._name, obj)
        return obj.value

    def object(self, value: Any) -> Obj:
        return Obj(self._name, value)


class _TextView(View):
    def __init__(self, kryo: KryoInstance) -> None:
        super().__init__(Scalar("string"))
        self._kryo = kryo

    def plain(self, obj: Obj) -> Any:
        if self._kryo.on_object is not None:
            self._kryo.on_object(obj)
        return text.to_text(obj, self._kryo)

    def object(self, value: Any) -> Obj:
        obj = text.from_text(value, self._kryo)
        if obj is None:
            raise EncodeError("JSON null for an object")
        return obj


class _MessageView(View):
    """A Protobuf or Thrift message: its fields as JSON text."""

    def __init__(self, declared: ClassDeclaration, kryo: KryoInstance) -> None:
        super().__init__(Scalar("string"))
        self._declared = declared
        self._thrift = kryo.thrift

    def plain(self, obj: Obj) -> Any:
        if obj.cls != self._declared.name:
            raise _other_class_error(self._declared.name, obj)
        return text.as_json(messages.to_tree(self._declared, obj.value, self._thrift))

    def object(self, value: Any) -> Obj:
        return Obj(self._declared.name, messages.from_tree(self._declared, text.of_json(value)))


class _TreeView(View):
    """JSON trees of Jackson: JSON text, and the classes of nodes that it does not determine."""

    def __init__(self, name: str, kryo: KryoInstance) -> None:
        super().__init__(StructType.of(json=Scalar("string"), node_types=Scalar("string")))
        self._name = name
        self._kryo = kryo

    def plain(self, obj: Obj) -> Any:
        if obj.cls.rpartition(".")[2] not in jackson.TREES[self._name]:
            raise _other_class_error(self._name, obj)
        tree, node_types = jackson.to_tree(obj, text.pojo_tree(self._kryo))
        return text.as_json(tree), text.as_json(node_types) if node_types else None

    def object(self, value: Any) -> Obj:
        tree, node_types = sequence(value, self._name, 2)
        types = None if node_types is None else text.of_json(node_types)
        return jackson.from_tree(self._name, text.of_json(tree), types, text.pojo_object(self._kryo))


class _BytesView(View):
    def __init__(self, name: str) -> None:
        super().__init__(Scalar("binary"))
        self._name = name

    def plain(self, obj: Obj) -> Any:
        if obj.cls != self._name:
            raise _other_class_error(self._name, obj)
        return obj.value

    def object(self, value: Any) -> Obj:
        if not isinstance(value, bytes):
            raise EncodeError(f"{value!r} is not bytes")
        return Obj(self._name, value)


def _elements_of(obj: Obj) -> list[Any]:
    value = obj.value
    if isinstance(value, Headed):
        if isinstance(value.header, Obj):
            raise DecodeError(
                f"a {obj.cls} with a comparator, which a list or map cannot represent",
                hint="put json: before the field's type in its declaration to see it as JSON text",
            )
        return value.items
    if isinstance(value, Obj) and obj.cls in model.LIST_LIKE | model.MAP_LIKE:
        return _elements_of(value)
    if not isinstance(value, list):
        raise DecodeError(f"a {obj.cls} where elements are declared")
    return value


class _ListView(View):
    def __init__(self, name: str, element: View, *, exact: bool = False) -> None:
        super().__init__(ListType(element.logical))
        self._name = name
        self._element = element
        self._exact = exact

    def plain(self, obj: Obj) -> Any:
        if obj.cls != self._name if self._exact else obj.cls not in model.LIST_LIKE:
            raise _other_class_error(self._name, obj)
        with inside("element"):
            return [_plain_element(self._element, item) for item in _elements_of(obj)]

    def object(self, value: Any) -> Obj:
        name = model.IMPLEMENTATIONS.get(self._name, self._name)
        with inside("element"):
            return Obj(name, [object_or_null(self._element, v) for v in sequence(value, self._name)])


class _MapView(View):
    def __init__(self, name: str, key: View, value: View, *, exact: bool = False) -> None:
        super().__init__(MapType(key.logical, value.logical))
        self._name = name
        self._parts = (key, value)
        self._exact = exact

    def plain(self, obj: Obj) -> Any:
        if obj.cls != self._name if self._exact else obj.cls not in model.MAP_LIKE:
            raise _other_class_error(self._name, obj)
        key, value = self._parts
        return [(_plain_element(key, k), _plain_element(value, v)) for k, v in _elements_of(obj)]

    def object(self, value: Any) -> Obj:
        name = model.IMPLEMENTATIONS.get(self._name, self._name)
        key, item = self._parts
        pairs = [sequence(p, "map entry", 2) for p in sequence(value, self._name)]
        return Obj(name, [(object_or_null(key, k), object_or_null(item, v)) for k, v in pairs])


class _OptionalView(View):
    def __init__(self, element: View) -> None:
        super().__init__(StructType((Field("value", element.logical),)))
        self._element = element

    def plain(self, obj: Obj) -> Any:
        if obj.cls != "java.util.Optional":
            raise _other_class_error("java.util.Optional", obj)
        return (plain_or_null(self._element, obj.value),)

    def object(self, value: Any) -> Obj:
        (inner,) = sequence(value, "Optional", 1)
        return Obj("java.util.Optional", object_or_null(self._element, inner))


class EnumView(View):
    """Names of constants; the n-th constant with a body has the class ``Color$n``."""

    def __init__(self, declared: ClassDeclaration) -> None:
        super().__init__(Scalar("string"))
        self.constants = declared.constants
        self._name = declared.name
        with_body = [c for c in declared.constants if c in declared.bodies]
        self._classes = {c: f"{declared.name}${i + 1}" for i, c in enumerate(with_body)}

    def plain(self, obj: Obj) -> Any:
        if obj.cls != self._classes.get(obj.value, self._name):
            raise _other_class_error(self._name, obj)
        return obj.value

    def object(self, value: Any) -> Obj:
        return Obj(self._classes.get(value, self._name), value)


class RecordView(View):
    """A declared class: a struct of its fields in the order of the declaration."""

    def __init__(
        self, declared: ClassDeclaration, kind: JavaType, kryo: KryoInstance, enclosing: tuple[str, ...]
    ) -> None:
        arguments = dict(zip(declared.parameters, kind.args, strict=False))
        self.name = declared.name
        self.kinds = {n: resolve_type(t, arguments) for n, t in declared.fields}
        self.views = {n: view_of(kind, kryo, enclosing) for n, kind in self.kinds.items()}
        super().__init__(StructType(tuple(Field(n, v.logical) for n, v in self.views.items())))

    def plain(self, obj: Obj) -> Any:
        if obj.cls != self.name:
            raise _other_class_error(self.name, obj)
        values = []
        for name, view in self.views.items():
            with inside(name):
                values.append(plain_or_null(view, obj.value[name]))
        return tuple(values)

    def object(self, value: Any) -> Obj:
        fields: dict[str, Obj | None] = {}
        for (name, view), part in zip(self.views.items(), sequence(value, self.name, len(self.views)), strict=True):
            with inside(name):
                fields[name] = object_or_null(view, part)
        return Obj(self.name, fields)


class HierarchyView(View):
    """A class with declared subclasses: all their fields, nullable, and ``_class``."""

    def __init__(self, name: str, views: dict[str, RecordView]) -> None:
        self._name = name
        self.views = views
        self._columns: dict[str, LogicalType] = {}
        for cls, view in views.items():
            for field, inner in view.views.items():
                if self._columns.setdefault(field, inner.logical) != inner.logical:
                    self._columns[f"{cls}.{field}"] = inner.logical
        self._class_field = _CLASS_FIELD
        while self._class_field in self._columns:
            self._class_field = f"_{self._class_field}"
        fields = [Field(n, t) for n, t in self._columns.items()]
        super().__init__(StructType((*fields, Field(self._class_field, Scalar("string")))))

    def _column(self, cls: str, field: str, logical: LogicalType) -> str:
        return field if self._columns[field] == logical else f"{cls}.{field}"

    def plain(self, obj: Obj) -> Any:
        view = self.views.get(obj.cls)
        if view is None:
            raise _other_class_error(self._name, obj)
        row = {
            self._column(obj.cls, n, v.logical): part
            for (n, v), part in zip(view.views.items(), view.plain(obj), strict=True)
        }
        return (*(row.get(n) for n in self._columns), obj.cls)

    def object(self, value: Any) -> Obj:
        *parts, cls = sequence(value, self._name, len(self._columns) + 1)
        view = self.views.get(cls)
        if view is None:
            raise EncodeError(f"{cls!r} is not {self._name} nor a declared subclass of it")
        row = dict(zip(self._columns, parts, strict=True))
        return view.object(tuple(row[self._column(cls, n, v.logical)] for n, v in view.views.items()))


def holds_text(view: View) -> bool:
    """Return True if a value, or a part of it, is JSON text of an object whose class only the value tells."""
    match view:
        case _TextView():
            return True
        case _ListView() | _OptionalView():
            return holds_text(view._element)
        case _MapView():
            return any(map(holds_text, view._parts))
        case RecordView() | HierarchyView():
            return any(map(holds_text, view.views.values()))
    return False


def is_object_text(kind: JavaType, logical: LogicalType, kryo: KryoInstance) -> bool:
    """Return True if values of a type are JSON text of objects: also inside their own class, where they are no struct."""
    view = view_of(kind, kryo)
    return logical == Scalar("string") and (isinstance(view, _TextView) or view.logical != logical)
