"""Suites of pairs with one savepoint and one new job: states, changed classes, and job-wide changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.support.flink.pair_avro import AVRO_PAIRS
from tests.support.flink.pair_kinds import KEYS, KINDS, SERIALIZERS
from tests.support.flink.pair_messages import MESSAGE_PAIRS, MESSAGES, SETTINGS
from tests.support.flink.pair_states import LONG, MODES, PAIRS, SUBCLASSES, Pair, State, Type

#: The jar set of flink-avro, without the release.
FLINK_AVRO: Final = "flink-avro"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A savepoint and a new job.

    Attributes
    ----------
    pairs
        The operators of both. Each is restored alone, with all others left out, unless ``whole``.
    whole
        Whether the job is restored as a unit, and is one row of the table.
    parallelism, allow
        Parallelism of the new job, and whether state without an operator may be dropped.
    before, after
        Settings of the old job and of the new one.
    libraries
        Sets of jars from Maven that the old job had: ``flink-avro``, or those of Protobuf and Thrift. The new job has all of them.
    again
        Whether Flink must restore its own savepoint of the restored state, too.
    by_jars
        Whether only the jars of both jobs are known of the new job, and no savepoint of it.
    """

    name: str
    pairs: tuple[Pair, ...]
    whole: bool = False
    parallelism: int = 1
    allow: bool = False
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    again: bool = False
    by_jars: bool = False

    @property
    def by_flink(self) -> bool:
        """Whether a job with the old classes wrote the savepoint; otherwise statetool did."""
        return any(p.old is not None and (p.old.fill or p.old.keys) for p in self.pairs)

    def states(self, *, new: bool) -> dict[str, State]:
        """Return the state of each operator of one of the jobs."""
        sides = {p.name: p.new if new else p.old for p in self.pairs}
        return {name: s for name, s in sides.items() if s is not None}


def _class(name: str, **more: Any) -> State:
    """Return the state of a class of ``evolved/Evolved.java``."""
    java = f"evolved.Evolved${name}"
    element = Type("", f"KRYO<{java}>" if name.startswith("Kryo") else java, ())
    return State(element=element, fill=java, **more)


def _evolved() -> Iterator[Pair]:
    pojos = (
        "Same",
        "Grown",
        "Shrunk",
        "Renamed",
        "Retyped",
        "Boxed",
        "Animal",
        "NoMorePojo",
        "PojoNow",
        "Front",
        "Less",
    )
    for name in (*pojos, "KryoSame", "KryoGrown", "KryoShrunk", "KryoRenamed", "KryoRetyped"):
        some = _class(name)
        yield Pair(f"class-{name}", some, some)
    for name in ("Grown", "KryoRenamed"):
        some = _class(name, kind="list")
        yield Pair(f"class-{name}-in-list", some, some)
    for name in ("Grown", "Shrunk", "Front"):
        some = _class(name, kind="map", map_key=Type("STRING", "STRING", ()))
        yield Pair(f"class-{name}-in-map", some, some)
    timed = _class("Grown", ttl=True)
    yield Pair("class-Grown-ttl-same", timed, timed)
    yield Pair("class-Grown-ttl-on", _class("Grown"), timed)
    yield Pair(
        "class-Same-to-Kryo",
        _class("Same"),
        replace(_class("Same"), element=Type("", "KRYO<evolved.Evolved$Same>", ())),
    )


def _registered(name: str, kind: str, state: str, before: tuple[str, ...], after: tuple[str, ...]) -> Suite:
    """Return a job with one state whose registered classes change: ``kind`` is kryo or pojo."""
    some = _class(state)
    return Suite(
        name=name,
        pairs=(Pair("a", some, some),),
        whole=True,
        before=_registrations(kind, before),
        after=_registrations(kind, after),
    )


def _registrations(kind: str, classes: tuple[str, ...]) -> dict[str, str]:
    names = [f"evolved.Evolved${c}" for c in classes]
    if not names:
        return {}
    how = "{type: pojo}" if kind == "pojo" else "{type: kryo}"
    return {"pipeline.serialization-config": f"[{', '.join(f'{n}: {how}' for n in names)}]"}


