package jobs;

import java.time.Duration;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.co.CoFlatMapFunction;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.streaming.api.functions.co.RichCoFlatMapFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Keeps the last one. */
final class Last<T> implements ReduceFunction<T> {
    public T reduce(T a, T b) {
        return b;
    }
}

/** Tells how many elements a window has, and the last of them. */
final class Count<T> extends ProcessWindowFunction<T, String, String, TimeWindow> {
    @Override
    public void process(String key, Context context, Iterable<T> elements, Collector<String> out) {
        int count = 0;
        Object last = null;
        for (T one : elements) {
            count++;
            last = one;
        }
        out.collect(key + "=" + count + last);
    }
}

/** The types of a job, in a class of their own. */
final class ShopTypes {
    private ShopTypes() {}

    static TypeInformation<Tuple2<String, Integer>> order() { // old
        return Types.TUPLE(Types.STRING, Types.INT); // old
    static TypeInformation<Tuple2<String, Long>> order() { // new
        return Types.TUPLE(Types.STRING, Types.LONG); // new
    }
}

abstract class TuplesJob extends Job {
    static DataStream<Tuple2<String, Integer>> tuples(DataStream<String> lines) {
        return lines.map(line -> Tuple2.of(line.split(",")[0], number(line))).returns(Types.TUPLE(Types.STRING, Types.INT));
    }

    static DataStream<Tuple2<String, Long>> longTuples(DataStream<String> lines) {
        return lines.map(line -> Tuple2.of(line.split(",")[0], (long) number(line))).returns(Types.TUPLE(Types.STRING, Types.LONG));
    }
}

/** The type of the stream before a window comes from a method of another class. */
final class RevisedReduceType extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return lines
                .map(line -> Tuple2.of(line.split(",")[0], number(line))).returns(ShopTypes.order()) // old
                .map(line -> Tuple2.of(line.split(",")[0], (long) number(line))).returns(ShopTypes.order()) // new
                .keyBy(order -> order.f0, Types.STRING).window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .reduce(new Last<>()).uid("windows");
    }
}

/** The same of a window that has a list. */
final class RevisedListType extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return lines
                .map(line -> Tuple2.of(line.split(",")[0], number(line))).returns(ShopTypes.order()) // old
                .map(line -> Tuple2.of(line.split(",")[0], (long) number(line))).returns(ShopTypes.order()) // new
                .keyBy(order -> order.f0, Types.STRING).window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .process(new Count<>()).uid("windows");
    }
}

/** A POJO in the list of a window grows. */
final class RevisedListPojo extends Job {
    public static final class Order {
        public String key;
        public int number;
        public String note; // new

        @Override
        public String toString() {
            return key + number;
        }
    }

    static Order parse(String line) {
        Order order = new Order();
        order.key = line.split(",")[0];
        order.number = number(line);
        return order;
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.map(line -> parse(line)).returns(Order.class)
                .keyBy(order -> order.key, Types.STRING).window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .process(new Count<>()).uid("windows");
    }
}

final class RevisedSumToMax extends TuplesJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tuples(lines).keyBy(one -> one.f0, Types.STRING)
                .sum(1).uid("sums"); // old
                .max(1).uid("sums"); // new
    }
}

final class RevisedSumType extends TuplesJob {
    public DataStream<?> build(DataStream<String> lines) {
        return
                tuples(lines).keyBy(one -> one.f0, Types.STRING) // old
                longTuples(lines).keyBy(one -> one.f0, Types.STRING) // new
                .sum(1).uid("sums");
    }
}

final class RevisedReduceToSum extends TuplesJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tuples(lines).keyBy(one -> one.f0, Types.STRING)
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1)).uid("sums"); // old
                .sum(1).uid("sums"); // new
    }
}

final class RevisedCountWindow extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .countWindow(3).aggregate(new Sum()).uid("windows"); // old
                .countWindow(2).aggregate(new Sum()).uid("windows"); // new
    }
}

