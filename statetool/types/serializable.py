"""Classes as Java serialization sees them (``java.io.ObjectStreamClass``)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SerializableClass:
    """A class of a job, as ``ObjectInputStream`` compares it with the class in a stream.

    Attributes
    ----------
    uid
        ``serialVersionUID``, declared or computed; ``None`` if the class assigns a value that is not a constant. If it is not known whether
        the class is serializable, the value that it has if it is.
    is_serializable
        Whether the class implements ``Serializable``; ``None`` if a superclass is not in the jar.
    fields
        Name and descriptor of each field that is neither static nor transient.
    superclasses
        Its serializable superclasses, nearest first. The last one may be a class that is not in the jar.
    constants
        Constants of an enum.
    has_own_code
        Whether methods such as ``readObject`` decide what is read.
    without_constructor
        The nearest superclass that is not serializable, if it lacks the constructor without parameters that Java calls.
    """

    uid: int | None
    is_serializable: bool | None
    fields: tuple[tuple[str, str], ...]
    superclasses: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    is_externalizable: bool = False
    is_enum: bool = False
    is_record: bool = False
    has_own_code: bool = False
    without_constructor: str = ""
