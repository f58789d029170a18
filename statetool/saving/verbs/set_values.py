"""Plan to set single values of one key, and to add and remove its timers. Only entries of the key that change are written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from statetool.columns.values import StateLayout, split_list
from statetool.entries.form import error_context
from statetool.entries.keys import split_keys
from statetool.errors import (
    DecodeError,
    EncodeError,
    MissingKeyError,
    OptionError,
    StatetoolError,
    UnknownNameError,
    UnsupportedError,
    several,
    suggest,
)
from statetool.formats.heap.layout import composite_key
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.entries.layout import encode_time, join_elements
from statetool.saving.streams.filters import AddedEntry, KeyFilter, ReplaceFilter, key_bounds
from statetool.saving.verbs.value_paths import (
    REMOVED,
    ItemStep,
    Step,
    ValuePath,
    check_texts,
    list_index,
    pairs_of,
    part_at,
    plain_of,
    replace_at,
)
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import timer_names
from statetool.snapshot.views import (
    MERGED,
    NEEDED_TIMERS,
    WINDOWS,
    contents_of,
    has_window_timers,
    is_window,
    window_states,
)
from statetool.tables.keys.text import Key, show_key
from statetool.tables.scan import place_keys
from statetool.types import Scalar, StructType, TtlType
from statetool.types.display import display_value
from statetool.types.operators import OperatorRecord

Domain = Literal["event", "processing"]
_NOT_NULL, _NULL = b"\x00", b"\x01"
#: Type of the namespace of states without windows, and of global windows; it takes one byte.
_NO_NAMESPACE: Final = Scalar("null")
_VOID_BYTES: Final = 1
#: Namespaces that a message lists.
_LISTED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEdit:
    """A new value of a state, or of a part of it: a JSON value, or :data:`~statetool.saving.verbs.value_paths.REMOVED`."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerEdit:
    """A timer to add or to remove. The ``service`` is needed if the operator has several in this time domain."""

    domain: Domain
    timestamp_ms: int
    adds: bool
    service: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRow(OperatorRecord):
    """One change: the value at a path, or a timer, as text. ``None`` before or after means that there is none."""

    state: str
    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPlan:
    """The changes of one key's state, and the filter that makes them."""

    operator: str
    changes: tuple[SetRow, ...]
    filter: ReplaceFilter


def plan_set(
    operator: OperatorInventory,
    key: Key,
    values: Sequence[ValueEdit],
    timers: Sequence[TimerEdit],
    *,
    now_ms: int,
    new_key: bool = False,
    namespace: Any = None,
) -> SetPlan:
    """Plan to change the state of one key. Reads its key group.

    Parameters
    ----------
    now_ms
        Time of the last access of new values with a time to live.
    new_key
        Whether the key, or its namespace, may have no state yet.
    namespace
        The namespace of all states and timers to change, as a JSON value or as start and end of a window. ``None`` for states and timers
        without a namespace, and those of global windows.

    Raises
    ------
    UnknownNameError, OptionError
        A path does not exist or does not fit, the key has no state, or a timer exists already or does not exist.
    EncodeError
        The key or a value does not fit its type.
    UnsupportedError
        A value cannot be decoded, or would not keep its other parts.
    """
    if not values and not timers:
        raise OptionError(
            "nothing to set", hint="pass --set STATE.FIELD=VALUE, --remove, --add-timer or --remove-timer"
        )
    rows: list[SetRow] = []
    names = [n for n, (_, m) in operator.keyed_states.items() if m.kind != "timers"]
    paths = [ValuePath.parse(edit.path, names) for edit in values]
    entries = _KeyEntries.read(operator, key, {path.state for path in paths}, namespace, new_key=new_key)
    for edit, path in zip(values, paths, strict=True):
        try:
            before, after = _set_value(entries, path, edit.value, now_ms)
        except StatetoolError as error:
            raise error.at(operator=operator.label, state=path.state) from error.__cause__
        rows.append(SetRow(operator=operator.label, state=path.state, path=edit.path, before=before, after=after))
    for timer in timers:
        rows.append(_set_timer(operator, entries, timer))
    _check_windows_fire(operator, entries, timers)
    return SetPlan(operator=operator.label, changes=tuple(rows), filter=entries.filter())


