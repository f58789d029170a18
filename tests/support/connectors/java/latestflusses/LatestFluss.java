package writing;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import org.apache.fluss.flink.source.split.HybridSnapshotLogSplit;
import org.apache.fluss.flink.source.split.KvBatchSplit;
import org.apache.fluss.flink.source.split.LogSplit;
import org.apache.fluss.flink.source.split.SourceSplitBase;
import org.apache.fluss.flink.source.split.SourceSplitSerializer;
import org.apache.fluss.flink.source.state.FlussSourceEnumeratorStateSerializer;
import org.apache.fluss.flink.source.state.SourceEnumeratorState;
import org.apache.fluss.metadata.TableBucket;

/** States of the source of Fluss after release 0.9, by serializers that are compiled from its sources. */
public final class LatestFluss {
    private static final TableBucket PLAIN = new TableBucket(7, 2);
    private static final TableBucket PARTITIONED = new TableBucket(7, 31L, 0);

    public static void main(String[] args) throws Exception {
        LogSplit log = new LogSplit(PLAIN, null, 4711);
        HybridSnapshotLogSplit reading = new HybridSnapshotLogSplit(PARTITIONED, "day=1", 5, 17, false, 1000, 2000, true);
        HybridSnapshotLogSplit finished = new HybridSnapshotLogSplit(PLAIN, null, 5, 0, true, 1200, Long.MIN_VALUE, false);
        KvBatchSplit rows = new KvBatchSplit(PLAIN, null);
        print(args[0], log, "4711", null, null);
        print(args[0], reading, "snapshot 5, record 17", "2000", true);
        print(args[0], finished, "1200", null, false);
        print(args[0], rows, null, null, null);
        print(args[0], true, Arrays.asList(log, reading));
        print(args[0], false, Collections.emptyList());
    }

    private static void print(String release, SourceSplitBase split, String position, String stop, Boolean batch) throws Exception {
        SourceSplitSerializer splits = new SourceSplitSerializer(null);
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("split_id", split.splitId());
        expected.put("partition", split.getTableBucket().getBucket());
        expected.put("position", position);
        expected.put("stop", stop);
        expected.put("is_batch", batch);
        Written.print("fluss-source", release, "split", splits.getVersion(), splits.serialize(split), expected);
    }

    private static void print(String release, boolean discovered, List<SourceSplitBase> unassigned) throws Exception {
        FlussSourceEnumeratorStateSerializer states = new FlussSourceEnumeratorStateSerializer(null);
        Map<String, Object> expected = new LinkedHashMap<>();
        List<Object> splits = new ArrayList<>();
        for (SourceSplitBase split : unassigned) {
            splits.add(Arrays.asList(split.splitId(), "unassigned"));
        }
        expected.put("splits", splits);
        expected.put("assigned_buckets", Arrays.asList("7-2", "7-p31-0"));
        expected.put("assigned_partitions", Collections.singletonMap("31", "day=1"));
        expected.put("lease_id", "lease-1");
        expected.put("initial_discovery_finished", discovered);
        SourceEnumeratorState state = new SourceEnumeratorState(new LinkedHashSet<>(Arrays.asList(PARTITIONED, PLAIN)),
                Collections.singletonMap(31L, "day=1"), null, "lease-1", discovered, unassigned);
        Written.print("fluss-source", release, "enumerator", states.getVersion(), states.serialize(state), expected);
    }
}
