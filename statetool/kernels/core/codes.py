"""Error codes of kernels, with their messages. Needs no NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from statetool.errors import DecodeError

if TYPE_CHECKING:
    from statetool.kernels.core.arrays import Int64s, Mask

OK: Final = 0
TRUNCATED: Final = 1
BAD_FLAG: Final = 2
BAD_COUNT: Final = 3
LONE_SURROGATE: Final = 4
BAD_UNIT: Final = 5
NANOS: Final = 6
RANGE: Final = 7
BAD_TEMPORAL: Final = 8
SUBCLASS: Final = 9
BAD_CHOICE: Final = 10
NOT_SKIPPABLE: Final = 11
BAD_SEPARATOR: Final = 12
BAD_BIG_NUMBER: Final = 13
DATE_RANGE: Final = 14
BAD_CONSTANT: Final = 15
BAD_PADDING: Final = 16
UNUSED_BITS: Final = 17
BAD_KIND: Final = 18
BAD_PART: Final = 19
BAD_INLINE: Final = 20
OVERLAP: Final = 21
BAD_NANOS: Final = 22
BAD_DECIMAL: Final = 23
NOT_NULL: Final = 24
NESTED_KIND: Final = 25
BAD_PAIRS: Final = 26
BAD_SIZE: Final = 27
BAD_BRANCH: Final = 28
BAD_TAG: Final = 29
NULL_INSIDE: Final = 30
NULL_VALUE: Final = 31
UNKNOWN_OPERATION: Final = 32

MESSAGES: Final = {
    TRUNCATED: ("the value goes beyond the end of its frame", ""),
    BAD_FLAG: ("a flag byte that is neither 0 nor 1", ""),
    BAD_COUNT: ("a count that does not fit the bytes left", ""),
    LONE_SURROGATE: (
        "a string with a lone surrogate, which UTF-8 cannot hold",
        "read the state with on_error='keep_raw' to keep its bytes",
    ),
    BAD_UNIT: ("a character above U+FFFF in a string of UTF-16 units", ""),
    NANOS: (
        "a timestamp with digits below the microsecond",
        "pass nanos='always' to keep them in a column beside it, or nanos='truncate' to drop them",
    ),
    RANGE: ("a timestamp beyond what microseconds in 64 bits can hold", ""),
    BAD_TEMPORAL: ("not a date or time", ""),
    SUBCLASS: ("flags of a POJO that are neither null (1) nor the exact class (2)", ""),
    BAD_CHOICE: ("an index beyond the constants of the enum", ""),
    NOT_SKIPPABLE: ("a value whose end cannot be found", ""),
    BAD_SEPARATOR: ("list elements that are not separated by a comma (2C)", ""),
    DATE_RANGE: ("a date beyond what days in 32 bits can hold", ""),
    BAD_CONSTANT: ("not the byte that stands for a value of this type", ""),
    BAD_PADDING: ("padding behind a null is not zero", ""),
    UNUSED_BITS: ("unused bits of a bit mask are set", ""),
    BAD_KIND: ("not a row kind (0 to 3)", ""),
    BAD_PART: ("a part that goes beyond the row, array or map around it", ""),
    BAD_INLINE: ("more than 7 bytes inside of a slot", ""),
    OVERLAP: ("variable parts that overlap", ""),
    BAD_NANOS: ("not a nano of milli (0 to 999,999)", ""),
    BAD_DECIMAL: ("a decimal of more digits than its type has", ""),
    NOT_NULL: ("a value in a field that can only be null", ""),
    NESTED_KIND: ("a key or a nested row of another kind than +I, which no column has a place for", ""),
    BAD_PAIRS: ("a map of more keys than values, or the other way round", ""),
    BAD_BRANCH: ("the index of a branch that the union does not have", ""),
    NULL_INSIDE: ("a null inside of a raw value, which cannot be told from no value", ""),
    NULL_VALUE: ("a null in the place of a value whose None is an object", ""),
    BAD_TAG: ("not the tag of a stream element (0 to 6), or not a status (0, -1)", ""),
    BAD_SIZE: ("a value that does not fill the bytes that it was given", ""),
    BAD_BIG_NUMBER: ("the length of a big number does not fit the bytes left", ""),
    UNKNOWN_OPERATION: (
        "an operation that the kernel does not have",
        "this is a mistake in statetool: please report it",
    ),
}


def coded_error(code: int) -> DecodeError:
    """Return the exception for a kernel's error code."""
    message, hint = MESSAGES[code]
    return DecodeError(message, hint=hint)


def check(result: tuple[int, int], pos: Int64s) -> None:
    """Raise the error for a kernel's result, unless it is ``OK``.

    Parameters
    ----------
    result
        Code, and index of the value that it refers to.
    pos
        int64[n]: position of each value in the bytes, for the error's offset.

    Raises
    ------
    DecodeError
        The code is not ``OK``.
    """
    code, index = result
    if code != OK:
        raise coded_error(int(code)).at(offset=int(pos[index]))


def refuse(bad: Mask, code: int, pos: Int64s) -> None:
    """Raise the error of ``code`` for the first value marked in ``bad`` bool[n], if any.

    Raises
    ------
    DecodeError
        A value is marked. Its offset is taken from ``pos`` int64[n].
    """
    if bad.any():
        raise coded_error(code).at(offset=int(pos[int(bad.argmax())]))
