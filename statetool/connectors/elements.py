"""Bytes of an operator that connectors read: elements of list states, and coordinator state. They are small and read into memory whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from statetool.errors import FormatError, StatetoolError, UnknownSerializerError
from statetool.formats.compression import stream_chunks
from statetool.formats.operator_state import OperatorHeader, read_operator_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import OpenStream
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.snapshot.elements import ElementStream
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import ClassDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element of a list state, uncompressed."""

    subtask: int
    data: bytes


class OperatorBytes:
    """Operator state and coordinator state of an operator.

    Parameters
    ----------
    operator
        The operator.
    classes
        Classes of connectors that snapshots do not describe.
    """

    def __init__(self, operator: OperatorInventory, classes: tuple[ClassDeclaration, ...] = ()) -> None:
        self.operator = operator
        self._types = replace(operator.types, classes=(*operator.types.classes, *classes))

    @property
    def label(self) -> str:
        """Name of the operator in errors."""
        return self.operator.label

    @cached_property
    def states(self) -> Mapping[str, StateMetaInfo]:
        """List and union states by name."""
        states: dict[str, StateMetaInfo] = {}
        for _, header in self._streams:
            for meta in header.states:
                if meta.kind != "broadcast":
                    states.setdefault(meta.name, meta)
        return states

    @cached_property
    def coordinator(self) -> bytes | None:
        """The state of the coordinator, ``None`` if absent."""
        stream = self.operator.resolve(self.operator.state.coordinator)
        if stream is None:
            return None
        with stream.open() as f:
            return bytes(f.read_at(0, stream.size_bytes))

    def elements(self, state: str) -> Iterator[Element]:
        """Yield the elements of a state. Errors name file and state."""
        for elements, header in self._streams:
            try:
                with elements.stream.open() as f:
                    for start, end in elements.ranges(state):
                        data = _read_uncompressed(f, start, end, compressed=header.compressed)
                        yield Element(subtask=elements.subtask, data=data)
            except StatetoolError as error:
                raise error.at(file=elements.stream.file, operator=self.label, state=state) from None

    def values(self, state: str) -> Iterator[tuple[int, Any]]:
        """Yield subtask and value of each element of a state, decoded by its serializer.

        Raises
        ------
        FormatError
            The serializer does not read an element to its last byte.
        """
        serializer = self.states[state].value
        for element in self.elements(state):
            c = Cursor(element.data)
            try:
                value = serializer.decode(c)
                c.expect_end("an element")
            except StatetoolError as error:
                raise error.at(operator=self.label, state=state) from None
            yield element.subtask, value

    def encoded(self, state: str, value: Any) -> bytes:
        """Return the bytes of an element, encoded by the serializer of the state."""
        out = Output()
        self.states[state].value.encode(out, value)
        return bytes(out)

    @cached_property
    def _streams(self) -> tuple[tuple[ElementStream, OperatorHeader], ...]:
        return tuple((elements, self._header(elements)) for elements in self.operator.elements.streams)

    def _header(self, elements: ElementStream) -> OperatorHeader:
        header = self.operator.elements.header(elements)
        if not header.size_bytes or self._types == self.operator.types:
            return header
        try:
            with elements.stream.open() as f:
                raw = f.read_at(0, header.size_bytes)
            return read_operator_header(Cursor(raw, base=elements.stream.start), self._types, end=len(raw))
        except StatetoolError as error:
            raise error.at(file=elements.stream.file, operator=self.label) from None


@contextmanager
def reading_as(connector: str, operator: OperatorBytes) -> Iterator[None]:
    """Raise an error if values lack the parts that a connector stores: the state is damaged, or is a user's state of the same name.

    Raises
    ------
    FormatError
        Names the expected connector.
    """
    try:
        yield
    except StatetoolError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"operator state does not have the layout of {connector}: {error}",
            hint="read the tables of its states to see the elements",
        ).at(operator=operator.label) from error


def _read_uncompressed(f: OpenStream, start: int, end: int, *, compressed: bool) -> bytes:
    if not compressed:
        return bytes(f.read_at(start, end - start))
    chunks = stream_chunks(lambda at, n: f.read_at(start + at, n), end - start, base=f.stream.start + start)
    return b"".join(bytes(chunk.data) for chunk in chunks)


def unknown_state(operator: OperatorInventory) -> UnknownSerializerError | None:
    """Return the error for operator state of an unknown type: whether its operator is a source or a sink cannot be determined."""
    for name, meta in operator.operator_states.items():
        for serializer in meta.serializers.values():
            if isinstance(serializer, OpaqueSerializer) and serializer.proxy_bytes is not None:
                return UnknownSerializerError(serializer.reason, hint=serializer.missing).at(
                    operator=operator.label, state=name
                )
    return None
