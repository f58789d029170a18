"""Creation of objects by the classes of a new job: constructors that throw, classes without objects, and collections that take no elements.

Flink creates a POJO by its constructor without parameters (``PojoSerializer.createInstance``; up to 1.20 also one for each nested POJO), a record
by its canonical constructor, and Kryo any other object by its constructor without parameters, or without one (``KryoBase``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statetool.errors import FormatError, UnknownSerializerError
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo import model
from statetool.serializers.kryo.model import Obj
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.types.declared import ClassDeclaration, TypeContext
from statetool.types.execution import Creation
from statetool.types.java import JavaType

_JAVA: Final = "java.util."
#: Nested classes of the JDK that Kryo reads by serializers of their own.
_READ: Final = model.EMPTY | model.SINGLETONS | {model.EMPTY_MAP, model.SINGLETON_MAP, model.AS_LIST}
_ENUM_MAP: Final = "java.util.EnumMap"


def takes_elements(name: str, kryo: int | None) -> bool:
    """Return False for a collection of the JDK that Kryo creates without a constructor and cannot fill: ``List.of``, views, wrappers.

    Classes that are nested in others have no constructor without parameters, and their objects lack what they wrap.
    """
    if name == _ENUM_MAP:
        return False
    if name in model.IMMUTABLE or name.startswith("java.util.ImmutableCollections$"):
        return kryo != 2  # Kryo 5 has a serializer for them.
    return name in _READ or not (name.startswith(_JAVA) and "$" in name and name in model.COLLECTIONS | model.MAPS)


@dataclass(slots=True)
class Creations:
    """Objects that the classes of a new job create, by the constructors of its jar."""

    old: TypeContext
    new: TypeContext
    _found: dict[str, Creation] = field(default_factory=dict)

    def watch(self, serializer: Serializer, changed: Callable[[str], None]) -> bool:
        """Let a serializer of the new job fail where the job cannot create an object.

        Parameters
        ----------
        changed
            Called with a text about a value that a constructor changes.

        Returns
        -------
        bool
            True if values have to be read one by one.
        """
        one_by_one = False
        for part in all_parts(serializer):
            if isinstance(part, PojoSerializer):
                part.construct = self._hook(part, changed)
                one_by_one |= part.construct is not None
            elif isinstance(part, KryoSerializer):
                names = {part.type_class, *(d.name for d in part.declarations())}
                one_by_one |= any(
                    self._is_doubtful(name) or self._has_other_fields(name) or self._is_other_anonymous(name)
                    for name in names
                )
                part.watch(lambda name, value: self._watch_kryo(name, value, changed))
        return one_by_one

    def _of(self, name: str) -> Creation:
        """Return what the creation of a class without values does."""
        if name not in self._found:
            source, declared = self.new.source, self.new.find(name)
            # Generated messages are created by the code of their library.
            is_generated = declared is not None and declared.kind in ("protobuf", "thrift")
            self._found[name] = Creation() if source is None or is_generated else source.create(name, {})
        return self._found[name]

    def _is_record(self, name: str) -> bool:
        declared = self.new.find(name)
        return declared is not None and declared.record

    def _is_doubtful(self, name: str) -> bool:
        found = self._of(name)
        return bool(found.fails or found.unknown) or (self._is_record(name) and self._has_own_code(name))

    def _has_other_fields(self, name: str) -> bool:
        """Return True if a field may hold a collection of another type than it has in the new job."""
        before, after = self.old.find(name), self.new.find(name)
        return after is not None and (before is None or before.fields != after.fields) and bool(_collections(after))

    def _is_other_anonymous(self, name: str) -> bool:
        """Return True if an anonymous class has other code: its number changes with each such class before it in the source."""
        old, new = self.old.source, self.new.source
        outer, dollar, number = name.rpartition("$")
        if not dollar or not number.isdecimal() or old is None or new is None or not old.has(name) or not new.has(name):
            return False
        enclosing = self.new.find(outer)
        is_constant = enclosing is not None and enclosing.kind == "enum"
        return not is_constant and not old.is_same(name, new)

    def _has_own_code(self, name: str) -> bool:
        return self.new.source is not None and self.new.source.has_record_code(name)

    def _hook(self, part: PojoSerializer, changed: Callable[[str], None]) -> Callable[[Mapping[str, Any]], None] | None:
        name = part.pojo_class
        inside = self._nested(part) if self.new.kryo == 2 else ()
        if not any(self._is_doubtful(n) for n in (name, *inside)):
            return None

        def construct(values: Mapping[str, Any]) -> None:
            self._construct(name, values, changed)
            for nested in inside:
                if not self._is_record(nested) and not self._cannot_be(nested):
                    self._construct(nested, {}, changed)

        return construct

    def _nested(self, part: PojoSerializer) -> tuple[str, ...]:
        found: list[str] = []
        for _, child in part.fields:
            if isinstance(child, PojoSerializer):
                found += [child.pojo_class, *self._nested(child)]
        return tuple(dict.fromkeys(found))

    def _cannot_be(self, name: str) -> bool:
        return self.new.source is not None and self.new.source.is_abstract(name)

    def _construct(self, name: str, values: Mapping[str, Any], changed: Callable[[str], None]) -> None:
        source = self.new.source
        if source is None:
            return
        is_record = self._is_record(name)
        made = source.create(name, values) if is_record else self._of(name)
        if made.fails:
            raise FormatError(f"the class {name} {made.fails}")
        if made.unknown and not self._is_same(name, values, made):
            error = UnknownSerializerError(f"whether the class {name} creates objects is not known: it {made.unknown}")
            raise error
        if not is_record:
            return
        for component, value in values.items():
            after = made.fields.get(component, value)
            if (
                isinstance(after, int | float | str | None)
                and isinstance(value, int | float | str | None)
                and after != value
            ):
                changed(f"{component}: the constructor of {name} makes {after!r} of {value!r}")

    def _is_same(self, name: str, values: Mapping[str, Any], made: Creation) -> bool:
        """Return True if the old job executes the same instructions, or is not known."""
        before = self.old.source
        if before is None or not before.has(name):
            return before is None
        return before.create(name, values).visited == made.visited

    def _watch_kryo(self, name: str, value: Any, changed: Callable[[str], None]) -> None:
        if not takes_elements(name, self.new.kryo):
            raise FormatError(f"Kryo cannot put elements into an object of {name}")
        if name.startswith(("java.", "[")):
            return
        if self._cannot_be(name):
            raise FormatError(f"the class {name} is abstract")
        if self._is_other_anonymous(name):
            changed(f"the anonymous class {name} has other code, or is another one, which got its number")
        if isinstance(value, dict) and (declared := self.new.find(name)) is not None:
            for part, kind in _collections(declared).items():
                stored = value.get(part)
                if isinstance(stored, Obj) and model.is_other_collection(kind, stored.cls):
                    # Kryo puts it into the field.
                    changed(f"{part}: a {stored.cls} where a {kind} is declared, and code that takes it for one fails")
        if self._is_doubtful(name):
            values = {n: _plain(v) for n, v in value.items()} if isinstance(value, dict) else {}
            self._construct(name, values, changed)


def _collections(declared: ClassDeclaration) -> dict[str, str]:
    """Return the fields that are collections or maps of the JDK, and their types."""
    of_java = model.LIST_LIKE | model.MAP_LIKE | model.IMPLEMENTATIONS.keys()
    return {name: kind.name for name, kind in declared.fields if kind.name in of_java}


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Obj) else value


def holds_collections(part: KryoSerializer) -> bool:
    """Return True if values of a type may have collections: some of them cannot be read although their classes did not change."""
    kinds = [part.java_type, *(kind for d in part.declarations() for _, kind in d.fields)]
    return any(map(_may_hold, kinds))


def _may_hold(kind: JavaType) -> bool:
    open_or_list = (
        kind.name in model.OPEN_TYPES | model.LIST_LIKE | model.MAP_LIKE | model.HOLDERS | model.IMPLEMENTATIONS.keys()
    )
    return open_or_list or any(map(_may_hold, kind.args))
