package acme.kotlin

data class Full(
    val id: Long, val name: String?, val flag: Boolean, val n: Int, val ratio: Float, val share: Double, val maybe: Boolean?, val big: Long?,
    val letter: Char, val small: Short, val tiny: Byte, val raw: ByteArray?, val names: List<String>?, val last: String?,
)

data class One(val id: String)

@JvmInline value class UserId(val value: Long)

data class OfUser(val user: UserId, val name: String)
