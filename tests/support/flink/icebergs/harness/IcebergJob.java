package harness;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.util.Collector;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DistributionMode;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.flink.CatalogLoader;
import org.apache.iceberg.flink.TableLoader;
import org.apache.iceberg.flink.sink.FlinkSink;
import org.apache.iceberg.flink.sink.IcebergSink;
import org.apache.iceberg.flink.sink.dynamic.DynamicIcebergSink;
import org.apache.iceberg.flink.sink.dynamic.DynamicRecord;
import org.apache.iceberg.flink.sink.dynamic.DynamicRecordGenerator;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Types;

/**
 * Writes numbers to tables of Iceberg in a local warehouse with all sinks of Iceberg, and tells which numbers the tables have. Checkpoints
 * are only those that it asks for: a savepoint leaves what was written since the last one uncommitted.
 */
public final class IcebergJob {
    private static final Schema SCHEMA = new Schema(Types.NestedField.required(1, "n", Types.LongType.get()));
    private static final String[] TABLES = {"plain", "v2", "forgotten", "even", "odd"};
    private static final RowType ROW = RowType.of(new org.apache.flink.table.types.logical.LogicalType[] {new BigIntType(false)}, new String[] {"n"});

    private IcebergJob() {}

    /** Numbers, not too fast. */
    static final class Slow implements MapFunction<Long, RowData> {
        private final String run;

        Slow(String run) {
            this.run = run;
        }

        @Override
        public RowData map(Long n) throws Exception {
            Thread.sleep(1);
            Board.of(run).records.add("");
            return GenericRowData.of(n);
        }
    }

    /** Even numbers to one table, odd ones to another. */
    static final class Parity implements DynamicRecordGenerator<RowData> {
        @Override
        public void generate(RowData row, Collector<DynamicRecord> out) {
            TableIdentifier table = table(row.getLong(0) % 2 == 0 ? "even" : "odd");
            out.collect(new DynamicRecord(
                    table, "main", SCHEMA, row, PartitionSpec.unpartitioned(), DistributionMode.NONE, 1));
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        CatalogLoader loader = CatalogLoader.hadoop("lake", new Configuration(),
                Collections.singletonMap("warehouse", "file://" + request.get("warehouse").asText()));
        Catalog catalog = loader.loadCatalog();
        if (!((SupportsNamespaces) catalog).namespaceExists(Namespace.of("shop"))) {
            ((SupportsNamespaces) catalog).createNamespace(Namespace.of("shop"));
            for (String name : TABLES) {
                catalog.createTable(table(name), SCHEMA, PartitionSpec.unpartitioned());
            }
        }
        String run = UUID.randomUUID().toString();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.get("parallelism").asInt());
        env.enableCheckpointing(31_536_000_000L);
        DataStream<RowData> numbers = env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("sequence")
                .map(new Slow(run)).returns(InternalTypeInfo.of(ROW)).setParallelism(1).uid("slow");
        String uid = request.get("uid").asText();
        FlinkSink.forRowData(numbers).tableLoader(loaderOf(loader, "plain")).uidPrefix(uid + "-plain").append();
        for (String name : new String[] {"v2", "forgotten"}) {
            IcebergSink.forRowData(numbers).tableLoader(loaderOf(loader, name)).uidSuffix(uid + "-" + name).append();
        }
        DynamicIcebergSink.<RowData>forInput(numbers).generator(new Parity()).catalogLoader(loader)
                .uidPrefix(uid + "-dynamic").append();
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new HashMap<>();
        try {
            awaitMore(cluster, job, run);
            cluster.checkpoint(job);
            for (String name : TABLES) {
                cluster.await(job, "the commit to " + name, () -> isCommitted(catalog.loadTable(table(name)), job));
            }
            if (request.hasNonNull("savepoint")) {
                awaitMore(cluster, job, run);
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            }
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
        Map<String, Object> rows = new TreeMap<>();
        for (String name : TABLES) {
            rows.put(name, numbersOf(catalog.loadTable(table(name))));
        }
        out.put("rows", rows);
        return out;
    }

    private static TableIdentifier table(String name) {
        return TableIdentifier.of("shop", name);
    }

    private static TableLoader loaderOf(CatalogLoader loader, String name) {
        return TableLoader.fromCatalog(loader, table(name));
    }

    private static void awaitMore(Cluster cluster, JobID job, String run) throws Exception {
        int before = Board.of(run).records.size();
        cluster.await(job, "records", () -> Board.of(run).records.size() > before + 50);
    }

    private static boolean isCommitted(Table table, JobID job) {
        Snapshot snapshot = table.currentSnapshot();
        return snapshot != null && job.toString().equals(snapshot.summary().get("flink.job-id"));
    }

    private static List<Long> numbersOf(Table table) throws Exception {
        List<Long> numbers = new ArrayList<>();
        try (CloseableIterable<Record> records = IcebergGenerics.read(table).build()) {
            for (Record record : records) {
                numbers.add((Long) record.getField("n"));
            }
        }
        Collections.sort(numbers);
        return numbers;
    }
}
