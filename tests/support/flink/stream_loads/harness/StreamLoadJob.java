package harness;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Writes numbers with a sink that loads them in two phases: a checkpoint commits its transactions, and a savepoint leaves them prepared. */
final class StreamLoadJob {
    private StreamLoadJob() {}

    /** Numbers as rows, not too fast. */
    static final class Slow implements MapFunction<Long, String> {
        private final String run;

        Slow(String run) {
            this.run = run;
        }

        @Override
        public String map(Long n) throws Exception {
            Thread.sleep(1);
            Board.of(run).records.add(n);
            return String.valueOf(n);
        }
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request, Sink<String> sink) throws Exception {
        String run = UUID.randomUUID().toString();
        Board board = Board.of(run);
        String server = request.get("server").asText();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.get("parallelism").asInt());
        env.enableCheckpointing(31_536_000_000L);
        env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("sequence")
                .map(new Slow(run)).setParallelism(1).uid("slow")
                .rebalance().sinkTo(sink).uid(request.get("uid").asText());
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new HashMap<>();
        try {
            cluster.awaitRunning(job);
            awaitMore(cluster, job, board);
            cluster.checkpoint(job);
            int commits = request.get("commits").asInt();
            cluster.await(job, "commits", () -> commits(server) == commits);
            awaitMore(cluster, job, board);
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
                awaitMore(cluster, job, board);
            }
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
        return out;
    }

    private static void awaitMore(Cluster cluster, JobID job, Board board) throws Exception {
        int before = board.records.size();
        cluster.await(job, "numbers", () -> board.records.size() > before + 50);
    }

    /** How many transactions the server has committed. */
    private static int commits(String server) {
        try (InputStream answer = new URL("http://" + server + "/commits").openStream()) {
            return Integer.parseInt(new String(answer.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
