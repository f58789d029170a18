"""Calls of Flink's API in the code of a job, and the states that they declare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

_SHOWN: Final = 3
#: An argument that is no constant, or the beginning of one that is a field of the job.
COMPUTED: Final = "?"
#: Begins the text of a lambda, before the hash of its code.
LAMBDA: Final = "lambda"
#: Stands in the text of a method reference, before the name of the method and the hash of its code.
_REFERENCE: Final = "::"
#: Stands between that and the types of the lambda.
OF_TYPES: Final = ":"
_WINDOWS: Final = "org.apache.flink.streaming.api.windowing."
_WINDOWED: Final = ("WindowedStream", "AllWindowedStream")
#: Methods of windowed streams that do not decide the types of contents.
_WITHOUT_TYPES: Final = ("trigger", "allowedLateness", "sideOutputLateData")
_COUNTED: Final = ("countWindow", "countWindowAll")
_BEGINS: Final = ("window", "windowAll", *_COUNTED)
_OTHER_WINDOWS: Final = ("GlobalWindows",)
_ASSIGNERS: Final = f"{_WINDOWS}assigners."
#: Kinds of the states of contents (``WindowOperatorBuilder``), by the method that takes the function of a window.
CONTENT_KINDS: Final = {
    "process": "list", "apply": "list", "aggregate": "aggregating",
    **dict.fromkeys(("reduce", "sum", "min", "max", "minBy", "maxBy"), "reducing"),
}  # fmt: skip
#: Methods that set something of an operator, and return it; the last one sets its type.
SETTERS: Final = (
    "name",
    "setDescription",
    "setParallelism",
    "setMaxParallelism",
    "slotSharingGroup",
    "disableChaining",
    "startNewChain",
    "returns",
)
_STREAMS: Final = "org.apache.flink.streaming.api.datastream."
_ENVIRONMENT: Final = "org.apache.flink.streaming.api.environment."
_MAIN: Final = ".main"
_TTL: Final = "StateTtlConfig"
#: Beginnings of the names of methods that create streams.
_FIRST: Final = ("from", "add", "read", "socket", "create")
_UIDS: Final = ("uid", "setUid", "setUidHash")
#: Packages of Flink's types.
_TYPES: Final = ("org.apache.flink.api.common.typeinfo.", "org.apache.flink.api.java.typeutils.")
_PATTERNS: Final = "org.apache.flink.cep."
#: Methods that begin a part of a pattern, whose name is their first argument.
_PARTS: Final = ("begin", "next", "followedBy", "followedByAny", "notNext", "notFollowedBy")
_SCALA_TYPES: Final = "org.apache.flink.api.scala.typeutils."
#: States of Flink's own operators that no descriptor of a job declares: keyed aggregations, interval joins, asynchronous functions.
GROUPED: Final = ("_op_state",)
JOIN_BUFFERS: Final = ("LEFT_BUFFER", "RIGHT_BUFFER")
ASYNC_ELEMENTS: Final = ("_async_wait_operator_state_",)
_AGGREGATES: Final = ("sum", "min", "max", "minBy", "maxBy", "reduce")
_BOUNDS: Final = ("between", "lowerBoundExclusive", "upperBoundExclusive", "inEventTime", "inProcessingTime")
_OF_WINDOWS: Final = (*_BEGINS, "trigger", "evictor")
_CONNECTORS: Final = (
    "org.apache.flink.connector.",
    "org.apache.flink.streaming.connectors.",
    "org.apache.flink.streaming.api.functions.sink.",
    "org.apache.flink.streaming.api.functions.source.",
)
#: Methods of streams that do not change the type of the records.
TYPE_KEEPING: Final = frozenset({
    *_BEGINS, *_UIDS, *SETTERS[:-1], *_AGGREGATES, *_BOUNDS, "keyBy", "filter", "print", "printToErr", "sinkTo", "addSink", "union",
    "assignTimestampsAndWatermarks", "rebalance", "rescale", "shuffle", "forward", "global", "setBufferTimeout", "getExecutionEnvironment",
    "getTransformation", "allowedLateness",
})  # fmt: skip
#: Methods of streams of which no argument decides what state an operator has.
_WITHOUT_CHOICE: Final = frozenset({
    *SETTERS, *_BOUNDS, "execute", "executeAsync", "getConfig", "getExecutionEnvironment", "enableCheckpointing", "getCheckpointConfig",
    "configure", "setStateBackend", "getTransformation", "filter", "print", "printToErr", "sinkTo", "addSink", "fromSource", "addSource",
    "fromSequence", "assignTimestampsAndWatermarks", "rebalance", "shuffle", "forward", "global", "setBufferTimeout", "union",
}) - {"returns", "setMaxParallelism"}  # fmt: skip
_TAKES_CONNECTOR: Final = ("fromSource", "addSource", "sinkTo", "addSink")
#: Classes whose methods say where a source starts, and methods that take such a place.
_STARTS: Final = ("OffsetsInitializer", "StartupOptions", "StartCursor", "ScanStartupMode")
_SETS_START: Final = ("setStart", "setStarting", "startFrom", "startingOffsets", "startupOptions", "setInitialPosition")
#: Sources with the splits of another one.
_SEQUENCES: Final = dict.fromkeys(("fromSequence", "DataGeneratorSource"), "NumberSequenceSource")
_BASIC_TYPE: Final = ("org.apache.flink.api.common.typeinfo.BasicTypeInfo", "getInfoFor")
_UID_REFERENCES: Final = tuple(f"::{name}" for name in _UIDS)
_DESCRIPTORS: Final = {
    "ValueStateDescriptor": "value", "ListStateDescriptor": "list", "MapStateDescriptor": "map",
    "ReducingStateDescriptor": "reducing", "AggregatingStateDescriptor": "aggregating",
}  # fmt: skip
#: Methods that take a descriptor, and the mode of operator state that they create; ``keyed`` for states of keys.
_ACCESSORS: Final = {
    "getState": "keyed", "getMapState": "keyed", "getReducingState": "keyed", "getAggregatingState": "keyed", "getPartitionedState": "keyed",
    "getUnionListState": "union", "getBroadcastState": "broadcast",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FlinkCall:
    """A call of a method or constructor (``<init>``) of Flink, or of one of the job that gets types.

    Attributes
    ----------
    arguments
        Texts of the constants between this call and the one before it, :data:`COMPUTED` for anything else.
    place
        The method of the job that has the call.
    branches
        Whether the code branches between this call of Flink and the one before it.
    parameters
        The number of parameters of a method of Flink: which one of those with the same name is called, also if the arguments are computed.
    use
        Why a call of the job's own code matters: it gets types, streams or states, creates a key selector, stores a state in a field, returns a
        type or stores it in a field, or builds streams.
        Empty for calls of Flink.
    """

    owner: str
    name: str
    arguments: tuple[str, ...]
    place: str
    branches: bool = False
    parameters: int = 0
    use: Literal["", "types", "streams", "states", "keys", "fields", "builds"] = ""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes of objects that are created for the call, without their packages."""
        return tuple(a for a in self.arguments if a.replace("$", "_").isidentifier() and a != LAMBDA)

    @property
    def constants(self) -> tuple[str, ...]:
        """The numbers among the arguments."""
        return tuple(a for a in self.arguments if a.lstrip("-").isdecimal())

    def without_code(self) -> FlinkCall:
        """Return the call without the hashes of the code of its lambdas and methods."""
        return replace(self, arguments=tuple(map(_without_code, self.arguments)))

    def __str__(self) -> str:
        return self._text(self.arguments)

    @property
    def shown(self) -> str:
        """The call for people, without arguments that are no constants."""
        shown = (a.partition(OF_TYPES)[0] if a.startswith(LAMBDA) else a for a in self.arguments if a != COMPUTED)
        return self._text(a.removeprefix(COMPUTED) for a in shown)

    def _text(self, arguments: Iterable[str]) -> str:
        simple = self.owner.rpartition(".")[2]
        text = ", ".join(arguments)
        return f"new {simple}({text})" if self.name == "<init>" else f"{simple}.{self.name}({text})"


