package writing;

import io.delta.flink.sink.DeltaCommittable;
import io.delta.flink.sink.WriterResultContext;
import io.delta.kernel.data.Row;
import io.delta.kernel.defaults.internal.json.JsonUtils;
import io.delta.kernel.internal.actions.SingleAction;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** Committables of Delta's sink for Flink 2, by its own serializer. */
public final class KernelDelta {
    private static final ObjectMapper JSON = new ObjectMapper();

    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        Constructor<?> made = Class.forName("io.delta.flink.sink.DeltaCommittable$Serializer").getDeclaredConstructor();
        made.setAccessible(true);
        SimpleVersionedSerializer<DeltaCommittable> serializer =
                (SimpleVersionedSerializer<DeltaCommittable>) made.newInstance();
        for (int files : new int[] {0, 1, 9}) {
            List<Row> actions = new ArrayList<>();
            List<Object> shown = new ArrayList<>();
            for (int i = 0; i < files; i++) {
                // Data of a Java stream is cut into blocks of 1,024 bytes.
                String text = "{\"add\":{\"path\":\"größe=" + i + "/" + "x".repeat(i * 100) + ".parquet\",\"partitionValues\":{\"größe\":\""
                        + i + "\"},\"size\":" + (100 + i) + ",\"modificationTime\":1767225600123,\"dataChange\":true}}";
                Row row = JsonUtils.rowFromJson(text, SingleAction.FULL_SCHEMA);
                actions.add(row);
                shown.add(JSON.readValue(JsonUtils.rowToJson(row), Map.class));
            }
            Map<String, Object> seen = new LinkedHashMap<>();
            seen.put("job_id", "a1b2");
            seen.put("operator_id", "c3d4");
            seen.put("checkpoint_id", 12L);
            seen.put("low_watermark", files == 0 ? Long.MAX_VALUE : 5L);
            seen.put("high_watermark", files == 0 ? -1L : 7L);
            seen.put("actions", shown);
            WriterResultContext context = files == 0 ? new WriterResultContext() : new WriterResultContext(5L, 7L);
            Written.print("delta-kernel-sink", args[0], "committable", serializer.getVersion(),
                    serializer.serialize(new DeltaCommittable("a1b2", "c3d4", 12L, actions, context)), seen);
        }
    }
}