final class RevisedCountWindowSlides extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .countWindow(3).aggregate(new Sum()).uid("windows"); // old
                .countWindow(3, 1).aggregate(new Sum()).uid("windows"); // new
    }
}

final class RevisedCountToTimeWindow extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .countWindow(3).aggregate(new Sum()).uid("windows"); // old
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10))).aggregate(new Sum()).uid("windows"); // new
    }
}

final class Joined extends ProcessJoinFunction<String, Tuple2<String, Integer>, String> {
    @Override
    public void processElement(String line, Tuple2<String, Integer> order, Context context, Collector<String> out) {
        out.collect(line + "+" + order);
    }
}

final class JoinedBack extends ProcessJoinFunction<Tuple2<String, Integer>, String, String> {
    @Override
    public void processElement(Tuple2<String, Integer> order, String line, Context context, Collector<String> out) {
        out.collect(line + "+" + order);
    }
}

final class RevisedIntervalBounds extends TuplesJob {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).intervalJoin(tuples(lines).keyBy(one -> one.f0, Types.STRING))
                .between(Duration.ofSeconds(-5), Duration.ofSeconds(5)) // old
                .between(Duration.ofSeconds(-1), Duration.ofSeconds(1)) // new
                .process(new Joined()).uid("joined");
    }
}

final class RevisedIntervalSides extends TuplesJob {
    public DataStream<?> build(DataStream<String> lines) {
        KeyedStream<Tuple2<String, Integer>, String> orders = tuples(lines).keyBy(one -> one.f0, Types.STRING);
        return
                keyed(lines).intervalJoin(orders).between(Duration.ofSeconds(-5), Duration.ofSeconds(5)).process(new Joined()).uid("joined"); // old
                orders.intervalJoin(keyed(lines)).between(Duration.ofSeconds(-5), Duration.ofSeconds(5)).process(new JoinedBack()).uid("joined"); // new
    }
}

final class RevisedIntervalType extends Job {
    static final class Pairs extends ProcessJoinFunction<Tuple2<String, ?>, String, String> {
        @Override
        public void processElement(Tuple2<String, ?> order, String line, Context context, Collector<String> out) {
            out.collect(line + "+" + order);
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    public DataStream<?> build(DataStream<String> lines) {
        KeyedStream orders = lines
                .map(line -> Tuple2.of(line.split(",")[0], number(line))).returns(ShopTypes.order()) // old
                .map(line -> Tuple2.of(line.split(",")[0], (long) number(line))).returns(ShopTypes.order()) // new
                .keyBy(one -> one.f0, Types.STRING);
        return orders.intervalJoin(keyed(lines)).between(Duration.ofSeconds(-5), Duration.ofSeconds(5)).process(new Pairs(), Types.STRING).uid("joined");
    }
}

final class RevisedJoinSides extends TuplesJob {
    public DataStream<?> build(DataStream<String> lines) {
        DataStream<Tuple2<String, Integer>> orders = tuples(lines);
        return
                lines.join(orders).where(line -> line.split(",")[0], Types.STRING).equalTo(one -> one.f0, Types.STRING) // old
                orders.join(lines).where(one -> one.f0, Types.STRING).equalTo(line -> line.split(",")[0], Types.STRING) // new
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .apply((a, b) -> a + "+" + b, Types.STRING) // old
                .apply((a, b) -> b + "+" + a, Types.STRING) // new
                ;
    }
}

final class RevisedInputsSwapped extends Job {
    static final class Both extends RichCoFlatMapFunction<String, String, String> {
        transient ValueState<Integer> sum;

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
        }

        @Override
        public void flatMap1(String line, Collector<String> out) throws Exception {
            sum.update((sum.value() == null ? 0 : sum.value()) + number(line));
            out.collect(line + "=" + sum.value());
        }

