package jobs;

import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.functions.*;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.windowing.assigners.*;
import org.apache.flink.streaming.api.windowing.windows.*;
import org.apache.flink.util.Collector;

/** The accumulator of the same class has another type. */
final class TrapAccumulator extends WindowedJob {
    static final class Total implements AggregateFunction<String, Integer, String> { // old
        public Integer createAccumulator() { return 0; } // old
        public Integer add(String line, Integer sum) { return sum + Job.number(line); } // old
        public String getResult(Integer sum) { return "sum=" + sum; } // old
        public Integer merge(Integer a, Integer b) { return a + b; } // old
    } // old
    static final class Total implements AggregateFunction<String, Long, String> { // new
        public Long createAccumulator() { return 0L; } // new
        public Long add(String line, Long sum) { return sum + Job.number(line); } // new
        public String getResult(Long sum) { return "sum=" + sum; } // new
        public Long merge(Long a, Long b) { return a + b; } // new
    } // new
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).window(TumblingEventTimeWindows.of(TEN)).aggregate(new Total()).uid("windows");
    }
}

/** Explicit types. */
final class TrapExplicit extends WindowedJob {
    static final class Total<A extends Number> implements AggregateFunction<String, A, String> {
        public A createAccumulator() { return null; }
        public A add(String line, A sum) { return sum; }
        public String getResult(A sum) { return "sum=" + sum; }
        public A merge(A a, A b) { return a; }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).window(TumblingEventTimeWindows.of(TEN))
            .aggregate(new Total<Integer>(), Types.INT, Types.STRING).uid("windows"); // old
            .aggregate(new Total<Long>(), Types.LONG, Types.STRING).uid("windows"); // new
    }
}

/** An evictor under a condition. */
final class TrapEvictorSometimes extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        WindowedStream<String, String, TimeWindow> w = keyed(lines).window(TumblingEventTimeWindows.of(TEN));
        if (Boolean.getBoolean("evict")) { // new
            w = w.evictor(org.apache.flink.streaming.api.windowing.evictors.CountEvictor.of(3)); // new
        } // new
        return w.aggregate(new Sum()).uid("windows");
    }
}

/** The old function is left in the jar. */
final class TrapSecondVersion extends Job {
    static class First extends SummingValue {
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
        }
    }
    static class Second extends Summing { // new
        ListState<Integer> sum; // new
        public void open(OpenContext context) throws Exception { // new
            sum = getRuntimeContext().getListState(new ListStateDescriptor<>("sum", Types.INT)); // new
        } // new
        int add(String key, int number) throws Exception { sum.add(number); return number; } // new
    } // new
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new First()).uid("sums"); // old
        return keyed(lines).flatMap(new Second()).uid("sums"); // new
    }
}

/** Two functions with states of one name exchange their types. */
final class TrapTypesSwapped extends Job {
    static class Ints extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }
    }
    static class Longs extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // old
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // new
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        keyed(lines).flatMap(new Longs()).uid("longs").print();
        return keyed(lines).flatMap(new Ints()).uid("sums");
    }
}

