"""Trial of the new job's classes: every old value is read with them, as Flink reads it.

Kryo stores no fields, and no header describes a POJO subclass that the job met later: Flink reads such values with the classes that it finds.
An error of the trial is an error of the restore. A value that becomes another one restores, and is wrong.

Flink reads keyed values from their frames, so that bytes left over do not matter to it, except in the native format of the heap backend,
where values follow one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from statetool.compatibility.classes.creation import Creations, holds_collections
from statetool.compatibility.classes.header_classes import loaded_classes, named_classes
from statetool.compatibility.classes.java_streams import resolve_java_class
from statetool.compatibility.classes.job_classes import element_class, has_class, is_provided
from statetool.compatibility.classes.key_hashes import resolve_hash_codes
from statetool.compatibility.classes.rules import resolve_class
from statetool.compatibility.rules.messages import resolve_defaults
from statetool.compatibility.verdicts import CheckWarning, Level, Remedy, Resolution, combine, migration_remedy
from statetool.errors import NO_FINDING, StatetoolError, UnknownSerializerError, sentence
from statetool.io.cursor import Cursor, LenientCursor
from statetool.io.output import Output
from statetool.kernels.values.program import Graph
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.kryo.graph import CyclicValueError
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.kryo.typed import OtherClassError
from statetool.serializers.typeutils.pojo import CLASS_FIELD, PojoSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope
from statetool.types import ListType, LogicalType, MapType, StructType, TtlType
from statetool.types.declared import TypeContext

_REMEDY: Final = migration_remedy("Write a copy of the snapshot in which the values have the classes of the new job.")
_MAX_SHOWN: Final = 80
_NULL_FLAG: Final = 1


@dataclass(slots=True)
class _Trial:
    """Result of reading the values of one part of a state: the first finding of each kind."""

    found: dict[str, Resolution] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the new job cannot read a value."""
        return "failed" in self.found

    def add(self, kind: str, text: str) -> None:
        """Add a finding of a kind of :data:`_FINDINGS`, unless there is one."""
        if kind not in self.found:
            self.found[kind] = _FINDINGS[kind](text)

    def resolution(self) -> Resolution:
        """Return the resolution of the values that were read."""
        found = (self.found[kind] for kind in _FINDINGS if kind in self.found)
        return combine((Resolution(Level.AS_IS), *found))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Serializers of one part of the entries of a state: of the old job, and of the new one, and how the part is framed."""

    old: Serializer
    new: Serializer
    is_key: bool = False
    is_list: bool = False
    #: Whether bytes after the value belong to the next one.
    unframed: bool = False
    trial: _Trial = field(default_factory=_Trial)
    #: Whether values have to be read one by one, because the new job may not create their objects.
    one_by_one: bool = False

    def read(self, raw: bytes, new_classes: NewClasses) -> None:
        """Read a value with both serializers."""
        trial = self.trial
        try:
            after, left = _decode(self.new, raw, is_list=self.is_list)
        except CyclicValueError as error:
            self._compare_cyclic(raw, error, new_classes)
            return
        except StatetoolError as error:
            self._fail(error, new_classes)
            return
        if left and self.unframed:
            trial.add("failed", f"The classes of the new job read {left} bytes less than the old ones wrote.")
        try:
            before, _ = _decode(self.old, raw, is_list=self.is_list)
        except StatetoolError as error:
            trial.add("uncompared", _text_of(error))
            return
        shown = _without_lone_classes(
            _named(before, self.old.logical, is_list=self.is_list),
            _named(after, self.new.logical, is_list=self.is_list),
        )
        if shown[0] != shown[1] or left:
            trial.add("changed", _difference(*shown))
        if self.is_key and "rewritten" not in trial.found:
            out = Output()
            self.new.encode(out, after[0])
            if bytes(out) != raw:
                trial.add("rewritten", _short(shown[0]))

    def _compare_cyclic(self, raw: bytes, error: StatetoolError, new_classes: NewClasses) -> None:
        """Compare an object that contains itself, which Flink reads and no column shows: it is the same if its classes are."""
        try:
            _decode(self.old, raw, is_list=self.is_list)
        except CyclicValueError:
            if new_classes.old.kryo != new_classes.new.kryo or self.old.declarations() != self.new.declarations():
                self.trial.add("unknown", _text_of(error))
        except StatetoolError:
            self.trial.add("unknown", _text_of(error))
        else:
            self._fail(error, new_classes)

    def _fail(self, error: StatetoolError, new_classes: NewClasses) -> None:
        if isinstance(error, OtherClassError) and error.is_element:
            # Java reads the elements of a collection without their declared type.
            text = f"{_text_of(error)}, and code that takes it for one fails"
            self.trial.add("changed", text)
            return
        if isinstance(error, UnknownSerializerError):
            if error.java_class and new_classes.is_gone(error.java_class):
                self.trial.add("gone", error.java_class)
            elif error.java_class and new_classes.became_abstract(
                error.java_class, is_of_value=not isinstance(error, _UnknownTypeError)
            ):
                self.trial.add("failed", f"The class {error.java_class} of a value became abstract.")
            else:
                self.trial.add("unknown", _text_of(error))
        else:
            self.trial.add("failed", f"Flink cannot read a value with the new classes: {_text_of(error)}.")


class _UnknownTypeError(UnknownSerializerError):
    """No value of the type of a state can be read, whatever its own class is."""


@dataclass(frozen=True, slots=True)
class NewClasses:
    """Classes of the old job and of the new one, from their jars, and the backend of the new job."""

    old: TypeContext
    new: TypeContext
    backend: str = "unknown"

    @property
    def creations(self) -> Creations:
        """Objects that the new job creates."""
        return Creations(self.old, self.new)

    def reader(self, old: Serializer, new: Serializer, **more: Any) -> _Reader:
        """Return the reader of values of which the new job creates objects."""
        trial = more.pop("trial", None) or _Trial()
        one_by_one = self.creations.watch(new, lambda text: trial.add("changed", text))
        return _Reader(old, new, trial=trial, one_by_one=one_by_one, **more)

    def became_abstract(self, name: str, *, is_of_value: bool) -> bool:
        """Return True if the new job cannot create objects of a class, and the old one can.

        Without the old jar, only the class of a value was certainly not abstract: the type of a state may always have been.
        """
        old, new = self.old.source, self.new.source
        if new is None or not new.is_abstract(name):
            return False
        return is_of_value if old is None else not old.is_abstract(name)

    def is_gone(self, name: str) -> bool:
        """Return True if the new job lacks a class that the jar of the old one has."""
        return not has_class(self.new, name) and self.old.source is not None and has_class(self.old, name)

    def resolve_header(self, serializers: Iterable[Serializer]) -> Resolution:
        """Return the resolution of the serializers of a state that the new job does not register: Flink creates them from the header all the same."""
        parts = (part for s in serializers for part in _described_parts(s))
        names = [name for part in parts for name in loaded_classes(part) if name]
        gone = next((name for name in names if self.is_gone(name)), None)
        if gone is None:
            lacks = next((n for n in names if self.old.source is None and not has_class(self.new, n)), None)
            return Resolution(Level.AS_IS) if lacks is None else _lacks(lacks)
        text = f"The new job does not have the class {gone}, and Flink reads the serializers of all states: it fails, although the state is not registered."
        return Resolution.because(Level.INCOMPATIBLE, text, f"Keep {gone} in the job's jar, or drop the state.")

    def resolutions(self, old: OperatorInventory) -> dict[tuple[Scope, str], Resolution]:
        """Return the resolutions of an operator's states, by scope and name. The key has the name ``""``.

        Reads the values of all states with POJOs or Kryo classes, in bounded memory.
        """
        types = replace(self.new, renewed=False, python=old.types.python)
        trial = _OperatorTrial(old, old.with_types(types), self)
        found: dict[tuple[Scope, str], list[Resolution]] = {}
        for place, serializers in _serializers(old):
            found.setdefault(place, []).extend(
                r for s in serializers for r in (*self._of_classes(s, is_key=not place[1]), *self._of_defaults(s))
            )
        for place, serializers in _serializers(trial.new):
            found.setdefault(place, []).extend(r for s in serializers for r in self._of_own_code(s))
        if old.listed_keyed:
            found.setdefault(("keyed", ""), []).append(
                resolve_hash_codes(
                    old, types, self._is_same if self.old.source else None, compares=self.backend in ("heap", "unknown")
                )
            )
        for place, resolution in trial.run():
            found.setdefault(place, []).append(resolution)
        return {place: combine(resolutions) for place, resolutions in found.items()}

    def _of_classes(self, serializer: Serializer, *, is_key: bool) -> Iterator[Resolution]:
        """Yield the resolutions of classes that a serializer names and that the new job lacks, or writes in another way."""
        for part in _described_parts(serializer):
            yield from resolve_class(part, self.old, self.new, is_key=is_key)
            for name in named_classes(part):
                if self.is_gone(name):
                    yield _gone(name)
                elif self.old.source is None and not has_class(self.new, name) and self._may_be_gone(part, name):
                    yield _lacks(name)

    def _of_defaults(self, serializer: Serializer) -> Iterator[Resolution]:
        """Yield the resolutions of Protobuf messages whose fields have other defaults in the new job."""
        for part in _described_parts(serializer):
            if isinstance(part, KryoSerializer):
                yield from resolve_defaults(part.type_class, self.old, self.new)

    def _of_own_code(self, serializer: Serializer) -> Iterator[Resolution]:
        """Yield the resolutions of classes that write themselves, so that their values stay bytes."""
        for part in _described_parts(serializer):
            if not isinstance(part, KryoSerializer) or not part.missing_declaration_hint:
                continue
            names = [part.type_class, *(s for n, s in part.registrations if s and n == part.type_class)]
            if self.old.kryo == self.new.kryo and all(map(self._is_same, names)):
                continue
            reason = part.context.reason(part.type_class) or "its fields are not known"
            text = f"Whether the new job reads the values of {part.type_class} is unknown: {reason}."
            warning = CheckWarning(kind="may_change", message=text, in_reason=True)
            yield Resolution.by_run(text, warning)

    def with_java_classes(self, reader: _Reader) -> Resolution:
        """Return the resolution of values, and of the classes that Java serialization wrote in them."""
        parts = [p for s in (reader.old, reader.new) for p in all_parts(s) if isinstance(p, KryoSerializer)]
        classes = {name: cls for p in parts for name, cls in p.java_classes.items()}
        constants = {c for p in parts for c in p.java_constants}
        found = [reader.trial.resolution()]
        for name in sorted(classes):
            if self.is_gone(name):
                found.append(_gone(element_class(name)))
            elif not is_provided(name) and not name.startswith("["):
                of_enum = [constant for cls, constant in constants if cls == name]
                new = None if self.new.source is None else self.new.source.serializable(name)
                found.append(resolve_java_class(classes[name], of_enum, new, is_same=self._is_same(name)))
        return combine(found)

    def _is_same(self, name: str) -> bool:
        """Return True if both jars have the same class, or neither has to."""
        if is_provided(name):
            return True
        old, new = self.old.source, self.new.source
        return old is not None and new is not None and old.is_same(name, new)

    def _may_be_gone(self, part: Serializer, name: str) -> bool:
        """Return True unless the snapshot of the new job shows that it has a class."""
        return self.new.renewed or (isinstance(part, KryoSerializer) and name != part.type_class)


def _gone(name: str) -> Resolution:
    text = f"The new job does not have the class {name}."
    return Resolution.because(
        Level.INCOMPATIBLE, text, f"Keep {name} in the job's jar, or pass the jar that has it with another --jar-b."
    )


def _failed(text: str) -> Resolution:
    return Resolution.because(Level.INCOMPATIBLE, text, _REMEDY)


def _changed(value: str) -> Resolution:
    text = f"The classes of the new job read other values: {value}."
    warning = CheckWarning(kind="may_change", message=text, remedy=_REMEDY)
    return Resolution.because(Level.AS_IS, text, _REMEDY, warning)


def _rewritten(key: str) -> Resolution:
    text = f"The new job writes a key with other bytes, so RocksDB does not find the values of old keys: {key}."
    return Resolution.because(Level.AS_IS, text, None, CheckWarning(kind="loses", message=text))


def _uncompared(reason: str) -> Resolution:
    text = f"The classes of the new job read all values. Whether the values are the same is unknown: {reason}."
    remedy = "Pass the jar of the old job with --jar-a."
    warning = CheckWarning(kind="may_change", message=f"{text} {remedy}")
    return Resolution.because(Level.AS_IS, text, remedy, warning)


#: Kinds of findings, in the order in which they are told.
_FINDINGS: Final[Mapping[str, Callable[[str], Resolution]]] = {
    "gone": _gone,
    "failed": _failed,
    "unknown": Resolution.by_run,
    "changed": _changed,
    "rewritten": _rewritten,
    "uncompared": _uncompared,
}


def _lacks(name: str) -> Resolution:
    text = f"The jar of the new job does not have the class {name}."
    return Resolution.because(Level.UNKNOWN, text, "Pass all jars of the new job with --jar-b.")


def _described_parts(serializer: Serializer) -> Iterator[Serializer]:
    """Yield a serializer and its parts, without the subclasses that the snapshot does not describe: no value may be one."""
    yield serializer
    undescribed = serializer.undescribed if isinstance(serializer, PojoSerializer) else ()
    for step, child in serializer.children():
        if step not in undescribed:
            yield from _described_parts(child)


@dataclass(frozen=True, slots=True)
class UserClass:
    """A class that only the job's jar has, and the state whose values may have it."""

    place: str
    name: str


