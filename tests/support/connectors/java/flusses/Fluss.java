package writing;

import com.alibaba.fluss.flink.source.split.HybridSnapshotLogSplit;
import com.alibaba.fluss.flink.source.split.LogSplit;
import com.alibaba.fluss.flink.source.split.SourceSplitBase;
import com.alibaba.fluss.flink.source.split.SourceSplitSerializer;
import com.alibaba.fluss.flink.source.state.FlussSourceEnumeratorStateSerializer;
import com.alibaba.fluss.flink.source.state.SourceEnumeratorState;
import com.alibaba.fluss.metadata.TableBucket;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;

/** States of Fluss's source, by its own serializers. */
public final class Fluss {
    private static final String RELEASE = "0.7.0";

    public static void main(String[] args) throws Exception {
        TableBucket plain = new TableBucket(7, 2);
        TableBucket partitioned = new TableBucket(7, 31L, 0);
        LogSplit log = new LogSplit(plain, null, 4711);
        LogSplit bounded = new LogSplit(partitioned, "day=Größe", 0, 90);
        LogSplit earliest = new LogSplit(plain, null, -2);
        HybridSnapshotLogSplit reading = new HybridSnapshotLogSplit(partitioned, "day=1", 5, 17, false, 1000);
        HybridSnapshotLogSplit finished = new HybridSnapshotLogSplit(plain, null, 5, 0, true, 1200);
        print(log, "table 7", "4711", null, null);
        print(bounded, "table 7 (day=Größe)", "0", "90", null);
        print(earliest, "table 7", null, null, "earliest");
        print(reading, "table 7 (day=1)", "snapshot 5, record 17", null, null);
        print(finished, "table 7", "1200", null, null);

        FlussSourceEnumeratorStateSerializer states = FlussSourceEnumeratorStateSerializer.INSTANCE;
        Map<Long, String> partitions = Collections.singletonMap(31L, "day=1");
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("splits", Collections.emptyList());
        expected.put("assigned_buckets", Arrays.asList("7-2", "7-p31-0"));
        expected.put("assigned_partitions", Collections.singletonMap("31", "day=1"));
        Written.print("fluss-source", RELEASE, "enumerator", states.getVersion(), states.serialize(new SourceEnumeratorState(
                new LinkedHashSet<>(Arrays.asList(partitioned, plain)), partitions)), expected);
    }

    private static void print(SourceSplitBase split, String source, String position, String stop, String marker)
            throws Exception {
        SourceSplitSerializer splits = SourceSplitSerializer.INSTANCE;
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("split_id", split.splitId());
        expected.put("source", source);
        expected.put("partition", split.getTableBucket().getBucket());
        expected.put("position", position);
        expected.put("stop", stop);
        expected.put("marker", marker);
        Written.print("fluss-source", RELEASE, "split", splits.getVersion(), splits.serialize(split), expected);
    }
}
