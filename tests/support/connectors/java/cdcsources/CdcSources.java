package writing;

import io.debezium.relational.Column;
import io.debezium.relational.Table;
import io.debezium.relational.TableId;
import io.debezium.relational.history.TableChanges.TableChange;
import io.debezium.relational.history.TableChanges.TableChangeType;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;

/**
 * States of Flink CDC's sources, by their own serializers: the MySQL source, and the common base with the offsets of another database. Classes
 * have moved and constructors have grown, so each release is found by reflection.
 */
public final class CdcSources {
    private final String release;
    private final boolean isMySql;
    private final String root;
    private final String splits;
    private final String states;

    private CdcSources(String database, String release) {
        this.release = release;
        isMySql = database.equals("mysql");
        root = release.startsWith("2.") || release.startsWith("3.0.") ? "com.ververica.cdc" : "org.apache.flink.cdc";
        splits = root + (isMySql ? ".connectors.mysql.source.split.MySql" : ".connectors.base.source.meta.split.");
        states = root + (isMySql ? ".connectors.mysql.source.assigners.state." : ".connectors.base.source.assigner.state.");
    }

    public static void main(String[] args) throws Exception {
        String[] database = args[0].split("-cdc-");
        new CdcSources(database[0], database[1]).print(database[0]);
    }

    private void print(String database) throws Exception {
        TableId orders = isMySql ? new TableId("shop", null, "orders") : new TableId("shop", "eu", "orders");
        Map<TableId, Object> schemas = Collections.singletonMap(orders, schema(orders));
        RowType key = RowType.of(new LogicalType[] {new BigIntType(false)}, new String[] {"id"});
        Object factory = isMySql ? null : factory(database);
        Object low = offset(factory, 4);
        Object high = offset(factory, 9);
        Object[] from = {100L};
        Object[] to = {200L};
        Object done = chunk(orders, 0, key, null, from, high, schemas);
        Object held = chunk(orders, 1, key, from, to, null, schemas);
        Object waiting = chunk(orders, 2, key, to, null, null, schemas);
        Object finished = isMySql
                ? make(splitClass("FinishedSnapshotSplitInfo"), orders, orders + ":0", null, from, high)
                : make(splitClass("FinishedSnapshotSplitInfo"), orders, orders + ":0", null, from, high, factory);
        String log = isMySql ? "binlog" : "stream";
        List<Object> chunks = Collections.singletonList(finished);
        String streamClass = splits + (isMySql ? "BinlogSplit" : "StreamSplit");
        Object stream = makeAny(streamClass, new Object[][] {
            {log + "-split", low, null, chunks, schemas, 1, true},
            {log + "-split", low, null, chunks, schemas, 1},
            {log + "-split", key, low, null, chunks, schemas},
        });
        boolean hasSuspended = hasConstructor(streamClass, 7);

        SimpleVersionedSerializer<Object> serializer = splitSerializer(factory);
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("split_id", orders + ":1");
        expected.put("table", orders.toString());
        expected.put("source", orders.toString());
        expected.put("start", from);
        expected.put("end", to);
        expected.put("stop", "[200]");
        expected.put("finished", false);
        print("split", serializer, held, expected);
        expected = new LinkedHashMap<>();
        expected.put("split_id", orders + ":0");
        expected.put("start", null);
        expected.put("stop", "[100]");
        expected.put("finished", true);
        expected.put("high_watermark", offsetOf(9));
        print("split", serializer, done, expected);
        expected = new LinkedHashMap<>();
        expected.put("split_id", log + "-split");
        expected.put("kind", log);
        expected.put("source", orders.toString());
        expected.put("starting_offset", offsetOf(4));
        expected.put("time_ms", isMySql ? 1700000777000L : 1700000777123L);
        expected.put("suspended", hasSuspended && !release.equals("2.2.0") ? true : null);
        expected.put("total_finished_split_size", release.startsWith("2.0.") ? null : 1);
        print("split", serializer, stream, expected);

        for (boolean assigned : new boolean[] {false, true}) {
            Object state = make(states + "HybridPendingSplitsState", snapshotState(orders, done, held, waiting, high, schemas), assigned);
            expected = new LinkedHashMap<>();
            expected.put("kind", "hybrid");
            expected.put(log + "_split_assigned", assigned);
            expected.put("already_processed_tables", Collections.singletonList(orders.toString()));
            expected.put("finished_offsets", Collections.singletonMap(orders + ":0", offsetOf(9)));
            expected.put("assigner_status", "INITIAL_ASSIGNING_FINISHED");
            expected.put("splits", Arrays.asList(
                    Arrays.asList(orders + ":2", "unassigned"),
                    Arrays.asList(orders + ":0", "finished"), Arrays.asList(orders + ":1", "assigned")));
            print("enumerator", enumeratorSerializer(serializer), state, expected);
        }
        expected = new LinkedHashMap<>();
        expected.put("kind", log);
        expected.put(log + "_split_assigned", true);
        expected.put("splits", new ArrayList<>());
        print("enumerator", enumeratorSerializer(serializer),
                make(states + (isMySql ? "BinlogPendingSplitsState" : "StreamPendingSplitsState"), true), expected);
    }

    private void print(String role, SimpleVersionedSerializer<Object> serializer, Object state, Map<String, Object> expected)
            throws Exception {
        Written.print(isMySql ? "mysql-cdc-source" : "incremental-cdc-source", release, role, serializer.getVersion(),
                serializer.serialize(state), expected);
    }

    private static TableChange schema(TableId id) {
        return new TableChange(TableChangeType.CREATE, Table.editor().tableId(id)
                .addColumns(Column.editor().name("id").type("BIGINT").jdbcType(-5).optional(false).position(1).create())
                .setPrimaryKeyNames("id").create());
    }

