"""Layouts of common library serializers that a job registered or set as defaults: kryo-serializers (``de.javakaffee``) for Joda-Time, Guava
and wrapped collections, and those of Nussknacker for unmodifiable collections.

====================  ============================================================================================
Joda ``DateTime``     varlong millis, string chronology (empty: ISO), string zone
Joda ``LocalDate``    varint (year * 13 + month) * 32 + day, string chronology
``LocalDateTime``     varlong of the same times 86,400,000 plus milliseconds of the day, string chronology
``LocalTime``         varint milliseconds of the day, string chronology or null
``Interval``          varlong start, varlong end, string chronology
Guava list, set       varint n, n values; a map: an object ``HashMap``
wrapped collections   varint kind of the wrapper, the collection inside as a value
``HyperLogLogPlus``   i32 length and bytes
``SpelHack``          varint n, n values; ``SpelMapHack``: varint n, n times key and value
====================  ============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.serializers.kryo import wire
from statetool.serializers.kryo.codecs import avro
from statetool.serializers.kryo.codecs.scalars import INT32, STRING, Body, need_string, put_string
from statetool.serializers.kryo.model import Obj
from statetool.serializers.kryo.values import Args, ValueReader, ValueWriter
from statetool.serializers.typeutils.data_output import SKETCH
from statetool.types import Scalar, StructType, TimestampType

_KAFFEE: Final = "de.javakaffee.kryoserializers."
_NUSSKNACKER: Final = "pl.touk.nussknacker.engine.process.util."
_MILLIS: Final = TimestampType("ms", zoned=True)
_DAY_MS: Final = 86_400_000
_NANOS: Final = 1_000_000
_JODA: Final = "org.joda.time."
_CHRONOLOGY: Final = {"iBase": "Object", "iParam": "Object"}
_BUILDER: Final = _JODA + "tz.DateTimeZoneBuilder$"
_MEMORY: Final = "org.apache.flink.agents.runtime.memory.MemoryObjectImpl$"
#: Enums of libraries and their constants. Those of Flink Agents 0.1 to 0.3 are from its sources, as its jars were not available.
ENUMS: Final = {_MEMORY + "ItemType": "OBJECT VALUE"}
#: Classes of Flink Agents and Joda-Time that Kryo writes field by field if the job registered no serializer: name, fields, whether final.
RECORDS: Final[tuple[tuple[str, dict[str, str], bool], ...]] = (
    (_MEMORY + "MemoryItem", {"type": _MEMORY + "ItemType", "value": "Object", "subKeys": "Set<String>"}, True),
    *((f"{_JODA}{n}", {"iChronology": "Object", "iLocalMillis": "long"}, True) for n in ("LocalDate", "LocalDateTime", "LocalTime")),
    *((f"{_JODA}{n}", {"iMillis": "long"}, True) for n in ("Instant", "Duration")),
    (_JODA + "DateTime", {"iChronology": "Object", "iMillis": "long"}, True),
    (_JODA + "Interval", {"iChronology": "Object", "iEndMillis": "long", "iStartMillis": "long"}, True),
    (_JODA + "YearMonth", {"iChronology": "Object", "iValues": "int[]"}, True),
    (_JODA + "Period", {"iType": "Object", "iValues": "int[]"}, True),
    (_JODA + "PeriodType", {"iIndices": "int[]", "iName": "String", "iTypes": f"{_JODA}DurationFieldType[]"}, False),
    (_JODA + "DurationFieldType$StandardDurationFieldType", {"iName": "String", "iOrdinal": "byte"}, False),
    *((f"{_JODA}chrono.{n}Chronology", _CHRONOLOGY, True) for n in ("ISO", "Zoned")),
    (_JODA + "chrono.GregorianChronology", {**_CHRONOLOGY, "iMinDaysInFirstWeek": "int"}, True),
    (_JODA + "UTCDateTimeZone", {"iID": "String"}, True),
    (_JODA + "tz.CachedDateTimeZone", {"iID": "String", "iZone": "Object"}, False),
    (
        _JODA + "tz.FixedDateTimeZone",
        {"iID": "String", "iNameKey": "String", "iStandardOffset": "int", "iWallOffset": "int"},
        True,
    ),
    (
        _BUILDER + "PrecalculatedZone",
        {
            "iID": "String", "iNameKeys": "String[]", "iStandardOffsets": "int[]", "iTailZone": _BUILDER + "DSTZone",
            "iTransitions": "long[]", "iWallOffsets": "int[]",
        },
        True,
    ),
    (
        _BUILDER + "DSTZone",
        {
            "iEndRecurrence": _BUILDER + "Recurrence", "iID": "String", "iStandardOffset": "int",
            "iStartRecurrence": _BUILDER + "Recurrence",
        },
        True,
    ),
    (_BUILDER + "Recurrence", {"iNameKey": "String", "iOfYear": _BUILDER + "OfYear", "iSaveMillis": "int"}, True),
    (
        _BUILDER + "OfYear",
        {
            "iAdvance": "boolean", "iDayOfMonth": "int", "iDayOfWeek": "int", "iMillisOfDay": "int", "iMode": "char",
            "iMonthOfYear": "int",
        },
        True,
    ),
)  # fmt: skip


# ---- Joda-Time ----------------------------------------------------------------------------------------------------


def _read_date_time(g: ValueReader) -> tuple[Any, ...]:
    return wire.read_positive_long(g.c), need_string(g), need_string(g)


def _write_date_time(g: ValueWriter, value: Any) -> None:
    millis, chronology, zone = value
    wire.write_positive_long(g.out, millis)
    put_string(g, chronology)
    put_string(g, zone)


def _unpack_date(g: ValueReader, packed: int, start: int) -> tuple[int, int, int]:
    year, month, day = packed // (13 * 32), packed // 32 % 13, packed % 32
    if packed < 0 or not month or not day:
        raise g.c.fail(f"{packed} is not a date of Joda-Time", pos=start)
    return year, month, day


def _pack_date(year: Any, month: Any, day: Any) -> int:
    if not (year >= 0 and 1 <= month <= 12 and 1 <= day <= 31):
        raise EncodeError(f"{year}-{month}-{day} cannot be written as a date of Joda-Time")
    return int((year * 13 + month) * 32 + day)


def _read_date(g: ValueReader) -> tuple[Any, ...]:
    start = g.c.pos
    return *_unpack_date(g, wire.read_positive(g.c), start), need_string(g)


def _write_date(g: ValueWriter, value: Any) -> None:
    *date, chronology = value
    wire.write_positive(g.out, _pack_date(*date))
    put_string(g, chronology)


def _read_local(g: ValueReader) -> tuple[Any, ...]:
    start = g.c.pos
    days, millis = divmod(wire.read_positive_long(g.c), _DAY_MS)
    return *_unpack_date(g, days, start), millis * _NANOS, need_string(g)


def _write_local(g: ValueWriter, value: Any) -> None:
    *date, time, chronology = value
    wire.write_positive_long(g.out, _pack_date(*date) * _DAY_MS + _millis_of_day(time))
    put_string(g, chronology)


def _millis_of_day(nanos: Any) -> int:
    if nanos % _NANOS or not 0 <= nanos < _DAY_MS * _NANOS:
        raise EncodeError(f"{nanos} ns is not a time of day of Joda-Time, which has milliseconds")
    return int(nanos // _NANOS)


def _read_time(g: ValueReader) -> tuple[Any, ...]:
    start = g.c.pos
    millis = wire.read_positive(g.c)
    if not 0 <= millis < _DAY_MS:
        raise g.c.fail(f"{millis} ms is not a time of day", pos=start)
    return millis * _NANOS, wire.read_string(g.c)


def _write_time(g: ValueWriter, value: Any) -> None:
    time, chronology = value
    wire.write_positive(g.out, _millis_of_day(time))
    wire.write_string(g.out, chronology, g.gen)


def _read_interval(g: ValueReader) -> tuple[Any, ...]:
    return wire.read_positive_long(g.c), wire.read_positive_long(g.c), need_string(g)


def _write_interval(g: ValueWriter, value: Any) -> None:
    start, end, chronology = value
    wire.write_positive_long(g.out, start)
    wire.write_positive_long(g.out, end)
    put_string(g, chronology)


_DATE: Final = {"year": INT32, "month": INT32, "day": INT32}
#: Bodies that consist of one value, by serializer class.
BODIES: Final[dict[str, Body]] = {
    f"{_KAFFEE}jodatime.Joda{name}Serializer": Body(StructType.of(**fields), read, write)
    for name, fields, read, write in (
        ("DateTime", {"millis": _MILLIS, "chronology": STRING, "zone": STRING}, _read_date_time, _write_date_time),
        ("LocalDate", {**_DATE, "chronology": STRING}, _read_date, _write_date),
        ("LocalDateTime", {**_DATE, "time": Scalar("time"), "chronology": STRING}, _read_local, _write_local),
        ("LocalTime", {"time": Scalar("time"), "chronology": STRING}, _read_time, _write_time),
        ("Interval", {"start": _MILLIS, "end": _MILLIS, "chronology": STRING}, _read_interval, _write_interval),
    )
}
BODIES[f"{avro.UTILS}$AvroSchemaSerializer"] = avro.SCHEMA


def _read_sketch(g: ValueReader) -> bytes:
    return g.c.take(int(wire.read_fixed(g.c, g.gen, "i")), "a sketch")


def _write_sketch(g: ValueWriter, value: Any) -> None:
    wire.write_fixed(g.out, g.gen, "i", len(value))
    g.out += value


#: Bodies that consist of one value, by class: Nussknacker's sketch of distinct values writes itself (``KryoSerializable``).
CLASSES: Final[dict[str, Body]] = {SKETCH: Body(Scalar("binary"), _read_sketch, _write_sketch)}


# ---- collections --------------------------------------------------------------------------------------------------

_WRAPPERS: Final = ("Collection", "RandomAccessList", "List", "Set", "SortedSet", "Map", "SortedMap")
ReadBody = Callable[[ValueReader, str, Args], Any]
WriteBody = Callable[[ValueWriter, Obj, Args], None]


def _read_counted(g: ValueReader, name: str, args: Args) -> Any:
    start = g.c.pos
    n = g.c.varint()
    if n > g.c.left:
        raise g.c.fail(f"{n} elements do not fit the {g.c.left} bytes left", pos=start)
    return [g.value() for _ in range(n)]


def _write_counted(g: ValueWriter, obj: Obj, args: Args) -> None:
    g.out.varint(len(obj.value))
    for item in obj.value:
        g.value(item)


def _read_map(g: ValueReader, name: str, args: Args) -> Any:
    return g.final("java.util.HashMap")


def _write_map(g: ValueWriter, obj: Obj, args: Args) -> None:
    g.object(Obj("java.util.HashMap", obj.value))


def _read_pairs(g: ValueReader, name: str, args: Args) -> Any:
    start = g.c.pos
    n = g.c.varint()
    if 2 * n > g.c.left:
        raise g.c.fail(f"{n} entries do not fit the {g.c.left} bytes left", pos=start)
    return [(g.value(), g.value()) for _ in range(n)]


def _write_pairs(g: ValueWriter, obj: Obj, args: Args) -> None:
    g.out.varint(len(obj.value))
    for pair in obj.value:
        for part in pair:
            g.value(part)


def _wrapper_kind(name: str) -> int:
    _, _, kind = name.partition("$")
    for prefix in ("Unmodifiable", "Synchronized"):
        if kind.removeprefix(prefix) in _WRAPPERS:
            return _WRAPPERS.index(kind.removeprefix(prefix))
    raise EncodeError(f"{name} is not a wrapper that kryo-serializers knows")


def _read_wrapped(g: ValueReader, name: str, args: Args) -> Any:
    start = g.c.pos
    kind = g.c.varint()
    if kind >= len(_WRAPPERS) or not name.endswith(_WRAPPERS[kind]):
        raise g.c.fail(f"kind {kind} of a wrapper after its class {name}", pos=start)
    inner = g.value()
    if inner is None:
        raise g.c.fail("a wrapper of no collection", pos=start)
    return inner


def _write_wrapped(g: ValueWriter, obj: Obj, args: Args) -> None:
    g.out.varint(_wrapper_kind(obj.cls))
    g.value(obj.value)


_DATUM: Final[tuple[ReadBody, WriteBody]] = avro.read_datum, avro.write_datum
_COUNTED: Final[tuple[ReadBody, WriteBody]] = _read_counted, _write_counted
WRAPPED: Final[tuple[ReadBody, WriteBody]] = _read_wrapped, _write_wrapped
_MAP: Final[tuple[ReadBody, WriteBody]] = _read_map, _write_map
_PAIRS: Final[tuple[ReadBody, WriteBody]] = _read_pairs, _write_pairs
#: Those whose elements are pairs of key and value.
MAPS: Final = (_MAP, _PAIRS)
#: Readers and writers of bodies with elements, by serializer class.
CONTAINERS: Final[dict[str, tuple[ReadBody, WriteBody]]] = {
    f"{_KAFFEE}guava.ImmutableListSerializer": _COUNTED,
    f"{_KAFFEE}guava.ImmutableSetSerializer": _COUNTED,
    f"{_KAFFEE}guava.ImmutableMapSerializer": _MAP,
    f"{_KAFFEE}UnmodifiableCollectionsSerializer": WRAPPED,
    f"{_KAFFEE}SynchronizedCollectionsSerializer": WRAPPED,
    f"{_NUSSKNACKER}SpelHack": _COUNTED,
    f"{_NUSSKNACKER}SpelMapHack": _PAIRS,
    f"{avro.UTILS}$AvroGenericDataArraySerializer": _DATUM,
    f"{avro.UTILS}$AvroGenericRecordSerializer": _DATUM,
}


def superclasses(name: str) -> tuple[str, ...]:
    """Return the superclasses and interfaces of a library class to which default serializers can be assigned."""
    if name.startswith("java.util.Collections$"):
        wrapper = name.partition("$")[2]
        for prefix in ("Unmodifiable", "Synchronized"):
            if wrapper.startswith(prefix):
                return tuple(
                    f"java.util.Collections${prefix}{n}"
                    for n in (("Map",) if wrapper.endswith("Map") else ("Collection", "List", "Set"))
                    if n in ("Map", "Collection") or (wrapper.endswith(n) and wrapper != prefix + n)
                )
    if name.startswith("com.google.common.collect."):
        kinds = {"ImmutableList": "ImmutableList", "ImmutableSet": "ImmutableSet"}
        kinds |= {
            "ImmutableMap": "ImmutableMap",
            "ImmutableBiMap": "ImmutableMap",
            "ImmutableSortedSet": "ImmutableSet",
        }
        return tuple(f"com.google.common.collect.{c}" for suffix, c in kinds.items() if name.endswith(suffix))
    return ()
