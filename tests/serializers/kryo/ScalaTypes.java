import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.*;
import org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializer;
import org.apache.flink.api.scala.typeutils.*;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.util.EnvironmentInformation;
import scala.*;
import scala.collection.JavaConverters;
import scala.collection.immutable.*;
import scala.math.BigDecimal;
import scala.math.BigDecimal$;
import scala.math.BigInt;

/**
 * Writes Scala's values: with Flink's own serializers for them (sections of their own), and with the KryoSerializer (section "kryo").
 *
 * <p>Compile against flink-dist and flink-scala_2.12 of the release and run with its version as the only argument, on Java 17 with the
 * {@code --add-opens} of KryoValues; the output is {@code scala-VERSION.tsv}: section, name, bytes in hex, what the value prints, its
 * hash code.
 */
public class ScalaTypes {
    static String hex(byte[] raw) {
        StringBuilder text = new StringBuilder();
        for (byte b : raw) text.append(String.format("%02x", b));
        return text.toString();
    }

    static <T> scala.collection.immutable.List<T> list(T... items) {
        scala.collection.immutable.List<T> found = (scala.collection.immutable.List<T>) (Object) Nil$.MODULE$;
        for (int i = items.length - 1; i >= 0; i--) found = new $colon$colon<T>(items[i], found);
        return found;
    }

    static Tuple2<Object, Object> pair(Object a, Object b) { return new Tuple2<>(a, b); }

    static scala.collection.immutable.Map<Object, Object> map(Tuple2<Object, Object>... pairs) {
        scala.collection.immutable.Map<Object, Object> found = Map$.MODULE$.<Object, Object>empty();
        for (Tuple2<Object, Object> p : pairs) found = found.$plus(p);
        return found;
    }

    static scala.collection.immutable.Set<Object> set(Object... items) {
        
        return (scala.collection.immutable.Set<Object>) JavaConverters.asScalaSetConverter(new java.util.LinkedHashSet<>(Arrays.asList(items))).asScala().<Object>toSet();
    }

    public static class Day$ extends Enumeration {
        public static final Day$ MODULE$ = new Day$();
        public final Enumeration.Value MON = Value(3, "Mon");
        public final Enumeration.Value TUE = Value(7, "Tue");
    }

    static String printed(Object value) {
        if (value instanceof Tuple2) return "(" + printed(((Tuple2) value)._1()) + "," + printed(((Tuple2) value)._2()) + ")";
        return String.valueOf(value).replaceAll("@[0-9a-f]{3,}", "@").replace("\n", " ").replace("\t", " ");
    }

    static void section(String name, TypeSerializer<?> s, Object... values) {
        try {
            DataOutputSerializer out = new DataOutputSerializer(64);
            TypeSerializerSnapshot.writeVersionedSnapshot(out, s.snapshotConfiguration());
            System.out.println(name + "\tsnapshot\t" + hex(out.getCopyOfBuffer()) + "\t\t");
            for (int i = 0; i < values.length; i++) {
                out.clear();
                ((TypeSerializer<Object>) s).serialize(values[i], out);
                int hash = values[i] == null ? 0 : values[i].hashCode();
                System.out.println(name + "\t" + i + "\t" + hex(out.getCopyOfBuffer()) + "\t" + printed(values[i]) + "\t" + hash);
            }
        } catch (Throwable t) {
            System.err.println(name + ": " + t);
            t.printStackTrace();
        }
    }

