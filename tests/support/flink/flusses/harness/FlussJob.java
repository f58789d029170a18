package harness;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.fluss.flink.sink.state.WriterState;
import org.apache.fluss.flink.sink.state.WriterStateSerializer;
import org.apache.fluss.metadata.TableBucket;

/** Keeps offsets of Fluss's sink by its own serializer: by key, and in the union state that the sink keeps. */
public final class FlussJob {
    private FlussJob() {}

    static WriterState offsets(long n) {
        Map<TableBucket, Long> offsets = new LinkedHashMap<>();
        for (int bucket = 0; bucket < n % 3; bucket++) {
            offsets.put(bucket == 1 ? new TableBucket(7, 30 + n, bucket) : new TableBucket(7, bucket), 1000 * n + bucket);
        }
        return new WriterState(offsets);
    }

    static Map<String, Object> text(WriterState state) {
        Map<String, Object> found = new TreeMap<>();
        state.getBucketOffsets().forEach((bucket, offset) -> found.put(
                bucket.getTableId() + (bucket.getPartitionId() == null ? "" : "-p" + bucket.getPartitionId()) + "-" + bucket.getBucket(),
                offset));
        return found;
    }

    static final class Keeper extends KeyedNumbers.Keeper implements CheckpointedFunction {
        private transient ValueState<WriterState> offsets;
        private transient ListState<WriterState> undo;
        private transient List<Object> restored;

        Keeper(String run, boolean write) {
            super(run, write);
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            undo = context.getOperatorStateStore().getUnionListState(
                    new ListStateDescriptor<>("undo_recovery_state", new WriterStateSerializer()));
            offsets = context.getKeyedStateStore().getState(new ValueStateDescriptor<>("offsets", new WriterStateSerializer()));
            restored = new ArrayList<>();
            for (WriterState state : undo.get()) {
                restored.add(text(state));
            }
            undo.clear();
            undo.add(offsets(5));
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @Override
        void write(String key, long n) throws Exception {
            offsets.update(offsets(n));
        }

        @Override
        Map<String, Object> read() throws Exception {
            Map<String, Object> values = new LinkedHashMap<>();
            values.put("offsets", text(offsets.value()));
            values.put("undo", restored);
            return values;
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        return KeyedNumbers.run(cluster, request, 8, Keeper::new);
    }
}
