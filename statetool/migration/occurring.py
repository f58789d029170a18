"""Classes of objects in the first values of a state, which no type tells: those of a field of type ``Object``, or in Java serialization."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Literal

from statetool.columns.values import StateLayout, split_joined
from statetool.compatibility.classes.job_classes import has_class
from statetool.entries.form import EntryRequest
from statetool.entries.keys import split_keys
from statetool.entries.sizes import TARGET_BYTES
from statetool.errors import NO_FINDING, StatetoolError
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaClass
from statetool.migration import java_objects
from statetool.migration.choices import Choices
from statetool.migration.objects import classes_in, differs
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.elements import raw_elements
from statetool.tables.request import ScanRequest
from statetool.tables.scan import scan_table
from statetool.tables.splits import ElementSplit
from statetool.types.declared import TypeContext

MOST_BYTES: Final = 64 << 20
#: Classes in values, and their descriptions in Java streams.
Objects = tuple[tuple[str, JavaClass | None], ...]


def changed_objects(
    operator: OperatorInventory, scope: Literal["keyed", "operator"], meta: StateMetaInfo, new: TypeContext
) -> Objects:
    """Return the classes of objects in the first 64 MiB of a state that the new job writes in another way.

    Classes that the new job lacks are not among them: nothing converts them, and the check names them.
    """
    old = operator.types
    parts = _object_parts(meta)
    if not parts or (old.source, old.classes) == (new.source, new.classes):
        return ()
    names, classes = _classes(operator, scope, meta.name)
    by_java = java_objects.JavaClasses(new.source, Choices(), (), is_key=False)
    found: dict[str, JavaClass | None] = {
        n: c for n, c in classes.items() if by_java.plan(c) is not None and has_class(new, n)
    }
    found |= {n: None for n in names - classes.keys() if has_class(new, n) and differs(old.find(n), new.find(n))}
    return tuple(sorted(found.items()))


def _object_parts(meta: StateMetaInfo) -> list[KryoSerializer]:
    parts = [p for s in meta.serializers.values() for p in all_parts(s) if isinstance(p, KryoSerializer)]
    return [p for p in parts if p.holds_objects]


def _classes(
    operator: OperatorInventory, scope: Literal["keyed", "operator"], name: str
) -> tuple[set[str], Mapping[str, JavaClass]]:
    names: set[str] = set()
    classes: dict[str, JavaClass] = {}
    # What cannot be read cannot be converted either, which the conversion reports.
    with suppress(StatetoolError):
        read = _read_entries if scope == "keyed" else _read_elements
        try:
            for meta in read(operator, name, names):
                for part in _object_parts(meta):
                    classes |= part.java_classes
        except NO_FINDING:
            raise
    return names, classes


def _watch(meta: StateMetaInfo, names: set[str] | None) -> None:
    for part in _object_parts(meta):
        if part.instance is not None:
            part.instance.on_object = None if names is None else lambda obj: classes_in(obj, names)


def _read_entries(operator: OperatorInventory, name: str, names: set[str]) -> Iterator[StateMetaInfo]:
    left = MOST_BYTES
    for stored in operator.keyed.managed:
        for source in stored.sources(operator.keyed.context, groups=None, target_bytes=TARGET_BYTES):
            header = source.header()
            number = next((i for i, m in enumerate(header.states) if m.name == name), -1)
            if number < 0:
                continue
            meta = header.states[number]
            _watch(meta, names)
            try:
                for batch in source.batches(EntryRequest(states=(name,))):
                    entries = batch.of_state(number)
                    _decode_entries(meta, header.key, entries)
                    left -= int((batch.value_end - batch.key).sum())
                    if left < 0:
                        return
            finally:
                _watch(meta, None)
                yield meta


def _decode_entries(meta: StateMetaInfo, key: Serializer, entries: Any) -> None:
    layout = StateLayout(meta)
    data, pos, end = entries.data, entries.value, entries.value_end
    if layout.kind == "list":
        _, pos, end = split_joined(layout.element, data, pos, end)
    elif layout.kind == "map":
        assert layout.user_key is not None
        split = split_keys(entries, key, meta)
        _decode(layout.user_key, data, split.user_key, entries.key_end)
        has_value = data[pos] == 0
        pos, end = pos[has_value] + 1, end[has_value]
    _decode(layout.element, data, pos, end)


def _decode(serializer: Serializer, data: Any, pos: Any, end: Any) -> None:
    if any(isinstance(p, KryoSerializer) and p.holds_objects for p in all_parts(serializer)):
        for first, stop in zip(pos.tolist(), end.tolist(), strict=True):
            serializer.decode(Cursor(bytes(data[first:stop])))


def _read_elements(operator: OperatorInventory, name: str, names: set[str]) -> Iterator[StateMetaInfo]:
    meta = operator.operator_states[name]
    table = next(t for t, place in operator.state_tables.items() if place == ("operator", name))
    key = meta.serializers.get("KEY_SERIALIZER") if meta.kind == "broadcast" else None
    left = MOST_BYTES
    _watch(meta, names)
    try:
        for split in scan_table(operator, ScanRequest.of(table)).splits:
            for raw in raw_elements(split) if isinstance(split, ElementSplit) else ():
                c = Cursor(raw)
                for _ in range(1 if key is None else c.i4()):
                    if key is not None:
                        key.decode(c)
                    meta.value.decode(c)
                left -= len(raw)
                if left < 0:
                    return
    finally:
        _watch(meta, None)
        yield meta
