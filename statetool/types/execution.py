"""What comes of executing a method of a job's class without a JVM: values, and why they are not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Some:
    """An object or number of which only its origin is known. ``may_be_null``: nothing says that there is one."""

    origin: str
    may_be_null: bool = False


@dataclass(frozen=True, slots=True)
class Known(Some):
    """An object of a class outside of the jar, with its hash code."""

    hash_code: int = 0


@dataclass(frozen=True, slots=True)
class Boxed:
    """A boxed number, boolean or char."""

    box: str
    value: int | float


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of an enum."""

    cls: str
    name: str
    ordinal: int


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class in the jar."""

    cls: str
    fields: dict[str, Any] = field(default_factory=dict)


class Creation(NamedTuple):
    """What the creation of an object does.

    Attributes
    ----------
    fails
        The exception, empty if there is none.
    unknown
        Why the result is not known, empty if it is.
    visited
        The methods of the jar that were executed, each with a hash of its instructions.
    fields
        Fields of the object.
    """

    fails: str = ""
    unknown: str = ""
    visited: frozenset[tuple[str, str, int]] = frozenset()
    fields: Mapping[str, Any] = {}


class Result(NamedTuple):
    """The result of a method: a value, or the reason why it is not known, or the type whose address it uses."""

    value: Any = None
    unknown: str = ""
    address: str = ""
    visited: frozenset[tuple[str, str, int]] = frozenset()
