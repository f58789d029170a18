"""Classes as Java serialization sees them, with the ``serialVersionUID`` that it computes for classes that declare none.

Follows ``java.io.ObjectStreamClass``. The default value is a part of the SHA-1 digest of the class: its name, flags, interfaces, and the
fields, constructors and methods that are not private.
"""

from __future__ import annotations

import hashlib
from typing import Final

from statetool.io.output import Output
from statetool.java.classes.bytecode import enum_constants
from statetool.java.classes.class_file import (
    ABSTRACT,
    FINAL,
    INTERFACE,
    PRIVATE,
    PROTECTED,
    PUBLIC,
    STATIC,
    TRANSIENT,
    ClassFile,
    Member,
)
from statetool.java.classes.class_path import ClassPath
from statetool.types.serializable import SerializableClass

_SERIALIZABLE: Final = "java.io.Serializable"
_EXTERNALIZABLE: Final = "java.io.Externalizable"
_UID: Final = "serialVersionUID"
_VOLATILE: Final = 0x0040
#: Flags of methods: synchronized, native, strictfp.
_OF_METHODS: Final = PUBLIC | PRIVATE | PROTECTED | STATIC | FINAL | ABSTRACT | 0x0020 | 0x0100 | 0x0800
_OF_FIELDS: Final = PUBLIC | PRIVATE | PROTECTED | STATIC | FINAL | _VOLATILE | TRANSIENT
_OF_CLASSES: Final = PUBLIC | FINAL | INTERFACE | ABSTRACT
#: Types of a declared ``serialVersionUID`` that Java converts to long.
_INTEGERS: Final = ("J", "I", "S", "C", "B")
_OWN_CODE: Final = frozenset(
    {
        ("readObject", "(Ljava/io/ObjectInputStream;)V"),
        ("readObjectNoData", "()V"),
        ("readResolve", "()Ljava/lang/Object;"),
        ("readExternal", "(Ljava/io/ObjectInput;)V"),
    }
)
_PERSISTENT: Final = ("serialPersistentFields", "[Ljava/io/ObjectStreamField;")
#: Supertypes outside of jars that are not serializable.
_PLAIN: Final = frozenset(
    f"java.lang.{n}"
    for n in ("Object", "Record", "Comparable", "Cloneable", "Iterable", "CharSequence", "AutoCloseable")
)
#: Superclasses outside of jars that are serializable.
_FROM_JAVA: Final = frozenset(
    f"java.lang.{n}" for n in ("Enum", "Number", "Throwable", "Exception", "RuntimeException")
)


def serializable_class(class_path: ClassPath, cls: ClassFile) -> SerializableClass:
    """Return a class as Java serialization sees it.

    Raises
    ------
    FormatError
        A class is damaged.
    """
    supertypes = class_path.supertypes(cls.name)
    is_serializable = _is_serializable(class_path, cls.name)
    is_enum = "java.lang.Enum" in supertypes
    constants = enum_constants(cls) if cls.is_enum else None
    members = {(m.name, m.descriptor) for m in (*cls.fields, *cls.methods)}
    superclasses, without_constructor = _superclasses(class_path, cls)
    return SerializableClass(
        uid=0 if is_enum else _uid(cls, is_serializable),
        is_serializable=is_serializable,
        fields=tuple((f.name, f.descriptor) for f in cls.fields if not f.access & (STATIC | TRANSIENT)),
        superclasses=superclasses,
        constants=() if constants is None else constants.names,
        is_externalizable=_EXTERNALIZABLE in supertypes,
        is_enum=is_enum,
        is_record=cls.is_record,
        has_own_code=bool(members & _OWN_CODE) or _PERSISTENT in members,
        without_constructor=without_constructor,
    )


def default_uid(cls: ClassFile) -> int:
    """Return the ``serialVersionUID`` of a serializable class that declares none."""
    out = Output()
    out.utf(cls.name)
    flags = cls.access & _OF_CLASSES
    methods = [m for m in cls.methods if not m.name.startswith("<")]
    if flags & INTERFACE:
        flags = flags | ABSTRACT if methods else flags & ~ABSTRACT
    out.i4(flags)
    for name in sorted(cls.interfaces, key=_java_order):
        out.utf(name)
    for field in sorted(cls.fields, key=lambda f: _java_order(f.name)):
        flags = field.access & _OF_FIELDS
        if not (flags & PRIVATE and flags & (STATIC | TRANSIENT)):
            _append(out, field.name, flags, field.descriptor)
    if any(m.name == "<clinit>" for m in cls.methods):
        _append(out, "<clinit>", STATIC, "()V")
    constructors = [m for m in cls.methods if m.name == "<init>"]
    for method in (*sorted(constructors, key=_signature_order), *sorted(methods, key=_signature_order)):
        flags = method.access & _OF_METHODS
        if not flags & PRIVATE:
            _append(out, method.name, flags, method.descriptor.replace("/", "."))
    digest = hashlib.sha1(bytes(out), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def _append(out: Output, name: str, flags: int, descriptor: str) -> None:
    out.utf(name)
    out.i4(flags)
    out.utf(descriptor)


def _signature_order(method: Member) -> tuple[bytes, bytes]:
    return _java_order(method.name), _java_order(method.descriptor)


def _java_order(text: str) -> bytes:
    """Return the key by which Java sorts strings: their UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def _uid(cls: ClassFile, is_serializable: bool | None) -> int | None:
    declared = next((f for f in cls.fields if f.name == _UID and f.access & STATIC and f.access & FINAL), None)
    if declared is not None and declared.descriptor in _INTEGERS:
        value = cls.constants.loaded(declared.constant) if declared.constant else None
        return value if isinstance(value, int) else None
    if cls.is_record or is_serializable is False:
        return 0
    return default_uid(cls)


def _is_serializable(class_path: ClassPath, name: str) -> bool | None:
    supertypes = class_path.supertypes(name)
    if _SERIALIZABLE in supertypes or _EXTERNALIZABLE in supertypes or not _FROM_JAVA.isdisjoint(supertypes):
        return True
    outside = [s for s in supertypes if s not in class_path and s not in _PLAIN]
    return None if outside else False


def _superclasses(class_path: ClassPath, cls: ClassFile) -> tuple[tuple[str, ...], str]:
    """Return the serializable superclasses, and the nearest other superclass if it lacks a usable constructor."""
    found: dict[str, None] = {}
    name = cls.superclass
    while name not in _PLAIN and name not in found and name:
        above = class_path.read(name)
        if above is not None and _is_serializable(class_path, name) is False:
            return tuple(found), "" if _has_constructor(above, cls) else name
        found[name] = None
        name = above.superclass if above is not None else ""
    return tuple(found), ""


def _has_constructor(above: ClassFile, cls: ClassFile) -> bool:
    """Return True if a subclass can call the constructor without parameters of a superclass."""
    flags = next((m.access for m in above.methods if (m.name, m.descriptor) == ("<init>", "()V")), PRIVATE)
    same_package = above.name.rpartition(".")[0] == cls.name.rpartition(".")[0]
    return not flags & PRIVATE and bool(same_package or flags & (PUBLIC | PROTECTED))
