package harness;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.io.TextInputFormat;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.jdbc.core.datastream.source.JdbcSource;
import org.apache.flink.connector.jdbc.split.JdbcNumericBetweenParametersProvider;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.FileProcessingMode;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.GenericAppenderFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.flink.TableLoader;
import org.apache.iceberg.flink.source.IcebergSource;
import org.apache.iceberg.flink.source.StreamingStartingStrategy;
import org.apache.iceberg.flink.source.assigner.SimpleSplitAssignerFactory;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.FileAppender;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.types.Types.LongType;
import org.apache.iceberg.types.Types.NestedField;

/**
 * Reads numbers with a real source: from a database in memory, a table of Iceberg, a monitored folder, or shards of Kinesis that are made up.
 * A savepoint is taken in the middle, and the answer has the numbers that each subtask had read then. A restored job runs until it has read
 * as many numbers as wanted.
 */
public final class SourcesJob {
    private static final int NUMBERS = 800;
    private static final int PARTS = 8;
    /** Two are read, and two wait. The source of release 3.3 may fail between two ranges: its readers share a connection. */
    private static final int RANGES = 4;
    private static final int PART = NUMBERS / PARTS;
    private static final RowType ROW = RowType.of(new LogicalType[] {new BigIntType(false)}, new String[] {"n"});

    private SourcesJob() {}

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        Board board = Board.of(run);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        int wanted = request.get("wanted").asInt();
        // Each of the two readers is in the middle of a range.
        int readers = request.get("source").asText().equals("jdbc") ? 2 : 1;
        source(env, request, run).map(new Seen(run, wanted)).returns(Types.STRING).uid("seen");
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new HashMap<>();
        try {
            cluster.await(job, "records", () -> board.records.size() >= wanted && board.finished.size() >= readers);
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
                out.put("snapshots", new ArrayList<>(board.opened));
            }
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
        out.put("records", new ArrayList<>(board.records));
        out.put("began", new ArrayList<>(board.fired));
        return out;
    }

    private static DataStream<String> source(StreamExecutionEnvironment env, JsonNode request, String run) throws Exception {
        String folder = request.get("folder").asText();
        switch (request.get("source").asText()) {
            case "jdbc":
                return env.fromSource(jdbc(), WatermarkStrategy.noWatermarks(), "jdbc").uid("source");
            case "iceberg":
                IcebergSource<RowData> iceberg = IcebergSource.forRowData().tableLoader(iceberg(folder)).streaming(true)
                        .streamingStartingStrategy(StreamingStartingStrategy.TABLE_SCAN_THEN_INCREMENTAL)
                        .splitSize(8L << 20).splitOpenFileCost(4L << 20).assignerFactory(new SimpleSplitAssignerFactory()).build();
                return env.fromSource(iceberg, WatermarkStrategy.noWatermarks(), "iceberg", InternalTypeInfo.of(ROW)).uid("source")
                        .map(new First()).returns(Types.STRING).uid("first");
            case "files":
                TextInputFormat format = new TextInputFormat(new Path(files(folder)));
                // The transformation is that of the reader. The monitor before it has a derived id.
                return env.readFile(format, folder, FileProcessingMode.PROCESS_CONTINUOUSLY, 100).uid("source");
            default:
                return env.addSource(new Shards.Consumer(run), "kinesis")
                        .returns(Types.STRING).uid("source");
        }
    }

    private static JdbcSource<String> jdbc() throws Exception {
        String url = "jdbc:h2:mem:shop;DB_CLOSE_DELAY=-1";
        try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE IF NOT EXISTS numbers AS SELECT x - 1 AS n FROM SYSTEM_RANGE(1, " + NUMBERS + ")");
        }
        return JdbcSource.<String>builder().setDBUrl(url).setDriverName("org.h2.Driver").setUsername("").setPassword("")
                .setSql("SELECT n FROM numbers WHERE n BETWEEN ? AND ? ORDER BY n")
                .setJdbcParameterValuesProvider(new JdbcNumericBetweenParametersProvider(0, NUMBERS - 1).ofBatchNum(RANGES))
                .setResultExtractor(row -> String.valueOf(row.getLong(1))).setTypeInformation(Types.STRING)
                .setResultSetType(ResultSet.TYPE_SCROLL_INSENSITIVE).setSplitReaderFetchBatchSize(10)
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE).build();
    }

    /** A table of eight data files; the source combines two into a split. */
    private static TableLoader iceberg(String folder) throws Exception {
        if (!Files.exists(Paths.get(folder))) {
            Schema schema = new Schema(NestedField.required(1, "n", LongType.get()));
            Table table = new HadoopTables(new Configuration()).create(schema, PartitionSpec.unpartitioned(), folder);
            for (int part = 0; part < PARTS; part++) {
                OutputFile file = table.io().newOutputFile(folder + "/data/" + part + ".avro");
                FileAppender<Record> appender = new GenericAppenderFactory(schema).newAppender(file, FileFormat.AVRO);
                try (FileAppender<Record> open = appender) {
                    for (long n = part * PART; n < (part + 1) * PART; n++) {
                        open.add(GenericRecord.create(schema).copy(Collections.singletonMap("n", n)));
                    }
                }
                DataFile data = DataFiles.builder(PartitionSpec.unpartitioned()).withInputFile(file.toInputFile())
                        .withMetrics(appender.metrics()).build();
                table.newAppend().appendFile(data).commit();
            }
        }
        return TableLoader.fromHadoopTable(folder);
    }

    private static String files(String folder) throws IOException {
        if (!Files.exists(Paths.get(folder))) {
            Files.createDirectories(Paths.get(folder));
            for (int part = 0; part < PARTS; part++) {
                List<String> lines = new ArrayList<>();
                for (int n = part * PART; n < (part + 1) * PART; n++) {
                    lines.add(String.valueOf(n));
                }
                Files.write(Paths.get(folder, part + ".txt"), lines, StandardCharsets.UTF_8);
            }
        }
        return folder;
    }

    /** The first field of a row. */
    static final class First implements MapFunction<RowData, String> {
        @Override
        public String map(RowData row) {
            return String.valueOf(row.getLong(0));
        }
    }

    /** Puts records on the board, and at a snapshot those that were read before it. */
    static final class Seen implements MapFunction<String, String>, CheckpointedFunction {
        private final String run;
        private final int fast;
        private transient List<String> mine;

        Seen(String run, int fast) {
            this.run = run;
            this.fast = fast;
        }

        @Override
        public String map(String value) throws Exception {
            if (Board.of(run).records.size() >= fast) {
                Thread.sleep(500); // the job is saved or ends long before the source does, or one of its ranges
            }
            if (mine.isEmpty()) {
                Board.of(run).finished.add("begun");
            }
            mine.add(value);
            Board.of(run).records.add(value);
            return value;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {
            mine = new ArrayList<>();
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {
            Map<String, Object> found = new HashMap<>();
            found.put("records", new ArrayList<>(mine));
            Board.of(run).opened.add(found);
        }
    }
}
