"""Paths inside of state values, such as ``account.balance``, ``history[0].amount`` and ``prices["EUR"]``, and JSON values at these paths.

=============  ==========================================================================
step           meaning
=============  ==========================================================================
``.name``      a field of a struct
``[0]``        an element of a list, by index; ``[+]`` appends one
``["a"]``      the value of a map at a key, as JSON; a key that is one word needs no quotes
=============  ==========================================================================
"""

from __future__ import annotations

import datetime
import json
import math
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, TypeAlias

from statetool.errors import EncodeError, OptionError, UnknownNameError, suggest
from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    DateType,
    DecimalType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)

_FIELD: Final = re.compile(r"\.([^.\[\]]+)")
_INTEGERS: Final = ("int8", "int16", "int32", "int64", "time", "day_interval")
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_UNITS: Final = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
#: Digits of a second in text. Python's times end at microseconds.
_DIGITS: Final = {"ms": 3, "us": 6, "ns": 6}
_FRACTION: Final = re.compile(r"[.,](\d+)")


class _Removed:
    """The type of :data:`REMOVED`."""


#: In the place of a new value: the element or map entry is removed.
REMOVED: Final = _Removed()


@dataclass(frozen=True, slots=True)
class FieldStep:
    """A field of a struct."""

    name: str


@dataclass(frozen=True, slots=True)
class ItemStep:
    """An element of a list or a value of a map: the text between the brackets."""

    text: str

    @property
    def key(self) -> Any:
        """The text as JSON, or the text itself if it is one word."""
        try:
            return json.loads(self.text)
        except ValueError:
            return self.text


Step: TypeAlias = "FieldStep | ItemStep"


@dataclass(frozen=True, slots=True)
class ValuePath:
    """A state, and the steps to a part of its value."""

    state: str
    steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str, states: Iterable[str]) -> ValuePath:
        """Parse a path. The longest name of a state that it starts with is the state.

        Raises
        ------
        UnknownNameError
            No state has this name.
        OptionError
            A step is not valid.
        """
        known = sorted(states, key=len, reverse=True)
        state = next((s for s in known if text.startswith(s) and text[len(s) :][:1] in ("", ".", "[")), None)
        if state is None:
            name = re.split(r"[.\[]", text)[0]
            raise UnknownNameError(f"no state {name!r}", hint=suggest(name, known))
        return cls(state, tuple(_parse_steps(text, len(state))))


def _parse_steps(text: str, at: int) -> Iterable[Step]:
    while at < len(text):
        field = _FIELD.match(text, at)
        if field is not None:
            yield FieldStep(field[1])
            at = field.end()
            continue
        end = closing_bracket(text, at)
        if end < 0 or end == at + 1:
            raise OptionError(
                f"the path {text!r} is not valid at {text[at:]!r}", hint='write state.field, state[0] or state["key"]'
            )
        yield ItemStep(text[at + 1 : end])
        at = end + 1


def closing_bracket(text: str, at: int) -> int:
    """Return the position of the bracket that closes the one at ``at``, -1 if there is none. Brackets in quotes do not count."""
    depth, quoted, escaped = 0, False, False
    for i in range(at, len(text)):
        letter = text[i]
        if quoted:
            quoted = letter != '"' or escaped
            escaped = letter == "\\" and not escaped
        elif letter == '"' and depth:
            quoted = True
        elif letter in "[]":
            depth += 1 if letter == "[" else -1
            if depth == 0:
                return i
        elif not depth:
            return -1
    return -1


def split_assignment(text: str) -> tuple[str, str]:
    """Split ``PATH=VALUE`` at the first equals sign outside of brackets.

    Raises
    ------
    OptionError
        There is none.
    """
    at = 0
    while at < len(text) and text[at] != "=":
        at = closing_bracket(text, at) + 1 or len(text) if text[at] == "[" else at + 1
    if at >= len(text):
        raise OptionError(f"{text!r} is not PATH=VALUE", hint='for example account.balance=1 or prices["EUR"]=1.5')
    return text[:at], text[at + 1 :]


def parse_value(text: str) -> Any:
    """Return the JSON value of a text. A text that is not JSON is a string.

    Raises
    ------
    EncodeError
        An object has a name twice.
    """
    try:
        return json.loads(text, parse_float=Decimal, object_pairs_hook=_object)
    except json.JSONDecodeError:
        return text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise EncodeError(f"a JSON object has a name twice: {', '.join(name for name, _ in pairs)}")
    return found


def pairs_of(value: Any) -> list[tuple[Any, Any]]:
    """Return the keys and values of a JSON value that is a map.

    Raises
    ------
    EncodeError
        It is not a map.
    """
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise EncodeError("a map is a JSON object, or a list of pairs [key, value]")
    return [(key, item) for key, item in pairs]