def user_class(operator: OperatorInventory) -> UserClass | None:
    """Return a user class that a serializer of an operator names, ``None`` if there is none.

    Other classes of values that Kryo wrote are found when the values are read.
    """
    for (_, state), serializers in _serializers(operator):
        place = f"{operator.label}.{state}" if state else f"the key of {operator.label}"
        for part in (p for s in serializers for p in _described_parts(s)):
            if isinstance(part, OpaqueSerializer):
                return UserClass(place, "a type that cannot be decoded")
            if names := [n for n in named_classes(part) if not is_provided(n)]:
                return UserClass(place, names[0])
    return None


def _serializers(operator: OperatorInventory) -> Iterator[tuple[tuple[Scope, str], tuple[Serializer, ...]]]:
    """Yield the serializers of each state, and of the key, which has the name ``""``."""
    for name, (_, meta) in operator.listed_keyed.items():
        yield ("keyed", name), tuple(meta.serializers.values())
    for name, meta in operator.listed_elements.items():
        yield ("operator", name), tuple(meta.serializers.values())
    if operator.listed_keyed and operator.keyed.key is not None:
        yield ("keyed", ""), (operator.keyed.key,)


class _OperatorTrial:
    """Trial of one operator, read with the old classes and with the new ones."""

    def __init__(self, old: OperatorInventory, new: OperatorInventory, classes: NewClasses) -> None:
        self._old = old
        self.new = new
        self._classes = classes

    def run(self) -> Iterator[tuple[tuple[Scope, str], Resolution]]:
        """Read all values, and yield the resolution of each state."""
        places = {place: s for place, s in _serializers(self._old) if any(map(_needs_trial, s))}
        keyed = {name for scope, name in places if scope == "keyed"}
        for scope, names, read in (
            ("keyed", keyed, self._keyed),
            ("operator", {name for scope, name in places if scope == "operator"}, self._elements),
        ):
            if not names:
                continue
            try:
                yield from read(names)
            except NO_FINDING:
                raise
            except StatetoolError as error:
                text = f"Not all values can be read: {_text_of(error)}."
                resolution = Resolution.by_run(text, remedy=Remedy(sentence(error.hint)) if error.hint else None)
                yield from (((scope, name), resolution) for name in sorted(names))  # type: ignore[misc]

    def _keyed(self, names: set[str]) -> Iterator[tuple[tuple[Scope, str], Resolution]]:
        from statetool.entries.selection import StateSelection
        from statetool.entries.sizes import TARGET_BYTES

        readers: dict[tuple[str, str], _Reader] = {}
        for stored_old, stored_new in zip(self._old.keyed.managed, self.new.keyed.managed, strict=True):
            unframed = not stored_old.canonical and not stored_old.database
            sources = stored_old.sources(self._old.keyed.context, groups=None, target_bytes=TARGET_BYTES)
            others = stored_new.sources(self.new.keyed.context, groups=None, target_bytes=TARGET_BYTES)
            for source, other in zip(sources, others, strict=True):
                old, new = source.header(), other.header()
                selection = StateSelection(old, None if "" in names else names)
                for batch in source.batches():
                    for number, meta in selection.metas.items():
                        if meta.kind == "timers":
                            continue
                        entries, keys = selection.split(batch, number)
                        parts = _parts_of(meta, new.states[number], old.key, new.key, entries, keys)
                        for role, (before, after, start, end, is_list) in parts.items():
                            place = ("", "key") if role == "key" else (meta.name, role)
                            if place[0] in names and (_needs_trial(before)):
                                reader = readers.get(place)
                                if reader is None:
                                    reader = readers[place] = self._classes.reader(
                                        before,
                                        after,
                                        is_key=role != "value",
                                        is_list=is_list,
                                        unframed=unframed and role == "value",
                                    )
                                _read_many(reader, entries.data, start, end, self._classes)
        for (name, role), reader in readers.items():
            resolution = self._classes.with_java_classes(reader)
            yield ("keyed", name), resolution if role in ("value", "key") else resolution.inside(role)

    def _elements(self, names: set[str]) -> Iterator[tuple[tuple[Scope, str], Resolution]]:
        from statetool.tables.kinds.elements import ElementSplit, raw_elements
        from statetool.tables.request import ScanRequest
        from statetool.tables.scan import scan_table

        tables = {name: table for table, (scope, name) in self._old.state_tables.items() if scope == "operator"}
        for name in sorted(names):
            old, new = self._old.listed_elements[name], self.new.listed_elements[name]
            reader = self._classes.reader(old.value, new.value)
            key = (
                self._classes.reader(
                    old.serializers["KEY_SERIALIZER"], new.serializers["KEY_SERIALIZER"], trial=reader.trial
                )
                if old.kind == "broadcast"
                else None
            )
            for split in scan_table(self._old, ScanRequest.of(tables[name])).splits:
                assert isinstance(split, ElementSplit)
                for raw in raw_elements(split):
                    if key is not None:
                        _read_broadcast(key, reader, raw, self._classes)
                    else:
                        reader.read(raw, self._classes)
            yield ("operator", name), self._classes.with_java_classes(reader)


