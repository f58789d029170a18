package harness;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import javax.sql.XAConnection;
import javax.sql.XADataSource;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.connector.jdbc.JdbcExactlyOnceOptions;
import org.apache.flink.connector.jdbc.JdbcExecutionOptions;
import org.apache.flink.connector.jdbc.core.datastream.sink.JdbcSink;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.function.SerializableSupplier;
import org.postgresql.xa.PGXADataSource;

/**
 * Writes numbers to a table of PostgreSQL with JDBC's exactly-once sink. The sink commits when its writers take a snapshot, so transactions
 * stay prepared only while the database refuses to commit.
 */
public final class JdbcJob {
    private JdbcJob() {}

    /** Numbers, not too fast. */
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

    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        Board board = Board.of(run);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.path("parallelism").asInt(2));
        env.enableCheckpointing(31_536_000_000L);
        JdbcSink<Long> sink = JdbcSink.<Long>builder()
                .withQueryStatement("INSERT INTO out VALUES (?)", (statement, n) -> statement.setLong(1, n))
                .withExecutionOptions(JdbcExecutionOptions.builder().withMaxRetries(0).build())
                .buildExactlyOnce(
                        JdbcExactlyOnceOptions.builder()
                                .withTransactionPerConnection(true).withMaxCommitAttempts(100).build(),
                        database(
                                request.get("url").asText(),
                                request.get("password").asText(),
                                request.path("refuses").asBoolean()));
        env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("sequence")
                .map(new Slow(run)).setParallelism(1).uid("slow")
                .rebalance().sinkTo(sink).uid(request.get("uid").asText());
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        List<String> savepoints = new ArrayList<>();
        try {
            // The source runs ahead of a sink that cannot be restored.
            cluster.awaitRunning(job);
            for (int i = 0; i < request.path("checkpoints").asInt(); i++) {
                awaitMore(cluster, job, board);
                cluster.checkpoint(job);
            }
            for (JsonNode folder : request.path("savepoints")) {
                awaitMore(cluster, job, board);
                savepoints.add(cluster.savepoint(job, folder.asText(), "CANONICAL"));
            }
            // The open transactions have rows, which nobody commits.
            awaitMore(cluster, job, board);
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
        Map<String, Object> out = new HashMap<>();
        out.put("savepoints", savepoints);
        return out;
    }

    private static void awaitMore(Cluster cluster, JobID job, Board board) throws Exception {
        int before = board.records.size();
        cluster.await(job, "numbers", () -> board.records.size() > before + 50);
    }

    private static SerializableSupplier<XADataSource> database(String url, String password, boolean refuses) {
        return () -> {
            PGXADataSource source = new PGXADataSource();
            source.setUrl(url);
            source.setPassword(password);
            return refuses ? refusing(XADataSource.class, source) : source;
        };
    }

    /** The same database, which answers commits of prepared transactions as one that is not available. */
    private static <T> T refusing(Class<T> type, Object real) {
        return type.cast(Proxy.newProxyInstance(
                JdbcJob.class.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
                    if (type == XAResource.class && method.getName().equals("commit")) {
                        throw new XAException(XAException.XAER_RMFAIL);
                    }
                    try {
                        Object answer = method.invoke(real, arguments);
                        Class<?> answered = method.getReturnType();
                        return answered == XAConnection.class || answered == XAResource.class
                                ? refusing(answered, answer) : answer;
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                }));
    }
}
