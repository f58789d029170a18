"""Parameters of verbs that change values, or remove expired ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from statetool.api.write.verbs.base import (
    BACKEND,
    CopyVerb,
    format_parameter,
    operator_parameter,
    parameter,
    positional,
)

if TYPE_CHECKING:
    from statetool.tables.keys.text import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform(CopyVerb):
    """Write a copy in which SQL expressions change values. In Python it is :meth:`statetool.api.write.writer.SavepointWriter.transform`."""

    uid: str = operator_parameter(
        "The operator, by uid or operator id.", "Operator to change, by uid, name or operator id.", positional=True
    )
    change: Mapping[str, str] = positional(
        "",
        "New value of a state.",
        flag="--set STATE=SQL",
        example="as in --set 'balance=CAST(balance AS BIGINT)'",
    )
    where: str | None = parameter(
        "A SQL condition. Values of other keys are unchanged, so the type of the expression must hold them too.",
        "Condition for keys to change. Other keys keep their values.",
        flag="--where SQL",
        default=None,
    )
    decimals: Literal["decimal", "string"] = parameter(
        "Form of Java's big numbers, as in a read. ``decimal`` (default): each BigDecimal keeps its scale, stored in ``<name>_scale``, which"
        " increases if the new value needs more fraction digits. ``string``: text, written with exactly its digits, for numbers of more"
        " than 38 digits.",
        "Type of BigDecimal and BigInteger in SQL: decimals with 38 digits, or text.",
        default="decimal",
    )
    allow_missing: bool = parameter(
        "Accept a condition that no key fulfills. Spark does not look for such a key then.",
        "Go on if no key fulfills the condition.",
        default=False,
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValues(CopyVerb):
    """Write a copy in which values and timers of one key are changed."""

    without: ClassVar[frozenset[str]] = frozenset({"spark", "progress"})
    commands: ClassVar[tuple[str, ...]] = ("set",)
    answer: ClassVar[str] = "statetool.saving.verbs.set_values:SetRow"

    uid: str = operator_parameter("The operator.", "Operator to change, by uid, name or operator id.", positional=True)
    key: Key = positional(
        "The key as a plain value, as for :meth:`Operator.keyed_state`.",
        "The key, as JSON or a bare word.",
        flag="--key KEY",
    )
    values: Mapping[str, Any] | None = positional(
        'New values by path: ``{"account.balance": 1, "history[0].amount": 5, \'prices["EUR"]\': 1.5, "history[+]": {...}}``. Values are'
        " JSON values: structs are objects, and maps with other keys than strings are lists of pairs. ``[+]`` appends to a list. Values"
        " with a time to live keep their last access.",
        "New value of a state or of a part of it.",
        flag="--set PATH=VALUE",
        kind="texts",
        default=None,
    )
    remove: Iterable[str] = parameter(
        "Paths to remove: states of the key, elements of lists, entries of maps.",
        "State, list element or map entry to remove.",
        default=(),
        flag="--remove PATH",
    )
    add_timers: Iterable[tuple[str, int]] = parameter(
        'Timers to add: pairs of time domain and epoch milliseconds, ``("event", 1700000000000)``. If an operator has several timer'
        ' services in a domain, name it: ``("event/cleanup", ...)``.',
        "Timer to add: event=1700000000000.",
        flag="--add-timer DOMAIN=MS",
        default=(),
    )
    remove_timers: Iterable[tuple[str, int]] = parameter(
        "Timers to remove, in the same form. A timer of a window is only removed together with the state of the window, or if another one"
        " is added.",
        "Timer to remove: event/SERVICE=MS.",
        flag="--remove-timer DOMAIN=MS",
        default=(),
    )
    namespace: Any = parameter(
        "The window or other namespace of all states and timers to change: ``(start_ms, end_ms)``, or a JSON value. ``None`` for states and"
        " timers without a namespace, and for those of global windows.",
        "Window as START,END (epoch ms), or another namespace as JSON.",
        default=None,
        flag="--namespace VALUE",
    )
    new_key: bool = parameter(
        "Add state of a key, or of a window, that has none.",
        "Add state of a key, or of a window, that has none.",
        default=False,
    )
    now_ms: int | None = parameter(
        "Time of the last access of new values with a time to live, by default the current time.", default=None
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetElements(CopyVerb):
    """Write a copy in which elements of an operator state are changed, removed or added."""

    without: ClassVar[frozenset[str]] = frozenset({"spark", "progress"})
    answer: ClassVar[str] = "statetool.saving.verbs.set_elements:ElementRow"

    uid: str = operator_parameter("The operator.", "Operator to change, by uid, name or operator id.", positional=True)
    state: str = positional(
        "The list, union list or broadcast state.",
        "List, union list or broadcast state to change.",
        flag="--state STATE",
        names="state",
    )
    where: str | None = parameter(
        "A SQL condition on the elements to change or to remove, which DuckDB evaluates (extra ``sql``): the column ``value``, ``key`` of a"
        " broadcast state, and ``subtask`` of lists.",
        "Condition on value, key (broadcast) and subtask (lists).",
        default=None,
        flag="--where SQL",
    )
    change: Mapping[str, Any] | None = parameter(
        'New values of these elements by path: ``{"value.offset": 5}``. Values are JSON values, as for :func:`set_values`.',
        "New value of chosen elements, or of a part: value.offset=5.",
        default=None,
        flag="--set PATH=VALUE",
        kind="texts",
    )
    remove: bool = parameter("Remove these elements.", "Remove the chosen elements.", default=False)
    add: Iterable[Any] = parameter(
        "Elements to add, as JSON values. Those of a broadcast state are objects with ``key`` and ``value``.",
        "Element to add, as JSON.",
        default=(),
        flag="--add JSON",
        kind="texts",
    )
    subtask: int | str | None = parameter(
        'The subtask that gets added elements, or ``"all"``. By default, the one with the fewest. It is needed for a union list if each'
        " subtask has the same elements.",
        "Subtask that gets added elements, or all.  [default: the one with the fewest]",
        default=None,
        flag="--subtask N",
        kind="text",
    )
    remove_copies: bool = parameter(
        "Remove elements of a union list that equal an earlier one. They may be meant: a dry run lists them.",
        "Remove elements of a union list that equal an earlier one.",
        default=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge(CopyVerb):
    """Write a copy without expired values, overdue timers and obsolete windows."""

    without: ClassVar[frozenset[str]] = frozenset({"progress"})
    answer: ClassVar[str] = "statetool.saving.verbs.purge:PurgedRow"

    ttl_ms: Mapping[str, int] | None = positional(
        "Time to live in milliseconds by state, as the job configures it: values whose last access is at least as long ago are removed, from"
        " lists and maps too.",
        "Time to live of a state's values: 7d, 30 min.",
        flag="--ttl STATE=TIME",
        kind="texts",
        default=None,
    )
    now_ms: int | None = parameter(
        "The time of the comparison, by default the current time.",
        "Time of the comparison, in epoch ms.  [default: now]",
        flag="--now MS",
        default=None,
    )
    event_timers_before_ms: int | None = parameter(
        "Remove event-time timers before this time (epoch milliseconds). They never fire. Timers of windows stay, because their windows may"
        " never fire, or their state may never be removed; ``left_timers`` of the result counts them.",
        "Remove event-time timers before this time (epoch ms).",
        flag="--event-timers-before MS",
        default=None,
    )
    processing_timers_before_ms: int | None = parameter(
        "The same for processing-time timers.",
        "Remove processing-time timers before this time (epoch ms).",
        flag="--processing-timers-before MS",
        default=None,
    )
    windows_before_ms: int | None = parameter(
        "Remove windows that end before this time (epoch milliseconds) and have no timer at or after it: contents, trigger states, timers and"
        " entries of merged windows. They never fire, and later records of these windows start new ones. Windows without end stay.",
        "Remove windows that end, and whose timers are, before this time (epoch ms).",
        flag="--windows-before MS",
        default=None,
    )
    windows_without_timer: bool = parameter(
        "Remove windows of which no timer is left: they never fire by time, and Flink never removes them. Windows of the operator that have"
        " a timer, and windows without end, stay. Do not use it if the job allows lateness without limit: such windows need no timer.",
        "Remove windows that no timer fires or cleans up.",
        default=False,
    )
    window_size_ms: int | None = parameter(
        "Size of the windows of SQL's window aggregates, the greatest if operators differ. A snapshot does not store it. ``windows_before_ms``"
        " needs it there, because a slice may be part of several windows.",
        "Size of windows in SQL's window aggregates: 15 min.",
        flag="--window-size TIME",
        kind="text",
        default=None,
    )
    empty: bool = parameter(
        "Remove lists without elements, and maps without entries.",
        "Remove lists without elements, and maps without entries.",
        default=False,
    )
    operators: Iterable[str] = operator_parameter(
        "Uids or operator ids. By default all operators with such states or timers.",
        "Operator to purge, by uid, name or operator id.  [default: all]",
        default=(),
    )
    format: Literal["same", "canonical", "native"] = format_parameter()
    backend: Literal["rocksdb", "forst", "heap"] | None = field(default=None, metadata=BACKEND)