def _jobs() -> Iterator[Suite]:
    some = State(element=LONG)
    a, gone, fresh = Pair("a", some, some), Pair("b", some, None), Pair("c", None, some)
    for name, pairs in (("same", (a,)), ("gone", (a, gone)), ("new", (a, fresh)), ("renamed", (a, gone, fresh))):
        yield Suite(name=f"uid-{name}", pairs=pairs, whole=True)
        if gone in pairs:
            yield Suite(name=f"uid-{name}-allowed", pairs=pairs, whole=True, allow=True)
    many = tuple(
        Pair(k, State(element=LONG, kind=k), State(element=LONG, kind=k))
        for k in ("value", "operator-list", "union", "broadcast")
    )
    yield Suite(name="parallelism-raised", pairs=many, whole=True, parallelism=3)

    def limits(name: str, old: int | None, new: int | None, parallelism: int = 1) -> Suite:
        pair = Pair("a", replace(some, max_parallelism=old), replace(some, max_parallelism=new))
        return Suite(name=name, pairs=(pair,), whole=True, parallelism=parallelism)

    yield limits("parallelism-above-max", 2, None, 3)
    yield limits("parallelism-at-max", 3, 3, 3)
    yield limits("max-parallelism-lower", 128, 64)
    yield limits("max-parallelism-higher", 128, 4096)
    yield limits("max-parallelism-left-to-flink", 64, None)
    elements = State(element=LONG, kind="operator-list")
    pair = Pair("a", elements, replace(elements, max_parallelism=256))
    yield Suite(name="max-parallelism-without-keys", pairs=(pair,), whole=True)
    yield _registered("kryo-registered", "kryo", "KryoSame", (), ("KryoSame",))
    yield _registered("kryo-no-more-registered", "kryo", "KryoSame", ("KryoSame",), ())
    yield _registered("kryo-one-more-registered", "kryo", "KryoSame", ("KryoSame",), ("KryoSame", "KryoFirst"))
    yield _registered("kryo-other-order", "kryo", "KryoSame", ("KryoFirst", "KryoSame"), ("KryoSame", "KryoFirst"))
    yield _registered("kryo-one-less-registered", "kryo", "KryoSame", ("KryoFirst", "KryoSame"), ("KryoSame",))
    yield _registered("kryo-class-gone", "kryo", "KryoSame", ("KryoGone", "KryoSame"), ("KryoSame",))
    yield _registered("pojo-registered", "pojo", "Animal", (), ("Cat",))
    yield _registered("pojo-registered-twice", "pojo", "Animal", ("Cat",), ("Cat",))
    yield _registered("pojo-no-more-registered", "pojo", "Animal", ("Cat",), ())


def _hidden() -> Iterator[Pair]:
    """Yield states with a subclass that no header describes, whose base class got a field."""
    some = _class("Vehicle")
    yield Pair("class-Vehicle", some, some)
    yield Pair("class-Vehicle-in-list", _class("Vehicle", kind="list"), _class("Vehicle", kind="list"))


#: Classes of ``evolved/Changed.java`` that are the value of a state; those of Kryo have this word in their names.
_CHANGED: Final = (
    "KryoLists", "KryoEmpty", "KryoDoubles", "KryoInts", "KryoNested", "KryoNestedSame", "KryoEnum", "KryoEnumFewer",
    "KryoEnumLost", "KryoEnumMore", "KryoShapeGrown", "KryoShapeGone", "KryoShapeSame", "KryoBase", "KryoRenamedSameOrder",
    "KryoIntToLong", "KryoLongToInt", "KryoIntToBox", "KryoBoxToInt", "KryoInnerFinal", "KryoTransient", "KryoTransientFirst",
    "KryoArrays", "KryoInnerArray", "KryoBoxed", "KryoDays", "KryoUuid", "KryoDecimal", "KryoInstant", "KryoObjects",
    "KryoFieldMoved", "KryoBoolAdded", "KryoByteAdded", "KryoDropFirst", "KryoStringToObject",
    "KryoClassToRecord", "KryoOwn", "KryoOwnGrown", "NowPojo", "Plain", "Zoo:Cat", "Zoo:Dog",
    "Zoo:Fish", "Zoo:Cow", "Zoo:Bat", "Zoo:Fox", "PojoInner", "PojoInnerGrown", "PojoInnerGrownFirst", "PojoList", "PojoMap",
    "PojoKryoList", "PojoEnum", "PojoEnumLost", "PojoEnumFewer", "PojoToRecord", "PojoRecord", "PojoRecordGrown",
    "PojoRecordToPojo", "PojoZooField", "PojoObject", "PojoObjectSame", "PojoObjectGone", "PojoKryoField", "PojoFieldNoPojo",
    "PojoGrownKryo", "Fewer", "Lost", "More", "Color",
)  # fmt: skip
#: Classes that other kinds of states have too.
_CHANGED_IN_ALL: Final = (
    "KryoInts", "KryoNested", "KryoEnum", "KryoByteAdded", "KryoRenamedSameOrder", "KryoTransient", "Zoo:Cat", "Zoo:Cow",
    "PojoInnerGrown", "PojoObjectGone", "PojoObjectSame", "PojoList",
)  # fmt: skip


