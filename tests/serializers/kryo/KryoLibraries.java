import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.Serializer;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import com.google.common.collect.*;
import de.javakaffee.kryoserializers.*;
import de.javakaffee.kryoserializers.guava.*;
import de.javakaffee.kryoserializers.jodatime.*;
import java.util.*;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.joda.time.*;

/**
 * Writes values with Flink's KryoSerializer and serializers of kryo-serializers (de.javakaffee) and of the job's own; a line each of
 * section, name, bytes in hex, class, and what the value prints.
 *
 * <p>Compile against flink-dist of the release, joda-time 2.10, guava 31 and kryo-serializers; the only argument is the release, the
 * output {@code libraries-VERSION.tsv}.
 */
public class KryoLibraries {
    public static class Money implements Priced {
        public long cents;
        public String currency;
        public int count;
        public Object tag;
        public List<String> notes;
        public Money() {}
        Money(long cents, String currency, int count, Object tag, List<String> notes) {
            this.cents = cents; this.currency = currency; this.count = count; this.tag = tag; this.notes = notes;
        }
        @Override public String toString() { return cents + " " + currency + " " + count + " " + tag + " " + notes; }
    }

    public interface Priced {}

    /** Writes in an order and with methods of its own. */
    public static class MoneySerializer extends Serializer<Money> {
        @Override public void write(Kryo kryo, Output out, Money m) {
            out.writeString(m.currency);
            out.writeLong(m.cents);
            out.writeLong(m.cents, false);
            out.writeInt(m.count, true);
            out.writeInt(m.count, false);
            out.writeInt(m.count);
            out.writeShort(m.count);
            out.writeBoolean(m.count > 0);
            out.writeByte(7);
            out.writeDouble(m.cents / 100.0);
            out.writeFloat(0.5f);
            out.writeChar('é');
            kryo.writeClassAndObject(out, m.tag);
            kryo.writeObjectOrNull(out, m.notes, ArrayList.class);
            kryo.writeObject(out, m.currency + "!");
        }
        public Money read(Kryo kryo, Input in, Class type) { throw new UnsupportedOperationException(); }
    }

    /** Fields that kernels decode, and places where they leave a value to the reference. */
    public static class Flat {
        public boolean flag; public byte tiny; public short small; public char letter; public int number; public long big;
        public float ratio; public double price;
        public Boolean flagBox; public Character letterBox; public Integer numberBox; public Long bigBox; public Double priceBox;
        public String text; public Date date; public java.math.BigDecimal amount; public java.math.BigInteger whole;
        public Color color; public UUID id; public java.time.LocalDate day; public java.time.LocalDateTime moment;
        public java.time.Instant instant; public java.sql.Timestamp stamp; public Inner inner; public Inner other;
        public byte[] raw; public int[] ints; public String[] words; public List<String> tags; public Set<Long> set;
        public Map<String, Integer> counts; public SortedMap<String, Inner> sorted; public List<Inner> inners; public Last last;
        public transient int left;
    }

    public enum Color { RED, GREEN }

    public static class Inner { public int x; public String y; public Inner() {} Inner(int x, String y) { this.x = x; this.y = y; } }

    public static final class Last { public long l; public Inner inner; }

    static Flat flat(int i) {
        Flat f = new Flat();
        f.number = -i; f.letter = (char) ('a' + i); f.big = 1L << (7 * i % 63);
        if (i == 0) return f;
        f.flag = i % 2 == 0; f.tiny = (byte) -i; f.small = (short) (i * 300); f.ratio = i / 4f; f.price = i / 3.0;
        f.flagBox = true; f.letterBox = 'é'; f.numberBox = i * 1000; f.bigBox = -1L; f.priceBox = 0.1;
        String[] texts = {"", "a", "plain", "naïve €\uD83D\uDE00", "x".repeat(i * 12)};
        f.text = texts[i % 5]; f.date = new Date(1700000000000L * (i % 2 == 0 ? 1 : -1));
        f.amount = new java.math.BigDecimal("-12.340").multiply(new java.math.BigDecimal(i)); f.whole = java.math.BigInteger.TEN.pow(5 * i).negate();
        f.color = Color.values()[i % 2]; f.id = new UUID(i * 0x123456789abcdefL, -i);
        f.day = java.time.LocalDate.of(2024 - 500 * i, 1 + i, i * 3); f.moment = java.time.LocalDateTime.of(2024, 2, 29, i, 0, i % 2, i % 3 * 1000);
        f.instant = java.time.Instant.ofEpochSecond(-i, i * 1000); f.stamp = new java.sql.Timestamp(-1000L * i + 7); 
        f.inner = new Inner(i, i % 2 == 0 ? null : "y" + i); f.other = i % 3 == 0 ? f.inner : i % 3 == 1 ? null : new Inner(-i, "o");
        f.raw = new byte[] {(byte) i, -1}; f.ints = new int[] {i, -i}; f.words = new String[] {"w", null, "word " + i};
        f.tags = i % 2 == 0 ? new ArrayList<>(Arrays.asList("t", null)) : new LinkedList<>(Arrays.asList("u" + i, "v" + i));
        f.set = i % 4 == 0 ? new TreeSet<>(Set.of(5L, -6L)) : new HashSet<>(Set.of((long) i));
        f.counts = i % 2 == 0 ? new HashMap<>(Map.of("k", i)) : new TreeMap<>(Map.of("k", -i));
        f.sorted = new TreeMap<>(); f.sorted.put("in", new Inner(i, "z")); f.sorted.put("zero", null);
        f.inners = new ArrayList<>(Arrays.asList(new Inner(1, "a"), i % 2 == 0 ? null : new Inner(2, "b")));
        f.last = new Last(); f.last.l = i; f.last.inner = new Inner(i, null);
        return f;
    }

