package harness;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
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
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Types;

/** Both sinks of Iceberg, with tables in a local warehouse, whose state names manifests by absolute paths. */
public final class IcebergSinks {
    private static final Schema SCHEMA = new Schema(Types.NestedField.required(1, "n", Types.LongType.get()));
    private static final RowType ROW = RowType.of(new LogicalType[] {new BigIntType(false)}, new String[] {"n"});
    private static final String[] TABLES = {"plain", "v2"};

    private IcebergSinks() {}

    /** A row of a number. */
    static final class ToRow implements MapFunction<Long, RowData> {
        @Override
        public RowData map(Long n) {
            return GenericRowData.of(n);
        }
    }

    static void add(DataStream<Long> numbers, String folder) {
        CatalogLoader loader = loader(folder);
        Catalog catalog = loader.loadCatalog();
        if (!((SupportsNamespaces) catalog).namespaceExists(Namespace.of("shop"))) {
            ((SupportsNamespaces) catalog).createNamespace(Namespace.of("shop"));
            for (String name : TABLES) {
                catalog.createTable(table(name), SCHEMA, PartitionSpec.unpartitioned());
            }
        }
        DataStream<RowData> rows = numbers.rebalance().map(new ToRow()).returns(InternalTypeInfo.of(ROW)).uid("rows");
        FlinkSink.forRowData(rows).tableLoader(TableLoader.fromCatalog(loader, table("plain"))).uidPrefix("plain").append();
        IcebergSink.forRowData(rows).tableLoader(TableLoader.fromCatalog(loader, table("v2"))).uidSuffix("v2").append();
    }

    /** Return the numbers in the tables. */
    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        Catalog catalog = loader(request.get("folder").asText()).loadCatalog();
        Map<String, Object> out = new TreeMap<>();
        for (String name : TABLES) {
            List<Long> found = new ArrayList<>();
            try (CloseableIterable<Record> records = IcebergGenerics.read(catalog.loadTable(table(name))).build()) {
                records.forEach(record -> found.add((Long) record.getField("n")));
            }
            Collections.sort(found);
            out.put(name, found);
        }
        return out;
    }

    private static CatalogLoader loader(String folder) {
        return CatalogLoader.hadoop("lake", new Configuration(), Collections.singletonMap("warehouse", "file://" + folder));
    }

    private static TableIdentifier table(String name) {
        return TableIdentifier.of("shop", name);
    }
}
