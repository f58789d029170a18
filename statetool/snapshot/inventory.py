"""The inventory of a snapshot: operators, their states and types, and the locations of their bytes.

Only ``_metadata`` and the first bytes of streams are read. Neither numpy, Arrow nor Spark is needed.
"""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from statetool.errors import FormatError, OptionError, UnknownNameError
from statetool.formats.metadata import SnapshotMetadata, write_metadata
from statetool.formats.metadata.handles import StreamHandle, file_streams
from statetool.formats.metadata.model import handles_of
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.stream import Stream
from statetool.io import files
from statetool.snapshot.locate import Locator
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.parsed import ParsedMetadata, open_parsed
from statetool.snapshot.uids import find_operator, unique_digits
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.types.operators import OperatorLabel

if TYPE_CHECKING:
    from statetool.serializers.core.base import Serializer
    from statetool.sql_plans.compiled_plan import CompiledPlan

#: Version of the metadata that first has names and uids of operators.
_NAMES_SINCE: Final = 5


class Inventory:
    """All operators of a snapshot.

    Parameters
    ----------
    names
        Names by operator id, for operators whose name the metadata does not store.
    possible_names
        Names that other operators may have, by operator id.
    parsed
        The metadata, which is read by default.
    """

    def __init__(
        self,
        path: str,
        *,
        rebase: tuple[tuple[str, str], ...] = (),
        uids: tuple[str, ...] = (),
        key_types: Mapping[str, Serializer] | None = None,
        types: TypeContext | None = None,
        columns_from_plan: str | None = None,
        names: Mapping[str, str] | None = None,
        possible_names: Mapping[str, tuple[str, ...]] | None = None,
        parsed: ParsedMetadata | None = None,
    ) -> None:
        self.path = path
        self.rebase = rebase
        parsed = open_parsed(path) if parsed is None else parsed
        self.metadata_file = parsed.file
        self.metadata: SnapshotMetadata = parsed.metadata
        self.published: Final = parsed.published
        #: Whether operators have the ids of another job (:meth:`with_ids`).
        self.has_other_ids = False
        self.given_uids = uids
        self._names = names or {}
        self.possible_names = possible_names or {}
        self.columns_from_plan = None if columns_from_plan is None else files.canonical(columns_from_plan)
        self._plan: CompiledPlan | None = None
        if columns_from_plan is not None:
            from statetool.sql_plans.compiled_plan import CompiledPlan  # needs the serializers

            self._plan = CompiledPlan.read(columns_from_plan)
        self.types = types or NOTHING_DECLARED
        if self.types.kryo is None:
            # Flink 2.0 introduced both names and uids in the metadata, and Kryo 5.
            self.types = replace(self.types, kryo=5 if self.metadata.version >= 5 else 2)
        self._locator = Locator(self.metadata_file, rebase, published=self.published)
        labels = self._labels(uids)
        if self._plan is not None:
            self._plan.operator_names = tuple(label.name for label in labels)
        self.key_types: dict[str, Serializer] = {}
        try:
            for name, key in (key_types or {}).items():
                self.key_types[find_operator(labels, name)] = key
        except (UnknownNameError, OptionError) as error:
            error.message = f"key_types: {error.message}"
            raise error.at(file=self.metadata_file) from None
        self.operators = self._operators(labels)

    def _labels(self, uids: tuple[str, ...]) -> list[OperatorLabel]:
        """Return the label of each operator of the metadata, with the uids that the user gave."""
        by_id = {operator_id_for_uid(uid): uid for uid in uids}
        ids = [o.operator_id for o in self.metadata.operators]
        if unknown := [uid for hex_id, uid in by_id.items() if hex_id not in ids]:
            raise UnknownNameError(
                f"no operator has the uid {', '.join(map(repr, unknown))}",
                hint="a uid must be spelt exactly as in the job",
            ).at(file=self.metadata_file)
        digits = unique_digits(ids)
        return [
            OperatorLabel(
                o.operator_id,
                o.uid or by_id.get(o.operator_id, ""),
                o.name or self._names.get(o.operator_id, ""),
                digits,
            )
            for o in self.metadata.operators
        ]

    def _operators(self, labels: Sequence[OperatorLabel]) -> dict[str, OperatorInventory]:
        declared = self._declared_names(labels)
        operators: dict[str, OperatorInventory] = {}
        for state, label in zip(self.metadata.operators, labels, strict=True):
            if label in operators:
                raise FormatError(f"two operators have the uid or id {str(label)!r}").at(file=self.metadata_file)
            types = self.types.of_operator(*declared.get(label, ()))
            key = self.key_types.get(label)
            operators[label] = OperatorInventory(state, label, self._locator, key, types, self._plan)
        return operators

    def _declared_names(self, labels: Sequence[OperatorLabel]) -> dict[str, list[str]]:
        """Return the words by which declarations of Python states (``operator.state``) refer to each operator."""
        names: dict[str, list[str]] = {}
        found = {label.former or label: label for label in labels}
        for declared in dict.fromkeys(head for state, _ in self.types.python for head in _heads(state)):
            try:
                names.setdefault(found[find_operator(found, declared)], []).append(declared)
            except UnknownNameError:  # names of states may have dots
                continue
        return names

    @cached_property
    def metadata_digest(self) -> bytes:
        """SHA-256 of the metadata, wherever the snapshot is located."""
        return hashlib.sha256(write_metadata(self.metadata)).digest()

    def resolve(self, handle: StreamHandle) -> Stream | None:
        """Return the location of a stream handle's bytes, ``None`` for a null or empty handle."""
        return self._locator.resolve(handle)

    def list_folders(self) -> None:
        """List the directories of all files in an object store at the same time, before sizes of files are needed one after another."""
        self._locator.list_folders(stream for handle in handles_of(self.metadata) for stream, _ in file_streams(handle))

    def with_uids(self, uids: Iterable[str]) -> Inventory:
        """Return the inventory with uids for operators that the snapshot knows only by id."""
        if isinstance(uids, str):
            raise OptionError("with_uids takes a list of uids, not a string")
        return self._opener(self.path)(
            uids=(*self.given_uids, *uids), columns_from_plan=self.columns_from_plan, parsed=self._parsed
        )

    @property
    def stores_names(self) -> bool:
        """Whether the metadata stores names and uids of operators: since Flink 2.0."""
        return self.metadata.version >= _NAMES_SINCE

    def with_names(self, names: Mapping[str, str], possible: Mapping[str, tuple[str, ...]] | None = None) -> Inventory:
        """Return the inventory with names, by operator id, for operators whose name the metadata does not store.

        Parameters
        ----------
        possible
            As ``possible_names`` of the class.
        """
        return self._opener(self.path)(
            columns_from_plan=self.columns_from_plan, names=names, possible_names=possible or {}, parsed=self._parsed
        )

    @property
    def _parsed(self) -> ParsedMetadata:
        return ParsedMetadata(file=self.metadata_file, metadata=self.metadata, published=self.published)

    def opener(self) -> Callable[[], Inventory]:
        """Return a picklable function that opens the snapshot in another process, without its compiled plan."""
        opener = self._opener(self.metadata_file)
        return opener if self.published and not self.has_other_ids else partial(opener, parsed=self._parsed)

    def _opener(self, path: str) -> partial[Inventory]:
        return partial(
            Inventory,
            path,
            rebase=self.rebase,
            uids=self.given_uids,
            key_types=self.key_types,
            types=self.types,
            names=self._names,
            possible_names=self.possible_names,
        )

    def at(self, path: str) -> Inventory:
        """Open another snapshot with the uids and declarations of this one."""
        return Inventory(
            path,
            uids=self.given_uids,
            key_types=self.key_types,
            types=self.types,
            columns_from_plan=self.columns_from_plan,
            names=self._names,
            possible_names=self.possible_names,
        )

    def with_uids_in(self, paths: Iterable[str | os.PathLike[str]]) -> Inventory:
        """Return the inventory with the uids that occur in jars and other files (:func:`statetool.uids_in`)."""
        unnamed, searched = [label.operator_id for label in self.labels if not label.uid], tuple(paths)
        if not unnamed or not searched:
            return self
        from statetool.snapshot.uid_search import uids_in  # opening a snapshot without a jar needs no class files

        uids = dict.fromkeys(uid for path in searched for uid in uids_in(os.fspath(path), unnamed))
        return self.with_uids(uids) if uids else self

    def with_types(self, types: TypeContext) -> Inventory:
        """Return the inventory read with other type information. Its release of Kryo stays if ``types`` names none."""
        changed = copy.copy(self)
        changed.types = types if types.kryo is not None else replace(types, kryo=self.types.kryo)
        changed.operators = changed._operators(self.labels)
        return changed

    def with_names_of(self, other: Inventory) -> Inventory:
        """Return the inventory with the uids and names that another snapshot has for the same operator ids, where this one has none."""
        others = {label.operator_id: label for label in other.labels}
        taken = {label.uid for label in self.labels}
        labels = []
        for own in self.labels:
            same = others.get(own.operator_id, own)
            is_uid = operator_id_for_uid(same.uid) == own.operator_id and same.uid not in taken
            uid = own.uid or (same.uid if is_uid else "")
            labels.append(OperatorLabel(own.operator_id, uid, own.name or same.name, len(own.short_id), own.former))
        if [(o.uid, o.name) for o in labels] == [(o.uid, o.name) for o in self.labels]:
            return self
        renamed = copy.copy(self)
        renamed.key_types = {find_operator(labels, name): key for name, key in self.key_types.items()}
        renamed.operators = renamed._operators(labels)
        return renamed

    def with_ids(self, metadata: SnapshotMetadata, uids: Iterable[str]) -> Inventory:
        """Return the inventory of a copy in which operators have other ids.

        Parameters
        ----------
        metadata
            The metadata of the copy: the same operators in the same order (:func:`statetool.saving.uids.change_uids`).
        uids
            Uids of operators of the copy.
        """
        by_id = {operator_id_for_uid(uid): uid for uid in uids}
        digits = unique_digits([o.operator_id for o in metadata.operators])
        labels = [
            own
            if own.operator_id == o.operator_id
            else OperatorLabel(o.operator_id, o.uid or by_id.get(o.operator_id, ""), own.name, digits, own)
            for o, own in zip(metadata.operators, self.labels, strict=True)
        ]
        new_labels = dict(zip(self.labels, labels, strict=True))
        new_ids = {own.operator_id: new.operator_id for own, new in new_labels.items()}
        renamed = copy.copy(self)
        renamed.__dict__.pop("metadata_digest", None)
        renamed.metadata = metadata
        renamed.has_other_ids = True
        renamed.given_uids = tuple(label.uid for label in labels if label.uid)
        renamed.key_types = {new_labels[find_operator(self.labels, name)]: key for name, key in self.key_types.items()}
        renamed._names = {new_ids.get(i, i): name for i, name in self._names.items()}
        renamed.possible_names = {new_ids.get(i, i): names for i, names in self.possible_names.items()}
        renamed.operators = renamed._operators(labels)
        return renamed

    @property
    def labels(self) -> list[OperatorLabel]:
        """The label of each operator."""
        return [operator.label for operator in self.operators.values()]

    def operator(self, name: str) -> OperatorInventory:
        """Return an operator by uid, operator id, unique name, or unique prefix of its id (at least 4 hex digits).

        Raises
        ------
        UnknownNameError
            The operator does not exist. The error suggests similar names.
        OptionError
            Several operators have the name or the prefix. The error lists them.
        """
        if name in self.operators:
            return self.operators[name]
        try:
            return self.operators[find_operator(self.labels, name)]
        except UnknownNameError as error:
            if ids := [operator_id for operator_id, names in self.possible_names.items() if name in names]:
                error.hint = f"it is one of {', '.join(ids)}: pass an id, or the uids with --uids FILE, uids=[...]"
            raise error.at(file=self.metadata_file) from None
        except OptionError as error:
            raise error.at(file=self.metadata_file) from None

    def existing_name(self, name: str) -> str:
        """Return the uid or id of the operator that :meth:`operator` finds, or ``name`` itself if there is none.

        Raises
        ------
        OptionError
            Several operators have the name or the prefix.
        """
        try:
            return self.operator(name).label
        except UnknownNameError:
            return name


def _heads(state: str) -> list[str]:
    """Return the parts of a text before each of its dots."""
    return [state[:i] for i, letter in enumerate(state) if letter == "."]
