"""Classes that a job has: those of its jars, and those that Flink and Java provide."""

from __future__ import annotations

from typing import Final

from statetool.types.declared import TypeContext

#: Packages of classes that no job's jar has to contain.
_PROVIDED: Final = (
    *("java.", "javax.", "scala.", "org.apache.flink.", "com.esotericsoftware.kryo.", "com.twitter.chill."),
    "org.apache.avro.",
)


def is_provided(name: str) -> bool:
    """Return True if a class, or the class of the elements of an array, does not have to be in the job's jar."""
    name = element_class(name)
    return len(name) < 2 or name.startswith(_PROVIDED)


def has_class(types: TypeContext, name: str) -> bool:
    """Return True unless the jar of a job is known and does not have a class."""
    name = element_class(name)
    return (
        is_provided(name)
        or types.source is None
        or types.source.has(name)
        or any(c.name == name for c in types.classes)
    )


def element_class(name: str) -> str:
    """Return the class of the innermost elements of an array, by ``Class.getName()``; other names are returned unchanged."""
    inner = name.lstrip("[")
    return inner[1:-1] if inner != name and inner.endswith(";") else inner
