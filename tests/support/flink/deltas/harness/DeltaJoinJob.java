package harness;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamSink;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.sink.DataStreamSinkProvider;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.lookup.AsyncLookupFunctionProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.functions.AsyncLookupFunction;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;

/**
 * A delta join of two tables whose rows can be looked up by an index. Until {@code answering}, no look-up returns, so that all rows wait in
 * the join. Rows that a restored job emits were all stored in its state: the sources send nothing again.
 */
public final class DeltaJoinJob extends HarnessTables {
    private static final Map<String, DeltaJoinJob> RUNS = new ConcurrentHashMap<>();

    private static final Schema ORDERS = Schema.newBuilder().column("id", DataTypes.BIGINT().notNull())
            .column("shop", DataTypes.STRING()).column("amount", DataTypes.BIGINT()).primaryKey("id").index("shop")
            .build();
    private static final Schema SHOPS = Schema.newBuilder().column("city", DataTypes.STRING())
            .column("name", DataTypes.STRING().notNull()).primaryKey("name").index("name").build();
    private static final Schema RESULTS = Schema.newBuilder().column("id", DataTypes.BIGINT().notNull())
            .column("shop", DataTypes.STRING()).column("amount", DataTypes.BIGINT()).column("city", DataTypes.STRING())
            .primaryKey("id").build();
    private static final Object[][] ORDER_ROWS = {
        {1L, "north", 10L}, {2L, "süd", 20L}, {3L, "north", 30L}, {4L, "west", null}, {5L, "süd", 50L}, {6L, null, 60L},
    };
    private static final Object[][] SHOP_ROWS = {{"Oslo", "north"}, {"Bern", "süd"}, {"Lima", "east"}};
    private static final long WATERMARK = 999;

    private final String run;
    private final boolean answering;
    private final Set<String> sent = Collections.synchronizedSet(new TreeSet<>());
    private final Set<String> joined = Collections.synchronizedSet(new TreeSet<>());