@dataclass(slots=True)
class _KeyEntries:
    """Entries of one key: value by state and composite key (without key group), as stored and as changed.

    Of states, only those to change are in memory, and those that record merged windows. ``namespaces`` are the encoded namespaces of the
    key, by state.
    """

    operator: OperatorInventory
    key: bytes
    key_group: int
    stored: dict[str, dict[bytes, bytes]]
    namespaces: dict[str, dict[bytes, None]]
    namespace: Any
    new_key: bool
    changed: dict[str, dict[bytes, bytes]] = field(default_factory=dict)

    @classmethod
    def read(
        cls, operator: OperatorInventory, key: Key, states: Collection[str], namespace: Any, *, new_key: bool
    ) -> _KeyEntries:
        """Read the entries of a key. ``states`` are those to change."""
        (places,) = place_keys(operator, operator.keyed.needed_key(), [key], exact=True)
        encoded, groups = [raw for raw, _ in places], {group for _, group in places if group is not None}
        if any(group is None for _, group in places):
            groups = set(range(operator.state.max_parallelism))
        key_filter = KeyFilter(keys=frozenset(encoded), groups=frozenset(groups), keep=True)
        stored: dict[str, dict[bytes, bytes]] = {}
        namespaces: dict[str, dict[bytes, None]] = {}
        found: set[tuple[bytes, int]] = set()
        for source in operator.keyed.sources(groups=groups, raw=True):
            with error_context(source):
                header = source.header()
                for batch in source.batches():
                    own = key_filter.apply(header, batch)
                    start, end = key_bounds(header, own)
                    for i in distinct(own.data, start, end, own.group)[1].tolist():
                        found.add((own.data[start[i] : end[i]].tobytes(), int(own.group[i])))
                    for number in np.unique(own.state).tolist():
                        meta = header.states[number]
                        if _namespace_of(meta) is not None:
                            namespaces.setdefault(meta.name, {}).update(_namespaces(own.of_state(number), header, meta))
                        if meta.name in states or meta.kind == "timers" or meta.name in MERGED:
                            stored.setdefault(meta.name, {}).update(_pairs(own.of_state(number)))
        if len(found) > 1:
            raise OptionError(
                f"{len(found)} keys of operator {operator.label.display!r} equal {key!r}",
                hint="pass the key with its exact scale",
            )
        if not found and not new_key:
            raise MissingKeyError(
                f"operator {operator.label.display!r} has no key {show_key(key)}",
                hint="nothing was written. --new-key (new_key=True) adds state of a new key",
            )
        if not found and (len(groups) != 1 or len(encoded) != 1):
            raise UnsupportedError(f"the key group of the new key {key!r} is unknown: its hash code is user code")
        if not found:
            check_texts(decode(operator.keyed.needed_key(), encoded[0]))
        raw, group = next(iter(found)) if found else (encoded[0], next(iter(groups)))
        return cls(operator, raw, group, stored, namespaces, namespace, new_key)

    def head(self, meta: StateMetaInfo) -> bytes:
        """Return the key and namespace with which the entries of a state begin.

        Raises
        ------
        OptionError
            The state has a namespace and none was given, or the opposite, or the key does not have the namespace.
        """
        namespace = meta.namespace
        if namespace is None:
            raise UnsupportedError("the type of the state's namespace is unknown")
        raw = self.encode_namespace(f"state {meta.name!r}", namespace)
        merged = self._merged_windows()
        if merged is not None and meta.name in contents_of(
            {n: meta for n, (_, meta) in self.operator.keyed_states.items()}
        ):
            if raw not in merged:
                raise OptionError(
                    "the windows of the operator merge, so that none can be added",
                    hint=self._list_namespaces(namespace),
                )
            raw = merged[raw]
        return composite_key(self.key, raw, self.operator.keyed.needed_key(), namespace)

    def encode_namespace(self, what: str, namespace: Serializer) -> bytes:
        """Return the bytes of the given namespace. ``what`` is a state or timer service in messages.

        Raises
        ------
        OptionError
            As for :meth:`head`.
        EncodeError
            It does not have the type of the namespaces.
        """
        kind = "window" if is_window(namespace) else "namespace"
        if namespace.logical == _NO_NAMESPACE:
            if self.namespace is not None:
                raise OptionError(f"{what} has no {kind}", hint="change it in another run, without --namespace")
            return encode(namespace, None)
        if self.namespace is None:
            raise OptionError(
                f"{what} is stored per {kind}", hint=f"pass --namespace: {self._list_namespaces(namespace)}"
            )
        raw = encode(namespace, _plain_namespace(namespace, self.namespace))
        if not self.new_key and raw not in self._namespaces():
            raise OptionError(
                f"the key has no {kind} {_namespace_text(namespace, raw)}",
                hint=f"{self._list_namespaces(namespace)}. --new-key adds one",
            )
        return raw

    def _namespaces(self) -> dict[bytes, None]:
        """Return the namespaces of the key: merged windows instead of the windows that store their contents."""
        merged = self._merged_windows()
        found: dict[bytes, None] = dict.fromkeys(merged or ())
        contents = contents_of({n: meta for n, (_, meta) in self.operator.keyed_states.items()})
        for state, own in self.namespaces.items():
            if merged is None or state not in contents:
                found |= own
        return found

    def _list_namespaces(self, namespace: Serializer) -> str:
        """Return the first namespaces of the key as text."""
        own = [_namespace_text(namespace, raw) for raw in self._namespaces()]
        words = ", ".join(own[:_LISTED]) + (", ..." if len(own) > _LISTED else "")
        return f"the key has {words or 'none'} (type {namespace.type_name})"

    def _merged_windows(self) -> dict[bytes, bytes] | None:
        """Return the window that stores the contents of each merged window, ``None`` if windows do not merge."""
        names = [name for name in MERGED if name in self.operator.keyed_states]
        if not names or WINDOWS not in self.operator.views:
            return None
        _, meta = self.operator.keyed_states[names[0]]
        shape = StateLayout(meta)
        pairs: dict[bytes, bytes] = {}
        for composite, value in self.stored.get(names[0], {}).items():
            if shape.kind == "map":
                pairs[composite[len(self.key) + _VOID_BYTES :]] = value[1:]
                continue
            for pair in _elements(shape, value):
                c = Cursor(memoryview(pair))
                shape.element.children()[0][1].skip(c)
                pairs[pair[: c.pos]] = pair[c.pos :]
        return pairs

    @property
    def merges(self) -> bool:
        """Whether windows of the operator merge."""
        return self._merged_windows() is not None

    def has_window(self, meta: StateMetaInfo) -> bool:
        """Return True if a state has, or may have, entries of the given window that are not removed.

        The list of merged windows is not edited, so that these always stay.
        """
        if self.merges:
            return True
        if meta.name in self.changed:
            head = self.head(meta)
            return any(composite.startswith(head) for composite in self.changed[meta.name])
        if self.namespace is None or meta.namespace is None:
            return True
        raw = encode(meta.namespace, _plain_namespace(meta.namespace, self.namespace))
        return raw in self.namespaces.get(meta.name, {})

    def of(self, state: str) -> dict[bytes, bytes]:
        """Return the entries of a state, to be changed."""
        return self.changed.setdefault(state, dict(self.stored.get(state, {})))

    def filter(self) -> ReplaceFilter:
        """Return the filter that replaces the entries that differ."""
        removed: dict[str, frozenset[bytes]] = {}
        added: list[AddedEntry] = []
        for state, new in self.changed.items():
            old = self.stored.get(state, {})
            removed[state] = frozenset(key for key, value in old.items() if new.get(key) != value)
            added += [
                AddedEntry(state=state, key_group=self.key_group, key=key, value=value)
                for key, value in new.items()
                if old.get(key) != value
            ]
        return ReplaceFilter(removed=removed, added=tuple(added), groups=frozenset({self.key_group}))


