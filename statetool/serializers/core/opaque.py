"""Serializers whose values stay bytes: unknown classes, or classes whose format is defined by user code."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from statetool.errors import EncodeError, StatetoolError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Op, Rest
from statetool.serializers.core.base import Serializer
from statetool.types import LogicalType, Scalar
from statetool.types.declared import TypeContext


class OpaqueSerializer(Serializer):
    """Serializer that returns the exact bytes of a value that fills its frame.

    ``snapshot`` is the exact bytes of its snapshot, empty if there is none; ``missing`` is a hint for the user. ``types`` are the classes of the
    job, if its snapshot was read with them.
    """

    types: TypeContext | None = None

    def __init__(self, snapshot: bytes, reason: str, missing: str = "") -> None:
        super().__init__("", 0)
        self.snapshot = snapshot
        self.reason = reason
        self.missing = missing

    @property
    def snapshot_name(self) -> str:
        """The class of its snapshot, empty if that is not known."""
        with suppress(StatetoolError):
            return Cursor(self.snapshot).utf()
        return ""

    @property
    def missing_declaration_hint(self) -> str:
        return self.missing

    @property
    def type_name(self) -> str:
        return f"bytes ({self.reason})"

    @property
    def logical(self) -> LogicalType:
        return Scalar("binary")

    def decode(self, c: Cursor) -> bytes:
        """Return everything up to the end of the cursor, which is only correct if the value fills its frame."""
        return c.take(c.left)

    @property
    def needs_frame(self) -> bool:
        return True

    def program(self) -> Op:
        return Rest()

    def encode(self, out: Output, value: Any) -> None:
        if not isinstance(value, bytes):
            raise EncodeError(f"values of an unknown type are written as bytes, not {type(value).__name__}")
        out += value

    def write_snapshot(self, out: Output) -> None:
        if not self.snapshot:
            raise UnknownSerializerError(self.reason, hint=self.missing)
        out += self.snapshot


class UnderivedSerializer(OpaqueSerializer):
    """The serializer that a new job has for a field, if its class files do not determine it; the reason says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(b"", reason)