@dataclass(frozen=True, slots=True)
class DeclaredState:
    """A state descriptor in the code of a job.

    Attributes
    ----------
    name
        ``None`` if the code computes it.
    mode
        ``keyed``, ``list``, ``union`` or ``broadcast``; empty if the code does not show it.
    types
        The other arguments of the descriptor.
    has_ttl
        Whether the next call switches on a time to live.
    """

    name: str | None
    kind: str
    mode: str
    types: tuple[str, ...]
    has_ttl: bool
    place: str

    @property
    def form(self) -> tuple[str, str, tuple[str, ...], bool]:
        """What decides whether Flink restores the state."""
        return self.kind, self.mode, self.types, self.has_ttl

    @property
    def is_computed(self) -> bool:
        """Whether the code computes a type."""
        return not self.types or any(COMPUTED in t for t in self.types)


def _without_code(argument: str) -> str:
    if argument.startswith(LAMBDA):
        return LAMBDA
    return argument.partition(" ")[0] if _REFERENCE in argument and not argument.startswith('"') else argument


def declared_states(calls: Iterable[FlinkCall]) -> Iterator[DeclaredState]:
    """Yield the states that calls declare."""
    ordered = list(calls)
    for at, call in enumerate(ordered):
        kind = _DESCRIPTORS.get(call.owner.rpartition(".")[2])
        if kind is None or call.name != "<init>":
            continue
        name = call.arguments[0] if call.arguments else COMPUTED
        after = [c for c in ordered[at + 1 :] if c.place == call.place]
        taken = next((c for c in after if c.name in _ACCESSORS or c.name == "getListState"), None)
        in_between = after[: after.index(taken)] if taken is not None else after
        is_own = not any(c.name == "<init>" and c.owner.rpartition(".")[2] in _DESCRIPTORS for c in in_between)
        mode = _mode(taken) if taken is not None and is_own else ""
        ttl = next((c for c in after if c.name == "enableTimeToLive"), None)
        yield DeclaredState(
            name=name[1:-1] if name.startswith('"') else None,
            kind=kind,
            mode=mode,
            types=call.arguments[1:],
            has_ttl=ttl is not None and is_own and ttl in in_between,
            place=call.place,
        )


