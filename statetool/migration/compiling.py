"""Compiler from the old serializer of a value to the new one: the conversion, and its steps.

Fields are matched by name. The encoder of the new type checks that it stores each value exactly, so narrowing refuses values and never
changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.arrays import is_valid
from statetool.columns.coerce import list_parts, map_parts, struct_parts
from statetool.columns.types import arrow_type
from statetool.errors import EncodeError, StatetoolError
from statetool.migration.choices import Change, Choices, Step
from statetool.migration.class_fields import ClassPlan
from statetool.migration.java_objects import JavaClasses
from statetool.migration.leaves import (
    Convert,
    by_value,
    constants_of,
    fill_default,
    leaf_change,
    objects_of_strings,
    same,
    strings_of_objects,
)
from statetool.migration.objects import ObjectClasses
from statetool.migration.occurring import Objects
from statetool.migration.sides import NO_DEFAULT, TypeAtPath
from statetool.serializers.core.base import Serializer
from statetool.serializers.kryo.codecs.protobuf import bytes_or_not
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.serializers.streaming import StreamElementSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.serializers.typeutils.row import KIND_FIELD
from statetool.sql_plans.derived import DerivedColumn, missing_source
from statetool.types import Field, ListType, LogicalType, MapType, StructType, TimestampType, TtlType
from statetool.types.options import ReadOptions

#: Exact values: nothing is rounded or hidden.
EXACT: Final = ReadOptions(nanos="always", decimals="string", ttl="raw")
_ACCESS: Final = TimestampType("ms", zoned=True)
#: Function that returns the column of a new field from the columns of the old fields, by name, and the number of rows.
#: Verbs of steps, by their change.
_VERBS: Final = {"widen": "widens to", "narrow": "narrows to"}
#: The row of an accumulator has null for a view, whose values are a state.
_VIEW: Final = b"\0"
#: The reason against values that get a time to live.
NO_ACCESS: Final = (
    "values get a time to live: give their last access with --last-access, or as 'last_access_ms' in the plan"
)
_STRING: Final = "java.lang.String"
_GIVE: Final = "give its value with --fill, or its old name with --rename"
_NO_VALUE: Final = f"new field without a default: {_GIVE}"
_LATER: Final = "objects of classes that the first values do not have are converted if they lose nothing"
_Make = Callable[[dict[str, pa.Array], int], pa.Array]


class Compiler:
    """Compiles the conversions of one state. ``steps`` are those of all its conversions.

    Parameters
    ----------
    fills_columns
        Whether added columns of SQL rows become null by default. Otherwise, the user must choose their values.
    objects
        Classes of objects that only values tell, and that the new job writes in another way.
    more_objects
        Whether later values may have objects of other classes.
    derived
        Columns of an accumulator that are computed from other old ones, by name. ``None`` for other types.
    """

    def __init__(
        self,
        choices: Choices,
        *,
        fills_columns: bool = True,
        objects: Objects = (),
        more_objects: bool = False,
        derived: Mapping[str, DerivedColumn] | None = None,
    ) -> None:
        self.choices = choices
        self._of_accumulator = derived is not None
        self._derived = derived or {}
        self._objects = objects
        self._more_objects = more_objects
        self._fills_columns = fills_columns
        self.steps: list[Step] = []
        self._is_key = False
        self._fields: set[str] = set()
        self._constants_at: set[str] = set()

    def value(self, old: Serializer, new: Serializer, path: str) -> Convert:
        """Compile the conversion of values."""
        return self._any(TypeAtPath.of(old), TypeAtPath.of(new), path)

    def key(self, old: Serializer, new: Serializer, path: str) -> Convert:
        """Compile the conversion of the keys of a map. It refuses to merge two keys into one."""
        outer, self._is_key = self._is_key, True
        convert = self._any(TypeAtPath.of(old), TypeAtPath.of(new), path)
        self._is_key = outer
        return convert

    def entries(
        self, old: tuple[TypeAtPath, TypeAtPath], new: tuple[TypeAtPath, TypeAtPath]
    ) -> tuple[Convert, Convert]:
        """Compile the conversion of the keys and values of maps."""
        outer, self._is_key = self._is_key, True
        key = self._any(old[0], new[0], "map_key")
        self._is_key = outer
        return key, self._any(old[1], new[1], "map_value")

    def element(self, old: TypeAtPath, new: TypeAtPath) -> Convert:
        """Compile the conversion of elements of lists."""
        return self._any(old, new, "element")

    def add_step(self, path: str, change: Change, text: str, *, loses: bool = False) -> None:
        """Add a step."""
        self.steps.append(Step(path=path, change=change, text=text, loses=loses))

    def unused(self) -> list[Step]:
        """Return an impossible step for each choice at a path where it has no meaning."""
        choices = self.choices
        fields = {*choices.sources, *choices.fills} - self._fields
        both = choices.sources.keys() & choices.fills.keys()
        texts = dict.fromkeys(fields, "the new type has no such field")
        texts |= dict.fromkeys(both, "the plan gives both an old name ('from') and a value ('fills')")
        texts |= {
            path: "the type is not an enum, but the plan gives names of constants"
            for path in choices.constants
            if path not in self._constants_at
        }
        return [Step(path=path, change="impossible", text=text) for path, text in sorted(texts.items())]

    def impossible(self, path: str, text: str, *, asks: bool = False) -> Convert:
        """Add a step that cannot be performed. ``asks``: it lacks the old name or the value of a field."""
        self.steps.append(Step(path=path, change="impossible", text=text, asks=asks))
        return same

    def _any(self, old: TypeAtPath, new: TypeAtPath, path: str) -> Convert:
        if why := old.unreadable or new.unreadable:
            return self.impossible(path, why)
        found = self._strings(old, new, path) or self._records(old, new, path) or self._object_classes(old, new, path)
        if found is not None:
            return found
        if old.only_text != new.only_text:
            name = (old if old.only_text else new).type_name
            return self.impossible(
                path,
                f"the content of {name} is unknown: declare the class, or the class with the field and its full type, such as Set<String>",
            )
        match old.logical, new.logical:
            case TtlType(), TtlType():
                return self._struct(_with_timestamps(old), _with_timestamps(new), path)
            case TtlType(value), _:
                self.add_step(path, "drop", "the times of last access are dropped", loses=True)
                convert = self._any(_inner(old, value), new, path)
                return lambda array: convert(_fields(array, _with_timestamps(old))["value"])
            case _, TtlType(value):
                return self._with_ttl(old, _inner(new, value), path)
            case ListType(a), ListType(b):
                return self._list(old, new, a, b, path)
            case MapType(), MapType():
                return self._map(old, new, path)
            case StructType(), StructType():
                return self._struct(old, new, path)
        return self._leaf(old, new, path)

    def _strings(self, old: TypeAtPath, new: TypeAtPath, path: str) -> Convert | None:
        """Compile the conversion of fields of type Object with strings to strings, or the reverse; ``None`` for other types."""
        names = [None if side.java is None else side.java.name for side in (old, new)]
        if old.is_object and names[1] == _STRING:
            self.add_step(path, "narrow", "Object narrows to String: other objects are refused", loses=True)
            return strings_of_objects
        if names[0] == _STRING and new.is_object:
            self.add_step(path, "widen", "String widens to Object")
            return objects_of_strings
        return None

    def _object_classes(self, old: TypeAtPath, new: TypeAtPath, path: str) -> Convert | None:
        """Compile the conversion of objects whose classes only the values tell; ``None`` for other types, and if both jobs have equal classes."""
        if old.kryo is None or new.kryo is None:
            return None
        if (old.classes.source, old.classes.classes) == (new.classes.source, new.classes.classes):
            return None
        listed = frozenset(name for name, _ in self._objects)
        streams = [cls for _, cls in self._objects if cls is not None]
        java = JavaClasses(new.classes.source, self.choices, streams, is_key=self._is_key)
        if self._more_objects and (old.is_java_serialized or old.is_object_text):
            self.add_step(path, "rewrite", _LATER)
        if old.is_java_serialized and new.is_java_serialized:
            self._add_steps(java.plan(cls) for _, cls in self._objects if cls is not None)
            return by_value(java.stream)
        if not (old.is_object_text and new.is_object_text):
            return None
        objects = ObjectClasses(old.kryo, new.kryo, java, self.choices, listed, is_key=self._is_key)
        self._add_steps(objects.plan(name) if cls is None else java.plan(cls) for name, cls in self._objects)
        return by_value(objects.text)

    def _add_steps(self, plans: Iterable[ClassPlan | None]) -> None:
        """Add the steps of classes, each once: a class may occur in several fields."""
        for plan in plans:
            if plan is not None:
                self.steps += [step for step in plan.steps if step not in self.steps]
                self._fields |= {f"{plan.name}.{field}" for field in plan.fields}

    def _records(self, old: TypeAtPath, new: TypeAtPath, path: str) -> Convert | None:
        """Compile the conversion of elements of windows that get or lose an evictor, which keeps their timestamps; ``None`` for other types."""
        had, has = (isinstance(side.serializer, StreamElementSerializer) for side in (old, new))
        if had == has:
            return None
        if had:
            self.add_step(f"{path}.timestamp", "drop", "the timestamps of elements are dropped", loses=True)
            convert = self._any(_record(old), new, path)
            return lambda array: convert(_fields(array, old)["value"])
        text = "elements have no timestamps: an evictor by time does not evict them"
        self.add_step(f"{path}.timestamp", "add", text, loses=True)
        convert = self._any(old, _record(new), path)
        kind = arrow_type(new.logical, EXACT)

        def records(array: pa.Array) -> pa.Array:
            parts = {"value": convert(array), "element": pa.repeat("record", len(array))}
            columns = [parts.get(f.name, pa.nulls(len(array), f.type)) for f in kind]
            return pa.StructArray.from_arrays(columns, names=[f.name for f in kind])

        return records

    def _leaf(self, old: TypeAtPath, new: TypeAtPath, path: str) -> Convert:
        if old.logical == new.logical:
            if old.message is not None and new.message is not None and (name := bytes_or_not(old.message, new.message)):
                return self.impossible(path, f"bytes cannot become another type, or the reverse, in the field {name}")
            return self._constants(old, new, path)
        leaf = leaf_change(old.logical, new.logical)
        if leaf is None:
            return self.impossible(path, f"{old.type_name} cannot be converted to {new.type_name}")
        verb = _VERBS.get(leaf.change, "becomes")
        note = f": {leaf.note}" if leaf.note else ""
        text = f"{old.type_name} {verb} {new.type_name}{note}"
        self.add_step(path, leaf.change, text, loses=leaf.change == "narrow")
        return leaf.convert

    def _constants(self, old: TypeAtPath, new: TypeAtPath, path: str) -> Convert:
        """Compile the conversion of values of one type; for enums, with the new names of constants."""
        self._constants_at.add(path)
        names = dict(self.choices.constants.get(path, {}))
        if old.constants and (unknown := [n for n in names if n not in old.constants]):
            return self.impossible(path, f"{old.type_name} has no constant {', '.join(unknown)}")
        if names:
            self.add_step(
                path, "constants", ", ".join(f"{a} becomes {b}" for a, b in names.items()), loses=self._is_key
            )
        if not new.constants:
            return constants_of(names) if names else same
        gone = [n for n in old.constants if names.get(n, n) not in new.constants]
        if gone:
            self.add_step(
                path,
                "constants",
                f"{new.type_name} has no constant {', '.join(gone)}: such values are refused",
                loses=True,
            )
        elif not old.constants:
            self.add_step(
                path, "narrow", f"{old.type_name} narrows to {new.type_name}: other text is refused", loses=True
            )
        return constants_of(names) if names else same

    def _with_ttl(self, old: TypeAtPath, value: TypeAtPath, path: str) -> Convert:
        access = self.choices.last_access_ms
        if access is None:
            return self.impossible(path, NO_ACCESS)
        self.add_step(path, "add", f"values get the last access {access}")
        convert = self._any(old, value, path)
        stamp = pa.scalar(access * 1000, type=pa.timestamp("us", tz="UTC"))
        return lambda array: pa.StructArray.from_arrays(
            [pa.repeat(stamp, len(array)), convert(array)], names=["last_access", "value"]
        )

    def _list(self, old: TypeAtPath, new: TypeAtPath, a: LogicalType, b: LogicalType, path: str) -> Convert:
        was_set, becomes_set = is_set(old), is_set(new)
        if becomes_set and not was_set:
            self.add_step(path, "narrow", "a list becomes a set: elements that are equal become one", loses=True)
        before = len(self.steps)
        convert = self._any(old.part(0, a), new.part(0, b), f"{path}.element")
        may_join = becomes_set and was_set and any(step.loses for step in self.steps[before:])

        def lists(array: pa.Array) -> pa.Array:
            counts, elements = list_parts(_without_nulls(array))
            converted = convert(elements)
            if may_join:
                check_distinct(counts, converted)
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            return _spread_values(pa.ListArray.from_arrays(pa.array(offsets), converted), array)

        return lists

    def _map(self, old: TypeAtPath, new: TypeAtPath, path: str) -> Convert:
        assert isinstance(old.logical, MapType)
        assert isinstance(new.logical, MapType)
        outer, self._is_key = self._is_key, True
        before = len(self.steps)
        key = self._any(old.part(0, old.logical.key), new.part(0, new.logical.key), f"{path}.key")
        self._is_key = outer
        may_join = any(step.loses for step in self.steps[before:])
        value = self._any(old.part(1, old.logical.value), new.part(1, new.logical.value), f"{path}.value")

        def maps(array: pa.Array) -> pa.Array:
            counts, keys, values = map_parts(_without_nulls(array))
            converted = key(keys)
            if may_join:
                check_distinct(counts, converted)
            entries = pa.StructArray.from_arrays([converted, value(values)], names=["key", "value"])
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            return _spread_values(pa.ListArray.from_arrays(pa.array(offsets), entries), array)

        return maps

    def _struct(self, old: TypeAtPath, new: TypeAtPath, path: str) -> Convert:
        assert isinstance(old.logical, StructType)
        assert isinstance(new.logical, StructType)
        before = {f.name: f.type for f in old.logical.fields}
        sources = {f.name: self._source(f.name, old, new, path) for f in new.logical.fields}
        if unmapped := self._unmapped(old, new, path):
            for name, text in unmapped.items():
                self.impossible(f"{path}.{name}", text, asks=True)
            return same
        self._check_positions(old, new, sources, path)
        makers = {f.name: self._field(f, sources[f.name], before, old, new, path) for f in new.logical.fields}
        for name in before:
            if name not in sources.values() and name != KIND_FIELD:
                self._dropped(name, old, path)

        def structs(array: pa.Array) -> pa.Array:
            present = _without_nulls(array)
            fields = _fields(present, old)
            columns = []
            for name, make in makers.items():
                try:
                    columns.append(make(fields, len(present)))
                except StatetoolError as error:
                    raise error.inside(name) from error.__cause__
            converted = pa.StructArray.from_arrays(columns, names=list(makers)) if columns else present
            return _spread_values(converted, array)

        return structs

    def _source(self, name: str, old: TypeAtPath, new: TypeAtPath, path: str) -> str | None:
        """Return the old name of a field, ``None`` if the field is added."""
        assert isinstance(old.logical, StructType)
        # The kind of a row is not one of its columns.
        before = [f.name for f in old.logical.fields if f.name != KIND_FIELD or name == KIND_FIELD]
        field_path = f"{path}.{name}"
        self._fields.add(field_path)
        if field_path in self.choices.fills:
            return None
        if (chosen := self.choices.sources.get(field_path)) is not None:
            return chosen
        if name in before:
            return name
        if isinstance(new.serializer, RowDataSerializer) and (derived := self._derived.get(name)) is not None:
            return derived.source
        if isinstance(new.logical, StructType) and _positional(old) and _positional(new):
            index = [f.name for f in new.logical.fields].index(name)
            return before[index] if index < len(before) and name != KIND_FIELD else None
        return next((a for a in new.aliases(name) if a in before), None)

    def _unmapped(self, old: TypeAtPath, new: TypeAtPath, path: str) -> dict[str, str]:
        """Return the reasons why fields of a SQL row cannot be converted, by field, if only the user knows the mapping of fields.

        Fields of aggregate buffers have no names. If their types or their number changed, the query changed: COUNT and SUM may have
        swapped places.
        """
        before, after = _sql_fields(old), _sql_fields(new)
        unnamed = _positional(old), _positional(new)
        chosen = {*self.choices.sources, *self.choices.fills}
        if not before and all(unnamed):
            text = "the fields have no names, and their types change places: give the old field of each with --rename"
            return {name: text for name in _exchanged(old, new) if f"{path}.{name}" not in chosen}
        if not before or not after or not any(unnamed) or (all(unnamed) and before == after):
            return {}
        known, wanted = (", ".join(f"{name} {kind}" for name, kind in of.items()) for of in (before, after))
        # The same for all fields, so that a list of steps has it once.
        reason = (
            f"the fields of a SQL row without names changed from ({known}) to ({wanted}): pass the compiled plans of both jobs "
            f"(--columns-from-plan-a and -b), the old field with --rename, or a value with --fill"
        )
        return {name: reason for name in after if f"{path}.{name}" not in chosen}

    def _check_positions(self, old: TypeAtPath, new: TypeAtPath, sources: dict[str, str | None], path: str) -> None:
        """Add a step if numbered fields are matched by position and their count differs: other pairs of fields may be intended."""
        if not (_positional(old) and _positional(new)) or len(_names(old)) == len(_names(new)):
            return
        chosen = {*self.choices.sources, *self.choices.fills}
        if all(f"{path}.{name}" in chosen for name in sources if name != KIND_FIELD):
            return
        pairs = ", ".join(f"{name} from {source}" for name, source in sources.items() if source is not None)
        text = f"the fields have no names, and {len(_names(old))} become {len(_names(new))}: {pairs}"
        self.add_step(path, "positions", text, loses=True)

    def _field(
        self,
        field: Field,
        source: str | None,
        before: dict[str, LogicalType],
        old: TypeAtPath,
        new: TypeAtPath,
        path: str,
    ) -> _Make:
        field_path = f"{path}.{field.name}"
        if source is None:
            return self._added(field, old, new, field_path)
        if source not in before:
            self.impossible(field_path, f"the old type has no field {source!r}, only {', '.join(before)}")
            return lambda fields, n: pa.nulls(n)
        derived = self._derived.get(field.name) if field_path not in self.choices.sources else None
        if source != field.name and derived is not None:
            return self._computed(field, derived, before, old, new, field_path)
        if source != field.name and not (_positional(old) and _positional(new)):
            self.add_step(field_path, "rename", f"renamed from {source}")
        if field.name == _class_field(new) and source == _class_field(old):
            return self._classes(old, new, source)
        convert = self._any(old.field(source, before[source]), new.field(field.name, field.type), field_path)
        if isinstance(new.serializer, PojoSerializer) and field.name in new.serializer.primitives:
            return lambda fields, n: _checked_primitives(convert(fields[source]))
        return lambda fields, n: convert(fields[source])

    def _computed(
        self,
        field: Field,
        derived: DerivedColumn,
        before: dict[str, LogicalType],
        old: TypeAtPath,
        new: TypeAtPath,
        field_path: str,
    ) -> _Make:
        """Compile the computation of a column of an accumulator from other ones."""
        kind = before[derived.source]
        sides = old.field(derived.source, kind), new.field(field.name, field.type)
        before_steps = len(self.steps)
        convert = self._any(*sides, field_path)
        text, differs = derived.text, kind != field.type
        if differs:
            text += f". Sums of {sides[0].type_name} and {sides[1].type_name} differ if one overflowed or was rounded"
        loses = differs and not any(step.loses for step in self.steps[before_steps:])
        self.add_step(field_path, "rewrite", text, loses=loses)

        def compute(fields: dict[str, pa.Array], n: int) -> pa.Array:
            values = convert(fields[derived.source])
            if derived.zero_for_null:
                return pc.fill_null(values, pa.scalar(0).cast(values.type))
            if derived.null_if_zero is None:
                return values
            is_zero = pc.equal(fields[derived.null_if_zero], 0)
            return pc.if_else(is_zero, pa.scalar(None, values.type), values)

        return compute

    def _added(self, field: Field, old: TypeAtPath, new: TypeAtPath, field_path: str) -> _Make:
        value = self.choices.fills.get(field_path, NO_DEFAULT)
        if field.name == KIND_FIELD:
            value = "+I"
        elif field.name == _class_field(new) and isinstance(new.serializer, PojoSerializer):
            value = new.serializer.pojo_class
        elif value is NO_DEFAULT:
            value = self._default(field, new)
        if value is NO_DEFAULT:
            text = _NO_VALUE
            if self._of_accumulator:
                text = f"new aggregate: {missing_source(field.name, _names(old))}. {_GIVE}"
            self.impossible(field_path, text, asks=True)
            return lambda fields, n: pa.nulls(n)
        try:
            make = fill_default(value, arrow_type(field.type, EXACT))
        except EncodeError as error:
            self.impossible(field_path, error.message)
            return lambda fields, n: pa.nulls(n)
        self.add_step(field_path, "add", f"new field, set to {'null' if value is None else repr(value)}")
        return lambda fields, n: make(n)

    def _default(self, field: Field, new: TypeAtPath) -> Any:
        """Return the value of an added field, ``NO_DEFAULT`` if the user must choose it."""
        if isinstance(new.serializer, RowDataSerializer) and not self._fills_columns:
            return _VIEW if new.serializer.is_view(field.name) else NO_DEFAULT
        return new.default(field.name, field.type)

    def _dropped(self, name: str, old: TypeAtPath, path: str) -> None:
        field_path = f"{path}.{name}"
        if self._is_key:
            self.impossible(field_path, "dropped from a key, so two keys may become equal")
        elif name == _class_field(old):
            self.impossible(
                field_path, "the new type does not describe subclasses, so their values cannot be converted"
            )
        else:
            self.add_step(field_path, "drop", "its values are dropped", loses=True)

    def _classes(self, old: TypeAtPath, new: TypeAtPath, source: str) -> _Make:
        """Compile the names of the values' classes: the POJO class may be renamed."""
        assert isinstance(old.serializer, PojoSerializer)
        assert isinstance(new.serializer, PojoSerializer)
        convert = constants_of({old.serializer.pojo_class: new.serializer.pojo_class})
        return lambda fields, n: convert(fields[source])


