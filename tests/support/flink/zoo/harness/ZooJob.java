package harness;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.state.AggregatingState;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.KeyedStateStore;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** A job whose operators keep what {@link ZooData} says; its snapshot, and what must be in it. */
public final class ZooJob {
    static final Map<String, ZooJob> RUNS = new ConcurrentHashMap<>();
    static final long EVENT = 1_900_000_000_000L;
    static final long PROCESSING = 4_100_000_000_000L;

    final List<ZooData.Op> ops;
    final List<int[]> events = new ArrayList<>();
    final AtomicInteger done = new AtomicInteger();
    volatile int allowed;

    private ZooJob(List<ZooData.Op> ops, boolean reads) {
        this.ops = ops;
        for (int i = 0, left = 1; left > 0; i++) {
            left = 0;
            for (int o = 0; o < ops.size(); o++) {
                if (i < (reads ? ops.get(o).keys.size() : ops.get(o).events)) {
                    events.add(new int[] {o, i});
                    left++;
                }
            }
        }
    }

    /** A job with one event for each key. */
    static ZooJob reading(String set) throws Exception {
        return new ZooJob(ZooData.set(set), true);
    }

    /** Emits the numbers of events, as many as are allowed; keeps the job alive. */
    static final class Feeder implements FlatMapFunction<Long, Long> {
        private final String run;
        private int next;

        Feeder(String run) {
            this.run = run;
        }

        @Override
        public void flatMap(Long value, Collector<Long> out) throws Exception {
            int allowed = RUNS.get(run).allowed;
            if (next == allowed) {
                Thread.sleep(2);
            }
            for (int n = 0; n < 20 && next < allowed; n++) {
                out.collect((long) next++);
            }
        }
    }

    static final class Only implements FilterFunction<Long> {
        private final String run;
        private final int op;

        Only(String run, int op) {
            this.run = run;
            this.op = op;
        }

        @Override
        public boolean filter(Long value) {
            return RUNS.get(run).events.get(value.intValue())[0] == op;
        }
    }

    static final class Key implements KeySelector<Long, Object> {
        private final String run;

        Key(String run) {
            this.run = run;
        }

        @Override
        public Object getKey(Long value) {
            int[] e = RUNS.get(run).events.get(value.intValue());
            List<?> keys = RUNS.get(run).ops.get(e[0]).keys;
            return keys.get(e[1] % keys.size());
        }
    }

    static final class Sum implements ReduceFunction<Long> {
        @Override
        public Long reduce(Long a, Long b) {
            return a + b;
        }
    }

    static final class Mean implements AggregateFunction<Double, Tuple2<Long, Double>, Double> {
        @Override
        public Tuple2<Long, Double> createAccumulator() {
            return Tuple2.of(0L, 0.0);
        }

        @Override
        public Tuple2<Long, Double> add(Double value, Tuple2<Long, Double> a) {
            return Tuple2.of(a.f0 + 1, a.f1 + value);
        }

        @Override
        public Double getResult(Tuple2<Long, Double> a) {
            return a.f1 / a.f0;
        }

        @Override
        public Tuple2<Long, Double> merge(Tuple2<Long, Double> a, Tuple2<Long, Double> b) {
            return Tuple2.of(a.f0 + b.f0, a.f1 + b.f1);
        }
    }

    static StateTtlConfig ttl() throws Exception {
        try {
            return ((StateTtlConfig.Builder) StateTtlConfig.class.getMethod("newBuilder", java.time.Duration.class)
                    .invoke(null, java.time.Duration.ofDays(3650))).build();
        } catch (NoSuchMethodException e) {
            Class<?> time = Class.forName("org.apache.flink.api.common.time.Time");
            Object days = time.getMethod("days", long.class).invoke(null, 3650L);
            return ((StateTtlConfig.Builder) StateTtlConfig.class.getMethod("newBuilder", time).invoke(null, days)).build();
        }
    }

    /** Writes what the data says. */
    static final class Writer extends KeyedProcessFunction<Object, Long, Long> implements CheckpointedFunction {
        private final String run;
        private final int op;
        private transient List<State> states;

        Writer(String run, int op) {
            this.run = run;
            this.op = op;
        }

