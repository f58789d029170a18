"""Protocol of stored forms of keyed state.

A :class:`StateFormat` recognizes the handles that it can read and makes a :class:`StoredState` of each: the keyed state of one subtask, which
provides the header and sources of entries. An :class:`KeyGroupReader` reads some of its key groups. Tables, verification and rewrites are
loops over the batches of sources; none of them depends on a form. A form is one module of this package, and a line in
:mod:`statetool.entries.forms`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from statetool.entries.sizes import BATCH_BYTES as BATCH_BYTES
from statetool.entries.sizes import MEMORY_BYTES as MEMORY_BYTES
from statetool.entries.sizes import TARGET_BYTES as TARGET_BYTES
from statetool.errors import StatetoolError
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange
from statetool.formats.metadata.handles import KeyedHandle, KeyGroupsHandle, StreamHandle
from statetool.formats.stream import Stream
from statetool.serializers.core.base import Serializer
from statetool.types.declared import NOTHING_DECLARED, TypeContext

if TYPE_CHECKING:
    from statetool.formats.backends.column_families import OwnedDatabase
    from statetool.formats.keyed.entries import EntryBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedContext:
    """Context that a task needs, besides the bytes, to read an operator's keyed state; picklable.

    Attributes
    ----------
    operator
        Its uid or id, for messages.
    types
        The user's declarations, with which a task reads serializers in the same way as the driver.
    descriptions
        Headers (bytes, and their offset in the file) with POJO subclasses that not all subtasks know.
    """

    operator: str
    max_parallelism: int
    types: TypeContext = NOTHING_DECLARED
    descriptions: tuple[tuple[bytes, int], ...] = ()

    @property
    def prefix(self) -> int:
        """Bytes of the key-group prefix of each key."""
        return prefix_size(self.max_parallelism)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRequest:
    """Selection of entries to read, and the size and content of batches.

    Attributes
    ----------
    states
        Names of states; ``None`` for all. Entries of other states may be returned too.
    keys
        Encoded keys to read, ``None`` for all. Entries of other keys may be returned too. Databases ignore it for timers, which do not start
        with their key.
    whole_keys
        Whether all entries of a key, of all ``states``, are in one batch.
    batch_bytes
        Target size of a batch in bytes (four times that for databases); larger only if entries have to stay together, or if there are
        thousands of states.
    memory_bytes
        Maximum bytes to assemble in memory; larger key groups go through local disk.
    reads_on
        Whether all batches will be read, so that their bytes may be requested from an object store at once.
    checks_order
        Whether to check the order of the entries in databases, in which RocksDB looks for keys.
    """

    states: tuple[str, ...] | None = None
    keys: tuple[bytes, ...] | None = None
    whole_keys: bool = False
    batch_bytes: int = BATCH_BYTES
    memory_bytes: int = MEMORY_BYTES
    reads_on: bool = False
    checks_order: bool = False

    def wants(self, name: str) -> bool:
        """Return True if a state is selected."""
        return self.states is None or name in self.states


ALL_ENTRIES: Final = EntryRequest()


class KeyGroupReader(Protocol):
    """Some key groups of the keyed state of one subtask; frozen, picklable and self-contained, so that any task can read it."""

    @property
    def context(self) -> KeyedContext:
        """The context of the operator."""
        ...

    @property
    def subtask(self) -> int:
        """Index of the subtask."""
        ...

    @property
    def file(self) -> str:
        """File name for messages."""
        ...

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels compiled when reading large amounts, slowest to compile first."""
        ...

    @property
    def is_canonical(self) -> bool:
        """Whether batches contain canonical key groups over their bytes, in the order of :meth:`group_sizes`, one after another.

        So each key follows its length and prefix, and is followed by the length of its value and the value.
        """
        ...

    @property
    def reads_by_key(self) -> bool:
        """Whether :meth:`batches` of some keys reads only parts of the key groups from the first time on, and timers have a request of their own."""
        ...

    def group_sizes(self) -> Mapping[int, int]:
        """Return the approximate stored bytes of each key group, in the best reading order."""
        ...

    def header(self) -> KeyedHeader:
        """Return key and states; state ids of entries are indexes of its states.

        Raises
        ------
        FormatError, UnknownSerializerError
            Damaged.
        """
        ...

    def begin(self, request: EntryRequest) -> bool:
        """Make first requests of :meth:`batches` to an object store without waiting for them; errors as for :meth:`batches`.

        Returns True if there are no more. Otherwise the next depend on responses that have not arrived.
        """
        ...

    def batches(self, request: EntryRequest = ALL_ENTRIES) -> Iterator[EntryBatch]:
        """Read entries in bounded memory.

        Raises
        ------
        FormatError
            Damaged bytes; with operator, file, offset and key group if known.
        """
        ...

    def within(self, key_groups: Collection[int]) -> KeyGroupReader | None:
        """Return the source restricted to these key groups, ``None`` if it has none of them."""
        ...

    def checksum_errors(self) -> Iterator[StatetoolError]:
        """Yield errors of checksums that reading does not verify."""
        ...


