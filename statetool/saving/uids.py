"""Change the uids (and so the ids) of operators, in the metadata only, also to those of the operators that match them in another job.

Follows ``StreamGraphHasherV2`` (a uid's id is its murmur3 hash) and ``StateAssignmentOperation`` (state is found by id).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.formats.metadata import OperatorState, SnapshotMetadata
from statetool.formats.operator_id import operator_id_for_uid
from statetool.snapshot.uids import find_exact, operator_labels
from statetool.snapshot.uids import find_operator as find_label

if TYPE_CHECKING:
    from statetool.snapshot.inventory import Inventory

#: The match that compares the operators of both jobs.
AUTO: Final = "auto"
_OPERATOR_ID: Final = re.compile(r"[0-9a-fA-F]{32}")
#: Metadata version that stores uids and names as text.
_NAMED_VERSION: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UidChange:
    """One operator before and after; uids are empty if the metadata does not store them."""

    old_uid: str
    new_uid: str
    old_id: str
    new_id: str


def uid_changes(old: SnapshotMetadata, new: SnapshotMetadata) -> list[UidChange]:
    """Return the operators whose id or uid differs between two metadata files with the same operators in the same order."""
    return [
        UidChange(old_uid=a.uid, new_uid=b.uid, old_id=a.operator_id, new_id=b.operator_id)
        for a, b in zip(old.operators, new.operators, strict=True)
        if (a.uid, a.operator_id) != (b.uid, b.operator_id)
    ]


def find_operator(operators: Iterable[OperatorState], name: str, *, exact: bool = False) -> OperatorState:
    """Return an operator by uid, operator id, unique name or unique id prefix (:func:`statetool.snapshot.uids.find_operator`).

    Parameters
    ----------
    exact
        Accept only a uid or an operator id: other names may be uids of new operators.

    Raises
    ------
    UnknownNameError
        The operator does not exist. The error suggests similar ones.
    OptionError
        Several operators have the name or the prefix.
    """
    by_id = {o.operator_id: o for o in operators}
    labels = operator_labels(by_id.values())
    label = find_exact(labels, name) if exact else find_label(labels, name)
    if label is None:
        raise UnknownNameError(f"no operator {name!r}", hint=suggest(name, labels))
    return by_id[label.operator_id]


def change_uids(metadata: SnapshotMetadata, changes: Mapping[str, str]) -> SnapshotMetadata:
    """Change uids simultaneously, so that swaps and chains of names work.

    Parameters
    ----------
    changes
        New uid by old uid, name or id prefix. Either may be the 32 hex digits of an operator id (what ``setUidHash`` takes): the new
        operator then has that id and no stored uid.

    Raises
    ------
    UnknownNameError
        No operator has the old name.
    OptionError
        A new uid is empty, one operator is given under two old names, or two operators would get the same id.
    """
    wanted: dict[str, tuple[str, str]] = {}
    for old, new in changes.items():
        operator = find_operator(metadata.operators, old)
        if not new:
            raise OptionError(f"the new uid of {old!r} is empty")
        if operator.operator_id in wanted:
            raise OptionError(f"{old!r} and {wanted[operator.operator_id][0]!r} are the same operator")
        if _rename_operator(operator, new, metadata.version) == operator:
            raise OptionError(f"{old!r} has the uid or id {new!r} already", hint="name only operators that change")
        wanted[operator.operator_id] = (old, new)
    operators = tuple(
        _rename_operator(o, wanted[o.operator_id][1], metadata.version) if o.operator_id in wanted else o
        for o in metadata.operators
    )
    owner: dict[str, OperatorState] = {}
    for before, after in zip(metadata.operators, operators, strict=True):
        other = owner.setdefault(after.operator_id, before)
        if other is not before:
            raise OptionError(
                f"{_label(other)} and {_label(before)} would both become {_label(after)} (id {after.operator_id})",
                hint="change the uid of that operator in the same call, or drop it",
            )
    return replace(metadata, operators=operators)


def id_and_uid(name: str) -> tuple[str, str]:
    """Return the operator id and the uid of a new name; 32 hex digits are an id without a uid."""
    return (name.lower(), "") if _OPERATOR_ID.fullmatch(name) else (operator_id_for_uid(name), name)


def _rename_operator(operator: OperatorState, new: str, version: int) -> OperatorState:
    operator_id, uid = id_and_uid(new)
    return replace(operator, operator_id=operator_id, uid=uid if version >= _NAMED_VERSION else "")


def _label(operator: OperatorState) -> str:
    return operator.uid or operator.operator_id


def with_ids_of(old: Inventory, new: Inventory | None, match: str | Mapping[str, str] | None) -> Inventory:
    """Return a snapshot as the copy in which operators have the ids of the new job; as it is without a match, or if no id differs.

    Parameters
    ----------
    match
        ``"auto"``, the file of ``statetool match``, or new uids (or ids) by old ones. ``None`` for no match.

    Raises
    ------
    OptionError
        An operator that has state is ambiguous, the file is that of other jobs, or ``"auto"`` is given without the new job.
    UnknownNameError
        An operator does not exist.
    """
    changes = {} if match is None else changes_of_match(old, new, match)
    return old.with_ids(change_uids(old.metadata, changes), changes.values()) if changes else old


def changes_of_match(old: Inventory, new: Inventory | None, match: str | Mapping[str, str]) -> dict[str, str]:
    """Return the new uid, or the new id, by old id or name; parameters and errors as for :func:`with_ids_of`."""
    if not isinstance(match, str):
        return dict(match)
    from statetool.io.json_text import read_json
    from statetool.snapshot.matching import Matching, match_operators
    from statetool.snapshot.operator_facts import snapshot_facts

    if match == AUTO:
        if new is None:
            raise OptionError(
                "--match auto needs a snapshot of the new job",
                hint="give one (B, or --to), or the file of statetool match A B --write FILE: --match FILE",
            )
        return match_operators(snapshot_facts(old), snapshot_facts(new), {}).changes
    try:
        matching = Matching.parse(read_json(match))
        known = [{label.operator_id: label for label in i.labels} for i in (old, new) if i is not None]
        matching.check_fits(known[0], known[1] if new is not None else None)
        return matching.changes
    except OptionError as error:
        raise error.at(file=match) from None
