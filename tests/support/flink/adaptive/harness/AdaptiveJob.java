package harness;

import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Counts numbers by key in a cluster with the adaptive scheduler. The job starts in two TaskManagers. After its first checkpoint two
 * more start, and the scheduler runs the job in four slots from its last checkpoint. The answer has the counts of a checkpoint after that.
 */
public final class AdaptiveJob {
    private static final int KEYS = 40;
    private static final int FEW = 2;
    private static final Map<String, Seen> RUNS = new ConcurrentHashMap<>();

    private AdaptiveJob() {}

    /** What the tasks of a run found. */
    private static final class Seen {
        final Map<Long, Long> counts = new ConcurrentHashMap<>();
        final Map<Long, Map<Long, Long>> snapshots = new ConcurrentHashMap<>();
        final Set<Long> completed = ConcurrentHashMap.newKeySet();
        final Set<Long> rescaled = ConcurrentHashMap.newKeySet();

        /** The first checkpoint after the job was rescaled in which each key was counted since then. */
        Long whole() {
            return completed.stream().filter(id -> rescaled.contains(id) && snapshots.get(id).size() == KEYS)
                    .min(Long::compare).orElse(null);
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        Seen seen = new Seen();
        RUNS.put(run, seen);
        Configuration conf = cluster.configuration(request);
        StreamExecutionEnvironment env = Cluster.environment(conf);
        env.setParallelism(2 * FEW);
        env.setMaxParallelism(request.get("max_parallelism").asInt());
        long numbers = request.get("numbers").asLong();
        boolean slow = request.hasNonNull("savepoint");
        // One reader, which has the only split: readers without one finish, and then their state cannot be rescaled.
        env.fromSequence(0, numbers - 1).setParallelism(1).uid("numbers")
                .map(new Wide()).returns(Types.TUPLE(Types.LONG, Types.STRING)).uid("wide").keyBy(new Key()).process(new Count(run, slow)).returns(Types.LONG).uid("counts").filter(n -> false).uid("none")
                .print().uid("print");
        Map<String, Object> out = new HashMap<>();
        try (MiniCluster mini = new MiniCluster(new MiniClusterConfiguration.Builder()
                .setNumTaskManagers(FEW).setNumSlotsPerTaskManager(1).setConfiguration(conf).build())) {
            mini.start();
            Cluster adaptive = new Cluster(mini, Paths.get(request.get("work").asText()));
            JobID job = adaptive.submit(env, request.path("snapshot").asText(null), false);
            if (!slow) {
                adaptive.awaitEnd(job);
                out.put("counts", new TreeMap<>(seen.counts));
                return out;
            }
            adaptive.await(job, "a checkpoint", () -> !seen.completed.isEmpty());
            for (int i = 0; i < FEW; i++) {
                mini.startTaskManager();
            }
            // While tasks read in-flight records, they decline checkpoints. A later one has the counts of all keys.
            adaptive.await(job, "a checkpoint of four slots", () -> seen.whole() != null);
            long id = seen.whole();
            out.put("checkpoint", Paths.get(conf.toMap().get("execution.checkpointing.dir").replaceFirst("^file:(//)?", ""))
                    .resolve(job.toString()).resolve("chk-" + id).toString());
            out.put("counts", new TreeMap<>(seen.snapshots.get(id)));
            out.put("savepoint", adaptive.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            adaptive.cancel(job);
        } finally {
            RUNS.remove(run);
        }
        return out;
    }

    /** Records of a size with which few fit into a buffer. */
    static final class Wide implements MapFunction<Long, Tuple2<Long, String>> {
        private static final String FILL = String.join("", java.util.Collections.nCopies(25, "12345678"));

        @Override
        public Tuple2<Long, String> map(Long n) {
            return Tuple2.of(n, FILL);
        }
    }

    static final class Key implements KeySelector<Tuple2<Long, String>, Long> {
        @Override
        public Long getKey(Tuple2<Long, String> record) {
            return record.f0 % KEYS;
        }
    }

    static final class Count extends KeyedProcessFunction<Long, Tuple2<Long, String>, Long>
            implements CheckpointedFunction, CheckpointListener {
        private final String run;
        private final boolean slow;
        private transient ValueState<Long> count;
        private transient ListState<Long> subtasks;
        private transient Map<Long, Long> counts;

        Count(String run, boolean slow) {
            this.run = run;
            this.slow = slow;
        }

        @Override
        public void processElement(Tuple2<Long, String> record, Context context, Collector<Long> out) throws Exception {
            if (slow) {
                Thread.sleep(10); // the job lasts longer than anything that is waited for
            }
            Long before = count.value();
            long now = before == null ? 1 : before + 1;
            count.update(now);
            counts.put(context.getCurrentKey(), now);
            RUNS.get(run).counts.put(context.getCurrentKey(), now);
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            count = context.getKeyedStateStore().getState(new ValueStateDescriptor<>("count", Types.LONG));
            subtasks = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("seen", Types.LONG));
            counts = new HashMap<>();
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            subtasks.update(java.util.Collections.singletonList((long) counts.size()));
            Seen seen = RUNS.get(run);
            seen.snapshots.computeIfAbsent(context.getCheckpointId(), id -> new ConcurrentHashMap<>()).putAll(counts);
            if (getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks() == 2 * FEW) {
                seen.rescaled.add(context.getCheckpointId());
            }
        }

        @Override
        public void notifyCheckpointComplete(long id) {
            RUNS.get(run).completed.add(id);
        }
    }
}
