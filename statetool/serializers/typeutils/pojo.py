"""POJOs and Java records: u8 flags, and data that depends on the flag.

1 null. 2 exactly the class: for each field, bool is null and the value. 4 another subclass: utf class name and a complete value of its
serializer. 8 a registered subclass: u8 tag and a complete value of its serializer.
Snapshot version 2: utf class and three optional maps (fields, registered and other subclasses).
Follows ``PojoSerializer`` and ``PojoSerializerSnapshotData``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from statetool.errors import EncodeError, StatetoolError, UndescribedClassError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Op, PerRecord, Pojo
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader, read_serializer_stream
from statetool.serializers.typeutils.composite import check_last, inside, sequence
from statetool.serializers.typeutils.java_types import class_snapshot
from statetool.serializers.typeutils.optional_map import OptionalEntry, read_optional_map, write_optional_map
from statetool.serializers.typeutils.renewal import renewed_serializer
from statetool.types import Field, LogicalType, Scalar, StructType
from statetool.types.declared import ClassDeclaration, TypeContext, skeleton
from statetool.types.java import PRIMITIVES

#: Name of the column with the class of a value.
CLASS_FIELD: Final = "_class"
_NULL, _EXACT, _SUBCLASS, _TAGGED = 1, 2, 4, 8


class PojoSerializer(Serializer):
    """Struct of the fields in wire order; a class with subclasses adds their fields (nullable) and ``_class``."""

    nullable = True
    #: The user's declaration, if the class is a subclass that the snapshot omits.
    declared: ClassDeclaration | None = None
    #: Fields of the job's class that cannot be null, if its jar is known.
    primitives: frozenset[str] = frozenset()
    #: Raises an error if the job's class cannot create an object with the values of fields that were read.
    construct: Callable[[Mapping[str, Any]], None] | None = None

    def __init__(
        self,
        name: str,
        version: int,
        pojo_class: str,
        maps: tuple[tuple[OptionalEntry, ...], ...],
        fields: tuple[tuple[str, Serializer], ...],
        registered: tuple[tuple[str, Serializer], ...],
        others: tuple[tuple[str, Serializer], ...],
        added: tuple[tuple[str, Serializer], ...] = (),
    ) -> None:
        super().__init__(name, version)
        self.pojo_class = pojo_class
        self._maps = maps
        self.fields = fields
        self.registered = registered
        # A snapshot lists them in the order in which its subtask first saw them. Columns have one order for all subtasks.
        self.others = tuple(sorted((*others, *added), key=lambda part: part[0]))
        #: Other subclasses that the user declared and the snapshot does not describe.
        self.undescribed = frozenset(n for n, _ in added)
        #: Name of the column with the class, if the hierarchy is open.
        self.class_field = CLASS_FIELD
        self._settle_columns()

    def replace_fields(self, fields: Mapping[str, Serializer]) -> None:
        self.fields = tuple((name, fields.get(name, part)) for name, part in self.fields)
        self._settle_columns()

    def _settle_columns(self) -> None:
        self._others = dict(self.others)
        self._framed_only = any(part.needs_frame for _, part in self.children())
        self._columns = self._merged_columns()
        self.class_field = CLASS_FIELD
        while self.class_field in self._columns:
            self.class_field = f"_{self.class_field}"

    def add_subclasses(self, other: PojoSerializer) -> bool:
        """Add subclasses from another subtask's snapshot of the same class; call ``settle`` afterwards.

        Returns
        -------
        bool
            True if subclasses were added.
        """
        known_names = {n for n, _ in (*self.registered, *self.others)} - self.undescribed
        added = [(n, s) for n, s in other.others if n not in known_names | other.undescribed]
        added_names = {n for n, _ in added}
        # Descriptions in a snapshot take precedence over the user's declarations.
        self.others = (*((n, s) for n, s in self.others if n not in added_names), *added)
        self.undescribed -= added_names
        if self._maps:
            fields, registered, others = self._maps
            self._maps = (fields, registered, (*others, *(e for e in other._maps[2] if e.name in added_names)))
        return bool(added)

    def finalize(self, *, changed: bool) -> bool:
        """Sort the subclasses, so that their order does not depend on the subtask that saw them first, and rebuild the columns.

        Parameters
        ----------
        changed
            This class got new subclasses, or the snapshot of a nested one was rewritten.

        Returns
        -------
        bool
            True if the snapshot was rewritten.
        """
        self.others = tuple(sorted(self.others, key=lambda part: part[0]))
        self._settle_columns()
        if not self._maps:
            return False
        names = [entry.name for entry in self._maps[2]]
        rewritten = changed or names != sorted(names)
        if rewritten:
            parts = (self.fields, self.registered, self.others)
            self._maps = tuple(_with_snapshots(m, dict(p)) for m, p in zip(self._maps, parts, strict=True))
        return rewritten

    @property
    def type_name(self) -> str:
        return f"POJO {self.pojo_class}"

    def declarations(self) -> tuple[ClassDeclaration, ...]:
        own = () if self.declared is None else (self.declared,)
        return (*own, *super().declarations())

    def children(self) -> tuple[tuple[str, Serializer], ...]:
        return (*self.fields, *self.registered, *self.others)

    @property
    def needs_frame(self) -> bool:
        return self._framed_only

    @property
    def open(self) -> bool:
        """Return True if values of subclasses may occur."""
        return bool(self.registered or self.others)

    def _merged_columns(self) -> dict[str, LogicalType]:
        """Return the columns by name: fields of the class, then those of subclasses. A name with two types is qualified by its class."""
        columns = {n: s.logical for n, s in self.fields}
        for cls, s in (*self.registered, *self.others):
            for n, t in _subclass_columns(s).items():
                if columns.setdefault(n, t) != t:
                    columns[f"{cls}.{n}"] = t
        return columns

    @property
    def logical(self) -> LogicalType:
        fields = [Field(n, t) for n, t in self._columns.items()]
        if self.open:
            fields.append(Field(self.class_field, Scalar("string")))
        return StructType(tuple(fields))

    def decode(self, c: Cursor) -> tuple[Any, ...] | None:
        flags = c.u1()
        if not c.strict:
            # Java looks at single bits; an object without any of them keeps its defaults.
            flags = next((bit for bit in (_NULL, _SUBCLASS, _TAGGED, _EXACT) if flags & bit), 0)
            if not flags:
                return self._row(self.pojo_class, {})
        if flags == _NULL:
            return None
        if flags == _EXACT:
            return self._exact(c)
        if flags == _SUBCLASS:
            start = c.pos
            cls = c.utf()
            subclass = self._others.get(cls)
            if subclass is None:
                error = UndescribedClassError(
                    f"a value of {cls}, a subclass of {self.pojo_class} that the snapshot does not describe",
                    hint=f'{skeleton(cls)}, and extends=["{self.pojo_class}"]',
                )
                error.bases = frozenset((self.pojo_class,))
                error.java_class = cls
                raise error.at(offset=c.base + start)
            return self._sub_row(cls, subclass, c)
        if flags == _TAGGED:
            tag = c.u1()
            if tag >= len(self.registered):
                raise c.fail(f"tag {tag} of {len(self.registered)} registered subclasses", pos=c.pos - 1)
            return self._sub_row(*self.registered[tag], c)
        raise c.fail(f"flags {flags:#04x} of a POJO are not 1, 2, 4 or 8", pos=c.pos - 1)

    def _exact(self, c: Cursor) -> tuple[Any, ...]:
        values: list[Any] = []
        last = len(self.fields) - 1
        name = ""
        try:
            for name, part in self.fields:
                if c.bool():
                    if not c.strict and name in self.primitives:
                        raise c.fail("a null for a primitive field", pos=c.pos - 1)
                    values.append(None)
                else:
                    check_last(c, part, last=len(values) == last)
                    values.append(part.decode(c))
        except StatetoolError as error:
            raise error.inside(name) from error.__cause__
        if self.construct is not None and not c.strict:
            self.construct(dict(zip((n for n, _ in self.fields), values, strict=True)))
        if not self.open:
            return tuple(values)
        # The fields of the class are the first columns.
        return (*values, *[None] * (len(self._columns) - len(values)), self.pojo_class)

    def _row(self, cls: str, values: dict[str, Any]) -> tuple[Any, ...]:
        row = tuple(values.get(n) for n in self._columns)
        return (*row, cls) if self.open else row

    def _sub_row(self, cls: str, serializer: Serializer, c: Cursor) -> tuple[Any, ...]:
        start = c.pos
        with inside(cls):
            value = serializer.decode(c)
        if value is None:
            raise c.fail(f"a null after the name of its class {cls}", pos=start)
        if not isinstance(serializer, PojoSerializer):
            return self._row(cls, {self._name_for(cls, "value", serializer.logical): value})
        columns = serializer._columns
        inner = value[-1] if serializer.open else cls
        return self._row(
            inner, {self._name_for(cls, n, t): v for (n, t), v in zip(columns.items(), value, strict=False)}
        )

    def _name_for(self, cls: str, name: str, logical: LogicalType) -> str:
        return name if self._columns.get(name) == logical else f"{cls}.{name}"

    def encode(self, out: Output, value: Any) -> None:
        if value is None:
            out.u1(_NULL)
            return
        sequence(value, f"POJO {self.pojo_class}", len(self._columns) + self.open)
        row = dict(zip(self._columns, value, strict=False))
        cls = value[-1] if self.open else self.pojo_class
        if cls == self.pojo_class:
            out.u1(_EXACT)
            for name, part in self.fields:
                with inside(name):
                    present = row[name] is not None or part.none_is_value
                    out.bool(not present)
                    if present:
                        part.encode(out, row[name])
            return
        for tag, (name, part) in enumerate(self.registered):
            if name == cls:
                out.u1(_TAGGED)
                out.u1(tag)
                self._encode_sub(out, cls, part, row)
                return
        subclass = self._others.get(cls)
        if subclass is None:
            raise EncodeError(f"{cls!r} is not {self.pojo_class} nor a subclass that the snapshot describes")
        out.u1(_SUBCLASS)
        out.utf(cls)
        self._encode_sub(out, cls, subclass, row)

    def _encode_sub(self, out: Output, cls: str, serializer: Serializer, row: dict[str, Any]) -> None:
        with inside(cls):
            if isinstance(serializer, PojoSerializer):
                values = [row[self._name_for(cls, n, t)] for n, t in serializer._columns.items()]
                serializer.encode(out, (*values, cls) if serializer.open else tuple(values))
            elif (value := row[self._name_for(cls, "value", serializer.logical)]) is None:
                raise EncodeError(f"a null in the place of a {cls}")
            else:
                serializer.encode(out, value)

    def program(self) -> Op:
        if self.open or self.needs_frame or any(part.none_is_value for _, part in self.fields):
            return PerRecord(self.decode)
        return Pojo(tuple(n for n, _ in self.fields), tuple(s.program() for _, s in self.fields))

    def write_payload(self, out: Output) -> None:
        out.utf(self.pojo_class)
        for entries in self._maps:
            write_optional_map(out, entries)


def _with_snapshots(entries: tuple[OptionalEntry, ...], parts: dict[str, Serializer]) -> tuple[OptionalEntry, ...]:
    """Return the entries with the snapshots of ``parts``, in their order."""
    rewritten = []
    for entry in entries:
        if entry.value is not None and not isinstance(parts[entry.name], OpaqueSerializer):
            out = Output()
            parts[entry.name].write_snapshot(out)
            entry = replace(entry, value=bytes(out))
        rewritten.append(entry)
    order = {name: i for i, name in enumerate(parts)}
    return tuple(sorted(rewritten, key=lambda e: order[e.name]))


def _subclass_columns(serializer: Serializer) -> dict[str, LogicalType]:
    if isinstance(serializer, PojoSerializer):
        return serializer._columns
    return {"value": serializer.logical}


def _read_entries(reader: SnapshotReader, entries: tuple[OptionalEntry, ...]) -> tuple[tuple[str, Serializer], ...]:
    parts: list[tuple[str, Serializer]] = []
    for entry in entries:
        if entry.value is None:
            # Flink lost this serializer when it wrote the snapshot. Only values that need it cannot be read.
            parts.append((entry.name, OpaqueSerializer(b"", f"the snapshot has no serializer of {entry.name!r}")))
            continue
        inner = Cursor(entry.value, base=entry.value_at)
        try:
            serializer = reader.snapshot(inner)
            inner.expect_end(f"the serializer of {entry.name!r}")
        except UnknownSerializerError as error:
            opaque = OpaqueSerializer(entry.value, str(error.message))
            opaque.types = reader.types
            serializer = opaque
        parts.append((entry.name, serializer))
    return tuple(parts)


def _read_pojo(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    pojo_class = c.utf()
    maps = tuple(read_optional_map(c) for _ in range(3))
    if reader.types.renewed:
        former = PojoSerializer(name, version, pojo_class, maps, _read_entries(reader, maps[0]), (), ())
        if (renewed := renewed_serializer(reader, pojo_class, former)) is not None:
            return renewed
    fields, registered, others = (_read_entries(reader, m) for m in maps)
    added = _declared_subclasses(reader, pojo_class, {n for n, _ in (*registered, *others)})
    fields = _with_declared_types(reader.types, pojo_class, fields)
    if reader.types.tried:
        # The job has the classes of its jar, whether its snapshot describes them or not.
        others, added = (*others, *added), ()
    pojo = PojoSerializer(name, version, pojo_class, maps, fields, registered, others, added)
    if (known := reader.types.find(pojo_class)) is not None:
        pojo.primitives = frozenset(n for n, kind in known.fields if kind.name in PRIMITIVES)
    return pojo


def _declared_subclasses(
    reader: SnapshotReader, pojo_class: str, described: set[str]
) -> tuple[tuple[str, Serializer], ...]:
    """Return the subclasses that the user declared and the snapshot does not describe."""
    types = reader.types
    declarations = [d for d in types.subclasses(pojo_class) if d.name not in described and d.name not in types.inside]
    parts = []
    for d in declarations:
        inner = replace(reader, types=replace(types, inside=(*types.inside, d.name)))
        parts.append((d, inner.snapshot(Cursor(class_snapshot(d, types)))))
    for d, serializer in parts:
        if isinstance(serializer, PojoSerializer):
            serializer.declared = d
    return tuple((d.name, serializer) for d, serializer in parts)


def _with_declared_types(
    types: TypeContext, pojo_class: str, fields: tuple[tuple[str, Serializer], ...]
) -> tuple[tuple[str, Serializer], ...]:
    """Give fields written by Kryo the types that the user declared: a snapshot says ``List``, without an element type."""
    declared = types.find(pojo_class)
    kinds = dict(declared.fields) if declared is not None else {}
    return tuple((n, s.with_java_type(kinds[n]) if n in kinds else s) for n, s in fields)


def _read_legacy(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    """Read the form of Flink 1.7 and older: tables of offsets for fields and subclasses, then one buffer to which all offsets refer."""
    pojo_class = c.utf()
    tables = [[(c.i4(), c.i4()) for _ in range(c.count("entries", at_least=8))] for _ in range(3)]
    body = c.slice(c.i4(), "serializers")
    size = body.left
    entry = Cursor(body.data, body.pos, body.end, base=body.base)
    maps: list[tuple[tuple[str, Serializer], ...]] = []
    for offsets in tables:
        parts = []
        for at_serializer, at_snapshot in offsets:
            if not entry.pos - body.pos <= at_serializer <= at_snapshot <= size:
                raise body.fail(f"offsets {at_serializer} and {at_snapshot} are outside of {size} bytes, or overlap")
            part_name = entry.utf()
            if entry.pos - body.pos != at_serializer:
                raise entry.fail(f"the serializer of {part_name!r} is not where its offset {at_serializer} says")
            read_serializer_stream(entry)
            if entry.pos - body.pos != at_snapshot:
                raise entry.fail(f"the snapshot of {part_name!r} is not where its offset {at_snapshot} says")
            parts.append((part_name, reader.proxied(entry)))
        maps.append(tuple(parts))
    entry.expect_end("the last serializer")
    fields, registered, others = maps
    added = _declared_subclasses(reader, pojo_class, {n for n, _ in (*registered, *others)})
    fields = _with_declared_types(reader.types, pojo_class, fields)
    return PojoSerializer(name, version, pojo_class, (), fields, registered, others, added)


SNAPSHOTS: Final = {
    "PojoSerializerSnapshot": SnapshotClass(_read_pojo, (2,)),
    "PojoSerializer$PojoSerializerConfigSnapshot": SnapshotClass(_read_pojo, (2,), _read_legacy, (1,)),
}
