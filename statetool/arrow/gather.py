"""Sorted records as the streams of subtasks; runs in tasks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from statetool.arrow.records import records_of
from statetool.errors import StatetoolError
from statetool.formats.metadata.handles import MODES, KeyGroupsHandle, OperatorStreamHandle
from statetool.write.publish import StagedFile, Staging
from statetool.write.recipe import StreamRecipe
from statetool.write.streams import (
    DuplicateEntryError,
    KeyedStreamWriter,
    OperatorStreamWriter,
    Records,
    StreamOutput,
    WrittenStream,
    joined_elements,
    keyed_handle,
    operator_handle,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskStream:
    """The stream of one subtask: offsets of its key groups, or of the elements of each operator state."""

    subtask: int
    stream: WrittenStream
    offsets: tuple[int, ...] = ()
    element_offsets: tuple[tuple[int, ...], ...] = ()

    @property
    def files(self) -> tuple[StagedFile, ...]:
        """The staged file, if there is one."""
        return () if self.stream.file is None else (self.stream.file,)

    def keyed_handle(self, recipe: StreamRecipe) -> KeyGroupsHandle:
        """Return the handle of keyed state."""
        return keyed_handle(recipe.key_groups(self.subtask), self.offsets, self.stream)

    def operator_handle(self, recipe: StreamRecipe) -> OperatorStreamHandle:
        """Return the handle of operator state."""
        states = recipe.operator_header.states
        modes = tuple(MODES.index(m.options["OPERATOR_STATE_DISTRIBUTION_MODE"]) for m in states)
        return operator_handle(tuple(m.name for m in states), modes, self.element_offsets, self.stream)


def write_streams(
    recipes: Sequence[tuple[int, StreamRecipe]], staging: Staging, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[int, SubtaskStream]]:
    """Write records, sorted by :data:`statetool.arrow.records.SORTED_BY`, as the streams of their subtasks.

    Parameters
    ----------
    recipes
        Each with the number in the column ``subtask`` that stands for its first subtask, ascending.

    Yields
    ------
    index, stream
        Index of the recipe, and a stream of it.

    Raises
    ------
    EncodeError
        A key comes twice; names it.
    """
    firsts = [first for first, _ in recipes]
    for slot, parts in groupby(_by_subtask(batches), key=lambda part: part[0]):
        index = bisect_right(firsts, slot) - 1
        first, recipe = recipes[index]
        yield index, write_subtask(recipe, staging, slot - first, (records_of(batch) for _, batch in parts))


def _by_subtask(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        subtasks = np.asarray(batch.column(0), dtype=np.int64)
        edges = np.concatenate([[0], np.flatnonzero(np.diff(subtasks)) + 1, [len(subtasks)]])
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if a < b:
                yield int(subtasks[a]), batch.slice(a, b - a)


def write_subtask(recipe: StreamRecipe, staging: Staging, subtask: int, records: Iterable[Records]) -> SubtaskStream:
    """Write the records of one subtask as its stream; with none, the stream is the header."""
    try:
        with StreamOutput(staging, "keyed" if recipe.keyed else "operator", inline_bytes=recipe.inline_bytes) as out:
            if recipe.keyed:
                keyed = KeyedStreamWriter(
                    out, recipe.header, recipe.key_groups(subtask), len(recipe.keyed_header.states)
                )
                for some in joined_elements(records, recipe.joined) if recipe.joined else records:
                    keyed.add(some)
                offsets = keyed.finish()
            else:
                metas = recipe.operator_header.states
                broadcast = frozenset(i for i, m in enumerate(metas) if m.kind == "broadcast") - recipe.carried_whole
                elements = OperatorStreamWriter(out, recipe.header, len(metas), broadcast)
                for some in records:
                    elements.add(some)
                element_offsets = elements.finish()
    except DuplicateEntryError as error:
        raise recipe.duplicate(error.state, error.key) from None
    except StatetoolError as error:
        raise error.at(operator=recipe.operator) from error.__cause__
    if recipe.keyed:
        return SubtaskStream(subtask=subtask, stream=out.written, offsets=offsets)
    return SubtaskStream(subtask=subtask, stream=out.written, element_offsets=element_offsets)
