package harness;

import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.connector.sink.Committer;
import org.apache.flink.api.connector.sink.GlobalCommitter;
import org.apache.flink.api.connector.sink.Sink;
import org.apache.flink.api.connector.sink.SinkWriter;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.io.SimpleVersionedSerialization;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.core.memory.DataOutputView;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.sink.filesystem.BucketWriter;
import org.apache.flink.streaming.api.functions.sink.filesystem.InProgressFileWriter;
import org.apache.flink.streaming.api.functions.sink.filesystem.InProgressFileWriter.PendingFileRecoverable;
import org.apache.flink.streaming.api.functions.sink.filesystem.RowWiseBucketWriter;

/**
 * Writes numbers to files of a folder. Committers make the files visible, and a global committer writes their names to a file per commit. It
 * does not look at what it has committed before. The state has the layout of Delta's sink for Flink 1.x.
 */
public final class GlobalJob {
    private static final int MAGIC = 0x1E765C80;
    private static volatile boolean held;

    private GlobalJob() {}

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        return CommitJob.run(cluster, request, new CommitJob.Table() {
            @Override
            public String commits() {
                return NumbersSink.COMMITS;
            }

            @Override
            public void write(DataStream<Long> numbers, String folder, String uid) {
                numbers.sinkTo(new NumbersSink(folder, UUID.randomUUID().toString())).uid(uid);
            }

            @Override
            public void hold(boolean held) {
                GlobalJob.held = held;
            }
        });
    }

    /** A complete file. */
    static final class Written implements Serializable {
        final String app;
        final long checkpoint;
        final String name;
        final long records;
        final long size;
        final PendingFileRecoverable file;

        Written(String app, long checkpoint, String name, long records, long size, PendingFileRecoverable file) {
            this.app = app;
            this.checkpoint = checkpoint;
            this.name = name;
            this.records = records;
            this.size = size;
            this.file = file;
        }

        void write(DataOutputView out) throws IOException {
            out.writeUTF(app);
            out.writeLong(checkpoint);
            out.writeInt(0);
            out.writeUTF(name);
            out.writeLong(records);
            out.writeLong(size);
            out.writeLong(1L);
            SimpleVersionedSerialization.writeVersionAndSerialize(files(), file, out);
        }

        static Written read(DataInputView in) throws IOException {
            String app = in.readUTF();
            long checkpoint = in.readLong();
            if (in.readInt() != 0) {
                throw new IOException("expected no partition");
            }
            String name = in.readUTF();
            long records = in.readLong();
            long size = in.readLong();
            in.readLong();
            return new Written(app, checkpoint, name, records, size,
                    SimpleVersionedSerialization.readVersionAndDeSerialize(files(), in));
        }

        private static SimpleVersionedSerializer<PendingFileRecoverable> files() throws IOException {
            return buckets().getProperties().getPendingFileRecoverableSerializer();
        }
    }

    private static BucketWriter<Long, String> buckets() throws IOException {
        return new RowWiseBucketWriter<>(
                FileSystem.getLocalFileSystem().createRecoverableWriter(), new SimpleStringEncoder<Long>());
    }

    /** Starts with a magic number, which both kinds of committables share. */
    private abstract static class Serializer<T> implements SimpleVersionedSerializer<T> {
        abstract void write(T value, DataOutputView out) throws IOException;

        abstract T read(DataInputView in) throws IOException;

        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(T value) throws IOException {
            DataOutputSerializer out = new DataOutputSerializer(256);
            out.writeInt(MAGIC);
            write(value, out);
            return out.getCopyOfBuffer();
        }

        @Override
        public T deserialize(int version, byte[] bytes) throws IOException {
            DataInputDeserializer in = new DataInputDeserializer(bytes);
            if (version != 1 || in.readInt() != MAGIC) {
                throw new IOException("expected version 1 and its magic number");
            }
            T value = read(in);
            if (in.available() > 0) {
                throw new IOException("bytes are left over");
            }
            return value;
        }
    }

    /** Of one file. */
    private static final class WrittenSerializer extends Serializer<Written> {
        @Override
        void write(Written value, DataOutputView out) throws IOException {
            value.write(out);
        }

        @Override
        Written read(DataInputView in) throws IOException {
            return Written.read(in);
        }
    }

    /** Of all files that the global committer commits together. */
    private static final class FilesSerializer extends Serializer<ArrayList<Written>> {
        @Override
        void write(ArrayList<Written> files, DataOutputView out) throws IOException {
            out.writeInt(files.size());
            for (Written file : files) {
                file.write(out);
            }
        }

        @Override
        ArrayList<Written> read(DataInputView in) throws IOException {
            int count = in.readInt();
            ArrayList<Written> files = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                files.add(Written.read(in));
            }
            return files;
        }
    }

    /** A file per checkpoint and subtask. */
    private static final class NumbersWriter implements SinkWriter<Long, Written, Void> {
        private final String folder;
        private final String app;
        private final int subtask;
        private InProgressFileWriter<Long, String> open;
        private String name;
        private long records;
        private long checkpoint;

        NumbersWriter(String folder, String app, int subtask) {
            this.folder = folder;
            this.app = app;
            this.subtask = subtask;
        }

        @Override
        public void write(Long number, Context context) throws IOException {
            if (open == null) {
                name = "part-" + subtask + "-" + UUID.randomUUID();
                records = 0;
                open = buckets().openNewInProgressFile("", new Path("file://" + folder, name), 0);
            }
            open.write(number, 0);
            records++;
        }

        @Override
        public List<Written> prepareCommit(boolean flush) throws IOException {
            checkpoint++;
            if (open == null) {
                return Collections.emptyList();
            }
            long size = open.getSize();
            Written written = new Written(app, checkpoint, name, records, size, open.closeForCommit());
            open = null;
            return Collections.singletonList(written);
        }

        @Override
        public void close() {
            if (open != null) {
                open.dispose();
            }
        }
    }

    /** Makes files visible. */
    private static final class FileCommitter implements Committer<Written> {
        @Override
        public List<Written> commit(List<Written> files) throws IOException {
            for (Written file : files) {
                buckets().recoverPendingFile(file.file).commitAfterRecovery();
            }
            return Collections.emptyList();
        }

        @Override
        public void close() {}
    }

    /** Writes the names of the files to a file per commit. */
    private static final class NameCommitter implements GlobalCommitter<Written, ArrayList<Written>> {
        private final String folder;

        NameCommitter(String folder) {
            this.folder = folder;
        }

        @Override
        public List<ArrayList<Written>> filterRecoveredCommittables(List<ArrayList<Written>> commits) {
            return commits;
        }

        @Override
        public ArrayList<Written> combine(List<Written> files) {
            return new ArrayList<>(files);
        }

        @Override
        public List<ArrayList<Written>> commit(List<ArrayList<Written>> commits) throws IOException {
            if (held) {
                return commits;
            }
            List<String> names = new ArrayList<>();
            for (List<Written> files : commits) {
                files.forEach(file -> names.add(file.name));
            }
            java.nio.file.Path all = Files.createDirectories(Paths.get(folder, NumbersSink.COMMITS));
            Files.write(all.resolve(UUID.randomUUID().toString()), names, StandardCharsets.UTF_8);
            return Collections.emptyList();
        }

        @Override
        public void endOfInput() {}

        @Override
        public void close() {}
    }

    /** The sink. */
    private static final class NumbersSink implements Sink<Long, Written, Void, ArrayList<Written>> {
        static final String COMMITS = "_commits";
        private final String folder;
        private final String app;

        NumbersSink(String folder, String app) {
            this.folder = folder;
            this.app = app;
        }

        @Override
        public SinkWriter<Long, Written, Void> createWriter(InitContext context, List<Void> states) {
            return new NumbersWriter(folder, app, context.getSubtaskId());
        }

        @Override
        public Optional<SimpleVersionedSerializer<Void>> getWriterStateSerializer() {
            return Optional.empty();
        }

        @Override
        public Optional<Committer<Written>> createCommitter() {
            return Optional.of(new FileCommitter());
        }

        @Override
        public Optional<GlobalCommitter<Written, ArrayList<Written>>> createGlobalCommitter() {
            return Optional.of(new NameCommitter(folder));
        }

        @Override
        public Optional<SimpleVersionedSerializer<Written>> getCommittableSerializer() {
            return Optional.of(new WrittenSerializer());
        }

        @Override
        public Optional<SimpleVersionedSerializer<ArrayList<Written>>> getGlobalCommittableSerializer() {
            return Optional.of(new FilesSerializer());
        }
    }
}
