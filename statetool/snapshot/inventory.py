"""The inventory of a snapshot: operators, their states and types, and the locations of their bytes.

Only ``_metadata`` and the first bytes of streams are read. Neither numpy, Arrow nor Spark is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from statetool.errors import FormatError, OptionError, UnknownNameError, suggest
from statetool.formats.metadata import SnapshotMetadata, parse_metadata
from statetool.formats.metadata.handles import StreamHandle
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.stream import Stream
from statetool.io import files, small_files
from statetool.io.deletion import noticing_deletion
from statetool.snapshot.locate import Locator, find_metadata
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import NOTHING_DECLARED, TypeContext

if TYPE_CHECKING:
    from statetool.serializers.base import Serializer


class Inventory:
    """All operators of a snapshot."""

    def __init__(
        self,
        path: str,
        *,
        rebase: tuple[tuple[str, str], ...] = (),
        uids: tuple[str, ...] = (),
        key_types: Mapping[str, Serializer] | None = None,
        types: TypeContext | None = None,
    ) -> None:
        small_files.forget()
        self.path = path
        self.rebase = rebase
        # Tasks, and Spark's planning processes, may have another working directory.
        self.metadata_file = files.canonical(find_metadata(path))
        with noticing_deletion(self.metadata_file):
            raw = files.read_whole(self.metadata_file)
        self.metadata: SnapshotMetadata = parse_metadata(raw, file=self.metadata_file)
        self.given_uids = uids
        self.types = types or NOTHING_DECLARED
        if self.types.kryo is None:
            # Flink 2.0 introduced both names and uids in the metadata, and Kryo 5.
            self.types = replace(self.types, kryo=5 if self.metadata.version >= 5 else 2)
        self._locator = Locator(self.metadata_file, rebase)
        self.key_types = dict(key_types or {})
        self.operators = self._name_operators(uids)
        if unknown := self.key_types.keys() - self.operators.keys():
            raise UnknownNameError(
                f"no operator is called {', '.join(map(repr, sorted(unknown)))}, which key_types names",
                hint=suggest(min(unknown), self.operators),
            ).at(file=self.metadata_file)

    def _name_operators(self, uids: tuple[str, ...]) -> dict[str, OperatorInventory]:
        by_id = {operator_id_for_uid(uid): uid for uid in uids}
        ids = {o.operator_id for o in self.metadata.operators}
        if unknown := [uid for hex_id, uid in by_id.items() if hex_id not in ids]:
            raise UnknownNameError(
                f"no operator has the uid {', '.join(map(repr, unknown))}",
                hint="a uid must be spelt exactly as in the job",
            ).at(file=self.metadata_file)
        operators = {}
        for state in self.metadata.operators:
            uid = state.uid or by_id.get(state.operator_id, "")
            key = self.key_types.get(uid or state.operator_id)
            inventory = OperatorInventory(
                state, uid, self._locator, key, self.types.of_operator(uid, state.operator_id)
            )
            if inventory.label in operators:
                raise FormatError(f"two operators are called {inventory.label!r}").at(file=self.metadata_file)
            operators[inventory.label] = inventory
        return operators

    def resolve(self, handle: StreamHandle) -> Stream | None:
        """Return the location of a stream handle's bytes, ``None`` for a null or empty handle."""
        return self._locator.resolve(handle)

    def with_uids(self, uids: Iterable[str]) -> Inventory:
        """Return the inventory with uids for operators that the snapshot knows only by id."""
        if isinstance(uids, str):
            raise OptionError("with_uids takes a list of uids, not one string")
        return Inventory(
            self.path,
            rebase=self.rebase,
            uids=(*self.given_uids, *uids),
            key_types=self.key_types,
            types=self.types,
        )

    def operator(self, name: str) -> OperatorInventory:
        """Return an operator by uid or by its 32 hex digits.

        Raises
        ------
        UnknownNameError
            The operator does not exist. The error suggests similar names.
        """
        if name in self.operators:
            return self.operators[name]
        for operator in self.operators.values():
            if operator.state.operator_id in (name.lower(), operator_id_for_uid(name)):
                return operator
        raise UnknownNameError(f"no operator {name!r}", hint=suggest(name, self.operators)).at(file=self.metadata_file)