    static String text(Object v) {
        if (v == null) return "null";
        if (v instanceof Number || v instanceof Boolean) return v instanceof java.math.BigDecimal || v instanceof java.math.BigInteger ? '"' + v.toString() + '"' : v.toString();
        if (v instanceof java.sql.Timestamp) return String.valueOf(((java.sql.Timestamp) v).getTime());
        if (v instanceof Date) return String.valueOf(((Date) v).getTime());
        if (v instanceof byte[]) { StringBuilder t = new StringBuilder("\""); for (byte b : (byte[]) v) t.append(String.format("%02x", b)); return t + "\""; }
        if (v instanceof int[]) return Arrays.toString((int[]) v);
        if (v instanceof Object[]) v = Arrays.asList((Object[]) v);
        if (v instanceof Inner) v = Arrays.asList(((Inner) v).x, ((Inner) v).y);
        if (v instanceof Last) v = Arrays.asList(((Last) v).l, ((Last) v).inner);
        if (v instanceof Map) {
            List<Object> pairs = new ArrayList<>();
            ((Map<?, ?>) v).forEach((k, x) -> pairs.add(Arrays.asList(k, x)));
            v = pairs;
        }
        if (v instanceof Collection) { StringJoiner j = new StringJoiner(",", "[", "]"); ((Collection<?>) v).forEach(x -> j.add(text(x))); return j.toString(); }
        return '"' + v.toString() + '"';
    }

    static String printed(Flat f) throws Exception {
        StringJoiner j = new StringJoiner(",", "{", "}");
        for (java.lang.reflect.Field field : Flat.class.getFields()) if (!field.getName().equals("left")) j.add('"' + field.getName() + "\":" + text(field.get(f)));
        return j.toString();
    }

    static String hex(byte[] raw) {
        StringBuilder text = new StringBuilder();
        for (byte b : raw) text.append(String.format("%02x", b));
        return text.toString();
    }

    static void section(String name, Class<?> type, SerializerConfigImpl config, Map<String, Object> values) throws Exception {
        KryoSerializer<Object> s = new KryoSerializer<>((Class) type, config);
        DataOutputSerializer out = new DataOutputSerializer(64);
        TypeSerializerSnapshot.writeVersionedSnapshot(out, s.snapshotConfiguration());
        System.out.println(name + "\tsnapshot\t" + hex(out.getCopyOfBuffer()) + "\t\t");
        for (Map.Entry<String, Object> e : values.entrySet()) {
            out.clear();
            try {
                s.serialize(e.getValue(), out);
            } catch (Throwable t) {
                System.err.println(name + " " + e.getKey() + ": " + t);
                s = new KryoSerializer<>((Class) type, config);
                continue;
            }
            Object v = e.getValue();
            System.out.println(name + "\t" + e.getKey() + "\t" + hex(out.getCopyOfBuffer()) + "\t" + v.getClass().getName() + "\t" + (v instanceof Flat ? printed((Flat) v) : v));
        }
    }

