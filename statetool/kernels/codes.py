"""What kernels return when a value cannot be decoded, with the words for it."""

from __future__ import annotations

from typing import Final

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
        "pass nanos='companion' to keep them in a column beside it, or nanos='truncate' to drop them",
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
    BAD_BIG_NUMBER: ("the length of a big number does not fit the bytes left", ""),
}
