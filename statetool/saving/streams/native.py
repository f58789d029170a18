"""Keyed state in the native forms of backends.

Flink opens the files of databases instead of inserting entry by entry. Each state is the column family of its name, in the order of the header.
Entries are those of a canonical stream. Follows ``RocksNativeFullSnapshotStrategy``: all files are private to the handle, and none is shared
with other snapshots.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np

from statetool.errors import StatetoolError
from statetool.formats.backends.column_families import family_name
from statetool.formats.heap.group_writer import HeapGroupWriter
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.metadata.handles import IncrementalHandle, KeyGroupsHandle
from statetool.formats.rocksdb.database_writer import DatabaseWriter
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.table_settings import TableSettings, settings_of
from statetool.formats.timers.raw_output import RawTimerWriter
from statetool.kernels.core.arrays import Bytes, Int64s, frozen
from statetool.kernels.entries.composite_keys import join_keys
from statetool.saving.publish import Staging
from statetool.saving.streams.kept_tables import KeptTables
from statetool.saving.streams.output import GroupWriter, NewStream, Piece, StreamOutput
from statetool.saving.streams.runs import PackedRun
from statetool.snapshot.operator import OperatorInventory

#: Handle tag of databases since Flink 1.15, the first release with native savepoints.
DATABASE_TAG: Final = 11
#: Handle tag of raw keyed state and of the layout of the heap backend since Flink 1.15.
KEY_GROUPS_TAG: Final = 12
#: Bytes of a file in memory. A database has an unfinished file for each state.
_BUFFER_BYTES: Final = 1 << 20
#: RocksDB's defaults, with the merge operator for list state.
_SETTINGS: Final = TableSettings(merge_operator="StringAppendTESTOperator")


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeForm:
    """Keyed state as databases of RocksDB or ForSt; picklable.

    Attributes
    ----------
    checkpoint_id
        That of the snapshot.
    raw_timers
        Whether timers are written as raw keyed state, which Flink restores wherever the job keeps its timers.
    settings
        Settings of the table files.
    kept
        Table files of the base that become part of the databases, by subtask. The handles of these databases do not name them.
    """

    checkpoint_id: int
    raw_timers: bool = False
    settings: TableSettings = _SETTINGS
    kept: Mapping[int, KeptTables] = field(default_factory=dict)

    @classmethod
    def like(cls, base: OperatorInventory | None, checkpoint_id: int, *, raw_timers: bool) -> NativeForm:
        """Return the form with the settings of an operator's databases, if it has some.

        Raises
        ------
        StatetoolError
            Their options or files cannot be read.
        """
        stored = (below for state in (() if base is None else base.keyed.managed) for below in state.below())
        database = next(filter(None, (below.owned_database() for below in stored)), None)
        settings = _SETTINGS
        if base is not None and database is not None:
            try:
                settings = settings_of(database.files, _SETTINGS.merge_operator)
            except StatetoolError as error:
                raise error.at(operator=base.label) from error.__cause__
        return cls(checkpoint_id=checkpoint_id, raw_timers=raw_timers, settings=settings)

    def write(
        self,
        subtask: int,
        fill: Callable[[GroupWriter], None],
        header: KeyedHeader,
        groups: range,
        prefix: int,
        staging: Staging,
        inline_bytes: int,
    ) -> NewStream:
        """Write the database of one subtask by a function that appends its key groups. Like Flink, it writes none for raw timers alone.

        Parameters
        ----------
        prefix
            Bytes of the key-group prefix of each key.
        """
        outputs: dict[str, StreamOutput] = {}

        def create(name: str) -> StreamOutput:
            label = "table" if name.endswith(".sst") else "manifest"
            outputs[name] = StreamOutput(staging, label, inline_bytes=inline_bytes, buffer_bytes=_BUFFER_BYTES)
            return outputs[name]

        timers = {i: m for i, m in enumerate(header.states) if self.raw_timers and m.kind == "timers"}
        states = {i: m for i, m in enumerate(header.states) if i not in timers}
        if timers and not states:
            with StreamOutput(staging, "timers", inline_bytes=inline_bytes) as raw:
                writer = RawTimerWriter(raw.write, groups, timers)
                fill(_GroupsToWriter(writer, prefix))
                writer.finish()
            return NewStream(subtask=subtask, handle=None, files=raw.files, raw=_raw_handle(groups, writer, raw))
        families = {state: family for family, state in enumerate(states)}
        names = [family_name(meta.name) for meta in states.values()]
        kept = self.kept.get(subtask)
        manifest = None if kept is None else kept.read_manifest()
        with (
            DatabaseWriter(create, names, self.settings, manifest) as database,
            StreamOutput(staging, "timers", inline_bytes=inline_bytes if timers else 1) as raw,
        ):
            writer = RawTimerWriter(raw.write, groups, timers)
            fill(_GroupsToDatabase(database, families, writer, prefix))
            if timers:
                writer.finish()
            if kept is not None and (options := kept.read_options(names)) is not None:
                with create(options[0]) as out:
                    out.write(options[1])
        with StreamOutput(staging, "keyed-meta", inline_bytes=inline_bytes) as meta:
            meta.write(write_keyed_header(replace(header, states=tuple(states.values()))))
        handle = IncrementalHandle(
            tag=DATABASE_TAG, checkpoint_id=self.checkpoint_id, backend_id=str(uuid.uuid4()), start=groups.start,
            count=len(groups), meta=meta.handle(), shared=(),
            private=tuple((name, out.handle()) for name, out in outputs.items()),
            checkpointed_size=sum(out.size_bytes for out in (meta, *outputs.values())), handle_id=str(uuid.uuid4()),
        )  # fmt: skip
        return NewStream(
            subtask=subtask,
            handle=handle,
            files=tuple(file for out in (meta, raw, *outputs.values()) for file in out.files),
            raw=_raw_handle(groups, writer, raw) if timers else None,
        )


def _raw_handle(groups: range, writer: RawTimerWriter, out: StreamOutput) -> KeyGroupsHandle:
    return KeyGroupsHandle(
        tag=KEY_GROUPS_TAG, start=groups.start, offsets=tuple(writer.offsets), stream=out.handle(),
        handle_id=str(uuid.uuid4()),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapForm:
    """Keyed state in the layout of the heap backend; picklable. Follows ``HeapSnapshotStrategy``."""

    def write(
        self,
        subtask: int,
        fill: Callable[[GroupWriter], None],
        header: KeyedHeader,
        groups: range,
        prefix: int,
        staging: Staging,
        inline_bytes: int,
    ) -> NewStream:
        """Write the stream of one subtask, as :meth:`NativeForm.write`."""
        with StreamOutput(staging, "keyed", inline_bytes=inline_bytes) as out:
            writer = HeapGroupWriter(out.write, header, groups)
            fill(_GroupsToWriter(writer, prefix))
            writer.finish()
        handle = KeyGroupsHandle(
            tag=KEY_GROUPS_TAG, start=groups.start, offsets=tuple(writer.offsets), stream=out.handle(),
            handle_id=str(uuid.uuid4()),
        )  # fmt: skip
        return NewStream(subtask=subtask, handle=handle, files=out.files)


class _GroupsToWriter:
    """A :class:`GroupWriter` of the entries of key groups in the layout of the heap backend, or of raw timers."""

    def __init__(self, writer: HeapGroupWriter | RawTimerWriter, prefix: int) -> None:
        self._writer, self._prefix = writer, prefix

    def add_groups(self, run: PackedRun) -> None:
        batch = run.entries(self._prefix)
        self._writer.add(batch, np.arange(len(batch)))

    def add_pieces(self, number: int, pieces: Iterable[Piece], prefix: int) -> None:
        for _, batch, order in pieces:
            self._writer.add(batch, order)


class _GroupsToDatabase:
    """A :class:`GroupWriter` of the entries of key groups into column families, by state id, and of other states into raw timers."""

    def __init__(
        self, database: DatabaseWriter, families: Mapping[int, int], timers: RawTimerWriter, prefix: int
    ) -> None:
        self._database, self._families, self._timers, self._prefix = database, families, timers, prefix
        self._database_states = np.array(list(families), dtype=np.int64)
        # From this size on, a table file ends at the next key-group boundary.
        self._cut_bytes = database.table_bytes * 3 // 4

    def add_groups(self, run: PackedRun) -> None:
        batch = run.entries(self._prefix)
        self._add(batch, np.arange(len(batch)))
        self._database.end_tables(self._cut_bytes)

    def add_pieces(self, number: int, pieces: Iterable[Piece], prefix: int) -> None:
        for _, batch, order in pieces:
            self._add(batch, order)
        self._database.end_tables(self._cut_bytes)

    def _add(self, batch: EntryBatch, order: Int64s) -> None:
        """Append entries in order, by state."""
        in_database = np.isin(batch.state[order], self._database_states)
        if not in_database.all():
            self._timers.add(batch, order[~in_database])
            order = order[in_database]
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
            self._database.add(self._families[int(states[start])], entries.part(start, stop))