        @Override
        public void flatMap2(String line, Collector<String> out) throws Exception {
            flatMap1(line, out);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        DataStream<String> none = lines.filter(line -> false);
        return
                keyed(lines).connect(keyed(none)) // old
                keyed(none).connect(keyed(lines)) // new
                .flatMap(new Both()).uid("sums");
    }
}

final class RevisedBroadcastRemoved extends Job {
    static final MapStateDescriptor<String, Integer> RULES = new MapStateDescriptor<>("rules", Types.STRING, Types.INT);

    static final class Ruled extends KeyedBroadcastProcessFunction<String, String, String, String> { // old
        @Override // old
        public void processElement(String line, ReadOnlyContext context, Collector<String> out) throws Exception { // old
            Integer rule = context.getBroadcastState(RULES).get("all"); // old
            ValueState<Integer> sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            sum.update((sum.value() == null ? 0 : sum.value()) + number(line)); // old
            out.collect(context.getCurrentKey() + "=" + sum.value()); // old
        } // old

        @Override // old
        public void processBroadcastElement(String line, Context context, Collector<String> out) throws Exception { // old
            context.getBroadcastState(RULES).put("all", number(line)); // old
        } // old
    } // old

    static final class Unruled extends KeyedProcessFunction<String, String, String> { // new
        @Override // new
        public void processElement(String line, Context context, Collector<String> out) throws Exception { // new
            ValueState<Integer> sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // new
            sum.update((sum.value() == null ? 0 : sum.value()) + number(line)); // new
            out.collect(context.getCurrentKey() + "=" + sum.value()); // new
        } // new
    } // new

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .connect(lines.broadcast(RULES)).process(new Ruled()).uid("ruled"); // old
                .process(new Unruled()).uid("ruled"); // new
    }
}

final class RevisedBroadcastType extends Job {
    static final MapStateDescriptor<String, Integer> RULES = new MapStateDescriptor<>("rules", Types.STRING, Types.INT); // old
    static final MapStateDescriptor<String, Long> RULES = new MapStateDescriptor<>("rules", Types.STRING, Types.LONG); // new

    static final class Ruled extends KeyedBroadcastProcessFunction<String, String, String, String> {
        @Override
        public void processElement(String line, ReadOnlyContext context, Collector<String> out) throws Exception {
            out.collect(line);
        }

        @Override
        public void processBroadcastElement(String line, Context context, Collector<String> out) throws Exception {
            context.getBroadcastState(RULES).put("all", number(line)); // old
            context.getBroadcastState(RULES).put("all", (long) number(line)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).connect(lines.broadcast(RULES)).process(new Ruled()).uid("ruled");
    }
}

/** Timers of the snapshot are of event time; the new function registers others. */
final class RevisedTimersKind extends Job {
    static final class Due extends KeyedProcessFunction<String, String, String> {
        transient ValueState<Integer> sum;

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
        }

        @Override
        public void processElement(String line, Context context, Collector<String> out) throws Exception {
            sum.update((sum.value() == null ? 0 : sum.value()) + number(line));
            context.timerService().registerEventTimeTimer(9_000); // old
            context.timerService().registerProcessingTimeTimer(System.currentTimeMillis() + 86_400_000); // new
        }

        @Override
        public void onTimer(long time, OnTimerContext context, Collector<String> out) throws Exception {
            out.collect(context.getCurrentKey() + "=" + sum.value());
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).process(new Due()).uid("timed");
    }
}

final class RevisedNameGiven extends Job {
    static final class Sums extends SummingValue {
        private final String name;

        Sums(String name) {
            this.name = name;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>(name, Types.INT));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .flatMap(new Sums("sum")).uid("sums"); // old
                .flatMap(new Sums("total")).uid("sums"); // new
    }
}

final class RevisedTypeGiven extends Job {
    static final class Keep<T> extends RichFlatMapFunction<String, String> {
        private final TypeInformation<T> type;
        private final T value;