def _pairs(batch: EntryBatch) -> Iterator[tuple[bytes, bytes]]:
    """Yield the composite key (without key group) and the value of each entry."""
    data = batch.data.tobytes()
    columns = (batch.key, batch.key_end, batch.value, batch.value_end)
    for key, key_end, value, value_end in zip(*(column.tolist() for column in columns), strict=True):
        yield data[key:key_end], data[value:value_end]


def _namespace_of(meta: StateMetaInfo) -> Serializer | None:
    """Return the type of a state's namespaces, ``None`` if it has no namespace."""
    namespace = dict(meta.value.children()).get("namespace") if meta.kind == "timers" else meta.namespace
    return None if namespace is None or namespace.logical == _NO_NAMESPACE else namespace


def _namespaces(batch: EntryBatch, header: KeyedHeader, meta: StateMetaInfo) -> dict[bytes, None]:
    """Return the distinct namespaces of the entries of one state, in order."""
    if meta.kind == "timers":
        start, end = key_bounds(header, batch)[1], batch.key_end
    else:
        parts = split_keys(batch, header.key, meta)
        start, end = parts.namespace, parts.namespace_end
    _, first = distinct(batch.data, start, end, np.zeros(len(start), dtype=np.int64))
    return {batch.data[start[i] : end[i]].tobytes(): None for i in first.tolist()}


