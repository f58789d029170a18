package harness;

import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.ExceptionUtils;

/**
 * Runs a job of the package {@code jobs}: restores it, or starts it empty, sends lines ({@code key,value,time}, or {@code w,,time} for a
 * watermark) into it, takes a snapshot, and reports how far it came and what reached its end.
 */
public final class ChangedJob {
    private static final Map<String, Queue<String>> LINES = new ConcurrentHashMap<>();

    private ChangedJob() {}

    /** Sends each line that is waiting. */
    static final class Feed implements FlatMapFunction<Long, String> {
        private final String run;

        Feed(String run) {
            this.run = run;
        }

        @Override
        public void flatMap(Long value, org.apache.flink.util.Collector<String> out) throws Exception {
            for (String line = LINES.get(run).peek(); line != null; line = LINES.get(run).peek()) {
                out.collect(line);
                LINES.get(run).poll();
            }
            Thread.sleep(5);
        }
    }

    static final class Times implements WatermarkGenerator<String> {
        @Override
        public void onEvent(String line, long time, WatermarkOutput out) {
            if (line.startsWith("w,")) {
                out.emitWatermark(new Watermark(time));
            }
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput out) {}
    }

    static final class Report implements MapFunction<Object, Long> {
        private final String run;

        Report(String run) {
            this.run = run;
        }

        @Override
        public Long map(Object value) {
            Board.of(run).records.add(String.valueOf(value));
            return 0L;
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        LINES.put(run, new ConcurrentLinkedQueue<>());
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        DataStream<String> lines = env.fromSequence(0, Long.MAX_VALUE / 2).uid("source")
                .flatMap(new Feed(run)).returns(Types.STRING).uid("feed")
                .assignTimestampsAndWatermarks(WatermarkStrategy.<String>forGenerator(c -> new Times())
                        .withTimestampAssigner((line, before) -> Long.parseLong(line.split(",")[2])))
                .uid("times").filter(line -> !line.startsWith("w,")).uid("lines");
        Class<?> cls = Class.forName("jobs." + request.get("job").asText());
        java.lang.reflect.Constructor<?> constructor = cls.getDeclaredConstructor();
        constructor.setAccessible(true);
        java.lang.reflect.Method build = cls.getMethod("build", DataStream.class);
        build.setAccessible(true);
        DataStream results = (DataStream) build.invoke(constructor.newInstance(), lines);
        Cluster.discard(results.map(new Report(run)).returns(Types.LONG).uid("report"));
        boolean held = request.path("held").asBoolean();
        java.lang.reflect.Field open = Class.forName("jobs.Gate").getField("open");
        open.set(null, !held);
        Map<String, Object> answer = Values.single("reached", "refused");
        JobID job = cluster.submit(env, request.hasNonNull("snapshot") ? request.get("snapshot").asText() : null, false);
        try {
            cluster.awaitRunning(job);
            answer.put("reached", "later");
            List<String> sent = new ArrayList<>();
            request.get("lines").forEach(line -> sent.add(line.asText()));
            LINES.get(run).addAll(sent);
            cluster.await(job, "all lines to be sent", () -> LINES.get(run).isEmpty());
            answer.put("snapshot", held ? heldCheckpoint(cluster, job, request, open) : snapshot(cluster, job, request));
            answer.put("reached", "done");
            answer.put("records", new ArrayList<>(Board.of(run).records));
        } catch (Exception e) {
            answer.put("failure", ExceptionUtils.stringifyException(cause(cluster, job, e)));
        } finally {
            open.set(null, true);
            cluster.cancel(job);
            Board.forget(run);
            LINES.remove(run);
        }
        return answer;
    }

    /** The exception that ended a job; another one is that of a snapshot which the end of the job aborted. */
    private static Exception cause(Cluster cluster, JobID job, Exception found) throws Exception {
        long end = System.currentTimeMillis() + 3_000;
        try {
            cluster.await(job, "the end of the job", () -> System.currentTimeMillis() > end);
            return found;
        } catch (IllegalStateException e) {
            return e.getMessage().contains("no cause") ? found : e;
        }
    }

    private static String snapshot(Cluster cluster, JobID job, JsonNode request) throws Exception {
        if (request.path("checkpoint").asBoolean()) {
            if (!request.hasNonNull("snapshot")) {
                cluster.checkpoint(job); // A change log may be materialized between both.
                Thread.sleep(request.path("wait_ms").asLong());
            }
            return cluster.checkpoint(job);
        }
        Files.createDirectories(Paths.get(request.get("savepoint").asText()));
        return cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL");
    }

    /** Takes a checkpoint while an operator holds its first record: what comes behind it is in flight. */
    private static String heldCheckpoint(Cluster cluster, JobID job, JsonNode request, java.lang.reflect.Field open)
            throws Exception {
        CompletableFuture<String> path = CompletableFuture.supplyAsync(() -> {
            try {
                return cluster.checkpoint(job);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        Thread.sleep(request.get("wait_ms").asLong()); // for the barrier to pass the records
        open.set(null, true);
        return path.get();
    }
}
