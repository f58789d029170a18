package harness;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.api.java.tuple.Tuple0;
import org.apache.flink.api.java.tuple.Tuple1;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.typeutils.TupleTypeInfo;
import org.apache.flink.types.BooleanValue;
import org.apache.flink.types.ByteValue;
import org.apache.flink.types.CharValue;
import org.apache.flink.types.DoubleValue;
import org.apache.flink.types.Either;
import org.apache.flink.types.FloatValue;
import org.apache.flink.types.IntValue;
import org.apache.flink.types.LongValue;
import org.apache.flink.types.NullValue;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.types.ShortValue;
import org.apache.flink.types.StringValue;
import zoo.Zoo;

/** What each operator of a run keeps: keys and states with the values that each event writes. */
final class ZooData {
    static final Object CLEAR = new Object();
    static final Object SKIP = new Object();
    /** Whether values of map state may be null: canonical savepoints of the heap backend fail on them. */
    static volatile boolean nulls;

    private ZooData() {}

    /** One state; {@code value} is what event {@code i} writes: a value, a list, a map. */
    static final class St {
        final String name;
        final String kind;
        final TypeInformation<?> key;
        final TypeInformation<?> type;
        final IntFunction<Object> value;
        boolean ttl;

        St(String name, String kind, TypeInformation<?> key, TypeInformation<?> type, IntFunction<Object> value) {
            this.name = name;
            this.kind = kind;
            this.key = key;
            this.type = type;
            this.value = value;
        }

        St ttl() {
            ttl = true;
            return this;
        }
    }

    static final class Op {
        final String uid;
        final TypeInformation<?> keyType;
        final List<?> keys;
        int events;
        int parallelism = 2;
        int maxParallelism = 128;
        boolean timers;
        final List<St> states = new ArrayList<>();

        Op(String uid, TypeInformation<?> keyType, Object... keys) {
            this.uid = uid;
            this.keyType = keyType;
            this.keys = Arrays.asList(keys);
            this.events = keys.length;
        }

        Op of(int parallelism, int maxParallelism) {
            this.parallelism = parallelism;
            this.maxParallelism = maxParallelism;
            return this;
        }

        Op rounds(int n) {
            events = n * keys.size();
            return this;
        }

        Op timers() {
            timers = true;
            return this;
        }

        Op value(String name, TypeInformation<?> type, IntFunction<Object> value) {
            states.add(new St(name, "value", null, type, value));
            return this;
        }

        Op list(String name, TypeInformation<?> type, IntFunction<Object> value) {
            states.add(new St(name, "list", null, type, value));
            return this;
        }

        Op map(String name, TypeInformation<?> key, TypeInformation<?> type, IntFunction<Object> value) {
            states.add(new St(name, "map", key, type, i -> {
                Object found = value.apply(i);
                if (found instanceof Map && !nulls) {
                    ((Map<?, ?>) found).values().removeIf(java.util.Objects::isNull);
                }
                return found;
            }));
            return this;
        }

        Op sum(String name, IntFunction<Object> value) {
            states.add(new St(name, "reducing", null, Types.LONG, value));
            return this;
        }

        Op mean(String name, IntFunction<Object> value) {
            states.add(new St(name, "aggregating", null, Types.TUPLE(Types.LONG, Types.DOUBLE), value));
            return this;
        }

        Op ttl() {
            states.get(states.size() - 1).ttl();
            return this;
        }
    }

    static List<Op> set(String name) throws Exception {
        switch (name) {
            case "types":
                return types();
            case "keys":
                return keys();
            case "names":
                return names();
            case "beasts":
                return beasts();
            case "logged":
                return logged();
            case "forms":
                return forms();
            default:
                throw new IllegalArgumentException("no set " + name);
        }
    }

    static Object[] longs(int n) {
        Object[] out = new Object[n];
        for (int i = 0; i < n; i++) {
            out[i] = (long) i * i * i * 7919 - 5;
        }
        return out;
    }