def size_of(source: KeyGroupReader) -> int:
    """Return the approximate stored bytes of a source."""
    return sum(source.group_sizes().values())


def halves(source: KeyGroupReader) -> list[KeyGroupReader]:
    """Split a source in two by key group, to locate damage; return none if it has a single key group."""
    groups = list(source.group_sizes())
    middle = len(groups) // 2
    return [h for half in (groups[:middle], groups[middle:]) if middle and (h := source.within(half)) is not None]


@contextmanager
def error_context(source: KeyGroupReader) -> Iterator[None]:
    """Add operator and file of a source to errors."""
    try:
        yield
    except StatetoolError as error:
        raise error.at(operator=source.context.operator, file=source.file) from error.__cause__


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedHandleRef:
    """Handle of one subtask's keyed state; ``raw``: written by the operator or its timer service instead of the state backend."""

    subtask: int
    handle: KeyedHandle
    raw: bool = False


class Expect(Protocol):
    """Looks for files at the same time."""

    def __call__(self, handles: Iterable[StreamHandle], *, opens: bool) -> None: ...


def _expect_nothing(handles: Iterable[StreamHandle], *, opens: bool) -> None:
    """Do not look for files before they are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorReadContext:
    """Information about an operator for forms; on the driver.

    Attributes
    ----------
    resolve
        Returns the location of a stream handle's bytes, ``None`` if it has none.
    metadata_file
        File name in messages about bytes inside the metadata.
    given_key
        The key type, if the user declares it.
    managed
        Bytes and offset of one header of managed state, if any: old timers are read with its key type.
    expect
        Looks for the files of stream handles at the same time, before ``resolve`` looks for one after another; ``opens`` says whether table
        files among them will be opened.
    learned
        Headers of keyed state (bytes and offset) of another snapshot of the operator, for POJO subclasses that this one does not describe.
    learned_elements
        The same for operator state.
    """

    operator: str
    max_parallelism: int
    types: TypeContext
    resolve: Callable[[StreamHandle], Stream | None]
    metadata_file: str
    given_key: Serializer | None = None
    managed: Callable[[], tuple[bytes, int] | None] = lambda: None
    expect: Expect = _expect_nothing
    learned: tuple[tuple[bytes, int], ...] = ()
    learned_elements: tuple[tuple[bytes, int], ...] = ()

    @property
    def context(self) -> KeyedContext:
        """Context for reading headers."""
        return KeyedContext(operator=self.operator, max_parallelism=self.max_parallelism, types=self.types)

    def stream(self, handle: StreamHandle) -> Stream:
        """Return the location of a handle's bytes; an empty stream if it has none."""
        return self.resolve(handle) or Stream(file=self.metadata_file, start=0, size_bytes=0, inline=b"")


#: ``full`` are canonical key groups in a checkpoint, which only RocksDB reads, ``empty`` a checkpoint without entries.
Layout = Literal["canonical", "database", "heap", "full", "empty"]


