package harness

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import org.apache.flink.api.common.functions.{FlatMapFunction, MapFunction}
import org.apache.flink.api.common.state.ValueStateDescriptor
import org.apache.flink.api.common.typeinfo.{TypeInformation, Types => JavaTypes}
import org.apache.flink.api.java.functions.KeySelector
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode
import org.apache.flink.streaming.api.functions.KeyedProcessFunction
import org.apache.flink.util.Collector
import org.apache.flinkx.api.serializers._

case class Item(id: Int, name: String)
case class Size(width: Int, height: Long)
case class Nested(item: Item, size: Size, note: Option[String])
case class Empty()
sealed trait Shape extends Product
case class Circle(radius: Double) extends Shape
case class Box(size: Size, label: Option[String]) extends Shape
case object Point extends Shape
sealed trait Color extends Product
case object Red extends Color
case object Green extends Color

/** A state: its name, the type that flink-scala-api derives, and its value for the n-th key. */
final class Case[T](val name: String, val info: TypeInformation[T], val value: Int => T) extends Serializable

object Case {
  def apply[T](name: String)(value: Int => T)(implicit info: TypeInformation[T]): Case[T] = new Case[T](name, info, value)
}

trait Cases { def cases: Seq[Case[_]] }

/** Types that all releases know. */
object AllCases extends Cases {
  def item(n: Int): Item = Item(n * 7919, s"item $n")

  override def cases: Seq[Case[_]] = Seq(
    Case("case_class")(item),
    Case("fixed_size")(n => Size(n, 1L << n)),
    Case("nested")(n => Nested(item(n), Size(-n, n), if (n % 2 == 0) None else Some(s"note $n"))),
    Case("empty")(_ => Empty()),
    Case("tuple")(n => (s"t$n", n)),
    Case("list")(n => List.tabulate(n % 4)(i => item(i))),
    Case("seq")(n => Seq.tabulate(n % 3)(i => i + n)),
    Case("vector")(n => Vector.tabulate(n % 3)(i => s"v$i")),
    Case("set")(n => Set.tabulate(n % 3)(i => i.toLong)),
    Case("array")(n => Array.tabulate(n % 3)(i => item(i))),
    Case("map")(n => Map.tabulate(n % 3)(i => s"k$i" -> item(i))),
    Case("option")(n => if (n % 3 == 0) None else Some(item(n)): Option[Item]),
    Case("either")(n => if (n % 2 == 0) Left(s"l$n") else Right(n): Either[String, Int]),
    Case("coproduct")(n => shape(n)),
    Case("coproducts")(n => List.tabulate(n % 4)(shape)),
    Case("objects")(n => (if (n % 2 == 0) Red else Green): Color),
    Case("big_int")(n => BigInt(n - 5) << (n * 8)),
    Case("big_decimal")(n => BigDecimal(BigInt(n * 12345 - 7), n % 5)),
    Case("uuid")(n => new UUID(n * 0x123456789L, -n)),
    Case("unit")(_ => ())
  )

  def shape(n: Int): Shape = n % 3 match {
    case 0 => Circle(n / 4.0)
    case 1 => Box(Size(n, n), if (n % 2 == 0) None else Some("box"))
    case _ => Point
  }

  private implicit def tabulate(map: Map.type): Tabulate = new Tabulate

  private implicit class Sets(set: Set.type) {
    def tabulate[T](n: Int)(f: Int => T): Set[T] = (0 until n).map(f).toSet
  }

  final class Tabulate {
    def tabulate[K, V](n: Int)(f: Int => (K, V)): Map[K, V] = (0 until n).map(f).toMap
  }
}

/** Values as JSON, in the form of the columns: structs of a case class have the fields _1, _2 and so on. */
object Render {
  /** Values of other files. */
  @volatile var more: PartialFunction[Any, Object] = PartialFunction.empty

  def apply(value: Any): Object = value match {
    case null                   => null
    case other if more.isDefinedAt(other) => more(other)
    case shape: Shape           => struct("kind" -> name(shape), "Circle" -> only[Circle](shape), "Box" -> only[Box](shape))
    case color: Color           => name(color)
    case Some(inner)            => apply(inner)
    case None                   => null
    case Left(inner)            => struct("left" -> apply(inner), "right" -> null)
    case Right(inner)           => struct("left" -> null, "right" -> apply(inner))
    case _: scala.runtime.BoxedUnit => null
    case map: scala.collection.Map[_, _] => list(map.toSeq.map { case (k, v) => list(Seq(apply(k), apply(v))) })
    case array: Array[_]        => list(array.toSeq.map(apply))
    case values: Iterable[_]    => list(values.toSeq.map(apply))
    case number: BigInt         => number.toString
    case number: BigDecimal     => number.bigDecimal.toPlainString
    case id: UUID               => id.toString.replace("-", "")
    case zone: java.time.ZoneOffset => Integer.valueOf(zone.getTotalSeconds)
    case zone: java.time.ZoneId => zone.getId
    case time: java.time.ZonedDateTime =>
      struct("local" -> time.toLocalDateTime.toString, "zone" -> time.getZone.getId)
    case time: java.time.OffsetDateTime =>
      struct("local" -> time.toLocalDateTime.toString, "offset_seconds" -> apply(time.getOffset))
    case d: scala.concurrent.duration.FiniteDuration => struct("length" -> apply(d.length), "unit" -> d.unit.name)
    case d: scala.concurrent.duration.Duration =>
      struct("kind" -> (if (d.toUnit(java.util.concurrent.TimeUnit.DAYS) > 0) "infinite" else "negative infinite"), "length" -> null, "unit" -> null)
    case fields: Product        => product(fields)
    case other: Object          => other
  }

