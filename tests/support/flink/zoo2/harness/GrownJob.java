package harness;

import evolved.Evolved.Grown;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.v2.ListState;
import org.apache.flink.api.common.state.v2.ListStateDescriptor;
import org.apache.flink.api.common.state.v2.MapState;
import org.apache.flink.api.common.state.v2.MapStateDescriptor;
import org.apache.flink.api.common.state.v2.State;
import org.apache.flink.api.common.state.v2.ValueState;
import org.apache.flink.api.common.state.v2.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Asynchronous state of a POJO that gets a field: one operator for each kind of state that the request names. */
public final class GrownJob {
    private static final int KEYS = 20;

    private GrownJob() {}

    /** Each key writes its state, or reads what it restored. */
    static final class Keeper extends KeyedProcessFunction<Long, Long, Long> {
        private final String run;
        private final String kind;
        private final boolean reads;
        private transient State state;

        Keeper(String run, String kind, boolean reads) {
            this.run = run;
            this.kind = kind;
            this.reads = reads;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            TypeInformation<Grown> type = TypeInformation.of(Grown.class);
            state = kind.equals("value") ? getRuntimeContext().getState(new ValueStateDescriptor<>("grown", type))
                    : kind.equals("list") ? getRuntimeContext().getListState(new ListStateDescriptor<>("grown", type))
                    : getRuntimeContext().getMapState(new MapStateDescriptor<>("grown", Types.STRING, type));
        }

        @Override
        @SuppressWarnings("unchecked")
        public void processElement(Long n, Context context, Collector<Long> out) {
            if (n >= KEYS) {
                return;
            }
            if (!reads) {
                Grown grown = new Grown();
                grown.a = n.intValue();
                grown.b = "text " + n;
                (kind.equals("value") ? ((ValueState<Grown>) state).asyncUpdate(grown)
                        : kind.equals("list") ? ((ListState<Grown>) state).asyncAdd(grown)
                        : ((MapState<String, Grown>) state).asyncPut("k", grown)).thenAccept(done -> found(n, grown));
            } else if (kind.equals("value")) {
                ((ValueState<Grown>) state).asyncValue().thenAccept(grown -> found(n, grown));
            } else if (kind.equals("list")) {
                ((ListState<Grown>) state).asyncGet().thenAccept(all -> all.onNext(grown -> {
                    found(n, grown);
                }));
            } else {
                ((MapState<String, Grown>) state).asyncGet("k").thenAccept(grown -> found(n, grown));
            }
        }

        private void found(Long key, Grown grown) {
            Map<String, Object> row = new TreeMap<>();
            row.put("key", key);
            row.put("kind", kind);
            row.put("a", grown.a);
            row.put("b", grown.b);
            Board.of(run).records.add(row);
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        String run = UUID.randomUUID().toString();
        boolean reads = request.hasNonNull("snapshot");
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(1);
        env.setMaxParallelism(128);
        List<String> kinds = new ArrayList<>();
        request.get("kinds").forEach(kind -> kinds.add(kind.asText()));
        DataStream<Long> numbers = env.fromSequence(0, Long.MAX_VALUE / 2).uid("numbers-" + run);
        for (String kind : kinds) {
            numbers.keyBy(n -> n, Types.LONG).enableAsyncState().process(new Keeper(run, kind, reads))
                    .returns(Types.LONG).uid(kind);
        }
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), true);
        Map<String, Object> out = new HashMap<>();
        try {
            cluster.await(job, "all keys", () -> Board.of(run).records.size() >= KEYS * kinds.size());
            if (request.hasNonNull("savepoint")) {
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "NATIVE"));
            }
            out.put("values", new ArrayList<>(Board.of(run).records));
            return out;
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
    }
}
