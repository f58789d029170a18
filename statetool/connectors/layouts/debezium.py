"""Debezium's source function (``DebeziumSourceFunction``), the base of Flink CDC's sources before FLIP-27.

Union list state ``offset-states``: bytes, each the JSON object of a ``DebeziumOffset``: ``sourcePartition`` (with the server's name) and
``sourceOffset``. Union list state ``history-records-states``: strings, the name of the engine and the history of table definitions.

Bytes of the serializer of release 2.3 confirm the offset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import StateSource
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.layouts.cdc import event_time_ms, offset_text
from statetool.connectors.model import SplitPosition
from statetool.errors import FormatError

_HISTORY: Final = "history-records-states"


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumOffset:
    """The offset of a database server."""

    partition: Mapping[str, Any]
    offset: Mapping[str, Any]

    @property
    def split_id(self) -> str:
        return str(self.partition.get("server") or offset_text(self.partition))


class DebeziumFunction(StateSource):
    """Debezium's source function."""

    name: ClassVar[str] = "debezium-source-function"
    state: ClassVar[str] = "offset-states"

    def recognises(self, operator: OperatorBytes) -> bool:
        """Return True if both states exist: the name of one may be that of a user's state."""
        return super().recognises(operator) and _HISTORY in operator.states

    def place(self, split: DebeziumOffset) -> SplitPosition:
        return SplitPosition(
            source=split.split_id, position=offset_text(split.offset), time_ms=event_time_ms(split.offset)
        )

    def read_element(self, operator: OperatorBytes, value: Any) -> DebeziumOffset:
        return read_offset(value)


def read_offset(data: bytes) -> DebeziumOffset:
    """Read the JSON of an offset.

    Raises
    ------
    FormatError
        The bytes are not the JSON of an offset.
    """
    try:
        fields = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise FormatError("an offset of Debezium is not JSON") from None
    partition, offset = (
        (fields.get("sourcePartition"), fields.get("sourceOffset")) if isinstance(fields, dict) else (None, None)
    )
    if not isinstance(partition, dict) or not isinstance(offset, dict):
        raise FormatError("an offset of Debezium lacks sourcePartition or sourceOffset")
    return DebeziumOffset(partition=partition, offset=offset)