        Keep(TypeInformation<T> type, T value) {
            this.type = type;
            this.value = value;
        }

        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            ValueState<T> kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", type));
            out.collect(line + kept.value());
            kept.update(value);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .flatMap(new Keep<>(Types.INT, 7)).returns(Types.STRING).uid("sums"); // old
                .flatMap(new Keep<>(Types.LONG, 7L)).returns(Types.STRING).uid("sums"); // new
    }
}

/** Two operators of one function, of which the argument decides. */
final class RevisedFlagGiven extends Job {
    static final class Keep extends RichFlatMapFunction<String, String> {
        private final boolean isLong;

        Keep(boolean isLong) {
            this.isLong = isLong;
        }

        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            if (isLong) {
                getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.LONG)).update(1L);
            } else {
                getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.INT)).update(1);
            }
            out.collect(line);
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines)
                .flatMap(new Keep(true)).uid("sums"); // old
                .flatMap(new Keep(false)).uid("sums"); // new
    }
}

/** An object that is no function has the state. */
final class RevisedHelperType extends Job {
    static final class Counter {
        private final ValueState<Integer> value; // old
        private final ValueState<Long> value; // new

        Counter(RuntimeContext context) {
            value = context.getState(new ValueStateDescriptor<>("count", Integer.class)); // old
            value = context.getState(new ValueStateDescriptor<>("count", Long.class)); // new
        }

        Object add() throws Exception {
            value.update(value.value() == null ? 1 : value.value() + 1);  // old
            value.update(value.value() == null ? 1L : value.value() + 1); // new
            return value.value();
        }
    }

    static final class Counting extends RichFlatMapFunction<String, String> {
        private transient Counter counter;

        @Override
        public void open(OpenContext context) {
            counter = new Counter(getRuntimeContext());
        }

        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            out.collect(line + counter.add());
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Counting()).uid("sums");
    }
}

/** A window function has a state of its own for each key. */
final class RevisedWindowGlobalState extends Job {
    static final class Numbered extends ProcessWindowFunction<String, String, String, TimeWindow> {
        @Override
        public void process(String key, Context context, Iterable<String> lines, Collector<String> out) throws Exception {
            ValueState<Integer> seen = context.globalState().getState(new ValueStateDescriptor<>("seen", Types.INT)); // old
            ValueState<Long> seen = context.globalState().getState(new ValueStateDescriptor<>("seen", Types.LONG)); // new
            out.collect(key + seen.value());
            seen.update(1); // old
            seen.update(1L); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).window(TumblingEventTimeWindows.of(Duration.ofMillis(500))).process(new Numbered()).uid("windows");
    }
}

