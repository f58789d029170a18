"""Rules by which ``ObjectInputStream`` reads values with the classes of a new job.

A stream contains the name, ``serialVersionUID`` and fields of each class. Follows ``ObjectStreamClass.initNonProxy`` and ``matchFields``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from statetool.compatibility.verdicts import CheckWarning, Level, Remedy, Resolution, combine, migration_remedy
from statetool.io.java_streams.reader import JavaClass
from statetool.types.serializable import SerializableClass

_SERIALIZABLE: Final = 0x02
_EXTERNALIZABLE: Final = 0x04
_ENUM: Final = 0x10
_OBJECTS: Final = "[L"
_OBJECT: Final = "Ljava/lang/Object;"
_CONVERT: Final = "Write a copy of the snapshot in which the values have the class of the new job."
_KEEP: Final = "Keep the former class, or write a copy of the snapshot in which the values have another type."


def resolve_java_class(
    stream: JavaClass, constants: Iterable[str], new: SerializableClass | None, *, is_same: bool
) -> Resolution:
    """Check whether the new job reads the values of a class in a stream.

    Parameters
    ----------
    constants
        Constants of the enum that occur in values.
    new
        The class of the new job, ``None`` if its jar does not have it.
    is_same
        Whether both jobs have the same class. Its methods then read what they wrote.
    """
    if not stream.flags & (_SERIALIZABLE | _EXTERNALIZABLE):
        return Resolution(Level.AS_IS)
    if new is None:
        return _unknown(stream, "its class is not in the jar")
    if failed := java_failure(stream, constants, new):
        text, remedy = failed
        return Resolution.because(Level.INCOMPATIBLE, f"Java serialization wrote {stream.name}: {text}.", remedy)
    if stream.flags & _ENUM:
        return Resolution(Level.AS_IS)
    return combine(_values(stream, new, is_same=is_same))


def java_failure(
    stream: JavaClass, constants: Iterable[str], new: SerializableClass
) -> tuple[str, Remedy | str] | None:
    """Return the reason why the new job cannot read values, and the remedy."""
    if stream.flags & _ENUM or new.is_enum:
        if not (stream.flags & _ENUM and new.is_enum):
            return f"the new job has {'an' if new.is_enum else 'no'} enum of this name", _KEEP
        gone = sorted(set(constants) - set(new.constants)) if new.constants else ()
        return (
            (f"the new enum does not have {', '.join(gone)}", f"Keep the constants of {stream.name}.") if gone else None
        )
    if new.is_serializable is False:
        return "the class of the new job is not serializable", _KEEP
    if bool(stream.flags & _EXTERNALIZABLE) != new.is_externalizable:
        return f"the class of the new job is {'' if new.is_externalizable else 'not '}Externalizable", _KEEP
    if new.uid not in (None, stream.suid) and not new.is_record:
        text = f"the values have serialVersionUID {stream.suid}, the class of the new job has {new.uid}"
        declaration = f"private static final long serialVersionUID = {stream.suid}L"
        keep = f"Add this field to the class of the new job: {declaration}."
        return text, migration_remedy(_CONVERT, keep)
    retyped = [
        name for name, (code, now) in _common(stream, new).items() if code != now[0] and {code, now[0]} - {*_OBJECTS}
    ]
    if retyped:
        return f"the type of {', '.join(retyped)} differs in the class of the new job", migration_remedy(
            _CONVERT, "Keep the former class."
        )
    if new.without_constructor:
        remedy = f"Add a constructor without parameters to {new.without_constructor}."
        return (
            f"Java cannot create objects, because {new.without_constructor} has no constructor without parameters",
            remedy,
        )
    return None


def _values(stream: JavaClass, new: SerializableClass, *, is_same: bool) -> Iterator[Resolution]:
    """Yield the resolutions of values that the new job reads, or that may be others."""
    if new.uid is None and not new.is_record:
        yield _unknown(stream, "its serialVersionUID is not a constant")
    elif is_same:
        return
    if new.has_own_code or stream.flags & _EXTERNALIZABLE:
        yield _unknown(stream, "its methods read the values")
    types = types_in(stream)
    # A field of type Object takes every object.
    retyped = [name for name, (_, now) in _common(stream, new).items() if now not in (types[name], _OBJECT)]
    if retyped:
        yield _unknown(stream, f"the type of {', '.join(retyped)} differs")
    now = [name for name, _ in new.fields]
    yield from _changed(stream, "", [n for n in types if n not in now], [n for n in now if n not in types])
    if not new.is_record:
        before = superclasses_in(stream, new.superclasses[-1:])
        lost = [n for n in before if n not in new.superclasses]
        added = [n for n in new.superclasses if n not in before]
        if [n for n in before if n not in lost] != [n for n in new.superclasses if n not in added]:
            yield _unknown(stream, "the order of its superclasses differs")
        yield from _changed(stream, "the fields of ", lost, added)


def _changed(stream: JavaClass, what: str, lost: list[str], added: list[str]) -> Iterator[Resolution]:
    """Yield a warning about fields, or classes with fields, that only one of the classes has."""
    if lost or added:
        texts = [f"drops {what}{', '.join(lost)}"] * bool(lost)
        texts += [f"sets {what}{', '.join(added)} to 0 or null"] * bool(added)
        text = f"Java serialization reads {stream.name} with the class of the new job: it {' and '.join(texts)}."
        yield Resolution.because(Level.AS_IS, text, None, CheckWarning(kind="may_change", message=text))


def superclasses_in(stream: JavaClass, last: tuple[str, ...]) -> list[str]:
    """Return the serializable superclasses in a stream, up to one that the jar of the new job does not have."""
    found: list[str] = []
    above = stream.parent
    while above is not None and above.name not in found:
        found.append(above.name)
        above = None if above.name in last else above.parent
    return found


def types_in(stream: JavaClass) -> dict[str, str]:
    """Return the descriptors of the fields in a stream."""
    signatures = iter(stream.signatures)
    return {name: next(signatures, "") if code in _OBJECTS else code for code, name in stream.fields}


def _common(stream: JavaClass, new: SerializableClass) -> dict[str, tuple[str, str]]:
    """Return the type codes in a stream and the new descriptors of the fields that both have."""
    now = dict(new.fields)
    return {name: (code, now[name]) for code, name in stream.fields if name in now}


def _unknown(stream: JavaClass, reason: str) -> Resolution:
    text = f"Whether the new job reads the values of {stream.name} that Java serialization wrote is unknown: {reason}."
    return Resolution.by_run(text, CheckWarning(kind="may_change", message=text, in_reason=True))
