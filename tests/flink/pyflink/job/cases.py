"""State of the job: one state per PyFlink type, and one operator per key type.

A source counts up from 0. The numbers below :data:`KEPT_NUMBERS` go into state, by the rules of the cases. A restored job continues to
count from there, and each further number triggers a report of its key's state.
"""

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from pyflink.common import Row, Types
from pyflink.common.time import Instant

KEPT_NUMBERS = 60
LEAP_DAY = datetime.date(2024, 2, 29)
LEAP_DAY_MORNING = datetime.datetime(2024, 2, 29, 1, 2, 3, 4000)
LEAP_DAY_SECONDS = 1709168523


class StateCase(NamedTuple):
    """A value state: its type in PyFlink, its declaration for statetool, and the value for a number."""

    make_type: Callable[[], Any]  # late: PyFlink's types need its gateway to the JVM
    declared: str
    value_of: Callable[[int], Any]


class KeyCase(NamedTuple):
    """A key: its type in PyFlink, and the key for a number."""

    make_type: Callable[[], Any]
    key_of: Callable[[int], Any]


STATES = {
    "string": StateCase(Types.STRING, "STRING", lambda n: f"é€😀{n}"),
    "boolean": StateCase(Types.BOOLEAN, "BOOLEAN", lambda n: n % 2 == 0),
    "byte": StateCase(Types.BYTE, "BYTE", lambda n: n % 256 - 128),
    "short": StateCase(Types.SHORT, "SHORT", lambda n: -300 - n),
    "int": StateCase(Types.INT, "INT", lambda n: -(2**31) + n),
    "long": StateCase(Types.LONG, "LONG", lambda n: 2**63 - 1 - n),
    "float": StateCase(Types.FLOAT, "FLOAT", lambda n: n + 0.25),
    "double": StateCase(Types.DOUBLE, "DOUBLE", lambda n: n / 7),
    "char": StateCase(Types.CHAR, "CHAR", lambda n: chr(65 + n % 26)),
    "bigint": StateCase(Types.BIG_INT, "BIG_INT", lambda n: -(2**62) + n),
    "bigdec": StateCase(Types.BIG_DEC, "BIG_DEC", lambda n: Decimal(n) / 8 - Decimal("12345678901234567890.5")),
    "date": StateCase(Types.SQL_DATE, "SQL_DATE", lambda n: LEAP_DAY - datetime.timedelta(days=n * 1000)),
    "time": StateCase(Types.SQL_TIME, "SQL_TIME", lambda n: datetime.time(23, n % 60, 59, 123000)),
    "timestamp": StateCase(
        Types.SQL_TIMESTAMP, "SQL_TIMESTAMP", lambda n: LEAP_DAY_MORNING + datetime.timedelta(days=n)
    ),
    "instant": StateCase(Types.INSTANT, "INSTANT", lambda n: Instant(LEAP_DAY_SECONDS + n, 123456789)),
    "pickled": StateCase(Types.PICKLED_BYTE_ARRAY, "PICKLED_BYTE_ARRAY", lambda n: [n, "p", None, 1.5]),
    "bytes": StateCase(
        lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), "PRIMITIVE_ARRAY(BYTE)", lambda n: bytes([n, 0, 255])
    ),
    "ints": StateCase(lambda: Types.PRIMITIVE_ARRAY(Types.INT()), "PRIMITIVE_ARRAY(INT)", lambda n: list(range(n % 4))),
    "doubles": StateCase(
        lambda: Types.PRIMITIVE_ARRAY(Types.DOUBLE()), "PRIMITIVE_ARRAY(DOUBLE)", lambda n: [n / 3, -1.0]
    ),
    "strings": StateCase(
        lambda: Types.BASIC_ARRAY(Types.STRING()), "BASIC_ARRAY(STRING)", lambda n: ["a" * (n % 3), None]
    ),
    "objects": StateCase(
        lambda: Types.OBJECT_ARRAY(Types.TUPLE([Types.INT(), Types.STRING()])),
        "OBJECT_ARRAY(TUPLE(INT, STRING))",
        lambda n: [(n, "x")],
    ),
    "row": StateCase(
        lambda: Types.ROW([Types.LONG(), Types.STRING()]),
        "ROW(LONG, STRING)",
        lambda n: Row(n, None if n % 2 else "odd"),
    ),
    "named": StateCase(
        lambda: Types.ROW_NAMED(["id", "name", "tags"], [Types.LONG(), Types.STRING(), Types.LIST(Types.STRING())]),
        "ROW(id: LONG, name: STRING, tags: LIST(STRING))",
        lambda n: Row(id=n, name=f"n{n}", tags=["t", None]),
    ),
    "tuple": StateCase(
        lambda: Types.TUPLE([Types.LONG(), Types.STRING(), Types.BOOLEAN()]),
        "TUPLE(LONG, STRING, BOOLEAN)",
        lambda n: (n, "t", True),
    ),
    "list_of": StateCase(lambda: Types.LIST(Types.LONG()), "LIST(LONG)", lambda n: [n, None, n + 1]),
    "map_of": StateCase(
        lambda: Types.MAP(Types.STRING(), Types.LONG()), "MAP(STRING, LONG)", lambda n: {"k": n, "none": None}
    ),
    "nested": StateCase(
        lambda: Types.MAP(Types.STRING(), Types.LIST(Types.ROW([Types.INT(), Types.PICKLED_BYTE_ARRAY()]))),
        "MAP(STRING, LIST(ROW(INT, PICKLED_BYTE_ARRAY)))",
        lambda n: {"k": [Row(n, {"a": n})]},
    ),
}
#: Thread mode passes values to Java unconverted, and PyFlink 2.3 has converters only for these.
IN_THREADS = ("string", "boolean", "byte", "short", "int", "long", "double", "pickled")

KEYS = {
    "pickled": KeyCase(lambda: None, lambda n: f"k{n % 7}"),
    "int": KeyCase(Types.INT, lambda n: n % 7 - 3),
    "long": KeyCase(Types.LONG, lambda n: 2**40 + n % 7),
    "string": KeyCase(Types.STRING, lambda n: f"é{n % 7}"),
    "tuple": KeyCase(lambda: Types.TUPLE([Types.LONG(), Types.STRING()]), lambda n: (n % 7, "t")),
    "row": KeyCase(lambda: Types.ROW([Types.LONG(), Types.STRING()]), lambda n: Row(n % 7, "r")),
    "boolean": KeyCase(Types.BOOLEAN, lambda n: n % 2 == 0),
    "double": KeyCase(Types.DOUBLE, lambda n: n % 7 + 0.5),
    "date": KeyCase(Types.SQL_DATE, lambda n: LEAP_DAY + datetime.timedelta(days=n % 7)),
}


def key_operator(type_name):
    """Return the uid of the operator whose keys have a type."""
    return f"key-{type_name}"
