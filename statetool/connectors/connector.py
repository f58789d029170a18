"""Base classes of connectors. Each connector is a class registered by an entry point (:mod:`statetool.connectors.registry`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from statetool.connectors.elements import OperatorBytes, reading_as
from statetool.connectors.model import (
    Enumerator,
    HeldSplit,
    NamedFile,
    PendingCommit,
    SinkState,
    SourceBytes,
    SourceState,
    Split,
    SplitPosition,
)
from statetool.connectors.wire import read_version
from statetool.errors import StatetoolError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import ClassDeclaration


class SourceConnector(ABC):
    """A source: the layout of its splits and enumerator state, and the names users give to positions.

    Attributes
    ----------
    name
        Name in tables.
    markers
        Words accepted instead of a position.
    """

    name: ClassVar[str]
    markers: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def place(self, split: Any) -> SplitPosition:
        """Return the position of a split."""

    def at(self, split: Any, position: str) -> Any:
        """Return the split at another position: a text in the source's format, or one of :attr:`markers`.

        Raises
        ------
        OptionError
            The position is not valid for this source.
        """
        raise UnsupportedError(f"positions of {self.name} cannot be changed", hint="statetool can only show them")

    def added(self, split_id: str, position: str, others: Sequence[Split]) -> Any:
        """Return a new split by its id.

        Raises
        ------
        OptionError
            The split id or the position is not valid for this source.
        """
        raise UnsupportedError(f"splits of {self.name} cannot be added", hint="let the enumerator discover them")


class SplitConnector(SourceConnector):
    """A FLIP-27 source: splits and enumerator have versioned serializers.

    Attributes
    ----------
    split_versions, enumerator_versions
        Versions whose layout is known.
    """

    split_versions: ClassVar[frozenset[int]]
    enumerator_versions: ClassVar[frozenset[int]]

    @abstractmethod
    def read_split(self, version: int, c: Cursor) -> Any:
        """Read a split of a known version; raise an error for bytes that cannot be a split."""

    @abstractmethod
    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        """Read enumerator state of a known version."""

    def write_split(self, version: int, split: Any) -> bytes:
        """Return the bytes of a split."""
        raise UnsupportedError(f"splits of {self.name} are not written", hint="statetool can only show them")

    def write_enumerator(self, version: int, enumerator: Enumerator) -> bytes:
        """Return the bytes of enumerator state."""
        raise UnsupportedError(f"the enumerator of {self.name} is not written", hint="statetool can only show them")

    def keeps_positions(self, version: int, enumerator: Enumerator) -> bool:
        """Return True if enumerator state stores the start positions of unassigned splits."""
        return True

    def upgrade_enumerator(self, version: int, enumerator: Enumerator) -> tuple[int, Enumerator]:
        """Return enumerator state in a version that stores positions, if such a version exists."""
        raise UnsupportedError(f"no version of the enumerator of {self.name} stores positions")

    def read(self, given: SourceBytes) -> SourceState:
        """Read everything of a known version.

        Raises
        ------
        StatetoolError
            The bytes are not this connector's.
        """
        held = tuple(replace(h, split=self._split(h)) for h in given.held)
        enumerator = None
        if given.enumerator is not None and given.enumerator_version in self.enumerator_versions:
            enumerator = read_version(
                given.enumerator, given.enumerator_version, self.read_enumerator, "enumerator state"
            )
        return SourceState(held=held, enumerator=enumerator, backlog=self.backlog(enumerator))

    def write(self, given: SourceBytes, state: SourceState) -> SourceBytes:
        """Return the bytes of changed state: of splits without bytes, and of the enumerator if ``state`` has one.

        ``given`` determines the version in which the enumerator is written.
        """
        held = tuple(h if h.data else replace(h, data=self.write_split(h.version, h.split)) for h in state.held)
        enumerator = given.enumerator
        if state.enumerator is not None:
            assert given.enumerator_version is not None
            enumerator = self.write_enumerator(given.enumerator_version, state.enumerator)
        return replace(given, held=held, enumerator=enumerator)

    def backlog(self, enumerator: Enumerator | None) -> bool | None:
        """Return True if the source was in its backlog phase, ``None`` if its state does not store it."""
        return None

    def phase(self, state: SourceState) -> str:
        """Return the phase of the source, from which ``backlog`` of its state was inferred."""
        return "its enumerator"

    def _split(self, held: HeldSplit) -> Any:
        if held.version not in self.split_versions:
            return None
        return read_version(held.data, held.version, self.read_split, "a split")


class StateSource(SourceConnector):
    """A source that stores its positions in a list state, without an enumerator.

    Attributes
    ----------
    state
        Name of the list state.
    classes
        Classes in it that its serializers do not describe.
    """

    state: ClassVar[str]
    classes: ClassVar[tuple[ClassDeclaration, ...]] = ()

    @abstractmethod
    def read_element(self, operator: OperatorBytes, value: Any) -> Any:
        """Return the split of an element of the state."""

    def element_of(self, split: Any) -> Any:
        """Return the element of the state for a split."""
        raise UnsupportedError(f"splits of {self.name} are not written", hint="statetool can only show them")

    def recognises(self, operator: OperatorBytes) -> bool:
        """Return True if an operator's state is that of this source."""
        return self.state in operator.states

    def read(self, operator: OperatorBytes) -> SourceState:
        """Read the state of an operator."""
        elements = zip(operator.elements(self.state), operator.values(self.state), strict=True)
        with reading_as(self.name, operator):
            held = tuple(
                HeldSplit(subtask=e.subtask, version=0, data=e.data, split=self.read_element(operator, value))
                for e, (_, value) in elements
            )
            for h in held:
                self.place(h.split)  # values of other types raise an error here instead of when they are shown
        return SourceState(held=held)


