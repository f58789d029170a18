package harness

import java.time.{LocalDateTime, OffsetDateTime, ZoneId, ZoneOffset, ZonedDateTime}
import java.util.concurrent.TimeUnit
import org.apache.flink.api.common.typeinfo.TypeInformation
import org.apache.flinkx.api.serializer.OrderingTypeInfo
import org.apache.flinkx.api.serializers._
import scala.collection.immutable.{SortedMap, SortedSet}
import scala.collection.mutable
import scala.concurrent.duration.{Duration, FiniteDuration}

/** Types that releases since 2.0 know, and null case classes. */
object NewerCases extends Cases {
  implicit val ints: TypeInformation[Ordering[Int]]       = OrderingTypeInfo.DefaultIntOrderingInfo
  implicit val strings: TypeInformation[Ordering[String]] = OrderingTypeInfo.DefaultStringOrderingInfo

  private val units = TimeUnit.values
  private val local = LocalDateTime.of(2026, 3, 29, 2, 30)

  override def cases: Seq[Case[_]] = Seq(
    Case("null_case_class")(n => Nested(if (n % 2 == 0) null else AllCases.item(n), null, None)),
    Case("nulls")(n => List(Size(n, n), null)),
    Case("array_deque")(n => mutable.ArrayDeque.tabulate(n % 3)(i => i)),
    Case("buffer")(n => mutable.Buffer.tabulate(n % 3)(i => s"b$i")),
    Case("queue")(n => mutable.Queue.tabulate(n % 3)(i => i.toLong)),
    Case("mutable_set")(n => mutable.Set.from(Seq.tabulate(n % 3)(i => i))),
    Case("mutable_map")(n => mutable.Map.from(Seq.tabulate(n % 3)(i => s"k$i" -> i))),
    Case("sorted_set")(n => SortedSet.from(Seq.tabulate(n % 4)(i => s"s${9 - i}"))),
    Case("sorted_map")(n => SortedMap.from(Seq.tabulate(n % 4)(i => (9 - i) -> s"v$i"))),
    Case("mutable_sorted_set")(n => mutable.SortedSet.from(Seq.tabulate(n % 4)(i => 9 - i))),
    Case("mutable_sorted_map")(n => mutable.SortedMap.from(Seq.tabulate(n % 4)(i => s"k${9 - i}" -> i))),
    Case("finite_duration")(n => FiniteDuration(n - 9, units(n % units.length))),
    Case("duration")(n => duration(n)),
    Case("zone_id")(n => ZoneId.of(if (n % 2 == 0) "Europe/Paris" else "+02:00")),
    Case("zone_offset")(n => ZoneOffset.ofHoursMinutes(n - 10, 0)),
    Case("zoned_date_time")(n => ZonedDateTime.of(local.plusHours(n + 1), ZoneId.of("Europe/Paris"))),
    Case("offset_date_time")(n => OffsetDateTime.of(local.plusHours(n), ZoneOffset.ofHours(n % 5)))
  )

  private def duration(n: Int): Duration = n % 5 match {
    case 0 => Duration.Inf
    case 1 => Duration.MinusInf
    case 2 => null
    case _ => FiniteDuration(n, units(n % units.length))
  }
}