    static void kryo() throws Exception {
        Map<String, Object> v = new LinkedHashMap<>();
        v.put("big-decimal", BigDecimal$.MODULE$.apply("12.340"));
        v.put("big-decimal-unlimited", new BigDecimal(new java.math.BigDecimal("-1E+40"), java.math.MathContext.UNLIMITED));
        v.put("big-int", BigInt.apply("123456789012345678901234567890"));
        v.put("big-int-negative", BigInt.apply(-1));
        v.put("range", new Range(1, 10, 3));
        v.put("range-inclusive", new Range.Inclusive(1, 10, 3));
        v.put("range-empty", new Range(5, 5, 1));
        v.put("numeric-range", NumericRange$.MODULE$.apply((Object) 1L, (Object) 9L, (Object) 2L, (scala.math.Integral) scala.math.Numeric.LongIsIntegral$.MODULE$));
        v.put("numeric-range-inclusive", NumericRange$.MODULE$.inclusive((Object) 1L, (Object) 9L, (Object) 2L, (scala.math.Integral) scala.math.Numeric.LongIsIntegral$.MODULE$));
        v.put("wrapped-ints", Predef$.MODULE$.wrapIntArray(new int[] {1, -2}));
        v.put("wrapped-longs", Predef$.MODULE$.wrapLongArray(new long[] {1L << 40}));
        v.put("wrapped-doubles", Predef$.MODULE$.wrapDoubleArray(new double[] {0.5}));
        v.put("wrapped-bytes", Predef$.MODULE$.wrapByteArray(new byte[] {1, -1}));
        v.put("wrapped-refs", Predef$.MODULE$.wrapRefArray(new String[] {"a", null}));
        v.put("wrapped-objects", Predef$.MODULE$.wrapRefArray(new Object[] {"a", 1}));
        v.put("regex", new scala.util.matching.Regex("a(b+)", list("name")));
        v.put("class-tag", scala.reflect.ClassTag$.MODULE$.apply(String.class));
        v.put("class-tag-int", scala.reflect.ClassTag$.MODULE$.Int());
        v.put("enumeration", Day$.MODULE$.TUE);
        v.put("enumerations", list(Day$.MODULE$.TUE, Day$.MODULE$.MON, Day$.MODULE$.TUE));
        v.put("as-java-list", JavaConverters.seqAsJavaListConverter(list("a", 1)).asJava());
        v.put("as-java-map", JavaConverters.mapAsJavaMapConverter(map(pair("k", 1))).asJava());
        v.put("as-java-set", JavaConverters.setAsJavaSetConverter(set("a")).asJava());
        v.put("as-java-buffer", JavaConverters.bufferAsJavaListConverter((scala.collection.mutable.Buffer<Object>) new scala.collection.mutable.ArrayBuffer<Object>().$plus$eq("q")).asJava());
        v.put("as-java-iterable", JavaConverters.asJavaIterableConverter(list("a")).asJava());
        v.put("as-java-collection", JavaConverters.asJavaCollectionConverter(list("a")).asJavaCollection());
        v.put("as-java-mutable-map", JavaConverters.mutableMapAsJavaMapConverter(mutable()).asJava());
        v.put("as-java-mutable-set", JavaConverters.mutableSetAsJavaSetConverter(new scala.collection.mutable.HashSet<Object>().$plus$eq("e")).asJava());
        v.put("as-scala-list", JavaConverters.asScalaBufferConverter(new ArrayList<>(Arrays.asList(1, "b"))).asScala());
        java.util.Map<Object, Object> plain = new java.util.HashMap<>();
        plain.put("k", 2);
        v.put("as-scala-map", JavaConverters.mapAsScalaMapConverter(plain).asScala());
        v.put("as-scala-set", JavaConverters.asScalaSetConverter(new java.util.HashSet<>(Arrays.asList("s"))).asScala());
        v.put("as-scala-iterable", JavaConverters.iterableAsScalaIterableConverter(new ArrayList<>(Arrays.asList("s"))).asScala());
        v.put("list-map", ListMap$.MODULE$.empty().$plus(pair("k", 1)).$plus(pair("l", 2)));
        v.put("list-set", ListSet$.MODULE$.empty().$plus("a").$plus("b"));
        v.put("sets-2", set(1, 2)); v.put("sets-3", set(1, 2, 3)); v.put("sets-4", set(1, 2, 3, 4)); v.put("sets-5", set(1, 2, 3, 4, 5));
        v.put("maps-2", map(pair(1, 2), pair(3, 4)));
        v.put("maps-3", map(pair(1, 2), pair(3, 4), pair(5, 6)));
        v.put("maps-4", map(pair(1, 2), pair(3, 4), pair(5, 6), pair(7, 8)));
        v.put("maps-5", map(pair(1, 2), pair(3, 4), pair(5, 6), pair(7, 8), pair(9, null)));
        v.put("tree-set", TreeSet$.MODULE$.empty(scala.math.Ordering.String$.MODULE$).$plus("b").$plus("a"));
        v.put("tree-set-reverse", TreeSet$.MODULE$.empty(scala.math.Ordering.Int$.MODULE$.reverse()).$plus(1).$plus(2));
        v.put("tree-map-int", TreeMap$.MODULE$.empty(scala.math.Ordering.Int$.MODULE$).$plus(pair(2, "b")).$plus(pair(1, "a")));
        v.put("bit-set-many", BitSet$.MODULE$.empty().$plus(3).$plus(70).$plus(200));
        v.put("mutable-bit-set", new scala.collection.mutable.BitSet().$plus$eq(5));
        v.put("mutable-hash-set", new scala.collection.mutable.HashSet<Object>().$plus$eq("e"));
        v.put("mutable-linked-map", new scala.collection.mutable.LinkedHashMap<Object, Object>().$plus$eq(pair("k", 1)));
        v.put("mutable-linked-set", new scala.collection.mutable.LinkedHashSet<Object>().$plus$eq("e"));
        v.put("mutable-list-map", new scala.collection.mutable.ListMap<Object, Object>().$plus$eq(pair("k", 1)));
        v.put("mutable-queue", new scala.collection.mutable.Queue<Object>().$plus$eq("q"));
        v.put("mutable-tree-map", ((scala.collection.mutable.TreeMap<Object, Object>) (Object) scala.collection.mutable.TreeMap$.MODULE$.empty(scala.math.Ordering.String$.MODULE$)).$plus$eq(pair("k", 1)));
        v.put("mutable-tree-set", scala.collection.mutable.TreeSet$.MODULE$.empty(scala.math.Ordering.String$.MODULE$).$plus$eq("e"));
        v.put("concurrent-map", new scala.collection.concurrent.TrieMap<Object, Object>().$plus$eq(pair("k", 1)));
        v.put("int-map", IntMap$.MODULE$.empty().$plus(pair(3, "x")));
        v.put("long-map", LongMap$.MODULE$.empty().$plus(pair(3L, "x")));
        v.put("string-builder", new scala.collection.mutable.StringBuilder("abc"));
        v.put("wrapped-string", new WrappedString("abc"));
        v.put("array-seq", scala.collection.mutable.ArraySeq$.MODULE$.apply(list("a", 1)));
        v.put("stack", Stack$.MODULE$.empty().push("a"));
        v.put("stream-empty", Stream$.MODULE$.empty());
        v.put("tuple4", new Tuple4<>(1, "b", null, 2L));
        v.put("tuple22", new Tuple22<>(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, "z"));
        v.put("tuple1-double", new Tuple1$mcD$sp(0.5));
        v.put("tuple2-char", new Tuple2$mcCC$sp('a', 'b'));
        v.put("tuple2-boolean", new Tuple2$mcZZ$sp(true, false));
        v.put("nested", new Some<>(new scala.util.Right<>(list(new Some<>(map(pair("a", list(1)))), None$.MODULE$))));
        v.put("shared", list("s", new Some<>("s")));
        v.put("vector-long", JavaConverters.asScalaBufferConverter(new ArrayList<>(java.util.Collections.nCopies(40, 1))).asScala().toVector());
        v.put("queue-more", Queue$.MODULE$.empty().enqueue("y").enqueue("z"));
        v.put("success-none", new scala.util.Success<>(None$.MODULE$));
        v.put("duration", scala.concurrent.duration.Duration$.MODULE$.apply(5, "seconds"));
        v.put("duration-infinite", scala.concurrent.duration.Duration$.MODULE$.Inf());
        KryoSerializer<Object> s = new KryoSerializer<>(Object.class, new SerializerConfigImpl());
        DataOutputSerializer out = new DataOutputSerializer(64);
        TypeSerializerSnapshot.writeVersionedSnapshot(out, s.snapshotConfiguration());
        System.out.println("kryo\tsnapshot\t" + hex(out.getCopyOfBuffer()) + "\t\t");
        for (Map.Entry<String, Object> e : v.entrySet()) {
            out.clear();
            try {
                s.serialize(e.getValue(), out);
            } catch (Throwable t) {
                System.err.println(e.getKey() + ": " + t);
                s = new KryoSerializer<>(Object.class, new SerializerConfigImpl());
                continue;
            }
            String cls = e.getValue().getClass().getName();
            System.out.println("kryo\t" + e.getKey() + "\t" + hex(out.getCopyOfBuffer()) + "\t" + cls + "\t" + printed(e.getValue()));
        }
    }

