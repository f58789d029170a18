"""Parse Java serialization streams as data: their content, and their end. Nothing is ever executed.

Some serializer snapshots hold unframed streams (``AC ED 00 05`` and one content element), several directly
after each other, so the end of each must be found by its grammar (Java Object Serialization Specification,
section 6.4). A general library reads to the end of its input and raises arbitrary errors on damage. This parser stops
at the exact end, checks every length against the bytes left and reports offsets in errors. :mod:`statetool.io.java_streams.writer` writes
the parsed objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from statetool.io.cursor import Cursor, decode_modified_utf8

_MAGIC: Final = 0xACED
_BASE_HANDLE: Final = 0x7E0000
_MAX_DEPTH: Final = 200
_NULL, _REFERENCE, _CLASS_DESC, _END_BLOCK, _PROXY = 0x70, 0x71, 0x72, 0x78, 0x7D
_WRITE_METHOD, _SERIALIZABLE, _EXTERNALIZABLE, _BLOCK_DATA = 0x01, 0x02, 0x04, 0x08


class JavaText(str):
    """A string object: in Java, equal strings can be different objects, each with a separate handle."""

    __slots__ = ()


@dataclass(slots=True)
class JavaClass:
    """A class descriptor, or the class itself if it is a value.

    Attributes
    ----------
    fields
        ``(type code, name)`` in stream order.
    suid
        ``serialVersionUID``.
    signatures
        Java's signature of the type of each field that is an object or an array, in the order of ``fields``.
    """

    name: str
    flags: int = 0
    fields: tuple[tuple[str, str], ...] = ()
    parent: JavaClass | None = None
    suid: int = 0
    signatures: tuple[str, ...] = ()


@dataclass(slots=True)
class JavaObject:
    """An object: field values by name (inherited ones too) and data written by ``writeObject`` methods."""

    cls: JavaClass
    fields: dict[str, Any] = field(default_factory=dict)
    annotations: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class JavaEnum:
    """A constant of an enum."""

    cls: JavaClass
    name: str


@dataclass(slots=True)
class JavaArray:
    """An array (``byte[]`` as ``bytes``)."""

    cls: JavaClass
    items: list[Any] | bytes


def read_java_stream(c: Cursor, without_fields: frozenset[str] = frozenset()) -> Any:
    """Read one complete stream and leave ``c`` directly after it.

    Parameters
    ----------
    without_fields
        Names of classes whose ``writeObject`` writes only its own data. A stream does not tell whether the described fields were written.

    Returns
    -------
    JavaObject | JavaEnum | JavaArray | JavaClass | str | None
        The object as plain data.

    Raises
    ------
    FormatError
        Not a Java stream, truncated or damaged.
    """
    return JavaStream(c, without_fields).read()


def take_java_stream(c: Cursor) -> bytes:
    """Step over one complete stream and return its exact bytes; raises the errors of :func:`read_java_stream`."""
    start = c.pos
    read_java_stream(c)
    return bytes(c.data[start : c.pos])


class JavaStream:
    """A stream of several objects, which share its classes and handles; its header is read immediately.

    ``without_fields`` is explained at :func:`read_java_stream`.
    """

    def __init__(self, c: Cursor, without_fields: frozenset[str] = frozenset()) -> None:
        if c.u2() != _MAGIC or c.u2() != 5:
            raise c.fail("expected a Java serialization stream (AC ED 00 05)", pos=max(c.pos - 4, 0))
        self._parser = _Parser(c, without_fields)

    def read(self) -> Any:
        """Read the next object, as :func:`read_java_stream` does."""
        return self._parser.content(0)

    @property
    def classes(self) -> dict[str, JavaClass]:
        """Classes of the objects read so far, by name."""
        return {cls.name: cls for cls in self._parser.handles if isinstance(cls, JavaClass)}

    @property
    def constants(self) -> set[tuple[str, str]]:
        """Enum constants among the objects read so far, as class and name."""
        return {(value.cls.name, value.name) for value in self._parser.handles if isinstance(value, JavaEnum)}


class _Parser:
    def __init__(self, c: Cursor, without_fields: frozenset[str]) -> None:
        self.c = c
        self.without_fields = without_fields
        self.handles: list[Any] = []

    def content(self, depth: int) -> Any:
        c = self.c
        if depth > _MAX_DEPTH:
            raise c.fail(f"Java objects nested deeper than {_MAX_DEPTH}")
        tag = c.u1()
        match tag:
            case 0x70:  # null
                return None
            case 0x71:  # back reference
                return self.reference()
            case 0x72 | 0x7D:  # class or proxy description
                c.pos -= 1
                return self.class_desc(depth)
            case 0x73:  # object
                return self.object(depth)
            case 0x74:  # string
                return self.remember(JavaText(c.utf()))
            case 0x7C:  # long string
                n = c.i8()
                start = c.need(n, "long string")
                return self.remember(JavaText(decode_modified_utf8(bytes(c.data[start : start + n]), c, start)))
            case 0x75:  # array
                return self.array(depth)
            case 0x76:  # class
                return self.remember(self.class_desc(depth))
            case 0x7E:  # enum constant
                cls = self.need_class(depth)
                slot = self.reserve()
                name = self.content(depth + 1)
                if not isinstance(name, str):
                    raise c.fail("an enum constant without a name")
                self.handles[slot] = JavaEnum(cls, name)
                return self.handles[slot]
            case 0x77:  # block data
                return c.take(c.u1(), "block data")
            case 0x7A:  # long block data
                return c.take(c.i4(), "block data")
        raise c.fail(f"unexpected tag {tag:#04x} in a Java stream", pos=c.pos - 1)

    def remember(self, value: Any) -> Any:
        self.handles.append(value)
        return value

    def reserve(self) -> int:
        self.handles.append(None)
        return len(self.handles) - 1

    def reference(self) -> Any:
        index = self.c.i4() - _BASE_HANDLE
        if not 0 <= index < len(self.handles):
            raise self.c.fail("a Java back reference to nothing", pos=self.c.pos - 4)
        return self.handles[index]

    def need_class(self, depth: int) -> JavaClass:
        cls = self.class_desc(depth)
        if cls is None:
            raise self.c.fail("a Java object without a class")
        return cls

    def class_desc(self, depth: int) -> JavaClass | None:
        c = self.c
        if depth > _MAX_DEPTH:
            raise c.fail(f"Java classes nested deeper than {_MAX_DEPTH}")
        tag = c.u1()
        if tag == _NULL:
            return None
        if tag == _REFERENCE:
            cls = self.reference()
            if not isinstance(cls, JavaClass):
                raise c.fail("a Java back reference to something that is not a class", pos=c.pos - 4)
            return cls
        if tag == _PROXY:
            cls = JavaClass("java.lang.reflect.Proxy", _SERIALIZABLE)
            self.remember(cls)
            for _ in range(c.count("proxy interfaces", at_least=2)):
                c.utf()
        elif tag == _CLASS_DESC:
            cls = JavaClass(c.utf())
            cls.suid = c.i8()
            self.remember(cls)
            cls.flags = c.u1()
            fields, signatures = [], []
            for _ in range(c.u2()):
                code, name = chr(c.u1()), c.utf()
                if code not in "BCDFIJSZ[L":
                    raise c.fail(f"unknown Java field type {code!r}")
                if code in "[L":
                    signature = self.content(depth + 1)
                    if not isinstance(signature, str):
                        raise c.fail(f"a field {name!r} whose type is not a string")
                    signatures.append(signature)
                fields.append((code, name))
            cls.fields, cls.signatures = tuple(fields), tuple(signatures)
        else:
            raise c.fail(f"expected a Java class, found tag {tag:#04x}", pos=c.pos - 1)
        self.annotation(depth)
        cls.parent = self.class_desc(depth + 1)
        return cls

    def annotation(self, depth: int) -> list[Any]:
        contents = []
        while self.c.data[self.c.need(1)] != _END_BLOCK:
            self.c.pos -= 1
            contents.append(self.content(depth + 1))
        return contents

    def object(self, depth: int) -> JavaObject:
        c = self.c
        cls = self.need_class(depth)
        value = JavaObject(cls)
        self.remember(value)
        lineage: list[JavaClass] = []
        ancestor: JavaClass | None = cls
        while ancestor is not None:
            if len(lineage) > _MAX_DEPTH:
                raise c.fail("a Java class that is its own ancestor")
            lineage.insert(0, ancestor)
            ancestor = ancestor.parent
        for level in lineage:
            if level.flags & _EXTERNALIZABLE:
                if not level.flags & _BLOCK_DATA:
                    raise c.fail(f"{level.name} was written by a protocol whose end cannot be found")
                value.annotations += self.annotation(depth)
                continue
            for code, name in () if level.name in self.without_fields else level.fields:
                value.fields[name] = self.value(code, depth)
            if level.flags & _WRITE_METHOD:
                value.annotations += self.annotation(depth)
        return value

    def array(self, depth: int) -> JavaArray:
        c = self.c
        cls = self.need_class(depth)
        value = JavaArray(cls, [])
        self.remember(value)
        code = cls.name[1:2]
        if code == "B":
            value.items = c.bytes4("byte array")
            return value
        if code not in "CDFIJSZ[L" or not code:
            raise c.fail(f"{cls.name!r} is not the class of an array")
        n = c.count("array elements")
        value.items = [self.value(code, depth) for _ in range(n)]
        return value

    def value(self, code: str, depth: int) -> Any:
        c = self.c
        match code:
            case "B":
                return c.i1()
            case "C":
                return c.u2()
            case "D":
                return c.f8()
            case "F":
                return c.f4()
            case "I":
                return c.i4()
            case "J":
                return c.i8()
            case "S":
                return c.i2()
            case "Z":
                return c.bool()
            case _:
                return self.content(depth + 1)
