package harness;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.streaming.runtime.operators.CheckpointCommitter;
import org.apache.flink.streaming.runtime.operators.GenericWriteAheadSink;

/**
 * A job whose sinks keep files in state: a write-ahead sink, and two file sinks, one of which ends its parts at checkpoints. Each writes all
 * numbers. While {@code held}, the write-ahead sink sends nothing, so that more and more of its files are pending.
 */
public final class WriteAheadJob {
    private static final Map<String, JobID> RUNNING = new ConcurrentHashMap<>();
    private static volatile boolean held;

    private WriteAheadJob() {}

    /** Has a file for each checkpoint that a subtask has sent. */
    static final class Committed extends CheckpointCommitter {
        private final String folder;

        Committed(String folder) {
            this.folder = folder;
        }

        @Override
        public void open() {}

        @Override
        public void close() {}

        @Override
        public void createResource() throws Exception {
            Files.createDirectories(Paths.get(folder));
        }

        @Override
        public void commitCheckpoint(int subtask, long checkpoint) throws Exception {
            Files.createFile(file(subtask, checkpoint));
        }

        @Override
        public boolean isCheckpointCommitted(int subtask, long checkpoint) {
            return Files.exists(file(subtask, checkpoint));
        }

        private Path file(int subtask, long checkpoint) {
            return Paths.get(folder, subtask + "-" + checkpoint);
        }
    }

    /** Writes the numbers of each checkpoint to a file. */
    static final class Numbers extends GenericWriteAheadSink<Long> {
        private final String folder;

        Numbers(String folder) throws Exception {
            super(new Committed(folder + "/committed"), LongSerializer.INSTANCE, "ahead");
            this.folder = folder;
        }

        @Override
        protected boolean sendValues(Iterable<Long> values, long checkpoint, long timestamp) throws Exception {
            if (held) {
                return false;
            }
            List<String> lines = new ArrayList<>();
            values.forEach(value -> lines.add(value.toString()));
            String name = lines.get(0) + ".txt";
            Path draft = Paths.get(folder, "." + name);
            Files.write(draft, lines);
            Files.move(draft, Paths.get(folder, name), StandardCopyOption.ATOMIC_MOVE);
            return true;
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        switch (request.get("action").asText()) {
            case "start":
                return Values.single("job", start(cluster, request));
            case "hold":
                held = request.get("held").asBoolean();
                return Values.single("held", held);
            case "checkpoint":
                return Values.single("path", cluster.checkpoint(RUNNING.get(request.get("job").asText())));
            case "savepoint":
                return Values.single("path", cluster.savepoint(
                        RUNNING.get(request.get("job").asText()), request.get("folder").asText(), "CANONICAL"));
            case "stop":
                cluster.cancel(RUNNING.remove(request.get("job").asText()));
                return Values.single("stopped", true);
            default:
                throw new IllegalArgumentException("no action " + request);
        }
    }

    private static String start(Cluster cluster, JsonNode request) throws Exception {
        String folder = request.get("folder").asText();
        for (String name : new String[] {"ahead", "open", "rolled"}) {
            Files.createDirectories(Paths.get(folder, name));
        }
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        env.setMaxParallelism(16);
        DataStream<Long> numbers = env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("sequence")
                .map(new FollowJob.Slow()).returns(Types.LONG).setParallelism(1).uid("slow").rebalance();
        numbers.transform("ahead", Types.LONG, new Numbers(folder + "/ahead")).uid("ahead");
        numbers.sinkTo(files(folder + "/open", false)).uid("open");
        numbers.sinkTo(files(folder + "/rolled", true)).uid("rolled");
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        RUNNING.put(job.toString(), job);
        cluster.awaitRunning(job);
        return job.toString();
    }

    static FileSink<Long> files(String folder, boolean rolled) throws IOException {
        FileSink.DefaultRowFormatBuilder<Long> sink = FileSink.<Long>forRowFormat(
                        new org.apache.flink.core.fs.Path("file://" + folder), new SimpleStringEncoder<Long>())
                .withBucketAssigner(new BasePathBucketAssigner<>());
        return rolled ? sink.withRollingPolicy(OnCheckpointRollingPolicy.build()).build() : sink.build();
    }
}
