"""``LinkedOptionalMapSerializer``: named entries whose key and value may be absent, each with its length before it.

i64 000004F2C69A3D70, i32 n, n times: utf name, bool has key [i32 length, key], bool has value [i32 length, value].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.snapshot import OPTIONAL_MAP_MAGIC

#: The class that Flink 1.x writes around a registered serializer object. Flink 2.x has it under another name.
FLINK_1_OBJECT: Final = b"org.apache.flink.api.common.ExecutionConfig$SerializableSerializer"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalEntry:
    """One entry; ``value_at`` is the offset of ``value`` for messages."""

    name: str
    key: bytes | None
    value: bytes | None
    value_at: int


def read_optional_map(c: Cursor) -> tuple[OptionalEntry, ...]:
    """Read the whole map."""
    if c.i8() != OPTIONAL_MAP_MAGIC:
        raise c.fail("expected the magic number of an optional map", pos=c.pos - 8)
    entries = []
    for _ in range(c.count("entries", at_least=4)):
        name = c.utf()
        key = c.bytes4("key") if c.bool() else None
        value = c.bytes4("value") if c.bool() else None
        at = c.offset - len(value or b"")
        entries.append(OptionalEntry(name=name, key=key, value=value, value_at=at))
    return tuple(entries)


def write_optional_map(out: Output, entries: tuple[OptionalEntry, ...]) -> None:
    """Append the whole map."""
    out.i8(OPTIONAL_MAP_MAGIC)
    out.i4(len(entries))
    for entry in entries:
        out.utf(entry.name)
        for part in (entry.key, entry.value):
            out.bool(part is not None)
            if part is not None:
                out.bytes4(part)