    /** A chunk of a table. */
    private Object chunk(TableId table, int number, RowType key, Object[] start, Object[] end, Object high,
            Map<TableId, Object> schemas) throws Exception {
        return make(splits + "SnapshotSplit", table, table + ":" + number, key, start, end, high, schemas);
    }

    /** A chunk as the enumerator lists it: without schemas in newer releases. */
    private Object listed(Object chunk) throws Exception {
        return exists(splits + "SchemalessSnapshotSplit")
                ? chunk.getClass().getMethod("toSchemalessSnapshotSplit").invoke(chunk)
                : chunk;
    }

    private Object snapshotState(TableId orders, Object done, Object held, Object waiting, Object high,
            Map<TableId, Object> schemas) throws Exception {
        List<TableId> processed = Collections.singletonList(orders);
        List<TableId> remaining = Collections.singletonList(new TableId(orders.catalog(), orders.schema(), "later"));
        List<Object> unassigned = Collections.singletonList(listed(waiting));
        Map<String, Object> assigned = new LinkedHashMap<>();
        assigned.put(orders + ":0", listed(done));
        assigned.put(orders + ":1", listed(held));
        Map<String, Object> offsets = Collections.singletonMap(orders + ":0", high);
        String statusClass = root + (isMySql ? ".connectors.mysql.source.assigners.AssignerStatus" : ".connectors.base.source.assigner.AssignerStatus");
        Object status = exists(statusClass)
                ? Class.forName(statusClass).getMethod("valueOf", String.class).invoke(null, "INITIAL_ASSIGNING_FINISHED")
                : null;
        Object splitting = exists(states + "ChunkSplitterState")
                ? Class.forName(states + "ChunkSplitterState").getField("NO_SPLITTING_TABLE_STATE").get(null)
                : null;
        return makeAny(states + "SnapshotPendingSplitsState", new Object[][] {
            {processed, unassigned, assigned, schemas, offsets, status, remaining, true, true,
                Collections.singletonMap(orders + ":0", 12L), splitting},
            {processed, unassigned, assigned, schemas, offsets, status, remaining, true, true, splitting},
            {processed, unassigned, assigned, schemas, offsets, status, remaining, true, true},
            {processed, unassigned, assigned, schemas, offsets, true, remaining, true, true},
            {processed, unassigned, assigned, offsets, status, remaining, true, true},
            {processed, unassigned, assigned, offsets, true, remaining, true, true},
            {processed, unassigned, assigned, offsets, true},
        });
    }

    private Map<String, String> offsetOf(long at) {
        Map<String, String> offset = new LinkedHashMap<>();
        if (isMySql) {
            offset.put("file", "binlog.000003");
            offset.put("pos", String.valueOf(at));
            offset.put("ts_sec", "1700000777");
        } else {
            offset.put("lsn", String.valueOf(at));
            offset.put("txId", "31");
            offset.put("ts_usec", "1700000777123456");
        }
        return offset;
    }

    private Object offset(Object factory, long at) throws Exception {
        if (isMySql) {
            return make(root + ".connectors.mysql.source.offset.BinlogOffset", offsetOf(at));
        }
        return factory.getClass().getMethod("newOffset", Map.class).invoke(factory, offsetOf(at));
    }

    private Object factory(String database) throws Exception {
        return make(root + ".connectors." + (database.equals("oracle")
                ? "oracle.source.meta.offset.RedoLogOffsetFactory"
                : "postgres.source.offset.PostgresOffsetFactory"));
    }

    private String splitClass(String name) {
        return splits.replaceFirst("MySql$", "") + name;
    }

    @SuppressWarnings("unchecked")
    private SimpleVersionedSerializer<Object> splitSerializer(Object factory) throws Exception {
        if (isMySql) {
            return (SimpleVersionedSerializer<Object>) Class.forName(splits + "SplitSerializer").getField("INSTANCE").get(null);
        }
        Object source = make(root + ".connectors.base.source.IncrementalSource", null, null, factory, null);
        return (SimpleVersionedSerializer<Object>) source.getClass().getMethod("getSplitSerializer").invoke(source);
    }

    @SuppressWarnings("unchecked")
    private SimpleVersionedSerializer<Object> enumeratorSerializer(Object serializer) throws Exception {
        return (SimpleVersionedSerializer<Object>) make(states + "PendingSplitsStateSerializer", serializer);
    }

    private static boolean exists(String name) {
        try {
            Class.forName(name);
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    private static boolean hasConstructor(String name, int count) throws Exception {
        return Arrays.stream(Class.forName(name).getConstructors()).anyMatch(c -> c.getParameterCount() == count);
    }

    private static Object make(String name, Object... args) throws Exception {
        return makeAny(name, new Object[][] {args});
    }

    /** An object of a class, by the first of some lists of arguments that one of its constructors takes. */
    private static Object makeAny(String name, Object[][] candidates) throws Exception {
        for (Object[] args : candidates) {
            for (Constructor<?> create : Class.forName(name).getDeclaredConstructors()) {
                if (takes(create.getParameterTypes(), args)) {
                    create.setAccessible(true);
                    return create.newInstance(args);
                }
            }
        }
        throw new IllegalStateException("no constructor of " + name);
    }

    private static boolean takes(Class<?>[] types, Object[] args) {
        if (types.length != args.length) {
            return false;
        }
        for (int i = 0; i < args.length; i++) {
            Class<?> type = types[i] == boolean.class ? Boolean.class : types[i] == int.class ? Integer.class : types[i];
            if (args[i] == null ? types[i].isPrimitive() : !type.isInstance(args[i])) {
                return false;
            }
        }
        return true;
    }
}