def _needs_trial(serializer: Serializer) -> bool:
    return any(isinstance(part, KryoSerializer | PojoSerializer) for part in all_parts(serializer))


def _is_settled(old: Serializer, new: Serializer) -> bool:
    """Return True if both jobs have the same classes for all values that can occur."""
    parts = list(zip(all_parts(old), all_parts(new), strict=False))
    return (
        old.declarations() == new.declarations()
        and all(
            (
                isinstance(a, KryoSerializer)
                and isinstance(b, KryoSerializer)
                and a.context.kryo == b.context.kryo
                and isinstance(a.program(), Graph)
            )
            or not isinstance(a, KryoSerializer | PojoSerializer)
            for a, b in parts
        )
        and not any(isinstance(b, KryoSerializer) and holds_collections(b) for _, b in parts)
    )


def _parts_of(
    meta: Any, new_meta: Any, key: Serializer, new_key: Serializer, entries: Any, keys: Any
) -> dict[str, Any]:
    """Return the parts of entries: both serializers, and the bounds of each part."""
    from statetool.columns.values import StateLayout

    old, new = StateLayout(meta), StateLayout(new_meta)
    start, end = entries.value, entries.value_end
    if old.kind == "map" and old.user_key is not None:
        present = entries.data[start] != _NULL_FLAG
        start, end = start[present] + 1, end[present]
    parts = {
        "key": (key, new_key, keys.key, keys.key_end, False),
        "value": (old.element, new.element, start, end, old.kind == "list" and not old.framed_bytes),
    }
    if old.user_key is not None and new.user_key is not None:
        parts["map key"] = (old.user_key, new.user_key, keys.user_key, entries.key_end, False)
    return parts


