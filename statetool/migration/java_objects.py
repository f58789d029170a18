"""Conversion of values in Java serialization from the classes of the old job to those of the new one.

A stream names each class with its ``serialVersionUID`` and fields, which Java compares with those of the new class. Follows
``ObjectStreamClass``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from statetool.compatibility.classes.java_streams import java_failure, superclasses_in, types_in
from statetool.compatibility.classes.job_classes import element_class, is_provided
from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaEnum, JavaObject, read_java_stream
from statetool.io.java_streams.writer import lineage, write_java_stream
from statetool.io.output import Output
from statetool.migration.choices import Choices, Step
from statetool.migration.class_fields import NUMBERS, ClassPlan, FieldChange, FieldKinds, match_fields, number_change
from statetool.migration.leaves import exact_number
from statetool.types.declared import ClassSource
from statetool.types.java import from_binary_name
from statetool.types.serializable import SerializableClass

_WRITE_METHOD: Final = 0x01
_SERIALIZABLE: Final = 0x02
_EXTERNALIZABLE: Final = 0x04
_ENUM: Final = 0x10
_OBJECT: Final = "Ljava/lang/Object;"
_TEXT: Final = "Ljava/lang/String;"
_PROXY: Final = "java.lang.reflect.Proxy"
_NUMBER: Final = JavaClass("java.lang.Number", _SERIALIZABLE, suid=-8742448824652078965)
#: Boxes of primitives by the letters of these: descriptor, and ``serialVersionUID``.
_BOXES: Final = {
    "B": ("Ljava/lang/Byte;", -7183698231559129828),
    "S": ("Ljava/lang/Short;", 7515723908773894738),
    "I": ("Ljava/lang/Integer;", 1360826667806852920),
    "J": ("Ljava/lang/Long;", 4290774380558885855),
    "F": ("Ljava/lang/Float;", -2671257302660747028),
    "D": ("Ljava/lang/Double;", -9172774392245257468),
}
_PRIMITIVES: Final = {box: letter for letter, (box, _) in _BOXES.items()}


class JavaClasses:
    """The classes of values in Java serialization, in streams and in the new job.

    Parameters
    ----------
    listed
        Classes in streams whose steps the user has seen. Objects of other classes, and of other versions of these, are converted, too,
        unless they would lose something.
    is_key
        Whether the values are keys of maps.
    """

    def __init__(self, new: ClassSource | None, choices: Choices, listed: Iterable[JavaClass], *, is_key: bool) -> None:
        self._new = new
        self._choices = choices
        self._listed = frozenset(map(repr, listed))
        self._is_key = is_key
        self._plans: dict[str, ClassPlan | None] = {}

    def plan(self, cls: JavaClass) -> ClassPlan | None:
        """Return the conversion of the objects of a class, ``None`` if the new job reads them as they are, or fails."""
        key = repr(cls)
        if key not in self._plans:
            self._plans[key] = self._plan(cls)
        return self._plans[key]

    def checked_plan(self, cls: JavaClass) -> ClassPlan | None:
        """Return the conversion of an object.

        Raises
        ------
        EncodeError
            It cannot be converted, or would lose something that nobody was asked about.
        """
        plan = self.plan(cls)
        if plan is not None:
            plan.check(is_listed=repr(cls) in self._listed)
        return plan

    def _plan(self, cls: JavaClass) -> ClassPlan | None:
        if self._new is None or cls.flags & _ENUM or cls.name.startswith("[") or is_provided(cls.name):
            return None
        new = self._new.serializable(cls.name)
        if new is None:
            return ClassPlan.impossible(cls.name, "the new job does not have this class")
        if java_failure(cls, (), new) is None:
            return None
        if reason := _reason(cls, new):
            return ClassPlan.impossible(cls.name, reason)
        plan = match_fields(cls.name, types_in(cls), dict(new.fields), _KINDS, self._choices, is_key=self._is_key)
        if new.uid == cls.suid or new.is_record:
            return plan
        step = Step(path=cls.name, change="rewrite", text=f"serialVersionUID {cls.suid} becomes {new.uid}")
        return ClassPlan(plan.name, plan.fields, (step, *plan.steps))

    def stream(self, raw: bytes) -> bytes:
        """Convert an object in Java serialization.

        Raises
        ------
        EncodeError
            The object cannot be converted exactly.
        """
        value = _read(raw)
        rewriter = _Rewriter(self, self._new)
        converted = rewriter.value(value)
        if not rewriter.classes:
            return raw
        if _write(value) != raw:
            raise EncodeError(
                "a Java stream that statetool does not write with the same bytes, so it cannot be converted"
            )
        rewriter.check_keys()
        return _write(converted)


def _reason(cls: JavaClass, new: SerializableClass) -> str:
    """Return the reason why objects of a class cannot be converted, empty if they can."""
    if new.is_enum:
        return "the class became an enum"
    if not new.is_serializable:
        return "the class of the new job is not serializable"
    if new.uid is None:
        return "the serialVersionUID of the new class is not a constant"
    if cls.flags & (_WRITE_METHOD | _EXTERNALIZABLE) or new.is_externalizable or new.has_own_code:
        return "methods of the class write or read its objects"
    if new.without_constructor:
        return f"Java cannot create objects: {new.without_constructor} has no constructor without parameters"
    above = superclasses_in(cls, new.superclasses[-1:])
    if not new.is_record and above != list(new.superclasses):
        return "its superclasses differ"
    names = [name for level in lineage(cls) for _, name in level.fields]
    return "two of its superclasses have fields of one name" if len(set(names)) < len(names) else ""


def _read(raw: bytes) -> Any:
    c = Cursor(raw)
    value = read_java_stream(c)
    c.expect_end("a Java stream")
    return value


def _write(value: Any) -> bytes:
    out = Output()
    write_java_stream(out, value)
    return bytes(out)


def _is_keyed(value: JavaObject) -> bool:
    """Return True for maps, and for sets."""
    names = [level.name for level in lineage(value.cls) if level.name.startswith("java.util.")]
    return any(name.endswith(("Set", "Map", "Hashtable")) for name in names)


def _count_keys(value: JavaObject) -> int:
    """Return the number of different keys of a map, or elements of a set, as its class writes them."""
    is_set = any(level.name.endswith("Set") for level in lineage(value.cls))
    parts = [part for part in value.annotations if not isinstance(part, bytes)]
    return len(set(map(_write, parts if is_set else parts[::2])))


class _Rewriter:
    """Conversion of the objects of one stream, each once: objects may refer to one another."""

    def __init__(self, plans: JavaClasses, new: ClassSource | None) -> None:
        self._plans = plans
        self._new = new
        self._done: dict[int, Any] = {}
        self._kept: list[Any] = []
        self._described: dict[str, JavaClass] = {}
        #: Converted classes.
        self.classes: set[str] = set()

    def value(self, value: Any) -> Any:
        """Return the converted object, and keep which objects are the same."""
        if not isinstance(value, JavaObject | JavaArray | JavaEnum | JavaClass):
            return value
        if id(value) in self._done:
            return self._done[id(value)]
        # An id is unique only while its object lives.
        self._kept.append(value)
        match value:
            case JavaObject():
                made: Any = JavaObject(self._described_class(value.cls))
                self._done[id(value)] = made
                self._fill(value, made)
                return made
            case JavaArray(cls, items):
                made = JavaArray(self._described_class(cls), items if isinstance(items, bytes) else [])
                self._done[id(value)] = made
                if not isinstance(items, bytes):
                    made.items = [self.value(item) for item in items]
                return made
            case JavaEnum(cls, name):
                self._check_constant(cls.name, name)
                made = JavaEnum(self._described_class(cls), name)
            case _:
                made = self._described_class(value)
        self._done[id(value)] = made
        return made

    def check_keys(self) -> None:
        """Refuse maps and sets of which Java would keep fewer keys or elements.

        Raises
        ------
        EncodeError
            Two of them become equal.
        """
        for value in self._kept:
            is_keyed = isinstance(value, JavaObject) and _is_keyed(value)
            if is_keyed and _count_keys(self._done[id(value)]) < _count_keys(value):
                raise EncodeError(f"two keys or elements of a {value.cls.name} become equal")

    def _fill(self, value: JavaObject, made: JavaObject) -> None:
        before = {name: self.value(part) for name, part in value.fields.items()}
        for level in lineage(value.cls):
            plan = self._plans.checked_plan(level)
            if plan is None:
                fields = {name: before[name] for _, name in level.fields}
            else:
                self.classes.add(level.name)
                fields = {name: make(before) for name, make in plan.fields.items()}
            if twice := made.fields.keys() & fields.keys():
                raise EncodeError(f"{level.name}: a superclass has a field {min(twice)}, too")
            made.fields |= fields
        made.annotations = [self.value(part) for part in value.annotations]

    def _described_class(self, cls: JavaClass) -> JavaClass:
        if cls.name == _PROXY:
            raise EncodeError("a proxy, whose interfaces a Java stream cannot be given again")
        if cls.name in self._described:
            return self._described[cls.name]
        plan = self._plans.checked_plan(cls)
        made = JavaClass(cls.name, cls.flags, cls.fields, None, cls.suid, cls.signatures)
        self._described[cls.name] = made
        made.parent = None if cls.parent is None else self._described_class(cls.parent)
        if plan is None or self._new is None:
            return made
        new = self._new.serializable(cls.name)
        assert new is not None
        self.classes.add(cls.name)
        # Java's order: primitives first, then by name.
        fields = sorted(new.fields, key=lambda f: (f[1][0] in "L[", f[0].encode("utf-16-be", "surrogatepass")))
        made.fields = tuple((kind[0], name) for name, kind in fields)
        made.signatures = tuple(kind for _, kind in fields if kind[0] in "L[")
        made.suid = new.uid or 0
        made.flags = _SERIALIZABLE
        return made

    def _check_constant(self, name: str, constant: str) -> None:
        new = None if self._new is None or is_provided(name) else self._new.serializable(name)
        if new is not None and new.constants and constant not in new.constants:
            raise EncodeError(f"the new enum {name} does not have {constant}")


class _Kinds(FieldKinds[str]):
    """Types of fields as descriptors."""

    def change(self, old: str, new: str) -> FieldChange | None:
        before, after = _PRIMITIVES.get(old, old), _PRIMITIVES.get(new, new)
        if before in NUMBERS and after in NUMBERS:
            found = number_change(NUMBERS[before], NUMBERS[after])
            if found is None and before != after:
                return None
            refuses_null = old in _PRIMITIVES and new not in _PRIMITIVES
            change = "narrow" if refuses_null else "widen" if found is None else found.change
            note = "null is refused" if refuses_null else ""

            def convert(value: Any) -> Any:
                number = _unboxed(value)
                if number is None:
                    if refuses_null:
                        raise EncodeError("a null for a primitive field")
                    return None
                number = number if found is None else found.convert(number)
                return _boxed(number, after) if new in _PRIMITIVES else number

            return FieldChange(change, convert, note)
        if old[0] not in "L[" or new[0] not in "L[":
            return None
        if new == _OBJECT:
            return FieldChange("widen", lambda value: value)
        return FieldChange("narrow", lambda value: _checked(value, new), "objects of other classes are refused")

    def text(self, kind: str) -> str:
        return str(from_binary_name(f"[{kind.replace('/', '.')}").args[0])

    def default(self, cls: str, name: str, kind: str) -> Any:
        # Java creates the object without the constructor of its class.
        return None if kind[0] in "L[" else False if kind == "Z" else "\0" if kind == "C" else 0

    def filled(self, value: Any, kind: str) -> Any:
        if value is None and kind[0] in "L[":
            return None
        letter = _PRIMITIVES.get(kind, kind)
        if letter in NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
            number = exact_number(value, NUMBERS[letter])
            return _boxed(number, letter) if kind in _PRIMITIVES else number
        if kind == "Z" and isinstance(value, bool):
            return value
        if kind == "C" and isinstance(value, str) and len(value.encode("utf-16-be", "surrogatepass")) == 2:
            return int.from_bytes(value.encode("utf-16-be", "surrogatepass"), "big")
        if kind in (_TEXT, _OBJECT) and isinstance(value, str):
            return value
        raise EncodeError(f"{value!r} is not a value of type {kind}")


_KINDS: Final = _Kinds()


def _unboxed(value: Any) -> Any:
    return value.fields["value"] if isinstance(value, JavaObject) else value


def _boxed(number: Any, letter: str) -> JavaObject:
    descriptor, uid = _BOXES[letter]
    name = descriptor[1:-1].replace("/", ".")
    cls = JavaClass(name, _SERIALIZABLE, ((letter, "value"),), _NUMBER, uid)
    return JavaObject(cls, {"value": number})


def _checked(value: Any, kind: str) -> Any:
    """Return an object if it belongs to a field of a type: no jar tells what else does."""
    if isinstance(value, JavaClass):
        name = "java.lang.Class"
    else:
        name = "java.lang.String" if isinstance(value, str) else "" if value is None else value.cls.name
    wanted = kind if kind.startswith("[") else element_class(f"[{kind}")
    if value is not None and name != wanted.replace("/", "."):
        raise EncodeError(f"a {name} for a field of type {wanted.replace('/', '.')}")
    return value
