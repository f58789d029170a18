"""Kryo compatibility: registrations, and values that the Kryo of another release wrote.

Flink compares neither the release of Kryo nor the fields of a class (``KryoSerializerSnapshot.resolveSchemaCompatibility``): Flink 2.x restores
values of Flink 1.x, and Kryo 5 reads them correctly, wrongly or not at all. The tables below were measured: the Kryo of Flink 2.3 read bytes
of Kryo 2, type by type.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from statetool.compatibility.verdicts import CheckWarning, Level, Remedy, Resolution, combine, migration_remedy
from statetool.serializers.kryo import model
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.typeutils.optional_map import FLINK_1_OBJECT
from statetool.types.declared import TypeContext
from statetool.types.java import JavaType, from_binary_name

#: Registered under this name whether or not the job has Avro, with a serializer that depends on it.
_AVRO: Final = "org.apache.avro.generic.GenericData$Array"
_KRYO_5: Final = 5
#: Types of the JDK whose values may have objects of user classes.
HOLDERS: Final = model.LIST_LIKE | model.MAP_LIKE | model.HOLDERS | model.OPEN_TYPES | model.IMPLEMENTATIONS.keys()


class Reading(IntEnum):
    """How Kryo 5 reads values of a type that Kryo 2 wrote, best first."""

    EQUAL = 0
    #: The class decides, or the type was not measured.
    UNKNOWN = 1
    #: Values of the same width, in another byte order.
    OTHER_VALUE = 2
    #: Another value, or none, depending on the bytes.
    UNRELIABLE = 3
    FAILS = 4


_EQUAL: Final = frozenset((
    "int", "long", "byte", "boolean", "int[]", "java.lang.String", "java.lang.String[]", "java.math.BigDecimal",
    "java.math.BigInteger", "java.net.URI", "java.sql.Timestamp", "java.util.Collections$EmptyList",
    "java.util.Collections$SingletonList", "java.util.Currency", "java.util.Date",
))  # fmt: skip
_OTHER_VALUE: Final = frozenset(("double", "float", "short", "char", "double[]"))
_UNRELIABLE: Final = frozenset((
    "java.time.Instant", "java.time.Period", "java.util.ArrayDeque", "java.util.ArrayList", "java.util.BitSet",
    "java.util.Collection", "java.util.Deque", "java.util.HashMap", "java.util.HashSet", "java.util.LinkedHashMap",
    "java.util.LinkedHashSet", "java.util.LinkedList", "java.util.List", "java.util.Map", "java.util.Set",
    "java.util.SortedMap", "java.util.SortedSet", "java.util.TreeMap", "java.util.TreeSet",
))  # fmt: skip
_FAILS: Final = frozenset((
    "java.net.URL", "java.time.Duration", "java.time.LocalDate", "java.time.LocalDateTime", "java.time.ZonedDateTime",
    "java.util.Locale", "java.util.Optional", "java.util.UUID",
))  # fmt: skip
_READINGS: Final = (
    (Reading.EQUAL, _EQUAL),
    (Reading.OTHER_VALUE, _OTHER_VALUE),
    (Reading.UNRELIABLE, _UNRELIABLE),
    (Reading.FAILS, _FAILS),
)
_MIGRATE: Final = migration_remedy(
    "Write a copy of the snapshot in which Kryo 5 wrote the values. Their classes come from the job's jar (--jar), or are declared (--declare)."
)


def resolve_kryo(old: KryoSerializer, new: KryoSerializer) -> Resolution:
    """Check whether Kryo of the new job reads the values that the old one wrote, of the same class."""
    parts = [_registrations(old, new)]
    if new.context.tried:
        return combine([*parts, _instances(old, new.context.kryo, _MIGRATE)])
    if old.is_java_serialized:
        parts.append(_of_java(old.type_class))
    elif old.context.kryo == new.context.kryo:
        parts.append(_of_fields(old.type_class))
    else:
        parts.append(resolve_releases(old, new.context.kryo))
    return combine(parts)


def _registrations(old: KryoSerializer, new: KryoSerializer) -> Resolution:
    """Check the registrations. Flink refuses only those whose class cannot be loaded (``hasMissingKeys``)."""
    before = {e.name: e.value for m in old.maps for e in m if e.name != _AVRO}
    after = {e.name: e.value for m in new.maps for e in m}
    level = Level.AS_IS if old.maps == new.maps else Level.RECONFIGURED
    parts = [Resolution(level)]
    if (gone := sorted(before.keys() - after.keys())) and not new.context.tried:
        names = ", ".join(gone)
        parts.append(
            Resolution.because(
                Level.UNKNOWN,
                f"The new job does not register {names} with Kryo. Flink refuses this only if its class path lacks"
                f" {'the class' if len(gone) == 1 else 'one of the classes'}.",
                f"Register {names} as before, or keep {'it' if len(gone) == 1 else 'them'} in the job's jar.",
            )
        )
    if other := sorted(n for n, value in before.items() if n in after and after[n] != value):
        reason = (
            f"The new job registers {', '.join(other)} with another Kryo serializer, which may not read the old values."
        )
        warning = CheckWarning(kind="may_change", message=reason, in_reason=True)
        parts.append(Resolution.by_run(reason, warning))
    return combine(parts)


def _instances(old: KryoSerializer, kryo: int | None, remedy: Remedy) -> Resolution:
    """Check the registrations of serializer objects, which Java serialization wrote with a class that Flink 2.x does not have."""
    names = sorted(e.name for m in old.maps for e in m if FLINK_1_OBJECT in (e.value or b""))
    if not names or kryo != _KRYO_5:
        return Resolution(Level.AS_IS)
    reason = f"Flink 2.x cannot read the serializer object that Flink 1.x registered with Kryo for {', '.join(names)}."
    if _AVRO in names:
        reason += " The one of Avro comes from flink-avro."
    return Resolution.because(Level.INCOMPATIBLE, reason, remedy)


def _of_fields(type_class: str) -> Resolution:
    """Return the resolution of values of a class that Kryo of the same release wrote."""
    if type_class.startswith(("java.", "scala.")):
        return Resolution(Level.AS_IS)
    reason = (
        f"Kryo does not store the fields of {type_class}: the values are read correctly only if the class is unchanged."
    )
    return _if_unchanged(reason)


def resolve_holder(type_class: str) -> Resolution:
    """Return the resolution of values of a type of the JDK that have objects of user classes, or may have some."""
    return _if_unchanged(
        f"Values of {type_class} may have objects of classes whose fields Kryo does not store: they are read correctly only if these"
        " classes are unchanged."
    )


def _if_unchanged(reason: str) -> Resolution:
    remedy = (
        "Nothing needs to be done if the class is unchanged."
        " If the class changed, give the state a type that evolves (POJO, Avro), and write its values with that type."
    )
    return Resolution.because(
        Level.UNKNOWN, reason, remedy, CheckWarning(kind="may_change", message=reason, in_reason=True)
    )


def _of_java(type_class: str) -> Resolution:
    """Return the resolution of values of a class that Java serialization wrote."""
    reason = f"Java serialization reads the values of {type_class} only if the class still has the same serialVersionUID and types of fields."
    remedy = "Pass the jar of the new job with --jar-b: the check then compares its classes with the values."
    return Resolution.because(
        Level.UNKNOWN, reason, remedy, CheckWarning(kind="may_change", message=reason, in_reason=True)
    )


def resolve_releases(old: KryoSerializer, kryo: int | None, remedy: Remedy = _MIGRATE) -> Resolution:
    """Check whether a release of Kryo reads values that another one wrote. ``kryo`` is 2 (Flink 1.x), 5 (Flink 2.x) or unknown."""
    wrote = old.context.kryo
    if kryo is None or wrote is None:
        reason = f"Which Kryo wrote or reads the values of {old.type_class} is unknown: Flink 1.x has Kryo 2, Flink 2.x has Kryo 5."
        warning = CheckWarning(kind="may_change", message=reason, in_reason=True)
        return Resolution.because(Level.UNKNOWN, reason, "Name it: load(kryo=2) or load(kryo=5).", warning)
    if (instances := _instances(old, kryo, remedy)).level is Level.INCOMPATIBLE:
        return instances
    if kryo == wrote:
        return Resolution(Level.AS_IS)
    if wrote != 2:
        reason = f"Flink 1.x cannot read values of {old.type_name} that the Kryo of Flink 2.x wrote."
        other = "Choose a release of 2.x, or bootstrap the state with another type."
        return Resolution.because(Level.INCOMPATIBLE, reason, other)
    kind = from_binary_name(old.type_class)
    reading = reading_of(kind, old.context)
    if reading == Reading.EQUAL:
        return Resolution(Level.AS_IS)
    wrong = [f"{path} ({t})" for path, t, r in _leaves(kind, old.context) if path and r > Reading.UNKNOWN]
    fields = f" Other or no values: {', '.join(wrong)}." if wrong else ""
    text = f"Kryo 2 (Flink 1.x) wrote the values of {old.type_class}, and Kryo 5 (Flink 2.x) reads"
    if reading == Reading.FAILS:
        return Resolution.because(Level.INCOMPATIBLE, f"{text} them as other values or fails.{fields}", remedy)
    if reading == Reading.OTHER_VALUE and not wrong:
        warning = CheckWarning(kind="may_change", message=f"{text} other values.", remedy=remedy)
        return Resolution.because(Level.AS_IS, warning.message, remedy, warning)
    known = reading > Reading.UNKNOWN
    reason = f"{text} {'other values or fails' if known else 'only some types correctly'}.{fields}"
    return Resolution.by_run(reason, CheckWarning(kind="may_change", message=reason, in_reason=True), remedy=remedy)


def reading_of(kind: JavaType, context: TypeContext) -> Reading:
    """Return how Kryo 5 reads values of a type that Kryo 2 wrote. A declared class is read as the worst of its fields.

    A class whose fields are all read correctly stays unknown: the declaration does not tell the fields that the new job has.
    """
    return max((r for _, _, r in _leaves(kind, context)), default=Reading.UNKNOWN)


def _leaves(kind: JavaType, context: TypeContext) -> Iterator[tuple[str, JavaType, Reading]]:
    """Yield a type, and the fields of declared classes, with the path of each."""
    todo, seen = [("", kind)], set()
    while todo:
        path, part = todo.pop(0)
        declared = context.find(part.name)
        if declared is not None and declared.kind == "record":
            yield path, part, Reading.UNKNOWN
            if part.name not in seen:
                seen.add(part.name)
                todo += [(f"{path}.{n}" if path else n, t) for n, t in declared.fields]
        elif declared is not None and declared.kind == "enum":
            yield path, part, Reading.EQUAL
        else:
            yield path, part, _measured(part)


def _measured(kind: JavaType) -> Reading:
    name = str(kind) if kind.is_array else kind.name
    return next((reading for reading, names in _READINGS if name in names), Reading.UNKNOWN)
