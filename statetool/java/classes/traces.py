"""Operators and states of a job, found by executing the methods that build its streams and the functions that it gives them, without a JVM.

Constants are followed through methods, builders, fields, loops and constructors. Objects of Flink are not executed: a call of one is recorded, and its
result stands for the call. Execution ends where code depends on something that only a running job has, so what is found is there, and what is not
found may be there, too. Where a value that is not known decides, each way is executed, up to a number of ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

from statetool.java.classes.bytecode import Opcode, instructions
from statetool.java.classes.class_file import (
    PRIVATE,
    STATIC,
    SYNTHETIC,
    ClassConstant,
    ClassFile,
    Member,
    MemberReference,
)
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.execute import AddressHash, Machine, Thrown, Unfollowed
from statetool.java.classes.flink_calls import hint_of
from statetool.java.classes.signatures import parse_parameters
from statetool.types.execution import Boxed, Instance, Some
from statetool.types.flink_calls import (
    COMPUTED,
    LAMBDA,
    SETTERS,
    TYPE_KEEPING,
    DeclaredState,
    FlinkCall,
    declared_states,
)
from statetool.types.traced import StreamType, TracedJob, TracedOperator
from statetool.types.type_information import TypeInformation, kryo, simple
from statetool.types.type_names import basic_type

_FLINK: Final = "org.apache.flink."
_STREAMS: Final = "org.apache.flink.streaming.api."
_FUNCTIONS: Final = "org.apache.flink.api.common.functions."
_DESCRIPTOR: Final = "StateDescriptor"
_TYPE_ENDS: Final = ("TypeInfo", "TypeInformation", "Serializer")
_GIVES_TYPE: Final = tuple(f"{name};" for name in _TYPE_ENDS)
_OF_TYPE: Final = ("createSerializer", "getTypeInfo")
_BUILDERS: Final = ("java.lang.StringBuilder", "java.lang.StringBuffer")
_LISTS: Final = ("java.util.ArrayList", "java.util.LinkedList")
_MAPS: Final = ("java.util.HashMap", "java.util.LinkedHashMap", "java.util.TreeMap", "java.util.EnumMap")
_LIST_MAKERS: Final = (("java.util.List", "of"), ("java.util.Arrays", "asList"), ("java.util.Set", "of"))
#: Methods of a lambda's interface that an object outside of the jars calls with its first argument.
_CALLS_LAMBDA: Final = ("computeIfAbsent",)
#: The place of an argument in the text that ``StringConcatFactory`` fills.
_HOLE: Final = "\1"
_NUMBERS: Final = ("I", "J", "S", "B")
_FIRST: Final = ("open", "initializeState")
#: Interfaces of functions, by the method of a stream that takes them, and the index of the type argument of their results.
_RESULTS: Final = {
    "map": ((f"{_FUNCTIONS}MapFunction", 1), (f"{_FUNCTIONS}RichMapFunction", 1)),
    "flatMap": ((f"{_FUNCTIONS}FlatMapFunction", 1), (f"{_FUNCTIONS}RichFlatMapFunction", 1)),
    "process": (
        (f"{_STREAMS}functions.KeyedProcessFunction", 2),
        (f"{_STREAMS}functions.ProcessFunction", 1),
    ),
}
_QUERYABLE: Final = "org.apache.flink.api.java.typeutils.ResultTypeQueryable"
_AGGREGATE: Final = f"{_FUNCTIONS}AggregateFunction"
#: Methods that only other methods of the same class call, and that need no object.
_NOT_CALLED: Final = PRIVATE | STATIC | SYNTHETIC
_PARAMETER: Final = "the parameter "
#: Beginning of the text of an exception that no instruction of the job throws.
_IMPLICIT: Final = "throws java."
_GOES_ON: Final = (
    *range(Opcode.IFEQ, Opcode.GETSTATIC), Opcode.IFNULL, Opcode.IFNONNULL, Opcode.GOTO_W,
)  # fmt: skip
_MAKES_TYPE: Final = "createTypeInfo"
_UIDS: Final = ("uid", "setUid", "setUidHash")
_KEY_SELECTOR: Final = "org.apache.flink.api.java.functions.KeySelector"
#: Classes whose methods change lists and arrays.
_CHANGERS: Final = ("java.util.Collections", "java.util.Arrays", "java.lang.System")
#: Instructions of all runs, ways of one method, and decisions on one way.
_MOST_STEPS: Final = 300_000
_MOST_WAYS: Final = 16
_MOST_DECISIONS: Final = 12
_JOINED: Final = ("intervalJoin", "join", "coGroup", "connect")


_NOTHING: Final = MemberReference("", "", "")


@dataclass(frozen=True, slots=True, eq=False)
class Made(Some):
    """An object outside of the jars: the result of a call, which ``calls`` of its own methods may change."""

    owner: str = ""
    name: str = ""
    receiver: Any = None
    arguments: list[Any] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    gives_type: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Items(Some):
    """A list, or an iterator over it."""

    items: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class _Entries(Some):
    """A map."""

    entries: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Constructor(Some):
    cls: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Lambda(Some):
    target: MemberReference = _NOTHING
    captured: tuple[Any, ...] = ()


def trace_job(path: ClassPath, places: Iterable[str]) -> TracedJob:
    """Return the operators with uids, as far as all code that was executed agrees.

    Parameters
    ----------
    places
        Classes and methods that build streams: ``shop.Job.main``.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    budget = _Budget()
    runs = list(_first_runs([run for place in dict.fromkeys(places) for run in _run_builders(path, place, budget)]))
    found: dict[str, set[TracedOperator]] = {}
    for run in runs:
        seen: list[set[str]] = []
        for calls in run.ways:
            uids = set[str]()
            limits = [c for c in calls if c.name == "setMaxParallelism"]
            for call in calls:
                if call.name == "uid" and call.arguments and isinstance(call.arguments[0], str):
                    after = [c for c in limits if any(one is call for one in _setters(c))]
                    setters = (*after[::-1], *_setters(call))
                    one = _operator(path, call, setters, budget, assigned=run.assigned)
                    found.setdefault(call.arguments[0], set()).add(
                        one if run.is_whole else replace(one, is_whole=False)
                    )
                    uids.add(call.arguments[0])
            seen.append(uids)
        for uid in set().union(*seen):
            # On some way, the job does not have the operator, or its uid is not known.
            if any(uid not in uids for uids in seen):
                found[uid] = {replace(one, is_whole=False) for one in found[uid]}
    given = [call for run in runs for calls in run.ways for call in calls if call.name in _UIDS]
    texts = [call.arguments[0] if call.arguments and call.name != "setUidHash" else None for call in given]
    return TracedJob(
        operators={uid: one.pop() for uid, one in found.items() if len(one) == 1},
        uids=frozenset(text for text in texts if isinstance(text, str)),
        is_whole=all(run.is_whole for run in runs) and all(isinstance(text, str) for text in texts),
    )


