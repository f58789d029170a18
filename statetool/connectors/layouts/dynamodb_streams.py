"""DynamoDB Streams (``org.apache.flink.connector.dynamodb.source``).

Split (``DynamoDbStreamsShardSplitSerializer``), version 0: utf stream ARN, utf shard id, utf iterator type, boolean has marker [boolean is text
[utf sequence number]], boolean has parent [utf shard id]; 1: then boolean finished; 2: then i4 count of child shards, each utf shard id, utf
parent, utf first sequence number, boolean has last [utf sequence number].

Enumerator, version 0 (``DynamoDbStreamsSourceEnumeratorStateSerializer``): i4 count, i4 version of splits, each i4 length, split, i4 status (0
assigned, 1 unassigned, 2 finished), then i8 start time (epoch ms).

Follows releases 5.0 (splits 0), 5.1 (splits 1) and 6.0 (splits 2) from their sources, as the jars were not available. Bytes of serializers that
were compiled from these sources confirm it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, SplitPosition, Status
from statetool.connectors.wire import known_version, read_inner
from statetool.io.cursor import Cursor

_STATUSES: Final[tuple[Status, ...]] = ("assigned", "unassigned", "finished")
_MARKERS: Final = {"TRIM_HORIZON": "earliest", "LATEST": "latest"}
#: How positions begin: the record of the number was read last, or is read next.
_WORDS: Final = {"AFTER_SEQUENCE_NUMBER": "after=", "AT_SEQUENCE_NUMBER": "at="}
_TYPES: Final = frozenset({*_MARKERS, *_WORDS})
_STREAM: Final = re.compile(r"arn:[^:]+:dynamodb:[^:]*:[^:]*:table/([^/]+)/stream/.+")
_LEAST_CHILD_BYTES: Final = 7
_LEAST_SPLIT_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildShard:
    """A shard that continues a finished one. ``ending_sequence_number`` is ``None`` if it is open."""

    shard_id: str
    parent: str
    starting_sequence_number: str
    ending_sequence_number: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbShard:
    """A shard of the stream of a table. ``sequence_number`` is that of the last record read, or of the next one; ``finished`` is ``None`` in version 0."""

    split_id: str
    stream_arn: str
    iterator_type: str
    sequence_number: str | None
    parent: str | None
    finished: bool | None = None
    children: tuple[ChildShard, ...] = ()


class DynamoDbStreamsSource(SplitConnector):
    """The source of DynamoDB Streams."""

    name: ClassVar[str] = "dynamodb-streams-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({0, 1, 2})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0})

    def place(self, split: DynamoDbShard) -> SplitPosition:
        table = _STREAM.fullmatch(split.stream_arn)
        word = _WORDS.get(split.iterator_type)
        return SplitPosition(
            source=split.stream_arn if table is None else table[1],
            position=None if word is None else f"{word}{split.sequence_number}",
            marker=_MARKERS.get(split.iterator_type),
            finished=split.finished,
        )

    def read_split(self, version: int, c: Cursor) -> DynamoDbShard:
        start = c.pos
        arn, shard, kind = c.utf(), c.utf(), c.utf()
        if not (_STREAM.fullmatch(arn) and shard and kind in _TYPES):
            raise c.fail(f"shard {shard!r} of {arn!r} at {kind!r} is not one of a DynamoDB stream", pos=start)
        sequence_number = c.utf() if c.bool() and c.bool() else None
        if (kind in _MARKERS) != (sequence_number is None):
            raise c.fail(f"sequence number {sequence_number!r} of a shard at {kind}", pos=start)
        return DynamoDbShard(
            split_id=shard,
            stream_arn=arn,
            iterator_type=kind,
            sequence_number=sequence_number,
            parent=_optional(c),
            finished=c.bool() if version >= 1 else None,
            children=_read_children(c) if version >= 2 else (),
        )

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        count = c.count("shards", at_least=_LEAST_SPLIT_BYTES)
        split_version = known_version(c.i4(), self.split_versions, "a split in the enumerator")
        splits = []
        for _ in range(count):
            split = read_inner(c, lambda inner: self.read_split(split_version, inner), "a split")
            status = c.i4()
            if not 0 <= status < len(_STATUSES):
                raise c.fail(f"status {status} of a shard is not 0, 1 or 2", pos=c.pos - 4)
            splits.append(KnownSplit(split=split, status=_STATUSES[status]))
        facts = {"split_version": split_version, "start_ms": c.i8()}
        return Enumerator(splits=tuple(splits), lists_assigned=True, facts=facts)


def _optional(c: Cursor) -> str | None:
    return c.utf() if c.bool() else None


def _read_children(c: Cursor) -> tuple[ChildShard, ...]:
    return tuple(
        ChildShard(
            shard_id=c.utf(),
            parent=c.utf(),
            starting_sequence_number=c.utf(),
            ending_sequence_number=_optional(c),
        )
        for _ in range(c.count("child shards", at_least=_LEAST_CHILD_BYTES))
    )
