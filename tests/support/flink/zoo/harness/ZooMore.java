package harness;

import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.CoGroupFunction;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.JoinFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.GlobalWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.evictors.CountEvictor;
import org.apache.flink.streaming.api.windowing.triggers.ContinuousEventTimeTrigger;
import org.apache.flink.streaming.api.windowing.triggers.CountTrigger;
import org.apache.flink.streaming.api.windowing.triggers.DeltaTrigger;
import org.apache.flink.streaming.api.windowing.triggers.PurgingTrigger;
import org.apache.flink.streaming.api.windowing.triggers.Trigger;
import org.apache.flink.streaming.api.windowing.windows.GlobalWindow;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.api.windowing.windows.Window;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;
import zoo.Zoo;

/** Windows, joins, broadcast and operator state: what the elements {@code (key, n, time)} leave in them. */
public final class ZooMore {
    static final int N = 60;
    static final Map<String, AtomicInteger> ALLOWED = new ConcurrentHashMap<>();
    static final Map<String, AtomicInteger> SEEN = new ConcurrentHashMap<>();
    static final TypeInformation<Tuple3<Zoo.Id, Integer, Long>> ELEMENT =
            TypeInformation.of(new TypeHint<Tuple3<Zoo.Id, Integer, Long>>() {});

    private ZooMore() {}

    static Zoo.Id id(int n) {
        return new Zoo.Id("k" + n % 7, n % 7, Tuple2.of(n % 2 == 0 ? 0 : n % 7, ""));
    }

    static final class Feeder implements FlatMapFunction<Long, Tuple3<Zoo.Id, Integer, Long>> {
        private final String run;
        private int next;

        Feeder(String run) {
            this.run = run;
        }

        @Override
        public void flatMap(Long value, Collector<Tuple3<Zoo.Id, Integer, Long>> out) throws Exception {
            if (next < ALLOWED.get(run).get()) {
                int n = next++;
                out.collect(Tuple3.of(new Zoo.Id("k" + n % 7, n % 7, Tuple2.of(1, "")), n, 1_700_000_000_000L + n * 1000L));
                SEEN.get(run).set(next);
            } else {
                Thread.sleep(2);
            }
        }
    }

    static final class Key implements KeySelector<Tuple3<Zoo.Id, Integer, Long>, Zoo.Id> {
        @Override
        public Zoo.Id getKey(Tuple3<Zoo.Id, Integer, Long> v) {
            return v.f0;
        }
    }

    /** Watermarks at ten seconds behind, and none after element 30. */
    static final class Marks implements WatermarkGenerator<Tuple3<Zoo.Id, Integer, Long>> {
        @Override
        public void onEvent(Tuple3<Zoo.Id, Integer, Long> v, long time, WatermarkOutput out) {
            if (v.f1 == 30) {
                out.emitWatermark(new Watermark(v.f2 - 10_000));
            }
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput out) {}
    }

    static final class Last<T> implements ReduceFunction<T> {
        @Override
        public T reduce(T a, T b) {
            return b;
        }
    }

    static final class Collect implements AggregateFunction<Tuple3<Zoo.Id, Integer, Long>, Zoo.Pair<String, Long>, String> {
        @Override
        public Zoo.Pair<String, Long> createAccumulator() {
            return new Zoo.Pair<>("", null);
        }

        @Override
        public Zoo.Pair<String, Long> add(Tuple3<Zoo.Id, Integer, Long> v, Zoo.Pair<String, Long> a) {
            return new Zoo.Pair<>(a.first + v.f1 + ";", v.f2);
        }

        @Override
        public String getResult(Zoo.Pair<String, Long> a) {
            return a.first;
        }

        @Override
        public Zoo.Pair<String, Long> merge(Zoo.Pair<String, Long> a, Zoo.Pair<String, Long> b) {
            return new Zoo.Pair<>(a.first + b.first, b.second);
        }
    }

    static final class Show<T, W extends Window> extends ProcessWindowFunction<T, String, Zoo.Id, W> {
        @Override
        public void process(Zoo.Id key, Context context, Iterable<T> elements, Collector<String> out) throws Exception {
            try {
                context.windowState().getState(new ValueStateDescriptor<>("per window", Types.STRING)).update("w" + key.part);
            } catch (UnsupportedOperationException e) {
                // windows that merge have none
            }
            context.globalState().getState(new ValueStateDescriptor<>("per key", Types.INT)).update(1);
        }
    }

