package harness;

import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.typeutils.RowTypeInfo;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;

/** A SQL query over streams that the request feeds: runs until all rows have come out, then takes a savepoint where asked. */
final class SqlJob {
    /** Rows still to be sent, by run and table. */
    private static final Map<String, Queue<Row>> INPUT = new ConcurrentHashMap<>();

    /** Types of the rows, by run and table. */
    private static final Map<String, RowTypeInfo> TYPES = new ConcurrentHashMap<>();

    private SqlJob() {}

    /** Sends what is queued; the job goes on after that. */
    static final class Feed implements FlatMapFunction<Long, Row> {
        private final String queue;

        Feed(String queue) {
            this.queue = queue;
        }

        @Override
        public void flatMap(Long n, Collector<Row> out) throws Exception {
            Queue<Row> rows = INPUT.get(queue);
            Row row = rows == null ? null : rows.peek();
            if (row == null) {
                Thread.sleep(5);
                return;
            }
            out.collect(row);
            rows.remove();
        }
    }

    static final class Keep implements MapFunction<Row, Long> {
        private final String run;

        Keep(String run) {
            this.run = run;
        }

        @Override
        public Long map(Row row) {
            Board.of(run).records.add(Values.of(row));
            return 0L;
        }
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.path("parallelism").asInt(1));
        env.setMaxParallelism(request.path("max_parallelism").asInt(128));
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        for (Iterator<Map.Entry<String, JsonNode>> it = request.path("config").fields(); it.hasNext(); ) {
            Map.Entry<String, JsonNode> e = it.next();
            tables.getConfig().getConfiguration().setString(e.getKey(), e.getValue().asText());
        }
        List<Queue<Row>> queues = new ArrayList<>();
        boolean planned = request.path("planned").asBoolean();
        if (planned) {
            tables.loadModule("harness", new PlannedTables(run));
        }
        for (JsonNode spec : request.get("tables")) {
            queues.add(planned ? plannedTable(tables, run, spec) : table(env, tables, run, spec));
        }
        String plan = "";
        if (planned) {
            plan = PlannedTables.plan(tables, env, request.get("query").asText());
        } else {
            Table result = tables.sqlQuery(request.get("query").asText());
            tables.toChangelogStream(result).map(new Keep(run)).uid("result");
        }
        String snapshot = request.path("snapshot").asText(null);
        Board board = Board.of(run);
        JobID job = cluster.submit(env, snapshot, false);
        try {
            int expected = request.get("results").asInt();
            cluster.await(job, expected + " results, got " + board.records,
                    () -> queues.stream().allMatch(Queue::isEmpty) && board.records.size() >= expected);
            long quiet = request.path("quiet_ms").asLong(100);
            int before;
            do { // more results than expected would come now
                before = board.records.size();
                Thread.sleep(quiet);
            } while (request.has("quiet_ms") && board.records.size() > before);
            Map<String, Object> out = Values.single("results", new ArrayList<>(board.records));
            out.put("plan", plan);
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(
                        job, request.get("savepoint").asText(), request.path("format").asText("CANONICAL")));
            }
            return out;
        } finally {
            cluster.cancel(job);
            Board.forget(run);
            INPUT.keySet().removeIf(k -> k.startsWith(run));
            TYPES.keySet().removeIf(k -> k.startsWith(run));
        }
    }

    private static Queue<Row> table(
            StreamExecutionEnvironment env, StreamTableEnvironment tables, String run, JsonNode spec) {
        String name = spec.get("name").asText();
        List<String> names = new ArrayList<>();
        List<TypeInformation<?>> types = new ArrayList<>();
        List<String> kinds = new ArrayList<>();
        Schema.Builder schema = Schema.newBuilder();
        for (JsonNode column : spec.get("columns")) {
            names.add(column.get(0).asText());
            kinds.add(column.get(1).asText());
            types.add(Types.parse(column.get(1).asText()));
            schema.column(column.get(0).asText(), column.get(2).asText());
        }
        if (spec.hasNonNull("primary_key")) {
            schema.primaryKey(spec.get("primary_key").asText());
        }
        if (!spec.path("watermark").asText("").isEmpty()) {
            schema.watermark(spec.get("columns").get(0).get(0).asText(), spec.get("watermark").asText());
        }
        Queue<Row> rows = queue(run + name, spec, kinds);
        RowTypeInfo type = new RowTypeInfo(types.toArray(new TypeInformation<?>[0]), names.toArray(new String[0]));
        TYPES.put(run + name, type);
        DataStream<Row> stream = feed(env, run, name);
        ChangelogMode mode = spec.path("changelog").asBoolean() ? ChangelogMode.all() : ChangelogMode.insertOnly();
        tables.createTemporaryView(name, tables.fromChangelogStream(stream, schema.build(), mode));
        return rows;
    }

    /** A table that a compiled plan may have. */
    private static Queue<Row> plannedTable(StreamTableEnvironment tables, String run, JsonNode spec) {
        String name = spec.get("name").asText();
        List<String> names = new ArrayList<>();
        List<String> kinds = new ArrayList<>();
        List<TypeInformation<?>> types = new ArrayList<>();
        StringBuilder columns = new StringBuilder();
        for (JsonNode column : spec.get("columns")) {
            names.add(column.get(0).asText());
            kinds.add(column.get(1).asText());
            types.add(Types.parse(column.get(1).asText()));
            columns.append(columns.length() == 0 ? "`" : ", `").append(column.get(0).asText()).append("` ")
                    .append(column.get(2).asText());
        }
        TYPES.put(run + name, new RowTypeInfo(types.toArray(new TypeInformation<?>[0]), names.toArray(new String[0])));
        tables.executeSql("CREATE TEMPORARY TABLE `" + name + "` (" + columns + ") WITH ('connector' = 'harness')");
        return queue(run + name, spec, kinds);
    }

    private static Queue<Row> queue(String name, JsonNode spec, List<String> kinds) {
        Queue<Row> rows = new ConcurrentLinkedQueue<>();
        for (JsonNode row : spec.get("rows")) {
            rows.add(row(row, kinds));
        }
        INPUT.put(name, rows);
        return rows;
    }

    /** The queued rows of a table. */
    static DataStream<Row> feed(StreamExecutionEnvironment env, String run, String name) {
        return env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("numbers-" + name)
                .flatMap(new Feed(run + name)).returns(TYPES.get(run + name)).setParallelism(1).uid("feed-" + name);
    }

    /** The first item is the kind of change, the others are the columns. */
    private static Row row(JsonNode items, List<String> kinds) {
        Row row = Row.withPositions(kinds.size());
        row.setKind(RowKind.valueOf(items.get(0).asText()));
        for (int i = 0; i < kinds.size(); i++) {
            row.setField(i, value(items.get(i + 1), kinds.get(i)));
        }
        return row;
    }

    private static Object value(JsonNode item, String kind) {
        if (item.isNull()) {
            return null;
        }
        switch (kind) {
            case "STRING":
                return item.asText();
            case "INT":
                return item.asInt();
            case "LONG":
                return item.asLong();
            case "DOUBLE":
                return item.asDouble();
            case "BOOLEAN":
                return item.asBoolean();
            case "BIGDEC":
                return new java.math.BigDecimal(item.asText());
            case "LOCALDATE":
                return LocalDate.parse(item.asText());
            case "LOCALDATETIME":
                return LocalDateTime.parse(item.asText());
            case "INSTANT":
                return Instant.parse(item.asText());
            default:
                throw new IllegalArgumentException("no column type " + kind);
        }
    }
}