def _checked_primitives(array: pa.Array) -> pa.Array:
    if array.null_count:
        raise EncodeError("a null for a primitive field")
    return array


def check_distinct(counts: npt.NDArray[np.int64], keys: pa.Array) -> None:
    """Refuse maps and sets with two equal keys after the conversion, of which Java would keep one. ``counts`` (int64[n]) has their sizes.

    Raises
    ------
    EncodeError
        Two keys are equal. The error names the key.
    """
    texts, start = [repr(key) for key in keys.to_pylist()], 0
    for count in counts.tolist():
        own_texts = texts[start : start + count]
        start += count
        if len(set(own_texts)) < count:
            raise EncodeError(
                f"two keys of a map, or elements of a set, become equal: {next(t for t in own_texts if own_texts.count(t) > 1)}"
            )


def _class_field(side: TypeAtPath) -> str | None:
    serializer = side.serializer
    return serializer.class_field if isinstance(serializer, PojoSerializer) and serializer.open else None


def is_set(side: TypeAtPath) -> bool:
    """Return True for sets, which are shown as lists."""
    s = side.serializer
    return type(s).__name__ == "SetSerializer" or (isinstance(s, KryoSerializer) and s.type_class.endswith("Set"))


def _names(side: TypeAtPath) -> list[str]:
    assert isinstance(side.logical, StructType)
    return [f.name for f in side.logical.fields if f.name != KIND_FIELD]


