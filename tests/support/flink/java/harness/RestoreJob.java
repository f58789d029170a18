package harness;

import java.util.ArrayList;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * Restores operators from a snapshot, or starts them empty, reports what they hold, takes a savepoint or a checkpoint where asked, lets their timers fire.
 */
final class RestoreJob {
    private RestoreJob() {}

    /** Swallows everything, slowly: keeps a job alive. */
    static final class Idle implements FlatMapFunction<Long, Long> {
        @Override
        public void flatMap(Long value, Collector<Long> out) throws Exception {
            Thread.sleep(5);
        }
    }

    /** Never called: nothing is sent. */
    static final class NoKey implements KeySelector<Long, Object> {
        @Override
        public Object getKey(Long value) {
            throw new IllegalStateException();
        }
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        Board board = Board.of(run);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        int parallelism = request.path("parallelism").asInt(2);
        env.setParallelism(parallelism);
        DataStream<Long> idle = env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1)
                .flatMap(new Idle()).returns(org.apache.flink.api.common.typeinfo.Types.LONG).setParallelism(1);
        for (JsonNode spec : request.get("operators")) {
            add(idle, run, spec);
        }
        int expected = request.get("operators").size() * parallelism;
        String snapshot = request.hasNonNull("snapshot") ? request.get("snapshot").asText() : null;
        JobID job = cluster.submit(env, snapshot, request.path("allow_non_restored").asBoolean());
        try {
            cluster.await(job, "all operators to open", () -> board.opened.size() == expected);
            Map<String, Object> out = Values.single("opened", new ArrayList<>(board.opened));
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(
                        job, request.get("savepoint").asText(), request.path("format").asText("CANONICAL")));
            }
            if (request.path("checkpoint").asBoolean()) {
                out.put("checkpoint", cluster.checkpoint(job));
            }
            board.fire = true;
            cluster.await(job, "all timers to fire", () -> board.finished.size() == expected);
            out.put("fired", new ArrayList<>(board.fired));
            return out;
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
    }

    private static void add(DataStream<Long> idle, String run, JsonNode spec) {
        Inspector inspector = new Inspector(run, spec);
        DataStream<Long> input = spec.hasNonNull("key")
                ? idle.keyBy(new NoKey(), Types.<Object>parse(spec.get("key").asText()))
                : idle.rebalance();
        SingleOutputStreamOperator<Long> operator = input.transform(
                spec.get("name").asText(), org.apache.flink.api.common.typeinfo.Types.LONG, inspector);
        if (spec.hasNonNull("max_parallelism")) {
            operator.setMaxParallelism(spec.get("max_parallelism").asInt());
        }
        if (spec.hasNonNull("uid")) {
            operator.uid(spec.get("uid").asText());
        } else {
            operator.setUidHash(spec.get("operator_id").asText());
        }
    }
}
