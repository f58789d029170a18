package harness;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A job that counts for ever, of which checkpoints are taken one by one. */
final class FollowJob {
    private static final Map<String, JobID> RUNNING = new ConcurrentHashMap<>();

    private FollowJob() {}

    /**
     * Lets some thousand numbers pass per second: most keys change between two checkpoints, and the tests have the cores. It runs in the
     * source's thread, so that no numbers wait before a slow operator, which would hold up the barriers of checkpoints.
     */
    static final class Slow implements MapFunction<Long, Long> {
        @Override
        public Long map(Long value) throws Exception {
            if (value % 8 == 0) {
                Thread.sleep(1);
            }
            return value;
        }
    }

    /** Spreads numbers over keys. */
    static final class Key implements KeySelector<Long, Long> {
        @Override
        public Long getKey(Long value) {
            return value % 500;
        }
    }

    /** Counts the numbers of its key and keeps some of them; every seventh time it forgets both. */
    static final class Count extends RichMapFunction<Long, Long> {
        @Override
        public Long map(Long value) throws Exception {
            ValueState<Long> count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
            ListState<Long> seen = getRuntimeContext().getListState(new ListStateDescriptor<>("seen", Types.LONG));
            long now = count.value() == null ? 1 : count.value() + 1;
            if (now % 7 == 0) {
                count.clear();
                seen.clear();
            } else {
                count.update(now);
                seen.add(value);
            }
            return now;
        }
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        switch (request.get("action").asText()) {
            case "start":
                return Values.single("job", start(cluster, request));
            case "checkpoint":
                return Values.single("path", cluster.checkpoint(RUNNING.get(request.get("job").asText())));
            case "stop":
                cluster.cancel(RUNNING.remove(request.get("job").asText()));
                return Values.single("stopped", true);
            default:
                throw new IllegalArgumentException("no action " + request);
        }
    }

    private static String start(Cluster cluster, JsonNode request) throws Exception {
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        env.setMaxParallelism(16);
        env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1)
                .map(new Slow()).returns(Types.LONG).setParallelism(1)
                .keyBy(new Key()).map(new Count()).returns(Types.LONG).uid("counts")
                .filter(value -> false);
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        RUNNING.put(job.toString(), job);
        return job.toString();
    }
}
