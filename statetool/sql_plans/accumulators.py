"""Names for the fields of accumulators, from the aggregates of a plan's node.

The fields of an accumulator row are, in this order: the buffers of each aggregate (one or two, :data:`_BUFFERS`), a ``COUNT(*)`` that
the planner adds if rows are retracted or windows overlap and the query has none, and a data view for each set of distinct
arguments. User-defined functions, and built-in functions that are not declared by expressions, have a single field.

Follows ``AggregateUtil.transformToStreamAggregateInfoList`` and ``DeclarativeAggregateFunction``, Flink 1.13 to 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from statetool.serializers.sql.rowdata import RowDataSerializer

#: Buffers of functions with several, by name and whether they retract; all others have one.
_BUFFERS: Final[Mapping[tuple[str, bool], tuple[str, ...]]] = {
    ("AVG", False): ("sum", "count"),
    ("AVG", True): ("sum", "count"),
    ("SUM", True): ("sum", "count"),
    ("SINGLE_VALUE", False): ("value", "count"),
    ("SINGLE_VALUE", True): ("value", "count"),
    ("LISTAGG", False): ("delimiter", "list"),
}
#: Expression-based functions whose buffers depend on information that the plan lacks; accumulators with one of them get no names.
_UNKNOWN_BUFFERS: Final = frozenset({"DENSE_RANK", "NTILE", "PERCENT_RANK", "RANK"})
#: Names of built-in buffers, which a user's function may have too.
_BUILTIN_BUFFERS: Final = frozenset({"avg_count", "avg_sum", "count", "max", "min", "sum", "sum_count"})
_VIEW: Final = "org.apache.flink.table.api.dataview.MapView"


def accumulator_names(
    calls: Sequence[Mapping[str, Any]], retracts: Sequence[bool], inputs: Sequence[str], row: RowDataSerializer
) -> list[str] | None:
    """Return names for the fields of an accumulator row, ``None`` if the aggregates do not determine them.

    Parameters
    ----------
    calls
        The aggregate calls of the plan.
    retracts
        For each call, whether rows are retracted from it.
    inputs
        Names of the input's fields; arguments are indexes of these.
    row
        The accumulator, whose number of fields and views must match.
    """
    if any(_builtin(call) in _UNKNOWN_BUFFERS for call in calls):
        return None
    for counted in (False, True):
        names = list(_names(calls, retracts, inputs, counted=counted))
        if _fits(names, calls, row):
            return unique_names(names)
    return None


def view_aggregates(
    calls: Sequence[Mapping[str, Any]], retracts: Sequence[bool], inputs: Sequence[str]
) -> dict[str, str]:
    """Return the aggregates by the prefixes of the names of states that hold their views. Parameters as for :func:`accumulator_names`.

    Views of an aggregate are called after its position, those of distinct arguments after the position of these.
    """
    views = {
        f"agg{i}$": ", ".join(_buffer_names(call, retract, inputs))
        for i, (call, retract) in enumerate(zip(calls, retracts, strict=True))
    }
    distinct = _distinct_arguments(calls)
    return views | {
        f"distinctAcc_{i}": f"distinct({_arguments(key, inputs)}){_filters_of_view(calls, key, inputs)}"
        for i, key in enumerate(distinct)
    }


def _filters_of_view(calls: Sequence[Mapping[str, Any]], arguments: tuple[int, ...], inputs: Sequence[str]) -> str:
    """Return the filters of the calls that share a view of distinct arguments, empty without filters.

    If one of them has a filter, the view has a bit or a number per call, in their order (``DistinctAggCodeGen``).
    """
    filters = [c.get("filterArg", -1) for c in calls if c.get("distinct") and tuple(c["argList"]) == arguments]
    if all(f < 0 for f in filters):
        return ""
    return f" for {', '.join('all rows' if f < 0 else f'filter {inputs[f]}' for f in filters)}"


def _names(
    calls: Sequence[Mapping[str, Any]], retracts: Sequence[bool], inputs: Sequence[str], *, counted: bool
) -> Iterator[str]:
    for call, retract in zip(calls, retracts, strict=True):
        yield from _buffer_names(call, retract, inputs)
    if counted:
        yield "count(*)"
    yield from (f"distinct({_arguments(key, inputs)})" for key in _distinct_arguments(calls))


def _buffer_names(call: Mapping[str, Any], retract: bool, inputs: Sequence[str]) -> Iterator[str]:
    builtin = _builtin(call)
    name = builtin or str(
        call.get("systemName") or _last(call.get("catalogName")) or _last(call.get("class")) or "aggregate"
    )
    arguments = _arguments(tuple(call["argList"]), inputs) if call["argList"] or builtin != "COUNT" else "*"
    argument_text = ("distinct " if call.get("distinct") else "") + arguments
    condition = f" filter {inputs[call['filterArg']]}" if call.get("filterArg", -1) >= 0 else ""
    buffers = _BUFFERS.get((builtin, retract))
    if buffers is not None:
        for buffer in buffers:
            is_function = buffer.upper() == builtin
            yield f"{buffer if is_function else f'{builtin.lower()}_{buffer}'}({argument_text}){condition}"
    else:
        # SUM0 is the planner's SUM that returns 0 for an empty input.
        shown = "sum" if builtin == "SUM0" else builtin.lower() or name
        if not builtin and name.lower() in _BUILTIN_BUFFERS:
            shown = f"`{name}`"
        yield f"{shown}({argument_text}){condition}"


def _builtin(call: Mapping[str, Any]) -> str:
    """Return the name of a built-in function (``$SUM$1``, ``$$SUM0$1``), empty for user-defined ones."""
    internal = call.get("internalName")
    return "" if internal is None else str(internal).strip("$").partition("$")[0].upper()


def _last(identifier: Any) -> str | None:
    return identifier.rpartition(".")[2].strip("`") if isinstance(identifier, str) else None


def _arguments(arguments: Sequence[int], inputs: Sequence[str]) -> str:
    # Indexes after the input's fields are constants of OVER aggregates.
    return ", ".join(inputs[i] if i < len(inputs) else f"constant {i - len(inputs)}" for i in arguments)


def _distinct_arguments(calls: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
    """Return the distinct argument lists of calls with DISTINCT."""
    return list(dict.fromkeys(tuple(c["argList"]) for c in calls if c.get("distinct") and not c.get("approximate")))


def _fits(names: Sequence[str], calls: Sequence[Mapping[str, Any]], row: RowDataSerializer) -> bool:
    if len(names) != len(row.sql):
        return False
    views = sum(1 for t in row.sql if t.root == "RAW" and t.class_name == _VIEW)
    return views == len(_distinct_arguments(calls))


def unique_names(names: Sequence[str]) -> list[str]:
    """Number repeated names; Spark does not distinguish names that differ only in case."""
    unique: list[str] = []
    taken: set[str] = set()
    for name in names:
        number, candidate = 1, name
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name} {number}"
        taken.add(candidate.lower())
        unique.append(candidate)
    return unique