def _plain_namespace(namespace: Serializer, value: Any) -> Any:
    """Return the plain value of a namespace: a JSON value, or the fields of a window in order."""
    logical = namespace.logical
    if isinstance(logical, StructType) and isinstance(value, list | tuple):
        names = [f.name for f in logical.fields]
        if len(names) != len(value):
            raise OptionError(f"a {namespace.type_name} has {len(names)} parts", hint=f"pass {','.join(names)}")
        value = dict(zip(names, value, strict=True))
    return plain_of(logical, value, now_ms=0)


def _namespace_text(namespace: Serializer, raw: bytes) -> str:
    value = decode(namespace, raw)
    if isinstance(namespace.logical, StructType) and is_window(namespace):
        return ",".join(map(str, value))
    return display_value(value, namespace.logical)


def _set_value(entries: _KeyEntries, path: ValuePath, value: Any, now_ms: int) -> tuple[str | None, str | None]:
    """Change a value, and return it before and after as text."""
    _, meta = entries.operator.keyed_states[path.state]
    shape = StateLayout(meta)
    if shape.framed_bytes or shape.packed is not None or isinstance(shape.element, OpaqueSerializer):
        raise UnsupportedError(
            f"values of type {meta.value.type_name} cannot be decoded",
            hint="pass the job's jar (--jar), or declare the class (--declare)",
        )
    own = entries.of(path.state)
    head = entries.head(meta)
    if shape.kind == "map" and shape.user_key is not None:
        return _set_in_map(shape, own, head, path.steps, value, now_ms)
    old = own.pop(head, None)
    if shape.kind == "list" and path.steps:
        parts = _elements(shape, old)
        before, after = _change_element(shape, parts, path.steps, value, now_ms)
        new = join_elements(parts) or None
    else:
        new = _whole_value(shape, old, path.steps, value, now_ms)
        before = _text_of(shape, old, path.steps)
        after = None if value is REMOVED else _text_of(shape, new, path.steps, appended=True)
    if new is not None:
        own[head] = new
    return before, after


def _whole_value(
    shape: StateLayout, old: bytes | None, steps: tuple[Step, ...], value: Any, now_ms: int
) -> bytes | None:
    """Return the bytes of a changed value, or of a new list; ``None`` if it is removed."""
    if value is REMOVED and not steps:
        return None
    if shape.kind != "list":
        return change_value(shape.element, old, steps, value, now_ms)
    if not isinstance(value, list):
        raise OptionError("a list state needs a JSON list", hint="for example [1, 2]")
    return join_elements(_new_elements(shape, old, value, now_ms)) or None


def _new_elements(shape: StateLayout, old: bytes | None, values: list[Any], now_ms: int) -> list[bytes]:
    """Return the elements of a new list. Those that the old list has keep their bytes, with the time of their last access."""
    unchanged: dict[bytes, list[bytes]] = {}
    for raw in reversed(_elements(shape, old)):
        unchanged.setdefault(_without_access(shape.element, decode(shape.element, raw)), []).append(raw)
    elements = []
    check_texts(values)
    for value in values:
        plain = plain_of(shape.element.logical, value, now_ms=now_ms)
        same = unchanged.get(_without_access(shape.element, plain))
        elements.append(same.pop() if same else encode(shape.element, plain))
    return elements


def _without_access(element: Serializer, plain: Any) -> bytes:
    """Return the bytes of a value whose last access is 0 if it has one."""
    has_access = isinstance(element.logical, TtlType) and plain is not None
    return encode(element, (0, plain[1]) if has_access else plain)