def type_of_factory(path: ClassPath, name: str) -> TypeInformation | None:
    """Return the type that a ``TypeInfoFactory`` of the job makes, ``None`` if executing it does not show that.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    cls = path.read(name)
    methods = [] if cls is None else [m for m in cls.methods if m.name == _MAKES_TYPE and not m.access & SYNTHETIC]
    if cls is None or len(methods) != 1:
        return None
    tracer = _Tracer(path, _Budget(), (), frozenset())
    tracer.follow(cls, methods[0], [Instance(name)])
    return _information(path, tracer.result) if tracer.is_whole and not tracer.taken else None


def _information(path: ClassPath, value: Any) -> TypeInformation | None:
    """Return the type that an object of Flink is, ``None`` if that is not known."""
    basic = basic_type(text_of(path, value))
    if basic is not None or not isinstance(value, Made):
        return None if basic is None else simple(basic)
    match value.owner.rpartition(".")[2], value.name, value.arguments:
        case ("Types", "GENERIC", [ClassConstant(name)]) | ("GenericTypeInfo", "<init>", [ClassConstant(name)]):
            return kryo(name)
        case ("Types", "LIST", [one]) | ("ListTypeInfo", "<init>", [one]):
            part = _information(path, one)
            return None if part is None else TypeInformation("list", parts=(part,))
        case "Types", "POJO", [ClassConstant(name), _Entries() as given]:
            fields = tuple((one, owner) for one in sorted(given.entries) if (owner := _declaring(path, name, one)))
            parts = [_information(path, given.entries[one]) for one, _ in fields]
            known = tuple(part for part in parts if part is not None)
            return (
                TypeInformation("pojo", name, parts=known, fields=fields) if len(known) == len(given.entries) else None
            )
    return None


def _declaring(path: ClassPath, name: str, field_name: str) -> str:
    """Return the class that declares a field of a class, empty if none in the jars does."""
    classes = (path.read(one) for one in (name, *path.supertypes(name)))
    return next((cls.name for cls in classes if cls is not None and any(f.name == field_name for f in cls.fields)), "")


@dataclass(slots=True)
class _Budget:
    """Instructions that all runs of a job may execute."""

    left: int = _MOST_STEPS


@dataclass(frozen=True, slots=True)
class _Run:
    """A method that was executed once for each way that values which are not known let it take, those that it called, and the calls of Flink on each way.

    Attributes
    ----------
    is_whole
        Whether each way was followed to its end.
    assigned
        Static fields that it set.
    """

    method: tuple[str, str]
    visited: frozenset[tuple[str, str]]
    ways: tuple[tuple[Made, ...], ...]
    is_whole: bool
    assigned: frozenset[tuple[str, str]]


def _run(
    path: ClassPath, cls: ClassFile, member: Member, receiver: Instance, budget: _Budget,
    assigned: frozenset[tuple[str, str]] = frozenset(),
) -> _Run:  # fmt: skip
    """Execute a method as far as it is known what it does. The receiver is then as the first way leaves it."""
    visited = set[tuple[str, str]]()
    set_fields = set(assigned)
    ways: list[tuple[Made, ...]] = []
    plans: list[tuple[int, ...]] = [()]
    before = deepcopy(receiver)
    is_whole, tried = True, 0
    while plans and tried < _MOST_WAYS:
        plan = plans.pop(0)
        tracer = _Tracer(path, budget, plan, assigned)
        own = deepcopy(before) if tried else receiver
        tracer.follow(cls, member, [] if member.access & STATIC else [own])
        tried += 1
        visited |= {(name, method) for name, method, _ in tracer.visited}
        set_fields |= tracer.assigned
        is_whole = is_whole and tracer.is_whole
        if not tracer.throws:
            ways.append(tuple(tracer.found))
        for at in range(len(plan), len(tracer.taken)):
            taken, count = tracer.taken[at]
            before_it = tuple(one for one, _ in tracer.taken[:at])
            plans += [(*before_it, other) for other in range(count) if other != taken]
    key = cls.name, f"{member.name}{member.descriptor}"
    return _Run(key, frozenset(visited), tuple(ways), is_whole and not plans, frozenset(set_fields))


def _run_builders(path: ClassPath, place: str, budget: _Budget) -> Iterator[_Run]:
    name, _, method = place.rpartition(".")
    cls = path.read(name)
    for member in () if cls is None else cls.methods:
        if cls is not None and member.name == method and member.code and not member.access & SYNTHETIC:
            yield _run(path, cls, member, Instance(name), budget)


def _first_runs(runs: Sequence[_Run]) -> Iterator[_Run]:
    """Yield the methods that no other one calls: it gives them their arguments."""
    called = {method for run in runs for method in run.visited if method != run.method}
    yield from (run for run in runs if run.method not in called)


def _setters(made: Any) -> Iterator[Made]:
    """Yield a call and those before it that set something of the same operator, and last the one that creates it."""
    while isinstance(made, Made):
        yield made
        if made.name not in (*SETTERS, "uid"):
            return
        made = made.receiver


def _operator(
    path: ClassPath, call: Made, setters: Sequence[Made], budget: _Budget, assigned: frozenset[tuple[str, str]]
) -> TracedOperator:
    """Return the operator to which a call gives a uid, with all calls that set something of it, from the last to the first."""
    *_, made = _setters(call)
    if made.name in (*SETTERS, "uid"):
        return TracedOperator("", (), ())
    limits = [c.arguments[0] for c in setters if c.name == "setMaxParallelism" and len(c.arguments) == 1]
    limit = limits[0] if limits else None
    functions = [a for a in made.arguments if isinstance(a, Instance)]
    states = [_states_of(path, function, budget, assigned) for function in functions]
    return TracedOperator(
        method=made.name,
        states=tuple(dict.fromkeys(state for of_function, _ in states for state in of_function)),
        types=tuple(_types(path, made)),
        max_parallelism=limit if isinstance(limit, int) else None,
        key=_key(path, made),
        is_whole=all(is_whole for _, is_whole in states) and (limit is None or isinstance(limit, int)),
    )


def _states_of(
    path: ClassPath, function: Instance, budget: _Budget, assigned: frozenset[tuple[str, str]]
) -> tuple[list[DeclaredState], bool]:
    """Return the states that the methods of a function declare, and whether all ways were followed of those that declare states first."""
    methods: dict[tuple[str, str], tuple[ClassFile, Member]] = {}
    for name in (function.cls, *path.supertypes(function.cls)):
        cls = path.read(name)
        for member in () if cls is None else cls.methods:
            if cls is not None and member.code and member.name[0] != "<" and not member.access & _NOT_CALLED:
                methods.setdefault((member.name, member.descriptor), (cls, member))
    runs = []
    is_whole = True
    for key in sorted(methods, key=lambda m: (m[0] not in _FIRST, m)):
        cls, member = methods[key]
        run = _run(path, cls, member, function, budget, assigned)
        runs.append(run)
        is_whole = is_whole and (run.is_whole or not (key[0] in _FIRST or any(map(_takes_state, chain(*run.ways)))))
    found: list[DeclaredState] = []
    for call in chain.from_iterable(way for run in _first_runs(runs) for way in run.ways):
        taken = [a for a in call.arguments if isinstance(a, Made) and a.owner.endswith(_DESCRIPTOR)]
        for one in taken if call.name.startswith("get") else ():
            texts = tuple(text_of(path, a) for a in one.arguments)
            ttl = [FlinkCall(one.owner, n, (), "") for n in one.calls if n == "enableTimeToLive"]
            # The order of the calls is that of code that declares a state and takes it at once.
            found += declared_states(
                (FlinkCall(one.owner, "<init>", texts, ""), *ttl, FlinkCall(call.owner, call.name, (), ""))
            )
    return found, is_whole


def _takes_state(call: Made) -> bool:
    return any(isinstance(a, Made) and a.owner.endswith(_DESCRIPTOR) for a in call.arguments)


def _key(path: ClassPath, operator: Made) -> StreamType | None:
    """Return the type of the keys of an operator, ``None`` if it has none, or they are not known."""
    made = operator.receiver
    while isinstance(made, Made):
        if made.name == "keyBy":
            first, *others = made.arguments or [None]
            if others:
                return _given(path, others)
            if isinstance(first, _Lambda):
                return StreamType(f"{LAMBDA} {first.target.descriptor.rpartition(')')[2]}")
            return _result(path, first, ((_KEY_SELECTOR, 1),))
        if made.name not in TYPE_KEEPING and made.name not in _JOINED:
            return None
        made = made.receiver
    return None


def _types(path: ClassPath, operator: Made) -> Iterator[StreamType | None]:
    """Yield the types of the accumulators of an aggregation, or of the records of the inputs of another operator."""
    first = operator.arguments[0] if operator.arguments else None
    if operator.name == "aggregate":
        given = [a for a in operator.arguments if isinstance(a, Made) and a.gives_type]
        yield _given(path, given[:1]) if given else _result(path, first, ((_AGGREGATE, 1),))
        return
    made = operator.receiver
    while isinstance(made, Made):
        if made.name in _JOINED:
            yield stream_type(path, made.receiver)
            yield from (stream_type(path, a) for a in made.arguments[:1])
            return
        if made.name == "keyBy" or made.name not in TYPE_KEEPING:
            break
        made = made.receiver
    yield stream_type(path, operator.receiver)


def stream_type(path: ClassPath, stream: Any) -> StreamType | None:
    """Return the type of the records of a stream, ``None`` if the calls that make it do not tell."""
    made = stream
    while isinstance(made, Made):
        if made.name == "returns":
            return _given(path, made.arguments)
        if made.name not in TYPE_KEEPING:
            break
        made = made.receiver
    if not isinstance(made, Made):
        return None
    if made.origin.startswith(_PARAMETER):
        return StreamType("", origin=made.origin)
    first, *others = made.arguments or [None]
    if others and isinstance(others[-1], Made) and others[-1].gives_type:
        return _given(path, others[-1:])
    return None if others else _result(path, first, _RESULTS.get(made.name, ()))


def _result(path: ClassPath, function: Any, interfaces: Iterable[tuple[str, int]]) -> StreamType | None:
    """Return the type argument of the interface that a function implements, ``None`` if its own code gives the type."""
    above = path.supertypes(function.cls) if isinstance(function, Instance) else []
    if _QUERYABLE in above:
        return None
    found = ((interface, index) for interface, index in interfaces if interface in above)
    return next((StreamType("", function.cls, interface, index) for interface, index in found), None)


def _given(path: ClassPath, arguments: Sequence[Any]) -> StreamType | None:
    text = text_of(path, arguments[0]) if len(arguments) == 1 else COMPUTED
    return None if COMPUTED in text else StreamType(text)


def text_of(path: ClassPath, value: Any) -> str:
    """Return the text with which code names a value, :data:`COMPUTED` for one that is not known."""
    match value:
        case str():
            return f'"{value}"'
        case bool() | int():
            return str(value)
        case ClassConstant():
            return f"{value.name}.class"
        case list():
            return f"[{', '.join(text_of(path, v) for v in value)}]"
        case Instance():
            return hint_of(path, value.cls) or value.cls
        case _Lambda():
            return LAMBDA
        case Made() if value.name.startswith("."):
            return f"{value.owner.rpartition('.')[2]}{value.name}"
        case Made() if value.name in _OF_TYPE:
            return text_of(path, value.receiver)
        case Made() if value.gives_type:
            simple = value.owner.rpartition(".")[2]
            texts = ", ".join(text_of(path, a) for a in value.arguments)
            if value.name == "<init>":
                return f"{simple}({texts})"
            return f"{simple}.{value.name}({texts})" if value.receiver is None else COMPUTED
    return COMPUTED


class _Tracer(Machine):
    """Executes methods, and records the calls of Flink in ``found``.

    Parameters
    ----------
    plan
        Ways that the code takes where a value that is not known decides, in the order of the decisions. After these, it takes the first ones.
    assigned
        Static fields that other code sets, so that their values are not known.
    """

    def __init__(
        self, path: ClassPath, budget: _Budget, plan: tuple[int, ...], assigned: frozenset[tuple[str, str]]
    ) -> None:
        super().__init__(path)
        self.found: list[Made] = []
        self.taken: list[tuple[int, int]] = []
        self.is_whole = True
        self.throws = False
        self.result: Any = None
        self._budget = budget
        self._plan = plan
        self._unknown = assigned
        self._sites: dict[tuple[object, ...], int] = {}

    def follow(self, cls: ClassFile, method: Member, receiver: list[Any]) -> None:
        """Execute a method as far as it is known what it does, with arguments that are not known."""
        count = len(parse_parameters(method.descriptor)[0])
        at = f"{cls.name}.{method.name}{method.descriptor}"
        arguments = [Made(f"{_PARAMETER}{n + 1} of {at}") for n in range(count)]
        try:
            self.result = self.run(cls, method, [*receiver, *arguments], 0)
        except Thrown as error:
            # On such a way, there is no job. A null may be one that only a cluster fills.
            self.throws = bool(self._sites) and not str(error).startswith(_IMPLICIT)
            self.is_whole = self.is_whole and self.throws
        except (Unfollowed, AddressHash, RecursionError):
            # The calls before it were made all the same.
            self.is_whole = False

    def run(self, cls: ClassFile, method: Member, arguments: Sequence[Any], depth: int) -> Any:
        if not all(_throws_again(method, at) for at in method.handlers):
            # Calls of other code may throw.
            self.is_whole = False
        return super().run(cls, method, arguments, depth)

    def count(self) -> None:
        super().count()
        self._budget.left -= 1
        if self._budget.left < 0:
            self.is_whole = False
            raise Unfollowed("executes too many instructions")

    def decide(self, reason: str, count: int, site: tuple[object, ...]) -> int:
        if site in self._sites:
            # A loop: it ends, or it goes on.
            self.is_whole = False
            self._sites[site] = way = (self._sites[site] + 1) % count
            return way
        if len(self.taken) >= _MOST_DECISIONS:
            raise Unfollowed(reason)
        way = self._plan[len(self.taken)] if len(self.taken) < len(self._plan) else 0
        self.taken.append((way, count))
        self._sites[site] = way
        return way

    def check_null(self, value: Any, what: str) -> None:
        # If there is no object, the code throws.
        if value is None:
            super().check_null(value, what)

    def is_same(self, a: Any, b: Any) -> bool:
        if isinstance(a, Made) and isinstance(b, Made) and a.owner == b.owner and a.name[:1] == b.name[:1] == ".":
            if a.name == b.name:
                return True
            if basic_type(text_of(self.path, a)) != basic_type(text_of(self.path, b)):
                return False
        return super().is_same(a, b)

    def element_of(self) -> Any:
        return Made("an element of an array", may_be_null=True)

    def initialize(self, name: str) -> None:
        super().initialize(name)
        for place in self._unknown:
            if place[0] == name and place not in self.assigned:
                self.statics[place] = Made(".".join(place), may_be_null=True)

    def new(self, name: str) -> Any:
        if name in _LISTS:
            return _Items("a list")
        if name in _MAPS:
            return _Entries("a map")
        return Made(f"a {name}", owner=name, name="<init>", gives_type=name.endswith(_TYPE_ENDS))

    def constant(self, member: MemberReference) -> Any:
        return Made(f"{member.owner}.{member.name}", owner=member.owner, name=f".{member.name}", gives_type=True)

    def link(self, cls: ClassFile, index: int, captured: list[Any]) -> Any:
        bootstrap, name, descriptor = cls.constants.dynamic(index)
        linked = cls.bootstraps[bootstrap] if bootstrap < len(cls.bootstraps) else None
        if linked is None:
            return super().link(cls, index, captured)
        if linked.method.owner.endswith("StringConcatFactory"):
            kinds = [k.name for k in parse_parameters(descriptor)[0]]
            constants = [cls.constants.loaded(a) for a in linked.arguments]
            return _joined(constants, captured, kinds) or Some("a joined text")
        if linked.method.owner.endswith("LambdaMetafactory") and len(linked.arguments) > 1:
            target = cls.constants.method_handle(linked.arguments[1])
            return _Lambda(f"the lambda {name}", target=target, captured=tuple(captured))
        return super().link(cls, index, captured)

    def call_outside(self, op: int, method: MemberReference, receiver: Any, arguments: list[Any], depth: int) -> Any:
        if isinstance(receiver, _Items):
            return self._use_list(method, receiver, arguments, depth)
        if isinstance(receiver, _Entries):
            if method.name in _CALLS_LAMBDA and isinstance(arguments[-1], _Lambda):
                key = _map_key(arguments[0])
                if key is None or receiver.entries.get(key) is None:
                    receiver.entries[key] = self._call_lambda(arguments[-1], arguments[:1], depth)
                return receiver.entries[key]
            return _use_map(method, receiver, arguments)
        if isinstance(receiver, _Lambda):
            return self._call_lambda(receiver, arguments, depth)
        if isinstance(receiver, Instance) and (found := _of_enum(method, receiver, arguments)) is not None:
            return found
        if isinstance(receiver, list) and method.name == "clone":
            return list(receiver)
        if op == Opcode.INVOKESTATIC and (method.owner, method.name) in _LIST_MAKERS:
            items = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else arguments
            return _Items("a list", items=list(items))
        if op == Opcode.INVOKESTATIC and (method.owner, method.name) == ("java.util.Map", "of"):
            return _use_map(method, _Entries("a map"), arguments)
        if (method.owner, method.name) == ("java.lang.String", "valueOf") and isinstance(arguments[0], str):
            return arguments[0]
        if (found := _of_texts(method, arguments)) is not None:
            return found
        if (method.owner, method.name) == ("java.lang.Enum", "valueOf"):
            return self._constant_of(*arguments)
        if isinstance(receiver, ClassConstant) and method.name in ("getDeclaredConstructor", "getConstructor"):
            return _Constructor(f"a constructor of {receiver.name}", cls=receiver.name)
        if isinstance(receiver, _Constructor) and method.name == "newInstance" and receiver.cls in self.path:
            return self._create(receiver.cls, depth)
        if (method.owner, method.name) == ("java.util.Collections", "reverse") and isinstance(arguments[0], _Items):
            return arguments[0].items.reverse()
        if not method.owner.startswith(_FLINK):
            self._check_followed(method, arguments)
        if isinstance(receiver, Made):
            if method.name == "<init>":
                receiver.arguments.extend(arguments)
                if not method.owner.startswith((_FLINK, *_BUILDERS)):
                    _forget(arguments)
                return None
            if method.owner in _BUILDERS:
                return _build_text(method, receiver, arguments)
            if method.name in _CALLS_LAMBDA and isinstance(arguments[-1], _Lambda):
                return self._call_lambda(arguments[-1], arguments[:1], depth)
        if method.owner.startswith(_FLINK) or isinstance(receiver, Instance):
            return self._record(method, receiver, arguments)
        try:
            result = super().call_outside(op, method, receiver, arguments, depth)
        except Unfollowed:
            result = Made(f"the result of {method.owner}.{method.name}()", may_be_null=True)
        if isinstance(result, Some):
            _forget(arguments)
        return result

    def _record(self, method: MemberReference, receiver: Any, arguments: list[Any]) -> Any:
        if method.name == "<init>":
            return None
        gives_type = method.descriptor.endswith(_GIVES_TYPE)
        is_flink = method.descriptor.rpartition(")")[2].startswith("Lorg/apache/flink/")
        origin = f"the result of {method.owner}.{method.name}()"
        made = Made(origin, not is_flink, method.owner, method.name, receiver, arguments, gives_type=gives_type)
        if isinstance(receiver, Made):
            receiver.calls.append(method.name)
        self.found.append(made)
        return made

    def _check_followed(self, method: MemberReference, arguments: list[Any]) -> None:
        """Check that code outside of the jars and of Flink neither changes what it gets nor calls functions of the job."""
        if method.owner in _CHANGERS and any(isinstance(a, _Items | _Entries | list) for a in arguments):
            raise Unfollowed(f"calls {method.owner}.{method.name}()")
        if any(isinstance(a, _Lambda) for a in arguments):
            self.is_whole = False

    def _create(self, name: str, depth: int) -> Any:
        """Return an object of a class, by its constructor without parameters."""
        self.initialize(name)
        made, cls = Instance(name), self.path.read(name)
        methods = () if cls is None else cls.methods
        found = next((m for m in methods if (m.name, m.descriptor) == ("<init>", "()V")), None)
        if cls is None or found is None:
            raise Unfollowed(f"creates a {name}")
        self.run(cls, found, [made], depth + 1)
        return made

    def _constant_of(self, cls: Any, name: Any) -> Any:
        """Return the constant of an enum with a name."""
        if isinstance(cls, ClassConstant) and isinstance(name, str):
            self.initialize(cls.name)
            for (owner, _), value in self.statics.items():
                if owner == cls.name and isinstance(value, Instance) and value.fields.get("Enum.name") == name:
                    return value
        return Made("a constant of an enum")

    def _call_lambda(self, called: _Lambda, arguments: list[Any], depth: int) -> Any:
        found = self.find(called.target.owner, called.target)
        if found is None or called.target.name == "<init>":
            return Made(called.origin, may_be_null=True)
        return self.run(*found, [*called.captured, *arguments], depth + 1)

    def _use_list(self, method: MemberReference, items: _Items, arguments: list[Any], depth: int) -> Any:
        match method.name, arguments:
            case "<init>", [] | [_Items()]:
                items.items.extend(one for other in arguments for one in other.items)
                return None
            case "add", [value]:
                items.items.append(value)
                return 1
            case "iterator", []:
                return _Items("an iterator", items=list(items.items))
            case "hasNext", []:
                return int(bool(items.items))
            case "next", [] if items.items:
                return items.items.pop(0)
            case "size", []:
                return len(items.items)
            case "get", [int(at)] if 0 <= at < len(items.items):
                return items.items[at]
            case "forEach", [_Lambda() as called]:
                for value in list(items.items):
                    self._call_lambda(called, [value], depth)
                return None
        raise Unfollowed(f"calls {method.name}() of a list")


def _forget(values: Iterable[Any]) -> None:
    """Make the contents of objects and arrays unknown that code outside of the jars gets, and may change."""
    for value in values:
        if isinstance(value, list):
            value[:] = [Made("an element of an array", may_be_null=True)] * len(value)
        elif isinstance(value, Instance) and "Enum.name" not in value.fields:
            value.fields |= {name: Made(f"the field {name}", may_be_null=True) for name in value.fields}


def _throws_again(method: Member, handler: int) -> bool:
    """Return True if a handler of exceptions only throws one."""
    for operation, operands in instructions(method.code):
        if operands.pos - 1 < handler:
            continue
        if operation == Opcode.ATHROW:
            return True
        if operation in _GOES_ON:
            return False
    return False


def _use_map(method: MemberReference, used: _Entries, arguments: list[Any]) -> Any:
    keys = [_map_key(one) for one in arguments[: None if method.name == "of" else 1]]
    match method.name, arguments:
        case "<init>", [] | [ClassConstant()]:
            return None
        case "of", _ if None not in keys[::2]:
            used.entries.update(zip(keys[::2], arguments[1::2], strict=True))
            return used
        case "put", [_, value] if None not in keys:
            before = used.entries.get(keys[0])
            used.entries[keys[0]] = value
            return before
        case "get" | "getOrDefault", _ if None not in keys and None not in used.entries:
            return used.entries.get(keys[0], arguments[1] if len(arguments) > 1 else None)
        case "containsKey", _ if None not in keys:
            return int(keys[0] in used.entries)
    raise Unfollowed(f"calls {method.name}() of a map")


def _map_key(value: Any) -> Any:
    """Return what is the same for equal keys of a map, ``None`` for keys that are not known."""
    if isinstance(value, str | Boxed | ClassConstant):
        return value
    return ("enum", id(value)) if isinstance(value, Instance) and "Enum.name" in value.fields else None


def _of_enum(method: MemberReference, receiver: Instance, arguments: list[Any]) -> Any:
    """Return the result of a method that a constant of an enum inherits, ``None`` for other methods."""
    if (method.owner, method.name) == ("java.lang.Enum", "<init>") and len(arguments) == 2:
        receiver.fields["Enum.name"], receiver.fields["Enum.ordinal"] = arguments
        return None
    field_name = {"name": "Enum.name", "toString": "Enum.name", "ordinal": "Enum.ordinal"}.get(method.name, "")
    return receiver.fields.get(field_name)


def _of_texts(method: MemberReference, arguments: list[Any]) -> Any:
    """Return what a method makes of a text, ``None`` for other methods."""
    match (method.owner, method.name), arguments:
        case ("java.lang.Class", "forName"), [str(text)]:
            return ClassConstant(text)
        case ("java.lang.Boolean", "parseBoolean"), [str(text)]:
            return int(text.lower() == "true")
        case ("java.lang.Integer" | "java.lang.Long", "parseInt" | "parseLong"), [str(text)]:
            if text.lstrip("-").isdecimal() and text.isascii():
                return int(text)
            raise Thrown("throws java.lang.NumberFormatException")
    return None


def _joined(constants: list[Any], values: list[Any], kinds: list[str]) -> str | None:
    """Return a text that ``StringConcatFactory`` joins, ``None`` if a part is not known."""
    recipe, *others = constants
    if not isinstance(recipe, str) or others or recipe.count(_HOLE) != len(values):
        return None
    texts = [_shown(value, kind) for value, kind in zip(values, kinds, strict=True)]
    for text in texts:
        if text is None or _HOLE in text:
            return None
        recipe = recipe.replace(_HOLE, text, 1)
    return recipe


def _shown(value: Any, kind: str) -> str | None:
    """Return the text that Java makes of a value, ``None`` if it is not known."""
    if isinstance(value, str):
        return value
    if isinstance(value, Boxed) and value.box in ("java.lang.Integer", "java.lang.Long"):
        return str(value.value)
    return str(value) if isinstance(value, int) and kind in ("int", "long", *_NUMBERS) else None


def _build_text(method: MemberReference, builder: Made, arguments: list[Any]) -> Any:
    """Return the result of a method of a ``StringBuilder``, whose parts are its arguments."""
    if method.name == "append" and len(arguments) == 1:
        text = _shown(arguments[0], method.descriptor[1:2])
        builder.arguments.append(Some("a text") if text is None else text)
        return builder
    texts = [a for a in builder.arguments if isinstance(a, str)]
    if method.name == "toString" and len(texts) == len(builder.arguments):
        return "".join(texts)
    return Made("a built text")