class StoredState(ABC):
    """Keyed state of one subtask, in one form; on the driver. Everything is read lazily."""

    #: Whether RocksDB and the heap backend of current Flink releases read it: rewrites copy it unchanged if nothing else changes.
    canonical: bool = False
    #: Whether it is a native database of RocksDB or ForSt; timers may be missing from it in a native savepoint.
    database: bool = False
    #: Bytes of the stored header if they are known. Otherwise :meth:`head` is where to read them.
    raw_header: bytes | None = None

    def __init__(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> None:
        self.place = place
        self.read_context = read_context

    @property
    def key_found(self) -> bool:
        """Whether the key type was inferred from key groups, because the snapshot does not store it."""
        return False

    def below(self) -> tuple[StoredState, ...]:
        """Return what a backend opens to restore it: the state itself, or the materialized state of a changelog."""
        return (self,)

    def layout(self) -> Layout:
        """Return how the key groups are stored. For checkpoints of the heap backend, the first key groups are read."""
        return "database" if self.database else "canonical"

    @abstractmethod
    def key_groups(self) -> Iterator[KeyGroupLocation]:
        """Yield the key groups that belong to the subtask."""

    @abstractmethod
    def identity(self) -> bytes:
        """Return bytes that are equal only for stored states with equal headers."""

    @abstractmethod
    def header(self) -> KeyedHeader:
        """Read a new copy of the header; errors name operator and file."""

    def head(self) -> tuple[Stream, int] | None:
        """Return a stream and the number of its first bytes that hold the header, ``None`` if no header is stored."""
        return None

    def description(self) -> tuple[bytes, int] | None:
        """Return the bytes of the header and their offset in the file, ``None`` if no header is stored."""
        return None

    def key_group_bytes(self, context: KeyedContext) -> KeyGroupBytes | None:
        """Return the location of the key groups' bytes, ``None`` unless each is a range in the canonical layout."""
        return None

    def owned_database(self) -> OwnedDatabase | None:
        """Return the database, whose files store numbers of entries; ``None`` for other forms."""
        return None

    def needed_files(self, groups: Collection[int] | None) -> Iterable[StreamHandle]:
        """Return handles of files that reading some key groups, or all, needs, as far as they should be looked for at the same time."""
        return ()

    @abstractmethod
    def sources(
        self, context: KeyedContext, *, groups: Collection[int] | None, target_bytes: int
    ) -> Iterable[KeyGroupReader]:
        """Split the state by key groups into sources of about ``target_bytes``; ``groups`` selects key groups, ``None`` for all."""

    def source_without_header(self, context: KeyedContext, *, most_bytes: int) -> KeyGroupReader | None:
        """Return one source of all key groups without reading the header.

        Returns ``None`` if the header is needed, if it is known, if there are no entries, or if they have more than ``most_bytes``.
        """
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroupLocation:
    """One key group: its start in the stream and its stored bytes, ``None`` if it is mixed with others."""

    key_group: int
    offset: int | None
    size_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroupBytes:
    """Key groups of one subtask that are ranges of a stream, each in the canonical layout.

    Attributes
    ----------
    header_size
        Bytes before the first key group.
    ranges
        The non-empty key groups, in the order of the stream.
    reader
        Reader of all of them.
    """

    handle: KeyGroupsHandle
    stream: Stream
    header_size: int
    ranges: tuple[KeyGroupRange, ...]
    reader: KeyGroupReader

    @property
    def prefix(self) -> int:
        """Bytes of the key-group prefix of each key."""
        return self.reader.context.prefix


class StateFormat(Protocol):
    """A stored form of keyed state."""

    def matches(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> bool:
        """Return True if a handle is of this form."""
        ...

    def open(self, places: Sequence[KeyedHandleRef], read_context: OperatorReadContext) -> Iterable[StoredState]:
        """Return the stored state of each of an operator's handles that are of this form."""
        ...


def cut_evenly(key_groups: Sequence[int], size_bytes: float, target_bytes: int) -> Iterator[tuple[int, ...]]:
    """Split key groups with ``size_bytes`` in total, assuming equal sizes, into runs of about ``target_bytes``."""
    n = max(1, min(len(key_groups), round(size_bytes / target_bytes)))
    for i in range(n if key_groups else 0):
        yield tuple(key_groups[i * len(key_groups) // n : (i + 1) * len(key_groups) // n])