    static Object[] strings(int n) {
        Object[] out = new Object[n];
        String[] odd = {"", " ", "é", "\u0000", "日本", "\ud83d\ude00", "a/b", "\uffff"};
        for (int i = 0; i < n; i++) {
            out[i] = i < odd.length ? odd[i] : "key-" + i;
        }
        return out;
    }

    private static Object cycle(int i, Object... values) {
        return values[i % values.length];
    }

    static Map<Object, Object> mapOf(Object... parts) {
        Map<Object, Object> out = new LinkedHashMap<>();
        for (int i = 0; i < parts.length; i += 2) {
            out.put(parts[i], parts[i + 1]);
        }
        return out;
    }

    static List<Object> listOf(Object... parts) {
        return new ArrayList<>(Arrays.asList(parts));
    }

    private static Zoo.Deep deep(int i) {
        Zoo.Deep d = new Zoo.Deep();
        if (i % 5 == 4) {
            return d;
        }
        d.pair = new Zoo.Pair<>(i % 3 == 0 ? null : "s" + i,
                i % 4 == 1 ? null : new Zoo.Pair<>(i % 2 == 0 ? i : null, place(i)));
        d.places = i % 2 == 0 ? new Zoo.Place[0] : new Zoo.Place[] {place(i), null, place(i + 1)};
        d.tuple = Tuple2.of("t" + i, new Zoo.Pair<>((long) i, Zoo.Mood.values()[i % 3]));
        d.grid = new int[][] {{}, {i, -i}, {Integer.MIN_VALUE}};
        d.words = new String[] {"w", null, "", "x" + i};
        d.longs = new Long[] {1L, Long.MAX_VALUE, (long) i};
        d.price = new BigDecimal("1234567890123456789.000" + i);
        d.at = Instant.ofEpochSecond(1_700_000_000L + i, 123_456_789);
        d.sign = Zoo.Sign.values()[i % 2];
        d.mood = i % 2 == 0 ? null : Zoo.Mood.WILD;
        d.raw = new byte[] {0, (byte) i, -1};
        return d;
    }

    private static Zoo.Place place(int i) {
        return i % 7 == 3 ? null : new Zoo.Place(i % 3 == 1 ? null : "street " + i, i, i % 2 == 0 ? null : -i);
    }

    private static Zoo.Odd odd(int i) {
        Zoo.Odd o = new Zoo.Odd();
        o.street = "o" + i;
        o.number = i;
        o.setKey(i * 10L);
        o.setValue(i % 2 == 0);
        o.Namespace = i % 3 == 0 ? null : i / 4.0;
        o.namespace = i / 8f;
        o._class = "class" + i;
        o.ünïcode = (char) ('a' + i);
        o.a$b = (short) -i;
        o.b = (byte) i;
        return o;
    }

    static Object beast(int i) {
        switch (i % 5) {
            case 0:
                return new Zoo.Beast("beast" + i);
            case 1:
                return new Zoo.Bird(null, i / 2.0);
            case 2:
                return new Zoo.Parrot("p" + i, i, "hi", i % 2 == 0 ? null : place(i));
            case 3:
                return new Zoo.Fish("f" + i, -i, place(i));
            default:
                return new Zoo.Parrot("q" + i, -0.0, null, place(1));
        }
    }

    private static Row row(int i) {
        Row r = Row.of(i % 3 == 0 ? null : i, "r" + i, i % 2 == 0 ? null : Row.of(i / 2.0, new int[] {i}));
        r.setKind(RowKind.values()[i % 4]);
        return r;
    }

    private static TypeInformation<?> tuple25() {
        TypeInformation<?>[] all = new TypeInformation<?>[25];
        for (int i = 0; i < 25; i++) {
            all[i] = (TypeInformation<?>) cycle(i, Types.INT, Types.STRING, Types.TUPLE(Types.BYTE, Types.BOOLEAN));
        }
        return new TupleTypeInfo<>(all);
    }

    private static Tuple tuple25(int i) {
        Tuple t = Tuple.newInstance(25);
        for (int f = 0; f < 25; f++) {
            t.setField(cycle(f, i + f, "x" + f, Tuple2.of((byte) f, f % 2 == 0)), f);
        }
        return t;
    }

