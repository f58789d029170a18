"""Patterns of complex event processing: partial matches name the part of the pattern that they wait for.

Follows ``CepOperator`` and ``NFA``, which looks up the name of each partial match when the next event of its key arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from statetool.compatibility.classes.job_classes import strings_in_jars
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, Step, fails_later, is_unknown, may_change, per_pair
from statetool.compatibility.verdicts import NEW, A, Remedy
from statetool.serializers.core.base import all_parts
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.views import EVENTS, NFA
from statetool.types.flink_calls import difference, pattern_calls
from statetool.types.flink_calls import pattern_names as declared_names

#: Keys of an operator whose partial matches are read.
_MOST_KEYS: Final = 20_000
#: Names of parts of patterns that Flink adds.
_OF_FLINK: Final = ("$endState$", "$beginningState$")
_DROP: Final = Remedy(
    "Keep the names of the pattern, or leave out the keys with such partial matches (statetool keep, erase)."
)


def _irrelevant(restore: Restore) -> str:
    if any(NFA in o.listed_keyed for o in restore.old.operators.values()):
        return ""
    return "no operator matches patterns"


def pattern_names(operator: OperatorInventory) -> tuple[set[str], bool]:
    """Return the names that partial matches of an operator have, and whether all of them were read."""
    # Arrow takes long to load, and most checks do not need it.
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import scan_table

    table = next((t for t, (scope, name) in operator.state_tables.items() if (scope, name) == ("keyed", NFA)), None)
    names: set[str] = set()
    count = 0
    if table is not None:
        for batch in scan_table(operator, ScanRequest.of(table)).batches():
            for row in batch.slice(0, _MOST_KEYS - count).to_pylist():
                names.update(_names_in(row))
            count += batch.num_rows
            if count > _MOST_KEYS:
                break
    # Flink numbers the copies of a name that a pattern repeats: name:1.
    return {n.partition(":")[0] for n in names - set(_OF_FLINK)}, count <= _MOST_KEYS


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
    names, is_whole = pattern_names(old)
    has_matches = new is not None and restore.has_snapshot and NFA in new.listed_keyed
    shown = pattern_names(new)[0] if new is not None and has_matches else set()
    if not is_whole:
        text = (
            f"the partial matches of {old.label.display}, of which {_MOST_KEYS:,} keys were read, have no other names"
        )
        yield Assumption(rule="W7", text=text, option="a snapshot with fewer partial matches")
    missing = names - shown
    if not missing:
        return
    if shown and not names & shown:
        text = f"Partial matches wait for {_shown(missing)}, and those of the new job for {_shown(shown)}: the next event of such a key fails the job (does not exist in the NFA)."
        yield fails_later("W7", text, _drop(old), old)
        return
    jars = () if _is_sql(old) else restore.new_jars
    in_jars = _in_jars(restore, jars, missing) if jars else set()
    if jars and (gone := missing - in_jars):
        text = f"Partial matches wait for {_shown(gone)}, which no pattern in the jar of the new job has: unless the job computes the name, the next event of such a key fails the job (does not exist in the NFA)."
        yield fails_later("W7", text, _drop(old), old)
    elif in_jars:
        # The text may be another one than a name of this pattern.
        text = f"the pattern of {old.label.display} has the names {_shown(in_jars)}, which the jar of the new job contains as texts"
        yield Assumption(rule="W7", text=text, option="a savepoint of the new job with such partial matches")
    else:
        ask = "" if _is_sql(old) else "Pass the jar of the new job with --jar-b. "
        text = f"Partial matches wait for {_shown(missing)}. If the pattern of the new job lacks one of these names, the next event of such a key fails the job."
        yield is_unknown("W7", text, Remedy(f"{ask}{_DROP.text}"), old)


def _drop(old: OperatorInventory) -> Remedy:
    text = f"{_DROP.text} If no partial match is needed, drop the operator: it then starts empty."
    return Remedy(text, ("drop", A, NEW, "--uid", str(old.label)))


def _in_jars(restore: Restore, jars: tuple[str, ...], names: set[str]) -> set[str]:
    """Return the names that patterns in the code of the new job have; if it computes names, those that are texts of the jar."""
    after = None if restore.job.classes is None else restore.job.classes.new.source
    declared = None if after is None else declared_names(after.flink_calls())
    return strings_in_jars(jars, names) if declared is None else names & declared


def _rules(restore: Restore, pair: Pair) -> Iterator[Result]:
    """W8: partial matches go on with the conditions and the order of the new pattern."""
    old, classes = pair.old, restore.job.classes
    if NFA not in old.listed_keyed or _is_sql(old):
        return
    sources = (None, None) if classes is None else (classes.old.source, classes.new.source)
    before, after = ([] if s is None else pattern_calls(s.flink_calls()) for s in sources)
    changed = difference(before, after) if before and after else ""
    if changed:
        text = f"The pattern changed ({changed}): partial matches go on with the new one."
        yield may_change("W8", text, "Let the old job end its partial matches, or leave out their keys.", old)
        return
    text = f"the order and the conditions of the pattern of {old.label.display} did not change"
    yield Assumption(
        rule="W8", text=text, option="the jars of both jobs (--jar-a, --jar-b), and compare their conditions"
    )


def _is_sql(operator: OperatorInventory) -> bool:
    """Return True for MATCH_RECOGNIZE, whose names are words of a statement and not texts of a jar."""
    _, events = operator.listed_keyed.get(EVENTS, (None, None))
    return events is not None and any(isinstance(p, RowDataSerializer) for p in all_parts(events.value))


def _shown(names: set[str]) -> str:
    return ", ".join(sorted(names))


STEP: Final = Step(
    name="patterns",
    title="Patterns",
    follows="CepOperator, NFA",
    irrelevant=_irrelevant,
    checks=(per_pair(_names), per_pair(_rules)),
)
