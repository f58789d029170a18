package harness;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Operators with list, union and broadcast state, and two with large elements: "large" also has a small list, "alone" has none. A restored run
 * tells what it found, and writes nothing.
 */
public final class ListsJob {
    /** By run: the restored or written values of each state. */
    private static final Map<String, Map<String, Object>> SEEN = new ConcurrentHashMap<>();

    private ListsJob() {}

    static final class Keeper extends RichMapFunction<Long, Long> implements CheckpointedFunction {
        private final String run;

        Keeper(String run) {
            this.run = run;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            ListState<String> list =
                    context.getOperatorStateStore().getListState(new ListStateDescriptor<>("list", Types.STRING));
            ListState<Long> union =
                    context.getOperatorStateStore().getUnionListState(new ListStateDescriptor<>("union", Types.LONG));
            ListState<String> one =
                    context.getOperatorStateStore().getListState(new ListStateDescriptor<>("one", Types.STRING));
            BroadcastState<String, Long> rules = context.getOperatorStateStore()
                    .getBroadcastState(new MapStateDescriptor<>("rules", Types.STRING, Types.LONG));
            if (!context.isRestored()) {
                for (int i = 0; i < 7; i++) {
                    list.add("element " + i + " " + new String(new char[i == 3 ? 100_000 : 10 * i]).replace('\0', 'x'));
                    union.add(1000L + i);
                    rules.put("rule-" + i, (long) i);
                }
                one.add("only");
            }
            Map<String, Object> found = new LinkedHashMap<>();
            found.put("list", all(list.get()));
            found.put("union", all(union.get()));
            found.put("one", all(one.get()));
            Map<String, Object> entries = new TreeMap<>();
            for (Map.Entry<String, Long> entry : rules.immutableEntries()) {
                entries.put(entry.getKey(), entry.getValue());
            }
            found.put("rules", entries);
            SEEN.put(run, found);
        }

        private static List<Object> all(Iterable<?> values) {
            List<Object> found = new ArrayList<>();
            values.forEach(found::add);
            return found;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @Override
        public Long map(Long n) throws Exception {
            Thread.sleep(2);
            return n;
        }
    }

    /** Two elements above 64 KiB in each subtask. */
    static final class LargeKeeper extends RichMapFunction<Long, Long> implements CheckpointedFunction {
        private final String run;
        private final String uid;

        LargeKeeper(String run, String uid) {
            this.run = run;
            this.uid = uid;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            int subtask = getRuntimeContext().getIndexOfThisSubtask();
            ListState<String> large =
                    context.getOperatorStateStore().getListState(new ListStateDescriptor<>("large", Types.STRING));
            if (!context.isRestored()) {
                for (int i = 0; i < 2; i++) {
                    large.add(subtask + "/" + i + " " + new String(new char[100 << 10]).replace('\0', (char) ('a' + i)));
                }
            }
            Map<String, Object> found = new LinkedHashMap<>();
            found.put("large", Keeper.all(large.get()));
            if (uid.equals("large")) {
                ListState<Long> small =
                        context.getOperatorStateStore().getListState(new ListStateDescriptor<>("small", Types.LONG));
                if (!context.isRestored()) {
                    small.add((long) subtask);
                }
                found.put("small", Keeper.all(small.get()));
            }
            SEEN.put(run + uid + subtask, found);
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @Override
        public Long map(Long n) {
            return n;
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        String snapshot = request.path("snapshot").asText(null);
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        env.setMaxParallelism(128);
        int large = request.path("large").asInt(3);
        Cluster.discard(env.fromSequence(0, Long.MAX_VALUE / 2).uid("numbers-" + run)
                .map(new Keeper(run)).returns(Types.LONG).uid("keeper")
                .map(new LargeKeeper(run, "large")).returns(Types.LONG).uid("large").setParallelism(large)
                .map(new LargeKeeper(run, "alone")).returns(Types.LONG).uid("alone").setParallelism(large));
        JobID job = cluster.submit(env, snapshot, true);
        try {
            cluster.await(job, "the operator to open", () -> SEEN.size() == 1 + 2 * large);
            Map<String, Object> out = new LinkedHashMap<>();
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            }
            Map<String, Object> values = new LinkedHashMap<>(SEEN.get(run));
            for (String uid : List.of("large", "alone")) {
                for (int subtask = 0; subtask < large; subtask++) {
                    values.put(uid + subtask, SEEN.get(run + uid + subtask));
                }
            }
            out.put("values", values);
            return out;
        } finally {
            cluster.cancel(job);
            SEEN.clear();
        }
    }
}