final class RevisedMapToList extends Job {
    static final class Sums extends Summing {
        @Override
        int add(String key, int number) throws Exception {
            MapState<Integer, Integer> all = getRuntimeContext().getMapState(new MapStateDescriptor<>("sum", Types.INT, Types.INT)); // old
            all.put(number, number); // old
            ListState<Integer> all = getRuntimeContext().getListState(new ListStateDescriptor<>("sum", Types.INT)); // new
            all.add(number); // new
            return number;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class RevisedTupleLonger extends Job {
    static final class Keep extends RichFlatMapFunction<String, String> {
        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            ValueState<Tuple2<String, Integer>> kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.TUPLE(Types.STRING, Types.INT))); // old
            out.collect(line + (kept.value() == null)); // old
            kept.update(Tuple2.of(line, 1)); // old
            ValueState<Tuple3<String, Integer, Long>> kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.TUPLE(Types.STRING, Types.INT, Types.LONG))); // new
            out.collect(line + (kept.value() == null)); // new
            kept.update(Tuple3.of(line, 1, 2L)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** The fields of a tuple exchange their types. */
final class RevisedTupleSwapped extends Job {
    static final class Keep extends RichFlatMapFunction<String, String> {
        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            ValueState<Tuple2<Integer, Float>> kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.TUPLE(Types.INT, Types.FLOAT))); // old
            out.collect(line + kept.value()); // old
            kept.update(Tuple2.of(1, 2f)); // old
            ValueState<Tuple2<Float, Integer>> kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.TUPLE(Types.FLOAT, Types.INT))); // new
            out.collect(line + kept.value()); // new
            kept.update(Tuple2.of(2f, 1)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class RevisedRow extends Job {
    static final class Keep extends RichFlatMapFunction<String, String> {
        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            TypeInformation<Row> type = Types.ROW_NAMED(new String[] {"a", "b"}, Types.STRING, Types.INT); // old
            TypeInformation<Row> type = Types.ROW_NAMED(new String[] {"a", "b", "c"}, Types.STRING, Types.INT, Types.LONG); // new
            ValueState<Row> kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", type));
            out.collect(line + (kept.value() == null ? "" : kept.value().getField(0)));
            kept.update(Row.of(line, 1)); // old
            kept.update(Row.of(line, 1, 2L)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class RevisedKeyGrown extends Job {
    public static final class Key {
        public String name;
        public int tenant; // new

        @Override
        public int hashCode() {
            return name.hashCode();
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key && ((Key) other).name.equals(name);
        }
    }

    static Key key(String line) {
        Key key = new Key();
        key.name = line.split(",")[0];
        return key;
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.keyBy(line -> key(line), TypeInformation.of(Key.class)).flatMap(new InValue()).uid("sums");
    }
}

final class RevisedMapTtl extends Job {
    static final class Sums extends Summing {
        @Override
        int add(String key, int number) throws Exception {
            MapStateDescriptor<Integer, Integer> sums = new MapStateDescriptor<>("sum", Types.INT, Types.INT);
            sums.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(9)).build()); // new
            MapState<Integer, Integer> all = getRuntimeContext().getMapState(sums);
            all.put(number, number);
            int count = 0;
            for (Integer one : all.keys()) {
                count += one;
            }
            return count;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

final class RevisedMaxParallelism extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new InValue())
                .setMaxParallelism(64) // new
                .uid("sums");
    }
}

final class RevisedOperatorToKeyed extends Job {
    static final class Sums extends Held { // old
        ListState<Integer> state(org.apache.flink.runtime.state.FunctionInitializationContext context) throws Exception { // old
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("sum", Types.INT)); // old
        } // old
    } // old

    public DataStream<?> build(DataStream<String> lines) {
        return lines.flatMap(new Sums()).uid("sums"); // old
        return keyed(lines).flatMap(new InValue()).uid("sums"); // new
    }
}

final class RevisedUidComputed extends Job {
    static String uid(String name) {
        return name + "-v1"; // old
        return name + "-v2"; // new
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new InValue()).uid(uid("sums"));
    }
}

final class RevisedSideOutput extends Job {
    static final OutputTag<String> LATE = new OutputTag<String>("late") {}; // old
    static final OutputTag<Long> LATE = new OutputTag<Long>("too-late") {}; // new

    static final class Due extends KeyedProcessFunction<String, String, String> {
        transient ValueState<Integer> sum;

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT));
        }

        @Override
        public void processElement(String line, Context context, Collector<String> out) throws Exception {
            sum.update((sum.value() == null ? 0 : sum.value()) + number(line));
            out.collect(line + sum.value());
            context.output(LATE, line); // old
            context.output(LATE, 1L); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).process(new Due()).uid("sums");
    }
}

/** The same state, by a constant and a method of a base class. */
final class RevisedRefactored extends Job {
    static final class Sums extends SummingValue { // old
        @Override // old
        public void open(OpenContext context) throws Exception { // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
        } // old
    } // old

    static final class States { // new
        static final ValueStateDescriptor<Integer> SUM = new ValueStateDescriptor<>("sum", Types.INT); // new
    } // new

    static final class Sums extends SummingValue { // new
        @Override // new
        public void open(OpenContext context) throws Exception { // new
            sum = getRuntimeContext().getState(States.SUM); // new
        } // new
    } // new

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** The same key, by a class instead of a lambda. */
final class RevisedKeyByClass extends Job {
    static final class ByName implements org.apache.flink.api.java.functions.KeySelector<String, String> { // new
        @Override // new
        public String getKey(String line) { // new
            return line.split(",")[0]; // new
        } // new
    } // new

