package harness;

import java.lang.reflect.Method;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.beam.runners.core.construction.SplittableParDo;
import org.apache.beam.runners.flink.FlinkPipelineOptions;
import org.apache.beam.runners.flink.FlinkRunner;
import org.apache.beam.sdk.Pipeline;
import org.apache.beam.sdk.coders.KvCoder;
import org.apache.beam.sdk.coders.RowCoder;
import org.apache.beam.sdk.coders.StringUtf8Coder;
import org.apache.beam.sdk.coders.VarLongCoder;
import org.apache.beam.sdk.io.GenerateSequence;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.schemas.Schema;
import org.apache.beam.sdk.state.BagState;
import org.apache.beam.sdk.state.CombiningState;
import org.apache.beam.sdk.state.MapState;
import org.apache.beam.sdk.state.SetState;
import org.apache.beam.sdk.state.StateSpec;
import org.apache.beam.sdk.state.StateSpecs;
import org.apache.beam.sdk.state.TimeDomain;
import org.apache.beam.sdk.state.Timer;
import org.apache.beam.sdk.state.TimerSpec;
import org.apache.beam.sdk.state.TimerSpecs;
import org.apache.beam.sdk.state.ValueState;
import org.apache.beam.sdk.transforms.DoFn;
import org.apache.beam.sdk.transforms.GroupByKey;
import org.apache.beam.sdk.transforms.ParDo;
import org.apache.beam.sdk.transforms.SerializableFunction;
import org.apache.beam.sdk.transforms.Sum;
import org.apache.beam.sdk.transforms.windowing.FixedWindows;
import org.apache.beam.sdk.transforms.windowing.Window;
import org.apache.beam.sdk.values.KV;
import org.apache.beam.sdk.values.PCollection;
import org.apache.beam.sdk.values.Row;
import org.apache.flink.api.common.JobID;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.joda.time.Duration;
import org.joda.time.Instant;

/**
 * A streaming pipeline of Beam that counts: a stateful step keeps each kind of state and a timer, another step groups all numbers of a window.
 *
 * <p>The time of the source stands still until a restored run lets it go on: then all timers fire, and the window is complete.
 */
public final class BeamJob {
    static final int KEYS = 10;
    private static final long HOUR = 3_600_000;
    private static final long LATE = 100 * HOUR;
    private static final Schema ORDER = Schema.builder().addStringField("name").addInt64Field("amount").build();
    /** What the steps of the running job have seen, by key. */
    private static final Map<String, Map<String, Object>> FIRST = new ConcurrentHashMap<>();
    private static final Map<String, Object> FIRED = new ConcurrentHashMap<>();
    private static final Map<String, List<Long>> WINDOWS = new ConcurrentHashMap<>();
    /** Numbers after the window. */
    private static final Set<Long> LATER = ConcurrentHashMap.newKeySet();
    private static volatile boolean later;

    private BeamJob() {}

    /** The time of a number. */
    static final class Time implements SerializableFunction<Long, Instant> {
        // The source is in its state as a Java object, and this function in it.
        private static final long serialVersionUID = 1;

        @Override
        public Instant apply(Long n) {
            return new Instant(later ? LATE + n : n);
        }
    }

    static final class ByKey extends DoFn<Long, KV<String, Long>> {
        @ProcessElement
        public void process(@Element Long n, @Timestamp Instant time, OutputReceiver<KV<String, Long>> out) {
            if (time.getMillis() >= LATE) {
                LATER.add(n);
            }
            out.output(KV.of("key-" + n % KEYS, n));
        }
    }

    /** Writes the states of a key at its first number, tells them at the first number of the run, and again when its timer fires. */
    static final class Keeper extends DoFn<KV<String, Long>, Long> {
        @StateId("count")
        private final StateSpec<ValueState<Long>> count = StateSpecs.value(VarLongCoder.of());

        @StateId("order")
        private final StateSpec<ValueState<Row>> order = StateSpecs.value(RowCoder.of(ORDER));

        @StateId("bag")
        private final StateSpec<BagState<String>> bag = StateSpecs.bag(StringUtf8Coder.of());

        @StateId("amounts")
        private final StateSpec<MapState<String, Long>> amounts = StateSpecs.map(StringUtf8Coder.of(), VarLongCoder.of());

        @StateId("names")
        private final StateSpec<SetState<String>> names = StateSpecs.set(StringUtf8Coder.of());

        @StateId("sum")
        private final StateSpec<CombiningState<Long, long[], Long>> sum = StateSpecs.combining(Sum.ofLongs());

        @TimerId("alarm")
        private final TimerSpec alarm = TimerSpecs.timer(TimeDomain.EVENT_TIME);

