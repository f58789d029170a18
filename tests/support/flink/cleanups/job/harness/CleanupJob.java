package harness;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Numbers from zero, each compared with the state of its key, which they determine: a value that a restore has lost or changed ends the job.
 * The class {@code sinks} of the request writes them too.
 */
public final class CleanupJob {
    private static final int KEYS = 64;
    private static final Map<String, JobID> RUNNING = new ConcurrentHashMap<>();
    /** By run: how many numbers were compared, and the last one that left the source. */
    private static final Map<String, AtomicLong> COMPARED = new ConcurrentHashMap<>();
    private static final Map<String, AtomicLong> LAST = new ConcurrentHashMap<>();

    private CleanupJob() {}

    /** Spreads numbers over keys. */
    static final class Key implements KeySelector<Long, Long> {
        @Override
        public Long getKey(Long value) {
            return value % KEYS;
        }
    }

    /** Lets some thousand numbers pass per second, and notes the last one. */
    static final class Noted implements org.apache.flink.api.common.functions.MapFunction<Long, Long> {
        private final String run;

        Noted(String run) {
            this.run = run;
        }

        @Override
        public Long map(Long value) throws Exception {
            if (value % 4 == 0) {
                Thread.sleep(1);
            }
            LAST.get(run).set(value);
            return value;
        }
    }

    /** Counts the numbers of a key and keeps them; every seventh time it forgets both. */
    static final class Compare extends RichMapFunction<Long, Long> {
        private final String run;

        Compare(String run) {
            this.run = run;
        }

        @Override
        public Long map(Long value) throws Exception {
            ValueState<Long> count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
            ListState<Long> seen = getRuntimeContext().getListState(new ListStateDescriptor<>("seen", Types.LONG));
            long before = value / KEYS % 7;
            List<Long> expected = new ArrayList<>();
            for (long i = before; i > 0; i--) {
                expected.add(value - i * KEYS);
            }
            List<Long> found = new ArrayList<>();
            if (seen.get() != null) {
                seen.get().forEach(found::add);
            }
            Long number = count.value();
            if ((number == null ? 0 : number) != before || !expected.equals(found)) {
                throw new IllegalStateException("wrong state before " + value + ": " + number + " " + found);
            }
            if (before == 6) {
                count.clear();
                seen.clear();
            } else {
                count.update(before + 1);
                seen.add(value);
            }
            COMPARED.get(run).incrementAndGet();
            return value;
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        JobID job = request.has("job") ? RUNNING.get(request.get("job").asText()) : null;
        switch (request.get("action").asText()) {
            case "start":
                return Values.single("job", start(cluster, request));
            case "checkpoint":
                return Values.single("path", cluster.checkpoint(job));
            case "savepoint":
                return Values.single("path", cluster.savepoint(
                        job, request.get("folder").asText(), request.get("format").asText()));
            case "compared":
                return compared(cluster, job, request.get("wanted").asLong());
            case "stop":
                cluster.cancel(job);
                RUNNING.remove(job.toString());
                return Values.single("stopped", true);
            default:
                throw new IllegalArgumentException("no action " + request);
        }
    }

    /** Wait for comparisons, and return the last number. */
    private static Map<String, Object> compared(Cluster cluster, JobID job, long wanted) throws Exception {
        AtomicLong compared = COMPARED.get(job.toString());
        cluster.await(job, "comparisons", () -> compared.get() >= wanted);
        Map<String, Object> out = new HashMap<>();
        out.put("compared", compared.get());
        out.put("last", LAST.get(job.toString()).get());
        return out;
    }

    private static String start(Cluster cluster, JsonNode request) throws Exception {
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        env.setMaxParallelism(16);
        env.enableCheckpointing(31_536_000_000L);
        String run = java.util.UUID.randomUUID().toString();
        AtomicLong compared = new AtomicLong();
        AtomicLong last = new AtomicLong(-1);
        COMPARED.put(run, compared);
        LAST.put(run, last);
        DataStream<Long> numbers = env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("sequence")
                .map(new Noted(run)).returns(Types.LONG).setParallelism(1).uid("slow");
        numbers.keyBy(new Key()).map(new Compare(run)).returns(Types.LONG).uid("counts").filter(value -> false);
        if (request.hasNonNull("sinks")) {
            Class.forName("harness." + request.get("sinks").asText())
                    .getDeclaredMethod("add", DataStream.class, String.class)
                    .invoke(null, numbers, request.get("folder").asText());
        }
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        RUNNING.put(job.toString(), job);
        COMPARED.put(job.toString(), compared);
        LAST.put(job.toString(), last);
        try {
            cluster.awaitRunning(job);
        } catch (Exception e) {
            cluster.cancel(job);
            throw e;
        }
        return job.toString();
    }
}
