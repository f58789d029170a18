package writing;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryRowWriter;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.flink.source.FileStoreSourceSplit;
import org.apache.paimon.flink.source.FileStoreSourceSplitSerializer;
import org.apache.paimon.flink.source.PendingSplitsCheckpoint;
import org.apache.paimon.flink.source.PendingSplitsCheckpointSerializer;
import org.apache.paimon.table.source.DataSplit;

/** States of Paimon's source, by its own serializers. */
public final class Paimon {
    public static void main(String[] args) throws Exception {
        String release = args[0].substring("paimon-".length());
        FileStoreSourceSplitSerializer splits = new FileStoreSourceSplitSerializer();
        List<FileStoreSourceSplit> all = Arrays.asList(
                new FileStoreSourceSplit("split-1", data(7, 0), 1234), new FileStoreSourceSplit("split-2", data(8, 3), 0));
        for (int i = 0; i < 2; i++) {
            Map<String, Object> expected = new LinkedHashMap<>();
            expected.put("split_id", all.get(i).splitId());
            expected.put("snapshot_id", 7 + i);
            expected.put("bucket", i * 3);
            expected.put("source", "file:/warehouse/shop.db/orders/d=Größe/bucket-" + i * 3);
            expected.put("position", "record " + all.get(i).recordsToSkip());
            Written.print("paimon-source", release, "split", splits.getVersion(), splits.serialize(all.get(i)), expected);
        }
        PendingSplitsCheckpointSerializer states = new PendingSplitsCheckpointSerializer(splits);
        for (Long snapshot : new Long[] {9L, null}) {
            Map<String, Object> expected = new LinkedHashMap<>();
            expected.put("splits", Arrays.asList(
                    Arrays.asList("split-1", "unassigned"), Arrays.asList("split-2", "unassigned")));
            expected.put("snapshot_id", snapshot);
            Written.print("paimon-source", release, "enumerator", states.getVersion(),
                    states.serialize(new PendingSplitsCheckpoint(all, snapshot)), expected);
        }
    }

    private static DataSplit data(long snapshot, int bucket) {
        BinaryRow partition = new BinaryRow(1);
        BinaryRowWriter writer = new BinaryRowWriter(partition);
        writer.writeString(0, BinaryString.fromString("Größe"));
        writer.complete();
        return DataSplit.builder().withSnapshot(snapshot).withPartition(partition).withBucket(bucket)
                .withBucketPath("file:/warehouse/shop.db/orders/d=Größe/bucket-" + bucket)
                .withDataFiles(Collections.emptyList()).build();
    }
}