def _set_in_map(
    shape: StateLayout, own: dict[bytes, bytes], head: bytes, steps: tuple[Step, ...], value: Any, now_ms: int
) -> tuple[str | None, str | None]:
    assert shape.user_key is not None
    if not steps:
        stored = {composite: own.pop(composite) for composite in [c for c in own if c.startswith(head)]}
        pairs = [] if value is REMOVED else pairs_of(value)
        for key, item in pairs:
            raw = _map_key(shape.user_key, key)
            if head + raw in own:
                raise OptionError(f"the map has the key {key!r} twice")
            own[head + raw] = _map_value(shape.element, stored.get(head + raw), (), item, now_ms)
        return _count_text(len(stored)), _count_text(len(pairs))
    step = steps[0]
    if not isinstance(step, ItemStep):
        raise OptionError(f"a map has no field {step.name!r}", hint='write state["key"]')
    composite = head + encode(shape.user_key, plain_of(shape.user_key.logical, step.key, now_ms=now_ms))
    old = own.pop(composite, None)
    if old is None and len(steps) == 1 and value is not REMOVED:
        composite = head + _map_key(shape.user_key, step.key)
    if old is None and (len(steps) > 1 or value is REMOVED):
        raise UnknownNameError(
            f"the map has no key {step.text}", hint="run: statetool head PATH OPERATOR STATE --keys KEY"
        )
    before = None if old is None else _map_text(shape.element, old, steps[1:])
    if value is REMOVED and len(steps) == 1:
        return before, None
    own[composite] = _map_value(shape.element, old, steps[1:], value, now_ms)
    return before, None if value is REMOVED else _map_text(shape.element, own[composite], steps[1:], appended=True)


def _map_key(serializer: Serializer, key: Any) -> bytes:
    """Return the bytes of a new key of a map."""
    if key is None:
        raise EncodeError("a new map entry with a null key: tables cannot show maps with one", hint="pass another key")
    plain = plain_of(serializer.logical, key, now_ms=0)
    check_texts(plain)
    return encode(serializer, plain)


def _count_text(entries: int) -> str | None:
    return several(entries, "entry", "entries") if entries else None


def _map_value(element: Serializer, old: bytes | None, steps: tuple[Step, ...], value: Any, now_ms: int) -> bytes:
    if value is None and not steps:
        return _NULL
    previous = old[1:] if old is not None and old[:1] == _NOT_NULL else None
    return _NOT_NULL + change_value(element, previous, steps, value, now_ms)


def _change_element(
    shape: StateLayout, parts: list[bytes], steps: tuple[Step, ...], value: Any, now_ms: int
) -> tuple[str | None, str | None]:
    """Change one element in a list of encoded elements, and return it before and after as text."""
    step = steps[0]
    if not isinstance(step, ItemStep):
        raise OptionError(f"a list has no field {step.name!r}", hint="write state[0]")
    at = list_index(step, len(parts), appends=value is not REMOVED and len(steps) == 1)
    old = parts[at] if at < len(parts) else None
    removed = value is REMOVED and len(steps) == 1
    new = None if removed else change_value(shape.element, old, steps[1:], value, now_ms)
    parts[at : at + 1] = [] if new is None else [new]
    before = None if old is None else _shown(shape.element, old, steps[1:])
    return before, None if new is None or value is REMOVED else _shown(shape.element, new, steps[1:], appended=True)


