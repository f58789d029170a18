package writing;

import io.delta.flink.sink.internal.committables.DeltaCommittable;
import io.delta.flink.sink.internal.committables.DeltaCommittableSerializer;
import io.delta.flink.sink.internal.committables.DeltaGlobalCommittable;
import io.delta.flink.sink.internal.committables.DeltaGlobalCommittableSerializer;
import io.delta.flink.sink.internal.writer.DeltaWriterBucketState;
import io.delta.flink.sink.internal.writer.DeltaWriterBucketStateSerializer;
import java.io.File;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.fs.RecoverableWriter.CommitRecoverable;
import org.apache.flink.core.fs.local.LocalFileSystem;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.streaming.api.functions.sink.filesystem.DeltaPendingFile;
import org.apache.flink.streaming.api.functions.sink.filesystem.InProgressFileWriter.PendingFileRecoverable;
import org.apache.flink.streaming.api.functions.sink.filesystem.OutputStreamBasedPartFileWriter.OutputStreamBasedPendingFileRecoverable;
import org.apache.flink.streaming.api.functions.sink.filesystem.OutputStreamBasedPartFileWriter.OutputStreamBasedPendingFileRecoverableSerializer;

/** States of Delta's sink for Flink 1.x, by its own serializers. */
public final class Delta {
    private static final String APP = "8f4c7f0e-0000-4c3a-9f00-5a6f3a1b2c3d";

    public static void main(String[] args) throws Exception {
        DeltaWriterBucketStateSerializer writers = new DeltaWriterBucketStateSerializer();
        Map<String, Object> bucket = new HashMap<>();
        bucket.put("bucket_id", "day=1/größe=2");
        bucket.put("bucket_path", "s3://lake/orders/day=1/größe=2");
        bucket.put("app_id", APP);
        Written.print("delta-sink", args[0], "writer", writers.getVersion(),
                writers.serialize(new DeltaWriterBucketState("day=1/größe=2",
                        new Path("s3://lake/orders/day=1/größe=2"), APP)), bucket);

        DeltaCommittableSerializer committables = new DeltaCommittableSerializer(files());
        List<DeltaCommittable> both = new ArrayList<>();
        List<Object> expected = new ArrayList<>();
        for (boolean parted : new boolean[] {true, false}) {
            LinkedHashMap<String, String> partition = new LinkedHashMap<>();
            if (parted) {
                partition.put("day", "1");
                partition.put("größe", "");
            }
            Map<String, Object> file = new HashMap<>();
            file.put("target_file", "/lake/part-0.snappy.parquet");
            file.put("temp_file", "/lake/.part-0.inprogress");
            file.put("offset", 421L);
            file.put("path", parted ? "/lake/part-0.snappy.parquet" : null);
            file.put("size", 421L);
            file.put("recoverable", null);
            Map<String, Object> seen = new HashMap<>();
            seen.put("app_id", APP);
            seen.put("checkpoint_id", 12L);
            seen.put("partition", partition);
            seen.put("file_name", "part-0.snappy.parquet");
            seen.put("record_count", 3L);
            seen.put("size_bytes", 421L);
            seen.put("last_update_ms", 1_767_225_600_123L);
            seen.put("pending_file", file);
            Path path = parted ? new Path("/lake/part-0.snappy.parquet") : null;
            PendingFileRecoverable pending = new OutputStreamBasedPendingFileRecoverable(recoverable(), path, 421L);
            DeltaPendingFile made = new DeltaPendingFile(
                    partition, "part-0.snappy.parquet", pending, 3L, 421L, 1_767_225_600_123L);
            both.add(new DeltaCommittable(made, APP, 12L));
            expected.add(seen);
            Written.print("delta-sink", args[0], "committable", committables.getVersion(),
                    committables.serialize(both.get(both.size() - 1)), seen);
        }
        DeltaGlobalCommittableSerializer globals = new DeltaGlobalCommittableSerializer(files());
        Written.print("delta-sink", args[0], "global", globals.getVersion(),
                globals.serialize(new DeltaGlobalCommittable(both)), expected);
    }

    private static CommitRecoverable recoverable() throws Exception {
        Constructor<?> local = open(Class.forName("org.apache.flink.core.fs.local.LocalRecoverable"));
        return (CommitRecoverable) local.newInstance(
                new File("/lake/part-0.snappy.parquet"), new File("/lake/.part-0.inprogress"), 421L);
    }

    @SuppressWarnings("unchecked")
    private static SimpleVersionedSerializer<PendingFileRecoverable> files() throws Exception {
        return (SimpleVersionedSerializer<PendingFileRecoverable>)
                open(OutputStreamBasedPendingFileRecoverableSerializer.class).newInstance(
                        LocalFileSystem.getSharedInstance().createRecoverableWriter().getCommitRecoverableSerializer());
    }

    private static Constructor<?> open(Class<?> type) {
        Constructor<?> constructor = type.getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        return constructor;
    }
}
