"""Kinesis (``org.apache.flink.connector.kinesis.source``).

Split (``KinesisShardSplitSerializer``), version 0: utf stream ARN, utf shard id, utf iterator type, boolean has marker [boolean is a time
[i8 ms], boolean is text [utf]]; 1: then i4 count and utf parents, utf starting hash key, utf ending hash key; 2: then boolean finished.
Enumerator (``KinesisStreamsSourceEnumeratorStateSerializer``): boolean has last seen shard [utf], i4 count, i4 version of splits, each
i4 length, split, and since version 1 i4 status (0 assigned, 1 unassigned).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, SplitPosition, Status
from statetool.connectors.wire import known_version, read_inner
from statetool.errors import OptionError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.types.options import whole_number

_STATUSES: Final[tuple[Status, ...]] = ("assigned", "unassigned")
_AFTER: Final = "AFTER_SEQUENCE_NUMBER"
_AT: Final = "AT_SEQUENCE_NUMBER"
_TIME: Final = "AT_TIMESTAMP"
#: How positions begin: the record of the number was read last, or is read next.
_WORDS: Final = {_AFTER: "after=", _AT: "at="}
_MARKERS: Final = {"TRIM_HORIZON": "earliest", "LATEST": "latest"}
_LAST_SEEN: Final = "last_seen_shard_id"
_SPLIT_VERSION: Final = "split_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class KinesisSplit:
    """A shard of a stream. ``marker`` is a sequence number, a time in ms, or ``None``, depending on the kind of ``position``."""

    split_id: str
    stream_arn: str
    shard_id: str
    position: str
    marker: str | int | None
    parents: tuple[str, ...] = ()
    starting_hash_key: str = ""
    ending_hash_key: str = ""
    finished: bool = False


class KinesisSource(SplitConnector):
    """The Kinesis source."""

    name: ClassVar[str] = "kinesis-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({0, 1, 2})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0, 1})
    markers: ClassVar[tuple[str, ...]] = ("earliest", "latest", "timestamp=MS")

    def place(self, split: KinesisSplit) -> SplitPosition:
        word = _WORDS.get(split.position)
        marker, time = _MARKERS.get(split.position), None
        if split.position == _TIME and isinstance(split.marker, int):
            marker, time = f"timestamp={split.marker}", split.marker
        return SplitPosition(
            source=split.stream_arn.rpartition("/")[2],
            position=None if word is None else f"{word}{split.marker}",
            marker=marker,
            finished=split.finished,
            time_ms=time,
        )

    def at(self, split: KinesisSplit, position: str) -> KinesisSplit:
        for kind, marker in _MARKERS.items():
            if position == marker:
                return replace(split, position=kind, marker=None, finished=False)
        for kind, word in _WORDS.items():
            sequence = position.removeprefix(word)
            if sequence != position and _is_number(sequence):
                return replace(split, position=kind, marker=sequence, finished=False)
        text = position.removeprefix("timestamp=")
        if text != position and _is_number(text):
            return replace(split, position=_TIME, marker=whole_number("timestamp", int(text)), finished=False)
        if _is_number(position):
            raise OptionError(
                f"{position!r} does not say whether the record of this number is read again",
                hint=f"pass after={position} if it was read, or at={position} to read it",
            )
        raise OptionError(
            f"{position!r} is not a position in a shard",
            hint=f"pass after=SEQUENCE_NUMBER, at=SEQUENCE_NUMBER, or one of {', '.join(self.markers)}",
        )

    def read_split(self, version: int, c: Cursor) -> KinesisSplit:
        start = c.pos
        arn, shard, position = c.utf(), c.utf(), c.utf()
        if not arn.startswith("arn:"):
            raise c.fail(f"{arn!r} is not the ARN of a Kinesis stream", pos=start)
        marker: str | int | None = None
        if c.bool():
            time = c.i8() if c.bool() else None
            text = c.utf() if c.bool() else None
            marker = text if time is None else time
        parents: tuple[str, ...] = ()
        low = high = ""
        if version >= 1:
            parents = tuple(c.utf() for _ in range(c.count("parents", at_least=2)))
            low, high = c.utf(), c.utf()
        return KinesisSplit(
            split_id=shard,
            stream_arn=arn,
            shard_id=shard,
            position=position,
            marker=marker,
            parents=parents,
            starting_hash_key=low,
            ending_hash_key=high,
            finished=version >= 2 and c.bool(),
        )

    def write_split(self, version: int, split: KinesisSplit) -> bytes:
        out = Output()
        for text in (split.stream_arn, split.shard_id, split.position):
            out.utf(text)
        out.bool(split.marker is not None)
        if split.marker is not None:
            out.bool(isinstance(split.marker, int))
            if isinstance(split.marker, int):
                out.i8(split.marker)
            out.bool(isinstance(split.marker, str))
            if isinstance(split.marker, str):
                out.utf(split.marker)
        if version >= 1:
            out.i4(len(split.parents))
            for text in (*split.parents, split.starting_hash_key, split.ending_hash_key):
                out.utf(text)
        if version >= 2:
            out.bool(split.finished)
        return bytes(out)

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        last = c.utf() if c.bool() else None
        count = c.count("shards", at_least=4)
        split_version = known_version(c.i4(), self.split_versions, "a split in the enumerator")
        splits = []
        for _ in range(count):
            split = read_inner(c, lambda inner: self.read_split(split_version, inner), "a split")
            status = 1 if version == 0 else c.i4()
            if not 0 <= status < len(_STATUSES):
                raise c.fail(f"status {status} of a shard is neither 0 nor 1", pos=c.pos - 4)
            splits.append(KnownSplit(split=split, status=_STATUSES[status]))
        facts = {_LAST_SEEN: last, _SPLIT_VERSION: split_version}
        return Enumerator(splits=tuple(splits), lists_assigned=version >= 1, facts=facts)

    def write_enumerator(self, version: int, enumerator: Enumerator) -> bytes:
        out = Output()
        last, split_version = enumerator.facts[_LAST_SEEN], enumerator.facts[_SPLIT_VERSION]
        out.bool(last is not None)
        if last is not None:
            out.utf(last)
        out.i4(len(enumerator.splits))
        out.i4(split_version)
        for each in enumerator.splits:
            out.bytes4(self.write_split(split_version, each.split))
            if version >= 1:
                out.i4(_STATUSES.index(each.status))
        return bytes(out)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