/** A helper declared the state, the new code does itself. */
final class TrapHelper extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        static <T> ValueStateDescriptor<T> value(String name, TypeInformation<T> type) { // old
            return new ValueStateDescriptor<>(name, type); // old
        } // old
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(value("sum", Types.INT)); // old
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG)); // new
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** A helper makes another kind of state. */
final class TrapHelperKind extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        static StateDescriptor<?, ?> state(String name) {
            return new ValueStateDescriptor<>(name, Types.INT); // old
            return new ListStateDescriptor<>(name, Types.INT); // new
        }
        public void flatMap(String line, Collector<String> out) {}
        @SuppressWarnings("unchecked")
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState((ValueStateDescriptor<Integer>) state("sum")); // old
            getRuntimeContext().getListState((ListStateDescriptor<Integer>) state("sum")); // new
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** A subclass of a descriptor gets another type. */
final class TrapDescriptorClass extends Job {
    static class SumState extends ValueStateDescriptor<Integer> { // old
        SumState() { super("sum", Types.INT); } // old
    } // old
    static class SumState extends ValueStateDescriptor<Long> { // new
        SumState() { super("sum", Types.LONG); } // new
    } // new
    static class Sums extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new SumState());
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** A generic function whose base declares the state. */
final class TrapBase extends Job {
    static abstract class Base<T> extends RichFlatMapFunction<String, String> {
        final Class<T> type;
        Base(Class<T> type) { this.type = type; }
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", type));
        }
    }
    static class Sums extends Base<Integer> { // old
        Sums() { super(Integer.class); } // old
    } // old
    static class Sums extends Base<Long> { // new
        Sums() { super(Long.class); } // new
    } // new
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** The keys of another chain change. */
final class TrapOtherKeys extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        KeyedStream<String, String> first = lines.keyBy(line -> line.split(",")[0]);
        KeyedStream<String, String> second = lines.keyBy(line -> line.split(",")[1]); // old
        KeyedStream<String, Integer> second = lines.keyBy(line -> number(line)); // new
        second.map(x -> x).print();
        return first.flatMap(new InValue()).uid("sums");
    }
}

/** Computed in a transformation. */
final class TrapTransformation extends Job {
    static String prefix = "su"; // new
    public DataStream<?> build(DataStream<String> lines) {
        SingleOutputStreamOperator<String> sums = keyed(lines).flatMap(new InValue());
        lines.map(x -> x).returns(Types.STRING).uid("other").print();
        sums.uid("sums"); // old
        sums.getTransformation().setUid(prefix + "ms"); // new
        return sums;
    }
}

/** Another class without a name in the code has the records. */
final class TrapUnnamed extends Job {
    public static class Named {
        public String key;
        public int number;
    }
    public static class Event {
        public String key;
        public int number;
        public String note; // new
    }
    static final class Use implements MapFunction<Named, String> {
        public String map(Named value) { return ""; }
    }
    public DataStream<?> build(DataStream<String> lines) {
        Object first = new Event();
        return lines.getExecutionEnvironment().fromElements(first).uid("parse").rebalance()
                .flatMap(new Hold<Object>()).returns(Types.STRING).uid("hold");
    }
}

/** The type comes from a superclass of the job. */
final class TrapInherited extends Job {
    public static class Named {
        public String key;
        public int number;
    }
    public static class Event {
        public String key;
        public int number;
        public String note; // new
    }
    static final class Use implements MapFunction<Named, String> {
        public String map(Named value) { return ""; }
    }
    static abstract class Base<T> implements MapFunction<String, T> {}
    static final class Make extends Base<Event> {
        public Event map(String line) { return null; }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return lines.map(new Make()).uid("parse").rebalance()
                .flatMap(new Hold<Event>()).returns(Types.STRING).uid("hold");
    }
}

/** Types of type hints. */
final class TrapHint extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TypeInformation.of(new TypeHint<Integer>() {}))); // old
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TypeInformation.of(new TypeHint<Long>() {}))); // new
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** A type of a class. */
final class TrapTypeOf extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TypeInformation.of(Integer.class))); // old
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TypeInformation.of(Long.class))); // new
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** The function is chosen at run time. */
final class TrapEitherWindow extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        WindowedStream<String, String, TimeWindow> w = keyed(lines).window(TumblingEventTimeWindows.of(TEN));
        return w.aggregate(new Sum()).uid("windows"); // old
        return (Boolean.getBoolean("x") ? w.aggregate(new Sum()) : w.process(new All<>())).uid("windows"); // new
    }
}

/** The class of the accumulator in the superclass of the function. */
final class TrapAccumulatorBase extends WindowedJob {
    static abstract class Base<A> implements AggregateFunction<String, A, String> {
        public A merge(A a, A b) { return a; }
        public A add(String line, A sum) { return sum; }
        public String getResult(A sum) { return "sum=" + sum; }
    }
    static final class Total extends Base<Integer> { public Integer createAccumulator() { return 0; } } // old
    static final class Total extends Base<Long> { public Long createAccumulator() { return 0L; } } // new
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).window(TumblingEventTimeWindows.of(TEN)).aggregate(new Total()).uid("windows");
    }
}