def _read_many(reader: _Reader, data: Any, start: Any, end: Any, classes: NewClasses) -> None:
    """Read values: all at once, or one by one if some differ."""
    if record := unreadable_record(reader.new):
        text = f"Flink cannot read values with the new classes: Kryo 2 has no serializer for the record {record}."
        reader.trial.add("failed", text)
    if reader.trial.failed or (not reader.one_by_one and _is_settled(reader.old, reader.new)):
        return
    if not (reader.one_by_one or reader.is_key or reader.is_list) and _all_equal(reader, data, start, end):
        return
    for first, stop in zip(start.tolist(), end.tolist(), strict=True):
        reader.read(bytes(data[first:stop]), classes)
        if reader.trial.failed:
            return


def _all_equal(reader: _Reader, data: Any, start: Any, end: Any) -> bool:
    from statetool.analysis.verification.entry_check import EXACT
    from statetool.columns.values import decode_framed

    with suppress(StatetoolError):
        before = decode_framed(reader.old, data, start, end, EXACT)
        after = decode_framed(reader.new, data, start, end, EXACT)
        if before.type == after.type and before.equals(after):
            return not (_has_new_primitives(reader.old, reader.new) and _has_nulls(after))
    return False


def _has_new_primitives(old: Serializer, new: Serializer) -> bool:
    """Return True if a class of the new job has primitive fields that the old one is not known to have."""
    known = {p.pojo_class: p.primitives for p in all_parts(old) if isinstance(p, PojoSerializer)}
    pojos = (p for p in all_parts(new) if isinstance(p, PojoSerializer))
    return any(p.primitives - known.get(p.pojo_class, frozenset()) for p in pojos)


