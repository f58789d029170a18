package writing;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.iceberg.BaseCombinedScanTask;
import org.apache.iceberg.BaseFileScanTask;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileMetadata;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.ResidualEvaluator;
import org.apache.iceberg.flink.source.enumerator.IcebergEnumeratorState;
import org.apache.iceberg.flink.source.enumerator.IcebergEnumeratorStateSerializer;
import org.apache.iceberg.flink.source.split.IcebergSourceSplit;
import org.apache.iceberg.flink.source.split.IcebergSourceSplitSerializer;
import org.apache.iceberg.flink.source.split.IcebergSourceSplitState;
import org.apache.iceberg.flink.source.split.IcebergSourceSplitStatus;
import org.apache.iceberg.types.Types;

/** States of Iceberg's source, by its own serializers. */
public final class Iceberg {
    private static final PartitionSpec SPEC = PartitionSpec.unpartitioned();

    public static void main(String[] args) throws Exception {
        String release = args[0].replace("iceberg-flink-", "");
        SimpleVersionedSerializer<IcebergSourceSplit> splits = new IcebergSourceSplitSerializer(true);
        IcebergSourceSplit first = IcebergSourceSplit.fromCombinedScanTask(
                new BaseCombinedScanTask(task("/warehouse/Größe-1.parquet", 0), task("/warehouse/2.parquet", 1)), 1, 250);
        IcebergSourceSplit second = IcebergSourceSplit.fromCombinedScanTask(new BaseCombinedScanTask(task("/warehouse/3.parquet", 0)));
        Object[][] places = {{"/warehouse/2.parquet", "file 1, record 250", "file 2", 1}, {"/warehouse/3.parquet", "file 0, record 0", "file 1", 0}};
        IcebergSourceSplit[] all = {first, second};
        for (int i = 0; i < all.length; i++) {
            Map<String, Object> expected = new LinkedHashMap<>();
            expected.put("source", places[i][0]);
            expected.put("position", places[i][1]);
            expected.put("stop", places[i][2]);
            expected.put("file_offset", all[i].fileOffset());
            expected.put("record_offset", all[i].recordOffset());
            Written.print("iceberg-source", release, "split", splits.getVersion(), splits.serialize(all[i]), expected);
        }
        Class<?> position = Class.forName("org.apache.iceberg.flink.source.enumerator.IcebergEnumeratorPosition");
        Method of = position.getDeclaredMethod("of", long.class, Long.class);
        of.setAccessible(true);
        Constructor<IcebergEnumeratorState> create =
                IcebergEnumeratorState.class.getConstructor(position, Collection.class, int[].class);
        IcebergEnumeratorStateSerializer states = new IcebergEnumeratorStateSerializer(true);
        IcebergEnumeratorState state = create.newInstance(
                of.invoke(null, 123456789012345L, 1700000000000L),
                Arrays.asList(new IcebergSourceSplitState(first, IcebergSourceSplitStatus.UNASSIGNED),
                        new IcebergSourceSplitState(second, IcebergSourceSplitStatus.ASSIGNED)),
                new int[] {3, 1, 4});
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("statuses", Arrays.asList("unassigned", "assigned"));
        expected.put("snapshot_id", 123456789012345L);
        expected.put("snapshot_timestamp_ms", 1700000000000L);
        // Version 1 has no such numbers. The serializer still writes it, for the connector's tests.
        Method version1 = IcebergEnumeratorStateSerializer.class.getDeclaredMethod("serializeV1", IcebergEnumeratorState.class);
        version1.setAccessible(true);
        Written.print("iceberg-source", release, "enumerator", 1, (byte[]) version1.invoke(states, state), expected);
        expected.put("enumeration_split_counts", new int[] {3, 1, 4});
        Written.print("iceberg-source", release, "enumerator", states.getVersion(), states.serialize(state), expected);
    }

    private static FileScanTask task(String path, int deletes) {
        Schema schema = new Schema(Types.NestedField.required(1, "id", Types.LongType.get()));
        DeleteFile[] files = new DeleteFile[deletes];
        for (int i = 0; i < deletes; i++) {
            files[i] = FileMetadata.deleteFileBuilder(SPEC).ofPositionDeletes().withPath("/warehouse/d.parquet")
                    .withFileSizeInBytes(10).withRecordCount(1).build();
        }
        return new BaseFileScanTask(
                DataFiles.builder(SPEC).withPath(path).withFileSizeInBytes(1000).withRecordCount(500).build(), files,
                SchemaParser.toJson(schema), PartitionSpecParser.toJson(SPEC), ResidualEvaluator.unpartitioned(Expressions.alwaysTrue()));
    }
}
