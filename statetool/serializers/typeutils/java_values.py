"""Plain values of objects written by Java serialization: columns contain the exact bytes, this module shows their content."""

from __future__ import annotations

from typing import Any, Final

from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaEnum, JavaObject, read_java_stream

_BOXES: Final = "java.lang."


def read_java(value: bytes) -> Any:
    """Read a value of ``JavaSerializer`` (or of Beam's ``SerializableCoder``) as data, without executing any of it.

    Parameters
    ----------
    value
        One Java stream, as stored in columns of such types.

    Returns
    -------
    Any
        Strings, numbers and their boxes as themselves; an enum ``{"$enum": name}``; ``byte[]`` ``{"$hex": ...}``; other arrays as lists;
        any other object ``{"$class": name, "fields": {...}}``, with ``"written"`` for data added by its ``writeObject`` method (the
        elements of a ``java.util`` collection, say); a cyclic reference ``{"$cycle": class}``. The result is accepted by ``json.dumps``.

    Raises
    ------
    FormatError
        Not exactly one complete Java stream.

    Examples
    --------
    >>> read_java(bytes.fromhex("aced0005740003616263"))
    'abc'
    """
    c = Cursor(value)
    node = read_java_stream(c)
    c.expect_end("the Java stream")
    return plain_java(node)


def plain_java(node: Any) -> Any:
    """Return a value of a Java stream as data, in the form of :func:`read_java`."""
    return _plain(node, ())


def _plain(node: Any, enclosing: tuple[int, ...]) -> Any:
    if id(node) in enclosing:
        return {"$cycle": node.cls.name}
    match node:
        case JavaObject():
            if node.cls.name.startswith(_BOXES) and set(node.fields) == {"value"}:
                return node.fields["value"]
            path = (*enclosing, id(node))
            shown = {"$class": node.cls.name, "fields": {k: _plain(v, path) for k, v in node.fields.items()}}
            if node.annotations:
                shown["written"] = [_plain(v, path) for v in node.annotations]
            return shown
        case JavaEnum():
            return {"$enum": node.name}
        case JavaClass():
            return {"$class": node.name}
        case JavaArray(items=bytes() as raw) | (bytes() as raw):
            return {"$hex": raw.hex()}
        case JavaArray():
            path = (*enclosing, id(node))
            return [_plain(i, path) for i in node.items]
        case str():
            return str(node)
    return node