    /** A trigger of the user's with state of its own. */
    static final class Odd extends Trigger<Object, TimeWindow> {
        private final ListStateDescriptor<Zoo.Mood> moods = new ListStateDescriptor<>("moods", Types.ENUM(Zoo.Mood.class));

        @Override
        public org.apache.flink.streaming.api.windowing.triggers.TriggerResult onElement(Object e, long time, TimeWindow w, TriggerContext c) throws Exception {
            c.getPartitionedState(moods).add(Zoo.Mood.WILD);
            c.registerProcessingTimeTimer(4_000_000_000_000L);
            c.registerEventTimeTimer(w.maxTimestamp());
            return org.apache.flink.streaming.api.windowing.triggers.TriggerResult.CONTINUE;
        }

        @Override
        public org.apache.flink.streaming.api.windowing.triggers.TriggerResult onProcessingTime(long time, TimeWindow w, TriggerContext c) {
            return org.apache.flink.streaming.api.windowing.triggers.TriggerResult.CONTINUE;
        }

        @Override
        public org.apache.flink.streaming.api.windowing.triggers.TriggerResult onEventTime(long time, TimeWindow w, TriggerContext c) {
            return org.apache.flink.streaming.api.windowing.triggers.TriggerResult.FIRE;
        }

        @Override
        public void clear(TimeWindow w, TriggerContext c) {}
    }

    static Object time(Class<?> unit, long millis) throws Exception {
        return unit == java.time.Duration.class ? java.time.Duration.ofMillis(millis) : unit.getMethod("milliseconds", long.class).invoke(null, millis);
    }

    @SuppressWarnings("unchecked")
    static <T> T timed(Object target, Class<?> cls, String name, long... millis) throws Exception {
        java.lang.reflect.Method found = null;
        for (java.lang.reflect.Method m : cls.getMethods()) {
            boolean times = m.getParameterCount() == millis.length;
            for (Class<?> p : m.getParameterTypes()) {
                times &= p == java.time.Duration.class || p.getSimpleName().equals("Time");
            }
            if (m.getName().equals(name) && times) {
                found = m;
            }
        }
        Object[] arguments = new Object[millis.length];
        for (int i = 0; i < millis.length; i++) {
            arguments[i] = time(found.getParameterTypes()[0], millis[i]);
        }
        found.setAccessible(true);
        return (T) found.invoke(target, arguments);
    }

    static WindowAssigner<Object, TimeWindow> assigner(String name, String factory, long... millis) throws Exception {
        return timed(null, Class.forName("org.apache.flink.streaming.api.windowing.assigners." + name), factory, millis);
    }

    static final class Offsets extends ProcessFunction<Tuple3<Zoo.Id, Integer, Long>, String> implements CheckpointedFunction {
        private transient ListState<Zoo.Beast> beasts;
        private transient ListState<Tuple2<String, Zoo.Deep>> union;
        private transient BroadcastState<Zoo.Mood, Map<String, Zoo.Place>> shared;
        private transient ListState<Integer> empty;
        private transient int subtask;

        @Override
        public void initializeState(FunctionInitializationContext c) throws Exception {
            beasts = c.getOperatorStateStore().getListState(new ListStateDescriptor<>("beasts/of all", TypeInformation.of(Zoo.Beast.class)));
            union = c.getOperatorStateStore().getUnionListState(new ListStateDescriptor<>("deep union", Types.TUPLE(Types.STRING, TypeInformation.of(Zoo.Deep.class))));
            shared = c.getOperatorStateStore().getBroadcastState(new MapStateDescriptor<>("shared ☃", Types.ENUM(Zoo.Mood.class), Types.MAP(Types.STRING, TypeInformation.of(Zoo.Place.class))));
            empty = c.getOperatorStateStore().getListState(new ListStateDescriptor<>("empty", Types.INT));
            shared.put(Zoo.Mood.WILD, new LinkedHashMap<>(java.util.Collections.singletonMap("a", new Zoo.Place("s", 1, null))));
            shared.put(Zoo.Mood.CALM, new LinkedHashMap<>());
        }

        @Override
        public void snapshotState(FunctionSnapshotContext c) {}

        @Override
        public void processElement(Tuple3<Zoo.Id, Integer, Long> v, Context c, Collector<String> out) throws Exception {
            beasts.add((Zoo.Beast) ZooData.beast(v.f1));
            Zoo.Deep d = new Zoo.Deep();
            d.raw = new byte[] {v.f1.byteValue()};
            union.add(Tuple2.of("u" + v.f1, d));
        }
    }

