"""Window operators whose code changed, for a check without a snapshot of the new job: whether Flink still reads the contents of their windows.

Follows ``WindowOperatorBuilder``: the function decides kind and type of the state, an evictor makes it a list of stream elements, global windows have
another namespace, and windows of a stream without keys have the key of ``NullByteKeySelector``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from statetool.compatibility.declared_types import keyed_meta, resolve_information
from statetool.compatibility.record_types import has_same_types
from statetool.compatibility.restore import Pair
from statetool.compatibility.states import another_kind
from statetool.compatibility.verdicts import Level, Remedy, Resolution, migration_remedy
from statetool.formats.state_meta import StateMetaInfo
from statetool.java.declaring import flink_types as flink
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import TypeContext
from statetool.types.flink_calls import (
    CONTENT_KINDS,
    FlinkCall,
    WindowForm,
    content_calls,
    window_calls,
    windows_of_uids,
)
from statetool.types.type_information import TypeInformation

#: The state of the contents of windows of DataStream.
CONTENTS: Final = "window-contents"
_FUNCTIONS: Final = "org.apache.flink.api.common.functions."
_OF_WINDOWS: Final = "org.apache.flink.streaming.api.functions.windowing."
#: Interfaces of the functions of each kind, and the index of the type argument that decides the contents.
_ARGUMENTS: Final = {
    "aggregating": ((f"{_FUNCTIONS}AggregateFunction", 1),),
    "reducing": ((f"{_FUNCTIONS}ReduceFunction", 0),),
    "list": tuple((f"{_OF_WINDOWS}{n}", 0) for n in ("ProcessWindowFunction", "WindowFunction", "ProcessAllWindowFunction", "AllWindowFunction")),
}  # fmt: skip
#: Joins of streams in windows, whose contents have the types of both.
_JOINS: Final = ("JoinedStreams", "CoGroupedStreams")
_CLOSE: Final = Remedy(
    "Let the old job close its windows before the snapshot, or give the new window operator another uid."
)

#: Such an operator has max parallelism 1, and with it its chain.
_WHOLE: Final = Remedy(
    "Let the old job close its windows before the snapshot, and give the new window operator another uid. With a savepoint of the new job (B),"
    " check names what to leave out and to rescale.",
    is_final=True,
)


def resolve_windows(
    pair: Pair, before: tuple[FlinkCall, ...], after: tuple[FlinkCall, ...], old: TypeContext, new: TypeContext
) -> Resolution | None:
    """Return the resolution of the contents of windows, ``None`` if the code of both jobs does not tell."""
    was, now = (windows_of_uids(calls).get(pair.old.uid or "") for calls in (before, after))
    _, meta = pair.old.listed_keyed[CONTENTS]
    # If the code of the old job is read correctly, it says what the snapshot has.
    if was is None or now is None or not _fits(was, pair.old, meta):
        return None
    if was.is_global is False and now.is_global:
        return _refused("The windows became global windows.")
    if was.is_global and now.is_global is False:
        return _refused("The global windows, or those that count, became windows of time.")
    if not was.is_all and now.is_all and _key_type(pair.old) != "Byte":
        return _refused("The windows became windows of the whole stream, without the key.", _WHOLE)
    if was.evicts is None or now.evicts is None or was.is_all != now.is_all or was.is_global != now.is_global:
        return None
    if was.evicts != now.evicts:
        return _refused(
            f"The windows {'have an evictor now' if now.evicts else 'have no evictor any more'}, so their contents are stored otherwise.",
            migration_remedy("Or write a copy of the snapshot with such contents.", _CLOSE.text),
        )
    if now.evicts:
        # The contents are elements of the stream, whatever the function is.
        is_of_stream = was.kind != "aggregating" and has_same_types(old, new)
        return Resolution(Level.AS_IS) if is_of_stream or _give_same(was, now, old, new) else None
    if was.kind != now.kind:
        return another_kind(was.kind, now.kind)
    return _resolve_contents(meta, was, now, old, new)


def resolve_same_windows(
    pair: Pair, before: tuple[FlinkCall, ...], after: tuple[FlinkCall, ...], old: TypeContext, new: TypeContext
) -> Resolution | None:
    """Return the resolution of the contents of windows that both jobs declare by the same calls, ``None`` if it is not known.

    The function may give other types now, by its own type arguments or by explicit ones.
    """
    names = {name for key in content_calls(before) for name in key[2:]}
    changed = {name for name in names if _changed(name, old, new)}
    was, now = (windows_of_uids(calls).get(pair.old.uid or "") for calls in (before, after))
    if was is not None and now is not None:
        # Two operators may have exchanged their functions.
        if was != now or now.function in changed:
            return resolve_windows(pair, before, after, old, new)
        if _give_same(was, now, old, new):
            return Resolution(Level.AS_IS)
    if changed or _explicit_types(before) != _explicit_types(after):
        return None
    open_kinds = set(_open_kinds(after, new))
    if not open_kinds:
        return Resolution(Level.AS_IS)
    return Resolution(Level.AS_IS) if "aggregating" not in open_kinds and has_same_types(old, new) else None


def contents_meta(old: OperatorInventory, before: TypeContext, after: TypeContext) -> StateMetaInfo | None:
    """Return the contents of windows as the code of the new job has them, if they are of another type; ``None`` if it does not tell."""
    if before.source is None or after.source is None or CONTENTS not in old.listed_keyed:
        return None
    was, now = (windows_of_uids(t.source.flink_calls()).get(old.uid or "") for t in (before, after) if t.source)
    _, meta = old.listed_keyed[CONTENTS]
    if was is None or now is None or not _fits(was, old, meta) or was.kind != now.kind:
        return None
    if (was.is_global, was.is_all) != (now.is_global, now.is_all) or None in (was.evicts, now.evicts):
        return None
    if was.evicts != now.evicts:
        if was.kind != "list" or not (has_same_types(before, after) or _give_same(was, now, before, after)):
            return None
        element = meta.parts[0]
        element = flink.stream_element(element) if now.evicts else element.children()[0][1]
        return replace(meta, serializers={**meta.serializers, "VALUE_SERIALIZER": flink.list_of(element)})
    types = [_content_type(form, context) for form, context in ((was, before), (now, after))]
    if was.kind != "aggregating" or now.evicts or None in types or types[0] == types[1]:
        return None
    return keyed_meta(meta, "aggregating", types[1:], after, ttl=False)


def _open_kinds(calls: tuple[FlinkCall, ...], types: TypeContext) -> Iterator[str]:
    """Yield the kinds of the windows whose function does not decide the type of the contents."""
    for call in window_calls(calls):
        if call.owner.rpartition(".")[2].startswith(_JOINS):
            yield "list"
        elif call.name in CONTENT_KINDS:
            kind = CONTENT_KINDS[call.name]
            forms = [WindowForm(kind, name, None, None, False) for name in call.classes[:1]]
            if not forms or _content_type(forms[0], types) is None:
                yield kind


def _give_same(was: WindowForm, now: WindowForm, old: TypeContext, new: TypeContext) -> bool:
    """Return True if the function of a window decides the type of its contents, and is the same one."""
    if was.function != now.function or not now.function or _changed(now.function, old, new):
        return False
    return None not in (_content_type(was, old), _content_type(now, new))


def _explicit_types(calls: tuple[FlinkCall, ...]) -> Counter[tuple[str, ...]]:
    found = Counter[tuple[str, ...]]()
    for call in calls:
        if call.owner.endswith(("WindowedStream", "AllWindowedStream")):
            found[tuple(a for a in call.without_code().arguments if a not in call.classes)] += 1
    return found


def _changed(function: str, old: TypeContext, new: TypeContext) -> bool:
    """Return True if a function of windows gives other classes than before, whatever their fields are."""
    for interface, at in (one for found in _ARGUMENTS.values() for one in found):
        was, now = (
            None if t.source is None else t.source.argument_information(function, interface, at, t.kryo)
            for t in (old, new)
        )
        if (None if was is None else _shape(was)) != (None if now is None else _shape(now)):
            return True
    return False


def _shape(kind: TypeInformation) -> tuple[object, ...]:
    # Fields of a class are compared with the values.
    parts = () if kind.kind == "pojo" else tuple(map(_shape, kind.parts))
    return (kind.java_class or kind.name, *(() if kind.java_class else (kind.kind,)), *parts)


def _resolve_contents(
    meta: StateMetaInfo, was: WindowForm, now: WindowForm, old: TypeContext, new: TypeContext
) -> Resolution | None:
    if _give_same(was, now, old, new) or (was.kind != "aggregating" and has_same_types(old, new)):
        return Resolution(Level.AS_IS)
    types = [_content_type(form, context) for form, context in ((was, old), (now, new))]
    if None in types:
        return None
    if types[0] == types[1]:
        return Resolution(Level.AS_IS)
    # A list has the type of the stream, which the functions do not show.
    return resolve_information((meta.value,), types[1:], new) if now.kind == "aggregating" else None


def _content_type(form: WindowForm, types: TypeContext) -> TypeInformation | None:
    """Return the type of the contents that a function gives, ``None`` if its class does not tell."""
    if not form.function or types.source is None:
        return None
    found = (
        types.source.argument_information(form.function, name, at, types.kryo) for name, at in _ARGUMENTS[form.kind]
    )
    # The type of a stream may be another one than that of a class which only Kryo writes, such as that of rows.
    is_own = form.kind == "aggregating"
    known = (one for one in found if one is not None and one.is_settled)
    return next((one for one in known if is_own or all(part.kind != "kryo" for part in one.walk())), None)


def _fits(form: WindowForm, old: OperatorInventory, meta: StateMetaInfo) -> bool:
    """Return True if the snapshot has what code builds."""
    elements = meta.parts[:1] if meta.kind == "list" else ()
    evicts = bool(elements) and elements[0].type_name.startswith("StreamElement")
    is_global = meta.namespace is not None and meta.namespace.type_name == "GlobalWindow"
    return (
        form.evicts in (None, evicts)
        and form.is_global in (None, is_global)
        and meta.kind == ("list" if evicts else form.kind)
        and (not form.is_all or _key_type(old) == "Byte")
    )


def _key_type(old: OperatorInventory) -> str:
    return "" if old.keyed.key is None else old.keyed.key.type_name


def _refused(text: str, remedy: Remedy = _CLOSE) -> Resolution:
    return Resolution.because(Level.INCOMPATIBLE, f"{text} Flink refuses to restore them.", remedy)