class NamesFiles:
    """Declaration of the files that the state of a sink names and that metadata does not.

    Clean-up, copies, ``verify``, ``check`` and ``report`` all ask it (:mod:`statetool.connectors.named_files`).

    Attributes
    ----------
    keeps_state_files
        Whether the files are in Flink's directory of checkpoints. Copies of the snapshot then need copies of them, so their state is of
        ``JavaSerializer``, in which other paths can be written (:mod:`statetool.connectors.state_handles`).
    """

    keeps_state_files: ClassVar[bool] = False

    def files(self, state: SinkState) -> Iterator[NamedFile]:
        """Yield the files that the decoded state of an operator names."""
        yield from ()


class SinkConnector(NamesFiles, ABC):
    """A Sink V2 sink: writer states and committables have versioned serializers.

    Attributes
    ----------
    writer_versions, committable_versions, global_versions
        Versions whose layout is known. Global committables are those of a sink before Sink V2, of a version that its committables also have.
    """

    name: ClassVar[str]
    #: Whether the sink drops each commit, also of later checkpoints, whose checkpoint id is not higher than those of its table.
    commits_by_checkpoint_id: ClassVar[bool] = False
    writer_versions: ClassVar[frozenset[int]] = frozenset()
    committable_versions: ClassVar[frozenset[int]] = frozenset()
    global_versions: ClassVar[frozenset[int]] = frozenset()

    def read_writer(self, version: int, c: Cursor) -> Any:
        """Read the state of a writer in a known version."""
        raise UnsupportedError(f"the state of writers of {self.name}")

    def summarize_writer(self, writer: Any) -> Any:
        """Return the fields of a writer's state for the list of sinks."""
        return writer

    def buffered(self, writer: Any) -> tuple[PendingCommit, ...]:
        """Describe the records that a writer has accepted and not sent, and its open files. The caller adds the subtask, and missing names."""
        return ()

    def without_buffered(self, version: int, data: bytes, dropped: frozenset[int]) -> bytes:
        """Return the bytes of a writer's state without some of what :meth:`buffered` describes, by index."""
        raise UnsupportedError(f"nothing in the writers of {self.name} can be dropped")

    def read_committable(self, version: int, c: Cursor) -> Any:
        """Read a committable in a known version."""
        raise UnsupportedError(f"committables of {self.name}")

    def pending(self, committable: Any) -> PendingCommit:
        """Describe a committable. The caller adds checkpoint, subtask and status."""
        raise UnsupportedError(f"committables of {self.name}")

    def check_forgettable(self) -> None:
        """Raise an error if committables would be committed even when left out of the state.

        Raises
        ------
        UnsupportedError
            Another component commits them.
        """

    def split_global(self, version: int, c: Cursor) -> tuple[bytes, ...]:
        """Return the committables of a global committable in a known version, each as its own bytes."""
        raise UnsupportedError(f"global committables of {self.name}")

    def join_global(self, version: int, committables: Sequence[bytes]) -> bytes:
        """Return the bytes of a global committable."""
        raise UnsupportedError(f"global committables of {self.name}")

    def tools(self, pending: PendingCommit) -> Sequence[str]:
        """Return command lines of the external system's tools for a pending item."""
        return ()


class StateSink(NamesFiles, ABC):
    """A sink that stores pending items in list states.

    Attributes
    ----------
    file_states
        Names of the states that name files.
    """

    name: ClassVar[str]
    file_states: ClassVar[tuple[str, ...]] = ()
    #: See :class:`SinkConnector`.
    commits_by_checkpoint_id: ClassVar[bool] = False
    classes: ClassVar[tuple[ClassDeclaration, ...]] = ()

    @abstractmethod
    def recognises(self, operator: OperatorBytes) -> bool:
        """Return True if an operator's state is that of this sink."""

    @abstractmethod
    def read(self, operator: OperatorBytes) -> SinkState:
        """Read the state of an operator."""

    def without(self, operator: OperatorBytes, names: frozenset[str]) -> Mapping[str, Mapping[int, tuple[bytes, ...]]]:
        """Return the elements, by state and subtask, of the states without the pending items of these names."""
        raise UnsupportedError(f"nothing of {self.name} can be forgotten", hint="statetool can only show them")

    def tools(self, pending: PendingCommit) -> Sequence[str]:
        """Return command lines of the external system's tools for a pending item."""
        return ()


C = TypeVar("C", bound="SourceConnector | SinkConnector | StateSink")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised(Generic[C]):
    """An operator of a source or sink. ``connector`` is ``None`` if no connector is recognised, or several are (``candidates``)."""

    operator: OperatorInventory
    connector: C | None = None
    candidates: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Uid, or id if no uid is known."""
        return self.operator.label

    @property
    def name(self) -> str:
        """The connector's name, ``unknown`` if none is recognised."""
        return "unknown" if self.connector is None else self.connector.name


def try_read(connector: SplitConnector, given: SourceBytes) -> SourceState | None:
    """Return the state that a connector reads from the bytes of a source, ``None`` if the bytes are not in its format."""
    try:
        return connector.read(given)
    except (StatetoolError, UnicodeError):
        return None
