"""Types of records that the code of a job names: explicit types, type arguments of its functions, and types of its lambdas.

No snapshot stores the types of records. Flink takes them from ``returns(Types.TUPLE(Types.STRING, Types.INT))``, from ``implements MapFunction<String,
Order>``, or from the descriptor of a lambda. Which of them belongs to which operator, only the data tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from statetool.classes.bytecode import instructions
from statetool.classes.class_file import SYNTHETIC, ClassConstant, ClassFile, Member
from statetool.classes.class_path import ClassPath
from statetool.classes.signatures import GenericType, class_signature, parse_parameters
from statetool.classes.type_extraction import extract_generic
from statetool.types.type_information import TypeInformation, kryo
from statetool.types.type_names import basic_type

_FLINK: Final = "org.apache.flink."
_TUPLE: Final = "org.apache.flink.api.java.tuple.Tuple"
_LDC: Final = (0x12, 0x13)
_GETSTATIC: Final = 0xB2
_INVOKESPECIAL: Final = 0xB7
_INVOKES: Final = (0xB6, 0xB7, 0xB8, 0xB9)
_ANEWARRAY: Final = 0xBD
#: Pushes of indexes, duplicates, stores into an array, and new objects: what stands between the types of a call.
_NEUTRAL: Final = (*range(0x02, 0x12), 0x53, 0x59, 0xBB)
_MOST_CLASSES: Final = 20_000


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type as code names it: ``name`` is the same for the same expression in two jars."""

    name: str
    type: TypeInformation


def find_record_types(class_path: ClassPath, major: Literal[1, 2]) -> dict[str, TypeInformation]:
    """Return the types of records that the code of a job names, by their text.

    Parameters
    ----------
    major
        The major version of Flink, whose type extraction makes the serializers.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    found: dict[str, TypeInformation] = {}
    generics = dict.fromkeys(_generic_types(class_path))
    for generic in generics:
        found[_text(generic)] = extract_generic(class_path, generic, major)
    for name in class_path.declaring:
        cls = None if name.startswith(_FLINK) else class_path.read(name)
        for method in () if cls is None else cls.methods:
            found.update((t.name, t.type) for t in _explicit_types(class_path, cls, method, major) if cls is not None)
    return {name: found[name] for name in sorted(found) if found[name].is_settled}


def _generic_types(class_path: ClassPath) -> Iterator[GenericType]:
    """Yield the type arguments of functions, sources and type hints, and the types of lambdas."""
    for name in class_path.extending(_FLINK)[:_MOST_CLASSES]:
        cls = None if name.startswith(_FLINK) else class_path.read(name)
        if cls is not None:
            signature = class_signature(cls)
            above = (signature.superclass, *signature.interfaces)
            yield from (a for t in above if t.name.startswith(_FLINK) for a in t.args if _is_closed(a))
    for name in class_path.declaring:
        cls = None if name.startswith(_FLINK) else class_path.read(name)
        for method in () if cls is None else cls.methods:
            if method.access & SYNTHETIC and method.name.startswith("lambda$"):
                parameters, result = parse_parameters(method.descriptor)
                yield from (t for t in (*parameters, result) if t is not None and _is_closed(t) and not _is_of_flink(t))


def _is_closed(generic: GenericType) -> bool:
    """Return True if a type has neither variables nor wildcards."""
    return generic.kind in ("class", "array") and all(map(_is_closed, generic.args))


def _is_of_flink(generic: GenericType) -> bool:
    return generic.name.startswith(_FLINK) and not generic.name.startswith(_TUPLE)


def _text(generic: GenericType) -> str:
    if generic.kind == "array":
        return f"{_text(generic.args[0])}[]"
    return f"{generic.name}<{', '.join(map(_text, generic.args))}>" if generic.args else generic.name


def _explicit_types(class_path: ClassPath, cls: ClassFile, method: Member, major: Literal[1, 2]) -> Iterator[NamedType]:
    """Yield the types that a method creates by ``TypeInformation.of``, ``new GenericTypeInfo`` and ``Types``."""
    #: Class constants and types since the last other instruction; ``None`` for the beginning of an array.
    pushed: list[str | NamedType | None] = []
    for operation, operands in instructions(method.code):
        if operation in _LDC:
            loaded = cls.constants.loaded(operands.u1() if operation == _LDC[0] else operands.u2())
            pushed.append(loaded.name if isinstance(loaded, ClassConstant) else None)
        elif operation == _GETSTATIC:
            member = cls.constants.member(operands.u2())
            java_class = basic_type(f"{member.owner.rpartition('.')[2]}.{member.name}")
            basic = None if java_class is None or not member.owner.startswith(_FLINK) else java_class
            pushed.append(None if basic is None else _of_class(class_path, basic, major))
        elif operation == _ANEWARRAY:
            pushed.append(None)
        elif operation in _INVOKES:
            called = cls.constants.member(operands.u2())
            made = (
                _made(class_path, called.owner, called.name, pushed, major) if called.owner.startswith(_FLINK) else None
            )
            if made is None:
                pushed = []
            else:
                yield made
                pushed = [*pushed[: _begin(pushed)], made] if called.name == "TUPLE" else [*pushed[:-1], made]
        elif operation not in _NEUTRAL:
            pushed = []


def _begin(pushed: list[str | NamedType | None]) -> int:
    """Return the place of the array that is filled last."""
    return max((at for at, one in enumerate(pushed) if one is None), default=0)


def _made(
    class_path: ClassPath, owner: str, name: str, pushed: list[str | NamedType | None], major: Literal[1, 2]
) -> NamedType | None:
    """Return the type that a call of Flink creates."""
    simple, last = owner.rpartition(".")[2], pushed[-1] if pushed else None
    if simple == "Types" and name == "TUPLE":
        parts = [one for one in pushed[_begin(pushed) + 1 :] if isinstance(one, NamedType)]
        if not parts or len(parts) < len(pushed) - _begin(pushed) - 1:
            return None
        java_class = f"{_TUPLE}{len(parts)}"
        text = f"{java_class}<{', '.join(p.name for p in parts)}>"
        return NamedType(text, TypeInformation("tuple", java_class, parts=tuple(p.type for p in parts)))
    if not isinstance(last, str):
        return None
    if (simple, name) in (("TypeInformation", "of"), ("Types", "POJO"), ("TypeExtractor", "getForClass")):
        return _of_class(class_path, last, major)
    if (simple, name) in (("GenericTypeInfo", "<init>"), ("Types", "GENERIC")):
        return NamedType(f"generic {last}", kryo(last))
    return None


def _of_class(class_path: ClassPath, name: str, major: Literal[1, 2]) -> NamedType:
    return NamedType(name, extract_generic(class_path, GenericType("class", name), major))