def _has_nulls(array: Any) -> bool:
    """Return True if an Arrow array, or an array inside it, has a null."""
    if array.null_count:
        return True
    if hasattr(array, "field") and array.type.num_fields:
        inner = (
            [array.field(i) for i in range(array.type.num_fields)]
            if hasattr(array, "flatten") and str(array.type).startswith("struct")
            else []
        )
        if not inner:
            inner = [array.keys, array.items] if hasattr(array, "keys") else [array.values]
        return any(map(_has_nulls, inner))
    return (
        any(map(_has_nulls, [array.keys, array.items]))
        if hasattr(array, "keys")
        else hasattr(array, "values") and _has_nulls(array.values)
    )


def _read_broadcast(key: _Reader, value: _Reader, raw: bytes, classes: NewClasses) -> None:
    """Read the entries of a broadcast state: i4 count, keys and values. A value that is not read to its end makes the next key fail."""
    c = Cursor(raw)
    for _ in range(c.i4()):
        for part in (key, value):
            start = c.pos
            part.old.skip(c)
            replace(part, unframed=True, trial=value.trial).read(raw[start : c.pos], classes)


def _decode(serializer: Serializer, raw: bytes, *, is_list: bool) -> tuple[list[Any], int]:
    """Return a value, or the elements of a list, and the number of bytes left over, read as leniently as in Java."""
    hint = serializer.missing_declaration_hint
    if hint:
        kryo = next(p for p in all_parts(serializer) if isinstance(p, KryoSerializer) and p.missing_declaration_hint)
        reason = kryo.context.reason(kryo.type_class) or "its fields are not known"
        error = _UnknownTypeError(f"values of {kryo.type_class} cannot be read: {reason}")
        error.java_class = kryo.type_class
        raise error
    c = LenientCursor(raw)
    values = [serializer.decode(c)]
    while is_list and c.left:
        # Flink does not check the separator.
        c.u1()
        values.append(serializer.decode(c))
    return values, c.left


