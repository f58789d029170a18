package harness;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** Flink's own window operators go on from a snapshot: some more elements come, then the stream ends and all windows fire. */
final class WindowJob {
    private static final TypeInformation<Long> NOTHING = org.apache.flink.api.common.typeinfo.Types.LONG;

    private WindowJob() {}

    /** An element: key, amount, time. */
    static final class Numbered implements MapFunction<Long, Tuple3<String, Integer, Long>> {
        private final List<Tuple3<String, Integer, Long>> elements;

        Numbered(List<Tuple3<String, Integer, Long>> elements) {
            this.elements = elements;
        }

        @Override
        public Tuple3<String, Integer, Long> map(Long n) {
            return elements.get(n.intValue());
        }
    }

    static final class Key implements KeySelector<Tuple3<String, Integer, Long>, String> {
        @Override
        public String getKey(Tuple3<String, Integer, Long> v) {
            return v.f0;
        }
    }

    static final class Sum implements ReduceFunction<Tuple3<String, Integer, Long>> {
        @Override
        public Tuple3<String, Integer, Long> reduce(Tuple3<String, Integer, Long> a, Tuple3<String, Integer, Long> b) {
            return Tuple3.of(a.f0, a.f1 + b.f1, Math.max(a.f2, b.f2));
        }
    }

    /** Accumulates count and sum. */
    static final class Mean implements AggregateFunction<Tuple3<String, Integer, Long>, Tuple2<Long, Long>, Tuple2<Long, Long>> {
        @Override
        public Tuple2<Long, Long> createAccumulator() {
            return Tuple2.of(0L, 0L);
        }

        @Override
        public Tuple2<Long, Long> add(Tuple3<String, Integer, Long> v, Tuple2<Long, Long> acc) {
            return Tuple2.of(acc.f0 + 1, acc.f1 + v.f1);
        }

        @Override
        public Tuple2<Long, Long> getResult(Tuple2<Long, Long> acc) {
            return acc;
        }

        @Override
        public Tuple2<Long, Long> merge(Tuple2<Long, Long> a, Tuple2<Long, Long> b) {
            return Tuple2.of(a.f0 + b.f0, a.f1 + b.f1);
        }
    }

    /** Reports what a window holds as it fires. */
    static final class Report<T> extends ProcessWindowFunction<T, Long, String, TimeWindow> {
        private final String run;
        private final String operator;
        private final boolean single;

        Report(String run, String operator, boolean single) {
            this.run = run;
            this.operator = operator;
            this.single = single;
        }

        @Override
        public void process(String key, Context context, Iterable<T> elements, Collector<Long> out) {
            Map<String, Object> row = Values.single("operator", operator);
            row.put("key", key);
            row.put("namespace", Values.of(context.window()));
            row.put("value", single ? Values.of(elements.iterator().next()) : Values.list(elements));
            Board.of(run).records.add(row);
        }
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.path("parallelism").asInt(2));
        for (JsonNode spec : request.get("operators")) {
            add(env, run, spec);
        }
        JobID job = cluster.submit(env, request.get("snapshot").asText(), true);
        try {
            cluster.awaitEnd(job);
            return Values.single("fired", new ArrayList<>(Board.of(run).records));
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
    }

    private static void add(StreamExecutionEnvironment env, String run, JsonNode spec) throws Exception {
        TypeInformation<Tuple3<String, Integer, Long>> type = Types.parse("TUPLE<STRING,INT,LONG>");
        List<Tuple3<String, Integer, Long>> elements = new ArrayList<>();
        for (JsonNode e : spec.get("elements")) {
            elements.add(Tuple3.of(e.get(0).asText(), e.get(1).asInt(), e.get(2).asLong()));
        }
        WatermarkStrategy<Tuple3<String, Integer, Long>> times = WatermarkStrategy
                .<Tuple3<String, Integer, Long>>noWatermarks()
                .withTimestampAssigner((v, before) -> v.f2);
        DataStream<Tuple3<String, Integer, Long>> input = env.fromSequence(0, elements.size() - 1).setParallelism(1)
                .map(new Numbered(elements)).returns(type).setParallelism(1)
                .assignTimestampsAndWatermarks(times).setParallelism(1);
        WindowedStream<Tuple3<String, Integer, Long>, String, TimeWindow> windows =
                input.keyBy(new Key()).window(assigner(spec));
        String uid = spec.get("uid").asText();
        SingleOutputStreamOperator<Long> operator;
        switch (spec.get("function").asText()) {
            case "reduce":
                operator = windows.reduce(new Sum(), new Report<>(run, uid, true), NOTHING);
                break;
            case "aggregate":
                TypeInformation<Tuple2<Long, Long>> pair = Types.parse("TUPLE<LONG,LONG>");
                operator = windows.aggregate(new Mean(), new Report<>(run, uid, true), pair, pair, NOTHING);
                break;
            default:
                operator = windows.process(new Report<>(run, uid, false), NOTHING);
        }
        operator.uid(uid).setMaxParallelism(spec.get("max_parallelism").asInt());
    }

    private static WindowAssigner<Object, TimeWindow> assigner(JsonNode spec) throws Exception {
        long size = spec.get("size_ms").asLong();
        switch (spec.get("assigner").asText()) {
            case "tumbling":
                return of(TumblingEventTimeWindows.class, "of", size);
            case "sliding":
                return of(SlidingEventTimeWindows.class, "of", size, spec.get("slide_ms").asLong());
            default:
                return of(EventTimeSessionWindows.class, "withGap", size);
        }
    }

    /** Assigners take Flink's Time before 1.20, a Duration from 2.0 on. */
    @SuppressWarnings("unchecked")
    private static WindowAssigner<Object, TimeWindow> of(Class<?> cls, String name, long... millis) throws Exception {
        for (Method m : cls.getMethods()) {
            if (m.getName().equals(name) && m.getParameterCount() == millis.length) {
                Class<?> unit = m.getParameterTypes()[0];
                Object[] arguments = new Object[millis.length];
                for (int i = 0; i < millis.length; i++) {
                    arguments[i] = unit == java.time.Duration.class
                            ? (Object) java.time.Duration.ofMillis(millis[i])
                            : unit.getMethod("milliseconds", long.class).invoke(null, millis[i]);
                }
                return (WindowAssigner<Object, TimeWindow>) m.invoke(null, arguments);
            }
        }
        throw new NoSuchMethodException(cls + "." + name);
    }
}
