"""Sources before FLIP-27 that store list states: the Kinesis consumer, the file monitor and the file reader.

Kinesis: union list state ``Kinesis-Stream-Shard-State``, tuples of the POJO ``StreamShardMetadata`` and ``SequenceNumber`` (by Kryo).
Monitoring of a folder: ``file-monitoring-state``, i8, the largest modification time. Reading of files: ``splits``, Java streams of
``TimestampedFileInputSplit``, which are parsed as data and never executed. Its ``splitState`` is the position of the input format, for
formats of lines a ``Long``: the offset of the next line in the file.

Jobs of Flink 1.20 confirm these layouts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import StateSource
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import SplitPosition
from statetool.connectors.wire import read_all
from statetool.errors import FormatError
from statetool.io.java_streams.reader import JavaObject, read_java_stream
from statetool.serializers.typeutils.java_values import plain_java
from statetool.types import StructType
from statetool.types.declared import ClassDeclaration, class_of_fields

_SEQUENCE_NUMBER: Final = "org.apache.flink.streaming.connectors.kinesis.model.SequenceNumber"
_FILE_SPLIT: Final = b"org.apache.flink.streaming.api.functions.source.TimestampedFileInputSplit"
#: First bytes of the Java stream of such a split: magic, version, object and class.
_HEAD: Final = b"\xac\xed\0\5sr" + len(_FILE_SPLIT).to_bytes(2, "big") + _FILE_SPLIT


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedShard:
    """A shard of a stream, and its last record read."""

    stream: str
    shard_id: str
    sequence_number: str

    @property
    def split_id(self) -> str:
        return self.shard_id


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatedShard(ConsumedShard):
    """A shard whose last record read is part of an aggregated record, with its number there."""

    sub_sequence_number: int


class KinesisConsumer(StateSource):
    """The Kinesis consumer before FLIP-27."""

    name: ClassVar[str] = "flink-kinesis-consumer"
    state: ClassVar[str] = "Kinesis-Stream-Shard-State"
    classes: ClassVar[tuple[ClassDeclaration, ...]] = (
        class_of_fields(
            _SEQUENCE_NUMBER,
            {"sequenceNumber": "java.lang.String", "subSequenceNumber": "long", "cachedHash": "int"},
            final=True,
        ),
    )

    def place(self, split: ConsumedShard) -> SplitPosition:
        is_number = split.sequence_number.isdigit()
        return SplitPosition(
            source=split.stream,
            position=f"after={split.sequence_number}" if is_number else None,
            marker=None if is_number else split.sequence_number,
        )

    def read_element(self, operator: OperatorBytes, value: Any) -> ConsumedShard:
        shard, (number, sub_number, _) = value
        logical = operator.states[self.state].value.children()[0][1].logical
        names = [f.name for f in logical.fields] if isinstance(logical, StructType) else []
        fields = dict(zip(names, shard, strict=False))
        if not {"streamName", "shardId"} <= fields.keys():
            raise FormatError(f"the metadata of a shard has no stream and shard, but {', '.join(names) or 'no fields'}")
        stream, shard_id = fields["streamName"], fields["shardId"]
        if sub_number < 0:
            return ConsumedShard(stream=stream, shard_id=shard_id, sequence_number=number)
        return AggregatedShard(stream=stream, shard_id=shard_id, sequence_number=number, sub_sequence_number=sub_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitored:
    """Progress of the monitoring of a folder."""

    modification_time: int
    split_id: str = "folder"


class FileMonitoring(StateSource):
    """The folder monitor before FLIP-27."""

    name: ClassVar[str] = "continuous-file-monitoring"
    state: ClassVar[str] = "file-monitoring-state"

    def place(self, split: Monitored) -> SplitPosition:
        return SplitPosition(position=str(split.modification_time))

    def read_element(self, operator: OperatorBytes, value: Any) -> Monitored:
        return Monitored(modification_time=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """A range of a file that is waiting or being read."""

    modification_time: int
    split_number: int
    path: str
    offset: int
    length: int

    @property
    def split_id(self) -> str:
        return f"{self.path}[{self.split_number}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingFile(ReadFile):
    """A range of a file that is being read, and the position of the input format."""

    reader_state: Any


class FileReader(StateSource):
    """The file reader before FLIP-27."""

    name: ClassVar[str] = "continuous-file-reader"
    state: ClassVar[str] = "splits"

    def recognises(self, operator: OperatorBytes) -> bool:
        """Return True if the elements are such splits: other operators may have a state of this name."""
        if not super().recognises(operator):
            return False
        elements = list(operator.elements(self.state))
        return bool(elements) and all(e.data.startswith(_HEAD) for e in elements)

    def place(self, split: ReadFile) -> SplitPosition:
        stop = None if split.length < 0 else str(split.offset + split.length)
        state = split.reader_state if isinstance(split, ReadingFile) else None
        position = str(state) if isinstance(state, int) else None
        return SplitPosition(source=split.path, start=str(split.offset), position=position, stop=stop)

    def read_element(self, operator: OperatorBytes, value: Any) -> ReadFile:
        split = read_all(value, read_java_stream, "a split of a file")
        fields = split.fields
        path: JavaObject = fields["file"].fields["uri"]
        described = {
            "modification_time": fields["modificationTime"],
            "split_number": fields["splitNumber"],
            "path": str(path.fields["string"]),
            "offset": fields["start"],
            "length": fields["length"],
        }
        state = plain_java(fields["splitState"])
        return ReadFile(**described) if state is None else ReadingFile(**described, reader_state=state)