    private static List<Op> types() throws Exception {
        TypeInformation<?> rowType = Types.ROW_NAMED(new String[] {"n", "key", "in"}, Types.INT, Types.STRING,
                Types.ROW(Types.DOUBLE, Types.PRIMITIVE_ARRAY(Types.INT)));
        Op scalars = new Op("t-scalars", Types.LONG, longs(14))
                .value("string", Types.STRING, i -> strings(14)[i])
                .value("big string", Types.STRING, i -> String.join("", Collections.nCopies(i * 1000, "ж" + i)))
                .value("double", Types.DOUBLE, i -> cycle(i, Double.NaN, -0.0, Double.MIN_VALUE, 1e300, Double.NEGATIVE_INFINITY))
                .value("float", Types.FLOAT, i -> cycle(i, Float.NaN, -0.0f, Float.MIN_VALUE, 1e30f, Float.POSITIVE_INFINITY))
                .value("short", Types.SHORT, i -> (short) (i * 5000))
                .value("byte", Types.BYTE, i -> (byte) (i * 20))
                .value("char", Types.CHAR, i -> cycle(i, 'a', '\u0000', '\uffff', 'é'))
                .value("boolean", Types.BOOLEAN, i -> i % 2 == 0)
                .value("bigdec", Types.BIG_DEC, i -> cycle(i, new BigDecimal("0.00"), new BigDecimal("-12345678901234567890.123456"),
                        new BigDecimal("1E+5"), BigDecimal.ONE, BigDecimal.TEN, BigDecimal.ZERO))
                .value("bigint", Types.BIG_INT, i -> cycle(i, BigInteger.ZERO, BigInteger.ONE, BigInteger.TEN,
                        BigInteger.valueOf(-1), BigInteger.valueOf(2).pow(200).negate()))
                .value("date", TypeInformation.of(java.util.Date.class), i -> new java.util.Date(1_700_000_000_000L * (i - 3)))
                .value("instant", Types.INSTANT, i -> cycle(i, Instant.EPOCH, Instant.ofEpochSecond(-5, 999_999_999)))
                .value("local-date", Types.LOCAL_DATE, i -> LocalDate.of(1900 + i * 30, 2, 28))
                .value("local-time", Types.LOCAL_TIME, i -> LocalTime.of(23, i, 59, 999_999_999))
                .value("local-date-time", Types.LOCAL_DATE_TIME, i -> LocalDateTime.of(1969, 12, 31, 23, 59, i, 1))
                .value("sql-date", Types.SQL_DATE, i -> java.sql.Date.valueOf(LocalDate.of(2000, 1, 1 + i)))
                .value("sql-time", Types.SQL_TIME, i -> java.sql.Time.valueOf(LocalTime.of(1, 2, i)))
                .value("sql-timestamp", Types.SQL_TIMESTAMP, i -> java.sql.Timestamp.from(Instant.ofEpochSecond(i, 5)))
                .value("skipped", Types.INT, i -> i % 3 == 0 ? SKIP : (Object) i)
                .value("never", Types.INT, i -> SKIP)
                .list("no list", Types.INT, i -> SKIP)
                .map("no map", Types.INT, Types.INT, i -> SKIP);
        Op values = new Op("t-values", Types.STRING, strings(10))
                .value("int-v", TypeInformation.of(IntValue.class), i -> new IntValue(-i))
                .value("long-v", TypeInformation.of(LongValue.class), i -> new LongValue(-i))
                .value("short-v", TypeInformation.of(ShortValue.class), i -> new ShortValue((short) i))
                .value("byte-v", TypeInformation.of(ByteValue.class), i -> new ByteValue((byte) i))
                .value("bool-v", TypeInformation.of(BooleanValue.class), i -> new BooleanValue(i % 2 == 0))
                .value("float-v", TypeInformation.of(FloatValue.class), i -> new FloatValue(i / 2f))
                .value("double-v", TypeInformation.of(DoubleValue.class), i -> new DoubleValue(i / 2.0))
                .value("char-v", TypeInformation.of(CharValue.class), i -> new CharValue((char) ('a' + i)))
                .value("string-v", TypeInformation.of(StringValue.class), i -> new StringValue("v" + i));
        Op generic = new Op("t-generic", Types.INT, 1, -1, 0, 77, 1000, Integer.MAX_VALUE, Integer.MIN_VALUE, 5)
                .of(1, 1)
                .value("deep", TypeInformation.of(Zoo.Deep.class), ZooData::deep)
                .list("deeps", TypeInformation.of(Zoo.Deep.class), i -> listOf(deep(i), deep(i + 1), deep(i + 2)))
                .map("deep map", TypeInformation.of(new TypeHint<Zoo.Pair<String, Integer>>() {}),
                        TypeInformation.of(Zoo.Deep.class),
                        i -> mapOf(new Zoo.Pair<>("a" + i, i), deep(i), new Zoo.Pair<>(null, null), deep(i + 1)))
                .value("kept", TypeInformation.of(Zoo.Kept.class), i -> {
                    Zoo.Kept k = new Zoo.Kept();
                    k.names = i % 2 == 0 ? null : new ArrayList<>(Arrays.asList("a", "b" + i));
                    k.counts = new HashMap<>(Collections.singletonMap("c" + i, i));
                    k.day = LocalDate.of(2020, 1, 1 + i);
                    k.id = i % 3 == 0 ? null : new java.util.UUID(i, -i);
                    return k;
                });
        Op composites = new Op("t-composites", Types.INT, 1, -1, 0, 77, 1000, Integer.MAX_VALUE, Integer.MIN_VALUE, 5)
                .of(1, 1)
                .value("odd", TypeInformation.of(Zoo.Odd.class), ZooData::odd)
                .value("pairs", TypeInformation.of(new TypeHint<Zoo.Pair<Zoo.Pair<Integer, Zoo.Mood>, String[]>>() {}),
                        i -> new Zoo.Pair<>(new Zoo.Pair<>(i, Zoo.Mood.CALM), new String[] {"a", "b" + i}))
                .value("row", rowType, ZooData::row)
                .list("rows", rowType, i -> listOf(row(i), row(i + 1)))
                .value("tuple25", tuple25(), ZooData::tuple25)
                .value("nested tuple", TypeInformation.of(new TypeHint<Tuple3<Tuple1<Character>, Tuple2<Zoo.Mood, Long[]>, Zoo.Place>>() {}),
                        i -> Tuple3.of(Tuple1.of('c'), Tuple2.of(Zoo.Mood.ASLEEP, new Long[] {(long) i}), place(i == 3 ? 4 : i)))
                .value("either", Types.EITHER(Types.LIST(Types.STRING), TypeInformation.of(Zoo.Place.class)),
                        i -> i % 2 == 0 ? Either.Left(listOf("l", "m" + i)) : Either.Right(place(i == 3 ? 5 : i)))
                .value("map of lists", Types.MAP(Types.STRING, Types.LIST(Types.MAP(Types.INT, Types.BOOLEAN))),
                        i -> mapOf("a", listOf(mapOf(i, true), mapOf()), "b" + i, listOf(), "n", null))
                .map("maps", Types.STRING, Types.MAP(Types.LONG, Types.LIST(Types.DOUBLE)),
                        i -> mapOf("x", mapOf(1L, listOf(1.5)), "", mapOf(), "null", null))
                .map("by tuple", Types.TUPLE(Types.STRING, Types.INT), Types.PRIMITIVE_ARRAY(Types.BYTE),
                        i -> mapOf(Tuple2.of("t", i), new byte[i], Tuple2.of("", -1), new byte[] {1}))
                .map("by enum", Types.ENUM(Zoo.Mood.class), Types.STRING, i -> mapOf(Zoo.Mood.WILD, "w", Zoo.Mood.CALM, null))
                .map("big map", Types.INT, Types.STRING, i -> {
                    Map<Object, Object> m = new LinkedHashMap<>();
                    for (int n = 0; n < i * 300; n++) {
                        m.put(n, "v" + n);
                    }
                    return m.isEmpty() ? SKIP : m;
                })
                .value("sign", Types.ENUM(Zoo.Sign.class), i -> Zoo.Sign.values()[i % 2])
                .value("object array", Types.OBJECT_ARRAY(Types.TUPLE(Types.INT, Types.STRING)),
                        i -> new Tuple2[] {Tuple2.of(1, "a"), null, Tuple2.of(i, "b")})
                .value("grid", TypeInformation.of(double[][].class), i -> new double[][] {{1, i}, {}})
                .value("chars", Types.PRIMITIVE_ARRAY(Types.CHAR), i -> new char[] {'x', (char) i})
                .value("booleans", Types.PRIMITIVE_ARRAY(Types.BOOLEAN), i -> new boolean[] {true, i % 2 == 0})
                .value("floats", Types.PRIMITIVE_ARRAY(Types.FLOAT), i -> new float[] {i, Float.NaN})
                .value("shorts", Types.PRIMITIVE_ARRAY(Types.SHORT), i -> new short[] {(short) i})
                .value("boxed", TypeInformation.of(Integer[].class), i -> new Integer[] {i, -1})
                .value("strings", TypeInformation.of(String[].class), i -> new String[] {"a", null, "c" + i});
        Op collected = new Op("t-collections", Types.TUPLE(Types.STRING, Types.LONG), Tuple2.of("a", 1L), Tuple2.of("", -1L),
                Tuple2.of("日", Long.MIN_VALUE), Tuple2.of("b", 0L), Tuple2.of("c", 3L)).of(3, 3).rounds(4).timers()
                .sum("sum", i -> (long) i)
                .mean("mean", i -> i % 3 == 0 ? SKIP : (Object) (double) i)
                .list("list", Types.STRING, i -> i % 5 == 2 ? SKIP : listOf("e" + i, "", "f"))
                .list("ttl list", Types.STRING, i -> listOf("e" + i, "")).ttl()
                .map("map", Types.STRING, Types.INT, i -> mapOf("k" + i % 7, i % 4 == 0 ? null : i))
                .map("ttl map", Types.LOCAL_DATE, Types.TUPLE(Types.INT, Types.STRING), i -> mapOf(LocalDate.of(2000, 1, 1 + i), Tuple2.of(i, "s"))).ttl()
                .value("ttl value", TypeInformation.of(Zoo.Place.class), i -> place(i % 7 == 3 ? 4 : i)).ttl()
                .sum("ttl sum", i -> 1L).ttl()
                .mean("ttl mean", i -> i / 2.0).ttl()
                .value("cleared", Types.LONG, i -> i >= 10 && i % 2 == 0 ? CLEAR : (Object) (long) i);
        return Arrays.asList(scalars, values, generic, composites, collected);
    }