/** A method of the job switches on a time to live. */
final class TrapTtlHelper extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        static <T> ValueStateDescriptor<T> withTtl(ValueStateDescriptor<T> state) {
            state.enableTimeToLive(StateTtlConfig.newBuilder(java.time.Duration.ofDays(9)).build());
            return state;
        }
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            getRuntimeContext().getState(withTtl(new ValueStateDescriptor<>("sum", Types.INT))); // new
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** A helper gets from another class whether to set a time to live; a thrown exception decides, which nothing but Java knows. */
final class TrapTtlArgument extends Job {
    static boolean keeps() {
        try {
            return java.net.URI.create("x:").isAbsolute(); // old
            return java.net.URI.create("x").isAbsolute(); // new
        } catch (IllegalArgumentException e) {
            return false;
        }
    }
    static class Sums extends RichFlatMapFunction<String, String> {
        static <T> ValueStateDescriptor<T> with(ValueStateDescriptor<T> state, boolean ttl) {
            if (ttl) {
                state.enableTimeToLive(StateTtlConfig.newBuilder(java.time.Duration.ofDays(9)).build());
            }
            return state;
        }
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(with(new ValueStateDescriptor<>("sum", Types.INT), keeps()));
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** A property decides a uid. */
final class TrapUidOfProperty extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid(System.getProperty("uid", "sums")); // old
        return keyed(lines).flatMap(new Sums()).uid(System.getProperty("uid", "totals")); // new
    }
}

/** One max parallelism is known, and another one is not. */
final class TrapComputedLimit extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        int other = Integer.getInteger("other", 7); // new
        lines.map(line -> line).returns(Types.STRING).setMaxParallelism(other).print(); // new
        return keyed(lines).flatMap(new Sums()).uid("sums")
                .setMaxParallelism(64) // new
                ;
    }
}

/** Two windows exchange their functions. */
final class TrapWindowsSwapped extends WindowedJob {
    public DataStream<?> build(DataStream<String> lines) {
        keyed(lines).window(TumblingEventTimeWindows.of(TEN))
                .aggregate(new LongSum()).uid("other").print(); // old
                .aggregate(new Sum()).uid("other").print(); // new
        return keyed(lines).window(TumblingEventTimeWindows.of(TEN))
                .aggregate(new Sum()).uid("windows"); // old
                .aggregate(new LongSum()).uid("windows"); // new
    }
}

/** Two classes of the jar build jobs. */
final class TrapTwoMains extends Job {
    static final class First {
        public static void main(String[] arguments) throws Exception {
            new TrapTwoMains().build(org.apache.flink.streaming.api.environment.StreamExecutionEnvironment.getExecutionEnvironment().fromData("x"));
        }
    }

    static final class Second {
        public static void main(String[] arguments) throws Exception {
            org.apache.flink.streaming.api.environment.StreamExecutionEnvironment.getExecutionEnvironment().fromData("x").print();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new InValue()).uid("sums");
    }
}

