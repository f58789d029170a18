"""Files of the changelog state backend: change sets, and the state metadata in them. Needs no NumPy.

A file is a boolean (compressed), then change sets, which form one framed Snappy stream if compressed. Offsets of handles count uncompressed
bytes after the flag. Each offset selects one change set: i4 number of groups, then groups of i4 number of changes, i4 key group (-1: state
metadata, stored first), and changes of i4 length and bytes. Follows ``StateChangeFormat``, ``ChangelogStreamHandleReader`` and
``AbstractStateChangeLogger``.

A change is an i1 operation, then one of these:

- For state metadata: i4 version, the metadata, its TTL and default value, i2 state id, i1 state type.
- For data: i2 state id, and the data that :mod:`statetool.formats.changelog.deltas` reads.

State ids are numbered per writer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from statetool.errors import FormatError, StatetoolError
from statetool.formats.compression import stream_chunks
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMetaInfo, read_m6
from statetool.formats.stream import OpenStream, Stream
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import kernel_only
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext

METADATA: Final = 8
METADATA_GROUP: Final = -1
_BUFFER_BYTES: Final = 64 << 10
_META_VERSIONS: Final = range(1, 8)
# Codes of the state type after the metadata: they differ from the ordinals inside it.
_TYPE_CODES: Final = {0: 0, 1: 1, 2: 2, 3: 3, 10: 4}
_TAIL_BYTES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """One change set: its start among the uncompressed bytes of a changelog file."""

    stream: Stream
    offset: int


class ChangeFiles:
    """Open changelog files; compressed ones are uncompressed to local disk once."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._open: dict[Stream, OpenStream] = {}

    def __enter__(self) -> ChangeFiles:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def open(self, stream: Stream) -> OpenStream:
        """Return the uncompressed bytes after the flag of a file."""
        if stream not in self._open:
            self._open[stream] = self._stack.enter_context(self._plain(stream))
        return self._open[stream]

    def _plain(self, stream: Stream) -> OpenStream:
        whole = _to_file_end(stream)
        with whole.open() as f:
            flag = f.read_at(0, 1)[0] if whole.size_bytes else 0
            if flag > 1:
                raise FormatError(f"a file of changes starts with {flag}, expected 0 or 1").at(
                    file=stream.file, offset=stream.start
                )
            if not flag:
                size = max(0, whole.size_bytes - 1)
                inline = whole.inline[1:] if whole.inline is not None else None
                return replace(whole, start=whole.start + 1, size_bytes=size, inline=inline).open()
            spill = self._stack.enter_context(tempfile.NamedTemporaryFile(prefix="statetool-"))  # noqa: SIM115
            try:
                for chunk in stream_chunks(lambda o, n: f.read_at(1 + o, n), whole.size_bytes - 1, base=stream.start):
                    spill.write(chunk.data)
            except StatetoolError as error:
                raise error.at(file=stream.file) from None
            spill.flush()
            return Stream(file=spill.name, start=0, size_bytes=spill.tell()).open()


def _to_file_end(stream: Stream) -> Stream:
    """Return a stream that extends to the end of its file: the size in a handle counts uncompressed bytes, without the flag."""
    if stream.inline is not None or stream.start:
        return stream
    return replace(stream, size_bytes=stream.file_size())


def first_changes(files: ChangeFiles, change_set: ChangeSet) -> Iterator[tuple[int, Cursor]]:
    """Yield key group and bytes of the changes of a set, lazily one by one.

    Raises
    ------
    FormatError
        Damaged; with file and offset (of uncompressed bytes after the flag if the file is compressed).
    """
    buffer = _Buffer(files.open(change_set.stream), change_set)
    groups = buffer.read(4).count("groups of changes", at_least=0)
    for _ in range(groups):
        head = buffer.read(8)
        changes = head.count("changes", at_least=0)
        key_group = head.i4()
        for _ in range(changes):
            yield key_group, buffer.read(buffer.read(4).i4())


