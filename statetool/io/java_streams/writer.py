"""Write Java serialization streams: the counterpart of :mod:`statetool.io.java_streams.reader`, from the same plain objects.

Java's ``ObjectOutputStream`` writes a handle for a repeated object, array, enum constant, class or
:class:`~statetool.io.java_streams.reader.JavaText`, recognised by identity. A ``str`` is a constant of the program: equal ones are one
object, because Java interns them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaEnum, JavaObject, JavaText
from statetool.io.output import Output, encode_modified_utf8

_HEAD: Final = b"\xac\xed\x00\x05"
_BASE_HANDLE: Final = 0x7E0000
_WRITE_METHOD, _SERIALIZABLE, _EXTERNALIZABLE = 0x01, 0x02, 0x04
_LONG_BLOCK: Final = 0x100


def write_java_stream(out: Output, value: Any) -> None:
    """Append a stream of one object, as ``InstantiationUtil.serializeObject`` writes it.

    Parameters
    ----------
    value
        A result of :func:`~statetool.io.java_streams.reader.read_java_stream`.

    Raises
    ------
    EncodeError
        Not such a value, or one that cannot be written: an externalizable object, or one whose class and
        superclass both write more than their fields.
    """
    out += _HEAD
    _Writer(out).content(value)


def lineage(cls: JavaClass) -> Iterator[JavaClass]:
    """Yield a class and its superclasses, topmost first."""
    if cls.parent is not None:
        yield from lineage(cls.parent)
    yield cls


class _Writer:
    def __init__(self, out: Output) -> None:
        self.out = out
        self.handles: dict[object, int] = {}

    def wrote_reference(self, key: object) -> bool:
        """Write a reference to a previously written value and return ``True``; a new value gets its handle from :meth:`assign`."""
        handle = self.handles.get(key)
        if handle is None:
            return False
        self.out.u1(0x71)
        self.out.i4(_BASE_HANDLE + handle)
        return True

    def assign(self, key: object) -> None:
        self.handles[key] = len(self.handles)

    def content(self, value: Any) -> None:
        match value:
            case None:
                self.out.u1(0x70)
            case str():
                self.text(value)
            case JavaObject():
                self.object(value)
            case JavaArray():
                self.array(value)
            case JavaEnum():
                self.enum(value)
            case JavaClass():
                self.class_object(value)
            case bytes():
                self.block(value)
            case _:
                raise EncodeError(f"{value!r} is nothing that a Java stream holds")

    def text(self, value: str) -> None:
        key: object = ("text", id(value)) if isinstance(value, JavaText) else ("constant", value)
        if self.wrote_reference(key):
            return
        self.assign(key)
        raw = encode_modified_utf8(value)
        if len(raw) <= 0xFFFF:
            self.out.u1(0x74)
            self.out.u2(len(raw))
        else:
            self.out.u1(0x7C)
            self.out.i8(len(raw))
        self.out += raw

    def block(self, value: bytes) -> None:
        if len(value) < _LONG_BLOCK:
            self.out.u1(0x77)
            self.out.u1(len(value))
            self.out += value
        else:
            self.out.u1(0x7A)
            self.out.bytes4(value)

    def class_desc(self, cls: JavaClass | None) -> None:
        out = self.out
        if cls is None:
            out.u1(0x70)
            return
        key = ("class", cls.name)
        if self.wrote_reference(key):
            return
        out.u1(0x72)
        out.utf(cls.name)
        out.i8(cls.suid)
        self.assign(key)
        out.u1(cls.flags)
        out.u2(len(cls.fields))
        signatures = iter(cls.signatures)
        for code, name in cls.fields:
            out.u1(ord(code))
            out.utf(name)
            if code in "[L":
                self.text(next(signatures))
        out.u1(0x78)
        self.class_desc(cls.parent)

    def class_object(self, cls: JavaClass) -> None:
        key = ("class object", cls.name)
        if self.wrote_reference(key):
            return
        self.out.u1(0x76)
        self.class_desc(cls)
        self.assign(key)

    def object(self, value: JavaObject) -> None:
        if self.wrote_reference(id(value)):
            return
        self.out.u1(0x73)
        self.class_desc(value.cls)
        self.assign(id(value))
        writers = 0
        for level in lineage(value.cls):
            if level.flags & _EXTERNALIZABLE:
                raise EncodeError(f"{level.name} writes itself in a form of its own")
            for code, name in level.fields:
                self.field(code, value.fields[name])
            if level.flags & _WRITE_METHOD:
                writers += 1
                if writers > 1:
                    raise EncodeError(f"several classes of {value.cls.name} write more than their fields")
                for annotation in value.annotations:
                    self.content(annotation)
                self.out.u1(0x78)

    def array(self, value: JavaArray) -> None:
        if self.wrote_reference(id(value)):
            return
        self.out.u1(0x75)
        self.class_desc(value.cls)
        self.assign(id(value))
        if isinstance(value.items, bytes):
            self.out.bytes4(value.items)
            return
        self.out.i4(len(value.items))
        for item in value.items:
            self.field(value.cls.name[1], item)

    def enum(self, value: JavaEnum) -> None:
        key = ("enum", value.cls.name, value.name)
        if self.wrote_reference(key):
            return
        self.out.u1(0x7E)
        self.class_desc(value.cls)
        self.assign(key)
        self.text(value.name)

    def field(self, code: str, value: Any) -> None:
        out = self.out
        match code:
            case "B":
                out.i1(value)
            case "C":
                out.u2(value)
            case "D":
                out.f8(value)
            case "F":
                out.f4(value)
            case "I":
                out.i4(value)
            case "J":
                out.i8(value)
            case "S":
                out.i2(value)
            case "Z":
                out.bool(value)
            case _:
                self.content(value)