    public DataStream<?> build(DataStream<String> lines) {
        return lines
                .keyBy(line -> line.split(",")[0]) // old
                .keyBy(new ByName()) // new
                .flatMap(new InValue()).uid("sums");
    }
}

/** Aggregates of POJOs, whose accumulator changes the type of a field. */
final class RevisedAccumulatorField extends Job {
    public static final class Total {
        public int sum; // old
        public long sum; // new
        public String note = "-";
    }

    static final class Totals implements AggregateFunction<String, Total, String> {
        public Total createAccumulator() {
            return new Total();
        }

        public Total add(String line, Total total) {
            total.sum += number(line);
            return total;
        }

        public String getResult(Total total) {
            return "sum=" + total.sum;
        }

        public Total merge(Total a, Total b) {
            a.sum += b.sum;
            return a;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).window(TumblingEventTimeWindows.of(Duration.ofSeconds(10))).aggregate(new Totals()).uid("windows");
    }
}

/** A non-keyed operator before the keyed one is gone, with its state. */
final class RevisedOperatorGone extends Job {
    static final class Totals extends Held {
        ListState<Integer> state(org.apache.flink.runtime.state.FunctionInitializationContext context) throws Exception {
            return context.getOperatorStateStore().getListState(new ListStateDescriptor<>("total", Types.INT));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        lines.flatMap(new Totals()).uid("totals").map(x -> x).uid("shown"); // old
        return keyed(lines).flatMap(new InValue()).uid("sums");
    }
}

/** Another source under the same uid. */
final class RevisedSource extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        DataStream<String> more = lines.getExecutionEnvironment()
                .fromSequence(0, Long.MAX_VALUE / 2).uid("aside").map(RevisedSource::slowly).uid("slow"); // old
                .fromSource(new org.apache.flink.connector.datagen.source.DataGeneratorSource<>(i -> i, Long.MAX_VALUE / 2, Types.LONG), // new
                        org.apache.flink.api.common.eventtime.WatermarkStrategy.noWatermarks(), "numbers").uid("aside") // new
                .map(RevisedSource::slowly).uid("slow"); // new
        return keyed(lines).flatMap(new InValue()).uid("sums").union(more.filter(x -> x.isEmpty()));
    }

    static String slowly(Long number) throws InterruptedException {
        Thread.sleep(5);
        return "x";
    }
}

