"""Symbolic values of Java methods: ints as sums of terms, everything else as expressions over the fields of an object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

_BITS: Final = 0xFFFFFFFF
#: Maximum number of parts of a value. Choices of choices could grow without bound.
_MAX_SIZE: Final = 4000


class NotEvaluatedError(Exception):
    """A method whose result is not an expression. The message continues ``hashCode() ...``."""


def _size_of(parts: Iterable[Any]) -> int:
    size = 1 + sum(part.size for part in parts if isinstance(part, Expression | Linear))
    if size > _MAX_SIZE:
        raise NotEvaluatedError(f"computes a value of more than {_MAX_SIZE} parts")
    return size


def to_int32(value: int) -> int:
    """Wrap to a signed 32-bit int, as Java arithmetic does."""
    return ((value + 0x80000000) & _BITS) - 0x80000000


@dataclass(frozen=True, slots=True)
class Expression:
    """A value that is no int, or a term of one.

    Attributes
    ----------
    name
        ``this``, ``field`` (name, descriptor), ``text`` or ``number`` (a constant), ``null``, ``new`` (number of an array or builder),
        ``choice`` (condition, value if true, value if false), or the operation on ``args``.
    is_wide
        Whether it is a long or double, which takes two words of the stack.
    """

    name: str
    args: tuple[Any, ...] = ()
    is_wide: bool = False
    size: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size_of(self.args))


@dataclass(frozen=True, slots=True)
class Linear:
    """An int: ``constant`` plus the product of each term and its factor, modulo 2**32. Terms are in the order in which they were added."""

    constant: int
    terms: tuple[tuple[Expression, int], ...] = ()
    size: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size_of(term for term, _ in self.terms))

    def __add__(self, other: Linear) -> Linear:
        factors = dict(self.terms)
        for term, factor in other.terms:
            factors[term] = to_int32(factors.get(term, 0) + factor)
        return Linear(to_int32(self.constant + other.constant), tuple((t, f) for t, f in factors.items() if f))

    def __mul__(self, factor: int) -> Linear:
        terms = ((term, to_int32(f * factor)) for term, f in self.terms)
        return Linear(to_int32(self.constant * factor), tuple((t, f) for t, f in terms if f))

    @property
    def term(self) -> Expression | None:
        """The term, if it is only that."""
        return self.terms[0][0] if not self.constant and len(self.terms) == 1 and self.terms[0][1] == 1 else None


Value: TypeAlias = "Linear | Expression"
THIS: Final = Expression("this")
NULL: Final = Expression("null")


def term(name: str, *args: Any) -> Linear:
    """Return an int that is a single term."""
    return Linear(0, ((Expression(name, args), 1),))


def choice(condition: Expression, yes: Value, no: Value) -> Value | None:
    """Return a value that depends on a condition, ``None`` for an int on one side only."""
    if yes == no:
        return yes
    if isinstance(yes, Linear) and isinstance(no, Linear):
        return term("choice", condition, yes, no)
    if isinstance(yes, Expression) and isinstance(no, Expression):
        return Expression("choice", (condition, yes, no), yes.is_wide)
    return None


def int_choice(condition: Expression, yes: int | Linear, no: int | Linear) -> Linear:
    """Return an int that depends on a condition."""
    chosen = choice(condition, *(Linear(v) if isinstance(v, int) else v for v in (yes, no)))
    assert isinstance(chosen, Linear)
    return chosen


def is_null(value: Value) -> Expression:
    """Return the condition that a reference is null."""
    return Expression("is_null", (value,))


def is_zero(value: Linear) -> Expression:
    """Return the condition that an int is zero."""
    return Expression("is_zero", (value,))


def decide(condition: Expression) -> bool | None:
    """Return the result of a condition on constants, ``None`` if it depends on fields."""
    (value, *_) = condition.args
    if isinstance(value, Linear):
        if value.terms:
            return None
        return {
            "is_zero": value.constant == 0,
            "is_negative": value.constant < 0,
            "is_positive": value.constant > 0,
        }.get(condition.name)
    if condition.name == "is_null":
        if value == NULL:
            return True
        return False if value.name in ("this", "text", "new", "box") else None
    return None


def fold(value: Expression) -> Linear:
    """Return the hash code of a long: both halves by exclusive or."""
    return term("fold", value)


def of_primitive(code: str, value: Value) -> Linear:
    """Return the hash code of a primitive by its descriptor, as its box computes it."""
    if isinstance(value, Linear):
        return int_choice(is_zero(value), 1237, 1231) if code == "Z" else value
    if code == "D":
        return fold(Expression("double_bits", (value,), is_wide=True))
    return fold(value) if code == "J" else term("float_bits", value)


def of_object(value: Expression) -> Linear:
    """Return the hash code of an object that is not null."""
    if value.name == "box":
        return of_primitive(*value.args)
    return term("hash", value)


def of_nullable(value: Expression) -> Linear:
    """Return the hash code of an object, 0 for null."""
    condition = is_null(value)
    decided = decide(condition)
    if decided is not None:
        return Linear(0) if decided else of_object(value)
    return int_choice(condition, 0, of_object(value))


def polynomial(start: int, multiplier: int, hashes: list[Linear]) -> Linear:
    """Return ``multiplier * h + hash`` over all hash codes, from ``h = start``."""
    result = Linear(to_int32(start))
    for part in hashes:
        result = result * multiplier + part
    return result