        @SuppressWarnings({"unchecked", "rawtypes"})
        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            KeyedStateStore store = context.getKeyedStateStore();
            states = new ArrayList<>();
            for (ZooData.St s : RUNS.get(run).ops.get(op).states) {
                TypeInformation type = s.type;
                StateDescriptor d;
                switch (s.kind) {
                    case "value":
                        d = new ValueStateDescriptor(s.name, type);
                        break;
                    case "list":
                        d = new ListStateDescriptor(s.name, type);
                        break;
                    case "map":
                        d = new MapStateDescriptor(s.name, (TypeInformation) s.key, type);
                        break;
                    case "reducing":
                        d = new ReducingStateDescriptor(s.name, new Sum(), type);
                        break;
                    default:
                        d = new AggregatingStateDescriptor(s.name, new Mean(), type);
                }
                if (s.ttl) {
                    d.enableTimeToLive(ttl());
                }
                states.add(d instanceof ValueStateDescriptor ? store.getState((ValueStateDescriptor) d)
                        : d instanceof ListStateDescriptor ? store.getListState((ListStateDescriptor) d)
                        : d instanceof MapStateDescriptor ? store.getMapState((MapStateDescriptor) d)
                        : d instanceof ReducingStateDescriptor ? store.getReducingState((ReducingStateDescriptor) d)
                        : store.getAggregatingState((AggregatingStateDescriptor) d));
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @SuppressWarnings({"unchecked", "rawtypes"})
        @Override
        public void processElement(Long value, Context ctx, Collector<Long> out) throws Exception {
            ZooJob job = RUNS.get(run);
            int i = job.events.get(value.intValue())[1];
            ZooData.Op mine = job.ops.get(op);
            for (int n = 0; n < states.size(); n++) {
                Object v = mine.states.get(n).value.apply(i);
                State state = states.get(n);
                if (v == ZooData.SKIP) {
                    continue;
                }
                if (v == ZooData.CLEAR) {
                    state.clear();
                } else if (state instanceof ValueState) {
                    ((ValueState) state).update(v);
                } else if (state instanceof MapState) {
                    for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) {
                        ((MapState) state).put(e.getKey(), e.getValue());
                    }
                } else if (state instanceof ReducingState) {
                    ((ReducingState) state).add(v);
                } else if (state instanceof AggregatingState) {
                    ((AggregatingState) state).add(v);
                } else {
                    ((ListState) state).addAll((List) v);
                }
            }
            if (mine.timers) {
                ctx.timerService().registerEventTimeTimer(EVENT + i);
                ctx.timerService().registerProcessingTimeTimer(PROCESSING + i / 2);
            }
            job.done.incrementAndGet();
        }
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        ZooData.nulls = request.path("backend").asText().equals("rocksdb")
                && !org.apache.flink.runtime.util.EnvironmentInformation.getVersion().startsWith("1.1");
        ZooJob job = new ZooJob(ZooData.set(request.get("set").asText()), false);
        RUNS.put(run, job);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        DataStream<Long> feed = env.fromSequence(0, Long.MAX_VALUE / 2).uid("numbers")
                .flatMap(new Feeder(run)).returns(org.apache.flink.api.common.typeinfo.Types.LONG).uid("feeder");
        for (int o = 0; o < job.ops.size(); o++) {
            ZooData.Op op = job.ops.get(o);
            DataStream<Long> input = feed.filter(new Only(run, o));
            if (request.path("async").asBoolean()) {
                Class.forName("harness.ZooAsync").getDeclaredMethod("add", DataStream.class, String.class, int.class, ZooData.Op.class)
                        .invoke(null, input, run, o, op);
            } else {
                add(input, run, o, op);
            }
        }
        JobID id = cluster.submit(env, null, false);
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            cluster.awaitRunning(id);
            int phases = request.path("phases").asInt(1);
            for (int p = 1; p <= phases; p++) {
                job.allowed = job.events.size() * p / phases;
                int wanted = job.allowed;
                cluster.await(id, "all events", () -> job.done.get() == wanted);
                if (request.hasNonNull("checkpoints")) {
                    answer.put("path", checkpoint(cluster, id, Paths.get(request.get("checkpoints").asText())));
                }
            }
            if (!request.hasNonNull("checkpoints")) {
                answer.put("path", cluster.savepoint(id, request.get("savepoint").asText(), request.path("format").asText("CANONICAL")));
            }
        } finally {
            cluster.cancel(id);
            RUNS.remove(run);
        }
        Map<String, Object> operators = new LinkedHashMap<>();
        for (ZooData.Op op : job.ops) {
            operators.put(op.uid, expected(op));
        }
        answer.put("operators", operators);
        return answer;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void add(DataStream<Long> input, String run, int o, ZooData.Op op) {
        input.keyBy(new Key(run), (TypeInformation) op.keyType)
                .process((KeyedProcessFunction) new Writer(run, o))
                .returns(org.apache.flink.api.common.typeinfo.Types.LONG)
                .setParallelism(op.parallelism).setMaxParallelism(op.maxParallelism).uid(op.uid);
    }

