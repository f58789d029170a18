"""Classes of objects in the first values of a state, which no type tells: those of a field of type ``Object``, or in Java serialization."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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
from statetool.tables.kinds.elements import ElementSplit, raw_elements
from statetool.tables.request import ScanRequest
from statetool.tables.scan import scan_table
from statetool.types.declared import TypeContext

MOST_BYTES: Final = 64 << 20
#: Classes in values, and their descriptions in Java streams.
Objects = tuple[tuple[str, JavaClass | None], ...]


@dataclass(frozen=True, slots=True)
class Occurring:
    """Classes of objects in the first values of a state that the new job writes in another way.

    Attributes
    ----------
    more
        Whether the state has more values, with classes that nobody knows, and jars that differ.
    """

    objects: Objects = ()
    more: bool = False


def changed_objects(
    operator: OperatorInventory, scope: Literal["keyed", "operator"], meta: StateMetaInfo, new: TypeContext
) -> Occurring:
    """Return the classes of objects in the first 64 MiB of a state that the new job writes in another way.

    Classes that the new job lacks are not among them: nothing converts them, and the check names them.
    """
    old = operator.types
    parts = _object_parts(meta)
    if not parts or (old.source, old.classes) == (new.source, new.classes):
        return Occurring()
    sample = _Sample(MOST_BYTES)
    # A file that cannot be read cannot be converted either, which the conversion reports.
    try:
        read = _read_entries if scope == "keyed" else _read_elements
        read(operator, meta.name, sample)
    except NO_FINDING:
        raise
    except StatetoolError:
        pass
    by_java = java_objects.JavaClasses(new.source, Choices(), (), is_key=False)
    found: dict[str, JavaClass | None] = {
        n: c for n, c in sample.classes.items() if by_java.plan(c) is not None and has_class(new, n)
    }
    names = sample.names - sample.classes.keys()
    found |= {n: None for n in names if has_class(new, n) and differs(old.find(n), new.find(n))}
    return Occurring(tuple(sorted(found.items())), sample.left < 0)


def _object_parts(meta: StateMetaInfo) -> list[KryoSerializer]:
    parts = [p for s in meta.serializers.values() for p in all_parts(s) if isinstance(p, KryoSerializer)]
    return [p for p in parts if p.holds_objects]


@dataclass(slots=True)
class _Sample:
    """What the first values have: classes of objects, and those of Java streams; ``left`` bytes may still be read."""

    left: int
    names: set[str] = field(default_factory=set)
    classes: dict[str, JavaClass] = field(default_factory=dict)

    @contextmanager
    def watched(self, meta: StateMetaInfo) -> Iterator[None]:
        """Note the classes of all objects that are read meanwhile."""
        _watch(meta, self.names)
        try:
            yield
        finally:
            _watch(meta, None)
            for part in _object_parts(meta):
                self.classes |= part.java_classes


def _watch(meta: StateMetaInfo, names: set[str] | None) -> None:
    for part in _object_parts(meta):
        if part.instance is not None:
            part.instance.on_object = None if names is None else lambda obj: classes_in(obj, names)


def _read_entries(operator: OperatorInventory, name: str, sample: _Sample) -> None:
    for stored in operator.keyed.managed:
        for source in stored.sources(operator.keyed.context, groups=None, target_bytes=TARGET_BYTES):
            header = source.header()
            number = next((i for i, m in enumerate(header.states) if m.name == name), -1)
            if number < 0:
                continue
            meta = header.states[number]
            with sample.watched(meta):
                for batch in source.batches(EntryRequest(states=(name,))):
                    if sample.left < 0:
                        return
                    _decode_entries(meta, header.key, batch.of_state(number))
                    sample.left -= int((batch.value_end - batch.key).sum())


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
            # A value that cannot be read cannot be converted either, which the conversion reports.
            with suppress(StatetoolError):
                serializer.decode(Cursor(bytes(data[first:stop])))


def _read_elements(operator: OperatorInventory, name: str, sample: _Sample) -> None:
    meta = operator.operator_states[name]
    table = next(t for t, place in operator.state_tables.items() if place == ("operator", name))
    key = meta.serializers.get("KEY_SERIALIZER") if meta.kind == "broadcast" else None
    with sample.watched(meta):
        for split in scan_table(operator, ScanRequest.of(table)).splits:
            for raw in raw_elements(split) if isinstance(split, ElementSplit) else ():
                if sample.left < 0:
                    return
                with suppress(StatetoolError):
                    c = Cursor(raw)
                    for _ in range(1 if key is None else c.i4()):
                        if key is not None:
                            key.decode(c)
                        meta.value.decode(c)
                sample.left -= len(raw)
