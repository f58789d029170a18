"""Names for the fields of accumulators, from the aggregates of a plan's node.

The fields of an accumulator row are, in this order: the buffers of each aggregate (one or two, :data:`_BUFFERS`), one ``COUNT(*)`` that the planner
adds where rows are retracted or windows overlap and nobody asked for it, and a data view for each set of distinct arguments.
Functions of users, and those of Flink that are not declared by expressions, have a single field.

Follows ``AggregateUtil.transformToStreamAggregateInfoList`` and ``DeclarativeAggregateFunction``, Flink 1.13 to 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from statetool.serializers.rowdata import RowDataSerializer

#: Buffers of the functions that have several, by name and whether they retract; all others have one.
_BUFFERS: Final[Mapping[tuple[str, bool], tuple[str, ...]]] = {
    ("AVG", False): ("sum", "count"),
    ("AVG", True): ("sum", "count"),
    ("SUM", True): ("sum", "count"),
    ("SINGLE_VALUE", False): ("value", "count"),
    ("SINGLE_VALUE", True): ("value", "count"),
    ("LISTAGG", False): ("delimiter", "list"),
}
#: Functions of expressions whose buffers depend on more than the plan tells at a glance; no accumulator with one of them gets names.
_UNTOLD: Final = frozenset({"DENSE_RANK", "NTILE", "PERCENT_RANK", "RANK"})
_VIEW: Final = "org.apache.flink.table.api.dataview.MapView"


def accumulator_names(
    calls: Sequence[Mapping[str, Any]], retracts: Sequence[bool], inputs: Sequence[str], row: RowDataSerializer
) -> list[str] | None:
    """Return names for an accumulator row, ``None`` where the aggregates do not tell its fields.

    Parameters
    ----------
    calls
        The aggregate calls of the plan.
    retracts
        Of each call, whether rows are retracted from it.
    inputs
        Names of the fields that arguments are numbers of.
    row
        The accumulator, whose types must fit.
    """
    if any(_builtin(call) in _UNTOLD for call in calls):
        return None
    for counted in (False, True):
        names = list(_names(calls, retracts, inputs, counted=counted))
        if _fits(names, calls, row):
            return _unique(names)
    return None


def _names(
    calls: Sequence[Mapping[str, Any]], retracts: Sequence[bool], inputs: Sequence[str], *, counted: bool
) -> Iterator[str]:
    for call, retract in zip(calls, retracts, strict=True):
        yield from _of_call(call, retract, inputs)
    if counted:
        yield "count(*)"
    yield from (f"distinct({_arguments(key, inputs)})" for key in _distinct(calls))


def _of_call(call: Mapping[str, Any], retract: bool, inputs: Sequence[str]) -> Iterator[str]:
    builtin = _builtin(call)
    name = builtin or str(call.get("systemName") or _last(call.get("catalogName")) or "aggregate")
    arguments = _arguments(tuple(call["argList"]), inputs) if call["argList"] or builtin != "COUNT" else "*"
    what = ("distinct " if call.get("distinct") else "") + arguments
    condition = f" filter {inputs[call['filterArg']]}" if call.get("filterArg", -1) >= 0 else ""
    several = _BUFFERS.get((builtin, retract))
    if several is not None:
        for buffer in several:
            same = buffer.upper() == builtin
            yield f"{buffer if same else f'{builtin.lower()}_{buffer}'}({what}){condition}"
    else:
        # SUM0 is the planner's SUM that is 0 where nothing was summed.
        shown = "sum" if builtin == "SUM0" else builtin.lower() or name
        yield f"{shown}({what}){condition}"


def _builtin(call: Mapping[str, Any]) -> str:
    """Return the name of a function of Flink's own (``$SUM$1``, ``$$SUM0$1``), empty for those of users."""
    internal = call.get("internalName")
    return "" if internal is None else str(internal).strip("$").partition("$")[0].upper()


def _last(identifier: Any) -> str | None:
    return identifier.rpartition(".")[2].strip("`") if isinstance(identifier, str) else None


def _arguments(arguments: Sequence[int], inputs: Sequence[str]) -> str:
    # Behind the fields of the input, OVER aggregates have constants.
    return ", ".join(inputs[i] if i < len(inputs) else f"constant {i - len(inputs)}" for i in arguments)


def _distinct(calls: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
    """Return the sets of arguments that distinct calls have, each once."""
    return list(dict.fromkeys(tuple(c["argList"]) for c in calls if c.get("distinct") and not c.get("approximate")))


def _fits(names: Sequence[str], calls: Sequence[Mapping[str, Any]], row: RowDataSerializer) -> bool:
    if len(names) != len(row.sql):
        return False
    views = sum(1 for t in row.sql if t.root == "RAW" and t.class_name == _VIEW)
    return views == len(_distinct(calls))


def _unique(names: Sequence[str]) -> list[str]:
    """Number names that come twice; Spark does not tell names apart that differ in case only."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        number, other = 1, name
        while other.lower() in taken:
            number += 1
            other = f"{name} {number}"
        taken.add(other.lower())
        found.append(other)
    return found
