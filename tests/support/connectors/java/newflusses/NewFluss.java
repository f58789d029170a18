package writing;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import org.apache.fluss.flink.lake.split.LakeSnapshotAndFlussLogSplit;
import org.apache.fluss.flink.lake.split.LakeSnapshotSplit;
import org.apache.fluss.flink.source.split.HybridSnapshotLogSplit;
import org.apache.fluss.flink.source.split.LogSplit;
import org.apache.fluss.flink.source.split.SourceSplitBase;
import org.apache.fluss.flink.source.split.SourceSplitSerializer;
import org.apache.fluss.flink.source.state.FlussSourceEnumeratorStateSerializer;
import org.apache.fluss.flink.source.state.SourceEnumeratorState;
import org.apache.fluss.lake.serializer.SimpleVersionedSerializer;
import org.apache.fluss.lake.source.LakeSource;
import org.apache.fluss.lake.source.LakeSplit;
import org.apache.fluss.lake.source.Planner;
import org.apache.fluss.lake.source.RecordReader;
import org.apache.fluss.metadata.TableBucket;
import org.apache.fluss.predicate.Predicate;

/** States of the source of Fluss 0.9, by its own serializers. Only the splits of the data lake are made up. */
public final class NewFluss {
    private static final String RELEASE = "0.9.1-incubating";
    private static final TableBucket PLAIN = new TableBucket(7, 2);
    private static final TableBucket PARTITIONED = new TableBucket(7, 31L, 0);

    /** A split of a data lake whose bytes are its bucket. */
    static final class File implements LakeSplit {
        private final int bucket;

        File(int bucket) {
            this.bucket = bucket;
        }

        @Override
        public int bucket() {
            return bucket;
        }

        @Override
        public List<String> partition() {
            return Collections.emptyList();
        }
    }

    static final class Files implements SimpleVersionedSerializer<LakeSplit> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(LakeSplit split) {
            return ByteBuffer.allocate(4).putInt(split.bucket()).array();
        }

        @Override
        public LakeSplit deserialize(int version, byte[] data) {
            return new File(ByteBuffer.wrap(data).getInt());
        }
    }

    static final class Lake implements LakeSource<LakeSplit> {
        @Override
        public void withProject(int[][] project) {}

        @Override
        public void withLimit(int limit) {}

        @Override
        public FilterPushDownResult withFilters(List<Predicate> predicates) {
            return FilterPushDownResult.of(Collections.emptyList(), predicates);
        }

        @Override
        public Planner<LakeSplit> createPlanner(PlannerContext context) {
            throw new UnsupportedOperationException();
        }

        @Override
        public RecordReader createRecordReader(ReaderContext<LakeSplit> context) {
            throw new UnsupportedOperationException();
        }

        @Override
        public SimpleVersionedSerializer<LakeSplit> getSplitSerializer() {
            return new Files();
        }
    }

    public static void main(String[] args) throws Exception {
        LogSplit bounded = new LogSplit(PARTITIONED, "day=Größe", 0, 90);
        HybridSnapshotLogSplit reading = new HybridSnapshotLogSplit(PARTITIONED, "day=1", 5, 17, false, 1000);
        List<LakeSplit> files = Arrays.asList(new File(2), new File(2));
        LakeSnapshotAndFlussLogSplit inLake = new LakeSnapshotAndFlussLogSplit(PLAIN, null, files, 800, -1 - Long.MAX_VALUE, 3, 1, false);
        LakeSnapshotAndFlussLogSplit inLog = new LakeSnapshotAndFlussLogSplit(PLAIN, null, null, 900, 990);
        LakeSnapshotSplit file = new LakeSnapshotSplit(new TableBucket(7, -1L, -1), "day=0", new File(-1), 4);
        print(bounded, "table 7 (day=Größe)", "0", "90", null);
        print(reading, "table 7 (day=1)", "snapshot 5, record 17", null, null);
        print(inLake, "table 7", "lake file 1, record 3", null, Arrays.asList("00000002", "00000002"));
        print(inLog, "table 7", "900", "990", null);
        print(file, "table 7 (day=0)", "lake file 4", null, Collections.singletonList("ffffffff"));

        print(Arrays.asList(inLake, file), "lease-1");
        print(null, "");
    }

    private static void print(SourceSplitBase split, String source, String position, String stop, List<String> files) throws Exception {
        SourceSplitSerializer splits = new SourceSplitSerializer(new Lake());
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("split_id", split.splitId());
        expected.put("source", source);
        expected.put("partition", split.getTableBucket().getBucket());
        expected.put("position", position);
        expected.put("stop", stop);
        expected.put("lake_files", files);
        Written.print("fluss-source", RELEASE, "split", splits.getVersion(), splits.serialize(split), expected);
    }

    private static void print(List<SourceSplitBase> remaining, String lease) throws Exception {
        FlussSourceEnumeratorStateSerializer states = new FlussSourceEnumeratorStateSerializer(new Lake());
        Map<String, Object> expected = new LinkedHashMap<>();
        List<Object> splits = new ArrayList<>();
        for (SourceSplitBase split : remaining == null ? Collections.<SourceSplitBase>emptyList() : remaining) {
            splits.add(Arrays.asList(split.splitId(), "unassigned"));
        }
        expected.put("splits", splits);
        expected.put("assigned_buckets", Arrays.asList("7-2", "7-p31-0"));
        expected.put("assigned_partitions", Collections.singletonMap("31", "day=1"));
        expected.put("lease_id", lease);
        SourceEnumeratorState state = new SourceEnumeratorState(new LinkedHashSet<>(Arrays.asList(PARTITIONED, PLAIN)),
                Collections.singletonMap(31L, "day=1"), remaining, lease);
        Written.print("fluss-source", RELEASE, "enumerator", states.getVersion(), states.serialize(state), expected);
    }
}