def _mode(taken: FlinkCall) -> str:
    if taken.name != "getListState":
        return _ACCESSORS[taken.name]
    owner = taken.owner.rpartition(".")[2]
    return (
        "list" if owner == "OperatorStateStore" else "keyed" if owner in ("RuntimeContext", "KeyedStateStore") else ""
    )


def key_calls(calls: Iterable[FlinkCall]) -> list[FlinkCall]:
    """Return the calls that select keys, and those that create a selector of the job."""
    return [c for c in calls if c.name == "keyBy" or c.use == "keys"]


def timer_calls(calls: Iterable[FlinkCall]) -> list[FlinkCall]:
    """Return the calls that register timers."""
    return [c for c in calls if c.owner.endswith("TimerService") and c.name.startswith("register")]


def window_calls(calls: Iterable[FlinkCall]) -> list[FlinkCall]:
    """Return the calls that declare windows: their assigners, triggers, evictors and functions, without the code of lambdas."""
    return [
        c.without_code()
        for c in calls
        if (c.owner.startswith(_WINDOWS) and not c.owner.startswith(f"{_WINDOWS}windows."))
        or c.owner.rpartition(".")[2] in _WINDOWED
        or c.name in _BEGINS
    ]


def content_calls(calls: Iterable[FlinkCall]) -> Counter[tuple[str, ...]]:
    """Return the calls that decide the types of windows and of their contents: evictors and functions with their classes, global windows."""
    found = Counter[tuple[str, ...]]()
    for call in window_calls(calls):
        simple = call.owner.rpartition(".")[2]
        is_function = simple in _WINDOWED and call.name not in _WITHOUT_TYPES
        if call.name in _COUNTED:
            found[(simple, call.name, str(call.parameters))] += 1
        elif is_function or simple.startswith(_OTHER_WINDOWS) or call.name == "windowAll":
            found[(simple, call.name, *call.classes)] += 1
    return found


@dataclass(frozen=True, slots=True)
class WindowForm:
    """A window operator as code builds it. What is ``None`` or empty, the code does not show.

    Attributes
    ----------
    kind
        Kind of the state of its contents, if it has no evictor.
    function
        The class of the function that decides the type of the contents, without its package.
    evicts
        Whether it has an evictor.
    is_global
        Whether it has global windows.
    is_all
        Whether its stream has no keys.
    types
        The types that are given explicitly.
    """

    kind: str
    function: str
    evicts: bool | None
    is_global: bool | None
    is_all: bool
    types: tuple[str, ...] = ()


