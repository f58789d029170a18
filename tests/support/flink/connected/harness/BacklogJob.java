package harness;

import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/** Takes an unaligned checkpoint while attributes of records, and other stream elements, are in flight. */
public final class BacklogJob {
    static final String HELD = "held";

    private BacklogJob() {}

    /** Holds the first record until the board says so: what comes behind it stays in flight. */
    static final class Hold implements FlatMapFunction<String, String> {
        private final String run;

        Hold(String run) {
            this.run = run;
        }

        @Override
        public void flatMap(String value, Collector<String> out) throws Exception {
            Board board = Board.of(run);
            board.records.add(HELD);
            while (!board.fire) {
                Thread.sleep(1);
            }
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        BacklogSource source = new BacklogSource(run, request.get("script").asText());
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "source", Types.STRING)
                .uid("source").rebalance().flatMap(new Hold(run)).returns(Types.STRING).uid("hold");
        JobID job = cluster.submit(env, null, false);
        Board board = Board.of(run);
        try {
            // Flink 2 takes a checkpoint of its own when a job has just begun: that is over then.
            cluster.checkpoint(job);
            board.records.removeIf(BacklogSource.SNAPSHOT::equals);
            board.records.add(BacklogSource.BEGIN);
            cluster.await(job, "elements in flight", () -> board.records.contains(BacklogSource.EMITTED));
            CompletableFuture<String> path = CompletableFuture.supplyAsync(() -> {
                try {
                    return cluster.checkpoint(job);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            cluster.await(job, "the source's part of the checkpoint", () -> board.records.contains(BacklogSource.SNAPSHOT));
            Thread.sleep(request.get("barrierMs").asLong()); // for the barrier to pass the elements
            board.fire = true;
            return Values.single("path", path.get());
        } finally {
            board.fire = true;
            cluster.cancel(job);
            Board.forget(run);
        }
    }
}
