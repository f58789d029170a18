package harness;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.v2.AggregatingState;
import org.apache.flink.api.common.state.v2.ListState;
import org.apache.flink.api.common.state.v2.MapState;
import org.apache.flink.api.common.state.v2.ReducingState;
import org.apache.flink.api.common.state.v2.State;
import org.apache.flink.api.common.state.v2.ValueState;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.state.StateFutureUtils;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Operators of {@link ZooAsync}, restored: each key reads those of its states that the request names, takes what it appends, and at the end timers fire. */
final class ZooRestored {
    private static final long PATIENCE_MS = 30_000;

    private ZooRestored() {}

    /** The result is the accumulator. */
    static final class Same implements AggregateFunction<Double, Tuple2<Long, Double>, Tuple2<Long, Double>> {
        @Override
        public Tuple2<Long, Double> createAccumulator() {
            return Tuple2.of(0L, 0.0);
        }

        @Override
        public Tuple2<Long, Double> add(Double value, Tuple2<Long, Double> a) {
            return Tuple2.of(a.f0 + 1, a.f1 + value);
        }

        @Override
        public Tuple2<Long, Double> getResult(Tuple2<Long, Double> a) {
            return a;
        }

        @Override
        public Tuple2<Long, Double> merge(Tuple2<Long, Double> a, Tuple2<Long, Double> b) {
            return Tuple2.of(a.f0 + b.f0, a.f1 + b.f1);
        }
    }

    /** Lets all timers fire when the board says so. */
    static final class AtTheEnd implements WatermarkGenerator<Long> {
        private final String run;

        AtTheEnd(String run) {
            this.run = run;
        }

        @Override
        public void onEvent(Long event, long timestamp, WatermarkOutput output) {}

        @Override
        public void onPeriodicEmit(WatermarkOutput output) {
            if (Board.of(run).fire) {
                output.emitWatermark(Watermark.MAX_WATERMARK);
            }
        }
    }

    static final class Reader extends KeyedProcessFunction<Object, Long, Long> {
        private final String run;
        private final int op;
        private final boolean appends;
        private transient List<State> states;

        Reader(String run, int op, boolean appends) {
            this.run = run;
            this.op = op;
            this.appends = appends;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            states = ZooAsync.registered(getRuntimeContext(), ZooJob.RUNS.get(run).ops.get(op), new Same());
        }

        @SuppressWarnings({"unchecked", "rawtypes"})
        @Override
        public void processElement(Long value, Context ctx, Collector<Long> out) {
            ZooData.Op mine = ZooJob.RUNS.get(run).ops.get(op);
            Object key = Values.of(ctx.getCurrentKey());
            for (int n = 0; n < states.size(); n++) {
                State state = states.get(n);
                String name = mine.states.get(n).name;
                if (state instanceof MapState) {
                    List<Object> rows = new ArrayList<>();
                    ((MapState<Object, Object>) state).asyncEntries().thenCompose(found -> {
                        try {
                            return found == null ? StateFutureUtils.completedVoidFuture() : found.onNext(e -> {
                                rows.add(Arrays.asList(Values.of(((Map.Entry<?, ?>) e).getKey()), Values.of(((Map.Entry<?, ?>) e).getValue())));
                            });
                        } catch (NullPointerException absent) { // of Flink, for a map with a time to live
                            return StateFutureUtils.completedVoidFuture();
                        }
                    }).thenAccept(x -> found(key, name, rows.isEmpty() ? null : Values.single("$map", rows)));
                } else if (state instanceof ListState) {
                    List<Object> rows = new ArrayList<>();
                    List<Object> first = new ArrayList<>();
                    ((ListState<Object>) state).asyncGet().thenCompose(found -> {
                        try {
                            return found == null ? StateFutureUtils.completedVoidFuture() : found.onNext(e -> {
                                first.add(e);
                                rows.add(Values.of(e));
                            });
                        } catch (NullPointerException absent) { // of Flink, for a list with a time to live
                            return StateFutureUtils.completedVoidFuture();
                        }
                    }).thenAccept(x -> {
                        found(key, name, rows.isEmpty() ? null : rows);
                        if (appends && !first.isEmpty()) {
                            ((ListState<Object>) state).asyncAdd(first.get(0));
                        }
                    });
                } else if (state instanceof ValueState) {
                    ((ValueState<Object>) state).asyncValue().thenAccept(v -> found(key, name, Values.of(v)));
                } else if (state instanceof ReducingState) {
                    ((ReducingState<Object>) state).asyncGet().thenAccept(v -> found(key, name, Values.of(v)));
                } else {
                    ((AggregatingState<Object, Object>) state).asyncGet().thenAccept(v -> found(key, name, Values.of(v)));
                }
            }
        }

