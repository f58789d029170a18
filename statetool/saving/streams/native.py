"""New databases of RocksDB as keyed state: native savepoints, whose files Flink opens instead of inserting entry by entry.

Each state is the column family of its name, in the order of the header. Entries are those of a canonical stream. Follows
``RocksNativeFullSnapshotStrategy``: all files are private to the handle, and none is shared with other snapshots.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from statetool.formats.backends.column_families import family_name
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.metadata.handles import IncrementalHandle
from statetool.formats.rocksdb.database_writer import TABLE_BYTES, DatabaseWriter
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.table_writer import TableSettings
from statetool.kernels.core.arrays import Bytes, Int64s, frozen
from statetool.kernels.entries.composite_keys import join_keys
from statetool.saving.publish import StagedFile, Staging
from statetool.saving.streams.output import GroupWriter, Piece, StreamOutput
from statetool.saving.streams.runs import PackedRun

#: Handle tag of databases since Flink 1.15, the first release with native savepoints.
DATABASE_TAG: Final = 11
#: From this size on, a table file ends at the next key-group boundary.
_CUT_BYTES: Final = TABLE_BYTES * 3 // 4
#: Bytes of a file in memory. A database has an unfinished file for each state.
_BUFFER_BYTES: Final = 1 << 20
#: RocksDB's merge operator for list state.
_MERGE_OPERATOR: Final = "StringAppendTESTOperator"


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeForm:
    """Keyed state as databases of RocksDB; ``checkpoint_id`` is that of the snapshot."""

    checkpoint_id: int

    def write(
        self,
        fill: Callable[[GroupWriter], None],
        header: KeyedHeader,
        raw_header: bytes,
        groups: range,
        prefix: int,
        staging: Staging,
        inline_bytes: int,
    ) -> tuple[IncrementalHandle, tuple[StagedFile, ...]]:
        """Write the database of one subtask by a function that appends its key groups; return the handle and its files.

        Parameters
        ----------
        raw_header
            Bytes of ``header``.
        prefix
            Bytes of the key-group prefix of each key.
        """
        outputs: dict[str, StreamOutput] = {}

        def create(name: str) -> StreamOutput:
            label = "table" if name.endswith(".sst") else "manifest"
            outputs[name] = StreamOutput(staging, label, inline_bytes=inline_bytes, buffer_bytes=_BUFFER_BYTES)
            return outputs[name]

        families = [family_name(meta.name) for meta in header.states]
        with DatabaseWriter(create, families, TableSettings(merge_operator=_MERGE_OPERATOR)) as database:
            fill(_GroupsToDatabase(database, prefix))
        with StreamOutput(staging, "keyed-meta", inline_bytes=inline_bytes) as meta:
            meta.write(raw_header)
        handle = IncrementalHandle(
            tag=DATABASE_TAG,
            checkpoint_id=self.checkpoint_id,
            backend_id=str(uuid.uuid4()),
            start=groups.start,
            count=len(groups),
            meta=meta.handle(),
            shared=(),
            private=tuple((name, out.handle()) for name, out in outputs.items()),
            checkpointed_size=sum(out.size_bytes for out in (meta, *outputs.values())),
            handle_id=str(uuid.uuid4()),
        )
        return handle, tuple(file for out in (meta, *outputs.values()) for file in out.files)


class _GroupsToDatabase:
    """A :class:`GroupWriter` of the entries of key groups into column families."""

    def __init__(self, database: DatabaseWriter, prefix: int) -> None:
        self._database, self._prefix = database, prefix

    def add_groups(self, run: PackedRun) -> None:
        batch = run.entries(self._prefix)
        self._add(batch, np.arange(len(batch)))
        self._database.end_tables(_CUT_BYTES)

    def add_pieces(self, number: int, pieces: Iterable[Piece], prefix: int) -> None:
        for _, batch, order in pieces:
            self._add(batch, order)
        self._database.end_tables(_CUT_BYTES)

    def _add(self, batch: EntryBatch, order: Int64s) -> None:
        """Append entries in order, by state."""
        if not len(order):
            return
        by_state = order[np.argsort(batch.state[order], kind="stable")]
        n = len(by_state)
        key_size = int((batch.key_end - batch.key)[by_state].sum()) + self._prefix * n
        size = key_size + int((batch.value_end - batch.value)[by_state].sum())
        out: Bytes = np.empty(size, dtype=np.uint8)
        key, key_end, value_end = (np.empty(n, dtype=np.int64) for _ in range(3))
        join_keys(
            batch.data, by_state, batch.group, batch.key, batch.key_end, batch.value, batch.value_end, self._prefix, out,
            key, key_end, value_end,
        )  # fmt: skip
        entries = Slice(data=frozen(out), key=key, key_end=key_end, value_end=value_end)
        states = batch.state[by_state]
        edges = [0, *(np.flatnonzero(np.diff(states)) + 1).tolist(), n]
        for start, stop in pairwise(edges):
            self._database.add(int(states[start]), entries.part(start, stop))