def unreadable_record(serializer: Serializer) -> str:
    """Return a record that Kryo 2 would have to read, empty if there is none."""
    kryo_2 = (p for p in all_parts(serializer) if isinstance(p, KryoSerializer) and p.context.kryo == 2)
    return next((d.name for part in kryo_2 for d in part.declarations() if d.record), "")


def _named(values: list[Any], logical: LogicalType, *, is_list: bool) -> Any:
    """Return values with the names of their fields."""
    shown = [_by_name(value, logical) for value in values]
    return shown if is_list else shown[0]


def _by_name(value: Any, logical: LogicalType) -> Any:
    if value is None:
        return None
    match logical:
        case StructType():
            pairs = zip(logical.fields, value, strict=False)
            return {f.name: _by_name(v, f.type) for f, v in pairs if v is not None}
        case ListType():
            return [_by_name(v, logical.element) for v in value]
        case MapType():
            return [(_by_name(k, logical.key), _by_name(v, logical.value)) for k, v in value]
        case TtlType():
            return value[0], _by_name(value[1], logical.value)
    # NaN is equal to itself here.
    return "NaN" if value != value else value


def difference_of(old: Serializer, raw: bytes, new: Serializer, written: bytes) -> str:
    """Return the first difference between a value and the same value as the new job writes it; empty if there is none.

    Fields that only one side has do not count: rules of the serializers name them.

    Raises
    ------
    StatetoolError
        One of them cannot be decoded.
    """
    before, after = (
        _named(_decode(s, data, is_list=False)[0], s.logical, is_list=False) for s, data in ((old, raw), (new, written))
    )
    before, after = _of_both(before, after), _of_both(after, before)
    return "" if before == after else _difference(before, after)


