package writing;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryRowWriter;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.index.DeletionVectorMeta;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileSource;
import org.apache.paimon.manifest.ManifestCommittable;
import org.apache.paimon.manifest.ManifestCommittableSerializer;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.CommitMessageSerializer;

/** Commits of Paimon's sink, by its own serializers. */
public final class PaimonCommits {
    public static void main(String[] args) throws Exception {
        String release = args[0].replace("paimon-", "");
        write(release, 7, 1_800_000_000_000L, Map.of("größe", "XL"), List.of(full(), empty()));
        write(release, Long.MAX_VALUE, null, Map.of(), List.of());
    }

    private static void write(
            String release, long identifier, Long watermark, Map<String, String> properties, List<CommitMessage> messages)
            throws Exception {
        ManifestCommittable committable = new ManifestCommittable(identifier, watermark, messages);
        properties.forEach(committable::addProperty);
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("identifier", identifier);
        expected.put("watermark", watermark);
        expected.put("properties", properties);
        expected.put("message_version", new CommitMessageSerializer().getVersion());
        List<Object> shown = new ArrayList<>();
        if (!messages.isEmpty()) {
            shown.add(shown());
            Map<String, Object> nothing = new LinkedHashMap<>();
            nothing.put("bucket", 3);
            nothing.put("total_buckets", null);
            nothing.put("files", Map.of());
            shown.add(nothing);
        }
        expected.put("messages", shown);
        ManifestCommittableSerializer serializer = new ManifestCommittableSerializer();
        Written.print(
                "paimon-sink", release, "commit", serializer.getVersion(), serializer.serialize(committable), expected);
    }

    private static CommitMessage full() throws Exception {
        return new CommitMessageImpl(partition(), 2, 4,
                new DataIncrement(files("new-1", "new-2"), files("deleted"), files("changelog"), indexes("index-new"),
                        indexes("index-deleted")),
                new CompactIncrement(files("before"), files("after"), files("compacted"), indexes("index-after"),
                        indexes("index-before")));
    }

    private static Map<String, Object> shown() {
        Map<String, Object> files = new LinkedHashMap<>();
        files.put("new_files", List.of(file("new-1"), file("new-2")));
        files.put("deleted_files", List.of(file("deleted")));
        files.put("changelog_files", List.of(file("changelog")));
        files.put("new_index_files", List.of(index("index-new")));
        files.put("deleted_index_files", List.of(index("index-deleted")));
        files.put("compact_before", List.of(file("before")));
        files.put("compact_after", List.of(file("after")));
        files.put("compact_changelog_files", List.of(file("compacted")));
        files.put("compact_new_index_files", List.of(index("index-after")));
        files.put("compact_deleted_index_files", List.of(index("index-before")));
        Map<String, Object> message = new LinkedHashMap<>();
        message.put("bucket", 2);
        message.put("total_buckets", 4);
        message.put("files", files);
        return message;
    }

    private static CommitMessage empty() {
        return new CommitMessageImpl(
                partition(), 3, null, DataIncrement.emptyIncrement(), CompactIncrement.emptyIncrement());
    }

    private static BinaryRow partition() {
        BinaryRow partition = new BinaryRow(1);
        BinaryRowWriter writer = new BinaryRowWriter(partition);
        writer.writeString(0, BinaryString.fromString("Größe"));
        writer.complete();
        return partition;
    }

    /** Since 2.1, a last parameter may have the sequence numbers of columns. */
    private static List<DataFileMeta> files(String... names) throws Exception {
        Method create = Arrays.stream(DataFileMeta.class.getMethods())
                .filter(m -> m.getName().equals("create") && List.of(m.getParameterTypes()).contains(Timestamp.class))
                .findFirst().orElseThrow();
        List<DataFileMeta> files = new ArrayList<>();
        for (String name : names) {
            Object[] values = {
                name + ".parquet", 1000L + name.length(), (long) name.length(), DataFileMeta.EMPTY_MIN_KEY,
                DataFileMeta.EMPTY_MAX_KEY, SimpleStats.EMPTY_STATS, SimpleStats.EMPTY_STATS, 1L, 2L, 3L, 0, List.of("extra"),
                Timestamp.fromEpochMillis(1_700_000_000_000L), 5L, null, FileSource.APPEND, List.of("n"),
                "file:/elsewhere/" + name, 100L, List.of("n", "d"),
            };
            files.add((DataFileMeta) create.invoke(null, Arrays.copyOf(values, create.getParameterCount())));
        }
        return files;
    }

    private static Map<String, Object> file(String name) {
        return named(name + ".parquet", 1000 + name.length(), (long) name.length());
    }

    private static List<IndexFileMeta> indexes(String name) {
        LinkedHashMap<String, DeletionVectorMeta> vectors = null;
        return List.of(new IndexFileMeta("HASH", name, name.length(), 9, vectors, "file:/elsewhere/" + name));
    }

    private static Map<String, Object> index(String name) {
        return named(name, name.length(), null);
    }

    private static Map<String, Object> named(String name, long size, Long rows) {
        Map<String, Object> file = new LinkedHashMap<>();
        file.put("name", name);
        file.put("size_bytes", size);
        file.put("rows", rows);
        return file;
    }
}