def _changed(name: str, **more: Any) -> State:
    """Return the state of a class of ``evolved/Changed.java``."""
    java = f"evolved.Changed${name}"
    declared = java.partition(":")[0]
    element = Type("", f"KRYO<{declared}>" if name.startswith("Kryo") else declared, ())
    return State(element=element, fill=java, **more)


def _changed_classes() -> Iterator[Pair]:
    for name in _CHANGED:
        some = _changed(name)
        yield Pair(f"changed-{name}", some, some)
    for name in _CHANGED_IN_ALL:
        for kind in ("list", "operator-list", "union", "broadcast"):
            some = _changed(name, kind=kind)
            yield Pair(f"changed-{name}-in-{kind}", some, some)
        mapped = _changed(name, kind="map", map_key=Type("STRING", "STRING", ()))
        yield Pair(f"changed-{name}-in-map", mapped, mapped)


#: Classes of ``evolved/Serialized.java``, which Kryo leaves to Java serialization.
_SERIALIZED: Final = (
    "Same", "FieldsChanged", "UidChanged", "Computed", "ComputedSame", "Retyped", "Boxed", "NoMore", "ToRecord", "LostConstant",
    "Widened", "NewBase", "LostBase", "NewPlainBase", "WithoutConstructor", "Nested", "Resolved", "Enum", "Transient",
)  # fmt: skip
_JAVA: Final = "org.apache.flink.api.java.typeutils.runtime.kryo.JavaSerializer"


def _serialized() -> Suite:
    """Return states of classes that Java serialization writes."""
    names = [f"evolved.Serialized${name}" for name in _SERIALIZED]
    states = [State(element=Type("", f"KRYO<{name}>", ()), fill=name) for name in names]
    entries = [f"{name}: {{type: kryo, kryo-type: default, class: {_JAVA}}}" for name in names]
    settings = {"pipeline.serialization-config": f"[{', '.join(entries)}]"}
    pairs = tuple(Pair(f"serialized-{n}", s, s) for n, s in zip(_SERIALIZED, states, strict=True))
    return Suite(name="java-serialized", pairs=pairs, before=settings, after=settings)


def _with_avro() -> Iterator[Pair]:
    some = _class("KryoSame")
    yield Pair("with-avro-value", some, some)
    listed = replace(some, kind="operator-list")
    yield Pair("with-avro-operator-list", listed, listed)


SUITES: Final = (
    Suite(name="states", pairs=PAIRS),
    Suite(name="classes", pairs=tuple(_evolved())),
    *_jobs(),
    Suite(name="modes", pairs=MODES),
    Suite(name="described-subclasses", pairs=SUBCLASSES),
    Suite(name="hidden-subclasses", pairs=tuple(_hidden())),
    Suite(name="changed-classes", pairs=tuple(_changed_classes())),
    _serialized(),
    Suite(name="kinds", pairs=KINDS, by_jars=True),
    Suite(name="kind-keys", pairs=KEYS, by_jars=True),
    Suite(name="kind-serializers", pairs=SERIALIZERS, by_jars=True),
    # The heap backend refuses a generic Avro record only when it is written, because it still has its old schema.
    Suite(name="avro", pairs=AVRO_PAIRS, libraries=(FLINK_AVRO,), again=True),
    # A job with flink-avro registers a serializer with Kryo.
    Suite(name="kryo-with-avro", pairs=tuple(_with_avro()), libraries=(FLINK_AVRO,)),
    Suite(name="messages", pairs=MESSAGE_PAIRS, libraries=(MESSAGES,), before=SETTINGS, after=SETTINGS),
)
