package jobs;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInfoFactory;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.types.Either;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;

/** Keeps a value for each key, made of the last one and a number. */
abstract class Keeping<T> extends RichFlatMapFunction<String, String> {
    transient ValueState<T> state;

    abstract T next(T last, int number);

    abstract Object show(T value);

    @Override
    public void flatMap(String line, Collector<String> out) throws Exception {
        T last = state.value();
        String before = last == null ? "none" : String.valueOf(show(last));
        T value = next(last, Job.number(line));
        state.update(value);
        out.collect(line.split(",")[0] + "=" + before + "," + show(value));
    }
}

final class ValueRecordInPojo extends Job {
    public record Part(int a, int b, int c) {} // old
    public record Part(int a, int b) {} // new
    public static class Whole {
        public Part part;
        public int n;
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.n = n + (last == null ? 0 : last.n);
            whole.part = new Part(n, 2 * n, 3); // old
            whole.part = new Part(n, 2 * n); // new
            return whole;
        }

        Object show(Whole value) {
            return value.n + ":" + value.part.a() + ":" + value.part.b();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** The constructor refuses what the old job stored. */
/** The new component is null where the old job stored the others. */
/** Kryo writes no class for a field of a final class. */
final class ValueKryoEnumBodyAdded extends Job {
    public enum Level {
        LOW, // old
        LOW { // new
            @Override // new
            int weight() { // new
                return 0; // new
            } // new
        }, // new
        HIGH;

        int weight() {
            return ordinal();
        }
    }
    static final class Whole {
        private Level level;
        private int n;
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.level = n > 2 ? Level.HIGH : Level.LOW;
            whole.n = n + (last == null ? 0 : last.n);
            return whole;
        }

        Object show(Whole value) {
            return value.level.name() + value.n;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueEnumInObject extends Job {
    public enum Level {
        NONE, // new
        LOW, HIGH
    }
    public static class Whole {
        public Object level;
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.level = n > 2 ? Level.HIGH : Level.LOW;
            return whole;
        }

        Object show(Whole value) {
            return value.level;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueSealedRenamed extends Job {
    public sealed interface Shape permits Circle, Square {}
    public static final class Circle implements Shape {
        public int n;
    }
    public static final class Square implements Shape {
        public int n;
        public int side; // new
    }
    public static class Whole {
        public Shape shape;
        public int n;
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.n = n + (last == null ? 0 : last.n);
            Square square = new Square();
            square.n = n;
            whole.shape = square;
            return whole;
        }

        Object show(Whole value) {
            return value.n + ":" + ((Square) value.shape).n;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** The class that changed has no values. */
/** Kryo sorts fields by their names, of all classes together or not. */
/** Kryo writes both with variable lengths. */
/** Kryo writes a byte before what may be null. */
final class ValueKryoListToSet extends Job {
    static final class Whole {
        private List<Integer> a = new ArrayList<>(); // old
        private java.util.Set<Integer> a = new java.util.HashSet<>(); // new
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.a.add(n);
            return whole;
        }

        Object show(Whole value) {
            return value.a.size();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** ArrayList is not final: Kryo writes the class of both. */
/** Kryo in Flink 1.x, a type of its own since 2.0. */
final class ValuePojoMapGrown extends Job {
    public static class Part {
        public int a;
        public int b; // new
    }
    public static class Whole {
        public Map<String, Part> parts = new HashMap<>();
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            Part part = new Part();
            part.a = n;
            whole.parts.put("x", part);
            return whole;
        }

        Object show(Whole value) {
            return value.parts.get("x").a;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueTupleSubclass extends Job {
    public static class Two extends Tuple2<Integer, String> {
        public Two() {}

        Two(int a, String b) {
            super(a, b);
        }
    }

    static final class Keep extends Keeping<Two> { // old
    static final class Keep extends Keeping<Tuple2<Integer, String>> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", TypeInformation.of(Two.class))); // old
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.TUPLE(Types.INT, Types.STRING))); // new
        }

        Two next(Two last, int n) { // old
        Tuple2<Integer, String> next(Tuple2<Integer, String> last, int n) { // new
            return new Two(n, "x"); // old
            return Tuple2.of(n, "x"); // new
        }

        Object show(Two value) { // old
        Object show(Tuple2<Integer, String> value) { // new
            return value.f0 + value.f1;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueTupleSubclassSame extends Job {
    public static class Two extends Tuple2<Integer, String> {
        public Two() {}

        Two(int a, String b) {
            super(a, b);
        }
    }

    static final class Keep extends Keeping<Two> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Two.class));
        }

        Two next(Two last, int n) {
            return new Two(n, "x");
        }

        Object show(Two value) {
            return value.f0 + value.f1;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueTupleSubclassField extends Job {
    public static class Two extends Tuple2<Integer, String> {
        public int more; // new

        public Two() {}
    }

    static final class Keep extends Keeping<Two> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Two.class));
        }

        Two next(Two last, int n) {
            Two two = new Two();
            two.f0 = n;
            two.f1 = "x";
            return two;
        }

        Object show(Two value) {
            return value.f0 + value.f1;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueEitherSwapped extends Job {


    static final class Keep extends Keeping<Either<Integer, String>> { // old
    static final class Keep extends Keeping<Either<String, Integer>> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", new TypeHint<Either<Integer, String>>() {}.getTypeInfo())); // old
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", new TypeHint<Either<String, Integer>>() {}.getTypeInfo())); // new
        }

        Either<Integer, String> next(Either<Integer, String> last, int n) { // old
        Either<String, Integer> next(Either<String, Integer> last, int n) { // new
            return n > 2 ? Either.Left(n) : Either.Right("x"); // old
            return n > 2 ? Either.Right(n) : Either.Left("x"); // new
        }

        Object show(Either<Integer, String> value) { // old
        Object show(Either<String, Integer> value) { // new
            return value.isLeft() ? value.left() : value.right();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueTypeInfoAdded extends Job {
    @TypeInfo(Making.class) // new
    public static class Whole {
        public int a;
        public long b;
    }
    public static class Making extends TypeInfoFactory<Whole> {
        @Override
        public TypeInformation<Whole> createTypeInfo(java.lang.reflect.Type t, Map<String, TypeInformation<?>> parameters) {
            return Types.GENERIC(Whole.class);
        }
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.a = n + (last == null ? 0 : last.a);
            return whole;
        }

        Object show(Whole value) {
            return value.a;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueTypeInfoPojo extends Job {
    @TypeInfo(Making.class) // new
    public static class Whole {
        public int a;
        public long b;
    }
    public static class Making extends TypeInfoFactory<Whole> {
        @Override
        public TypeInformation<Whole> createTypeInfo(java.lang.reflect.Type t, Map<String, TypeInformation<?>> parameters) {
            Map<String, TypeInformation<?>> fields = new HashMap<>();
            fields.put("a", Types.INT);
            fields.put("b", Types.LONG);
            return Types.POJO(Whole.class, fields);
        }
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.a = n + (last == null ? 0 : last.a);
            return whole;
        }

        Object show(Whole value) {
            return value.a;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueTypeInfoChanged extends Job {
    @TypeInfo(Making.class)
    public static class Whole {
        public int a;
        public List<String> names;
    }
    public static class Making extends TypeInfoFactory<Whole> {
        @Override
        public TypeInformation<Whole> createTypeInfo(java.lang.reflect.Type t, Map<String, TypeInformation<?>> parameters) {
            Map<String, TypeInformation<?>> fields = new HashMap<>();
            fields.put("a", Types.INT);
            fields.put("names", Types.GENERIC(List.class)); // old
            fields.put("names", Types.LIST(Types.STRING)); // new
            return Types.POJO(Whole.class, fields);
        }
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.a = n + (last == null ? 0 : last.a);
            whole.names = new ArrayList<>(List.of("x"));
            return whole;
        }

        Object show(Whole value) {
            return value.a + ":" + value.names;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueTypeInfoOfField extends Job {
    public static class Whole {
        public int a;
        @TypeInfo(Making.class) // new
        public List<String> names;
    }
    public static class Making extends TypeInfoFactory<List<String>> {
        @Override
        public TypeInformation<List<String>> createTypeInfo(java.lang.reflect.Type t, Map<String, TypeInformation<?>> parameters) {
            return Types.LIST(Types.STRING);
        }
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.a = n + (last == null ? 0 : last.a);
            whole.names = new ArrayList<>(List.of("x"));
            return whole;
        }

        Object show(Whole value) {
            return value.a + ":" + value.names;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueBoxRetyped extends Job {
    public static class Box<E> {
        public E it;
        public int n;
    }

    static final class Keep extends Keeping<Box<Integer>> { // old
    static final class Keep extends Keeping<Box<Long>> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", new TypeHint<Box<Integer>>() {}.getTypeInfo())); // old
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", new TypeHint<Box<Long>>() {}.getTypeInfo())); // new
        }

        Box<Integer> next(Box<Integer> last, int n) { // old
        Box<Long> next(Box<Long> last, int n) { // new
            Box<Integer> box = new Box<>(); // old
            box.it = n; // old
            return box; // old
            Box<Long> box = new Box<>(); // new
            box.it = (long) n; // new
            return box; // new
        }

        Object show(Box<Integer> value) { // old
        Object show(Box<Long> value) { // new
            return value.it;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueBoxInPojo extends Job {
    public static class Box<E> {
        public E it;
    }
    public static class Whole {
        public Box<Integer> box; // old
        public Box<Long> box; // new
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.box = new Box<>();
            whole.box.it = n; // old
            whole.box.it = (long) n; // new
            return whole;
        }

        Object show(Whole value) {
            return value.box.it;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueRowSwapped extends Job {


    static final class Keep extends Keeping<Row> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.ROW_NAMED(new String[] {"a", "b"}, Types.INT, Types.INT))); // old
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.ROW_NAMED(new String[] {"b", "a"}, Types.INT, Types.INT))); // new
        }

        Row next(Row last, int n) {
            return Row.of(n, n + 1);
        }

        Object show(Row value) {
            return value.getField(0);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueHintStatic extends Job {
    static final TypeHint<Tuple2<String, Integer>> HINT = new TypeHint<>() {}; // old
    static final TypeHint<Tuple2<String, Long>> HINT = new TypeHint<>() {}; // new

    static final class Keep extends Keeping<Tuple2<String, Integer>> { // old
    static final class Keep extends Keeping<Tuple2<String, Long>> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", TypeInformation.of(HINT)));
        }

        Tuple2<String, Integer> next(Tuple2<String, Integer> last, int n) { // old
        Tuple2<String, Long> next(Tuple2<String, Long> last, int n) { // new
            return Tuple2.of("x", n); // old
            return Tuple2.of("x", (long) n); // new
        }

        Object show(Tuple2<String, Integer> value) { // old
        Object show(Tuple2<String, Long> value) { // new
            return value.f1;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueListOfObjects extends Job {
    public static class Part {
        public int a;
        public String b; // new
    }
    public static class Whole {
        public List<Object> parts = new ArrayList<>();
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            Part part = new Part();
            part.a = n;
            whole.parts.add(part);
            return whole;
        }

        Object show(Whole value) {
            return ((Part) value.parts.get(0)).a;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** New fields have the constructor's value, or null. */
/** A setter that returns itself. */
/** Kryo does not call the methods. */
final class ValueExternalizable extends Job {
    public static final class Whole implements java.io.Externalizable {
        private int a;
        private int b;
        public Whole() {}
        @Override
        public void writeExternal(java.io.ObjectOutput out) throws java.io.IOException {
            out.writeInt(a);
            out.writeInt(b); // new
        }
        @Override
        public void readExternal(java.io.ObjectInput in) throws java.io.IOException {
            a = in.readInt();
            b = in.readInt(); // new
        }
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.a = n + (last == null ? 0 : last.a);
            return whole;
        }

        Object show(Whole value) {
            return value.a;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** Anonymous classes have numbers. */
final class ValueAnonymous extends Job {
    interface Rule extends java.io.Serializable {
        int of(int n);
    }
    static Rule rule(int m) {
        Rule other = new Rule() { // new
            public int of(int n) { // new
                return -n; // new
            } // new
        }; // new
        return new Rule() {
            public int of(int n) {
                return n + m;
            }
        };
    }
    static final class Whole {
        private Rule rule;
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.rule = rule(n);
            return whole;
        }

        Object show(Whole value) {
            return value.rule.of(1);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueTupleSubclassAdded extends Job {
    public static class Two extends Tuple2<Integer, String> {
        public Two() {}

        Two(int a, String b) {
            super(a, b);
        }
    }

    static final class Keep extends Keeping<Tuple2<Integer, String>> { // old
    static final class Keep extends Keeping<Two> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.TUPLE(Types.INT, Types.STRING))); // old
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", TypeInformation.of(Two.class))); // new
        }

        Tuple2<Integer, String> next(Tuple2<Integer, String> last, int n) { // old
        Two next(Two last, int n) { // new
            return Tuple2.of(n, "x"); // old
            return new Two(n, "x"); // new
        }

        Object show(Tuple2<Integer, String> value) { // old
        Object show(Two value) { // new
            return value.f0 + value.f1;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueTupleSubclassOther extends Job {
    public static class One extends Tuple2<Integer, String> {
        public One() {}
    }
    public static class Two extends Tuple2<Integer, String> {
        public Two() {}
    }

    static final class Keep extends Keeping<One> { // old
    static final class Keep extends Keeping<Two> { // new
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", One.class)); // old
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Two.class)); // new
        }

        One next(One last, int n) { // old
        Two next(Two last, int n) { // new
            One one = new One(); // old
            one.setFields(n, "x"); // old
            return one; // old
            Two two = new Two(); // new
            two.setFields(n, "x"); // new
            return two; // new
        }

        Object show(One value) { // old
        Object show(Two value) { // new
            return value.f0 + value.f1;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueKryoMapToSorted extends Job {
    static final class Whole {
        private Map<String, Integer> a = new HashMap<>(); // old
        private java.util.SortedMap<String, Integer> a = new TreeMap<>(); // new
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.a.put("x", n);
            return whole;
        }

        Object show(Whole value) {
            return value.a.size();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueKryoDequeToList extends Job {
    static final class Whole {
        private java.util.Deque<Integer> a = new java.util.ArrayDeque<>(); // old
        private List<Integer> a = new ArrayList<>(); // new
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.a.add(n);
            return whole;
        }

        Object show(Whole value) {
            return value.a.size();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueKryoListInObject extends Job {
    static final class Whole {
        private Object a = new ArrayList<>(); // old
        private Collection<Integer> a = new java.util.HashSet<>(); // new
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            return whole;
        }

        Object show(Whole value) {
            return value.a.toString().length();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueAnonymousSame extends Job {
    interface Rule extends java.io.Serializable {
        int of(int n);
    }
    static Rule rule(int m) {
        return new Rule() {
            public int of(int n) {
                return n + m;
            }
        };
    }
    static final class Whole {
        private Rule rule;
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            String unused = "x" + n; // new
            Whole whole = new Whole();
            whole.rule = rule(0);
            return whole;
        }

        Object show(Whole value) {
            return value.rule.of(1);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueInterfaceGone extends Job {
    interface Shape {}
    static final class Circle implements Shape { // old
    static final class Circle { // new
        int r;
    }
    static final class Square implements Shape {
        int r;
    }
    static final class Whole {
        private Shape shape;
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            Circle shape = new Circle(); // old
            Square shape = new Square(); // new
            shape.r = n;
            whole.shape = shape;
            return whole;
        }

        Object show(Whole value) {
            return value.shape instanceof Circle ? ((Circle) value.shape).r : ((Square) value.shape).r; // old
            return ((Square) value.shape).r; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueSuperAdded extends Job {
    static class Base {
        int base; // new
    }
    static class Part {  // old
    static class Part extends Base { // new
        int r;
    }
    static final class Whole {
        private Part part;
    }

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            Whole whole = new Whole();
            whole.part = new Part();
            whole.part.r = n;
            return whole;
        }

        Object show(Whole value) {
            return value.part.r;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class ValueRecordToPojo extends Job {
    public record Whole(int n) {} // old
    public static class Whole { // new
        public int n; // new
        public Whole() {} // new
        Whole(int n) { // new
            this.n = n; // new
        } // new
        int n() { // new
            return n; // new
        } // new
    } // new

    static final class Keep extends Keeping<Whole> {
        @Override
        public void open(OpenContext context) throws Exception {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Whole.class));
        }

        Whole next(Whole last, int n) {
            return new Whole(n + (last == null ? 0 : last.n()));
        }

        Object show(Whole value) {
            return value.n();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}
