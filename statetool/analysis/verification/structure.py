"""Check the metadata of a snapshot: that handles resolve, lengths, key-group ranges, offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from statetool.analysis.verification.problems import Problem, Severity, missing_file, problem_of
from statetool.errors import SnapshotNotFoundError, StatetoolError, several
from statetool.formats.key_groups import range_for
from statetool.formats.metadata import OperatorState, SubtaskState
from statetool.formats.metadata.handles import (
    AnyChannelHandle,
    ChangelogHandle,
    ChangesHandle,
    Handle,
    IncrementalHandle,
    InMemoryChangesHandle,
    KeyedHandle,
    KeyGroupsHandle,
    OperatorHandle,
    SegmentHandle,
    StreamHandle,
    file_streams,
)
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.stream import Stream
from statetool.io.listing import FoundFile
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.unflushed_lists import UNFLUSHED

#: Size of the flag at the start of a change log, which says whether the rest is compressed; offsets count from after it.
_LOG_FLAG = 1
#: File names used by RocksDB.
_DATABASE_FILE = re.compile(r"\d+\.(sst|log|blob)|(MANIFEST|OPTIONS)-\d+|CURRENT|IDENTITY")


@dataclass(slots=True)
class StructureCheck:
    """Check of one operator that does not read its state.

    Parameters
    ----------
    resolve
        Returns the location of a stream handle's bytes.
    find
        Returns size and time of a file, ``None`` if it does not exist.
    """

    operator: OperatorInventory
    resolve: Callable[[StreamHandle], Stream | None]
    find: Callable[[str], FoundFile | None]
    problems: list[Problem] = field(default_factory=list)
    streams: int = 0
    #: Files and texts of reported stream problems: many handles may name one file.
    _reported: set[tuple[str, str]] = field(default_factory=set)

    def run(self) -> list[Problem]:
        """Return the problems of the operator."""
        state = self.operator.state
        self.streams_only()
        if state.uid and operator_id_for_uid(state.uid) != state.operator_id:
            self._report(
                "error",
                f"operator id {state.operator_id} is not that of uid {state.uid!r}: Flink does not find the operator",
            )
        indexes: set[int] = set()
        for subtask in state.subtasks:
            if subtask.index in indexes:
                self._report("error", f"subtask {subtask.index} exists twice", subtask.index)
            if subtask.index >= state.parallelism:
                self._report("error", f"subtask {subtask.index} of an operator with parallelism {state.parallelism}")
            indexes.add(subtask.index)
            self._keyed_offsets(subtask.index, subtask.managed_keyed, raw=False)
            self._keyed_offsets(subtask.index, subtask.raw_keyed, raw=True)
            self._operator_offsets(subtask.index, subtask.managed_operator)
            self._operator_offsets(subtask.index, subtask.raw_operator)
            self._channel_offsets(subtask)
        if self._is_unflushed():
            self._report("error", f"{UNFLUSHED}. Run: statetool convert SRC DST")
        self._ranges(state, raw=False)
        self._ranges(state, raw=True)
        return self.problems

    def streams_only(self) -> None:
        """Check that the handles of the operator resolve and that lengths match."""
        for subtask in self.operator.state.subtasks:
            for slot, handle in _slots(subtask):
                self._streams(subtask.index, slot, handle)

    def _report(
        self,
        severity: Severity,
        words: str,
        subtask: int | None = None,
        state: str | None = None,
        file: str | None = None,
        offset: int | None = None,
    ) -> None:
        self.problems.append(
            Problem(
                severity=severity,
                operator=self.operator.label,
                subtask=subtask,
                state=state,
                file=file,
                offset=offset,
                problem=words,
            )
        )

    # ---- streams ------------------------------------------------------------------------------

    def _streams(self, subtask: int, slot: str, handle: Handle) -> None:
        for stream, is_log in file_streams(handle):
            self.streams += 1
            try:
                place = self.resolve(stream)
            except StatetoolError as error:
                if (stream.path, "") not in self._reported:
                    self._reported.add((stream.path, ""))
                    problem = problem_of(error, operator=self.operator.label, subtask=subtask, file=stream.path)
                    if isinstance(error, SnapshotNotFoundError):
                        words = f": {problem.problem}"
                        problem = missing_file(stream.path, self.operator.label, subtask, words)
                    self.problems.append(problem)
                continue
            if place is not None:
                self._length(subtask, slot, place, is_log=is_log, whole=not isinstance(stream, SegmentHandle))

    def _length(self, subtask: int, slot: str, place: Stream, *, is_log: bool, whole: bool) -> None:
        file = self.find(place.file)
        needed = place.start + place.size_bytes
        if file is None:
            words = ""
            if (place.file, "") not in self._reported:
                self._reported.add((place.file, ""))
                self.problems.append(missing_file(place.file, self.operator.label, subtask, f" ({slot} state)"))
        elif is_log:
            # The handle of a compressed log counts uncompressed bytes, so its length does not give the size of the file.
            words = "the changelog is empty" if file.size_bytes < _LOG_FLAG else ""
        elif file.size_bytes < needed or (whole and file.size_bytes != needed):
            words = f"the file of {slot} state has {_amount(file.size_bytes)}, the metadata says {needed:,}"
        else:
            words = ""
        if words and (place.file, words) not in self._reported:
            self._reported.add((place.file, words))
            self._report("error", words, subtask, file=place.file)

    def _size(self, handle: StreamHandle) -> int | None:
        """Return the bytes of a stream, ``None`` if it is empty."""
        if handle is None or isinstance(handle, KeyGroupsHandle):
            return None
        return handle.size_bytes

    # ---- offsets ------------------------------------------------------------------------------

    def _keyed_offsets(self, subtask: int, handle: KeyedHandle, *, raw: bool) -> None:
        match handle:
            case KeyGroupsHandle():
                self._key_group_offsets(subtask, handle, raw=raw)
            case IncrementalHandle():
                self._database(subtask, handle)
            case ChangelogHandle():
                for inner in handle.materialized:
                    self._keyed_offsets(subtask, inner, raw=raw)
                for changes in handle.changes:
                    if isinstance(changes, ChangesHandle):
                        self._log_offsets(subtask, changes)

    def _key_group_offsets(self, subtask: int, handle: KeyGroupsHandle, *, raw: bool) -> None:
        what = "raw keyed" if raw else "keyed"
        size = self._size(handle.stream)
        if size is None:
            self._report("error", f"{what} state without a stream", subtask)
            return
        used: dict[int, int] = {}
        for i, offset in enumerate(handle.offsets):
            group = handle.start + i
            # Raw state has no header: 0 is an offset, and -1 means none. In managed state, 0 means none.
            if offset == (-1 if raw else 0):
                continue
            if not 0 <= offset < size:
                words = f"key group {group} of {what} state starts at byte {offset} of a stream of {_amount(size)}"
                self._report("error", words, subtask, offset=offset)
            elif offset in used:
                words = f"key groups {used[offset]} and {group} of {what} state start at the same byte {offset}"
                self._report("error", words, subtask, offset=offset)
            used[offset] = group

    def _database(self, subtask: int, handle: IncrementalHandle) -> None:
        names = [name for name, _ in (*handle.shared, *handle.private)]
        for name in sorted({n for n in names if names.count(n) > 1}):
            self._report("error", f"the database has two files {name}", subtask)
        for name in sorted({n for n in names if not _DATABASE_FILE.fullmatch(n)}):
            self._report("warning", f"the database has a file {name!r}, which is not a valid name", subtask)
        for what in ("CURRENT", "MANIFEST"):
            if not any(n == what or n.startswith(f"{what}-") for n in names):
                self._report("error", f"the database has no {what} file", subtask)
        if handle.meta is None:
            self._report("error", "the database has no description of its states", subtask)

    def _log_offsets(self, subtask: int, handle: ChangesHandle) -> None:
        for offset, stream in handle.streams:
            size = self._size(stream)
            if size is None or not 0 <= offset < size:
                words = f"a change set starts at byte {offset} of a changelog of {_amount(size)}"
                self._report("error", words, subtask, offset=offset)

    def _operator_offsets(self, subtask: int, handle: OperatorHandle) -> None:
        if handle is None:
            return
        size = self._size(handle.stream)
        used: set[int] = set()
        for state in handle.states:
            if state.offsets and size is None:
                self._report("error", "operator state without a stream", subtask, state.name)
                return
            for offset in state.offsets:
                if not 0 <= offset <= (size or 0):
                    words = f"an element starts at byte {offset} of a stream of {_amount(size)}"
                    self._report("error", words, subtask, state.name, offset=offset)
                elif offset in used and offset != size and not self._is_unflushed():
                    self._report("error", f"two elements start at the same byte {offset}", subtask, state.name)
                used.add(offset)
            if tuple(sorted(state.offsets)) != state.offsets:
                self._report("error", "the offsets of its elements are not in ascending order", subtask, state.name)
            if state.mode == 2 and len(state.offsets) != 1:
                words = f"broadcast state with {several(len(state.offsets), 'offset')}, expected 1"
                self._report("error", words, subtask, state.name)

    def _is_unflushed(self) -> bool:
        """Return True if the release wrote wrong offsets of lists."""
        try:
            return self.operator.elements.are_unflushed
        except StatetoolError:
            return False  # streams that cannot be read are reported by themselves

    def _channel_offsets(self, subtask: SubtaskState) -> None:
        for channel in (*subtask.input_channels, *subtask.output_channels):
            size = self._size(channel.stream)
            offsets = getattr(channel, "offsets", ())
            for offset in offsets:
                if size is None or not 0 <= offset < size:
                    words = f"a buffer starts at byte {offset} of channel state of {_amount(size)}"
                    self._report("error", words, subtask.index, offset=offset)

    # ---- key groups ---------------------------------------------------------------------------

    def _ranges(self, state: OperatorState, *, raw: bool) -> None:
        """Check that the key groups of all subtasks exist exactly once (raw ones: at most once)."""
        what = "raw keyed" if raw else "keyed"
        owner: dict[int, int] = {}
        ranges = []
        for subtask in state.subtasks:
            groups = key_groups_of(subtask.raw_keyed if raw else subtask.managed_keyed)
            if groups is None:
                continue
            ranges.append(groups)
            if not 0 <= groups.start < groups.stop <= state.max_parallelism:
                words = f"{what} state of key groups {_span(groups)}, but max parallelism is {state.max_parallelism}"
                self._report("error", words, subtask.index)
                continue
            if twice := [g for g in groups if g in owner]:
                words = (
                    f"key groups {_span(range(twice[0], twice[-1] + 1))} of {what} state are also in "
                    f"subtask {owner[twice[0]]}"
                )
                self._report("error", words, subtask.index)
            owner.update((g, subtask.index) for g in groups)
            own = range_for(subtask.index, state.parallelism, state.max_parallelism)
            if groups != own and subtask.index < state.parallelism:
                words = f"{what} state of key groups {_span(groups)}, but the subtask has {_span(own)}"
                self._report("warning", words, subtask.index)
        if ranges and not raw:
            self._gaps(state, owner)

    def _gaps(self, state: OperatorState, owner: dict[int, int]) -> None:
        """Report key groups without a handle.

        A subtask that never received a record may have registered no state and then has no handle. A handle covers all key groups of its
        subtask.
        """
        with_state = {s.index for s in state.subtasks if s.managed_keyed is not None}
        done = {s.index for s in state.subtasks if s.finished}
        for subtask in range(state.parallelism):
            own = range_for(subtask, state.parallelism, state.max_parallelism)
            missing = [g for g in own if g not in owner]
            if not missing or subtask in done:
                continue
            words = f"key groups {_span(range(missing[0], missing[-1] + 1))} are in no handle of keyed state"
            if subtask in with_state:
                self._report("error", words, subtask)
            else:
                self._report(
                    "warning", f"{words}: the subtask has no keyed state, as if it had never seen a record", subtask
                )


def key_groups_of(handle: KeyedHandle) -> range | None:
    """Return the key groups of a handle, ``None`` if it is empty."""
    match handle:
        case KeyGroupsHandle(start=start, offsets=offsets):
            return range(start, start + len(offsets))
        case IncrementalHandle() | ChangelogHandle() | ChangesHandle() | InMemoryChangesHandle():
            return range(handle.start, handle.start + handle.count)
    return None


def _amount(size: int | None) -> str:
    return "no bytes" if size is None else several(size, "byte")


def _span(groups: range) -> str:
    return f"{groups.start} to {groups.stop - 1}" if len(groups) != 1 else str(groups.start)


def _slots(s: SubtaskState) -> Iterator[tuple[str, Handle]]:
    yield "managed operator", s.managed_operator
    yield "raw operator", s.raw_operator
    yield "managed keyed", s.managed_keyed
    yield "raw keyed", s.raw_keyed
    channels: tuple[tuple[str, tuple[AnyChannelHandle, ...]], ...] = (
        ("input channel", s.input_channels),
        ("output channel", s.output_channels),
    )
    for name, handles in channels:
        for handle in handles:
            yield name, handle