    /** Wait for two more checkpoints that are there as a whole: the second began after all events. */
    static String checkpoint(Cluster cluster, JobID id, Path folder) throws Exception {
        Path root = folder.resolve(id.toString());
        int[] first = {newest(root)};
        cluster.await(id, "a checkpoint", () -> newest(root) > first[0] + 1);
        return root.resolve("chk-" + newest(root)).toString();
    }

    private static int newest(Path root) {
        if (!Files.isDirectory(root)) {
            return 0;
        }
        try (Stream<Path> all = Files.list(root)) {
            Optional<Integer> found = all.filter(p -> p.getFileName().toString().startsWith("chk-") && Files.exists(p.resolve("_metadata")))
                    .map(p -> Integer.valueOf(p.getFileName().toString().substring(4))).max(Integer::compare);
            return found.orElse(0);
        } catch (Exception e) {
            return 0;
        }
    }

    private static Map<String, Object> expected(ZooData.Op op) throws Exception {
        Map<String, Object> states = new LinkedHashMap<>();
        Map<String, Object> keyed = Values.single("states", states);
        for (ZooData.St s : op.states) {
            Map<String, Object> state = Values.single("kind", s.kind);
            if (s.ttl) {
                state.put("ttl", true);
            }
            state.put("rows", rows(op, s));
            states.put(s.name, state);
        }
        List<Object> event = new ArrayList<>();
        Map<String, Object> processing = new LinkedHashMap<>();
        for (int i = 0; op.timers && i < op.events; i++) {
            Object key = Values.of(op.keys.get(i % op.keys.size()));
            event.add(timer(key, EVENT + i));
            processing.put(i % op.keys.size() + "@" + i / 2, timer(key, PROCESSING + i / 2));
        }
        keyed.put("event_time_timers", event);
        keyed.put("processing_time_timers", new ArrayList<>(processing.values()));
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("parallelism", op.parallelism);
        out.put("max_parallelism", op.maxParallelism);
        out.put("keyed_state", keyed);
        return out;
    }

    private static Map<String, Object> timer(Object key, long time) {
        Map<String, Object> out = Values.single("key", key);
        out.put("namespace", null);
        out.put("timestamp", time);
        return out;
    }

    @SuppressWarnings("unchecked")
    private static List<Object> rows(ZooData.Op op, ZooData.St s) throws Exception {
        Map<Integer, Object> found = new LinkedHashMap<>();
        for (int i = 0; i < op.events; i++) {
            int k = i % op.keys.size();
            Object v = s.value.apply(i);
            if (v == ZooData.SKIP) {
                continue;
            }
            if (v == ZooData.CLEAR) {
                found.remove(k);
                continue;
            }
            switch (s.kind) {
                case "value":
                    found.put(k, Values.of(v));
                    break;
                case "list":
                    ((List<Object>) found.computeIfAbsent(k, x -> new ArrayList<>())).addAll(Values.list((List<?>) v));
                    break;
                case "map":
                    Map<Object, Object> map = (Map<Object, Object>) found.computeIfAbsent(k, x -> new LinkedHashMap<>());
                    for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) {
                        map.put(Values.of(e.getKey()), Values.of(e.getValue()));
                    }
                    break;
                case "reducing":
                    found.merge(k, v, (a, b) -> (Long) a + (Long) b);
                    break;
                default:
                    found.put(k, new Mean().add((Double) v, (Tuple2<Long, Double>) found.getOrDefault(k, new Mean().createAccumulator())));
            }
        }
        List<Object> rows = new ArrayList<>();
        for (Map.Entry<Integer, Object> e : found.entrySet()) {
            Map<String, Object> row = Values.single("key", Values.of(op.keys.get(e.getKey())));
            Object v = e.getValue();
            if (s.kind.equals("map")) {
                List<Object> entries = new ArrayList<>();
                for (Map.Entry<?, ?> m : ((Map<?, ?>) v).entrySet()) {
                    List<Object> pair = new ArrayList<>();
                    pair.add(m.getKey());
                    pair.add(m.getValue());
                    entries.add(pair);
                }
                v = Values.single("$map", entries);
            } else if (s.kind.equals("aggregating")) {
                v = Values.of(v);
            }
            row.put("value", v);
            rows.add(row);
        }
        return rows;
    }
}
