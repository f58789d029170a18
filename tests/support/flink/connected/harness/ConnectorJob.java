package harness;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.connector.base.source.hybrid.HybridSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.util.Collector;

/** Restores a source and returns all records that it reads to its end; or a sink of files, from which a savepoint is taken. */
public final class ConnectorJob {
    private ConnectorJob() {}

    /** Puts records on the board, as text. */
    static final class Collect implements FlatMapFunction<Object, String> {
        private final String run;

        Collect(String run) {
            this.run = run;
        }

        @Override
        public void flatMap(Object value, Collector<String> out) {
            Board.of(run).records.add(value.toString());
        }
    }

    /** Numbers, not too fast. */
    static final class Slow implements FlatMapFunction<Long, String> {
        private final String run;

        Slow(String run) {
            this.run = run;
        }

        @Override
        public void flatMap(Long value, Collector<String> out) throws Exception {
            Thread.sleep(1);
            Board.of(run).records.add(value);
            out.collect(value.toString());
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        try {
            return request.get("source").asText().equals("none")
                    ? write(cluster, request, run)
                    : read(cluster, request, run);
        } finally {
            Board.forget(run);
        }
    }

    private static Map<String, Object> read(Cluster cluster, JsonNode request, String run) throws Exception {
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(request.path("parallelism").asInt(2));
        Source<Object, ?, ?> source = source(request);
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "source", Types.GENERIC(Object.class))
                .uid(request.get("uid").asText())
                .flatMap(new Collect(run)).returns(Types.STRING).uid("seen");
        JobID job = cluster.submit(env, request.get("snapshot").asText(), true);
        cluster.awaitEnd(job);
        return Values.single("records", new ArrayList<>(Board.of(run).records));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Source<Object, ?, ?> source(JsonNode request) {
        Source found;
        switch (request.get("source").asText()) {
            case "numbers":
                found = new NumberSequenceSource(0, request.get("last").asLong());
                break;
            case "files":
                found = files(request);
                break;
            case "hybrid":
                found = HybridSource.builder((Source) files(request))
                        .addSource(new NumberSequenceSource(0, request.get("last").asLong())).build();
                break;
            default:
                Map<String, Long> ends = new HashMap<>();
                for (Iterator<Map.Entry<String, JsonNode>> it = request.get("ends").fields(); it.hasNext(); ) {
                    Map.Entry<String, JsonNode> e = it.next();
                    ends.put(e.getKey(), e.getValue().asLong());
                }
                found = new LogSource(ends);
        }
        return found;
    }

    private static FileSource<String> files(JsonNode request) {
        return FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(request.get("folder").asText())).build();
    }

    /** Write to files until a savepoint was taken, or until files of the savepoint that is restored are there. */
    private static Map<String, Object> write(Cluster cluster, JsonNode request, String run) throws Exception {
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(4);
        DataStream<String> rows = env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("numbers")
                .rebalance().flatMap(new Slow(run)).returns(Types.STRING).uid("slow");
        rows.sinkTo(FileSink.forRowFormat(new Path(request.get("folder").asText()), new SimpleStringEncoder<String>())
                // Not a folder for each hour: where one begins, there are twice as many files.
                .withBucketAssigner(new BasePathBucketAssigner<>()).withRollingPolicy(OnCheckpointRollingPolicy.build()).build()).uid("out");
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), true);
        Map<String, Object> out = new HashMap<>();
        try {
            cluster.await(job, "records", () -> Board.of(run).records.size() > 100);
            for (JsonNode file : request.get("awaited")) {
                java.nio.file.Path path = java.nio.file.Paths.get(file.asText());
                cluster.await(job, "file " + path, () -> java.nio.file.Files.exists(path));
            }
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            }
        } finally {
            cluster.cancel(job);
        }
        return out;
    }
}
