"""The protocol of stored forms of keyed state.

A :class:`Form` recognises the handles that it can read and makes a :class:`StoredState` of each: the keyed state of one subtask, which
gives the header and sources of entries. An :class:`EntrySource` reads some of its key groups. Tables, verification and rewrites are loops
over the batches of sources; none of them knows a form. A form is one module of this room, and a line in :mod:`statetool.entries.forms`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from statetool.errors import StatetoolError
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.metadata.handles import KeyedHandle, StreamHandle
from statetool.formats.stream import Stream
from statetool.serializers.base import Serializer
from statetool.types.declared import NOTHING_DECLARED, TypeContext

if TYPE_CHECKING:
    from statetool.formats.keyed.entries import EntryBatch

BATCH_BYTES: Final = 8 << 20
MEMORY_BYTES: Final = 128 << 20
#: Bytes of a source, about: what one task reads.
TARGET_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedContext:
    """What a task needs beside the bytes to read an operator's keyed state; picklable.

    Attributes
    ----------
    operator
        Its uid or id, for messages.
    types
        What the user declared: a task reads serializers as the driver did.
    descriptions
        Headers (bytes, and their offset in the file) that describe the subclasses of POJOs that not all subtasks know.
    """

    operator: str
    max_parallelism: int
    types: TypeContext = NOTHING_DECLARED
    descriptions: tuple[tuple[bytes, int], ...] = ()

    @property
    def prefix(self) -> int:
        """Bytes of the key group in front of each key."""
        return prefix_size(self.max_parallelism)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRequest:
    """Which entries are read, and in which batches.

    Attributes
    ----------
    states
        Names of states; ``None`` for all. Entries of others may come too.
    keys
        Encoded keys that suffice, ``None`` for all. Entries of others may come too. Not for timers, which do not start with their key.
    whole_keys
        Whether all entries of a key, of all ``states``, are in one batch.
    batch_bytes
        Bytes of a batch, about (of databases four times that); more only for what has to stay together.
    memory_bytes
        Bytes that are put together in memory; larger key groups go through local disk.
    """

    states: tuple[str, ...] | None = None
    keys: tuple[bytes, ...] | None = None
    whole_keys: bool = False
    batch_bytes: int = BATCH_BYTES
    memory_bytes: int = MEMORY_BYTES

    def wants(self, name: str) -> bool:
        """Tell whether a state is wanted."""
        return self.states is None or name in self.states


ALL_ENTRIES: Final = EntryRequest()


class EntrySource(Protocol):
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
        """The file that messages name."""
        ...

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels that reading much of it compiles, those that take longest first."""
        ...

    def group_sizes(self) -> Mapping[int, int]:
        """Return the stored bytes of each key group, about, in the order in which they are read best."""
        ...

    def header(self) -> KeyedHeader:
        """Return key and states; state ids of entries are positions in its states.

        Raises
        ------
        FormatError, UnknownSerializerError
            Damaged.
        """
        ...

    def batches(self, request: EntryRequest = ALL_ENTRIES) -> Iterator[EntryBatch]:
        """Read entries in bounded memory.

        Raises
        ------
        FormatError
            Damaged bytes; with operator, file, offset and key group as far as they are known.
        """
        ...

    def within(self, key_groups: Collection[int]) -> EntrySource | None:
        """Return the source with these key groups only, ``None`` where it has none of them."""
        ...

    def checksum_errors(self) -> Iterator[StatetoolError]:
        """Yield errors of checksums that reading does not look at."""
        ...


def size_of(source: EntrySource) -> int:
    """Return the stored bytes of a source, about."""
    return sum(source.group_sizes().values())


def halves(source: EntrySource) -> list[EntrySource]:
    """Cut a source in two at its key groups, to find damage; return none where it has a single key group."""
    groups = list(source.group_sizes())
    middle = len(groups) // 2
    return [h for half in (groups[:middle], groups[middle:]) if middle and (h := source.within(half)) is not None]