def windows_of_uids(calls: Iterable[FlinkCall]) -> dict[str, WindowForm]:
    """Return the window operators to which code gives a constant uid."""
    ordered = list(calls)
    evicts_anywhere = any(c.name == "evictor" for c in ordered)
    found: dict[str, set[WindowForm]] = {}
    chain: list[FlinkCall] = []
    for call in ordered:
        if chain and chain[-1].place != call.place:
            chain = []
        chain.append(call)
        if call.name == "uid":
            uid = call.arguments[-1] if call.arguments else COMPUTED
            form = _window_form(chain[:-1], evicts_anywhere=evicts_anywhere)
            if _branches(chain):
                form = None
            if uid.startswith('"') and form is not None:
                found.setdefault(uid[1:-1], set()).add(form)
            chain = []
    return {uid: forms.pop() for uid, forms in found.items() if len(forms) == 1}


def _branches(chain: Sequence[FlinkCall]) -> bool:
    """Return True if code decides at run time what stands between the windows of an operator and its uid."""
    begin = max((at for at, c in enumerate(chain) if c.name in _BEGINS), default=-1)
    return any(c.branches for c in chain[begin + 1 :] if c.name == "uid" or c.owner.startswith((_STREAMS, _WINDOWS)))


def _window_form(chain: Sequence[FlinkCall], *, evicts_anywhere: bool) -> WindowForm | None:
    """Return the window operator that calls end with, ``None`` if they end with another operator."""
    calls = [c for c in chain if c.owner.startswith((_STREAMS, _WINDOWS))]
    while calls and calls[-1].name in SETTERS:
        calls.pop()
    if not calls or calls[-1].owner.rpartition(".")[2] not in _WINDOWED or calls[-1].name not in CONTENT_KINDS:
        return None
    *before, last = calls
    names = {c.name for c in before}
    counted = next((c for c in before if c.name in _COUNTED), None)
    is_whole = "window" in names or "windowAll" in names
    evicts = True if "evictor" in names else False if counted is None and (is_whole or not evicts_anywhere) else None
    if counted is not None and not evicts:
        evicts = counted.parameters > 1  # A slide of windows that count is an evictor.
    assigner = next((c.owner.rpartition(".")[2] for c in reversed(before) if c.owner.startswith(_ASSIGNERS)), "")
    is_global = True if counted is not None else assigner.startswith(_OTHER_WINDOWS) if assigner else None
    classes = last.classes
    # Types that are given explicitly come after the functions.
    is_plain = bool(classes) and last.arguments[-len(classes) :] == classes
    return WindowForm(
        kind=CONTENT_KINDS[last.name],
        function=classes[0] if is_plain else "",
        evicts=evicts,
        is_global=is_global,
        is_all=last.owner.endswith(".AllWindowedStream"),
        types=() if is_plain else tuple(a for a in last.arguments if a not in classes and not a.startswith(LAMBDA)),
    )


def typing_calls(calls: Iterable[FlinkCall]) -> list[tuple[str, ...]]:
    """Return the calls that decide the types of records, without texts and numbers: those of streams before windows, and those that make types."""
    found = []
    for call in calls:
        is_stream = (
            call.owner.startswith(_STREAMS)
            or call.use == "streams"
            or (call.owner.startswith(_ENVIRONMENT) and call.name.startswith(_FIRST))
        ) and not (call.owner.rpartition(".")[2] in _WINDOWED or call.name in TYPE_KEEPING)
        if is_stream or call.owner.startswith(_TYPES) or call.use == "types":
            arguments = [a.partition(OF_TYPES)[2] if a.startswith(LAMBDA) else _without_code(a) for a in call.arguments]
            kept = (a for a in arguments if call.owner.startswith(_TYPES) or a in call.classes or not _is_plain(a))
            found.append((call.owner, call.name, *kept))
    return found


def makes_type(call: FlinkCall) -> bool:
    """Return True for a call that makes a type of Flink."""
    return call.owner.startswith(_TYPES)


def chooses(calls: Iterable[FlinkCall]) -> bool:
    """Return True if code computes or chooses what states, types, keys, functions, windows, uids or max parallelisms it gives to Flink."""
    return any(_is_chosen(call) for call in calls)