    private static Op keyed(String uid, TypeInformation<?> type, Object... keys) {
        return new Op(uid, type, keys).timers().rounds(2)
                .value("v", Types.LONG, i -> (long) i)
                .map("m", Types.STRING, Types.INT, i -> mapOf("a" + i, i))
                .list("l", Types.INT, i -> listOf(i, i + 1));
    }

    private static List<Op> keys() {
        List<Op> ops = new ArrayList<>();
        ops.add(keyed("k-boolean", Types.BOOLEAN, true, false).of(1, 2));
        ops.add(keyed("k-char", Types.CHAR, 'a', '\u0000', 'é', '\uffff').of(3, 200));
        ops.add(keyed("k-byte", Types.BYTE, (byte) 0, (byte) -1, (byte) 127, (byte) -128).of(4, 4));
        ops.add(keyed("k-float", Types.FLOAT, 0f, -0f, Float.NaN, 1.5f, Float.MIN_VALUE, -3e30f));
        ops.add(keyed("k-double", Types.DOUBLE, 0.0, -0.0, Double.NaN, 1.5, Double.MIN_VALUE, -3e300).of(2, 32768));
        ops.add(keyed("k-bigdec", Types.BIG_DEC, new BigDecimal("1.0"), new BigDecimal("1.00"), new BigDecimal("-7E+3"), BigDecimal.ZERO));
        ops.add(keyed("k-bigint", Types.BIG_INT, BigInteger.ZERO, BigInteger.TEN.pow(40), BigInteger.valueOf(-300)));
        ops.add(keyed("k-instant", Types.INSTANT, Instant.EPOCH, Instant.ofEpochSecond(5, 7), Instant.ofEpochSecond(-5, 7)));
        ops.add(keyed("k-date", TypeInformation.of(java.util.Date.class), new java.util.Date(0), new java.util.Date(-1), new java.util.Date(1_700_000_000_000L)));
        ops.add(keyed("k-local-date", Types.LOCAL_DATE, LocalDate.of(2020, 2, 29), LocalDate.of(1, 1, 1)));
        ops.add(keyed("k-local-time", Types.LOCAL_TIME, LocalTime.MIDNIGHT, LocalTime.MAX, LocalTime.of(5, 6, 7, 8)));
        ops.add(keyed("k-local-date-time", Types.LOCAL_DATE_TIME, LocalDateTime.of(2020, 2, 29, 1, 2, 3, 4), LocalDateTime.of(1960, 1, 1, 0, 0)));
        ops.add(keyed("k-sql-timestamp", Types.SQL_TIMESTAMP, java.sql.Timestamp.from(Instant.ofEpochSecond(9, 8)), java.sql.Timestamp.from(Instant.ofEpochSecond(-9, 8))));
        ops.add(keyed("k-sql-date", Types.SQL_DATE, java.sql.Date.valueOf("2020-02-29"), java.sql.Date.valueOf("1960-02-29")));
        ops.add(keyed("k-pojo", TypeInformation.of(Zoo.Id.class), new Zoo.Id("a", 1, Tuple2.of(1, "x")), new Zoo.Id("", -1, Tuple2.of(0, "")), new Zoo.Id("é", 9, Tuple2.of(5, "y"))));
        ops.add(keyed("k-tuple", Types.TUPLE(TypeInformation.of(Zoo.Id.class), Types.TUPLE(Types.DOUBLE, Types.BOOLEAN)),
                Tuple2.of(new Zoo.Id("a", 1, Tuple2.of(1, "x")), Tuple2.of(0.5, true)), Tuple2.of(new Zoo.Id("b", 2, Tuple2.of(2, "z")), Tuple2.of(-0.5, false))));
        ops.add(keyed("k-row", Types.ROW(Types.STRING, Types.INT), Row.of("a", 1), Row.of("b", null), Row.of(null, 3)));
        ops.add(keyed("k-list", Types.LIST(Types.STRING), listOf("a", "b"), listOf(), listOf("")));
        ops.add(keyed("k-map", Types.MAP(Types.STRING, Types.INT), mapOf("a", 1, "b", 2), mapOf()));
        ops.add(keyed("k-either", Types.EITHER(Types.INT, Types.STRING), Either.Left(1), Either.Right("r")));
        ops.add(keyed("k-string-value", TypeInformation.of(StringValue.class), new StringValue("a"), new StringValue("é日")));
        ops.add(keyed("k-tuple1", Types.TUPLE(Types.LONG), Tuple1.of(1L), Tuple1.of(-2L)));
        ops.add(keyed("k-tuple0", TypeInformation.of(Tuple0.class), Tuple0.INSTANCE));
        ops.add(keyed("k-string", Types.STRING, strings(40)).of(4, 1000));
        return ops;
    }

