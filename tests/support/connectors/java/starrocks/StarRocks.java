package writing;

import com.starrocks.connector.flink.table.sink.ExactlyOnceLabelGeneratorSnapshot;
import com.starrocks.connector.flink.table.sink.StarRocksVersionedSerializer;
import com.starrocks.connector.flink.table.sink.StarrocksSnapshotState;
import com.starrocks.connector.flink.table.sink.v2.StarRocksCommittable;
import com.starrocks.connector.flink.table.sink.v2.StarRocksCommittableSerializer;
import com.starrocks.connector.flink.table.sink.v2.StarRocksWriterState;
import com.starrocks.connector.flink.table.sink.v2.StarRocksWriterStateSerializer;
import com.starrocks.connector.flink.tools.JsonWrapper;
import com.starrocks.data.load.stream.StreamLoadSnapshot;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** States of both StarRocks sinks, by their own serializers. */
public final class StarRocks {
    private static final String RELEASE = "1.2.10_flink-1.19";
    private static final long STARTED = 1_767_225_600_123L;

    public static void main(String[] args) throws Exception {
        StarRocksCommittableSerializer committables = new StarRocksCommittableSerializer();
        StarRocksWriterStateSerializer writers = new StarRocksWriterStateSerializer();
        StarRocksVersionedSerializer legacy = new StarRocksVersionedSerializer(new JsonWrapper());

        Written.print("starrocks-sink", RELEASE, "committable", committables.getVersion(),
                committables.serialize(new StarRocksCommittable(snapshot("1", "orders", "Größe \"x\", {7:"))),
                shown("1", "orders", "Größe \"x\", {7:"));
        Written.print("starrocks-sink", RELEASE, "committable", committables.getVersion(),
                committables.serialize(new StarRocksCommittable(snapshot("2"))), shown("2"));

        List<ExactlyOnceLabelGeneratorSnapshot> labels =
                List.of(new ExactlyOnceLabelGeneratorSnapshot(7, "shop", "orders", "to-sr", 4, 2, 19));
        Map<String, Object> label = new LinkedHashMap<>();
        label.put("checkpointId", 7);
        label.put("db", "shop");
        label.put("table", "orders");
        label.put("labelPrefix", "to-sr");
        label.put("numberOfSubtasks", 4);
        label.put("subTaskIndex", 2);
        label.put("nextId", 19);
        Written.print("starrocks-sink", RELEASE, "writer", writers.getVersion(),
                writers.serialize(new StarRocksWriterState(labels)), List.of(label));

        Map<Long, List<StreamLoadSnapshot>> data = new TreeMap<>();
        data.put(6L, List.of(snapshot("1", "orders"), snapshot("2", "lines")));
        data.put(7L, List.of(snapshot("3")));
        Map<String, Object> of = new LinkedHashMap<>();
        of.put("6", List.of(shown("1", "orders"), shown("2", "lines")));
        of.put("7", List.of(shown("3")));
        Written.print("starrocks-sink-function", RELEASE, "transaction", legacy.getVersion(),
                legacy.serialize(StarrocksSnapshotState.of(data, labels)), Map.of("data", of, "labels", List.of(label)));
        Written.print("starrocks-sink-function", RELEASE, "transaction", legacy.getVersion(),
                legacy.serialize(StarrocksSnapshotState.of(new TreeMap<>(), null)),
                Map.of("data", Map.of(), "labels", List.of()));
    }

    private static StreamLoadSnapshot snapshot(String id, String... tables) {
        StreamLoadSnapshot snapshot = new StreamLoadSnapshot();
        snapshot.setId(id);
        snapshot.setTimestamp(STARTED);
        List<StreamLoadSnapshot.Transaction> transactions = new ArrayList<>();
        for (String table : tables) {
            transactions.add(new StreamLoadSnapshot.Transaction("shop", table, "label-" + table));
        }
        snapshot.setTransactions(transactions);
        return snapshot;
    }

    private static Map<String, Object> shown(String id, String... tables) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("id", id);
        shown.put("timestamp", STARTED);
        List<Object> transactions = new ArrayList<>();
        for (String table : tables) {
            transactions.add(Map.of("database", "shop", "table", table, "label", "label-" + table, "finish", false));
        }
        shown.put("transactions", transactions);
        return shown;
    }
}