def _is_chosen(call: FlinkCall) -> bool:
    simple = call.owner.rpartition(".")[2]
    if (simple in _DESCRIPTORS and call.name == "<init>") or makes_type(call):
        return call.branches or not call.arguments or any(COMPUTED in a for a in call.arguments)
    if call.name in (*_ACCESSORS, "getListState", "enableTimeToLive"):
        return call.branches
    if call.use == "states":
        return any(a.startswith(COMPUTED) for a in call.arguments)
    if call.use or call.name in _WITHOUT_CHOICE or not call.owner.startswith((_STREAMS, _ENVIRONMENT, _WINDOWS)):
        return False
    # What Flink's own calls return is not among the arguments, so the last one may be the stream itself.
    is_given = call.parameters and not call.owner.startswith(_WINDOWS) and call.name not in _OF_WINDOWS
    given = call.arguments[-call.parameters :] if is_given else ()
    return call.branches or any(a.startswith(COMPUTED) for a in given)


def _is_plain(argument: str) -> bool:
    return argument.startswith('"') or argument.lstrip("-").isdecimal()


def functions_of_uids(calls: Iterable[FlinkCall]) -> dict[str, tuple[str, ...]]:
    """Return the classes of the functions before each constant uid, and before each id of ``setUidHash``."""
    found: dict[str, tuple[str, ...]] = {}
    functions: tuple[str, ...] = ()
    for call in calls:
        if call.name in ("uid", "setUidHash"):
            uid = call.arguments[-1] if call.arguments else COMPUTED
            if uid.startswith('"') and functions:
                found[uid[1:-1]] = functions
            functions = ()
        elif call.owner.startswith(_STREAMS) and (
            classes := tuple(a for a in call.arguments if a.isidentifier() and a != LAMBDA)
        ):
            functions = classes
    return found


def function_counts(calls: Iterable[FlinkCall]) -> Counter[str]:
    """Return how often code gives a stream each class of functions."""
    return Counter(name for c in calls if c.owner.startswith(_STREAMS) for name in c.classes)


def macro_calls(calls: Iterable[FlinkCall]) -> list[FlinkCall]:
    """Return the calls by which macros of Flink's Scala API create the types of options, alternatives, tries and collections."""
    return [c for c in calls if c.owner.startswith(_SCALA_TYPES) or (c.owner, c.name) == _BASIC_TYPE]


def given_uids(calls: Iterable[FlinkCall]) -> tuple[set[str], bool]:
    """Return the constant uids of operators, with the ids that ``setUidHash`` gives, and whether the code computes others."""
    calls = list(calls)
    given = [c.arguments[-1] if c.arguments and not c.branches else COMPUTED for c in calls if c.name in _UIDS]
    given += [c.arguments[-1] for c in calls if c.name in _UIDS and c.arguments and c.branches]
    given += [a for c in calls for a in c.arguments if a.endswith(_UID_REFERENCES)]
    constant = {text[1:-1] for text in given if text.startswith('"')}
    return constant, not all(text.startswith('"') for text in given)


def settled_uids(calls: Iterable[FlinkCall]) -> tuple[set[str], bool]:
    """Return the uids that code gives without a condition, and whether it computes or chooses others."""
    given = [c for c in calls if c.name in _UIDS]
    settled = {
        c.arguments[-1][1:-1] for c in given if not c.branches and c.arguments and c.arguments[-1].startswith('"')
    }
    return settled, len(settled) < len({(c.branches, c.arguments[-1:]) for c in given})


def operator_calls(calls: Iterable[FlinkCall], states: Iterable[str]) -> list[FlinkCall]:
    """Return the calls that decide what Flink's own operators with some states do, without the code of lambdas."""
    wanted = set(states)
    names = {
        *(_AGGREGATES if wanted.intersection(GROUPED) else ()),
        *(_BOUNDS if wanted.intersection(JOIN_BUFFERS) else ()),
    }
    found = (c for c in calls if c.name in names and c.owner.startswith(_STREAMS))
    return [c.without_code() for c in found if c.owner.rpartition(".")[2] not in _WINDOWED]


def connectors_of(calls: Iterable[FlinkCall]) -> set[str]:
    """Return the classes of Flink and of the job with which code creates sources and sinks."""
    found: set[str] = set()
    for call in calls:
        if call.owner.startswith(_CONNECTORS):
            found.add(call.owner.rpartition(".")[2].partition("$")[0].removesuffix("Builder"))
        elif call.name in _TAKES_CONNECTOR:
            found.update(call.classes)
        elif call.owner.startswith(_ENVIRONMENT) and call.name.startswith(("from", "read", "socket")):
            found.add(call.name)
    return found


