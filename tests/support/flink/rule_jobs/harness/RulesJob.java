package harness;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.StatefulSinkWriter;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.api.connector.sink2.SupportsWriterState;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A function whose union state grows at each restore, a sink whose serializers are the job's, and results that are collected, whose operator
 * has a coordinator, and another id in each run.
 */
public final class RulesJob {
    private RulesJob() {}

    /** Adds all that it restores to what it keeps. */
    static final class Growing extends RichMapFunction<Long, Long> implements CheckpointedFunction {
        private transient ListState<Long> union;
        private final List<Long> kept = new ArrayList<>();

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            union = context.getOperatorStateStore().getUnionListState(new ListStateDescriptor<>("all", Types.LONG));
            if (context.isRestored()) {
                union.get().forEach(kept::add);
            } else {
                kept.add(10L + getRuntimeContext().getTaskInfo().getIndexOfThisSubtask());
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            union.update(kept);
        }

        @Override
        public Long map(Long n) throws Exception {
            Thread.sleep(2);
            return n;
        }
    }

    /** Texts of version 7. */
    static final class Texts implements SimpleVersionedSerializer<String> {
        @Override
        public int getVersion() {
            return 7;
        }

        @Override
        public byte[] serialize(String text) {
            return text.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String deserialize(int version, byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }

    /** Keeps a text, and commits one for each checkpoint. */
    static final class Writer implements StatefulSinkWriter<Long, String>, CommittingSinkWriter<Long, String> {
        @Override
        public void write(Long n, Context context) {}

        @Override
        public void flush(boolean endOfInput) {}

        @Override
        public Collection<String> prepareCommit() {
            return Collections.singletonList("a committable");
        }

        @Override
        public List<String> snapshotState(long checkpointId) {
            return Collections.singletonList("a writer");
        }

        @Override
        public void close() {}
    }

    /** The sink of the job. */
    static final class OwnSink implements Sink<Long>, SupportsWriterState<Long, String>, SupportsCommitter<String> {
        @Override
        public Writer createWriter(WriterInitContext context) {
            return new Writer();
        }

        @Override
        public StatefulSinkWriter<Long, String> restoreWriter(WriterInitContext context, Collection<String> states) {
            return new Writer();
        }

        @Override
        public SimpleVersionedSerializer<String> getWriterStateSerializer() {
            return new Texts();
        }

        @Override
        public Committer<String> createCommitter(CommitterInitContext context) {
            return new Committer<String>() {
                @Override
                public void commit(Collection<CommitRequest<String>> requests) {}

                @Override
                public void close() {}
            };
        }

        @Override
        public SimpleVersionedSerializer<String> getCommittableSerializer() {
            return new Texts();
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        env.setMaxParallelism(128);
        env.enableCheckpointing(31_536_000_000L);
        DataStream<Long> numbers = env.fromSequence(0, Long.MAX_VALUE / 2).uid("numbers")
                .map(new Growing()).returns(Types.LONG).setParallelism(2).uid("growing");
        numbers.sinkTo(new OwnSink()).uid("own-sink");
        if (request.path("collect").asBoolean()) {
            numbers.filter(n -> n < 0).uid("none").collectAsync();
        }
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), true);
        Map<String, Object> out = new HashMap<>();
        try {
            boolean drains = request.path("drain").asBoolean();
            out.put("savepoint", drains ? cluster.drain(job, request.get("savepoint").asText())
                    : cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            return out;
        } finally {
            cluster.cancel(job);
        }
    }
}