class _Buffer:
    """Forward reader of a changelog file, one buffer at a time."""

    def __init__(self, f: OpenStream, change_set: ChangeSet) -> None:
        self.f = f
        self.file = change_set.stream.file
        self.at = change_set.offset
        self.start = self.at
        self.data = memoryview(b"")

    def read(self, n: int) -> Cursor:
        """Return a cursor over the next ``n`` bytes."""
        left = self.f.stream.size_bytes - self.at
        if not 0 <= n <= left:
            raise FormatError(f"{n} bytes in a change set, {max(left, 0)} are left of the file").at(
                file=self.file, offset=self.f.stream.start + self.at
            )
        if self.at + n > self.start + len(self.data):
            self.start = self.at
            self.data = self.f.read_at(self.at, min(max(n, _BUFFER_BYTES), left))
        begin = self.at - self.start
        self.at += n
        return Cursor(self.data, begin, begin + n, base=self.f.stream.start + self.start)


def read_descriptions(files: ChangeFiles, change_set: ChangeSet, types: TypeContext) -> list[tuple[int, StateMetaInfo]]:
    """Return the states that a change set declares, with their ids; only the beginning of the set is read.

    Raises
    ------
    FormatError, UnknownSerializerError
    """
    descriptions: list[tuple[int, StateMetaInfo]] = []
    for key_group, c in first_changes(files, change_set):
        if key_group != METADATA_GROUP:
            break
        descriptions.append(read_description(c, types, change_set.stream.file))
    return descriptions


def read_description(c: Cursor, types: TypeContext, file: str) -> tuple[int, StateMetaInfo]:
    """Return the id and the metadata of a state.

    Raises
    ------
    FormatError, UnknownSerializerError
    """
    try:
        operation = c.i1()
        if operation != METADATA:
            raise c.fail(f"operation {operation} among the descriptions of states", pos=c.pos - 1)
        version = c.i4()
        if version not in _META_VERSIONS:
            raise c.fail(f"version {version} of a description of a state", pos=c.pos - 4)
        reader = snapshot_reader(types)
        meta = read_m6(c, types, lambda at, *_: reader.proxied(at))
        if c.left < _TAIL_BYTES or (meta.backend_type == PRIORITY_QUEUE and c.left > _TAIL_BYTES):
            raise c.fail(f"{c.left} bytes follow the description of {meta.name!r}, expected {_TAIL_BYTES}")
        # The TTL and the default value of the state come first: Java and user bytes that are not needed for reading.
        c.skip(c.left - _TAIL_BYTES)
        state_id, code = c.i2(), c.u1()
        if state_id < 0:
            raise c.fail(f"id {state_id} of state {meta.name!r}", pos=c.pos - 3)
        if _TYPE_CODES.get(code) != meta.backend_type:
            raise c.fail(f"type {code} after the description of {meta.name!r}", pos=c.pos - 1)
    except StatetoolError as error:
        raise error.at(file=file) from None
    return state_id, meta


def merge_states(
    materialized: Mapping[str, StateMetaInfo], descriptions: Iterable[StateMetaInfo]
) -> dict[str, StateMetaInfo]:
    """Merge the states of materialized streams and of the changelog by name.

    Raises
    ------
    FormatError
        The metadata of a state in the changelog differs from that in the materialized part.
    """
    states = dict(materialized)
    for meta in descriptions:
        known = states.setdefault(meta.name, meta)
        if known is not meta and not _same_bytes(known, meta):
            raise FormatError(
                f"the change log describes state {meta.name!r} as {_type_text(meta)}, the materialized state below it as {_type_text(known)}",
                hint="take a canonical savepoint of the job, which holds one form only",
            ).at(state=meta.name)
    return states


def _same_bytes(one: StateMetaInfo, other: StateMetaInfo) -> bool:
    if one.kind != other.kind or one.serializers.keys() != other.serializers.keys():
        return False
    return all(writes_alike(s, other.serializers[name]) for name, s in one.serializers.items())


def writes_alike(one: Serializer, other: Serializer) -> bool:
    """Return True if two serializers are known to write the same bytes: same snapshot, or same program."""
    left, right = Output(), Output()
    one.write_snapshot(left)
    other.write_snapshot(right)
    if left == right:
        return True
    program = one.program()
    return kernel_only(program) and program == other.program() and one.length == other.length


def _type_text(meta: StateMetaInfo) -> str:
    return f"{meta.kind} of {meta.value.type_name}"
