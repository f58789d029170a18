"""Sequences of numbers: ``NumberSequenceSource``, and ``DataGeneratorSource``, which stores the same state.

Split, version 1 (``NumberSequenceSource.NumberSequenceSplit``, ``IteratorSourceSplit``): utf id, i8 next number, i8 last number.
Enumerator, version 1: i4 count, unassigned splits one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, Split, SplitPosition
from statetool.errors import OptionError
from statetool.io.cursor import Cursor
from statetool.io.output import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberSplit:
    """A range of numbers. ``start`` is the next number, ``end`` the last."""

    split_id: str
    start: int
    end: int


class NumberSequence(SplitConnector):
    """A source of a sequence of numbers."""

    name: ClassVar[str] = "number-sequence-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({1})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({1})

    def place(self, split: NumberSplit) -> SplitPosition:
        return SplitPosition(position=str(split.start), stop=str(split.end), finished=split.start > split.end)

    def at(self, split: NumberSplit, position: str) -> NumberSplit:
        return _check_not_past_end(replace(split, start=_number(position)))

    def added(self, split_id: str, position: str, others: Sequence[Split]) -> NumberSplit:
        start, dots, end = position.partition("..")
        if not dots:
            raise OptionError(f"{position!r} is not a range of numbers", hint="pass START..END, as in 100..199")
        return _check_not_past_end(NumberSplit(split_id=split_id, start=_number(start), end=_number(end)))

    def read_split(self, version: int, c: Cursor) -> NumberSplit:
        return NumberSplit(split_id=c.utf(), start=c.i8(), end=c.i8())

    def write_split(self, version: int, split: NumberSplit) -> bytes:
        out = Output()
        out.utf(split.split_id)
        out.i8(split.start)
        out.i8(split.end)
        return bytes(out)

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        count = c.count("splits", at_least=18)
        return Enumerator(
            splits=tuple(KnownSplit(split=self.read_split(1, c), status="unassigned") for _ in range(count))
        )

    def write_enumerator(self, version: int, enumerator: Enumerator) -> bytes:
        out = Output()
        out.i4(len(enumerator.splits))
        for each in enumerator.splits:
            out += self.write_split(1, each.split)
        return bytes(out)


def _check_not_past_end(split: NumberSplit) -> NumberSplit:
    """Refuse a split that is past its end: Flink does not restore such a split."""
    if split.start > split.end:
        raise OptionError(
            f"{split.start} is past the end {split.end} of split {split.split_id!r}", hint="remove the split"
        )
    return split


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{text!r} is not a number") from None