/** A source that reads files instead of numbers. */
final class RevisedSourceToFiles extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        DataStream<String> more = lines.getExecutionEnvironment()
                .fromSequence(0, Long.MAX_VALUE / 2).uid("aside").map(RevisedSource::slowly).uid("slow"); // old
                .fromSource(org.apache.flink.connector.file.src.FileSource.forRecordStreamFormat( // new
                        new org.apache.flink.connector.file.src.reader.TextLineInputFormat(), new org.apache.flink.core.fs.Path(folder())) // new
                        .monitorContinuously(Duration.ofDays(1)).build(), // new
                        org.apache.flink.api.common.eventtime.WatermarkStrategy.noWatermarks(), "files").uid("aside") // new
                .map(line -> line).uid("slow"); // new
        return keyed(lines).flatMap(new InValue()).uid("sums").union(more.filter(x -> x.isEmpty()));
    }

    static java.net.URI folder() {
        try {
            return java.nio.file.Files.createTempDirectory("files").toUri();
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}

/** The function of a reducing state keeps the largest number instead of the sum. */
final class RevisedReducer extends Job {
    static final class Sums extends Summing {
        @Override
        int add(String key, int number) throws Exception {
            org.apache.flink.api.common.state.ReducingState<Integer> sum = getRuntimeContext().getReducingState(
                    new org.apache.flink.api.common.state.ReducingStateDescriptor<>("sum", Integer::sum, Types.INT)); // old
                    new org.apache.flink.api.common.state.ReducingStateDescriptor<>("sum", Integer::max, Types.INT)); // new
            sum.add(number);
            return sum.get();
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** The function of the window is a class of the same name in another package. */
final class RevisedPackage extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        lines.map(line -> new Sum().createAccumulator() + "" + new jobs.others.Sum().createAccumulator());
        return keyed(lines).window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .aggregate(new Sum()).uid("windows"); // old
                .aggregate(new jobs.others.Sum()).uid("windows"); // new
    }
}

/** Classes that Kryo knows by number exchange their numbers. */
final class RevisedKryoOrder extends Job {
    public static final class First {
        final int number;

        First(int number) {
            this.number = number;
        }
    }

    public static final class Second {
        final String text;

        Second(String text) {
            this.text = text;
        }
    }

    static final class Keep extends RichFlatMapFunction<String, String> {
        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            ValueState<Object> kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Object.class));
            Object was = kept.value();
            out.collect(line + (was instanceof First ? "first" : was instanceof Second ? "second" : ""));
            kept.update(line.startsWith("p") ? new First(1) : new Second("2"));
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        org.apache.flink.api.common.serialization.SerializerConfigImpl config =
                (org.apache.flink.api.common.serialization.SerializerConfigImpl) lines.getExecutionEnvironment().getConfig().getSerializerConfig();
        config.registerKryoType(First.class); // old
        config.registerKryoType(Second.class);
        config.registerKryoType(First.class); // new
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** A class is no longer registered with Kryo. */
final class RevisedKryoUnregistered extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        org.apache.flink.api.common.serialization.SerializerConfigImpl config =
                (org.apache.flink.api.common.serialization.SerializerConfigImpl) lines.getExecutionEnvironment().getConfig().getSerializerConfig();
        config.registerKryoType(RevisedKryoOrder.First.class); // old
        config.registerKryoType(RevisedKryoOrder.Second.class);
        return keyed(lines).flatMap(new RevisedKryoOrder.Keep()).uid("sums");
    }
}

/** A sink that writes files becomes one that discards them. */
final class RevisedSink extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        lines
                .sinkTo(org.apache.flink.connector.file.sink.FileSink.forRowFormat(new org.apache.flink.core.fs.Path(RevisedSourceToFiles.folder()), // old
                        new org.apache.flink.api.common.serialization.SimpleStringEncoder<String>()).build()).uid("sink"); // old
                .sinkTo(new org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink<>()).uid("sink"); // new
        return keyed(lines).flatMap(new InValue()).uid("sums");
    }
}

final class RevisedSerializerGiven extends Job {
    static final class Keep extends RichFlatMapFunction<String, String> {
        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            ValueState<Integer> kept = getRuntimeContext().getState( // old
                    new ValueStateDescriptor<>("kept", org.apache.flink.api.common.typeutils.base.IntSerializer.INSTANCE)); // old
            ValueState<Long> kept = getRuntimeContext().getState( // new
                    new ValueStateDescriptor<>("kept", org.apache.flink.api.common.typeutils.base.LongSerializer.INSTANCE)); // new
            out.collect(line + kept.value());
            kept.update(1); // old
            kept.update(1L); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

final class RevisedListInValue extends Job {
    static final class Keep extends RichFlatMapFunction<String, String> {
        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            ValueState<java.util.List<Integer>> kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.LIST(Types.INT))); // old
            ValueState<java.util.List<Long>> kept = getRuntimeContext().getState(new ValueStateDescriptor<>("kept", Types.LIST(Types.LONG))); // new
            out.collect(line + kept.value());
            kept.update(java.util.Arrays.asList(1, 2)); // old
            kept.update(java.util.Arrays.asList(1L, 2L)); // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Keep()).uid("sums");
    }
}

/** The type of the records of a window is that of a lambda. */
final class RevisedReduceLambda extends TuplesJob {
    public DataStream<?> build(DataStream<String> lines) {
        return
                tuples(lines) // old
                longTuples(lines) // new
                .keyBy(one -> one.f0, Types.STRING).window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .reduce((a, b) -> b).uid("windows");
    }
}

