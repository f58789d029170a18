package harness

import com.clearspring.analytics.stream.cardinality.HyperLogLogPlus
import java.util.{ArrayList, Arrays, Base64, Collections, HashMap, List => JavaList, Map => JavaMap, TreeMap}
import org.apache.flink.api.common.ExecutionConfig
import org.apache.flink.api.common.functions.OpenContext
import org.apache.flink.api.common.state.{MapState, MapStateDescriptor, ValueState, ValueStateDescriptor}
import org.apache.flink.api.common.typeinfo.{TypeInformation, Types => FlinkTypes}
import org.apache.flink.api.java.typeutils.ListTypeInfo
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode
import pl.touk.nussknacker.engine.api.{Context => Variables}
import pl.touk.nussknacker.engine.flink.api.typeinfo.option.OptionTypeInfo
import pl.touk.nussknacker.engine.flink.typeinformation.{ConcreteCaseClassTypeInfo, FixedValueTypeInformationHelper}
import pl.touk.nussknacker.engine.flink.util.orderedmap.FlinkRangeMap.SortedMapFlinkRangeMap
import pl.touk.nussknacker.engine.flink.api.serialization.SerializerRegistrar
import pl.touk.nussknacker.engine.flink.util.transformer.aggregate.HyperLogLogPlusWrapper
import pl.touk.nussknacker.engine.process.util.{SpelHack, SpelMapHack}
import pl.touk.nussknacker.engine.process.typeinformation.internal.typedobject.{
  TypedJavaMapTypeInformation,
  TypedScalaMapTypeInformation
}
import scala.collection.JavaConverters._
import scala.collection.immutable.SortedMap

/** Keeps values of the types of Nussknacker's delays, unions with memory and aggregations. */
object NussknackerJob {
  private val variables: TypeInformation[Map[String, Any]] = TypedScalaMapTypeInformation(
    Map[String, TypeInformation[_]](
      "input" -> TypedJavaMapTypeInformation(Map("id" -> FlinkTypes.LONG, "name" -> FlinkTypes.STRING)),
      "names" -> new ListTypeInfo(FlinkTypes.STRING),
      "count" -> FlinkTypes.INT
    )
  ).asInstanceOf[TypeInformation[Map[String, Any]]]

  private def contexts(parents: TypeInformation[Variables]): TypeInformation[Variables] = ConcreteCaseClassTypeInfo[Variables](
    "id"            -> FlinkTypes.STRING,
    "variables"     -> variables,
    "parentContext" -> new OptionTypeInfo[Variables, Option[Variables]](parents)
  )

  val context: TypeInformation[Variables] = contexts(contexts(FixedValueTypeInformationHelper.nullValueTypeInfo[Variables]))
  val memory: TypeInformation[JavaMap[String, AnyRef]] = TypedJavaMapTypeInformation(
    Map("key" -> FlinkTypes.STRING, "left" -> FlinkTypes.LONG, "right" -> FlinkTypes.DOUBLE)
  )

  def contextOf(n: Long, parent: Option[Variables]): Variables = {
    val input = new HashMap[String, AnyRef]()
    input.put("id", Long.box(n))
    if (n % 2 == 1) input.put("name", s"größe $n")
    val names = if (n % 3 == 0) null else Arrays.asList(s"a$n", "b")
    Variables(s"context-$n", Map("input" -> input, "names" -> names, "count" -> Int.box(-n.toInt)), parent)
  }

  def memoryOf(n: Long): JavaMap[String, AnyRef] = {
    val found = new HashMap[String, AnyRef]()
    found.put("key", s"key-$n")
    if (n % 2 == 0) found.put("left", Long.box(1L << n)) else found.put("right", Double.box(n / 4.0))
    found
  }

  def sketch(n: Long): HyperLogLogPlusWrapper = {
    val values = new HyperLogLogPlus(10, 15)
    (0L to n * 3).foreach(i => values.offer(s"value $i"))
    new HyperLogLogPlusWrapper(values)
  }

