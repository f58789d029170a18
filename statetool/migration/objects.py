"""Conversion of objects in values of Kryo whose classes only the values tell, such as those of a field of type ``Object``.

A class whose fields differ in the new job is converted field by field, wherever it occurs. Every other object keeps its value.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError
from statetool.migration.choices import Choices
from statetool.migration.class_fields import ClassPlan, FieldChange, FieldKinds, match_fields, number_change
from statetool.migration.java_objects import JavaClasses
from statetool.migration.leaves import exact_number
from statetool.migration.sides import NO_DEFAULT
from statetool.serializers.kryo import text
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.kryo.model import Headed, Obj, box_class
from statetool.serializers.kryo.typed import EnumView
from statetool.serializers.typeutils.composite import inside
from statetool.types.declared import ClassDeclaration, TypeContext
from statetool.types.execution import Boxed
from statetool.types.java import PRIMITIVES, JavaType

_JAVA_HEAD: Final = b"\xac\xed\x00\x05"
_OBJECT: Final = "java.lang.Object"
_NUMBERS: Final = {
    "java.lang.Byte": "int8", "java.lang.Short": "int16", "java.lang.Integer": "int32", "java.lang.Long": "int64",
    "java.lang.Float": "float32", "java.lang.Double": "float64",
}  # fmt: skip


def classes_in(obj: Obj | None, found: set[str]) -> None:
    """Add the names of the classes with fields of an object and of all objects inside it."""
    if obj is None:
        return
    if isinstance(obj.value, dict):
        found.add(obj.cls)
    for part in _parts(obj.value):
        classes_in(part, found)


def _parts(value: Any) -> list[Obj | None]:
    match value:
        case Obj():
            return [value]
        case Headed():
            return [*_parts(value.header), *_parts(value.items)]
        case dict():
            return [v for v in value.values() if isinstance(v, Obj)]
        case list() | tuple():
            return [part for item in value for part in _parts(item)]
    return []


def differs(before: ClassDeclaration | None, after: ClassDeclaration | None) -> bool:
    """Return True if Kryo writes the objects of a class in another way."""
    if before is None or after is None:
        return before is not after
    return _shape(before) != _shape(after)


def _shape(declared: ClassDeclaration) -> tuple[Any, ...]:
    return (
        declared.kind,
        sorted((n, str(t)) for n, t in declared.fields),
        declared.final,
        declared.record,
        declared.steps,
    )


class ObjectClasses:
    """The classes of objects in both jobs.

    Parameters
    ----------
    listed
        Classes whose steps the user has seen. Objects of other classes are converted, too, unless they would lose something.
    is_key
        Whether the objects are keys of maps.
    """

    def __init__(
        self,
        old: KryoInstance,
        new: KryoInstance,
        java: JavaClasses,
        choices: Choices,
        listed: frozenset[str],
        *,
        is_key: bool,
    ) -> None:
        self._old = old
        self._new = new
        self._java = java
        self._choices = choices
        self._listed = listed
        self._is_key = is_key
        self._kinds = _Kinds(new)
        self._plans: dict[str, ClassPlan | None] = {}

    def plan(self, name: str) -> ClassPlan | None:
        """Return the conversion of the objects of a class, ``None`` if both jobs write them alike."""
        if name not in self._plans:
            self._plans[name] = self._plan(name)
        return self._plans[name]

    def _plan(self, name: str) -> ClassPlan | None:
        before, after = self._old.classes.declared(name), self._new.classes.declared(name)
        if before is None or not differs(before, after):
            return None
        if after is None:
            return ClassPlan.impossible(name, "the new job does not have this class")
        if (before.kind, after.kind) != ("record", "record") or self._new.by_java(name):
            return ClassPlan.impossible(name, "another serializer writes this class in the new job")
        types = dict(before.fields), dict(after.fields)
        return match_fields(name, types[0], types[1], self._kinds, self._choices, is_key=self._is_key)

    def text(self, value: str | None) -> str | None:
        """Convert JSON text of an object."""
        converted = self.object(text.from_text(value, self._old))
        # Also if no object changed: the text omits the classes of fields whose class is final.
        shown = text.to_text(converted, self._new)
        if repr(text.from_text(shown, self._new)) != repr(converted):
            raise EncodeError("an object that the classes of the new job do not show exactly")
        return shown

    def object(self, obj: Obj | None) -> Obj | None:
        """Convert an object and all objects inside it.

        Raises
        ------
        EncodeError
            An object cannot be converted exactly.
        """
        if obj is None:
            return None
        name, value = obj.cls, obj.value
        if isinstance(value, bytes):
            return Obj(name, self._java.stream(value)) if value.startswith(_JAVA_HEAD) else obj
        if isinstance(value, dict) and not self._old.is_tree(name):
            return self._record(name, value)
        if isinstance(value, Headed):
            header = self.object(value.header) if isinstance(value.header, Obj) else value.header
            return Obj(name, Headed(header, self._items(name, value.items)))
        if isinstance(value, list):
            return Obj(name, self._items(name, value))
        if isinstance(value, str) and (before := self._old.classes.declared(name)) and before.kind == "enum":
            after = self._new.classes.declared(before.name)
            return EnumView(after).object(value) if after is not None and after.kind == "enum" else obj
        return Obj(name, self.object(value)) if isinstance(value, Obj) else obj

    def _record(self, name: str, value: dict[str, Obj | None]) -> Obj:
        converted: dict[str, Any] = {}
        plan = self.plan(name)
        if plan is not None:
            plan.check(is_listed=name in self._listed)
        for field, part in value.items():
            with inside(field):
                converted[field] = self.object(part)
        if plan is None:
            return Obj(name, converted)
        fields: dict[str, Any] = {}
        for field, make in plan.fields.items():
            with inside(field):
                fields[field] = make(converted)
        return Obj(name, fields)

    def _items(self, name: str, items: list[Any]) -> list[Any]:
        converted = [tuple(map(self.object, i)) if isinstance(i, tuple) else self.object(i) for i in items]
        is_set = any("Set" in supertype for supertype in self._old.classes.supertypes(name))
        if converted != items and (is_set or any(isinstance(item, tuple) for item in converted)):
            keys = [repr(i[0] if isinstance(i, tuple) else i) for i in converted]
            if len(set(keys)) < len(keys):
                raise EncodeError(f"two keys or elements of a {name} become equal")
        return converted


class _Kinds(FieldKinds[JavaType]):
    """Types of fields, as the job's classes declare them."""

    def __init__(self, kryo: KryoInstance) -> None:
        self._kryo = kryo

    def change(self, old: JavaType, new: JavaType) -> FieldChange | None:
        before, after = box_class(old.name), box_class(new.name)
        if before == after and before in PRIMITIVES.values():
            if new.name in PRIMITIVES:
                return FieldChange("narrow", lambda obj: _number(obj, new, lambda v: v), "null is refused")
            return FieldChange("widen", lambda obj: _number(obj, new, lambda v: v))
        if before in _NUMBERS and after in _NUMBERS:
            found = number_change(_NUMBERS[before], _NUMBERS[after])
            if found is None:
                return None
            refuses_null = old.name not in PRIMITIVES and new.name in PRIMITIVES
            note = "null is refused" if refuses_null else found.note
            change = "narrow" if refuses_null else found.change
            return FieldChange(change, lambda obj: _number(obj, new, found.convert), note)
        if new.name == _OBJECT:
            return FieldChange("widen", lambda obj: None if obj is None else Obj(box_class(obj.cls), obj.value))
        if old.name in PRIMITIVES or new.name in PRIMITIVES or new.args:
            return None
        return FieldChange("narrow", lambda obj: _checked(obj, new), "objects of other classes are refused")

    def default(self, cls: str, name: str, kind: JavaType) -> Any:
        return default_value(self._kryo.context, cls, name, kind)

    def filled(self, value: Any, kind: JavaType) -> Any:
        wanted = box_class(kind.name)
        if value is None and kind.name not in PRIMITIVES:
            return None
        types: dict[str, tuple[type, ...]] = {
            "java.lang.Boolean": (bool,),
            "java.lang.String": (str,),
            "java.lang.Character": (str,),
        }
        if wanted in _NUMBERS:
            types[wanted] = (int,) if _NUMBERS[wanted].startswith("int") else (int, float)
        if not isinstance(value, types.get(wanted, ())) or (isinstance(value, bool) and wanted != "java.lang.Boolean"):
            raise EncodeError(f"{value!r} is not a value of type {kind}")
        return Obj(kind.name, value if wanted not in _NUMBERS else exact_number(value, _NUMBERS[wanted]))