        private void found(Object key, String state, Object value) {
            Map<String, Object> row = Values.single("operator", ZooJob.RUNS.get(run).ops.get(op).uid);
            row.put("state", state);
            row.put("key", key);
            row.put("value", value);
            Board.of(run).records.add(row);
        }

        @Override
        public void onTimer(long time, OnTimerContext ctx, Collector<Long> out) {
            Map<String, Object> row = Values.single("operator", ZooJob.RUNS.get(run).ops.get(op).uid);
            row.put("key", Values.of(ctx.getCurrentKey()));
            row.put("timestamp", time);
            Board.of(run).fired.add(row);
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        ZooJob job = ZooJob.reading(request.get("set").asText());
        Set<String> names = new HashSet<>();
        request.get("states").forEach(name -> names.add(name.asText()));
        job.ops.forEach(op -> op.states.removeIf(state -> !names.contains(state.name)));
        ZooJob.RUNS.put(run, job);
        Board board = Board.of(run);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        DataStream<Long> feed = env.fromSequence(0, Long.MAX_VALUE / 2)
                .flatMap(new ZooJob.Feeder(run)).returns(org.apache.flink.api.common.typeinfo.Types.LONG)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<Long>forGenerator(context -> new AtTheEnd(run)));
        int expected = 0;
        int timers = request.get("timers").asInt();
        for (int o = 0; o < job.ops.size(); o++) {
            ZooData.Op op = job.ops.get(o);
            expected += op.keys.size() * op.states.size();
            int maxParallelism = request.path("max_parallelisms").path(op.uid).asInt(op.maxParallelism);
            feed.filter(new ZooJob.Only(run, o)).keyBy(new ZooJob.Key(run), (TypeInformation) op.keyType).enableAsyncState()
                    .process((KeyedProcessFunction) new Reader(run, o, request.path("append").asBoolean()))
                    .returns(org.apache.flink.api.common.typeinfo.Types.LONG)
                    .setParallelism(Math.min(maxParallelism, request.path("parallelism").asInt(2)))
                    .setMaxParallelism(maxParallelism).uid(op.uid);
        }
        JobID id = cluster.submit(env, request.get("snapshot").asText(), true);
        try {
            job.allowed = job.events.size();
            int wanted = expected;
            cluster.await(id, "all states to be read", () -> board.records.size() >= wanted);
            Map<String, Object> out = Values.single("rows", new ArrayList<>(board.records));
            if (request.path("checkpoint").asBoolean()) {
                out.put("checkpoint", cluster.checkpoint(id));
            }
            board.fire = true;
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (board.fired.size() < timers && System.currentTimeMillis() < end) {
                Thread.sleep(10);
            }
            for (int before = -1; before < board.fired.size(); Thread.sleep(100)) {
                before = board.fired.size(); // more than expected may fire
            }
            out.put("fired", new ArrayList<>(board.fired));
            return out;
        } finally {
            cluster.cancel(id);
            ZooJob.RUNS.remove(run);
            Board.forget(run);
        }
    }
}