  def product(fields: Product): Object =
    struct(fields.productIterator.zipWithIndex.map { case (v, i) => s"_${i + 1}" -> apply(v) }.toSeq: _*)

  def struct(fields: (String, Object)*): Object = {
    val out = new java.util.LinkedHashMap[String, Object]
    fields.foreach { case (name, value) => out.put(name, value) }
    out
  }

  private def list(values: Seq[Object]): Object = java.util.Arrays.asList(values: _*)

  def name(value: Product): String = value.productPrefix

  def only[T](value: Any)(implicit tag: scala.reflect.ClassTag[T]): Object = value match {
    case tag(found: Product) => product(found)
    case _                   => null
  }
}

object Seen {
  /** By run: for each key, its values by state. */
  val runs = new ConcurrentHashMap[String, ConcurrentHashMap[String, Object]]
}

/** Puts the values of each key into its states, or reports the values that it finds. */
final class Keeper(run: String, write: Boolean) extends KeyedProcessFunction[Item, java.lang.Long, java.lang.Long] {
  @transient private lazy val cases: Seq[Case[_]] = FlinkxJob.cases

  override def processElement(
      n: java.lang.Long,
      context: KeyedProcessFunction[Item, java.lang.Long, java.lang.Long]#Context,
      out: Collector[java.lang.Long]
  ): Unit = {
    val seen = Seen.runs.get(run)
    val key  = n.toString
    if (seen != null && !seen.containsKey(key)) {
      val found = new java.util.LinkedHashMap[String, Object]
      cases.foreach(c => found.put(c.name, visit(c, n.intValue)))
      seen.put(key, found)
    }
  }

  private def visit[T](c: Case[T], n: Int): Object = {
    val state = getRuntimeContext.getState(new ValueStateDescriptor[T](c.name, c.info))
    if (write) state.update(c.value(n))
    Render(state.value())
  }
}

final class Numbers(keys: Int) extends MapFunction[java.lang.Long, java.lang.Long] {
  override def map(n: java.lang.Long): java.lang.Long = {
    Thread.sleep(2)
    n % keys
  }
}

final class ByItem extends KeySelector[java.lang.Long, Item] {
  override def getKey(n: java.lang.Long): Item = AllCases.item(n.intValue)
}

object FlinkxJob {
  def cases: Seq[Case[_]] = AllCases.cases ++ Seq("NewerCases", "EnumCases").flatMap(more)

  private def more(name: String): Seq[Case[_]] =
    try Class.forName(s"harness.$name$$").getField("MODULE$").get(null).asInstanceOf[Cases].cases
    catch { case _: ClassNotFoundException => Nil }

  /** Runs with {@code write} or from a {@code snapshot} until all keys were seen; takes a {@code savepoint}. */
  def run(cluster: Cluster, request: JsonNode): java.util.Map[String, Object] = {
    val run  = UUID.randomUUID().toString
    val keys = request.path("keys").asInt(20)
    val seen = new ConcurrentHashMap[String, Object]
    Seen.runs.put(run, seen)
    val snapshot = if (request.hasNonNull("snapshot")) request.get("snapshot").asText() else null
    val env      = Cluster.environment(cluster.configuration(request))
    env.setParallelism(request.path("parallelism").asInt(2))
    env.setMaxParallelism(request.path("max_parallelism").asInt(128))
    env
      .fromSequence(0, Long.MaxValue / 2)
      .setParallelism(1)
      .uid(s"numbers-$run")
      .map(new Numbers(keys))
      .returns(JavaTypes.LONG)
      .setParallelism(1)
      .uid(s"modulo-$run")
      .keyBy(new ByItem, implicitly[TypeInformation[Item]])
      .process(new Keeper(run, snapshot == null))
      .returns(JavaTypes.LONG)
      .uid(request.path("uid").asText("keeper"))
    val job = cluster.submit(env, snapshot, true)
    try {
      cluster.await(job, "all keys to be seen", () => seen.size == keys)
      val out = new java.util.LinkedHashMap[String, Object]
      if (request.hasNonNull("savepoint")) {
        val format = request.path("format").asText("CANONICAL")
        out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), format))
      }
      out.put("values", seen)
      out
    } finally {
      cluster.cancel(job)
      Seen.runs.remove(run)
    }
  }
}
