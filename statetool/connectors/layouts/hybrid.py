"""Several sources one after another (``org.apache.flink.connector.base.source.hybrid``).

Split, version 0 (``HybridSourceSplitSerializer``): i4 index of the source, utf id, i4 version of the split inside, i4 length, its bytes.
Enumerator, version 0: i4 index of the current source, i4 version of its state, i4 length, its bytes. The kind of the source at
an index is not stored: it is recognised from the bytes of all splits and the enumerator of that index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from statetool.connectors import registry
from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, HeldSplit, KnownSplit, SourceBytes, SourceState, Split, SplitPosition
from statetool.connectors.wire import read_versioned
from statetool.errors import UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output

CURRENT: Final = "current_source_index"
_WRAPPED: Final = "wrapped"
_VERSION: Final = "wrapped_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridSplit:
    """A split of the source at an index. ``wrapped`` is bytes if that source is not known.

    ``wrapped_version`` is ``None`` for splits of the enumerator, which stores their version in its state.
    """

    source_index: int
    split_id: str
    wrapped_version: int | None
    wrapped: Any
    connector: str | None = None


class HybridSource(SplitConnector):
    """Flink's ``HybridSource``: several sources one after another."""

    name: ClassVar[str] = "hybrid-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({0})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0})

    def place(self, split: HybridSplit) -> SplitPosition:
        inner = self._inner(split)
        return SplitPosition() if inner is None else inner.place(split.wrapped)

    def at(self, split: HybridSplit, position: str) -> HybridSplit:
        inner = self._inner(split)
        if inner is None:
            raise UnsupportedError(f"the source at index {split.source_index} is not known")
        return replace(split, wrapped=inner.at(split.wrapped, position))

    def added(self, split_id: str, position: str, others: Sequence[Split]) -> HybridSplit:
        raise UnsupportedError("splits of a hybrid source cannot be added", hint="let the enumerator discover them")

    def read_split(self, version: int, c: Cursor) -> HybridSplit:
        index, split_id = c.i4(), c.utf()
        if index < 0 or not split_id:
            raise c.fail(f"source {index}, split {split_id!r}")
        inner_version, inner = read_versioned(c, "the split inside")
        return HybridSplit(
            source_index=index, split_id=split_id, wrapped_version=inner_version, wrapped=inner.take(inner.left)
        )

    def write_split(self, version: int, split: HybridSplit) -> bytes:
        assert split.wrapped_version is not None, "splits of readers are written here, not those of the enumerator"
        out = Output()
        out.i4(split.source_index)
        out.utf(split.split_id)
        out.i4(split.wrapped_version)
        inner = self._inner(split)
        out.bytes4(split.wrapped if inner is None else inner.write_split(split.wrapped_version, split.wrapped))
        return bytes(out)

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        index = c.i4()
        inner_version, inner = read_versioned(c, "the enumerator inside")
        return Enumerator(facts={CURRENT: index, _VERSION: inner_version, _WRAPPED: inner.take(inner.left)})

    def read(self, given: SourceBytes) -> SourceState:
        state = super().read(given)
        enumerator = state.enumerator
        current = -1 if enumerator is None else enumerator.facts[CURRENT]
        recognised: dict[int, tuple[SplitConnector, SourceState]] = {}
        for index in {h.split.source_index for h in state.held} | ({current} - {-1}):
            bytes_of = self._bytes_of(state, index)
            candidates = registry.recognise(bytes_of)
            if len(candidates) == 1:
                recognised[index] = candidates[0]
        held = list(state.held)
        for index, (inner, inner_state) in recognised.items():
            splits = iter(inner_state.held)
            for i, h in enumerate(state.held):
                if h.split.source_index == index:
                    wrapped = next(splits).split
                    if wrapped is not None:
                        held[i] = replace(h, split=replace(h.split, wrapped=wrapped, connector=inner.name))
        if enumerator is not None and current in recognised and recognised[current][1].enumerator is not None:
            enumerator = self._with_inner(enumerator, *recognised[current])
        return replace(state, held=tuple(held), enumerator=enumerator, backlog=self._backlog(current, held))

    def _backlog(self, current: int, held: Sequence[HeldSplit]) -> bool | None:
        """Return True if sources follow: one follows the first, none follows an unbounded one. The number of sources is not stored."""
        if current == 0:
            return True
        endless = any(
            h.split.source_index == current and h.split.connector and self.place(h.split).stop is None for h in held
        )
        return False if endless else None

    def phase(self, state: SourceState) -> str:
        current = "" if state.enumerator is None else state.enumerator.facts[CURRENT]
        return f"it reads its source {current}, {'and others follow' if state.backlog else 'which has no end'}"

    def write_enumerator(self, version: int, enumerator: Enumerator) -> bytes:
        wrapped = enumerator.facts[_WRAPPED]
        if not isinstance(wrapped, bytes):
            inner, inner_enumerator = self._unwrap(enumerator)
            wrapped = inner.write_enumerator(enumerator.facts[_VERSION], inner_enumerator)
        out = Output()
        out.i4(enumerator.facts[CURRENT])
        out.i4(enumerator.facts[_VERSION])
        out.bytes4(wrapped)
        return bytes(out)

    def keeps_positions(self, version: int, enumerator: Enumerator) -> bool:
        # An unknown inner enumerator has no splits here either.
        if isinstance(enumerator.facts[_WRAPPED], bytes):
            return True
        inner, inner_enumerator = self._unwrap(enumerator)
        return inner.keeps_positions(enumerator.facts[_VERSION], inner_enumerator)

    def upgrade_enumerator(self, version: int, enumerator: Enumerator) -> tuple[int, Enumerator]:
        inner, inner_enumerator = self._unwrap(enumerator)
        inner_version, new = inner.upgrade_enumerator(enumerator.facts[_VERSION], inner_enumerator)
        splits = zip(enumerator.splits, new.splits, strict=True)
        return version, replace(
            enumerator,
            splits=tuple(replace(s, split=replace(s.split, wrapped=k.split)) for s, k in splits),
            facts={
                **enumerator.facts,
                _VERSION: inner_version,
                _WRAPPED: {"connector": inner.name, "facts": new.facts},
            },
        )

    @staticmethod
    def _unwrap(enumerator: Enumerator) -> tuple[SplitConnector, Enumerator]:
        """Return the connector of the inner enumerator, and that enumerator."""
        wrapped = enumerator.facts[_WRAPPED]
        splits = tuple(replace(s, split=s.split.wrapped) for s in enumerator.splits)
        inner = registry.split_connector(wrapped["connector"])
        return inner, Enumerator(splits=splits, lists_assigned=enumerator.lists_assigned, facts=wrapped["facts"])

    @staticmethod
    def _bytes_of(state: SourceState, index: int) -> SourceBytes:
        held = [h for h in state.held if h.split.source_index == index]
        facts = {} if state.enumerator is None else state.enumerator.facts
        current = facts.get(CURRENT) == index
        return SourceBytes(
            held=tuple(
                HeldSplit(subtask=h.subtask, version=h.split.wrapped_version, data=h.split.wrapped) for h in held
            ),
            enumerator_version=facts[_VERSION] if current else None,
            enumerator=facts[_WRAPPED] if current else None,
        )

    @staticmethod
    def _with_inner(enumerator: Enumerator, inner: SplitConnector, state: SourceState) -> Enumerator:
        """Return the enumerator with the splits and facts of the inner one."""
        assert state.enumerator is not None
        index, version = enumerator.facts[CURRENT], enumerator.facts[_VERSION]
        splits = tuple(
            KnownSplit(
                split=HybridSplit(
                    source_index=index,
                    split_id=s.split.split_id,
                    wrapped_version=None,
                    wrapped=s.split,
                    connector=inner.name,
                ),
                status=s.status,
                subtask=s.subtask,
            )
            for s in state.enumerator.splits
        )
        wrapped = {"connector": inner.name, "facts": state.enumerator.facts}
        facts = {CURRENT: index, _VERSION: version, _WRAPPED: wrapped}
        return Enumerator(splits=splits, lists_assigned=state.enumerator.lists_assigned, facts=facts)

    @staticmethod
    def _inner(split: HybridSplit) -> SplitConnector | None:
        return None if split.connector is None else registry.split_connector(split.connector)