def _exchanged(old: TypeAtPath, new: TypeAtPath) -> list[str]:
    """Return the fields of two types without names that have the type which another field had, if all types still exist."""
    before, after = ([(n, str(side.field(n, kind).type_name)) for n, kind in _numbered(side)] for side in (old, new))
    kinds = [sorted(kind for _, kind in side) for side in (before, after)]
    if kinds[0] != kinds[1]:
        return []
    return [name for (_, was), (name, now) in zip(before, after, strict=True) if was != now]


def _numbered(side: TypeAtPath) -> list[tuple[str, LogicalType]]:
    assert isinstance(side.logical, StructType)
    return [(f.name, f.type) for f in side.logical.fields if f.name != KIND_FIELD]


def _positional(side: TypeAtPath) -> bool:
    names = _names(side)
    return names in ([f"f{i}" for i in range(len(names))], [f"_{i + 1}" for i in range(len(names))])


def _sql_fields(side: TypeAtPath) -> dict[str, str]:
    """Return the types of the fields of a SQL row, empty for other types."""
    row = side.serializer
    if not isinstance(row, RowDataSerializer):
        return {}
    return {name: str(replace(kind, nullable=True)) for name, kind in zip(row.names, row.sql, strict=True)}


def _with_timestamps(side: TypeAtPath) -> TypeAtPath:
    """Return the type of values with a time to live as a struct of last access and value."""
    assert isinstance(side.logical, TtlType)
    return TypeAtPath(StructType.of(last_access=_ACCESS, value=side.logical.value), side.serializer)


def _record(side: TypeAtPath) -> TypeAtPath:
    """Return the values of records of a stream."""
    assert isinstance(side.logical, StructType)
    return side.field("value", next(f.type for f in side.logical.fields if f.name == "value"))


def _inner(side: TypeAtPath, value: LogicalType) -> TypeAtPath:
    return _with_timestamps(side).field("value", value)


def _fields(array: pa.Array, side: TypeAtPath) -> dict[str, pa.Array]:
    """Return the columns of a struct's fields by name. Timestamps keep their nanoseconds."""
    logical = side.logical
    assert isinstance(logical, StructType)
    kind_field = bool(logical.fields) and logical.fields[-1].name == KIND_FIELD
    columns = struct_parts(array, logical, kind_field=kind_field)
    return {f.name: c for f, c in zip(logical.fields, columns, strict=True)}


def _without_nulls(array: pa.Array) -> pa.Array:
    return array.filter(array.is_valid()) if array.null_count else array


def _spread_values(converted: pa.Array, array: pa.Array) -> pa.Array:
    """Insert the nulls of ``array`` into the converted values."""
    if not array.null_count:
        return converted
    valid = is_valid(array)
    index = pa.array(np.cumsum(valid) - 1, mask=~valid)
    return converted.take(index)
