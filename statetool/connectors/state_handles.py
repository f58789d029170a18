"""State handles that operators keep in list states of ``JavaSerializer``, such as the pending checkpoints of a write-ahead sink.

A handle is an object of a class ``...StateHandle`` in a Java stream. Its file is the object ``org.apache.flink.core.fs.Path`` in it, whose
field ``uri`` has the URI as ``java.net.URI`` writes it. Handles of state in memory have no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from statetool.errors import FormatError, UnsupportedError
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaObject, JavaText, read_java_stream
from statetool.io.java_streams.writer import write_java_stream
from statetool.io.output import Output
from statetool.serializers.core.simple import SimpleSerializer
from statetool.serializers.typeutils.user import JAVA

_HANDLE: Final = "StateHandle"
_IN_MEMORY: Final = "org.apache.flink.runtime.state.memory.ByteStreamStateHandle"
_PATH: Final = "org.apache.flink.core.fs.Path"
#: Characters that Java keeps in the path of a URI.
_KEPT: Final = "/_-!.~'()*:@&=+$,;"


@dataclass(frozen=True, slots=True)
class StateHandleObject:
    """A state handle in a Java stream. ``path`` is ``None`` if its state is in memory, ``size_bytes`` if its class has no size."""

    path: str | None
    size_bytes: int | None


def has_java_values(meta: StateMetaInfo) -> bool:
    """Return True if the elements of a list state are written by ``JavaSerializer``."""
    return (
        meta.kind != "broadcast" and isinstance(meta.value, SimpleSerializer) and meta.value.spec.decode is JAVA.decode
    )


def read_object(data: bytes) -> Any:
    """Return the object of an element of a state of ``JavaSerializer``.

    Raises
    ------
    FormatError
        Not exactly one Java stream.
    """
    c = Cursor(data)
    value = read_java_stream(c)
    c.expect_end("an element")
    return value


def handles_in(value: Any) -> Iterator[StateHandleObject]:
    """Yield the state handles in an object of a Java stream.

    Raises
    ------
    UnsupportedError
        A handle has no path, so its file is unknown.
    """
    for handle in _handle_objects(value):
        paths: list[str | None] = [_uri_of(node) for node in _nodes(handle) if _is_path(node)]
        if not paths and handle.cls.name != _IN_MEMORY:
            raise UnsupportedError(f"the file of a state handle of class {handle.cls.name} is not known")
        size = handle.fields.get("stateSize")
        start = handle.fields.get("startPos", 0)
        places: list[str | None] = [*paths] or [None]
        for path in places:
            yield StateHandleObject(path=path, size_bytes=start + size if path and isinstance(size, int) else None)


def rename_files(data: bytes, places: Mapping[str, str]) -> bytes:
    """Return an element of a state of ``JavaSerializer`` in which state handles name other files.

    Parameters
    ----------
    places
        New path of each file by the path in the element.

    Raises
    ------
    UnsupportedError
        The element cannot be written again byte for byte.
    """
    value = read_object(data)
    if _write(value) != data:
        raise UnsupportedError("the Java stream of a state handle cannot be written again byte for byte")
    for node in _nodes(value):
        if _is_path(node) and (path := _uri_of(node)) in places:
            node.fields["uri"].fields["string"] = JavaText(_to_uri(places[path]))
    return _write(value)


def _write(value: Any) -> bytes:
    out = Output()
    write_java_stream(out, value)
    return bytes(out)


def _handle_objects(value: Any) -> Iterator[JavaObject]:
    """Yield the outermost objects of handles."""

    def is_handle(node: Any) -> bool:
        return isinstance(node, JavaObject) and any(cls.name.endswith(_HANDLE) for cls in _classes(node.cls))

    yield from (node for node in _nodes(value, stop=is_handle) if is_handle(node))


def _classes(cls: JavaClass | None) -> Iterator[JavaClass]:
    while cls is not None:
        yield cls
        cls = cls.parent


def _nodes(value: Any, stop: Callable[[Any], bool] = lambda _: False) -> Iterator[Any]:
    """Yield each object and array that a value refers to, once; not those inside objects at which to ``stop``."""
    seen: set[int] = set()
    left = [value]
    while left:
        node = left.pop()
        if not isinstance(node, JavaObject | JavaArray) or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if stop(node):
            continue
        if isinstance(node, JavaObject):
            left += [*node.fields.values(), *node.annotations][::-1]
        elif not isinstance(node.items, bytes):
            left += node.items[::-1]


def _is_path(node: Any) -> bool:
    return isinstance(node, JavaObject) and node.cls.name == _PATH


def _uri_of(path: JavaObject) -> str:
    uri = path.fields.get("uri")
    text = uri.fields.get("string") if isinstance(uri, JavaObject) else None
    if not isinstance(text, str):
        raise FormatError(f"an object of {_PATH} has no URI")
    return unquote(text)


def _to_uri(path: str) -> str:
    scheme, colon, rest = path.partition(":")
    return f"{scheme}{colon}{quote(rest, safe=_KEPT)}" if colon else quote(path, safe=_KEPT)