def _elements(shape: StateLayout, raw: bytes | None) -> list[bytes]:
    if not raw:
        return []
    data = np.frombuffer(raw, dtype=np.uint8)
    _, starts, ends = split_list(shape, data, np.array([0]), np.array([len(raw)]))
    return [raw[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]


def change_value(element: Serializer, old: bytes | None, steps: tuple[Step, ...], value: Any, now_ms: int) -> bytes:
    """Return the bytes of a value of which the part at a path has changed.

    Raises
    ------
    OptionError, EncodeError
        The path or the new value does not fit the type.
    UnsupportedError
        Other parts of the value would not keep their bytes.
    """
    plain = None if old is None else decode(element, old)
    if steps and old is None:
        raise OptionError("the key has no value yet", hint="set the whole value")
    if steps and old is not None and encode(element, plain) != old:
        raise UnsupportedError(
            f"a value of {element.type_name} is not written back with the same bytes, so its other parts could change",
            hint="set the whole value",
        )
    if value is not REMOVED:
        check_texts(value)
    return encode(element, replace_at(element.logical, plain, steps, value, now_ms=now_ms))


def decode(serializer: Serializer, raw: bytes) -> Any:
    """Return the plain value of an encoded value.

    Raises
    ------
    DecodeError
        The bytes do not fit the serializer.
    """
    c = Cursor(memoryview(raw))
    value = serializer.decode(c)
    if c.left:
        raise DecodeError(f"{c.left} bytes follow a value of {serializer.type_name}")
    return value


def encode(serializer: Serializer, value: Any) -> bytes:
    """Return the bytes of a plain value."""
    out = Output()
    serializer.encode(out, value)
    return bytes(out)


def _text_of(shape: StateLayout, raw: bytes | None, steps: tuple[Step, ...], *, appended: bool = False) -> str | None:
    if raw is None:
        return None
    if shape.kind == "list":
        parts = [_shown(shape.element, part, ()) or "null" for part in _elements(shape, raw)]
        return f"[{', '.join(parts)}]"
    return _shown(shape.element, raw, steps, appended=appended)


def _map_text(element: Serializer, raw: bytes, steps: tuple[Step, ...], *, appended: bool = False) -> str | None:
    return "null" if raw[:1] == _NULL else _shown(element, raw[1:], steps, appended=appended)


def _shown(element: Serializer, raw: bytes, steps: tuple[Step, ...], *, appended: bool = False) -> str | None:
    """Return the part of a value at a path as text, ``None`` if it does not exist."""
    part = part_at(element.logical, decode(element, raw), steps, appended=appended)
    return None if part is None else display_value(part[1], part[0])


def _set_timer(operator: OperatorInventory, entries: _KeyEntries, edit: TimerEdit) -> SetRow:
    """Add or remove a timer."""
    name, meta = _timer_state(operator, edit)
    namespace = dict(meta.value.children()).get("namespace")
    if namespace is None:
        raise UnsupportedError("the type of the timers' namespace is unknown").at(operator=operator.label, state=name)
    try:
        raw = entries.encode_namespace(f"timer service {timer_names(name)[1]!r}", namespace)
    except StatetoolError as error:
        raise error.at(operator=operator.label, state=name) from error.__cause__
    own = entries.of(name)
    composite = encode_time(edit.timestamp_ms) + entries.key + raw
    if (composite in own) is edit.adds:
        word = "exists already" if edit.adds else "does not exist"
        raise OptionError(
            f"the {edit.domain}-time timer {edit.timestamp_ms} {word}",
            hint="run: statetool head PATH OPERATOR timers --keys KEY",
        ).at(operator=operator.label, state=name)
    if edit.adds:
        own[composite] = b""
    else:
        del own[composite]
    text = str(edit.timestamp_ms)
    return SetRow(
        operator=operator.label,
        state=name,
        path=f"{edit.domain} timer",
        before=None if edit.adds else text,
        after=text if edit.adds else None,
    )


def _check_windows_fire(operator: OperatorInventory, entries: _KeyEntries, edits: Sequence[TimerEdit]) -> None:
    """Refuse to remove a timer of a window whose state stays, unless another timer is added: the window may need it.

    Raises
    ------
    OptionError
        Names the states of the window.
    """
    queues = {edit: _timer_state(operator, edit)[1] for edit in edits}
    removed = [edit for edit, meta in queues.items() if has_window_timers(meta) and not edit.adds]
    if not removed or any(edit.adds and has_window_timers(meta) for edit, meta in queues.items()):
        return
    keyed = {name: meta for name, (_, meta) in operator.keyed_states.items()}
    left = [name for name in window_states(keyed) if entries.has_window(keyed[name])]
    if left:
        raise OptionError(
            f"without its {removed[0].domain}-time timer {removed[0].timestamp_ms}, the window {NEEDED_TIMERS}",
            hint="add another one with --add-timer, or remove all of the key with statetool erase"
            if entries.merges
            else f"add another one with --add-timer, or also remove its state: {', '.join(f'--remove {n}' for n in left)}",
        ).at(operator=operator.label)


def _timer_state(operator: OperatorInventory, edit: TimerEdit) -> tuple[str, StateMetaInfo]:
    queues = {}
    for name, (_, meta) in operator.keyed_states.items():
        if meta.kind == "timers":
            domain, service = timer_names(name)
            if domain == edit.domain and edit.service in (None, service):
                queues[name] = meta
    if len(queues) != 1:
        known = [timer_names(n)[1] for n, (_, m) in operator.keyed_states.items() if m.kind == "timers"]
        raise UnknownNameError(
            f"operator {operator.label.display!r} has {len(queues)} {edit.domain}-time timer services"
            + ("" if edit.service is None else f" {edit.service!r}"),
            hint=f"pass {edit.domain}/SERVICE=TIME: {suggest(edit.service or '', known)}",
        )
    return next(iter(queues.items()))