def default_value(types: TypeContext, cls: str, name: str, kind: JavaType) -> Any:
    """Return the value that a new object has in a field, as JSON, ``NO_DEFAULT`` if it is an object that only Java creates."""
    declared = types.find(cls)
    zero = (
        ("\0" if kind.name == "char" else False if kind.name == "boolean" else 0) if kind.name in PRIMITIVES else None
    )
    if types.source is None or declared is None or declared.record:
        return zero
    created = types.source.create(cls, {})
    value = created.fields.get(name)
    if created.fails or created.unknown or value is None:
        return zero
    value = value.value if isinstance(value, Boxed) else value
    if not isinstance(value, int | float | str):
        return NO_DEFAULT
    if box_class(kind.name) == "java.lang.Boolean":
        return bool(value)
    return chr(int(value)) if box_class(kind.name) == "java.lang.Character" else value


def _number(obj: Obj | None, kind: JavaType, convert: Any) -> Obj | None:
    if obj is None:
        if kind.name in PRIMITIVES:
            raise EncodeError(f"a null for a field of type {kind}")
        return None
    return Obj(kind.name, convert(obj.value))


def _checked(obj: Obj | None, kind: JavaType) -> Obj | None:
    if obj is not None and obj.cls != kind.binary_name:
        raise EncodeError(f"a {obj.cls} for a field of type {kind}")
    return obj
