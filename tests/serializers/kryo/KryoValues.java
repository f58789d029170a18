import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetSocketAddress;
import java.net.URI;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshotSerializationUtil;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.java.tuple.*;
import org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.types.Row;

/**
 * Writes values with Flink's KryoSerializer: the snapshot, then a line each of name, bytes in hex, and what Java prints.
 *
 * <p>Compile against flink-dist of the release and run with its version as the only argument, on Java 17 with {@code --add-opens
 * java.base/X=ALL-UNNAMED} for java.lang, java.util, java.util.concurrent(.atomic), java.time and java.net; the output is {@code values-VERSION.tsv}.
 */
public class KryoValues {
    public enum Color { RED, GREEN, BLUE }

    public enum Op {
        PLUS { int apply(int a) { return a + 1; } },
        MINUS { int apply(int a) { return a - 1; } };
        abstract int apply(int a);
    }

    public static class Item {
        public int n;
        public String name;
        public Item() {}
        public Item(int n, String name) { this.n = n; this.name = name; }
    }

    public static class BigItem extends Item {
        public Long size;
        public List<Item> parts;
    }

    public static final class Fixed {
        public double x;
        public Float y;
    }

    public static class Box<T> {
        public T value;
        public List<T> more;
    }

    public static class Tags extends ArrayList<String> {}

    public record Rec(int a, Integer b, String c, List<String> d, Item e, Color f, long[] g) {}

    public static class Node {
        public String label;
        public Node next;
    }

    public static class Order {
        public int id;
        public Integer boxed;
        public long big;
        public Long bigBoxed;
        public short small;
        public byte tiny;
        public char letter;
        public float ratio;
        public double price;
        public boolean paid;
        public Boolean maybe;
        public String name;
        public List<String> tags;
        public List<Integer> numbers;
        public List<Item> items;
        public ArrayList<String> exact;
        public Map<String, Long> counts;
        public Map<String, List<String>> nested;
        public Map<Integer, Item> byId;
        public Set<UUID> ids;
        public Item item;
        public Item other;
        public Fixed fixed;
        public Color color;
        public Op op;
        public Object any;
        public Item[] array;
        public String[] words;
        public int[] ints;
        public Integer[] boxes;
        public byte[] raw;
        public int[][] matrix;
        public Object[] objects;
        public Optional<String> maybeText;
        public Tuple2<String, Integer> pair;
        public List<Tuple2<String, Long>> pairs;
        public List<List<String>> lists;
        public LocalDate day;
        public Instant at;
        public BigDecimal amount;
        public UUID token;
        public Box<String> box;
        public List<Fixed> fixeds;
        public TreeMap<String, Integer> sorted;
        public List<Color> colors;
        public Collection<Object> anything;
        public transient String left;
        public static String out = "x";
    }

    static boolean modern;

    static Item item(int n, String name) { return new Item(n, name); }

    static Fixed fixed(double x, Float y) { Fixed f = new Fixed(); f.x = x; f.y = y; return f; }

    static Order order(boolean full) {
        Order o = new Order();
        o.id = full ? -7 : 0;
        o.letter = 'é';
        if (!full) return o;
        o.boxed = 12; o.big = 1L << 40; o.bigBoxed = -1L; o.small = -300; o.tiny = -3; o.ratio = 1.5f; o.price = -2.25; o.paid = true;
        o.maybe = false; o.name = "Ann";
        o.tags = new ArrayList<>(Arrays.asList("a", "bb", "é€"));
        o.numbers = new LinkedList<>(Arrays.asList(1, null, 3));
        BigItem b = new BigItem(); b.n = 5; b.name = "five"; b.size = 55L; b.parts = new ArrayList<>(List.of(item(6, "six")));
        o.items = new ArrayList<>(Arrays.asList(item(1, "one"), b));
        o.exact = new ArrayList<>(Arrays.asList("x", null));
        o.counts = new HashMap<>(); o.counts.put("k", 9L);
        o.nested = new TreeMap<>(); o.nested.put("n", new ArrayList<>(Arrays.asList("p", "q")));
        o.byId = new LinkedHashMap<>(); o.byId.put(3, item(3, "three")); o.byId.put(4, null);
        o.ids = new HashSet<>(Set.of(new UUID(1, 2)));
        o.item = item(8, null); o.other = b; o.fixed = fixed(0.5, null); o.color = Color.BLUE; o.op = Op.MINUS;
        o.any = new ArrayList<>(Arrays.asList(1L, "s", null, Color.RED));
        o.array = new Item[] {item(9, "nine"), null}; o.words = new String[] {"w", null, "longer word"};
        o.ints = new int[] {1, -1}; o.boxes = new Integer[] {1, null}; o.raw = new byte[] {0, -1};
        o.matrix = new int[][] {{1}, null, {}}; o.objects = new Object[] {"o", 2.5, null};
        o.maybeText = Optional.of("text"); o.pair = Tuple2.of("l", 1);
        // Kryo 2.24 confuses the type arguments of one class that two fields have.
        if (modern) o.pairs = new ArrayList<>(Arrays.asList(Tuple2.of("m", 2L), Tuple2.of("n", null)));
        o.lists = new ArrayList<>(Arrays.asList(new ArrayList<>(Arrays.asList("deep")), new ArrayList<>()));
        o.day = LocalDate.of(2024, 2, 29); o.at = Instant.ofEpochSecond(-5, 7); o.amount = new BigDecimal("-12.3400");
        o.token = new UUID(-1, 5); o.box = new Box<>(); o.box.value = "boxed"; o.box.more = new ArrayList<>(Arrays.asList("m1", "m2"));
        o.fixeds = new ArrayList<>(Arrays.asList(fixed(1, 1f), null)); o.sorted = new TreeMap<>(Comparator.reverseOrder());
        o.sorted.put("a", 1); o.colors = new ArrayList<>(Arrays.asList(Color.GREEN, Color.RED));
        o.anything = new ArrayDeque<>(Arrays.asList(1, "x", 2L));
        return o;
    }