def check_texts(value: Any) -> None:
    """Refuse texts that no table can show.

    Raises
    ------
    EncodeError
        A text of a JSON value has a lone surrogate.
    """
    match value:
        case str() if any("\ud800" <= c <= "\udfff" for c in value):
            raise EncodeError(
                f"{value!r} has a lone surrogate, which tables cannot show", hint="write both halves of the character"
            )
        case dict():
            for key, item in value.items():
                check_texts(key)
                check_texts(item)
        case list() | tuple():
            for item in value:
                check_texts(item)


def replace_at(logical: LogicalType, old: Any, steps: tuple[Step, ...], new: Any, *, now_ms: int) -> Any:
    """Return a plain value with the part at a path replaced.

    Parameters
    ----------
    new
        A JSON value, or :data:`REMOVED`.
    now_ms
        Time of the last access of new values with a time to live. Existing ones keep theirs.

    Raises
    ------
    OptionError, UnknownNameError
        The path does not fit the type, or the part does not exist.
    EncodeError
        The new value does not fit the type.
    """
    if isinstance(logical, TtlType):
        access, value = (now_ms, None) if old is None else old
        return access, replace_at(logical.value, value, steps, new, now_ms=now_ms)
    if not steps:
        return plain_of(logical, new, now_ms=now_ms)
    step, rest = steps[0], steps[1:]
    if old is None:
        raise OptionError(f"the value before {_shown(step)} is null", hint="set the whole value")
    match logical, step:
        case StructType(fields), FieldStep(name):
            names = [field.name for field in fields]
            if name not in names:
                raise UnknownNameError(f"no field {name!r}", hint=suggest(name, names))
            if new is REMOVED and not rest:
                raise OptionError(f"field {name!r} cannot be removed", hint=f"set it to null: {name}=null")
            at = names.index(name)
            part = replace_at(fields[at].type, old[at], rest, new, now_ms=now_ms)
            return (*old[:at], part, *old[at + 1 :])
        case ListType(element), ItemStep():
            at = list_index(step, len(old), appends=new is not REMOVED and not rest)
            if new is REMOVED and not rest:
                return [*old[:at], *old[at + 1 :]]
            part = replace_at(element, old[at] if at < len(old) else None, rest, new, now_ms=now_ms)
            return [*old[:at], part, *old[at + 1 :]]
        case MapType(key, value), ItemStep():
            wanted = plain_of(key, step.key, now_ms=now_ms)
            at = next((i for i, (k, _) in enumerate(old) if k == wanted), len(old))
            if at == len(old) and (rest or new is REMOVED):
                raise UnknownNameError(
                    f"the map has no key {step.text}", hint=suggest(step.text, [str(k) for k, _ in old])
                )
            if new is REMOVED and not rest:
                return [*old[:at], *old[at + 1 :]]
            if at == len(old):
                check_texts(step.key)
                if wanted is None:
                    raise EncodeError("a new map entry with a null key, which tables cannot show")
            part = replace_at(value, old[at][1] if at < len(old) else None, rest, new, now_ms=now_ms)
            return [*old[:at], (wanted, part), *old[at + 1 :]]
    raise OptionError(f"{_shown(step)} does not fit a value of type {_name_of(logical)}")


def part_at(
    logical: LogicalType, value: Any, steps: tuple[Step, ...], *, appended: bool
) -> tuple[LogicalType, Any] | None:
    """Return the part of a plain value at a path that fits its type, with the type of the part. ``None`` if the part does not exist.

    Parameters
    ----------
    appended
        Whether ``[+]`` is the last element of a list, or does not exist yet.
    """
    if isinstance(logical, TtlType):
        return part_at(logical.value, value[1], steps, appended=appended)
    if not steps or value is None:
        return None if steps else (logical, value)
    match logical, steps[0]:
        case StructType(fields), FieldStep(name):
            at = [field.name for field in fields].index(name)
            return part_at(fields[at].type, value[at], steps[1:], appended=appended)
        case ListType(element), ItemStep(text):
            at = len(value) - appended if text == "+" else int(text)
            return part_at(element, value[at], steps[1:], appended=appended) if at < len(value) else None
        case MapType(key, item), ItemStep() as step:
            wanted = plain_of(key, step.key, now_ms=0)
            return next((part_at(item, v, steps[1:], appended=appended) for k, v in value if k == wanted), None)
    return None


def list_index(step: ItemStep, length: int, *, appends: bool) -> int:
    """Return the index of a list element; ``length`` for ``[+]``.

    Raises
    ------
    OptionError
        Not an index of the list.
    """
    if step.text == "+" and appends:
        return length
    if not step.text.isdecimal() or int(step.text) >= length:
        raise OptionError(
            f"{_shown(step)} is not an index of a list of {length}",
            hint="indexes start at 0; [+]=VALUE appends an element",
        )
    return int(step.text)


