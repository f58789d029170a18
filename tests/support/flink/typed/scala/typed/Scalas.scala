package typed

import scala.beans.BeanProperty

case class SPoint(x: Int, y: Option[Int])

case class SMutable(var x: Int, var name: String) { def this() = this(0, "") }

class SPojo {
  var n: Int = 0
  var text: String = ""
  var boxed: java.lang.Integer = null
  var option: Option[String] = None
  var optionInt: Option[Int] = None
  var seq: Seq[String] = Nil
  var list: List[Int] = Nil
  var vector: Vector[String] = Vector()
  var map: Map[String, Int] = Map()
  var set: Set[String] = Set()
  var array: Array[Int] = Array()
  var texts: Array[String] = Array()
  var pair: (String, Int) = null
  var either: Either[String, Int] = null
  var tried: scala.util.Try[String] = null
  var point: SPoint = null
  var decimal: BigDecimal = null
  var integer: BigInt = null
  var javaList: java.util.List[String] = null
  var javaInts: java.util.List[Int] = null
  var any: Any = null
  var buffer: scala.collection.mutable.ArrayBuffer[String] = null
  var color: SColor.Value = null
  var trait0: STrait = null
  var duration: scala.concurrent.duration.Duration = null
  var points: Array[SPoint] = Array()
  var options: Array[Option[String]] = Array()
  var symbol: Symbol = null
  var char: Char = 'a'
  var long: Long = 0L
  var mutable: SMutable = null
}

object SColor extends Enumeration { val Red, Green = Value }

trait STrait { var n: Int = 0 }

class SWithTrait extends STrait { var m: Int = 0 }

class SBean { @BeanProperty var n: Int = 0; @BeanProperty var text: String = "" }

class SVal { val n: Int = 0 }

class SBox[T] { var value: T = _ }

class SOfText extends SBox[String]

class SOfInt extends SBox[Int]

class SHolder { var point: SPoint = null; var mutable: SMutable = null; var withTrait: SWithTrait = null; var bean: SBean = null; var sval: SVal = null; var ofText: SOfText = null; var ofInt: SOfInt = null; var box: SBox[String] = null }

/** Its getter returns nothing. */
class SUnit { var unit: Unit = () }

class SNull { var nothing: Null = null; var n: Int = 0 }