    static void add(Map<String, Object> all, String name, Object value) { all.put(name, value); }

    static Map<String, Object> values() throws Exception {
        Map<String, Object> v = new LinkedHashMap<>();
        for (int n : new int[] {0, 1, 2, 31, 32, 33, 62, 63, 64, 65, 127, 128, 8191, 9000}) add(v, "ascii-" + n, "x".repeat(n));
        add(v, "nul", "a\0b"); add(v, "surrogate", "\ud83d\ude00"); add(v, "one-char", "é");
        for (int n : new int[] {0, 1, -1, 63, 64, -64, -65, Integer.MAX_VALUE, Integer.MIN_VALUE}) add(v, "int" + n, n);
        for (long n : new long[] {0, -1, 1L << 34, 1L << 55, 1L << 56, Long.MAX_VALUE, Long.MIN_VALUE}) add(v, "long" + n, n);
        add(v, "char", '\uffff'); add(v, "short", Short.MIN_VALUE); add(v, "byte", (byte) -128); add(v, "float", Float.MIN_VALUE);
        add(v, "double", -0.0); add(v, "nan", Double.NaN); add(v, "true", true);
        for (String n : new String[] {"0", "1", "-1", "127", "128", "-128", "-129", "123456789012345678901234567890"}) {
            add(v, "bigint" + n, new BigInteger(n)); add(v, "bigdec" + n, new BigDecimal(new BigInteger(n), 3));
        }
        add(v, "bigdec-zero", BigDecimal.ZERO); add(v, "bigdec-negative-scale", new BigDecimal("12E+5"));
        add(v, "date-before", new Date(-1)); add(v, "sql-time", new java.sql.Time(5));
        java.sql.Timestamp ts = new java.sql.Timestamp(-1500); add(v, "timestamp-before", ts);
        add(v, "local-date-old", LocalDate.of(-44, 3, 15)); add(v, "local-date-far", LocalDate.of(999999, 12, 31));
        add(v, "midnight", LocalTime.MIDNIGHT); add(v, "hour", LocalTime.of(5, 0)); add(v, "second", LocalTime.of(5, 6, 7));
        add(v, "minute-nanos", LocalTime.of(23, 59, 0, 1)); add(v, "last", LocalTime.MAX);
        add(v, "date-time", LocalDateTime.of(1969, 12, 31, 23, 59, 59, 999_999_999));
        add(v, "instant-before", Instant.ofEpochSecond(-1, 999_999_999));
        add(v, "duration-negative", Duration.ofMillis(-1500)); add(v, "duration-long", Duration.ofSeconds(90061, 5));
        add(v, "duration-zero", Duration.ZERO); add(v, "duration-nanos", Duration.ofNanos(-1));
        add(v, "period", Period.of(1, -2, 3)); add(v, "year", Year.of(-5)); add(v, "year-month", YearMonth.of(2020, 12));
        add(v, "month-day", MonthDay.of(2, 29)); add(v, "offset", ZoneOffset.ofHoursMinutes(-3, -30)); add(v, "utc", ZoneOffset.UTC);
        add(v, "offset-seconds", ZoneOffset.ofTotalSeconds(3601)); add(v, "zone", ZoneId.of("Europe/Paris"));
        LocalDateTime t = LocalDateTime.of(2020, 7, 1, 12, 0);
        add(v, "offset-date-time", OffsetDateTime.of(t, ZoneOffset.ofHours(2)));
        add(v, "offset-time", OffsetTime.of(1, 2, 3, 0, ZoneOffset.ofHours(-1)));
        add(v, "zoned", ZonedDateTime.of(t, ZoneId.of("Europe/Paris"))); add(v, "zoned-offset", ZonedDateTime.of(t, ZoneOffset.ofHours(1)));
        add(v, "day-of-week", DayOfWeek.SUNDAY); add(v, "time-unit", TimeUnit.HOURS);
        add(v, "uuid", new UUID(Long.MIN_VALUE, -1)); add(v, "bits-empty", new BitSet());
        add(v, "pattern", java.util.regex.Pattern.compile("a+", java.util.regex.Pattern.CASE_INSENSITIVE));
        add(v, "uri", URI.create("http://example.com/a?b=c")); add(v, "address", InetSocketAddress.createUnresolved("host", 8081));
        add(v, "url", new java.net.URL("http://example.com:81/a?b=c#d")); add(v, "charset", java.nio.charset.StandardCharsets.UTF_8);
        add(v, "locale-de", new Locale("de")); add(v, "locale-variant", new Locale("de", "DE", "POSIX")); add(v, "locale-root", Locale.ROOT);
        add(v, "class-int", int.class); add(v, "class-box", Integer.class); add(v, "class-own", Item.class); add(v, "class-array", int[].class);
        add(v, "buffer", new StringBuffer("buffer")); add(v, "builder-empty", new StringBuilder());
        add(v, "time-zone", TimeZone.getTimeZone("Europe/Paris"));
        GregorianCalendar c = new GregorianCalendar(TimeZone.getTimeZone("UTC")); c.setTimeInMillis(1_000_000_000_000L); add(v, "calendar", c);
        add(v, "atomic-int", new AtomicInteger(-5)); add(v, "atomic-long", new AtomicLong(1L << 33)); add(v, "atomic-boolean", new AtomicBoolean(true));
        add(v, "atomic-reference", new AtomicReference<>("r")); add(v, "optional-empty", Optional.empty());
        add(v, "optional-int", OptionalInt.of(7)); add(v, "optional-int-empty", OptionalInt.empty()); add(v, "optional-long", OptionalLong.of(-7));
        add(v, "optional-double", OptionalDouble.of(1.25));
        add(v, "shorts", new short[] {1, -1}); add(v, "chars", new char[] {'a', 'é'}); add(v, "floats", new float[] {1f});
        add(v, "booleans", new boolean[] {true, false}); add(v, "longs", new long[] {1L << 60}); add(v, "matrix", new int[][] {{1, 2}, {}, null});
        add(v, "string-matrix", new String[][] {{"a", null}, null}); add(v, "object-matrix", new Object[][] {{"a", 1}, null});
        add(v, "list-array", new List[] {new ArrayList<>(List.of(1))}); add(v, "number-array", new Number[] {1, 2.5, 3L});
        add(v, "vector", new Vector<>(List.of("v"))); add(v, "stack", new Stack<>()); add(v, "cow", new CopyOnWriteArrayList<>(List.of(1)));
        add(v, "queue", new ConcurrentLinkedQueue<>(List.of(1))); add(v, "skip-set", new ConcurrentSkipListSet<>(List.of(1, 2)));
        TreeSet<String> ci = new TreeSet<>(String.CASE_INSENSITIVE_ORDER); ci.add("b"); add(v, "tree-set-comparator", ci);
        add(v, "tree-set-empty", new TreeSet<>());
        TreeMap<String, Integer> rev = new TreeMap<>(Collections.reverseOrder()); rev.put("a", 1); rev.put("b", 2); add(v, "tree-map-reverse", rev);
        PriorityQueue<Integer> pq = new PriorityQueue<>(Collections.reverseOrder()); pq.add(1); pq.add(2); add(v, "priority-reverse", pq);
        ConcurrentSkipListMap<String, Integer> sm = new ConcurrentSkipListMap<>(); sm.put("a", 1); add(v, "skip-map", sm);
        add(v, "concurrent-map", new ConcurrentHashMap<>(Map.of("a", 1))); add(v, "hashtable", new Hashtable<>(Map.of("a", 1)));
        EnumMap<DayOfWeek, String> em = new EnumMap<>(DayOfWeek.class); em.put(DayOfWeek.MONDAY, "m"); add(v, "enum-map", em);
        add(v, "enum-set", EnumSet.of(DayOfWeek.MONDAY, DayOfWeek.FRIDAY)); add(v, "enum-set-empty", EnumSet.noneOf(DayOfWeek.class));
        add(v, "singleton", Collections.singleton("s")); add(v, "singleton-map", Collections.singletonMap("k", "v"));
        add(v, "empty-set", Collections.emptySet()); add(v, "list-of", List.of("a", "b", "c")); add(v, "list-of-1", List.of("a"));
        add(v, "list-of-0", List.of()); add(v, "set-of-1", Set.of("a")); add(v, "set-of", Set.of("a", "b", "c")); add(v, "map-of", Map.of("a", 1));
        add(v, "map-of-2", Map.of("a", 1, "b", 2)); add(v, "unmodifiable", Collections.unmodifiableList(new ArrayList<>(List.of("u"))));
        add(v, "synchronized", Collections.synchronizedList(new ArrayList<>(List.of("u")))); add(v, "as-list-strings", Arrays.asList("a", "b"));
        add(v, "as-list-objects", Arrays.<Object>asList("a", 1)); add(v, "sub-list", new ArrayList<>(List.of(1, 2, 3)).subList(1, 2));
        add(v, "nulls", new ArrayList<>(Arrays.asList(null, null))); add(v, "one-null", new ArrayList<>(Arrays.asList("a", null)));
        add(v, "mixed", new ArrayList<>(Arrays.asList("a", 1, null)));
        List<Object> many = new ArrayList<>(); for (int i = 0; i < 200; i++) many.add(i); add(v, "two-hundred", many);
        Map<Object, Object> hm = new HashMap<>(); hm.put(null, 1); add(v, "null-key", hm);
        add(v, "entry", new AbstractMap.SimpleEntry<>("k", 1)); add(v, "tuple0", Tuple0.INSTANCE); add(v, "tuple3", Tuple3.of(1, "b", null));
        add(v, "tuple12", Tuple12.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)); add(v, "row", Row.of(1, "a", null));
        Row named = Row.withNames(); named.setField("x", 1); add(v, "row-named", named);
        add(v, "int-value", new org.apache.flink.types.IntValue(5)); add(v, "exception", new IllegalStateException("bad"));
        add(v, "exceptions", new ArrayList<>(Arrays.asList(new IllegalStateException("one"), new RuntimeException("two"))));
        add(v, "locales", new ArrayList<>(Arrays.asList(Locale.US, Locale.GERMANY)));
        String s = "shared"; add(v, "shared", new ArrayList<>(Arrays.asList(s, s, new Object[] {s})));
        add(v, "enum", Color.GREEN); add(v, "enum-body", Op.MINUS); add(v, "enums", new ArrayList<>(Arrays.asList(Color.RED, Op.PLUS, Color.RED)));
        add(v, "item", item(1, "i")); add(v, "order-empty", order(false)); add(v, "order", order(true));
        Tags tags = new Tags(); tags.add("t"); add(v, "tags", tags);
        Node n = new Node(); n.label = "a"; n.next = new Node(); n.next.label = "b"; add(v, "nodes", n);
        Node loop = new Node(); loop.label = "l"; loop.next = loop; add(v, "loop", loop);
        if (modern) add(v, "record", new Rec(1, null, "c", new ArrayList<>(List.of("d")), item(2, "e"), Color.RED, new long[] {3}));
        return v;
    }

    /** What Java prints for a value of the JDK that is not an array or a container, else nothing. */
    static String text(Object value) {
        boolean own = value instanceof Collection || value instanceof Map || value.getClass().isArray() || value instanceof Node;
        String text = own || value.toString().contains("@") ? "" : value.toString();
        return text.chars().allMatch(c -> c > 31 && c < 127) ? text : "";
    }

    static String hex(byte[] raw) {
        StringBuilder text = new StringBuilder();
        for (byte b : raw) text.append(String.format("%02x", b));
        return text.toString();
    }

    public static void main(String[] args) throws Exception {
        if (!EnvironmentInformation.getVersion().equals(args[0])) throw new IllegalStateException(EnvironmentInformation.getVersion());
        modern = !args[0].startsWith("1.");
        KryoSerializer<Object> serializer = new KryoSerializer<>(Object.class, new SerializerConfigImpl());
        DataOutputSerializer out = new DataOutputSerializer(64);
        TypeSerializerSnapshot.writeVersionedSnapshot(out, serializer.snapshotConfiguration());
        System.out.println("snapshot\t" + hex(out.getCopyOfBuffer()));
        for (Map.Entry<String, Object> e : values().entrySet()) {
            out.clear();
            try {
                serializer.serialize(e.getValue(), out);
            } catch (Throwable t) {
                System.err.println(e.getKey() + ": " + t);
                serializer = new KryoSerializer<>(Object.class, new SerializerConfigImpl());
                continue;
            }
            System.out.println(e.getKey() + "\t" + hex(out.getCopyOfBuffer()) + "\t" + text(e.getValue()));
        }
    }
}
