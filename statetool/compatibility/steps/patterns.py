"""Patterns of complex event processing: partial matches name the part of the pattern that they wait for.

Follows ``CepOperator`` and ``NFA``, which looks up the name of each partial match when the next event of its key arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from statetool.compatibility.job_classes import strings_in_jars
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.steps.step import Result, Step, fails_later, is_unknown, per_pair
from statetool.compatibility.verdicts import Remedy
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.views import NFA

#: Names of parts of patterns that Flink adds.
_OF_FLINK: Final = ("$endState$", "$beginningState$")
_DROP: Final = Remedy(
    "Keep the names of the pattern, or leave out the keys with such partial matches (statetool keep, erase)."
)


def _irrelevant(restore: Restore) -> str:
    if any(NFA in o.listed_keyed for o in restore.old.operators.values()):
        return ""
    return "no operator matches patterns"


def pattern_names(operator: OperatorInventory) -> set[str]:
    """Return the names that partial matches of an operator have."""
    # Arrow takes long to load, and most checks do not need it.
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import scan_table

    table = next((t for t, (scope, name) in operator.state_tables.items() if (scope, name) == ("keyed", NFA)), None)
    if table is None:
        return set()
    names: set[str] = set()
    for batch in scan_table(operator, ScanRequest.of(table)).batches():
        for row in batch.to_pylist():
            names.update(_names_in(row))
    return names - set(_OF_FLINK)


def _names_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "state" and isinstance(inner, str):
                yield inner
            else:
                yield from _names_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names_in(inner)


def _names(restore: Restore, pair: Pair) -> Iterator[Result]:
    """W7: the first event of a key fails if the pattern does not have the name of its partial match any more."""
    old, new = pair.old, pair.new
    if NFA not in old.listed_keyed:
        return
    names = pattern_names(old)
    if new is not None and NFA in new.listed_keyed and not new.types.renewed:
        names -= pattern_names(new)
    if not names:
        return
    # Flink numbers the copies of a name that a pattern repeats: name:1.
    plain = {n.partition(":")[0] for n in names}
    jars = restore.new_jars
    if not jars:
        text = f"Partial matches wait for {_shown(plain)}, which the snapshot of the new job does not show. If its pattern lacks one of these names, the next event of such a key fails the job."
        yield is_unknown("W7", text, Remedy(f"Pass the jar of the new job with --jar-b. {_DROP.text}"), old)
    elif gone := plain - strings_in_jars(jars, plain):
        text = f"Partial matches wait for {_shown(gone)}, which is no text in the jar of the new job: the next event of such a key fails the job (does not exist in the NFA)."
        yield fails_later("W7", text, _DROP, old)


def _shown(names: set[str]) -> str:
    return ", ".join(sorted(names))


STEP: Final = Step(
    name="patterns",
    title="Patterns",
    follows="CepOperator, NFA",
    irrelevant=_irrelevant,
    checks=(per_pair(_names),),
)
