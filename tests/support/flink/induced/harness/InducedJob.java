package harness;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.runtime.checkpoint.MasterTriggerRestoreHook;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.ExternallyInducedSource;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A source that triggers checkpoints itself, and takes one snapshot. */
public final class InducedJob {
    /** The checkpoint that the coordinator asked for; the job runs in this process. */
    private static final AtomicLong ASKED = new AtomicLong();

    private InducedJob() {}

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        Cluster.discard(env.addSource(new Numbers(), "numbers", Types.LONG)
                .uid("numbers").map(n -> n).returns(Types.LONG));
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), true);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("path", request.has("savepoint")
                ? cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL") : cluster.checkpoint(job));
        cluster.cancel(job);
        return answer;
    }

    private static final class Numbers implements ExternallyInducedSource<Long, Long> {
        private volatile boolean runs = true;
        private transient CheckpointTrigger trigger;

        @Override
        public void setCheckpointTrigger(CheckpointTrigger given) {
            trigger = given;
        }

        @Override
        public void run(SourceContext<Long> context) throws Exception {
            ASKED.set(0); // what an earlier job in this process was asked for
            for (long n = 0; runs; n++) {
                long asked = ASKED.getAndSet(0);
                if (asked > 0) {
                    Thread.sleep(1000); // meanwhile, the coordinator asks the task as well
                    trigger.triggerCheckpoint(asked);
                }
                synchronized (context.getCheckpointLock()) {
                    context.collect(n);
                }
                Thread.sleep(1);
            }
        }

        @Override
        public void cancel() {
            runs = false;
        }

        @Override
        public MasterTriggerRestoreHook<Long> createMasterTriggerRestoreHook() {
            return new Hook();
        }
    }

    /** Tells the source which checkpoint the coordinator wants. */
    private static final class Hook implements MasterTriggerRestoreHook<Long> {
        @Override
        public String getIdentifier() {
            return "numbers";
        }

        @Override
        public CompletableFuture<Long> triggerCheckpoint(long checkpoint, long timestamp, Executor executor) {
            ASKED.set(checkpoint);
            return null;
        }

        @Override
        public void restoreCheckpoint(long checkpoint, Long data) {}

        @Override
        public SimpleVersionedSerializer<Long> createCheckpointDataSerializer() {
            return null;
        }
    }
}
