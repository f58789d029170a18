"""Nested snapshots of flink-scala-api, and case classes that may or may not store their arity.

Since release 1.2.7, a nested snapshot is written with its version. Before, only its class and its payload were written, in the version
that the release had: the first one of the project's own classes, and the current one of Flink's.

Outer version 2 of case classes has two layouts that the snapshot does not tell apart (issue 121 of the project): Flink's, up to release
1.1.4 and with ``DISABLE_CASE_CLASS_ARITY_USAGE``, and one with an i32 arity before the fields. Each value is read in both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError, FormatError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotReader
from statetool.types import LogicalType

PACKAGE: Final = "org.apache.flinkx.api.serializer"
_NEWER_SAVEPOINT: Final = (
    "restore the job with flink-scala-api 2.0 or later and take a new savepoint, which always stores the arity"
)


def read_part(reader: SnapshotReader, c: Cursor, *, versioned: bool) -> Serializer:
    """Read a nested snapshot."""
    if versioned:
        return reader.snapshot(c)
    start = c.pos
    own = c.utf().startswith(f"{PACKAGE}.")
    c.pos = start
    return reader.unversioned(c, first=own)


def write_part(out: Output, part: Serializer, *, versioned: bool) -> None:
    """Append a nested snapshot."""
    if versioned:
        part.write_snapshot(out)
    else:
        out.utf(part.snapshot_class)
        part.write_payload(out)


class ArityChoice(Serializer):
    """A serializer of case classes that store their arity in ``with_arity``, and not in ``plain``; the bytes tell which."""

    def __init__(self, plain: Serializer, with_arity: Serializer) -> None:
        super().__init__(plain.snapshot_class, plain.snapshot_version)
        self.plain = plain
        self.with_arity = with_arity
        self.length = plain.length
        self.nullable = plain.nullable
        self.none_is_value = plain.none_is_value

    @property
    def logical(self) -> LogicalType:
        return self.plain.logical

    @property
    def type_name(self) -> str:
        return self.plain.type_name

    @property
    def needs_frame(self) -> bool:
        return True

    @property
    def missing_declaration_hint(self) -> str:
        return _NEWER_SAVEPOINT

    def decode(self, c: Cursor) -> Any:
        """Read a value that fills its frame, in the only way that ends with it."""
        value = self._read(c, framed=True)
        c.pos = c.end
        return value

    def skip(self, c: Cursor) -> None:
        """Skip a value that may be followed by more, as a key is by its namespace; only one way may fit."""
        self._read(c, framed=False)

    def _read(self, c: Cursor, *, framed: bool) -> Any:
        start = c.pos
        found: list[tuple[Any, int]] = []
        for way in (self.plain, self.with_arity):
            c.pos = start
            try:
                value = way.decode(c)
                if framed:
                    c.expect_end(f"a value of {self.type_name}")
            except FormatError as error:
                failure = error
            else:
                found.append((value, c.pos))
        if not found:
            raise failure
        if found[0] != found[-1]:
            raise UnsupportedError(
                f"a value of {self.type_name} fits both layouts of flink-scala-api 1.x, with and without the arity",
                hint=_NEWER_SAVEPOINT,
            ).at(offset=c.base + start)
        c.pos = found[0][1]
        return found[0][0]

    def encode(self, out: Output, value: Any) -> None:
        raise EncodeError(
            f"the layout of {self.type_name} is not known: with or without the arity", hint=_NEWER_SAVEPOINT
        )

    def hash_code(self, value: Any) -> int:
        return self.plain.hash_code(value)

    def write_payload(self, out: Output) -> None:
        self.plain.write_payload(out)


def build_both(build: Callable[[tuple[Serializer, ...]], Serializer], parts: tuple[Serializer, ...]) -> Serializer:
    """Build a serializer of these parts, in both ways if one of them stores case classes in two ways."""
    if not any(isinstance(part, ArityChoice) for part in parts):
        return build(parts)
    plain = build(tuple(p.plain if isinstance(p, ArityChoice) else p for p in parts))
    with_arity = build(tuple(p.with_arity if isinstance(p, ArityChoice) else p for p in parts))
    return ArityChoice(plain, with_arity)
