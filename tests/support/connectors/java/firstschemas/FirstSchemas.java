package writing;

import com.ververica.cdc.common.event.TableId;
import com.ververica.cdc.common.schema.Column;
import com.ververica.cdc.common.schema.Schema;
import com.ververica.cdc.common.types.DataTypes;
import com.ververica.cdc.runtime.operators.schema.coordinator.SchemaManager;
import com.ververica.cdc.runtime.operators.schema.coordinator.SchemaRegistry;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

/** The state of the coordinator of schemas in the first releases of CDC pipelines, whose classes have other packages. */
public final class FirstSchemas {
    public static void main(String[] args) throws Exception {
        SortedMap<Integer, Schema> versions = new TreeMap<>();
        versions.put(2, Schema.newBuilder().physicalColumn("id", DataTypes.BIGINT().notNull(), "the key")
                .primaryKey("id").build());
        versions.put(3, Schema.newBuilder().physicalColumn("id", DataTypes.BIGINT().notNull(), "the key")
                .physicalColumn("größe", DataTypes.DECIMAL(10, 2)).metadataColumn("op_ts", DataTypes.BIGINT(), "op_ts", "from the log")
                .primaryKey("id").option("bucket", "4").comment("more").build());
        print(Collections.singletonMap(TableId.tableId("a", "shop", "orders"), versions));
        print(Collections.emptyMap());
    }

    private static void print(Map<TableId, SortedMap<Integer, Schema>> tables) throws Exception {
        SchemaRegistry registry = new SchemaRegistry("schemas", null, null);
        Field manager = SchemaRegistry.class.getDeclaredField("schemaManager");
        manager.setAccessible(true);
        manager.set(registry, new SchemaManager(tables));
        CompletableFuture<byte[]> data = new CompletableFuture<>();
        registry.checkpointCoordinator(1, data);
        List<Object> rows = new ArrayList<>();
        tables.forEach((table, versions) -> versions.forEach((version, schema) -> rows.add(row(table, version, schema))));
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("behavior", null);
        expected.put("schemas", rows);
        Written.print("cdc-schemas", "3.0.1", "schemas", 0, data.get(), expected);
    }

    private static Map<String, Object> row(TableId table, int version, Schema schema) {
        List<String> columns = new ArrayList<>();
        for (Column column : schema.getColumns()) {
            columns.add(column.getName() + " " + column.getType().asSerializableString());
        }
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("kind", "evolved");
        row.put("table", table.toString());
        row.put("version", version);
        row.put("columns", columns);
        row.put("primary_key", schema.primaryKeys());
        row.put("partition_key", Collections.emptyList());
        row.put("options", schema.options());
        row.put("comment", schema.comment());
        return row;
    }
}