def _shown(step: Step) -> str:
    return f".{step.name}" if isinstance(step, FieldStep) else f"[{step.text}]"


def plain_of(logical: LogicalType, value: Any, *, now_ms: int) -> Any:
    """Return the plain value of a type for a JSON value.

    Raises
    ------
    EncodeError
        The value does not fit the type.
    """
    if value is None:
        return None
    match logical, value:
        case TtlType(inner), _:
            return now_ms, plain_of(inner, value, now_ms=now_ms)
        case Scalar("bool"), bool():
            return value
        case Scalar(name), int() if name in _INTEGERS and not isinstance(value, bool):
            return value
        case Scalar("float32" | "float64"), int() | float() | Decimal() if not isinstance(value, bool):
            return _float(value, logical)
        case Scalar("string"), str():
            return value
        case Scalar("binary"), {"bytes": str(text), **more} if not more:
            return _parse(bytes.fromhex, text, logical)
        case BigIntegerType(), int() if not isinstance(value, bool):
            return value
        case ((BigDecimalType() | DecimalType()), int() | Decimal() | str()) if not isinstance(value, bool):
            return _parse(Decimal, str(value), logical)
        case ((DateType() | TimestampType()), int()) if not isinstance(value, bool):
            return value
        case DateType(), str():
            return _parse(datetime.date.fromisoformat, value, logical).toordinal() - _EPOCH.toordinal()
        case TimestampType(unit, zoned), str():
            return _timestamp(value, unit, zoned=zoned)
        case ListType(element), list():
            return [plain_of(element, v, now_ms=now_ms) for v in value]
        case MapType(key, item), (dict() | list()):
            pairs = [(plain_of(key, k, now_ms=now_ms), plain_of(item, v, now_ms=now_ms)) for k, v in pairs_of(value)]
            if len({repr(k) for k, _ in pairs}) != len(pairs):
                raise EncodeError("a map has a key twice")
            if any(k is None for k, _ in pairs):
                raise EncodeError("a map with a null key, which tables cannot show")
            return pairs
        case StructType(fields), dict():
            if set(value) != {f.name for f in fields}:
                raise EncodeError(
                    f"a struct needs the fields {', '.join(f.name for f in fields)}, found {', '.join(value)}"
                )
            return tuple(plain_of(f.type, value[f.name], now_ms=now_ms) for f in fields)
    raise EncodeError(
        f"{value!r} is not a value of type {_name_of(logical)}", hint='values are JSON: 1, 1.5, true, null, "text"'
    )


def _name_of(logical: LogicalType) -> str:
    return logical.name if isinstance(logical, Scalar) else type(logical).__name__.removesuffix("Type").lower()


def _parse(parse: Any, text: str, logical: LogicalType) -> Any:
    try:
        return parse(text)
    except (ValueError, InvalidOperation):
        raise EncodeError(f"{text!r} is not a value of type {_name_of(logical)}") from None


def _float(value: int | float | Decimal, logical: LogicalType) -> float:
    """Return the nearest number of a type. Whole numbers must fit exactly, and no other number becomes 0 or infinite."""
    try:
        number = float(value)
        if logical == Scalar("float32"):
            (number,) = struct.unpack(">f", struct.pack(">f", number))
    except OverflowError:
        number = math.inf
    lost = number != value if isinstance(value, int) else (number == 0) != (value == 0)
    if lost or (math.isinf(number) and not (isinstance(value, float) and math.isinf(value))):
        raise EncodeError(f"{value} does not fit a value of type {_name_of(logical)}")
    return number


def _timestamp(text: str, unit: Literal["ms", "us", "ns"], *, zoned: bool) -> int:
    fraction = _FRACTION.search(text)
    if fraction is not None and len(fraction[1].rstrip("0")) > _DIGITS[unit]:
        raise EncodeError(f"{text!r} has more than {_DIGITS[unit]} digits of a second", hint="pass a number instead")
    moment = _parse(datetime.datetime.fromisoformat, text.replace("Z", "+00:00"), TimestampType(unit, zoned))
    if (moment.tzinfo is not None) is not zoned:
        raise EncodeError(f"{text!r} {'needs a' if zoned else 'has a'} time zone", hint="pass a number instead")
    since = moment.replace(tzinfo=moment.tzinfo or datetime.timezone.utc) - _EPOCH
    return int((since.days * 86_400 + since.seconds) * _UNITS[unit] + since.microseconds * _UNITS[unit] // 1_000_000)