def _of_both(value: Any, other: Any) -> Any:
    """Return a value without fields that the other one does not have."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {name: _of_both(v, other[name]) for name, v in value.items() if name in other}
    if isinstance(value, list | tuple) and isinstance(other, list | tuple) and len(value) == len(other):
        return [_of_both(v, o) for v, o in zip(value, other, strict=True)]
    return value


def _without_lone_classes(before: Any, after: Any) -> tuple[Any, Any]:
    """Return values without the names of classes that only one of them has: whether a type may have subclasses is a matter of its jar."""
    if isinstance(before, dict) and isinstance(after, dict):
        both = {n: _without_lone_classes(before[n], after[n]) for n in before.keys() & after.keys()}
        sides = ({n: both[n][i] if n in both else v for n, v in side.items()} for i, side in enumerate((before, after)))
        one, other = ({n: v for n, v in side.items() if n != CLASS_FIELD or n in both} for side in sides)
        return one, other
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [_without_lone_classes(a, b) for a, b in zip(before, after, strict=True)]
        return [a for a, _ in pairs], [b for _, b in pairs]
    return before, after


def _difference(before: Any, after: Any, path: str = "") -> str:
    """Return the first difference of two values, as text."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            if before.get(name) != after.get(name):
                return _difference(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    place = f"{path}: " if path else ""
    return f"{place}{_short(before)} becomes {_short(after)}"


def _short(value: Any) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _text_of(error: StatetoolError) -> str:
    path = error.where.type_path
    return f"{path}: {error.message}" if path else error.message