@contextmanager
def placed(source: EntrySource) -> Iterator[None]:
    """Add operator and file of a source to errors."""
    try:
        yield
    except StatetoolError as error:
        raise error.at(operator=source.context.operator, file=source.file) from error.__cause__


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedPlace:
    """The handle of one subtask's keyed state; ``raw``: written not by the state backend but by the operator or its timer service."""

    subtask: int
    handle: KeyedHandle
    raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What forms can ask about an operator; on the driver.

    Attributes
    ----------
    resolve
        Tells where the bytes of a stream handle are, ``None`` where there are none.
    metadata_file
        The file that messages name for bytes inside the metadata.
    given_key
        The type of the keys, where the user declares it.
    managed
        Bytes and offset of one header of managed state, if there is any: old timers are read with the type of its keys.
    """

    operator: str
    max_parallelism: int
    types: TypeContext
    resolve: Callable[[StreamHandle], Stream | None]
    metadata_file: str
    given_key: Serializer | None = None
    managed: Callable[[], tuple[bytes, int] | None] = lambda: None

    @property
    def context(self) -> KeyedContext:
        """The context that headers are read with."""
        return KeyedContext(operator=self.operator, max_parallelism=self.max_parallelism, types=self.types)

    def stream(self, handle: StreamHandle) -> Stream:
        """Return where the bytes of a handle are; an empty stream where there are none."""
        return self.resolve(handle) or Stream(file=self.metadata_file, start=0, size_bytes=0, inline=b"")


class StoredState(ABC):
    """The keyed state of one subtask, in one form; on the driver. Nothing is read before it is asked for."""

    #: Whether all backends of current releases of Flink read it: rewrites leave it as it is where nothing else changes.
    canonical: bool = False
    #: Whether it is RocksDB's or ForSt's own database, in which a native savepoint may lack timers.
    database: bool = False

    def __init__(self, place: KeyedPlace, around: Surroundings) -> None:
        self.place = place
        self.around = around

    @property
    def key_found(self) -> bool:
        """Whether the type of the keys was found by their key groups, as the snapshot does not say it."""
        return False

    @abstractmethod
    def key_groups(self) -> Iterator[KeyGroupPlace]:
        """Yield the key groups that belong to the subtask."""

    @abstractmethod
    def identity(self) -> bytes:
        """Return bytes that are equal only for stored states with equal headers."""

    @abstractmethod
    def header(self) -> KeyedHeader:
        """Read the header anew; errors name operator and file."""

    def description(self) -> tuple[bytes, int] | None:
        """Return the bytes of the header and their offset in the file, ``None`` where no header is stored."""
        return None

    @abstractmethod
    def sources(
        self, context: KeyedContext, *, groups: Collection[int] | None, target_bytes: int
    ) -> Iterable[EntrySource]:
        """Cut the state at key groups into sources of about ``target_bytes``; ``groups`` are those wanted, ``None`` for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroupPlace:
    """One key group: where it starts in its stream and its stored bytes, ``None`` where it is mixed with others."""

    key_group: int
    offset: int | None
    size_bytes: int | None


class Form(Protocol):
    """A stored form of keyed state."""

    def claims(self, place: KeyedPlace, around: Surroundings) -> bool:
        """Tell whether a handle is of this form."""
        ...

    def bind(self, places: Sequence[KeyedPlace], around: Surroundings) -> Iterable[StoredState]:
        """Return the stored state of each of an operator's places that are of this form."""
        ...


def cut_evenly(key_groups: Sequence[int], size_bytes: float, target_bytes: int) -> Iterator[tuple[int, ...]]:
    """Cut key groups that have ``size_bytes`` together, as if all were of one size, into runs of about ``target_bytes``."""
    n = max(1, min(len(key_groups), round(size_bytes / target_bytes)))
    for i in range(n if key_groups else 0):
        yield tuple(key_groups[i * len(key_groups) // n : (i + 1) * len(key_groups) // n])
