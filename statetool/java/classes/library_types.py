"""Classes that no job's jar has to contain, as Flink's type extraction sees them.

The sets were found by asking ``TypeInformation.of`` of Flink 1.20.5 and 2.3.0 for all classes of Java 17 and of Flink. What is not listed
here, and not in the job's jar, is unknown.
"""

from __future__ import annotations

from typing import Final

from statetool.types.type_information import TypeInformation, kryo, unknown

#: Packages of the JDK of whose classes only those below are not left to Kryo.
_JDK: Final = (
    "java.io.", "java.lang.", "java.math.", "java.net.", "java.nio.", "java.sql.", "java.text.", "java.time.", "java.util.",
)  # fmt: skip


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENUMS: Final = {
    "java.math.RoundingMode": "UP DOWN CEILING FLOOR HALF_UP HALF_DOWN HALF_EVEN UNNECESSARY",
    "java.time.DayOfWeek": "MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY",
    "java.time.Month": "JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER",
    "java.time.format.TextStyle": "FULL FULL_STANDALONE SHORT SHORT_STANDALONE NARROW NARROW_STANDALONE",
    "java.time.format.FormatStyle": "FULL LONG MEDIUM SHORT",
    "java.time.temporal.ChronoUnit": "NANOS MICROS MILLIS SECONDS MINUTES HOURS HALF_DAYS DAYS WEEKS MONTHS YEARS DECADES CENTURIES"
    " MILLENNIA ERAS FOREVER",
    "java.util.concurrent.TimeUnit": "NANOSECONDS MICROSECONDS MILLISECONDS SECONDS MINUTES HOURS DAYS",
    "java.lang.Thread$State": "NEW RUNNABLE BLOCKED WAITING TIMED_WAITING TERMINATED",
    "org.apache.flink.types.RowKind": "INSERT UPDATE_BEFORE UPDATE_AFTER DELETE",
}
#: Enums of the JDK whose constants are not listed, as they differ between its releases or hardly occur in state.
_OTHER_ENUMS: Final = _words(
    """
    java.io.ObjectInputFilter$Status java.lang.Character$UnicodeScript java.lang.Enum java.lang.ProcessBuilder$Redirect$Type
    java.lang.StackWalker$Option java.lang.System$Logger$Level java.lang.annotation.ElementType
    java.lang.annotation.RetentionPolicy java.lang.constant.DirectMethodHandleDesc$Kind
    java.lang.invoke.MethodHandles$Lookup$ClassOption java.lang.invoke.VarHandle$AccessMode java.lang.management.MemoryType
    java.lang.module.ModuleDescriptor$Exports$Modifier java.lang.module.ModuleDescriptor$Modifier
    java.lang.module.ModuleDescriptor$Opens$Modifier java.lang.module.ModuleDescriptor$Requires$Modifier
    java.net.Authenticator$RequestorType java.net.Proxy$Type java.net.StandardProtocolFamily
    java.net.http.HttpClient$Redirect java.net.http.HttpClient$Version java.nio.file.AccessMode java.nio.file.FileVisitOption
    java.nio.file.FileVisitResult java.nio.file.LinkOption java.nio.file.StandardCopyOption java.nio.file.StandardOpenOption
    java.nio.file.attribute.AclEntryFlag java.nio.file.attribute.AclEntryPermission java.nio.file.attribute.AclEntryType
    java.nio.file.attribute.PosixFilePermission java.sql.ClientInfoStatus java.sql.JDBCType java.sql.PseudoColumnUsage
    java.sql.RowIdLifetime java.text.Normalizer$Form java.text.NumberFormat$Style java.time.chrono.HijrahEra
    java.time.chrono.IsoEra java.time.chrono.MinguoEra java.time.chrono.ThaiBuddhistEra java.time.format.ResolverStyle
    java.time.format.SignStyle java.time.temporal.ChronoField java.time.zone.ZoneOffsetTransitionRule$TimeDefinition
    java.util.Formatter$BigDecimalLayoutForm java.util.Locale$Category java.util.Locale$FilteringMode
    java.util.Locale$IsoCountryCode java.util.stream.Collector$Characteristics
    """
)
#: A POJO if the cluster opens its package, otherwise an error.
_UNSURE: Final = "java.util.TimeZone"
#: Classes of libraries that Flink leaves to Kryo.
_LEFT_TO_KRYO: Final = frozenset(
    (
        *(f"org.apache.flink.table.data.{n}" for n in (
            "ArrayData", "DecimalData", "GenericArrayData", "GenericMapData", "GenericRowData", "MapData", "RawValueData", "RowData",
            "StringData", "TimestampData", "binary.BinaryRowData", "binary.BinaryStringData",
        )),
        *(f"org.apache.flink.{n}" for n in (
            "types.Row", "api.common.JobID", "core.fs.Path", "util.OutputTag", "configuration.Configuration", "configuration.MemorySize",
            "core.io.InputSplit", "runtime.state.VoidNamespace", "streaming.api.windowing.windows.TimeWindow",
            "streaming.api.windowing.windows.GlobalWindow", "streaming.runtime.streamrecord.StreamRecord",
        )),
        *(f"org.apache.avro.{n}" for n in (
            "generic.GenericRecord", "generic.IndexedRecord", "specific.SpecificRecord", "Schema", "util.Utf8",
        )),
        *(f"scala.{n}" for n in (
            "Option", "Some", "Tuple2", "Tuple3", "Tuple4", "Tuple5", "Symbol", "Enumeration$Value", "util.Either", "util.Left",
            "util.Right", "util.Try", "math.BigDecimal", "math.BigInt", "concurrent.duration.Duration",
            "concurrent.duration.FiniteDuration", "collection.Seq", "collection.Map", "collection.Set", "collection.immutable.List",
            "collection.immutable.Seq", "collection.immutable.Vector", "collection.immutable.Map", "collection.immutable.Set",
            "runtime.Null$",
        )),
        *(f"kotlin.{n}" for n in ("Pair", "Triple", "Unit", "ranges.IntRange", "ranges.LongRange")),
        *(f"kotlin.jvm.functions.Function{n}" for n in range(23)),
        "javax.management.ObjectName",
    )
)  # fmt: skip
#: Superclasses without fields that are written, and without methods like those of fields. The fields of collections are transient.
FIELDLESS: Final = _words(
    """
    java.lang.Object java.lang.Number java.lang.Record java.lang.Enum java.util.AbstractCollection java.util.AbstractList
    java.util.AbstractSet java.util.AbstractQueue java.util.AbstractSequentialList java.util.AbstractMap
    """
)
#: Superclasses of which no subclass is a POJO: their fields have no setters, or they write themselves.
_NEVER_POJOS: Final = _words(
    """
    java.lang.Thread java.lang.Throwable java.util.ArrayList java.util.LinkedList java.util.Vector java.util.Stack java.util.HashSet
    java.util.LinkedHashSet java.util.TreeSet java.util.ArrayDeque java.util.PriorityQueue java.util.HashMap java.util.LinkedHashMap
    java.util.TreeMap java.util.Hashtable java.util.Properties java.util.IdentityHashMap java.util.EnumMap java.util.BitSet
    java.util.Random java.util.concurrent.ConcurrentHashMap java.util.concurrent.CopyOnWriteArrayList
    """
)


def library_type(name: str) -> TypeInformation:
    """Return the serializer of a class that is not in the job's jar, and that has no serializer of Flink's own."""
    if (constants := _ENUMS.get(name)) is not None:
        return TypeInformation("enum", name, constants=tuple(constants.split()))
    if name in _LEFT_TO_KRYO or (name.startswith(_JDK) and name not in _OTHER_ENUMS and name != _UNSURE):
        return kryo(name)
    return unknown(f"{name} is not in the jar")


def is_never_pojo(superclass: str) -> bool:
    """Return True if no subclass of a class outside of the job's jar is a POJO."""
    is_exception = superclass.startswith("java.") and superclass.endswith(("Exception", "Error"))
    return is_exception or superclass in _NEVER_POJOS