/** The type of the records of a window is that of the class before it. */
final class RevisedMapperType extends Job {
    static final class Parse implements org.apache.flink.api.common.functions.MapFunction<String, Integer> { // old
        public Integer map(String line) { // old
            return number(line); // old
        } // old
    } // old

    static final class Parse implements org.apache.flink.api.common.functions.MapFunction<String, Long> { // new
        public Long map(String line) { // new
            return (long) number(line); // new
        } // new
    } // new

    public DataStream<?> build(DataStream<String> lines) {
        return lines.map(new Parse()).keyBy(one -> "" + one % 2, Types.STRING).window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .process(new Count<>()).uid("windows");
    }
}

/** A window of another size whose function takes the type of the stream. */
final class RevisedReduceSize extends TuplesJob {
    public DataStream<?> build(DataStream<String> lines) {
        return tuples(lines).keyBy(one -> one.f0, Types.STRING)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10))) // old
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(20))) // new
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1)).uid("windows");
    }
}

/** The same with a function that is changed in its body only. */
final class RevisedReduceSame extends TuplesJob {
    public DataStream<?> build(DataStream<String> lines) {
        DataStream<?> sums = tuples(lines).keyBy(one -> one.f0, Types.STRING)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1)).uid("windows"); // old
                .reduce((a, b) -> Tuple2.of(a.f0, b.f1 + a.f1)).uid("windows"); // new
        lines.filter(line -> line.isEmpty()).uid("more"); // new
        return sums;
    }
}

/** The class that selects keys selects other ones. */
final class RevisedKeyBody extends Job {
    static final class ByName implements org.apache.flink.api.java.functions.KeySelector<String, String> {
        @Override
        public String getKey(String line) {
            return line.split(",")[0]; // old
            return "tenant-" + line.split(",")[0]; // new
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.keyBy(new ByName()).flatMap(new InValue()).uid("sums");
    }
}

/** A method that the selector calls changes. */
final class RevisedKeyHelper extends Job {
    static String key(String line) {
        return line.split(",")[0]; // old
        return "tenant-" + line.split(",")[0]; // new
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.keyBy(line -> key(line)).flatMap(new InValue()).uid("sums");
    }
}

/** The method that selects keys changes. */
final class RevisedKeyReference extends Job {
    static String key(String line) {
        return line.split(",")[0]; // old
        return "tenant-" + line.split(",")[0]; // new
    }

    public DataStream<?> build(DataStream<String> lines) {
        return lines.keyBy(RevisedKeyReference::key).flatMap(new InValue()).uid("sums");
    }
}

/** Values live so short in the new job that those of the snapshot are expired. */
final class RevisedTtlShorter extends Job {
    static final class Sums extends SummingValue {
        @Override
        public void open(OpenContext context) throws Exception {
            ValueStateDescriptor<Integer> sums = new ValueStateDescriptor<>("sum", Types.INT);
            sums.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(9)).build()); // old
            sums.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofMillis(1)).build()); // new
            sum = getRuntimeContext().getState(sums);
        }

        @Override
        int add(String key, int number) throws Exception {
            int result = super.add(key, number); // old
            sum.update((sum.value() == null ? 0 : sum.value()) + number); // new
            int result = number; // new
            return result;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Sums()).uid("sums");
    }
}

/** The names of two states are exchanged. */
final class RevisedNamesSwapped extends Job {
    static final class Both extends RichFlatMapFunction<String, String> {
        transient ValueState<Integer> sum;
        transient ValueState<Integer> count;

        @Override
        public void open(OpenContext context) throws Exception {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // old
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.INT)); // old
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.INT)); // new
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.INT)); // new
        }

        @Override
        public void flatMap(String line, Collector<String> out) throws Exception {
            sum.update((sum.value() == null ? 0 : sum.value()) + number(line));
            count.update((count.value() == null ? 0 : count.value()) + 1);
            out.collect(line.split(",")[0] + sum.value() + "/" + count.value());
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Both()).uid("sums");
    }
}