    private DeltaJoinJob(String run, boolean answering) {
        this.run = run;
        this.answering = answering;
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        DeltaJoinJob job = new DeltaJoinJob(run, request.path("answering").asBoolean());
        RUNS.put(run, job);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.path("parallelism").asInt(1));
        env.setMaxParallelism(request.path("max_parallelism").asInt(128));
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().set("table.optimizer.delta-join.strategy", "FORCE");
        // The upsert key of a join does not outlive its exchange.
        tables.getConfig().set("table.exec.sink.upsert-materialize", "NONE");
        tables.getConfig().set("table.exec.sink.require-on-conflict", "false");
        tables.loadModule("delta", job);
        tables.createTemporaryTable("orders", table(ORDERS));
        tables.createTemporaryTable("shops", table(SHOPS));
        tables.createTemporaryTable("result_rows", table(RESULTS));
        String plan = PlannedTables.compile(tables, env, "INSERT INTO result_rows"
                + " SELECT o.id, o.shop, o.amount, s.city FROM orders AS o JOIN shops AS s ON o.shop = s.name");
        JobID id = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("plan", plan);
        try {
            int wanted = request.get("wanted").asInt();
            Set<String> seen = job.answering ? job.joined : job.sent;
            cluster.await(id, wanted + " rows, got " + seen, () -> seen.size() >= wanted);
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(
                        id, request.get("savepoint").asText(), request.path("format").asText("CANONICAL")));
            }
        } finally {
            cluster.cancel(id);
            RUNS.remove(run);
        }
        out.put("sent", new ArrayList<>(job.sent));
        out.put("joined", new ArrayList<>(job.joined));
        return out;
    }

    private static TableDescriptor table(Schema schema) {
        return TableDescriptor.forConnector("harness").schema(schema).build();
    }

    private static Object[][] rows(String table) {
        return table.equals("orders") ? ORDER_ROWS : SHOP_ROWS;
    }

    private static RowData data(Object[] row) {
        GenericRowData data = new GenericRowData(row.length);
        for (int i = 0; i < row.length; i++) {
            data.setField(i, row[i] instanceof String ? StringData.fromString((String) row[i]) : row[i]);
        }
        return data;
    }

    @Override
    DynamicTableSource source(String name, DataType type) {
        return new Source(run, name, type);
    }

    @Override
    DynamicTableSink sink(DataType type) {
        return new Sink(run);
    }

    private static final class Source implements ScanTableSource, LookupTableSource {
        private final String run;
        private final String name;
        private final DataType type;

        Source(String run, String name, DataType type) {
            this.run = run;
            this.name = name;
            this.type = type;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            return new Provider(run, name, InternalTypeInfo.of(type.getLogicalType()));
        }

        @Override
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
            return AsyncLookupFunctionProvider.of(new Index(run, name, context.getKeys()[0][0]));
        }

        @Override
        public DynamicTableSource copy() {
            return new Source(run, name, type);
        }

        @Override
        public String asSummaryString() {
            return "harness";
        }
    }

    private static final class Provider implements DataStreamScanProvider {
        private final String run;
        private final String name;
        private final InternalTypeInfo<RowData> type;

        Provider(String run, String name, InternalTypeInfo<RowData> type) {
            this.run = run;
            this.name = name;
            this.type = type;
        }

        @Override
        public DataStream<RowData> produceDataStream(ProviderContext context, StreamExecutionEnvironment env) {
            return env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("numbers-" + name)
                    .flatMap(new Feed(run, name)).returns(type).setParallelism(1).uid("feed-" + name)
                    .assignTimestampsAndWatermarks(WatermarkStrategy.<RowData>forGenerator(c -> new First())
                            .withTimestampAssigner((row, time) -> 1000))
                    .setParallelism(1).uid("times-" + name);
        }

        @Override
        public boolean isBounded() {
            return false;
        }
    }

    /** Sends the rows of a table, one per number. */
    private static final class Feed implements FlatMapFunction<Long, RowData> {
        private final String run;
        private final String name;

        Feed(String run, String name) {
            this.run = run;
            this.name = name;
        }

        @Override
        public void flatMap(Long n, Collector<RowData> out) throws Exception {
            Object[][] rows = rows(name);
            if (n >= rows.length) {
                Thread.sleep(5);
                return;
            }
            out.collect(data(rows[n.intValue()]));
            RUNS.get(run).sent.add(name + Arrays.toString(rows[n.intValue()]));
        }
    }

    /** A watermark after the first row of a table. */
    private static final class First implements WatermarkGenerator<RowData> {
        private boolean after;

        @Override
        public void onEvent(RowData row, long time, WatermarkOutput out) {
            if (!after) {
                out.emitWatermark(new Watermark(WATERMARK));
                after = true;
            }
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput out) {}
    }

    /** Looks up the rows of a table by one column. */
    public static final class Index extends AsyncLookupFunction {
        private final String run;
        private final String name;
        private final int column;
        private transient boolean answering;

        Index(String run, String name, int column) {
            this.run = run;
            this.name = name;
            this.column = column;
        }

        @Override
        public void open(FunctionContext context) {
            answering = RUNS.get(run).answering;
        }

        @Override
        public CompletableFuture<Collection<RowData>> asyncLookup(RowData key) {
            if (!answering) {
                return new CompletableFuture<>();
            }
            List<RowData> found = new ArrayList<>();
            for (Object[] row : rows(name)) {
                if (!key.isNullAt(0) && key.getString(0).toString().equals(row[column])) {
                    found.add(data(row));
                }
            }
            return CompletableFuture.completedFuture(found);
        }
    }

    private static final class Sink implements DynamicTableSink {
        private final String run;

        Sink(String run) {
            this.run = run;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return ChangelogMode.newBuilder().addContainedKind(RowKind.INSERT).addContainedKind(RowKind.UPDATE_AFTER)
                    .addContainedKind(RowKind.DELETE).build();
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return new DataStreamSinkProvider() {
                @Override
                public DataStreamSink<?> consumeDataStream(ProviderContext provider, DataStream<RowData> rows) {
                    return rows.map(new Keep(run)).returns(Long.class).uid("kept")
                            .sinkTo(new DiscardingSink<>()).uid("discarded");
                }
            };
        }

        @Override
        public DynamicTableSink copy() {
            return new Sink(run);
        }

        @Override
        public String asSummaryString() {
            return "harness";
        }
    }

    private static final class Keep implements MapFunction<RowData, Long> {
        private final String run;

        Keep(String run) {
            this.run = run;
        }

        @Override
        public Long map(RowData row) {
            Object amount = row.isNullAt(2) ? null : row.getLong(2);
            RUNS.get(run).joined.add(row.getLong(0) + " " + row.getString(1) + " " + amount + " " + row.getString(3));
            return 0L;
        }
    }
}