    static final class Both extends KeyedCoProcessFunction<Zoo.Id, Tuple3<Zoo.Id, Integer, Long>, Tuple3<Zoo.Id, Integer, Long>, String> {
        private transient ValueState<Integer> left;
        private transient ListState<Tuple3<Zoo.Id, Integer, Long>> right;

        @Override
        public void processElement1(Tuple3<Zoo.Id, Integer, Long> v, Context c, Collector<String> out) throws Exception {
            left = getRuntimeContext().getState(new ValueStateDescriptor<>("left", Types.INT));
            left.update(v.f1);
            c.timerService().registerEventTimeTimer(v.f2 + 1_000_000_000L);
        }

        @Override
        public void processElement2(Tuple3<Zoo.Id, Integer, Long> v, Context c, Collector<String> out) throws Exception {
            right = getRuntimeContext().getListState(new ListStateDescriptor<>("right", ELEMENT));
            right.add(v);
        }
    }

    static final MapStateDescriptor<String, Zoo.Place> RULES =
            new MapStateDescriptor<>("seen", Types.STRING, TypeInformation.of(Zoo.Place.class));

    static final class Ruled extends KeyedBroadcastProcessFunction<Zoo.Id, Tuple3<Zoo.Id, Integer, Long>, Tuple3<Zoo.Id, Integer, Long>, String> {
        @Override
        public void processElement(Tuple3<Zoo.Id, Integer, Long> v, ReadOnlyContext c, Collector<String> out) throws Exception {
            getRuntimeContext().getState(new ValueStateDescriptor<>("seen", Types.INT)).update(v.f1);
        }

        @Override
        public void processBroadcastElement(Tuple3<Zoo.Id, Integer, Long> v, Context c, Collector<String> out) throws Exception {
            c.getBroadcastState(RULES).put("r" + v.f1 % 5, new Zoo.Place("p" + v.f1, v.f1, null));
        }
    }

    static final class Zip implements JoinFunction<Tuple3<Zoo.Id, Integer, Long>, Tuple3<Zoo.Id, Integer, Long>, String>,
            CoGroupFunction<Tuple3<Zoo.Id, Integer, Long>, Tuple3<Zoo.Id, Integer, Long>, String> {
        @Override
        public String join(Tuple3<Zoo.Id, Integer, Long> a, Tuple3<Zoo.Id, Integer, Long> b) {
            return a + "-" + b;
        }

        @Override
        public void coGroup(Iterable<Tuple3<Zoo.Id, Integer, Long>> a, Iterable<Tuple3<Zoo.Id, Integer, Long>> b, Collector<String> out) {}
    }