    private static List<Op> names() {
        String wide = String.join("", Collections.nCopies(40, "very-long-"));
        Op names = new Op("uid/with \"quotes\" und 日本 ☃", Types.LONG, longs(6)).timers();
        for (String n : new String[] {"key", "value", "namespace", "map_key", "list_index", "_undecoded", "key_group", "subtask",
                "timers", "keyed_state", "状态 ☃", "a/b\\c", "x.y.z", "it's \"quoted\"", " ", "tab\tnew\nline", "`back`", "${x}", wide, "count", "Count", "é", "e\u0301"}) {
            names.value(n, Types.STRING, i -> n + i);
        }
        Op same = new Op(" ", Types.STRING, strings(5)).value("v", Types.INT, i -> i)
                .map("key", Types.STRING, Types.STRING, i -> mapOf("value", "key"))
                .list("value", Types.STRING, i -> listOf("value"));
        Op other = new Op("v", Types.STRING, strings(5)).value("v", Types.STRING, i -> "i" + i);
        return Arrays.asList(names, same, other);
    }

    private static List<Op> beasts() {
        TypeInformation<?> type = TypeInformation.of(Zoo.Beast.class);
        Op one = new Op("beasts", Types.INT, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12).of(4, 128)
                .value("beast", type, ZooData::beast)
                .list("list", type, i -> listOf(beast(i), beast(i + 1), beast(i + 3)))
                .map("map", Types.STRING, type, i -> mapOf("a", beast(i), "b", beast(i + 2), "n", null))
                .value("cage", TypeInformation.of(Zoo.Cage.class), i -> new Zoo.Cage((Zoo.Beast) beast(i), new Zoo.Pair<>((Zoo.Beast) beast(i + 1), i)))
                .value("tuple", Types.TUPLE(type, Types.LIST(type)), i -> Tuple2.of(beast(i), listOf(beast(i + 1))))
                .value("ttl", type, ZooData::beast).ttl();
        return Collections.singletonList(one);
    }