        @ProcessElement
        public void process(
                @Element KV<String, Long> element,
                @StateId("count") ValueState<Long> count,
                @StateId("order") ValueState<Row> order,
                @StateId("bag") BagState<String> bag,
                @StateId("amounts") MapState<String, Long> amounts,
                @StateId("names") SetState<String> names,
                @StateId("sum") CombiningState<Long, long[], Long> sum,
                @TimerId("alarm") Timer alarm) {
            String key = element.getKey();
            long n = element.getValue();
            Long before = count.read();
            if (before == null) {
                order.write(Row.withSchema(ORDER).addValues("größe-" + n, n).build());
                bag.add("a-" + n);
                bag.add("b-" + n);
                amounts.put("x", n);
                amounts.put("y", 300 * n);
                names.add("name-" + n);
                sum.add(n);
                sum.add(100L);
                alarm.set(new Instant(HOUR));
            }
            count.write(before == null ? 1 : before + 1);
            FIRST.computeIfAbsent(key, k -> {
                Map<String, Object> seen = new LinkedHashMap<>();
                seen.put("count", before);
                Row row = order.read();
                seen.put("order", row == null ? null : row.getString("name") + " " + row.getInt64("amount"));
                seen.put("bag", new TreeSet<>(listed(bag.read())));
                Map<String, Long> entries = new TreeMap<>();
                amounts.entries().read().forEach(e -> entries.put(e.getKey(), e.getValue()));
                seen.put("amounts", entries);
                seen.put("names", new TreeSet<>(listed(names.read())));
                seen.put("sum", sum.read());
                return seen;
            });
        }

        @OnTimer("alarm")
        public void fire(@Key String key, @StateId("order") ValueState<Row> order) {
            Row row = order.read();
            FIRED.put(key, row == null ? "nothing" : row.getString("name"));
        }
    }

    static final class Grouped extends DoFn<KV<String, Iterable<Long>>, Long> {
        @ProcessElement
        public void process(@Element KV<String, Iterable<Long>> element) {
            WINDOWS.putIfAbsent(element.getKey(), listed(element.getValue()));
        }
    }

    private static <T> List<T> listed(Iterable<T> items) {
        return StreamSupport.stream(items.spliterator(), false).collect(Collectors.toList());
    }

    /** How many numbers of a key's window came twice, and its first number; null until all between this and its last have come. */
    private static Map<String, Long> window(List<Long> numbers) {
        Set<Long> distinct = new TreeSet<>(numbers);
        long first = Collections.min(numbers);
        for (long n = first; n < Collections.max(numbers); n += KEYS) {
            if (!distinct.contains(n) && !LATER.contains(n)) {
                return null;
            }
        }
        Map<String, Long> found = new LinkedHashMap<>();
        found.put("first", first);
        found.put("twice", (long) numbers.size() - distinct.size());
        return found;
    }

    private static boolean complete() {
        return FIRED.size() == KEYS && WINDOWS.size() == KEYS && WINDOWS.values().stream().allMatch(w -> window(w) != null);
    }

    private static JobGraph graph(JsonNode request) throws Exception {
        FlinkPipelineOptions options = PipelineOptionsFactory.as(FlinkPipelineOptions.class);
        options.setRunner(FlinkRunner.class);
        options.setJobName("counts");
        options.setStreaming(true);
        options.setFlinkMaster("[auto]");
        options.setParallelism(request.path("parallelism").asInt(2));
        options.setMaxParallelism(request.path("max_parallelism").asInt(128));
        options.setCheckpointingInterval(HOUR);
        options.setStateBackend(request.get("backend").asText());
        options.setStateBackendStoragePath("file://" + request.get("folder").asText());
        Pipeline pipeline = Pipeline.create(options);
        PCollection<KV<String, Long>> numbers = pipeline
                .apply("numbers", GenerateSequence.from(0).withRate(1, Duration.millis(2)).withTimestampFn(new Time()))
                .apply("by-key", ParDo.of(new ByKey()))
                .setCoder(KvCoder.of(StringUtf8Coder.of(), VarLongCoder.of()));
        numbers.apply(request.path("keeper").asText("keeper"), ParDo.of(new Keeper()));
        numbers.apply("window", Window.into(FixedWindows.of(Duration.standardHours(2))))
                .apply("group", GroupByKey.create())
                .apply("grouped", ParDo.of(new Grouped()));
        // As FlinkRunner.run does.
        SplittableParDo.convertReadBasedSplittableDoFnsToPrimitiveReadsIfNecessary(pipeline);
        Method graph = FlinkRunner.class.getDeclaredMethod("getJobGraph", Pipeline.class);
        graph.setAccessible(true);
        return (JobGraph) graph.invoke(FlinkRunner.fromOptions(options), pipeline);
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        later = false;
        FIRST.clear();
        FIRED.clear();
        WINDOWS.clear();
        LATER.clear();
        String snapshot = request.path("snapshot").asText(null);
        JobID job = cluster.submit(graph(request), Collections.emptyMap(), snapshot, request.path("allow").asBoolean(false));
        try {
            cluster.await(job, "all keys to be seen", () -> FIRST.size() == KEYS);
            Map<String, Object> out = new LinkedHashMap<>();
            out.put("first", new TreeMap<>(FIRST));
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), request.get("format").asText()));
            } else {
                later = true;
                cluster.await(job, "all timers and numbers", BeamJob::complete);
                out.put("fired", new TreeMap<>(FIRED));
                Map<String, Object> windows = new TreeMap<>();
                WINDOWS.forEach((key, numbers) -> windows.put(key, window(numbers)));
                out.put("windows", windows);
            }
            return out;
        } finally {
            cluster.cancel(job);
        }
    }
}