    static final class Interval extends ProcessJoinFunction<Tuple3<Zoo.Id, Integer, Long>, Tuple3<Zoo.Id, Integer, Long>, String> {
        @Override
        public void processElement(Tuple3<Zoo.Id, Integer, Long> a, Tuple3<Zoo.Id, Integer, Long> b, Context c, Collector<String> out) {}
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        ALLOWED.put(run, new AtomicInteger());
        SEEN.put(run, new AtomicInteger());
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        DataStream<Tuple3<Zoo.Id, Integer, Long>> in = env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1)
                .flatMap(new Feeder(run)).returns(ELEMENT).setParallelism(1)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<Tuple3<Zoo.Id, Integer, Long>>forGenerator(c -> new Marks())
                        .withTimestampAssigner((v, before) -> v.f2)).setParallelism(1);
        KeyedStream<Tuple3<Zoo.Id, Integer, Long>, Zoo.Id> keyed = in.keyBy(new Key(), TypeInformation.of(Zoo.Id.class));
        TypeInformation<String> text = Types.STRING;
        OutputTag<Tuple3<Zoo.Id, Integer, Long>> late = new OutputTag<>("late", ELEMENT);
        keyed.window(assigner("TumblingEventTimeWindows", "of", 20_000)).process(new Show<>(), text).uid("w-list");
        keyed.window(assigner("TumblingEventTimeWindows", "of", 20_000, 3_000)).reduce(new Last<>(), new Show<>(), text).uid("w-reduce");
        keyed.window(assigner("SlidingEventTimeWindows", "of", 30_000, 10_000)).aggregate(new Collect(), new Show<>(),
                TypeInformation.of(new TypeHint<Zoo.Pair<String, Long>>() {}), text, text).uid("w-slide");
        keyed.window(assigner("EventTimeSessionWindows", "withGap", 8_000)).process(new Show<>(), text).uid("w-session");
        keyed.window(assigner("EventTimeSessionWindows", "withGap", 6_500)).aggregate(new Collect(), new Show<>(),
                TypeInformation.of(new TypeHint<Zoo.Pair<String, Long>>() {}), text, text).uid("w-session-aggregate");
        WindowedStream lateWindows = keyed.window(assigner("TumblingEventTimeWindows", "of", 5_000)).sideOutputLateData(late);
        timed(lateWindows, WindowedStream.class, "allowedLateness", 1_000_000_000L);
        lateWindows.process(new Show<>(), text).uid("w-late");
        keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(5))).process(new Show<>(), text).uid("w-purging");
        keyed.window(GlobalWindows.create()).trigger(DeltaTrigger.<Tuple3<Zoo.Id, Integer, Long>, GlobalWindow>of(1000.0, (a, b) -> b.f1 - a.f1,
                (org.apache.flink.api.common.typeutils.TypeSerializer) Reflect.serializer(ELEMENT, env.getConfig()))).process(new Show<>(), text).uid("w-delta");
        keyed.countWindow(4, 2).process(new Show<>(), text).uid("w-count-slide");
        keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(100)).evictor(CountEvictor.of(3)).process(new Show<>(), text).uid("w-evict");
        keyed.window(assigner("EventTimeSessionWindows", "withGap", 8_000)).evictor(CountEvictor.of(3)).process(new Show<>(), text).uid("w-session-evict");
        keyed.window(assigner("TumblingEventTimeWindows", "of", 40_000))
                .trigger((Trigger) timed(null, ContinuousEventTimeTrigger.class, "of", 7_000)).process(new Show<>(), text).uid("w-continuous");
        keyed.window(assigner("TumblingEventTimeWindows", "of", 25_000)).trigger(new Odd()).process(new Show<>(), text).uid("w-odd-trigger");
        keyed.window(assigner("TumblingProcessingTimeWindows", "of", 86_400_000L * 3650)).reduce(new Last<>()).uid("w-processing");
        in.windowAll(assigner("TumblingEventTimeWindows", "of", 1_000_000_000_000L)).reduce(new Last<>()).uid("w-all");
        in.process(new Offsets()).returns(text).setParallelism(3).uid("op-states");
        keyed.connect(keyed).process(new Both(), text).uid("both");
        keyed.connect(in.broadcast(RULES)).process(new Ruled(), text).uid("ruled");
        Object interval = timed(keyed.intervalJoin(keyed), KeyedStream.IntervalJoin.class, "between", -5_000, 100_000);
        ((KeyedStream.IntervalJoined<Tuple3<Zoo.Id, Integer, Long>, Tuple3<Zoo.Id, Integer, Long>, Zoo.Id>) interval).process(new Interval(), text).uid("interval");
        SingleOutputStreamOperator<String> joined = (SingleOutputStreamOperator<String>) (Object) in.coGroup(in).where(new Key(), TypeInformation.of(Zoo.Id.class)).equalTo(new Key(), TypeInformation.of(Zoo.Id.class))
                .window(assigner("TumblingEventTimeWindows", "of", 1_000_000L)).apply(new Zip(), text);
        joined.uid("cogroup");
        keyed.reduce(new Last<>()).uid("keyed-reduce");
        keyed.max(1).uid("keyed-max");
        JobID id = cluster.submit(env, null, false);
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            cluster.awaitRunning(id);
            int phases = request.path("phases").asInt(1);
            for (int p = 1; p <= phases; p++) {
                int wanted = N * p / phases;
                ALLOWED.get(run).set(wanted);
                cluster.await(id, "all elements", () -> SEEN.get(run).get() == wanted);
                Thread.sleep(1500); // until what was sent has arrived
                if (request.hasNonNull("checkpoints")) {
                    answer.put("path", ZooJob.checkpoint(cluster, id, Paths.get(request.get("checkpoints").asText())));
                }
            }
            if (!request.hasNonNull("checkpoints")) {
                answer.put("path", cluster.savepoint(id, request.get("savepoint").asText(), request.path("format").asText("CANONICAL")));
            }
        } finally {
            cluster.cancel(id);
        }
        answer.put("operators", new LinkedHashMap<>());
        return answer;
    }
}
