package harness;

import com.getindata.connectors.http.HttpSink;
import com.getindata.connectors.http.internal.sink.HttpSinkRequestEntry;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.base.sink.writer.ElementConverter;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * Sends the numbers below a limit to a server with the HTTP sink, which is based on AsyncSinkBase. A large batch is not sent before a savepoint is
 * taken. The job without a savepoint ends when all is sent.
 */
public final class HttpJob {
    private HttpJob() {}

    /** Passes the numbers below the limit on, not too fast. */
    static final class Below implements FlatMapFunction<Long, String> {
        private final String run;
        private final long limit;

        Below(String run, long limit) {
            this.run = run;
            this.limit = limit;
        }

        @Override
        public void flatMap(Long n, Collector<String> out) throws Exception {
            if (n < limit) {
                Board.of(run).records.add(n);
                out.collect("record " + n);
            } else {
                Thread.sleep(5);
            }
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        ElementConverter<String, HttpSinkRequestEntry> converter =
                (text, context) -> new HttpSinkRequestEntry("POST", text.getBytes(StandardCharsets.UTF_8));
        HttpSink<String> sink = HttpSink.<String>builder()
                .setEndpointUrl(request.get("url").asText()).setElementConverter(converter)
                .setMaxBatchSize(request.get("batch").asInt()).setMaxTimeInBufferMS(3_600_000)
                .setProperty("gid.connector.http.sink.writer.request.mode", "single")
                .setProperty("gid.connector.http.sink.request.timeout", "600").build();
        env.fromSequence(0, Long.MAX_VALUE / 2).uid("numbers")
                .flatMap(new Below(run, request.get("limit").asLong())).returns(Types.STRING).uid("below").rebalance()
                .sinkTo(sink).setParallelism(2).uid(request.get("uid").asText());
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new HashMap<>();
        try {
            int wanted = request.get("wanted").asInt();
            cluster.await(job, "records", () -> Board.of(run).records.size() >= wanted);
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            } else {
                // Before a checkpoint, writers wait for the answers to what they have sent.
                cluster.checkpoint(job);
            }
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
        return out;
    }
}