/** The elements that an asynchronous function waits for have another type: Flink refuses them. */
final class TrapAsyncType extends Job {
    static final class Ask<T> implements org.apache.flink.streaming.api.functions.async.AsyncFunction<T, String> {
        public void asyncInvoke(T value, org.apache.flink.streaming.api.functions.async.ResultFuture<String> result) {
            result.complete(java.util.Collections.singleton(String.valueOf(value)));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        DataStream<String> events = lines.map(line -> line).returns(Types.STRING).uid("parse"); // old
        return AsyncDataStream.orderedWait(events, new Ask<String>(), 1, java.util.concurrent.TimeUnit.HOURS).uid("ask"); // old
        DataStream<Integer> events = lines.map(line -> number(line)).returns(Types.INT).uid("parse"); // new
        return AsyncDataStream.orderedWait(events, new Ask<Integer>(), 1, java.util.concurrent.TimeUnit.HOURS).uid("ask"); // new
    }
}

/** A method of the job sets the time to live, and the type changes. */
final class TrapTtlOfHelper extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        static <T> ValueStateDescriptor<T> withTtl(ValueStateDescriptor<T> state) {
            state.enableTimeToLive(StateTtlConfig.newBuilder(java.time.Duration.ofDays(9)).build());
            return state;
        }
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(withTtl(new ValueStateDescriptor<>("sum", Types.INT))); // old
            getRuntimeContext().getState(withTtl(new ValueStateDescriptor<>("sum", Types.LONG))); // new
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** Types that methods and types of the job make. */
final class OwnTypes {
    static TypeInformation<?> getTypeInfo(TypeInformation<?> of) {
        return of; // old
        return Types.LONG; // new
    }
    static TypeInformation<Integer> getTypeInfo() {
        return Types.INT; // old
        return (TypeInformation) Types.LONG; // new
    }

    static class Own<T> extends TypeInformation<T> {
        private final TypeInformation<T> of;
        Own(TypeInformation<T> of) { this.of = of; }
        public boolean isBasicType() { return false; }
        public boolean isTupleType() { return false; }
        public int getArity() { return 1; }
        public int getTotalFields() { return 1; }
        public Class<T> getTypeClass() { return of.getTypeClass(); }
        public boolean isKeyType() { return true; }
        public TypeSerializer<T> createSerializer(ExecutionConfig config) {
            return (TypeSerializer) IntSerializer.INSTANCE; // old
            return (TypeSerializer) LongSerializer.INSTANCE; // new
        }
        public String toString() { return "own"; }
        public boolean equals(Object other) { return other == this; }
        public int hashCode() { return 1; }
        public boolean canEqual(Object other) { return true; }
    }
}

/** A method of the job is named after one of Flink's. */
final class TrapNamedAsFlinks extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", OwnTypes.getTypeInfo(Types.INT)));
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** The types of a map, one of them from a method of the job. */
final class TrapMapOfMethod extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getMapState(new MapStateDescriptor<>("sum", Types.STRING, OwnTypes.getTypeInfo()));
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** A type of the job makes the serializer. */
final class TrapOwnType extends Job {
    static class Sums extends RichFlatMapFunction<String, String> {
        public void flatMap(String line, Collector<String> out) {}
        public void open(OpenContext context) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("sum", new OwnTypes.Own<>(Types.INT).createSerializer((ExecutionConfig) null)));
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** States whose types the job computes by methods of Flink, or of the job with such names. */
final class ComputedTypes {
    static final TypeHint<Integer> HINT = new TypeHint<Integer>() {};
    static final TypeInformation<?> OF_HINT = Types.LIST(HINT.getTypeInfo());

    static Object[] computed(TypeInformation<Integer> given, TypeHint<String> hint) {
        return new Object[] {
            new ValueStateDescriptor<>("method", OwnTypes.getTypeInfo(Types.INT)),
            new MapStateDescriptor<>("map", Types.STRING, OwnTypes.getTypeInfo()),
            new ValueStateDescriptor<>("own", new OwnTypes.Own<>(Types.INT)),
            new ValueStateDescriptor<>("own serializer", new OwnTypes.Own<>(Types.INT).createSerializer((ExecutionConfig) null)),
            new ValueStateDescriptor<>("cast", ((TypeInformation<Integer>) new OwnTypes.Own<>(Types.INT)).createSerializer((ExecutionConfig) null)),
            new MapStateDescriptor<>("given", Types.STRING.createSerializer((ExecutionConfig) null), given.createSerializer((ExecutionConfig) null)),
            new MapStateDescriptor<>("config", Types.STRING.createSerializer((ExecutionConfig) null), given.createSerializer(new ExecutionConfig())),
            new ValueStateDescriptor<>("hidden", hint.getTypeInfo(), "none"),
            new ValueStateDescriptor<>("constant", OF_HINT),
            new ValueStateDescriptor<>("part", Types.MAP(Types.STRING, hint.getTypeInfo())),
        };
    }