def _creates_connector(call: FlinkCall) -> bool:
    return call.name in _TAKES_CONNECTOR or (call.owner.startswith(_ENVIRONMENT) and call.name.startswith(_FIRST))


def connectors_of_uids(calls: Iterable[FlinkCall]) -> dict[str, set[str]]:
    """Return the classes with which code creates the source or sink of each constant uid."""
    found: dict[str, set[str]] = {}
    own: list[FlinkCall] = []
    for call in calls:
        if own and own[-1].place != call.place:
            own = []
        own.append(call)
        if call.name == "uid":
            uid = call.arguments[-1] if call.arguments else COMPUTED
            calls_before = [c for c in own[:-1] if c.name not in SETTERS]
            begin = max(
                (at for at, c in enumerate(calls_before[:-1]) if c.owner.startswith((_STREAMS, _ENVIRONMENT))),
                default=-1,
            )
            if uid.startswith('"') and calls_before and _creates_connector(calls_before[-1]):
                names = connectors_of(calls_before[begin + 1 :])
                found.setdefault(uid[1:-1], set()).update(_SEQUENCES.get(name, name) for name in names)
            own = []
    return found


def start_calls(calls: Iterable[FlinkCall]) -> list[FlinkCall]:
    """Return the calls that say where sources start."""
    found = (c for c in calls if c.owner.rpartition(".")[2] in _STARTS or c.name.startswith(_SETS_START))
    return [c.without_code() for c in found if c.owner.startswith(_CONNECTORS)]


def fields_of_states(calls: Iterable[FlinkCall]) -> dict[tuple[str, str], str]:
    """Return the constant names of the states that code stores in fields, by class and field."""
    found: dict[tuple[str, str], set[str]] = {}
    for call in calls:
        if call.use == "fields":
            found.setdefault((call.owner, call.name), set()).add(call.arguments[0])
    return {at: text[1:-1] for at, (text, *more) in found.items() if not more and text.startswith('"')}


def ttl_calls(calls: Iterable[FlinkCall]) -> list[FlinkCall]:
    """Return the calls that configure a time to live, without those of its clean-up, which decide no value."""
    return [c for c in calls if c.owner.rpartition(".")[2].startswith(_TTL) and "leanup" not in c.name]


def main_classes(calls: Iterable[FlinkCall]) -> list[str]:
    """Return the classes whose ``main`` builds a job."""
    places = {c.place for c in calls if c.owner.startswith(_ENVIRONMENT)}
    return sorted(p.removesuffix(_MAIN) for p in places if p.endswith(_MAIN))


def set_max_parallelisms(calls: Iterable[FlinkCall]) -> list[str]:
    """Return the max parallelisms that code sets; an empty text for one that it computes."""
    return [(c.constants or ("",))[-1] for c in calls if c.name == "setMaxParallelism"]


def pattern_calls(calls: Iterable[FlinkCall]) -> list[FlinkCall]:
    """Return the calls that declare patterns of complex event processing."""
    return [c for c in calls if c.owner.startswith(_PATTERNS) and c.name != "<init>"]


def pattern_names(calls: Iterable[FlinkCall]) -> set[str] | None:
    """Return the names of the parts of patterns; ``None`` if the code computes one, or declares no pattern."""
    texts = [next(iter(c.arguments), COMPUTED) for c in pattern_calls(calls) if c.name in _PARTS]
    if not texts or not all(t.startswith('"') for t in texts):
        return None
    return {t[1:-1] for t in texts}


def difference(before: Iterable[FlinkCall], after: Iterable[FlinkCall]) -> str:
    """Return the first calls that only one of two jobs has, and another order of equal calls; empty if they are the same."""
    before, after = list(before), list(after)
    shown = {str(c): c.shown for c in (*before, *after)}
    old, new = [str(c) for c in before], [str(c) for c in after]
    gone, fresh = Counter(old) - Counter(new), Counter(new) - Counter(old)
    parts = [
        f"{word} {', '.join(shown[c] for c in list(side)[:_SHOWN])}"
        for word, side in (("no longer", gone), ("now", fresh))
        if side
    ]
    return "; ".join(parts) or ("another order" if old != new else "")
