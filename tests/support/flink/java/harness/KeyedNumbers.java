package harness;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Runs a job with one operator that keeps state of a number of keys, until it has seen all of them. */
final class KeyedNumbers {
    /** By run: the values of each key by state. */
    private static final Map<String, Map<String, Object>> SEEN = new ConcurrentHashMap<>();

    private KeyedNumbers() {}

    /** Makes the operator of a run. */
    interface Make {
        Keeper of(String run, boolean write);
    }

    /** Writes the states of a key in a run without a snapshot, and tells the values of each key. */
    abstract static class Keeper extends KeyedProcessFunction<String, Long, Long> {
        private final String run;
        private final boolean write;

        Keeper(String run, boolean write) {
            this.run = run;
            this.write = write;
        }

        abstract void write(String key, long n) throws Exception;

        abstract Map<String, Object> read() throws Exception;

        <T> ValueState<T> value(String name, TypeInformation<T> type) {
            return getRuntimeContext().getState(new ValueStateDescriptor<>(name, type));
        }

        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            Map<String, Object> seen = SEEN.get(run);
            if (seen == null || seen.containsKey(context.getCurrentKey())) {
                return;
            }
            if (write) {
                write(context.getCurrentKey(), n);
            }
            seen.put(context.getCurrentKey(), read());
        }
    }

    private static final class Modulo implements MapFunction<Long, Long> {
        private final long keys;

        Modulo(long keys) {
            this.keys = keys;
        }

        @Override
        public Long map(Long n) throws Exception {
            Thread.sleep(2);
            return n % keys;
        }
    }

    private static final class ByName implements KeySelector<Long, String> {
        @Override
        public String getKey(Long n) {
            return "key-" + n;
        }
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request, int keys, Make make) throws Exception {
        String run = UUID.randomUUID().toString();
        Map<String, Object> seen = new ConcurrentHashMap<>();
        SEEN.put(run, seen);
        String snapshot = request.path("snapshot").asText(null);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.path("parallelism").asInt(2));
        env.setMaxParallelism(request.path("max_parallelism").asInt(128));
        env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("numbers-" + run)
                .map(new Modulo(keys)).returns(Types.LONG).setParallelism(1).uid("modulo-" + run)
                .keyBy(new ByName(), Types.STRING)
                .process(make.of(run, snapshot == null)).returns(Types.LONG).uid("keeper");
        JobID job = cluster.submit(env, snapshot, true);
        try {
            cluster.await(job, "all keys to be seen", () -> seen.size() == keys);
            Map<String, Object> out = new LinkedHashMap<>();
            if (request.hasNonNull("savepoint")) {
                String format = request.path("format").asText("CANONICAL");
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), format));
            }
            out.put("values", new TreeMap<>(seen));
            return out;
        } finally {
            cluster.cancel(job);
            SEEN.remove(run);
        }
    }
}