    static Object[] known(ExecutionConfig config) {
        return new Object[] {
            new ValueStateDescriptor<>("null", Types.INT.createSerializer((ExecutionConfig) null)),
            new MapStateDescriptor<>("variable", Types.STRING.createSerializer(config), Types.LONG.createSerializer(new ExecutionConfig())),
            new MapStateDescriptor<>("hint", Types.STRING, new TypeHint<Integer>() {}.getTypeInfo()),
        };
    }
}

/** A setter changes the type after the function was given to the stream. */
final class TrapSetLater extends Job {
    static class Sums extends SummingValue {
        TypeInformation<?> type = Types.INT;
        @SuppressWarnings("unchecked")
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", (TypeInformation<Integer>) type));
        }
    }
    public DataStream<?> build(DataStream<String> lines) {
        Sums sums = new Sums();
        DataStream<String> built = keyed(lines).flatMap(sums).uid("sums");
        sums.type = Types.LONG; // new
        return built;
    }
}

/** A method that nothing calls declares the state with another type. */
final class TrapNotCalled extends Job {
    static class Sums extends SummingValue {
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("s" + suffix(), Types.INT));
        }
        static String suffix() { return "um"; } // old
        static String suffix() { return "u" + "m".trim(); } // new
        public void other() throws Exception { // new
            getRuntimeContext().getState(new ValueStateDescriptor<>("s" + suffix(), Types.LONG)); // new
        } // new
    }
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** The jar has another job with the same uid. */
final class TrapOtherJob extends Job {
    static class Sums extends SummingValue {
        private final TypeInformation<Integer> type;
        Sums(TypeInformation<Integer> type) { this.type = type; }
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", type));
        }
    }
    static class Other extends Job { // new
        @SuppressWarnings({"unchecked", "rawtypes"}) // new
        public DataStream<?> build(DataStream<String> lines) { // new
            return keyed(lines).flatMap(new Sums((TypeInformation) Types.LONG)).uid("sums"); // new
        } // new
    } // new
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums(Types.INT)).uid("sums");
    }
}

/** The function gives its type itself, which is not that of its interface. */
final class TrapQueryable extends WindowedJob {
    static final class Parse implements MapFunction<String, Object>, org.apache.flink.api.java.typeutils.ResultTypeQueryable<Object> { // old
    static final class Parse implements MapFunction<String, Long>, org.apache.flink.api.java.typeutils.ResultTypeQueryable<Object> { // new
        public Object map(String line) { return line; } // old
        public Long map(String line) { return 1L; } // new
        @SuppressWarnings({"unchecked", "rawtypes"})
        public TypeInformation<Object> getProducedType() { return (TypeInformation) Types.STRING; }
    }
    public DataStream<?> build(DataStream<String> lines) {
        return lines.map(new Parse()).keyBy(one -> "" + one, Types.STRING).window(TumblingEventTimeWindows.of(TEN))
            .reduce((a, b) -> b).uid("windows");
    }
}

/** The function that has a uid is used without one, too. */
final class TrapNamedToo extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA())
            .union(keyed(lines).flatMap(new UidOnlyA()).uid("more")) // new
            ;
    }
}

/** The function has a uid under a condition. */
final class TrapNamedSometimes extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        SingleOutputStreamOperator<String> sums = keyed(lines).flatMap(new UidOnlyA());
        if (Boolean.getBoolean("named")) { // new
            sums.uid("sums"); // new
        } // new
        return sums;
    }
}

/** Two operators have different limits. */
final class TrapTwoLimits extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new InValue())
            .setMaxParallelism(64) // new
            .uid("sums").map(line -> line)
            .setMaxParallelism(32) // new
            ;
    }
}
