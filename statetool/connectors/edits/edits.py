"""Changes to the positions of a source, made in its readers and in its enumerator so that both agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from statetool.connectors.checks import SourceCheck, check_source
from statetool.connectors.connector import SplitConnector, StateSource
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import Enumerator, HeldSplit, KnownSplit, SourceState
from statetool.connectors.sources import READER_STATE, Source, coordinator_bytes
from statetool.connectors.wire import write_versioned
from statetool.errors import OptionError, UnknownNameError, UnsupportedError, suggest
from statetool.io.output import Output
from statetool.types.operators import OperatorRecord

Elements: TypeAlias = Mapping[str, Mapping[int, tuple[bytes, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEdit:
    """Changes to make in the splits of a source.

    Attributes
    ----------
    positions
        Next offset by split: its id, or ``topic:partition``.
    everywhere
        Next offset of all splits.
    removed, added
        Splits to remove, and splits to add with their next offsets.
    upgrade
        Whether enumerator state may be written in a newer version if its current version does not store positions.
    """

    positions: Mapping[str, str] = field(default_factory=dict)
    everywhere: str | None = None
    removed: frozenset[str] = frozenset()
    added: Mapping[str, str] = field(default_factory=dict)
    upgrade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitChange(OperatorRecord):
    """One change of one split: in the reader of a subtask, or in the enumerator."""

    split_id: str
    place: Literal["reader", "enumerator"]
    subtask: int | None
    change: Literal["set", "removed", "added", "converted"]
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedSource:
    """A changed source.

    Attributes
    ----------
    changes
        The changes, split by split.
    elements, coordinator
        The new bytes. ``coordinator`` is ``None`` if it does not change.
    checks
        Findings of a cross-check of the result.
    """

    changes: tuple[SplitChange, ...]
    elements: Elements
    coordinator: bytes | None
    checks: tuple[SourceCheck, ...]


def edit_source(source: Source, wanted: SourceEdit) -> EditedSource:
    """Return a source with other positions or other splits.

    Raises
    ------
    UnknownNameError
        A split does not exist.
    OptionError
        A position is not valid, a split to add already exists, or no change is requested.
    UnsupportedError
        The connector is not known or cannot write, or enumerator state does not store positions.
    """
    if source.connector is None or any(h.split is None for h in source.state.held):
        raise UnsupportedError(f"the state of source {source.label!r}: {source.note}").at(operator=source.label)
    if source.given is not None and source.given.enumerator is not None and source.state.enumerator is None:
        raise UnsupportedError(f"the state of source {source.label!r}: {source.note}").at(operator=source.label)
    return _Edit(source, wanted).run()


class _Edit:
    def __init__(self, source: Source, wanted: SourceEdit) -> None:
        assert source.connector is not None
        self.source = source
        self.wanted = wanted
        self.connector: SplitConnector | StateSource = source.connector
        self.changes: list[SplitChange] = []
        self.version = None if source.given is None else source.given.enumerator_version
        self.ids = dict(self._split_names())

    def run(self) -> EditedSource:
        self._check_names()
        enumerator = self.source.state.enumerator
        new = None if enumerator is None else self._edited_enumerator(enumerator)
        held = [h for old in self.source.state.held if (h := self._edited_held(old)) is not None]
        for name, position in self.wanted.added.items():
            split = self.connector.added(name, position, [h.split for h in held])
            held.append(self._in_reader(split, held))
            if new is not None and new.lists_assigned:
                new = replace(new, splits=(*new.splits, KnownSplit(split=split, status="assigned")))
                self._record(split, "enumerator", None, "added", None, self._position_text(split))
        if not self.changes:
            raise OptionError("nothing to change: the source already has these positions")
        return self._edited(SourceState(held=tuple(held), enumerator=new))

    def _split_names(self) -> Iterator[tuple[str, str]]:
        """Yield the names that a user may give a split, each with the split's id."""
        enumerator = self.source.state.enumerator
        splits: list[Any] = [h.split for h in self.source.state.held]
        splits += [k.split for k in (() if enumerator is None else enumerator.splits)]
        for split in splits:
            place = self.connector.place(split)
            if place.partition is not None:
                yield f"{place.source}:{place.partition}", split.split_id
            yield split.split_id, split.split_id

    def _check_names(self) -> None:
        wanted = self.wanted
        for name in (*wanted.positions, *wanted.removed):
            if name not in self.ids:
                raise UnknownNameError(f"no split {name!r}", hint=suggest(name, self.ids)).at(
                    operator=self.source.label
                )
        removed = {self.ids[n] for n in wanted.removed}
        mentions = Counter([*(self.ids[n] for n in wanted.positions), *removed])
        if twice := [split_id for split_id, n in mentions.items() if n > 1]:
            raise OptionError(f"split {twice[0]!r} is changed twice", hint="give each split one change")
        if wanted.everywhere is not None and wanted.positions:
            raise OptionError(
                "cannot combine a position for all splits with positions of single splits",
                hint="give each split one change",
            )
        self._check_settable()
        added = set()
        for name, position in wanted.added.items():
            split = self.connector.added(name, position, [h.split for h in self.source.state.held])
            if split.split_id in self.ids:
                raise OptionError(f"split {name!r} already exists", hint="set its position")
            if split.split_id in added:
                raise OptionError(f"split {split.split_id!r} is added twice", hint="give each split one change")
            added.add(split.split_id)

    def _check_settable(self) -> None:
        """Refuse positions of splits neither in a reader nor unassigned: the enumerator stores only their start, which is not used."""
        enumerator = self.source.state.enumerator
        settable = {h.split.split_id for h in self.source.state.held}
        settable |= {k.split.split_id for k in (enumerator.splits if enumerator else ()) if k.status == "unassigned"}
        for name in self.wanted.positions:
            if self.ids[name] not in settable:
                raise OptionError(
                    f"split {name!r} is assigned but in no reader: it has no position to set",
                    hint="remove it, and add it again in a second copy",
                ).at(operator=self.source.label)

    def _new_position(self, split: Any) -> str | None:
        """Return the new position of a split, ``None`` if it does not change."""
        for name, position in self.wanted.positions.items():
            if self.ids[name] == split.split_id:
                return position
        return self.wanted.everywhere

    def _is_removed(self, split: Any) -> bool:
        return any(self.ids[name] == split.split_id for name in self.wanted.removed)

    def _edited_held(self, held: HeldSplit) -> HeldSplit | None:
        before = self._position_text(held.split)
        if self._is_removed(held.split):
            self._record(held.split, "reader", held.subtask, "removed", before, None)
            return None
        position = self._new_position(held.split)
        split = held.split if position is None else self.connector.at(held.split, position)
        if split == held.split:
            return held
        self._record(split, "reader", held.subtask, "set", before, self._position_text(split))
        return replace(held, split=split, data=b"")

    def _in_reader(self, split: Any, held: Iterable[HeldSplit]) -> HeldSplit:
        """Return a new split in the reader with the fewest splits."""
        loads = dict.fromkeys(range(self.source.operator.state.parallelism), 0)
        versions = {0}
        for h in held:
            loads[h.subtask] = loads.get(h.subtask, 0) + 1
            versions.add(h.version)
        if isinstance(self.connector, SplitConnector):
            versions = (versions & self.connector.split_versions) or set(self.connector.split_versions)
        subtask = min(loads, key=lambda n: (loads[n], n))
        self._record(split, "reader", subtask, "added", None, self._position_text(split))
        return HeldSplit(subtask=subtask, version=max(versions), data=b"", split=split)

    def _edited_enumerator(self, old: Enumerator) -> Enumerator:
        assert isinstance(self.connector, SplitConnector)
        assert self.version is not None
        waiting = [k for k in old.splits if k.status == "unassigned" and self._new_position(k.split) is not None]
        stores_positions = self.connector.keeps_positions(self.version, old)
        if any(not self._is_removed(k.split) for k in waiting) and not stores_positions:
            if not self.wanted.upgrade:
                raise UnsupportedError(
                    f"this enumerator state (version {self.version}) does not store positions of unassigned splits"
                    f" ({', '.join(k.split.split_id for k in waiting[:5])}): the job's settings say where they begin",
                    hint="name other splits, or pass --upgrade-enumerator to write a newer version of the state",
                ).at(operator=self.source.label)
            self.version, old = self.connector.upgrade_enumerator(self.version, old)
        return replace(old, splits=tuple(k for split in old.splits if (k := self._edited_known(split)) is not None))

    def _edited_known(self, known: KnownSplit) -> KnownSplit | None:
        before = self._position_text(known.split)
        if self._is_removed(known.split):
            self._record(known.split, "enumerator", known.subtask, "removed", before, None)
            return None
        position = self._new_position(known.split)
        # The enumerator stores the start of an assigned split. Its reader stores the current position.
        if position is None or known.status != "unassigned":
            return known
        split = self.connector.at(known.split, position)
        if split == known.split:
            return known
        self._record(split, "enumerator", known.subtask, "set", before, self._position_text(split))
        return replace(known, split=split)

    def _position_text(self, split: Any) -> str | None:
        place = self.connector.place(split)
        return place.position or place.marker

    def _record(
        self,
        split: Any,
        place: Literal["reader", "enumerator"],
        subtask: int | None,
        change: Literal["set", "removed", "added"],
        before: str | None,
        after: str | None,
    ) -> None:
        self.changes.append(
            SplitChange(
                operator=self.source.label,
                split_id=split.split_id,
                place=place,
                subtask=subtask,
                change=change,
                before=before,
                after=after,
            )
        )

    def _edited(self, state: SourceState) -> EditedSource:
        elements: dict[str, Mapping[int, tuple[bytes, ...]]]
        coordinator = None
        if isinstance(self.connector, StateSource):
            state = replace(state, held=tuple(_encode(self.connector, self.source, state.held)))
            elements = {self.connector.state: _by_subtask(state.held, lambda h: h.data)}
        else:
            given = self.source.given
            assert given is not None
            unchanged = state.enumerator == self.source.state.enumerator and self.version == given.enumerator_version
            to_write = replace(given, enumerator_version=self.version)
            written = self.connector.write(to_write, replace(state, enumerator=None) if unchanged else state)
            if not unchanged:
                assert written.enumerator is not None
                assert self.version is not None
                coordinator = coordinator_bytes(self.version, written.enumerator)
            state = self.connector.read(written)
            elements = {READER_STATE: _by_subtask(state.held, _reader_element)}
        checks = check_source(replace(self.source, state=state))
        return EditedSource(
            changes=tuple(self.changes), elements=elements, coordinator=coordinator, checks=tuple(checks)
        )


def _encode(connector: StateSource, source: Source, held: Iterable[HeldSplit]) -> Iterator[HeldSplit]:
    data = OperatorBytes(source.operator, connector.classes)
    for h in held:
        raw = h.data or data.encoded(connector.state, connector.element_of(h.split))
        yield replace(h, data=raw)


def _reader_element(held: HeldSplit) -> bytes:
    out = Output()
    out.bytes4(write_versioned(held.version, held.data))
    return bytes(out)


def _by_subtask(held: Iterable[HeldSplit], element: Callable[[HeldSplit], bytes]) -> dict[int, tuple[bytes, ...]]:
    by_subtask: dict[int, list[bytes]] = defaultdict(list)
    for h in held:
        by_subtask[h.subtask].append(element(h))
    return {subtask: tuple(elements) for subtask, elements in by_subtask.items()}