  /** A sum, a list, the aggregates of a record, or a sketch of distinct values. */
  def aggregate(n: Long, i: Long): AnyRef = n % 4 match {
    case 0 => Long.box(n * i)
    case 1 => Collections.unmodifiableList(Arrays.asList(s"a$i", s"b$i"))
    case 2 => Collections.unmodifiableMap[String, AnyRef](memoryOf(n))
    case _ => sketch(n + i)
  }

  /** A value without null entries in maps: a map that was written and read has all fields, and others only those that were set. */
  private def present(value: Any): Any = value match {
    case map: JavaMap[_, _] =>
      val found = new TreeMap[String, Any]()
      for ((name, item) <- map.asScala if item != null) found.put(name.toString, present(item))
      found
    case sketch: HyperLogLogPlusWrapper => Base64.getEncoder.encodeToString(sketch.wrapped.getBytes)
    case other                          => other
  }

  private def plain(context: Variables): JavaMap[String, Any] = {
    val found = new TreeMap[String, Any]()
    found.put("id", context.id)
    found.put("variables", present(context.variables.asJava))
    found.put("parent", context.parentContext.map(plain).orNull)
    found
  }

  private[harness] final class Keeper(run: String, writes: Boolean) extends KeyedNumbers.Keeper(run, writes) {
    @transient private var delayed: MapState[java.lang.Long, JavaList[Variables]]    = _
    @transient private var memo: ValueState[JavaMap[String, AnyRef]]              = _
    @transient private var distinct: ValueState[HyperLogLogPlusWrapper]           = _
    @transient private var sums: ValueState[SortedMap[Long, AnyRef]]    = _

    override def open(openContext: OpenContext): Unit = {
      delayed = getRuntimeContext.getMapState(new MapStateDescriptor("delayed", FlinkTypes.LONG, new ListTypeInfo(context)))
      memo = getRuntimeContext.getState(new ValueStateDescriptor("memo", memory))
      val sketches = TypeInformation.of(classOf[HyperLogLogPlusWrapper])
      distinct = getRuntimeContext.getState(new ValueStateDescriptor("distinct", sketches))
      val longs  = FlinkTypes.LONG.asInstanceOf[TypeInformation[Long]]
      val ranges = SortedMapFlinkRangeMap.typeInformation[Long, AnyRef](longs, FlinkTypes.GENERIC(classOf[AnyRef]))
      val config = new ExecutionConfig()
      implicitly[SerializerRegistrar[SpelHack]].registerIn(config)
      implicitly[SerializerRegistrar[SpelMapHack]].registerIn(config)
      sums = getRuntimeContext.getState(new ValueStateDescriptor("sums", ranges.createSerializer(config)))
    }

    override private[harness] def write(key: String, n: Long): Unit = {
      val child = contextOf(n, Some(contextOf(n + 1, None)))
      delayed.put(60000L * n, new ArrayList(Arrays.asList(child, contextOf(n, None))))
      delayed.put(1L, new ArrayList())
      distinct.update(sketch(n))
      memo.update(memoryOf(n))
      sums.update(SortedMap((0L to n % 3).map(i => (60000L * i) -> aggregate(n, i)): _*))
    }

    override private[harness] def read(): JavaMap[String, AnyRef] = {
      val found = new TreeMap[String, Any]()
      val lists = new TreeMap[String, AnyRef]()
      for (entry <- delayed.entries.asScala)
        lists.put(entry.getKey.toString, entry.getValue.asScala.map(plain).asJava)
      found.put("delayed", lists)
      found.put("distinct", present(distinct.value()))
      found.put("memo", present(memo.value()))
      val buckets = new TreeMap[String, AnyRef]()
      for ((start, sum) <- sums.value()) buckets.put(start.toString, sum)
      found.put("sums", present(buckets))
      found.asInstanceOf[JavaMap[String, AnyRef]]
    }
  }

  def run(cluster: Cluster, request: JsonNode): JavaMap[String, AnyRef] =
    KeyedNumbers.run(cluster, request, 10, new KeyedNumbers.Make {
      override def of(run: String, write: Boolean): KeyedNumbers.Keeper = new Keeper(run, write)
    })
}
