"""Code that is equal if it is the same in two jars: instructions as text, hashes of all code that a method may run, class files without line numbers.

Instructions have constants instead of their indexes. Line numbers change with every line above the class in its source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

from statetool.io.cursor import Cursor
from statetool.java.classes.bytecode import CALLS, Opcode, instructions
from statetool.java.classes.class_file import (
    CONSTANT_BYTES,
    SYNTHETIC,
    ClassConstant,
    ClassFile,
    Member,
    MemberReference,
)
from statetool.java.classes.class_path import ClassPath

_ICONST_M1: Final = Opcode.ICONST_M1
_ICONST_5: Final = Opcode.ICONST_5
_LCONST_0: Final = Opcode.LCONST_0
_LCONST_1: Final = Opcode.LCONST_1
_BIPUSH: Final = Opcode.BIPUSH
_SIPUSH: Final = Opcode.SIPUSH
_LDC: Final = Opcode.LDC
_LDC_W: Final = Opcode.LDC_W
_LDC2_W: Final = Opcode.LDC2_W
_MEMBERS: Final = range(Opcode.GETSTATIC, Opcode.INVOKEDYNAMIC)
_INVOKEDYNAMIC: Final = Opcode.INVOKEDYNAMIC
#: ``new``, ``anewarray``, ``checkcast`` and ``instanceof``.
_CLASSES: Final = (Opcode.NEW, Opcode.ANEWARRAY, Opcode.CHECKCAST, Opcode.INSTANCEOF)
_TEXT: Final = 1
_TWO_ENTRIES: Final = (5, 6)
_FLINK: Final = "org.apache.flink."
_INITIALIZER: Final = "<clinit>"
#: Instructions that initialize a class.
_INITIALIZES: Final = (Opcode.NEW, Opcode.GETSTATIC, Opcode.PUTSTATIC, Opcode.INVOKESTATIC)
#: Index of the method of a lambda among the arguments of its bootstrap method.
_OF_LAMBDA: Final = 1
#: Methods that load classes or files by name: anything in the jars may decide what they return.
_LOADS: Final = ("forName", "loadClass", "getResource", "getResources", "getResourceAsStream", "load", "getBundle")
_LOADERS: Final = ("java.lang.Class", "java.lang.ClassLoader", "java.util.ServiceLoader", "java.util.ResourceBundle")
#: Magic and version.
_HEAD_BYTES: Final = 8


def code_text(cls: ClassFile, method: Member) -> str:
    """Return the instructions of a method with their operands.

    Raises
    ------
    FormatError
        The code is damaged.
    """
    parts = []
    found = list(instructions(method.code))
    ends = [*(operands.pos - 1 for _, operands in found[1:]), len(method.code)]
    for (operation, operands), end in zip(found, ends, strict=True):
        if operation in _MEMBERS:
            parts.append(f"{operation} {cls.constants.member(operands.u2())}")
        elif operation in _CLASSES:
            parts.append(f"{operation} {cls.constants.class_name(operands.u2())}")
        elif operation == _INVOKEDYNAMIC:
            parts.append(f"{operation} {_dynamic_text(cls, operands.u2())}")
        elif (constant := constant_text(cls, operation, operands)) is not None:
            parts.append(f"{operation} {constant}")
        else:
            # Places of variables, targets of jumps, cases of switches and sizes of steps decide, too.
            parts.append(f"{operation} {bytes(method.code[operands.pos : end]).hex()}")
    return "\n".join(parts)


def lambda_target(cls: ClassFile, index: int) -> MemberReference | None:
    """Return the method of a lambda or method reference, ``None`` for other results of ``invokedynamic``."""
    bootstrap, _, _ = cls.constants.dynamic(index)
    linked = cls.bootstraps[bootstrap] if bootstrap < len(cls.bootstraps) else None
    if linked is None or not linked.method.owner.endswith("LambdaMetafactory"):
        return None
    return cls.constants.method_handle(linked.arguments[_OF_LAMBDA]) if len(linked.arguments) > _OF_LAMBDA else None


def reached_code(class_path: ClassPath, first: Iterable[MemberReference], *, most: int, loads: bool = False) -> str:
    """Return a hash of methods and of all code of the job that they may run; empty if the job has none of them.

    It follows calls to superclasses, interfaces and everything that overrides them, lambdas, static initializers, and all methods of the objects that
    are created, which may be called from outside of the jars.

    Parameters
    ----------
    most
        Methods up to which the hash has only their code. With more, it has all classes.
    loads
        Whether code that loads classes or files by name makes all classes part of the hash.
    """
    return _Reach(class_path).hash_of(first, most=most, loads=loads)


class _Reach:
    def __init__(self, class_path: ClassPath) -> None:
        self._path = class_path
        self._unread: list[MemberReference] = []
        self._named: set[MemberReference] = set()

    def hash_of(self, first: Iterable[MemberReference], *, most: int, loads: bool) -> str:
        digest = hashlib.sha256()
        seen: set[tuple[str, str, str]] = set()
        for one in first:
            self._add(one)
        is_whole = True
        while self._unread:
            called = self._unread.pop()
            for cls, method in self._methods(called):
                key = cls.name, method.name, method.descriptor
                if key in seen:
                    continue
                seen.add(key)
                # Names of lambdas have a number, which changes with other code.
                name = "" if method.access & SYNTHETIC else f"{cls.name}.{method.name}{method.descriptor}"
                digest.update(f"{name}\n{code_text(cls, method)}".encode("utf-8", "surrogatepass"))
                is_whole = self._follow(cls, method) and is_whole
            if len(seen) > most:
                digest.update(self._path.fingerprint.encode())
                break
        if loads and not is_whole:
            digest.update(self._path.fingerprint.encode())
        return digest.hexdigest() if seen else ""

    def _add(self, called: MemberReference) -> None:
        if called not in self._named:
            self._named.add(called)
            self._unread.append(called)

    def _methods(self, called: MemberReference) -> Iterator[tuple[ClassFile, Member]]:
        """Yield the methods of the job that a call may run."""
        is_own = called.owner in self._path and not called.owner.startswith(_FLINK)
        above = (
            (called.owner, *(() if called.name == _INITIALIZER else self._path.supertypes(called.owner)))
            if is_own
            else ()
        )
        yield from self._of(above, called, first=True)
        if called.name[0] != "<" and (is_own or called.owner.startswith(_FLINK)):
            yield from self._of(self._path.subclasses(called.owner), called)

    def _of(
        self, names: Iterable[str], called: MemberReference, *, first: bool = False
    ) -> Iterator[tuple[ClassFile, Member]]:
        for name in names:
            cls = None if name.startswith(_FLINK) else self._path.read(name)
            for method in () if cls is None else cls.methods:
                if (
                    cls is not None
                    and (method.name, method.descriptor) == (called.name, called.descriptor)
                    and method.code
                ):
                    yield cls, method
                    if first:
                        return

    def _follow(self, cls: ClassFile, method: Member) -> bool:
        """Add the calls of a method. Return False if it loads something by name."""
        is_whole = True
        for operation, operands in instructions(method.code):
            if operation == Opcode.INVOKEDYNAMIC:
                if (target := lambda_target(cls, operands.u2())) is not None:
                    self._add(target)
                continue
            if operation == Opcode.NEW:
                owner = cls.constants.class_name(operands.u2())
                self._create(owner)
            elif operation in (*CALLS, Opcode.GETSTATIC, Opcode.PUTSTATIC):
                member = cls.constants.member(operands.u2())
                owner = member.owner
                is_whole = is_whole and not (member.name in _LOADS and owner in _LOADERS)
                if operation in CALLS:
                    self._add(member)
            else:
                continue
            if operation in _INITIALIZES:
                self._add(MemberReference(owner, _INITIALIZER, "()V"))
        return is_whole

    def _create(self, name: str) -> None:
        """Add the methods of an object, except of functions of Flink, which run when the job does."""
        if name.startswith(_FLINK) or name not in self._path:
            return
        above = self._path.supertypes(name)
        if any(one.startswith(_FLINK) for one in above):
            return
        for owner in (name, *above):
            cls = self._path.read(owner)
            for method in () if cls is None else cls.methods:
                if method.name[0] != "<":
                    self._add(MemberReference(owner, method.name, method.descriptor))


def constant_text(cls: ClassFile, operation: int, operands: Cursor, *, full_names: bool = False) -> str | None:
    """Return the text of a constant that an instruction pushes, ``None`` if it pushes none. Class names are simple unless ``full_names``."""
    if _ICONST_M1 <= operation <= _ICONST_5:
        return str(operation - _ICONST_M1 - 1)
    if operation in (_LCONST_0, _LCONST_1):
        return str(operation - _LCONST_0)
    if operation in (_BIPUSH, _SIPUSH):
        return str(operands.i1() if operation == _BIPUSH else operands.i2())
    if operation not in (_LDC, _LDC_W, _LDC2_W):
        return None
    loaded = cls.constants.loaded(operands.u1() if operation == _LDC else operands.u2())
    if isinstance(loaded, str):
        return f'"{loaded}"'
    if isinstance(loaded, ClassConstant):
        return f"{loaded.name if full_names else loaded.name.rpartition('.')[2]}.class"
    return str(loaded)


def _dynamic_text(cls: ClassFile, index: int) -> str:
    bootstrap, name, descriptor = cls.constants.dynamic(index)
    linked = cls.bootstraps[bootstrap] if bootstrap < len(cls.bootstraps) else None
    # Concatenation of texts has its constants there.
    texts = [] if linked is None else [t for a in linked.arguments if isinstance(t := cls.constants.loaded(a), str)]
    return f"{name}{descriptor}{texts}"


def without_line_numbers(data: bytes) -> bytes:
    """Return a class file without the line numbers of its methods.

    Raises
    ------
    FormatError
        Not a valid class file.
    """
    return _Stripper(data).run()


class _Stripper:
    def __init__(self, data: bytes) -> None:
        self._c = Cursor(data)
        #: Index in the constant pool of the names of attributes.
        self._names: dict[int, bytes] = {}
        self._lines: list[tuple[int, int]] = []

    def run(self) -> bytes:
        c = self._c
        c.skip(_HEAD_BYTES)
        self._read_names()
        c.skip(6)
        c.skip(2 * c.u2())
        for _ in range(2):
            for _ in range(c.u2()):
                c.skip(6)
                self._attributes()
        kept, pos = [], 0
        for start, end in self._lines:
            kept.append(c.data[pos:start])
            pos = end
        return b"".join((*kept, c.data[pos:]))

    def _read_names(self) -> None:
        c = self._c
        count, index = c.u2(), 1
        while index < count:
            tag = c.u1()
            if tag == _TEXT:
                self._names[index] = bytes(c.take(c.u2()))
            elif tag in CONSTANT_BYTES:
                c.skip(CONSTANT_BYTES[tag])
            else:
                raise c.fail(f"invalid constant of kind {tag} in a class file")
            index += 2 if tag in _TWO_ENTRIES else 1

    def _attributes(self) -> None:
        c = self._c
        for _ in range(c.u2()):
            name, size = self._names.get(c.u2()), c.i4()
            start = c.pos
            c.skip(size)
            end = c.pos
            if name == b"LineNumberTable":
                self._lines.append((start, end))
            elif name == b"Code":
                c.pos = start + 4
                c.skip(c.i4())
                c.skip(8 * c.u2())
                self._attributes()
                c.pos = end
