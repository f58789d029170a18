"""MongoDB's source (``org.apache.flink.connector.mongodb.source``), which reads collections in ranges of a key. Its sink has no state.

Split, version 0 (``MongoSourceSplitSerializer``): i4 kind 1, utf id, utf database, utf collection, utf least key, utf key that ends the range,
utf hint (each extended JSON of MongoDB), i4 number of documents read. Enumerator, version 0 (``MongoSourceEnumStateSerializer``): lists of
remaining and of processed collections (i4 count, utf names), list of unassigned splits (i4 count, splits), assigned splits (i4 count, each
utf id and split), boolean the splits were determined.

Follows release 1.1, as confirmed by bytes of its serializers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, SplitPosition
from statetool.io.cursor import Cursor

_SCAN: Final = 1
_LEAST_SPLIT_BYTES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MongoSplit:
    """A range of a collection. ``minimum``, ``maximum`` and ``hint`` are JSON, ``offset`` counts the documents read."""

    split_id: str
    database: str
    collection: str
    minimum: str
    maximum: str
    hint: str
    offset: int


class MongoSource(SplitConnector):
    """MongoDB's source."""

    name: ClassVar[str] = "mongodb-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({0})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0})

    def place(self, split: MongoSplit) -> SplitPosition:
        return SplitPosition(
            source=f"{split.database}.{split.collection}",
            start=split.minimum,
            position=f"document {split.offset}",
            stop=split.maximum,
        )

    def read_split(self, version: int, c: Cursor) -> MongoSplit:
        start = c.pos
        kind = c.i4()
        if kind != _SCAN:
            raise c.fail(f"kind {kind} of a split is not {_SCAN}", pos=start)
        split_id, database, collection = c.utf(), c.utf(), c.utf()
        documents = [c.utf() for _ in range(3)]
        offset = c.i4()
        if not (split_id and database and collection) or offset < 0:
            raise c.fail(f"split {split_id!r} of {database}.{collection}, document {offset}", pos=start)
        for text in documents:
            # Documents are not parsed: extended JSON of MongoDB has its own types.
            if not (text.startswith("{") and text.endswith("}")):
                raise c.fail(f"{text!r} is not a document of MongoDB", pos=start)
        minimum, maximum, hint = documents
        return MongoSplit(
            split_id=split_id,
            database=database,
            collection=collection,
            minimum=minimum,
            maximum=maximum,
            hint=hint,
            offset=offset,
        )

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        remaining, processed = ([c.utf() for _ in range(c.count("collections", at_least=2))] for _ in range(2))
        splits = [
            KnownSplit(split=self.read_split(0, c), status="unassigned")
            for _ in range(c.count("splits", at_least=_LEAST_SPLIT_BYTES))
        ]
        for _ in range(c.count("splits", at_least=_LEAST_SPLIT_BYTES)):
            start = c.pos
            split_id = c.utf()
            split = self.read_split(0, c)
            if split.split_id != split_id:
                raise c.fail(f"split {split.split_id!r} is listed as {split_id!r}", pos=start)
            splits.append(KnownSplit(split=split, status="assigned"))
        facts = {"remaining_collections": remaining, "processed_collections": processed, "initialized": c.bool()}
        return Enumerator(splits=tuple(splits), lists_assigned=True, facts=facts)