    static scala.collection.mutable.Map<Object, Object> mutable() {
        scala.collection.mutable.HashMap<Object, Object> found = new scala.collection.mutable.HashMap<>();
        found.put("k", 1);
        return found;
    }

    static TypeSerializer<?> tuple(Class<?> type, TypeSerializer<?>... parts) { return new ScalaCaseClassSerializer(type, parts); }

    static final TypeSerializer<?> INT = IntSerializer.INSTANCE, TEXT = StringSerializer.INSTANCE, LONG = LongSerializer.INSTANCE;

    public static void main(String[] args) throws Exception {
        if (!EnvironmentInformation.getVersion().equals(args[0])) throw new IllegalStateException(EnvironmentInformation.getVersion());
        section("option", new OptionSerializer<>(INT), new Some<>(5), None$.MODULE$);
        section("option-option", new OptionSerializer(new OptionSerializer<>(TEXT)), new Some<>(new Some<>("x")), new Some<>(None$.MODULE$), None$.MODULE$);
        section("either", new EitherSerializer<>(TEXT, INT), new scala.util.Left<>("l"), new scala.util.Right<>(-7));
        section("either-tuple", new EitherSerializer(new OptionSerializer<>(LONG), tuple(Tuple2.class, TEXT, INT)), new scala.util.Left<>(new Some<>(1L << 40)), new scala.util.Right<>(pair("a", 1)));
        section("try", new TrySerializer<>(INT, new SerializerConfigImpl()), new scala.util.Success<>(5), new scala.util.Failure<>(new IllegalStateException("no")));
        section("try-option", new TrySerializer(new OptionSerializer<>(TEXT), new SerializerConfigImpl()), new scala.util.Success<>(new Some<>("x")), new scala.util.Failure<>(new RuntimeException()));
        section("enumeration", new EnumValueSerializer<>(Day$.MODULE$), Day$.MODULE$.MON, Day$.MODULE$.TUE);
        section("option-enumeration", new OptionSerializer(new EnumValueSerializer<>(Day$.MODULE$)), new Some<>(Day$.MODULE$.TUE), None$.MODULE$);
        section("unit", new UnitSerializer(), scala.runtime.BoxedUnit.UNIT);
        section("option-unit", new OptionSerializer(new UnitSerializer()), new Some<>(scala.runtime.BoxedUnit.UNIT), None$.MODULE$);
        section("nothing", new NothingSerializer());
        section("option-nothing", new OptionSerializer(new NothingSerializer()), None$.MODULE$);
        section("either-nothing", new EitherSerializer(new NothingSerializer(), TEXT), new scala.util.Right<>("only"));
        section("tuple1", tuple(Tuple1.class, TEXT), new Tuple1<>("a"));
        section("tuple2", tuple(Tuple2.class, TEXT, INT), pair("a", 1), pair("", -1), pair("Zoë €", 1 << 30));
        section("tuple2-special", tuple(Tuple2$mcJI$sp.class, LONG, INT), new Tuple2$mcJI$sp(5L, 6));
        section("tuple3", tuple(Tuple3.class, new OptionSerializer<>(INT), tuple(Tuple2.class, LONG, BooleanSerializer.INSTANCE), DoubleSerializer.INSTANCE),
                new Tuple3<>(new Some<>(1), pair(2L, true), 0.5), new Tuple3<>(None$.MODULE$, pair(-2L, false), -0.0));
        TypeSerializer<?>[] many = new TypeSerializer<?>[22];
        Arrays.fill(many, INT);
        section("tuple22", tuple(Tuple22.class, many), new Tuple22<>(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22));
        String code = "implicitly[scala.collection.generic.CanBuildFrom[%s, %s, %s]]";
        section("seq", new TraversableSerializer(INT, String.format(code, "Seq[Int]", "Int", "Seq[Int]")), list(1, 2, 3), list());
        section("map", new TraversableSerializer(tuple(Tuple2.class, TEXT, INT), String.format(code, "Map[String, Int]", "(String, Int)", "Map[String, Int]")), map(pair("k", 1)), map());
        section("seq-option", new TraversableSerializer(new OptionSerializer<>(TEXT), String.format(code, "List[Option[String]]", "Option[String]", "List[Option[String]]")), list(new Some<>("a"), None$.MODULE$));
        section("seq-seq", new TraversableSerializer(new TraversableSerializer(LONG, String.format(code, "Seq[Long]", "Long", "Seq[Long]")), String.format(code, "Seq[Seq[Long]]", "Seq[Long]", "Seq[Seq[Long]]")), list(list(1L), list(), list(2L, 3L)));
        section("bit-set", new TraversableSerializer(INT, String.format(code, "scala.collection.BitSet", "Int", "scala.collection.BitSet")), BitSet$.MODULE$.empty().$plus(3).$plus(9));
        kryo();
    }
}
