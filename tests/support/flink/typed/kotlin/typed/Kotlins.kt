package typed

import java.math.BigDecimal
import java.time.Instant

enum class KColor { RED, GREEN }

data class KPoint(val x: Int, val y: Int?)

data class KMutable(var x: Int = 0, var y: Int? = null, var name: String = "", var maybe: String? = null)

class KPojo {
    var n: Int = 0
    var boxed: Long? = null
    var text: String? = null
    var list: List<String> = listOf()
    var mutable: MutableList<String> = mutableListOf()
    var items: List<KMutable> = listOf()
    var anything: List<*> = listOf<Any>()
    var map: Map<String, Int> = mapOf()
    var itemMap: Map<String, KMutable> = mapOf()
    var mutableMap: MutableMap<String, KMutable> = mutableMapOf()
    var set: Set<Long> = setOf()
    var pair: Pair<String, Int>? = null
    var triple: Triple<String, Int, Long>? = null
    var color: KColor? = null
    var point: KPoint? = null
    var numbers: IntArray = intArrayOf()
    var texts: Array<String> = arrayOf()
    var boxedArray: Array<Int> = arrayOf()
    var unit: Unit? = null
    var any: Any? = null
    var decimal: BigDecimal? = null
    var instant: Instant? = null
    var function: ((String) -> Int)? = null
    var sealed: KShape? = null
    var iterable: Iterable<String> = listOf()
    var collection: Collection<KMutable> = listOf()
    var range: IntRange? = null
    var open: KBox<String>? = null
    var ofText: KOfText? = null
    var objects: KObject? = null
}

class KLateinit { lateinit var text: String; @JvmField var n: Int = 0 }

sealed class KShape { var n: Int = 0 }

class KCircle : KShape() { var r: Double = 0.0 }

open class KBox<T> { var value: T? = null }

class KOfText : KBox<String>()

object KObject { var n: Int = 0 }

@JvmInline value class KId(val id: String)

class KHolder { @JvmField var mutable: KMutable? = null; @JvmField var lateinit: KLateinit? = null; @JvmField var circle: KCircle? = null; @JvmField var point: KPoint? = null }

/** Its setter is `setOpen`. */
class KIsOpen { var isOpen: Boolean = false }

/** The names of its accessors have a suffix. */
class KUnsigned { var unsigned: UInt = 0u; var value: KId? = null }
