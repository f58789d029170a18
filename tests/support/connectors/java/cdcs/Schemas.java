package writing;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.flink.cdc.common.event.TableId;
import org.apache.flink.cdc.common.schema.Column;
import org.apache.flink.cdc.common.schema.Schema;
import org.apache.flink.cdc.common.types.DataTypes;

/** States of the coordinator of schemas of CDC pipelines, as the coordinator of each release writes them. */
public final class Schemas {
    private static final String OPERATORS = "org.apache.flink.cdc.runtime.operators.schema.";

    public static void main(String[] args) throws Exception {
        String release = args[0].substring(args[0].indexOf('-') + 1);
        String[] coordinators = release.startsWith("3.5")
                ? new String[] {"regular.SchemaCoordinator", "distributed.SchemaCoordinator"}
                : new String[] {"coordinator.SchemaRegistry"};
        for (String coordinator : coordinators) {
            print(release, coordinator, tables(release), tables(release).headMap("b"));
        }
        print(release, coordinators[0], new TreeMap<>(), new TreeMap<>());
        System.exit(0);
    }

    private static Schema.Builder schema() {
        return Schema.newBuilder().physicalColumn("id", DataTypes.BIGINT().notNull(), "the key").primaryKey("id");
    }

    /** Schemas by table and version. The name of a table begins with the number of its parts. */
    private static SortedMap<String, SortedMap<Integer, Schema>> tables(String release) throws Exception {
        Schema.Builder all = schema()
                .physicalColumn("a", DataTypes.BOOLEAN()).physicalColumn("b", DataTypes.TINYINT())
                .physicalColumn("c", DataTypes.SMALLINT()).physicalColumn("d", DataTypes.INT())
                .physicalColumn("e", DataTypes.FLOAT()).physicalColumn("f", DataTypes.DOUBLE().notNull())
                .physicalColumn("g", DataTypes.DECIMAL(10, 2)).physicalColumn("h", DataTypes.CHAR(3))
                .physicalColumn("i", DataTypes.VARCHAR(20)).physicalColumn("j", DataTypes.STRING())
                .physicalColumn("k", DataTypes.BINARY(4)).physicalColumn("l", DataTypes.VARBINARY(5))
                .physicalColumn("m", DataTypes.BYTES()).physicalColumn("n", DataTypes.DATE())
                .physicalColumn("o", DataTypes.TIME(3)).physicalColumn("p", DataTypes.TIMESTAMP(6))
                .physicalColumn("q", DataTypes.TIMESTAMP_LTZ(3).notNull()).physicalColumn("r", DataTypes.TIMESTAMP_TZ(9))
                .physicalColumn("s", DataTypes.ARRAY(DataTypes.INT().notNull()))
                .physicalColumn("t", DataTypes.MAP(DataTypes.STRING(), DataTypes.BIGINT()))
                .physicalColumn("größe", DataTypes.ROW(
                        DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING(), "why")))
                .metadataColumn("op_ts", DataTypes.BIGINT(), "op_ts", "from the log")
                .partitionKey("n").option("bucket", "4").comment("all types");
        SortedMap<Integer, Schema> versions = new TreeMap<>();
        versions.put(4, schema().build());
        Schema.Builder next = schema().physicalColumn("name", DataTypes.STRING());
        if (!release.startsWith("3.1")) {
            next = (Schema.Builder) Schema.Builder.class
                    .getMethod("physicalColumn", String.class, org.apache.flink.cdc.common.types.DataType.class, String.class, String.class)
                    .invoke(next, "state", DataTypes.STRING(), null, "new");
        }
        versions.put(5, next.build());
        SortedMap<String, SortedMap<Integer, Schema>> tables = new TreeMap<>();
        tables.put("a.shop.orders", versions);
        tables.put("orders", new TreeMap<>(Collections.singletonMap(0, all.build())));
        tables.put("shop.users", new TreeMap<>(Collections.singletonMap(0, schema().build())));
        return tables;
    }

    private static void print(
            String release,
            String coordinator,
            SortedMap<String, SortedMap<Integer, Schema>> original,
            SortedMap<String, SortedMap<Integer, Schema>> evolved) throws Exception {
        ExecutorService executor = Executors.newSingleThreadExecutor();
        Class<?> type = Class.forName(OPERATORS + coordinator);
        Constructor<?> constructor = type.getConstructors()[0];
        for (Constructor<?> other : type.getConstructors()) {
            constructor = other.getParameterCount() > constructor.getParameterCount() ? other : constructor;
        }
        Object[] arguments = new Object[constructor.getParameterCount()];
        Object behavior = null;
        for (int i = 0; i < arguments.length; i++) {
            Class<?> parameter = constructor.getParameterTypes()[i];
            if (parameter == ExecutorService.class) {
                arguments[i] = executor;
            } else if (parameter == List.class) {
                arguments[i] = Collections.emptyList();
            } else if (parameter == String.class) {
                arguments[i] = "schemas";
            } else if (parameter.isEnum()) {
                behavior = arguments[i] = parameter.getEnumConstants()[1];
            }
        }
        Object registry = constructor.newInstance(arguments);
        Field field = field(type, "schemaManager");
        Class<?> manager = field.getType();
        boolean legacy = release.startsWith("3.1");
        if (legacy) {
            field.set(registry, manager.getConstructor(Map.class).newInstance(byId(original)));
        } else {
            field.set(registry, manager.getConstructor(Map.class, Map.class, behavior.getClass())
                    .newInstance(byId(original), byId(evolved), behavior));
        }
        CompletableFuture<byte[]> data = new CompletableFuture<>();
        if (release.startsWith("3.5")) {
            Method snapshot = type.getDeclaredMethod("snapshot", CompletableFuture.class);
            snapshot.setAccessible(true);
            snapshot.invoke(registry, data);
        } else {
            type.getMethod("checkpointCoordinator", long.class, CompletableFuture.class).invoke(registry, 1L, data);
        }
        List<Object> rows = new ArrayList<>();
        add(rows, "evolved", legacy ? original : evolved);
        add(rows, "original", original);
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("behavior", legacy ? null : behavior.toString());
        expected.put("schemas", rows);
        Written.print("cdc-schemas", release, "schemas", legacy ? 1 : 2, data.get(), expected);
    }

    private static Field field(Class<?> type, String name) throws Exception {
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            for (Field field : c.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        throw new NoSuchFieldException(name);
    }

    private static Map<TableId, SortedMap<Integer, Schema>> byId(SortedMap<String, SortedMap<Integer, Schema>> tables) {
        Map<TableId, SortedMap<Integer, Schema>> found = new LinkedHashMap<>();
        tables.forEach((name, versions) -> found.put(TableId.parse(name), versions));
        return found;
    }

    private static void add(List<Object> rows, String kind, SortedMap<String, SortedMap<Integer, Schema>> tables) {
        tables.forEach((name, versions) -> versions.forEach((version, schema) -> {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("kind", kind);
            row.put("table", name);
            row.put("version", version);
            List<String> columns = new ArrayList<>();
            for (Column column : schema.getColumns()) {
                columns.add(column.getName() + " " + column.getType().asSerializableString());
            }
            row.put("columns", columns);
            row.put("primary_key", schema.primaryKeys());
            row.put("partition_key", schema.partitionKeys());
            row.put("options", schema.options());
            row.put("comment", schema.comment());
            rows.add(row);
        }));
    }
}
