package jobs

import org.apache.flink.api.common.functions.{OpenContext, RichFlatMapFunction}
import org.apache.flink.api.common.state.{ValueState, ValueStateDescriptor}
import org.apache.flink.api.common.typeinfo.TypeInformation
import org.apache.flink.api.java.functions.KeySelector
import org.apache.flink.api.java.typeutils.GenericTypeInfo
import org.apache.flink.api.scala._
import org.apache.flink.streaming.api.datastream.DataStream
import org.apache.flink.util.Collector

/** Stores a value per key, and shows those that it finds. */
class Keep[T <: AnyRef](make: Int => T, show: T => String)(implicit info: TypeInformation[T]) extends RichFlatMapFunction[String, String] {
  @transient private var kept: ValueState[T] = _

  override def open(context: OpenContext): Unit = kept = getRuntimeContext.getState(new ValueStateDescriptor[T]("kept", info))

  override def flatMap(line: String, out: Collector[String]): Unit = {
    val found = kept.value()
    if (found == null) kept.update(make(Integer.parseInt(line.split(",")(1))))
    else { out.collect(line.split(",")(0) + ":" + show(found)); kept.update(found) }
  }
}

/** Counts the lines of a key. */
class Count extends RichFlatMapFunction[String, String] {
  @transient private var kept: ValueState[java.lang.Integer] = _

  override def open(context: OpenContext): Unit =
    kept = getRuntimeContext.getState(new ValueStateDescriptor[java.lang.Integer]("kept", classOf[java.lang.Integer]))

  override def flatMap(line: String, out: Collector[String]): Unit = {
    val found = kept.value()
    kept.update(if (found == null) 1 else found + 1)
    out.collect(line.split(",")(0) + ":" + kept.value())
  }
}

abstract class ScalaJob extends Job {
  def keep[T <: AnyRef](lines: DataStream[String], make: Int => T, show: T => String)(implicit info: TypeInformation[T]): DataStream[_] = {
    val keyed = lines.keyBy(new KeySelector[String, String] { override def getKey(line: String): String = line.split(",")(0) })
    keyed.flatMap(new Keep[T](make, show)).returns(classOf[String]).uid("kept")
  }

  def count[K](lines: DataStream[String], key: KeySelector[String, K])(implicit info: TypeInformation[K]): DataStream[_] =
    lines.keyBy(key, info).flatMap(new Count).returns(classOf[String]).uid("counts")

  def generic[T](implicit tag: reflect.ClassTag[T]): TypeInformation[T] = new GenericTypeInfo[T](tag.runtimeClass.asInstanceOf[Class[T]])
}

case class SameCase(a: Int, b: String)

class ScalaCaseSame extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[SameCase](lines, n => SameCase(n, "b"), _.toString)
}

case class GrownCase(
    a: Int,
    more: Option[Int] = None, // new
    b: String)

class ScalaCaseGrown extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[GrownCase](lines, n => GrownCase(a = n, b = "b"), c => c.a + c.b)
}

case class SwappedCase(
    a: String, b: String // old
    b: String, a: String // new
)

class ScalaCaseSwapped extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] =
    keep[SwappedCase](lines, n => SwappedCase(a = "a" + n, b = "b"), c => c.a + c.b)
}

case class RetypedCase(
    a: Int, // old
    a: Long, // new
    b: String)

class ScalaCaseRetyped extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[RetypedCase](lines, n => RetypedCase(n, "b"), c => c.a + c.b)
}

case class RenamedCase(
    a: Int, // old
    number: Int, // new
    b: String)

class ScalaCaseRenamed extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[RenamedCase](lines, n => RenamedCase(n, "b"), c => c.b)
}

case class HashedKey(name: String) {
  override def hashCode(): Int = name.length + 7 // new
}

class ScalaKeyHashed extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] =
    count[HashedKey](lines, new KeySelector[String, HashedKey] { override def getKey(line: String) = HashedKey(line.split(",")(0) + "-key") })
}

case class PlainKey(name: String, n: Int)

class ScalaKeySame extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] =
    count[PlainKey](lines, new KeySelector[String, PlainKey] { override def getKey(line: String) = PlainKey(line.split(",")(0), 1) })
}

sealed trait Shape
case object Circle extends Shape
case object Square extends Shape
case object Added extends Shape // new

class ScalaObjects extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] =
    keep[Shape](lines, n => if (n % 2 == 0) Circle else Square, s => s.toString)(generic[Shape])
}

sealed trait Gone
case object Here extends Gone
case object Away extends Gone // old

class ScalaObjectGone extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] =
    keep[Gone](lines, n =>
      Away // old
      Here // new
      , s => s.toString)(generic[Gone])
}

class ScalaOptionSame extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[Option[String]](lines, n => Some("x" + n), _.toString)
}

class ScalaOptionElement extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] =
    keep[Option[String]](lines, n => Some("x" + n), _.toString) // old
    keep[Option[java.lang.Long]](lines, n => Some(java.lang.Long.valueOf(n.toLong)), _.toString) // new
}

class ScalaEither extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] =
    keep[Either[String, SameCase]](lines, n => Right(SameCase(n, "b")), _.toString)
}

object Level extends Enumeration {
  val Low, High = Value // old
  val High, Low = Value // new
}

class ScalaEnumerationMoved extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[Level.Value](lines, n => Level.Low, _.toString)
}

object Grade extends Enumeration {
  val A, B = Value
  val C = Value // new
}

class ScalaEnumerationGrown extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[Grade.Value](lines, n => Grade.B, _.toString)
}

/** A class in a class has a field that the compiler added. */
class ScalaOuter extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[Outer#Inner](lines, n => new Outer().make(n), i => String.valueOf(i.n))(generic[Outer#Inner])
}

class Outer {
  class Inner(val n: Int) {
    def label: String = name // old
  }
  def name: String = "outer"
  def make(n: Int): Inner = new Inner(n)
}

class ScalaLazy extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[Delayed](lines, n => new Delayed(n), d => String.valueOf(d.n))(generic[Delayed])
}

class Delayed(val n: Int) {
  val twice: Int = 2 * n // old
  lazy val twice: Int = 2 * n // new
}

class ScalaKryoGrown extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[Plain](lines, n => new Plain(n), d => String.valueOf(d.n))(generic[Plain])
}

class Plain(val n: Int) {
  val more: String = "more" // new
}

class ScalaKryoList extends ScalaJob {
  override def build(lines: DataStream[String]): DataStream[_] = keep[Holder](lines, n => new Holder(List(n, n + 1)), d => d.list.toString)(generic[Holder])
}

class Holder(
    val list: Seq[Int] // old
    val list: List[Int] // new
)
