"""Find operators by uid, operator id, name or id prefix.

A uid takes precedence over an operator id, an operator id over a name, and a name over a prefix of an operator id. Names and prefixes must be
unique in the snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from statetool.errors import OptionError, UnknownNameError, nearest
from statetool.formats.metadata import OperatorState
from statetool.formats.operator_id import operator_id_for_uid
from statetool.types.operators import ID_DIGITS, OperatorLabel

_ID_PREFIX: Final = re.compile(r"[0-9a-fA-F]{4,31}")
#: Number of operators that an error lists.
_MOST_LISTED: Final = 10


def operator_labels(operators: Iterable[OperatorState]) -> list[OperatorLabel]:
    """Return the labels of operators, as far as the metadata stores uids and names."""
    known = list(operators)
    digits = unique_digits([o.operator_id for o in known])
    return [OperatorLabel(o.operator_id, o.uid, o.name, digits) for o in known]


def unique_digits(operator_ids: Sequence[str]) -> int:
    """Return how many leading digits distinguish operator ids, at least :data:`~statetool.types.operators.ID_DIGITS`."""
    digits = ID_DIGITS
    while len({i[:digits] for i in operator_ids}) < len(set(operator_ids)):
        digits += 1
    return digits


def find_exact(labels: Iterable[OperatorLabel], text: str) -> OperatorLabel | None:
    """Return the operator with a uid (stored, given, or hashing to its id) or an operator id of 32 hex digits, ``None`` if absent."""
    known = list(labels)
    for label in known:
        if label == text:
            return label
    by_id = {label.operator_id: label for label in known}
    return by_id.get(operator_id_for_uid(text)) or by_id.get(text.lower())


def find_operator(labels: Iterable[OperatorLabel], text: str) -> OperatorLabel:
    """Return an operator by uid, operator id, unique name, or unique prefix of its id (at least 4 hex digits).

    Operators with the id of another job are also found as in their own, unless the text is a name in the other job.

    Raises
    ------
    UnknownNameError
        The operator does not exist. The error suggests similar ones.
    OptionError
        Several operators have the name or the prefix. The error lists them.
    """
    known = list(labels)
    exact = find_exact(known, text)
    if exact is not None:
        return exact
    matching = find_all(known, text)
    if len(matching) > 1:
        what = "are called" if any(o.name == text for o in matching) else "have an id that begins with"
        raise OptionError(
            f"{len(matching)} operators {what} {text!r}",
            hint=f"pass a uid or more digits of an id: {_listed(matching)}",
        )
    if matching:
        return matching[0]
    formers = {o.former: o for o in known if o.former is not None}
    if formers:
        return formers[find_operator(formers, text)]
    raise UnknownNameError(f"no operator {text!r}", hint=_similar(text, known))


def find_all(labels: Iterable[OperatorLabel], text: str) -> list[OperatorLabel]:
    """Return all operators with a name (alone, or as shown) or, if no operator has it, with an id that begins with these hex digits."""
    known = list(labels)
    return [o for o in known if o.name and text in (o.name, o.display)] or [o for o in known if _has_prefix(o, text)]


def _has_prefix(label: OperatorLabel, text: str) -> bool:
    return _ID_PREFIX.fullmatch(text) is not None and label.operator_id.startswith(text.lower())


def _similar(text: str, labels: Sequence[OperatorLabel]) -> str:
    by_word = {word: o.display for o in labels for word in (o.name, o) if word}
    near = dict.fromkeys(by_word[word] for word in nearest(text, by_word))
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"operators: {_listed(labels)}" if labels else "the snapshot has no operators"


def _listed(labels: Sequence[OperatorLabel]) -> str:
    return ", ".join(o.display for o in labels[:_MOST_LISTED]) + (", ..." if len(labels) > _MOST_LISTED else "")
