package harness;

import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/** Writes numbers to a table in a local warehouse, and takes a savepoint between two commits of the job. */
public final class TableJob {
    private TableJob() {}

    /** Numbers, not too fast. */
    static final class Slow implements MapFunction<Long, Row> {
        @Override
        public Row map(Long n) throws Exception {
            Thread.sleep(2);
            return Row.of(n, "day-" + n % 2);
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        env.enableCheckpointing(300);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        for (JsonNode statement : request.get("setup")) {
            tables.executeSql(statement.asText());
        }
        DataStream<Row> rows = env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("sequence")
                .map(new Slow()).returns(Types.ROW_NAMED(new String[] {"n", "d"}, Types.LONG, Types.STRING)).uid("slow");
        tables.createTemporaryView("numbers_in", rows);
        tables.createStatementSet().addInsertSql(request.get("insert").asText()).attachAsDataStream();
        Path folder = Paths.get(request.get("commits").asText());
        String pattern = request.get("pattern").asText();
        int before = count(folder, pattern);
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new HashMap<>();
        try {
            int wanted = request.path("wanted").asInt(2);
            cluster.await(job, "commits", () -> count(folder, pattern) >= before + wanted);
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
                int taken = count(folder, pattern);
                cluster.await(job, "the commits of the savepoint", () -> count(folder, pattern) > taken + 5);
            }
        } finally {
            cluster.cancel(job);
        }
        return out;
    }

    private static int count(Path folder, String pattern) {
        if (!Files.isDirectory(folder)) {
            return 0;
        }
        int found = 0;
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, pattern)) {
            for (Path ignored : files) {
                found++;
            }
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        return found;
    }
}