    private static Op logged(String uid, TypeInformation<?> type, Object... keys) {
        return new Op(uid, type, keys).rounds(3)
                .value("v", Types.LONG, i -> (long) i)
                .map("m", Types.STRING, Types.INT, i -> mapOf("a" + i % 5, i))
                .list("l", Types.INT, i -> listOf(i, i + 1));
    }

    /** Keys without timers: nothing says their type in a change log. */
    /** States of each kind, with keys of a fixed and of a variable size, and prefixes of one and of two bytes. */
    private static List<Op> forms() {
        List<Op> ops = Arrays.asList(
                new Op("f-long", Types.LONG, longs(20)), new Op("f-string", Types.STRING, strings(20)).of(2, 1000));
        for (Op op : ops) {
            op.rounds(2).timers()
                    .value("text", Types.STRING, i -> i % 7 == 3 ? SKIP : "text, " + i)
                    .list("list", Types.STRING, i -> listOf("a," + i, "", ",b"))
                    .map("map", Types.STRING, Types.LONG, i -> mapOf("a" + i, (long) i, "b", -1L, "", 0L))
                    .sum("sum", i -> (long) i)
                    .mean("mean", i -> i / 4.0)
                    .value("kept value", Types.LONG, i -> (long) i * i).ttl()
                    .list("kept list", Types.LONG, i -> listOf((long) i, 44L)).ttl()
                    .map("kept map", Types.INT, Types.STRING, i -> mapOf(i, "v" + i, -1, "")).ttl()
                    .list("no list", Types.INT, i -> SKIP);
        }
        return ops;
    }

    private static List<Op> logged() {
        Object[] doubles = new Object[20];
        Object[] floats = new Object[20];
        Object[] ints = new Object[20];
        Object[] chars = new Object[20];
        for (int i = 0; i < 20; i++) {
            doubles[i] = i / 4.0 - 2;
            floats[i] = i / 4f - 2;
            ints[i] = i * 31 - 7;
            chars[i] = (char) ('a' + i);
        }
        return Arrays.asList(
                logged("l-double", Types.DOUBLE, doubles),
                logged("l-float", Types.FLOAT, floats),
                logged("l-int", Types.INT, ints),
                logged("l-long", Types.LONG, longs(20)),
                logged("l-char", Types.CHAR, chars),
                logged("l-string", Types.STRING, strings(20)));
    }
}
