"""The ``CheckpointProperties`` that end metadata since version 4: the kind of the snapshot.

A Java stream of ``org.apache.flink.runtime.checkpoint.CheckpointProperties`` (seven booleans and ``checkpointType``, a ``SavepointType`` or
a ``CheckpointType``). A null object is legal and carries no information.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statetool.errors import FormatError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaEnum, JavaObject, read_java_stream

_PACKAGE: Final = "org.apache.flink.runtime.checkpoint."
_FLAGS: Final = (
    "discardSubsumed",
    "discardFinished",
    "discardCancelled",
    "discardFailed",
    "discardSuspended",
    "forced",
    "unclaimed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointProperties:
    """Checkpoint properties of a snapshot.

    ``type_name`` is Flink's name ("Checkpoint", "Full Checkpoint", "Savepoint", "Suspend Savepoint", ...). ``format`` is the format of a
    savepoint; ``flags`` are the names of the booleans that are set.
    """

    kind: Literal["savepoint", "checkpoint"]
    type_name: str
    format: Literal["canonical", "native"] | None
    flags: tuple[str, ...]


def read_properties(data: bytes) -> CheckpointProperties | None:
    """Read the properties of a snapshot; ``None`` if absent (before version 4) or null.

    Raises
    ------
    FormatError
        Not a Java stream of ``CheckpointProperties``.
    """
    if not data:
        return None
    properties = read_java_stream(Cursor(data))
    if properties is None:
        return None
    if not isinstance(properties, JavaObject) or properties.cls.name != f"{_PACKAGE}CheckpointProperties":
        raise FormatError("expected CheckpointProperties at the end of the metadata")
    checkpoint_type = properties.fields.get("checkpointType")
    if not isinstance(checkpoint_type, JavaObject) or not isinstance(checkpoint_type.fields.get("name"), str):
        raise FormatError("the properties of the snapshot have no checkpoint type")
    is_savepoint = checkpoint_type.cls.name == f"{_PACKAGE}SavepointType"
    if not is_savepoint and checkpoint_type.cls.name != f"{_PACKAGE}CheckpointType":
        raise FormatError(f"the properties of the snapshot have a checkpoint type {checkpoint_type.cls.name}")
    style = checkpoint_type.fields.get("formatType")
    return CheckpointProperties(
        kind="savepoint" if is_savepoint else "checkpoint",
        type_name=checkpoint_type.fields["name"],
        format=_FORMATS.get(style.name) if isinstance(style, JavaEnum) else None,
        flags=tuple(name for name in _FLAGS if properties.fields.get(name)),
    )


def trailing_bytes(data: bytes) -> int:
    """Return the number of bytes after the properties, which Flink ignores; 0 if the properties themselves cannot be read."""
    if not data:
        return 0
    c = Cursor(data)
    try:
        read_java_stream(c)
    except FormatError:
        return 0
    return c.left


_FORMATS: Final[dict[str, Literal["canonical", "native"]]] = {"CANONICAL": "canonical", "NATIVE": "native"}
