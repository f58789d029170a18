package harness;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import javax.sql.XADataSource;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.connector.jdbc.JdbcExactlyOnceOptions;
import org.apache.flink.connector.jdbc.JdbcExecutionOptions;
import org.apache.flink.connector.jdbc.core.datastream.sink.JdbcSink;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.function.SerializableSupplier;
import org.postgresql.xa.PGXADataSource;

/** Writes numbers to a table of a real PostgreSQL in XA transactions, and takes savepoints, which prepare transactions and commit none. */
public final class JdbcJob {
    private JdbcJob() {}

    /** Numbers, not too fast, counted on the board. */
    static final class Slow implements MapFunction<Long, Long> {
        private final String run;

        Slow(String run) {
            this.run = run;
        }

        @Override
        public Long map(Long n) throws Exception {
            Thread.sleep(1);
            Board.of(run).records.add(n);
            return n;
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        Board board = Board.of(run);
        String url = request.get("url").asText();
        String password = request.get("password").asText();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        // Without it, Flink copies committables on their way to the committer, and copies lack the transaction: nothing is committed.
        if (request.path("reuse").asBoolean(true)) {
            env.getConfig().enableObjectReuse();
        }
        SerializableSupplier<XADataSource> database = () -> {
            PGXADataSource source = new PGXADataSource();
            source.setUrl(url);
            source.setPassword(password);
            return source;
        };
        JdbcSink<Long> sink = JdbcSink.<Long>builder()
                .withQueryStatement("INSERT INTO out VALUES (?)", (statement, n) -> statement.setLong(1, n))
                .withExecutionOptions(JdbcExecutionOptions.builder().withMaxRetries(0).build())
                .buildExactlyOnce(
                        JdbcExactlyOnceOptions.builder().withTransactionPerConnection(true).build(), database);
        env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("sequence")
                .map(new Slow(run)).setParallelism(1).uid("slow")
                .rebalance().sinkTo(sink).uid(request.get("uid").asText());
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new HashMap<>();
        List<String> savepoints = new ArrayList<>();
        try {
            cluster.await(job, "numbers", () -> board.records.size() > 50);
            for (JsonNode folder : request.path("savepoints")) {
                int seen = board.records.size();
                cluster.await(job, "more numbers", () -> board.records.size() > seen + 50);
                savepoints.add(cluster.savepoint(job, folder.asText(), "CANONICAL"));
            }
            for (int i = 0; i < request.path("checkpoints").asInt(0); i++) {
                int seen = board.records.size();
                cluster.await(job, "more numbers", () -> board.records.size() > seen + 50);
                cluster.checkpoint(job);
            }
            if (request.hasNonNull("prepared")) {
                // The committer learns of a checkpoint later.
                cluster.await(job, "commits", () -> prepared(url, password) == request.get("prepared").asInt());
            }
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
        out.put("savepoints", savepoints);
        return out;
    }

    private static int prepared(String url, String password) {
        try (Connection connection = DriverManager.getConnection(url, "flink", password);
                ResultSet rows = connection.createStatement().executeQuery("SELECT count(*) FROM pg_prepared_xacts")) {
            rows.next();
            return rows.getInt(1);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }
}