    public static void main(String[] args) throws Exception {
        if (!EnvironmentInformation.getVersion().equals(args[0])) throw new IllegalStateException(EnvironmentInformation.getVersion());
        Map<String, Object> joda = new LinkedHashMap<>();
        joda.put("date-time", new DateTime(1700000000123L, DateTimeZone.UTC));
        joda.put("date-time-zone", new DateTime(-5L, DateTimeZone.forID("Europe/Paris")));
        joda.put("date-time-offset", new DateTime(7L, DateTimeZone.forOffsetHours(2)));
        joda.put("date-time-buddhist", new DateTime(7L, org.joda.time.chrono.BuddhistChronology.getInstanceUTC()));
        joda.put("local-date", new LocalDate(2024, 2, 29));
        joda.put("local-date-time", new LocalDateTime(2024, 2, 29, 12, 34, 56, 789));
        joda.put("local-time", new LocalTime(23, 59, 58, 7));
        joda.put("interval", new Interval(5L, 1700000000123L, DateTimeZone.UTC));
        SerializerConfigImpl c = new SerializerConfigImpl();
        c.registerTypeWithKryoSerializer(DateTime.class, JodaDateTimeSerializer.class);
        c.registerTypeWithKryoSerializer(LocalDate.class, JodaLocalDateSerializer.class);
        c.registerTypeWithKryoSerializer(LocalDateTime.class, JodaLocalDateTimeSerializer.class);
        c.addDefaultKryoSerializer(LocalTime.class, JodaLocalTimeSerializer.class);
        c.addDefaultKryoSerializer(Interval.class, (Class) JodaIntervalSerializer.class);
        section("joda", Object.class, c, joda);
        joda.put("instant", new org.joda.time.Instant(5L));
        joda.put("duration", new org.joda.time.Duration(5L));
        joda.put("year-month", new YearMonth(2024, 2));
        joda.put("period", new Period(1, 2, 3, 4, 5, 6, 7, 8));
        section("joda-fields", Object.class, new SerializerConfigImpl(), joda);
        Map<String, Object> guava = new LinkedHashMap<>();
        guava.put("list-0", ImmutableList.of());
        guava.put("list-1", ImmutableList.of("a"));
        guava.put("list-2", ImmutableList.of("a", 1));
        guava.put("set-0", ImmutableSet.of());
        guava.put("set-1", ImmutableSet.of("a"));
        guava.put("set-2", ImmutableSet.of("a", 1));
        guava.put("map-0", ImmutableMap.of());
        guava.put("map-1", ImmutableMap.of("k", 1));
        guava.put("map-2", ImmutableMap.of("k", 1, "l", 2L));
        guava.put("unmodifiable-list", Collections.unmodifiableList(new ArrayList<>(Arrays.asList("a", 1))));
        guava.put("unmodifiable-linked", Collections.unmodifiableList(new LinkedList<>(Arrays.asList("a", 1))));
        guava.put("unmodifiable-set", Collections.unmodifiableSet(new HashSet<>(Arrays.asList("a"))));
        guava.put("unmodifiable-sorted-set", Collections.unmodifiableSortedSet(new TreeSet<>(Arrays.asList("a"))));
        guava.put("unmodifiable-map", Collections.unmodifiableMap(new HashMap<>(Map.of("k", 1))));
        guava.put("unmodifiable-sorted-map", Collections.unmodifiableSortedMap(new TreeMap<>(Map.of("k", 1))));
        guava.put("synchronized-list", Collections.synchronizedList(new ArrayList<>(Arrays.asList("a", 1))));
        guava.put("synchronized-map", Collections.synchronizedMap(new HashMap<>(Map.of("k", 1))));
        guava.put("as-list", Arrays.asList("a", "b"));
        c = new SerializerConfigImpl();
        c.addDefaultKryoSerializer(ImmutableList.class, (Class) ImmutableListSerializer.class);
        c.addDefaultKryoSerializer(ImmutableSet.class, (Class) ImmutableSetSerializer.class);
        c.addDefaultKryoSerializer(ImmutableMap.class, (Class) ImmutableMapSerializer.class);
        c.addDefaultKryoSerializer(Class.forName("java.util.Collections$UnmodifiableCollection"), (Class) UnmodifiableCollectionsSerializer.class);
        c.addDefaultKryoSerializer(Class.forName("java.util.Collections$UnmodifiableMap"), (Class) UnmodifiableCollectionsSerializer.class);
        c.addDefaultKryoSerializer(Class.forName("java.util.Collections$SynchronizedCollection"), (Class) SynchronizedCollectionsSerializer.class);
        c.addDefaultKryoSerializer(Class.forName("java.util.Collections$SynchronizedMap"), (Class) SynchronizedCollectionsSerializer.class);
        section("guava", Object.class, c, guava);
        Map<String, Object> money = new LinkedHashMap<>();
        money.put("full", new Money(-12345, "EUR", 300, 5L, new ArrayList<>(Arrays.asList("n", null))));
        money.put("empty", new Money(0, null, 0, null, null));
        c = new SerializerConfigImpl();
        c.registerTypeWithKryoSerializer(Money.class, MoneySerializer.class);
        section("money", Money.class, c, money);
        c = new SerializerConfigImpl();
        c.addDefaultKryoSerializer(Priced.class, (Class) MoneySerializer.class);
        section("priced", Object.class, c, money);
        Map<String, Object> flats = new LinkedHashMap<>();
        for (int i = 0; i < 9; i++) flats.put("flat-" + i, flat(i));
        section("flat", Flat.class, new SerializerConfigImpl(), flats);
        c = new SerializerConfigImpl();
        c.registerKryoType(Inner.class); c.registerKryoType(Color.class); c.registerKryoType(ArrayList.class);
        section("flat-registered", Flat.class, c, flats);
    }
}
